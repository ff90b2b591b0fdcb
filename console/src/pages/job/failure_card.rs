//! What went wrong with a job, at the top of its page: class, message, traceback, attempts.

use maud::{html, Markup};

use crate::alike::{self, Alike};
use crate::connection::reply::Record;
use crate::format::{name, when};
use crate::names::lines;

/// The last failure of a job that has one, with what its worker wrote just before.
pub fn draw(board: &[u8], record: &Record, entries: &[Record]) -> Option<Markup> {
    if !record.has("kind") || record.text("state") == "complete" {
        return None;
    }
    let message = record.bytes("message");
    let headline = alike::headline(&message);
    let trace = traceback(entries);
    let kind = record.bytes("kind");
    let at = entries.iter().rev().find(|entry| is_failure(&entry.text("event"))).map(|entry| entry.int("at"));
    let group = Alike { kind: kind.clone(), pattern: Some(alike::pattern(&message)) };
    Some(html! {
        div.failure {
            h2 { span.kind { (name(&kind)) } @if !headline.is_empty() { ": " bdi { (crate::names::shown(headline.as_bytes())) } } }
            p.faint {
                (crate::pages::failures::tries(record.int("attempt")))
                @if !record.has("ended") { @match record.int("left") { -1 => ", retries without end", 0 => ", no retry left", left => { ", " (left) " retries left" } } }
                @if record.has("previous") { ", last by " (name(&record.bytes("previous"))) }
                @if let Some(at) = at { ", " (when(at)) }
                @if record.text("state") == "failed" {
                    " · " a href=(crate::pages::failures::group_address(board, &group)) { "Jobs with the same failure" }
                }
            }
            @if message.trim_ascii().contains(&b'\n') { pre.data.trace tabindex="0" aria-label="Message" { (lines(&message)) } }
            @match &trace {
                Some(trace) => {
                    h3 { "Traceback" }
                    pre.data.trace #traceback tabindex="0" aria-label="Traceback" { (lines(trace)) }
                },
                None => @if headline.is_empty() { p.faint { "Its worker gave no message." } },
            }
        }
    })
}

fn is_failure(event: &str) -> bool {
    matches!(event, "failed" | "timeout" | "expired" | "dependency" | "lapsed")
}

/// The log that was written last in the run that failed last, when it has several lines.
fn traceback(entries: &[Record]) -> Option<Vec<u8>> {
    let failed = entries.iter().rposition(|entry| is_failure(&entry.text("event")))?;
    let run = entries[..failed].iter().rev().take_while(|entry| entry.text("event") != "claimed");
    let mut logs = run.filter(|entry| entry.text("event") == "log").map(|entry| entry.bytes("message"));
    logs.find(|text| text.contains(&b'\n'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use redis::Value;

    fn entry(event: &str, text: &str) -> Record {
        let bulk = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let pairs = vec![(bulk("event"), bulk(event)), (bulk("message"), bulk(text))];
        Record::read(Value::Map(pairs)).unwrap()
    }

    #[test]
    fn the_traceback_is_that_of_the_last_failure() {
        let life = [
            entry("claimed", ""),
            entry("log", "old\ntrace"),
            entry("failed", "A: x"),
            entry("claimed", ""),
            entry("log", "new\ntrace"),
            entry("log", "one line"),
            entry("failed", "A: x"),
        ];
        assert_eq!(traceback(&life), Some(b"new\ntrace".to_vec()));
        assert_eq!(traceback(&life[..3]), Some(b"old\ntrace".to_vec()));
        assert_eq!(traceback(&life[3..4]), None);
        assert_eq!(traceback(&[entry("claimed", ""), entry("failed", "A")]), None);
    }
}
