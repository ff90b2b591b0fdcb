//! What can be done to a job.

use maud::{html, Markup};

use crate::actions::JobVerb;
use crate::names::address;

/// Only what a job in this state can have done to it.
pub fn draw(board: &[u8], id: &[u8], state: &str, dead: bool) -> Markup {
    let verbs = [
        ("requeue", JobVerb::Requeue),
        ("return", JobVerb::Return),
        ("now", JobVerb::Now),
        ("cancel", JobVerb::Cancel),
        ("release", JobVerb::Release),
        ("delete", JobVerb::Delete),
        ("update", JobVerb::Update),
    ];
    html! {
        p.actions {
            @for (word, verb) in verbs {
                @if verb.outcome(state, false).is_ok() && (dead || verb != JobVerb::Return) {
                    a.button href=(address("/confirm", &[("b", board), ("verb", word.as_bytes()), ("id", id)])) {
                        (crate::pages::confirm::verb_text(word))
                    } " "
                }
            }
            (crate::pages::compose::links(board, id, state))
        }
    }
}
