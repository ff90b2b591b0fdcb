//! What happened to a job: a bar of its times, and the events one by one.

use maud::{html, Markup};

use crate::connection::reply::Record;
use crate::format::{name, now, span, when};
use crate::names::lines;

const WIDTH: f64 = 1000.0;

/// What a job does from one event to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Doing {
    Waiting,
    Running,
    Ended,
}

impl Doing {
    fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Ended => "ended",
        }
    }

    /// What an event begins; `None` for those that begin nothing.
    fn after(event: &str) -> Option<Self> {
        Some(match event {
            "posted" | "lapsed" | "abandoned" | "released" | "requeued" | "replaced" | "advanced" => {
                Self::Waiting
            }
            // Whether a try follows, the next event or the record's end tells.
            "timeout" | "failed" => Self::Waiting,
            "claimed" | "revived" => Self::Running,
            "complete" | "cancelled" | "trashed" | "expired" => Self::Ended,
            _ => return None,
        })
    }
}

#[derive(Debug, PartialEq)]
struct Stretch {
    from: i64,
    to: i64,
    doing: Doing,
}

/// The stretches between what happened, up to `until`.
fn stretches(events: &[(i64, String)], until: i64) -> Vec<Stretch> {
    let mut found: Vec<Stretch> = Vec::new();
    for (at, event) in events {
        let Some(doing) = Doing::after(event) else { continue };
        if let Some(last) = found.last_mut() {
            last.to = (*at).max(last.from);
            if last.doing == doing {
                continue;
            }
        }
        found.push(Stretch { from: *at, to: (*at).max(until), doing });
    }
    if let Some(last) = found.last_mut() {
        last.to = until.max(last.from);
    }
    found.retain(|stretch| stretch.doing != Doing::Ended);
    found
}

pub fn draw(entries: &[Record], record: &Record) -> Markup {
    let events: Vec<(i64, String)> =
        entries.iter().map(|entry| (entry.int("at"), entry.text("event"))).collect();
    let until = record.maybe_int("ended").unwrap_or_else(now);
    html! {
        (bar(&stretches(&events, until)))
        ol.history {
            @for (number, entry) in entries.iter().enumerate() {
                li {
                    span.at {
                        (when(entry.int("at")))
                        @if number > 0 { span.faint { " +" (span((entry.int("at") - entries[number - 1].int("at")).max(0))) } }
                    }
                    " " b { (entry.text("event")) }
                    @if entry.has("worker") { " " (name(&entry.bytes("worker"))) }
                    @if entry.has("text") { ": " bdi.lines { (lines(&entry.bytes("text"))) } }
                }
            }
        }
    }
}

fn bar(stretches: &[Stretch]) -> Markup {
    let (Some(first), Some(last)) = (stretches.first(), stretches.last()) else { return html! {} };
    let whole = (last.to - first.from).max(1) as f64;
    let x = |at: i64| (at - first.from) as f64 / whole * WIDTH;
    let total =
        |doing| span(stretches.iter().filter(|one| one.doing == doing).map(|one| one.to - one.from).sum());
    let told = format!("{} waiting, {} running", total(Doing::Waiting), total(Doing::Running));
    html! {
        figure.timeline {
            svg viewBox={ "0 0 " (WIDTH) " 24" } preserveAspectRatio="none" role="img" aria-label=(told) {
                @for stretch in stretches {
                    rect class=(stretch.doing.word()) x=(x(stretch.from)) y="0" height="24"
                        width=((x(stretch.to) - x(stretch.from)).max(1.0)) {
                        title { (stretch.doing.word()) " " (span(stretch.to - stretch.from)) }
                    }
                }
            }
            figcaption {
                span.key.waiting { (total(Doing::Waiting)) " waiting" } " "
                span.key.running { (total(Doing::Running)) " running" }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(all: &[(i64, &str)]) -> Vec<(i64, String)> {
        all.iter().map(|(at, event)| (*at, (*event).to_owned())).collect()
    }

    #[test]
    fn waiting_and_running_take_turns() {
        let lived = events(&[
            (0, "posted"),
            (10, "claimed"),
            (12, "log"),
            (30, "lapsed"),
            (31, "updated"),
            (50, "claimed"),
            (90, "complete"),
        ]);
        let stretch = |from, to, doing| Stretch { from, to, doing };
        let expected = [
            stretch(0, 10, Doing::Waiting),
            stretch(10, 30, Doing::Running),
            stretch(30, 50, Doing::Waiting),
            stretch(50, 90, Doing::Running),
        ];
        assert_eq!(stretches(&lived, 90), expected);
    }

    #[test]
    fn what_goes_on_lasts_until_now() {
        assert_eq!(
            stretches(&events(&[(0, "posted")]), 7),
            [Stretch { from: 0, to: 7, doing: Doing::Waiting }]
        );
        assert_eq!(stretches(&[], 7), []);
    }

    #[test]
    fn a_clock_that_went_back_harms_nothing() {
        for stretch in stretches(&events(&[(50, "posted"), (10, "claimed"), (5, "complete")]), 5) {
            assert!(stretch.to >= stretch.from);
        }
    }
}
