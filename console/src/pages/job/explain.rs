//! Why a job does not run, or how it ended: JOB.EXPLAIN.

use maud::{html, Markup};
use redis::Value;

use crate::app::RequestContext;
use crate::connection::board_command;
use crate::connection::reply::{bytes, int, records, text, Record};
use crate::failure::Failure;
use crate::format::{job_link, name, span, when, word};

/// Times in the reasons of JOB.EXPLAIN.
const MOMENTS: [&str; 9] = ["due", "until", "at", "since", "ended", "kept", "claimed", "deadline", "rest"];

/// What EXPLAIN answers for a job in this state.
pub fn heading(state: &str) -> &'static str {
    match state {
        "claimed" => "What it is doing",
        "complete" | "failed" | "cancelled" | "trashed" => "How it ended",
        _ => "Why isn't it running?",
    }
}

pub async fn draw(cx: &RequestContext, board: &[u8], id: &[u8]) -> Result<Option<Markup>, Failure> {
    let mut command = board_command("EXPLAIN", board);
    command.arg(id);
    let Some(told) = Record::read(cx.ask(board, command).await?) else { return Ok(None) };
    let reasons = records(told.get("reasons").cloned().unwrap_or(Value::Nil));
    Ok(Some(html! {
        @if told.int("claimable") == 1 { p { span.badge.ready { "a worker can claim it now" } } }
        ol.reasons {
            @for reason in &reasons {
                li {
                    p { b title=(reason.text("reason")) { (title(&reason.text("reason"))) } ": " bdi { (sentence(reason)) } }
                    (reason_facts(board, reason))
                }
            }
        }
        @if told.has("waiting") {
            p.faint {
                @match told.int("waiting") {
                    0 => "No claim waits for a job of its queue.",
                    1 => "1 claim waits for a job of its queue.",
                    waiting => { (waiting) " claims wait for a job of its queue." },
                }
            }
        }
    }))
}

/// What a reason of JOB.EXPLAIN is about. A later server may have more.
fn title(reason: &str) -> &str {
    match reason {
        "dependencies" => "Waits for other jobs",
        "signals" => "Waits for signals",
        "children" => "Waits for its children",
        "delayed" => "Waits for its time",
        "retry" => "Waits for its next try",
        "lapse" => "Lost its worker",
        "paused" => "Paused",
        "concurrency" => "Its limit is reached",
        "ordered" => "Its group runs one job after the other",
        "rate" => "Waits for permits",
        "line" => "Its place in the queue",
        "unclaimed" => "Waits for a worker",
        "expires" => "Expires",
        "claimed" => "Running",
        "cancel" => "Asked to stop",
        "ended" => "Ended",
        "dead" => "Failed before",
        "gone" => "Its record is gone",
        other => other,
    }
}

/// What a field of a reason says.
fn label(field: &str) -> &str {
    match field {
        "jobs" => "these jobs",
        "count" => "jobs",
        "pending" => "not ended",
        "ontimeout" => "after its time",
        "onfailure" => "when one fails",
        "any" => "one is enough",
        "left" => "retries left",
        "level" => "where",
        "limit" => "may run",
        "holders" => "held by",
        "rate-period" => "in",
        "debt" => "permits owed",
        "ahead" => "jobs before it",
        "turn" => "turns before its group's",
        "rest" => "no turn until",
        "quiet" => "quiet workers",
        "kept" => "record kept until",
        "session" => "ends with",
        "why" => "reason",
        "origin" => "failed in the queue",
        "claimed" => "since",
        "until" => "until",
        other => other,
    }
}

/// Its sentence, with its own times for people.
fn sentence(reason: &Record) -> Markup {
    let text = reason.text("text");
    let moment = reason.fields().find_map(|(field, value)| {
        let at = int(value).filter(|at| MOMENTS.contains(&field) && *at > 0)?;
        text.split_once(&at.to_string()).map(|(before, after)| (before, at, after))
    });
    html! {
        @match moment {
            Some((before, at, after)) => { (before) (crate::format::at(at)) (after) },
            None => (text),
        }
    }
}

fn reason_facts(board: &[u8], reason: &Record) -> Markup {
    // A claim without a session and without a grace need not say so.
    let says = |field: &str, value: &Value| match field {
        "reason" | "text" => false,
        "session" | "grace" => int(value) != Some(0),
        _ => true,
    };
    let facts: Vec<_> = reason.fields().filter(|(field, value)| says(field, value)).collect();
    html! {
        @if !facts.is_empty() {
            dl.facts.small {
                @for (field, value) in facts {
                    dt { (label(field)) }
                    dd {
                        @match field {
                            _ if MOMENTS.contains(&field) => {
                                @match int(value) { Some(-1) => "without end", Some(at) => (when(at)), None => "" }
                            },
                            "jobs" | "holders" => @for other in records(value.clone()) {
                                span.pair { (job_link(board, &other.bytes("id"))) " " (word(&other.text("state"))) " " (other.text("worker")) } " "
                            },
                            "signals" => @for (number, signal) in records(value.clone()).iter().enumerate() {
                                @if number > 0 { ", " }
                                span.pair { (name(&signal.bytes("name"))) @if signal.int("arrived") == 1 { " has arrived" } @else { " is missing" } }
                            },
                            "any" => @if int(value) == Some(1) { "yes" } @else { "no, all of them" },
                            "id" => (job_link(board, &bytes(value))),
                            "rate-period" | "grace" => (span(int(value).unwrap_or(0))),
                            "session" => "its connection",
                            _ => bdi { (text(value)) },
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_of_the_reference_has_a_title_of_its_own() {
        let reference = include_str!("../../../../commands.md");
        let (_, section) = reference.split_once("\n### JOB.EXPLAIN\n").expect("a section");
        let (_, table) = section.split_once("| reason | fields | when |\n").expect("a table of reasons");
        let reasons: Vec<&str> =
            table.lines().skip(1).map_while(|row| row.strip_prefix("| `")?.split('`').next()).collect();
        assert!(reasons.len() >= 18, "{reasons:?}");
        for reason in reasons {
            assert_ne!(title(reason), reason);
        }
    }
}
