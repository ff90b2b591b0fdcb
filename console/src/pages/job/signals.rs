//! The signals that have arrived for a job.

use maud::{html, Markup};

use super::data::Signal;
use crate::format::{name, size, when};
use crate::names::address;

/// Signals that have arrived, in the order in which they did.
pub fn arrived(board: &[u8], id: &[u8], signals: &[Signal]) -> Markup {
    html! {
        h2 { "Signals" }
        div.wide tabindex="0" {
            table.stacked {
                caption.unseen { "Signals that have arrived, in their order" }
                thead { tr { @for head in ["Signal", "Arrived", "From", "Value"] { th scope="col" { (head) } } } }
                tbody {
                    @for signal in signals {
                        @let fields: [(&str, &[u8]); 4] =
                            [("b", board), ("id", id), ("field", b"signal"), ("signal", &signal.name)];
                        tr {
                            th scope="row" { (name(&signal.name)) }
                            td data-label="Arrived" { (when(signal.at)) }
                            td data-label="From" { (name(&signal.sender)) }
                            td data-label="Value" {
                                (super::data::beginning(&signal.value, signal.size, super::data::VALUE_SHOWN))
                                a.faint href=(address("/data", &fields)) download { (size(signal.size as i64)) }
                            }
                        }
                    }
                }
            }
        }
    }
}
