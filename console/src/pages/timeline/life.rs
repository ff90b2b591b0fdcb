//! The life of a job as its history tells it: waits and attempts, one after the other.

use crate::connection::reply::Record;

/// Log lines that are marked in one attempt.
const MARKS: usize = 50;

/// What a job does from one event to the next.
#[derive(Clone, Debug, PartialEq)]
pub enum Doing {
    /// Since this event.
    Waiting(String),
    /// Of this worker.
    Running(String),
}

/// A row: from when to when, and the event that ended it; `None` while it lasts.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub from: i64,
    pub to: i64,
    pub doing: Doing,
    pub end: Option<String>,
    /// What the end says: a failure, a reason.
    pub text: Vec<u8>,
    pub logs: Vec<(i64, Vec<u8>)>,
}

/// What an event begins; `Some(None)` ends all, `None` begins nothing.
fn begins(event: &str, worker: &str) -> Option<Option<Doing>> {
    Some(match event {
        "posted" | "lapsed" | "abandoned" | "released" | "requeued" | "replaced" | "advanced"
        // Whether a try follows, the next event or the record's end tells.
        | "timeout" | "failed" => Some(Doing::Waiting(event.to_owned())),
        "awaiting" | "signalled" | "await-timeout" => Some(Doing::Waiting(event.to_owned())),
        "claimed" | "revived" => Some(Doing::Running(worker.to_owned())),
        "complete" | "cancelled" | "trashed" | "expired" => None,
        _ => return None,
    })
}

/// What an event says: the kind of a failure and its message, a reason, a line of log, a queue, a signal.
pub fn said(entry: &Record) -> Vec<u8> {
    let mut parts = ["kind", "message", "queue"].map(|field| entry.bytes(field)).to_vec();
    let more = match entry.int("signals") {
        more @ 2.. => format!(" and {} more", more - 1),
        _ => String::new(),
    };
    parts.push([entry.bytes("signal"), more.into_bytes()].concat());
    match entry.int("children") {
        0 => {}
        1 => parts.push(b"1 child".to_vec()),
        n => parts.push(format!("{n} children").into_bytes()),
    }
    parts.retain(|part| !part.is_empty());
    parts.join(&b": "[..])
}

/// The rows of a life, up to `until`; a job that has ended waits for nothing after its last event.
pub fn rows(events: &[Record], until: i64, is_ended: bool) -> Vec<Row> {
    let mut found: Vec<Row> = Vec::new();
    let mut open = false;
    for entry in events {
        let (at, event) = (entry.int("at"), entry.text("event"));
        if event == "log" {
            if let Some(row) = found.last_mut().filter(|row| open && row.logs.len() < MARKS) {
                row.logs.push((at, said(entry)));
            }
            continue;
        }
        let Some(mut begun) = begins(&event, &entry.text("worker")) else { continue };
        // A wait for signals names the first.
        if event == "awaiting" && !entry.has("signal") {
            begun = Some(Doing::Waiting("children".to_owned()));
        }
        // A signal may come before anything waits for it: then nothing else begins.
        let awaited = |row: &Row| matches!(&row.doing, Doing::Waiting(since) if since == "awaiting" || since == "signalled");
        if matches!(event.as_str(), "signalled" | "await-timeout")
            && !found.last().is_some_and(|row| open && awaited(row))
        {
            continue;
        }
        if let Some(last) = found.last_mut().filter(|_| open) {
            last.to = at.max(last.from);
            last.end = Some(event);
            last.text = said(entry);
        }
        open = begun.is_some();
        if let Some(doing) = begun {
            found.push(Row {
                from: at,
                to: at.max(until),
                doing,
                end: None,
                text: Vec::new(),
                logs: Vec::new(),
            });
        }
    }
    if open && is_ended && found.last().is_some_and(|row| matches!(row.doing, Doing::Waiting(_))) {
        found.pop();
    }
    found
}

impl Row {
    pub fn is_run(&self) -> bool {
        matches!(self.doing, Doing::Running(_))
    }
}

#[cfg(test)]
mod tests {
    use redis::Value;

    use super::*;

    fn entry(at: i64, event: &str, worker: &str, text: &str) -> Record {
        let bulk = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let (kind, message) = text.split_once(": ").unwrap_or(("", text));
        let fields = [("event", event), ("worker", worker), ("kind", kind), ("message", message)];
        let mut pairs: Vec<(Value, Value)> =
            fields.iter().map(|(field, value)| (bulk(field), bulk(value))).collect();
        pairs.push((bulk("at"), Value::Int(at)));
        Record::read(Value::Map(pairs)).unwrap()
    }

    fn told(rows: &[Row]) -> Vec<(i64, i64, bool, Option<&str>)> {
        rows.iter().map(|row| (row.from, row.to, row.is_run(), row.end.as_deref())).collect()
    }

    #[test]
    fn waits_and_attempts_take_turns() {
        let lived = [
            entry(0, "posted", "", ""),
            entry(10, "claimed", "a", ""),
            entry(12, "log", "a", "hello"),
            entry(30, "failed", "a", "IOError: m"),
            entry(31, "updated", "", ""),
            entry(50, "claimed", "b", ""),
            entry(90, "complete", "b", ""),
        ];
        let found = rows(&lived, 90, true);
        assert_eq!(
            told(&found),
            [
                (0, 10, false, Some("claimed")),
                (10, 30, true, Some("failed")),
                (30, 50, false, Some("claimed")),
                (50, 90, true, Some("complete"))
            ]
        );
        assert_eq!((found[1].logs.len(), found[1].text.as_slice()), (1, &b"IOError: m"[..]));
    }

    #[test]
    fn what_goes_on_lasts_until_now_and_what_ended_waits_no_more() {
        assert_eq!(told(&rows(&[entry(0, "posted", "", "")], 7, false)), [(0, 7, false, None)]);
        let failed = [entry(0, "posted", "", ""), entry(1, "claimed", "a", ""), entry(5, "failed", "a", "")];
        assert_eq!(
            told(&rows(&failed, 5, true)),
            [(0, 1, false, Some("claimed")), (1, 5, true, Some("failed"))]
        );
        assert_eq!(told(&rows(&failed, 9, false)).last(), Some(&(5, 9, false, None)));
        assert_eq!(rows(&[], 7, false), []);
    }

    #[test]
    fn a_wait_without_a_signal_is_one_for_children() {
        let lived = [entry(0, "posted", "", ""), entry(1, "claimed", "a", ""), entry(5, "awaiting", "a", "")];
        let found = rows(&lived, 9, false);
        assert_eq!(found.last().map(|row| &row.doing), Some(&Doing::Waiting("children".to_owned())));
        let counted = |count: i64| {
            let field = Value::BulkString(b"children".to_vec());
            said(&Record::read(Value::Map(vec![(field, Value::Int(count))])).unwrap())
        };
        assert_eq!([counted(1), counted(2)], [b"1 child".to_vec(), b"2 children".to_vec()]);
    }

    #[test]
    fn a_clock_that_went_back_harms_nothing() {
        let life =
            [entry(50, "posted", "", ""), entry(10, "claimed", "a", ""), entry(5, "complete", "a", "")];
        for row in rows(&life, 5, true) {
            assert!(row.to >= row.from);
        }
    }
}
