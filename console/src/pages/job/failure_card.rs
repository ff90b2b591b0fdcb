//! What went wrong with a job, at the top of its page: class, message, traceback, attempts.

use maud::{html, Markup};

use crate::alike::{self, Alike};
use crate::connection::reply::Record;
use crate::format::{name, when};
use crate::names::lines;

/// Earlier failures that are shown, the last ones.
const EARLIER: usize = 20;

/// The last failure of a job that has one, with what its worker wrote just before, and the earlier ones.
pub fn draw(board: &[u8], record: &Record, entries: &[Record]) -> Option<Markup> {
    if !record.has("kind") || record.text("state") == "complete" {
        return None;
    }
    let message = record.bytes("message");
    let headline = alike::headline(&message);
    let mut failures = failures(entries);
    let last = failures.pop();
    let trace = last.as_ref().and_then(|last| last.trace.clone());
    let kind = record.bytes("kind");
    let at = last.as_ref().map(|last| last.entry.int("at"));
    let group = Alike { kind: kind.clone(), pattern: Some(alike::pattern(&message)) };
    Some(html! {
        div.failure {
            h2 { span.kind { (name(&kind)) } @if !headline.is_empty() { ": " bdi { (crate::names::shown(headline.as_bytes())) } } }
            p.faint {
                @if record.has("ended") {
                    (crate::pages::failures::tries(record.int("attempt")))
                    @if record.has("previous") { ", last by " (name(&record.bytes("previous"))) }
                    @if let Some(at) = at { ", " (when(at)) }
                } @else { (goes_on(record, last.as_ref())) }
                @if record.text("state") == "failed" {
                    " · " a href=(crate::pages::failures::group_address(board, &group)) { "Jobs with the same failure" }
                }
            }
            @if message.trim_ascii().contains(&b'\n') { pre.data.trace tabindex="0" aria-label="Message" { (lines(&message)) } }
            @match &trace {
                Some(trace) => {
                    h3 { "Traceback " (crate::pages::layout::copy("the traceback", "#traceback", None)) }
                    pre.data.trace #traceback tabindex="0" aria-label="Traceback" { (lines(trace)) }
                },
                None => @if headline.is_empty() { p.faint { "Its worker gave no message." } },
            }
        }
        (earlier(&failures, record.int("attempt")))
    })
}

/// Which attempt failed of a job that has not ended, and how often it may fail again.
fn goes_on(record: &Record, last: Option<&Failed>) -> Markup {
    let attempt = last.map_or(0, |last| record.int("attempt") - last.back);
    html! {
        @if record.has("origin") { "It failed in the queue " (name(&record.record("origin").bytes("queue"))) " and moved here" }
        @else if attempt > 0 { "Attempt " (attempt) " failed" }
        @else { "An earlier attempt failed" }
        @if let Some(last) = last {
            @if !last.worker.is_empty() { ", " (name(&last.worker)) }
            ", " (when(last.entry.int("at")))
        }
        @match record.int("left") {
            -1 => ". No limit of retries.", 0 => ". No retry left.", 1 => ". 1 retry left.", left => { ". " (left) " retries left." }
        }
    }
}

/// What went wrong in earlier attempts, newest first, as far as the history is kept.
fn earlier(failures: &[Failed], attempts: i64) -> Markup {
    html! {
        @if !failures.is_empty() {
            details.earlier #earlier {
                summary { "Earlier failures (" (failures.len()) ")" }
                @if failures.len() > EARLIER { p.note { "The last " (EARLIER) " of them." } }
                ol.plain reversed start=(failures.len()) {
                    @for failed in failures.iter().rev().take(EARLIER) { li { (failed.draw(attempts - failed.back)) } }
                }
                p.note { "Of a long life the server keeps the beginning and the end of the history: failures between them are not shown." }
            }
        }
    }
}

/// A run that failed.
struct Failed<'a> {
    entry: &'a Record,
    /// Attempts that began after this one.
    back: i64,
    worker: Vec<u8>,
    trace: Option<Vec<u8>>,
}

impl Failed<'_> {
    fn draw(&self, attempt: i64) -> Markup {
        let (kind, message) = (self.entry.bytes("kind"), self.entry.bytes("message"));
        let headline = alike::headline(&message);
        html! {
            p {
                b { @if kind.is_empty() { (self.entry.text("event")) } @else { (name(&kind)) } }
                @if !headline.is_empty() { ": " bdi { (crate::names::shown(headline.as_bytes())) } }
            }
            p.faint {
                @if attempt > 0 { "Attempt " (attempt) } @else { "An earlier attempt" }
                @if !self.worker.is_empty() { ", " (name(&self.worker)) }
                ", " (when(self.entry.int("at")))
            }
            @if message.trim_ascii().contains(&b'\n') { pre.data.trace tabindex="0" aria-label="Message" { (lines(&message)) } }
            @if let Some(trace) = &self.trace {
                pre.data.trace tabindex="0" aria-label={ "Traceback of attempt " (attempt) } { (lines(trace)) }
            }
        }
    }
}

fn is_failure(event: &str) -> bool {
    matches!(event, "failed" | "timeout" | "expired" | "dependency" | "lapsed")
}

/// The failures of a life, oldest first, each with the log that was written last in its run, when that has
/// several lines.
fn failures(entries: &[Record]) -> Vec<Failed<'_>> {
    let runs = entries.iter().filter(|entry| entry.text("event") == "claimed").count() as i64;
    let (mut found, mut begun, mut worker, mut trace) = (Vec::new(), 0, Vec::new(), None);
    for entry in entries {
        match entry.text("event").as_str() {
            "claimed" => {
                begun += 1;
                (worker, trace) = (entry.bytes("worker"), None);
            }
            "log" => {
                let text = entry.bytes("message");
                if text.contains(&b'\n') {
                    trace = Some(text);
                }
            }
            event if is_failure(event) => {
                let worker = std::mem::take(&mut worker);
                found.push(Failed { entry, back: runs - begun, worker, trace: trace.take() });
            }
            _ => {}
        }
    }
    found
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
    fn each_failure_has_the_traceback_of_its_own_run() {
        let life = [
            entry("claimed", ""),
            entry("log", "old\ntrace"),
            entry("failed", "A: x"),
            entry("claimed", ""),
            entry("log", "new\ntrace"),
            entry("log", "one line"),
            entry("failed", "A: x"),
        ];
        let told = |life: &[Record]| -> Vec<(i64, Option<Vec<u8>>)> {
            failures(life).into_iter().map(|failed| (failed.back, failed.trace)).collect()
        };
        assert_eq!(told(&life), [(1, Some(b"old\ntrace".to_vec())), (0, Some(b"new\ntrace".to_vec()))]);
        assert_eq!(told(&life[3..4]), []);
        assert_eq!(told(&[entry("claimed", ""), entry("failed", "A")]), [(0, None)]);
    }
}
