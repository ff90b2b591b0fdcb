//! A job's life along one line of time: waits, attempts with what came of them, log lines, and its children;
//! below it the events one by one.

use maud::{html, Markup};
use redis::Value;

use crate::app::RequestContext;
use crate::connection::board_command;
use crate::connection::reply::{list, records, Record};
use crate::failure::Failure;
use crate::format::{job_link, name, now, number, span, state, when};
use crate::names::{lines, shown};

/// The width of a bar in its own units; the page stretches it.
const WIDTH: f64 = 1000.0;

/// Nothing is drawn narrower than this.
const THIN: f64 = 3.0;

/// Children on the line.
const CHILDREN: usize = 25;

/// Waits and attempts on the line; of more the last ones are drawn.
const ROWS: usize = 60;

/// Log lines that are marked in one attempt.
const MARKS: usize = 50;

const CHILD_FIELDS: [&str; 7] = ["id", "name", "state", "posted", "claimed", "ended", "worker"];

/// What a job does from one event to the next.
#[derive(Clone, Debug, PartialEq)]
enum Doing {
    /// Since this event.
    Waiting(String),
    /// Of this worker.
    Running(String),
}

/// A row: from when to when, and the event that ended it; `None` while it lasts.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    from: i64,
    to: i64,
    doing: Doing,
    end: Option<String>,
    /// What the end says: a failure, a reason.
    text: Vec<u8>,
    logs: Vec<(i64, Vec<u8>)>,
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
fn said(entry: &Record) -> Vec<u8> {
    let mut parts = ["kind", "message", "queue"].map(|field| entry.bytes(field)).to_vec();
    parts.push(entry.bytes("signal"));
    if entry.int("signals") > 1 {
        let more = format!(" and {} more", entry.int("signals") - 1);
        parts.last_mut().unwrap_or(&mut Vec::new()).extend_from_slice(more.as_bytes());
    }
    match entry.int("children") {
        0 => {}
        1 => parts.push(b"1 child".to_vec()),
        n => parts.push(format!("{n} children").into_bytes()),
    }
    parts.retain(|part| !part.is_empty());
    parts.join(&b": "[..])
}

/// The rows of a life, up to `until`; a job that has ended waits for nothing after its last event.
fn rows(events: &[Record], until: i64, is_ended: bool) -> Vec<Row> {
    let mut found: Vec<Row> = Vec::new();
    let mut open = false;
    for entry in events {
        let (at, event) = (entry.int("at"), entry.text("event"));
        if event == "log" {
            if let Some(row) = found.last_mut().filter(|row| open && row.logs.len() < MARKS) {
                row.logs.push((at, entry.bytes("message")));
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

/// The children of a job, in the order of their posts.
pub async fn children(cx: &RequestContext, board: &[u8], record: &Record) -> Result<Vec<Record>, Failure> {
    if record.int("children") == 0 {
        return Ok(Vec::new());
    }
    let mut command = board_command("GET", board);
    command.arg(record.bytes("id")).arg("FIELDS").arg(CHILD_FIELDS.len()).arg(&CHILD_FIELDS);
    command.arg("CHILDREN").arg("COUNT").arg(CHILDREN);
    Ok(records(list(cx.ask(board, command).await?).into_iter().nth(2).unwrap_or(Value::Nil)))
}

pub fn draw(board: &[u8], entries: &[Record], record: &Record, children: &[Record]) -> Markup {
    let until = record.maybe_int("ended").unwrap_or_else(now);
    let rows = rows(entries, until, record.has("ended"));
    html! {
        (line(board, &rows, record, children))
        details open[entries.len() <= 12] {
            summary { "Each event" }
            (events(entries))
        }
    }
}

/// From the first to the last moment that is drawn.
#[derive(Clone, Copy)]
struct Scale {
    first: i64,
    last: i64,
}

impl Scale {
    fn x(self, at: i64) -> f64 {
        let whole = (self.last - self.first).max(1) as f64;
        ((at - self.first) as f64 / whole * WIDTH).clamp(0.0, WIDTH)
    }

    fn bar(self, class: &str, from: i64, to: i64) -> Markup {
        let (x, end) = (self.x(from), self.x(to));
        let width = (end - x).max(THIN);
        html! { rect class=(class) x=(x.min(WIDTH - THIN)) y="3" width=(width) height="14" {} }
    }
}

fn line(board: &[u8], rows: &[Row], record: &Record, children: &[Record]) -> Markup {
    let firsts = rows.iter().map(|row| row.from).chain(children.iter().map(|child| child.int("posted")));
    let Some(first) = firsts.min() else { return html! {} };
    let ends = children.iter().map(|child| child.maybe_int("ended").unwrap_or_else(now));
    let last = rows.iter().map(|row| row.to).chain(ends).max().unwrap_or(first).max(first);
    let scale = Scale { first, last };
    // Attempts are counted from the last one: the first events of a long history go.
    let runs = rows.iter().filter(|row| matches!(row.doing, Doing::Running(_))).count() as i64;
    let before = record.int("attempt") - runs;
    let attempt = |at: usize| {
        let so_far = rows[..=at].iter().filter(|row| matches!(row.doing, Doing::Running(_)));
        before + so_far.count() as i64
    };
    let skipped = rows.len().saturating_sub(ROWS);
    html! {
        p.span {
            span { (when(first)) } " " b { (span(last - first)) } " "
            span { @if record.has("ended") { (crate::format::at(last)) } @else { "now" } }
        }
        @if skipped > 0 { p.note { (number(skipped as i64)) " earlier waits and attempts are not drawn." } }
        ol.timeline {
            @for (at, row) in rows.iter().enumerate().skip(skipped) { (drawn(scale, row, attempt(at))) }
            @for child in children { (drawn_child(scale, board, child)) }
        }
        @if record.int("children") > children.len() as i64 && !children.is_empty() {
            p.note { "The first " (children.len()) " of " (number(record.int("children"))) " children." }
        }
    }
}

fn drawn(scale: Scale, row: &Row, attempt: i64) -> Markup {
    let took = span(row.to - row.from);
    let failed = row.end.as_deref().is_some_and(is_bad);
    let (class, told) = match &row.doing {
        Doing::Waiting(_) => ("waiting", format!("waited {took}")),
        Doing::Running(_) if failed => ("running bad", format!("attempt {attempt}, {took}, failed")),
        Doing::Running(_) => ("running", format!("attempt {attempt}, {took}")),
    };
    html! {
        li.(class) {
            p {
                @match &row.doing {
                    Doing::Waiting(since) => { span.faint { (waits(since, row.end.is_none())) " " (took) } },
                    Doing::Running(worker) => {
                        b { "Attempt " (attempt) } " "
                        @if !worker.is_empty() { bdi { (worker) } " " }
                        span.faint { (took) }
                        @match row.end.as_deref() {
                            None => " running",
                            Some(end) => { " → " span.outcome.bad[failed] { (end) } },
                        }
                        @if !row.text.is_empty() { span.faint { ": " bdi { (crate::names::short(crate::alike::headline(&row.text).as_bytes(), 160)) } } }
                    },
                }
            }
            svg viewBox={ "0 0 " (WIDTH) " 20" } preserveAspectRatio="none" role="img" aria-label=(told) {
                (scale.bar(class, row.from, row.to))
                @for (at, text) in &row.logs {
                    rect.mark x=(scale.x(*at).min(WIDTH - THIN)) y="0" width=(THIN) height="20" { title { (crate::names::short(crate::alike::headline(text).as_bytes(), 200)) } }
                }
            }
        }
    }
}

fn is_bad(end: &str) -> bool {
    matches!(end, "failed" | "lapsed" | "timeout" | "expired")
}

/// Why a job waited.
fn waits(since: &str, goes_on: bool) -> &'static str {
    match (since, goes_on) {
        ("failed" | "timeout", _) => "Back-off and queue",
        ("awaiting", _) => "Waits for a signal",
        ("children", true) => "Waits for its children",
        ("children", false) => "Its children, and the queue",
        ("signalled", _) => "After a signal",
        ("await-timeout", _) => "After the time for signals",
        ("lapsed" | "abandoned" | "released" | "requeued" | "advanced", _) => "In the queue again",
        (_, true) => "Waits since",
        _ => "In the queue",
    }
}

fn drawn_child(scale: Scale, board: &[u8], child: &Record) -> Markup {
    let until = child.maybe_int("ended").unwrap_or_else(now);
    let began = child.maybe_int("claimed");
    let told = format!("child {}, {}", shown(&child.bytes("id")), child.text("state"));
    let bad = child.text("state") == "failed";
    html! {
        li.child {
            p {
                "Child " @if child.has("name") { (name(&child.bytes("name"))) " " } (job_link(board, &child.bytes("id"))) " " (state(&child.text("state"))) " "
                @if let Some(began) = began { span.faint { (span((until - began).max(0))) } }
            }
            svg viewBox={ "0 0 " (WIDTH) " 20" } preserveAspectRatio="none" role="img" aria-label=(told) {
                (scale.bar("waiting", child.int("posted"), began.unwrap_or(until)))
                @if let Some(began) = began { (scale.bar(if bad { "running bad" } else { "running" }, began, until)) }
            }
        }
    }
}

fn events(entries: &[Record]) -> Markup {
    html! {
        ol.history {
            @for (number, entry) in entries.iter().enumerate() {
                li {
                    span.at {
                        (when(entry.int("at")))
                        @if number > 0 { span.faint { " +" (span((entry.int("at") - entries[number - 1].int("at")).max(0))) } }
                    }
                    " " b { (entry.text("event")) }
                    @if entry.has("worker") { " " (name(&entry.bytes("worker"))) }
                    @let text = said(entry);
                    @if !text.is_empty() { ": " bdi.lines { (lines(&text)) } }
                    @if entry.has("final") { span.faint { " (final)" } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
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
        let is_run = |row: &Row| matches!(row.doing, Doing::Running(_));
        rows.iter().map(|row| (row.from, row.to, is_run(row), row.end.as_deref())).collect()
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
    fn a_clock_that_went_back_harms_nothing() {
        let life =
            [entry(50, "posted", "", ""), entry(10, "claimed", "a", ""), entry(5, "complete", "a", "")];
        for row in rows(&life, 5, true) {
            assert!(row.to >= row.from);
        }
        let scale = Scale { first: 5, last: 5 };
        assert!((0.0..=WIDTH).contains(&scale.x(-100)) && (0.0..=WIDTH).contains(&scale.x(100)));
    }
}
