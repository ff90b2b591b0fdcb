//! What stands on the line of time, each with a text and a bar or a mark.

use maud::{html, Markup};

use super::life::{Doing, Row};
use super::scale::{Scale, WIDTH};
use super::Run;
use crate::alike::headline;
use crate::connection::reply::{bytes, Record};
use crate::format::{at, job_link, name, now, size, span, state, word};
use crate::names::{address, short, shown};
use crate::pages::job::{Signal, Step};

/// Of steps, and of log lines, the last ones have lines of their own.
const STEPS: usize = 40;
const LOGS: usize = 30;

/// Of the waits and attempts of one child the last ones.
const INNER: usize = 12;

/// Characters of a value or a log line that stand here.
const TEXT: usize = 120;

pub struct Line<'a> {
    pub from: i64,
    pub to: i64,
    /// The row to which it belongs: what happens in one millisecond stays in its order.
    row: usize,
    what: What<'a>,
}

/// Of what belongs to no row.
const NO_ROW: usize = usize::MAX;

/// In this order where two of one row begin together.
enum What<'a> {
    /// A wait, or the attempt of this number.
    Row(&'a Row, i64),
    Output,
    Step(&'a Step),
    Log(&'a [u8]),
    Signal(&'a Signal, Late),
    Child(&'a Record),
    /// A wait of a child, or its attempt of this number.
    Inner(&'a Row, i64),
    /// A signal that the job waits for.
    Missing(Vec<u8>),
}

/// Whether a signal came after the time of a wait was over.
#[derive(Clone, Debug, PartialEq)]
enum Late {
    No,
    /// The wait was for it.
    Yes,
    /// The wait was for several signals, of which the history names this one; so many others are not named.
    Perhaps(Vec<u8>, i64),
}

impl What<'_> {
    fn rank(&self) -> u8 {
        match self {
            Self::Row(..) => 0,
            Self::Output => 1,
            Self::Step(_) => 2,
            Self::Log(_) => 3,
            Self::Signal(..) => 4,
            Self::Child(_) | Self::Inner(..) => 5,
            Self::Missing(_) => 6,
        }
    }
}

/// All of them, in the order in which they began, and behind each child the rows of its life, if there are any.
pub fn lines<'a>(run: &Run<'a>, rows: &'a [Row], skipped: usize, inner: &'a [Vec<Row>]) -> Vec<Line<'a>> {
    // Attempts are counted from the last one: the middle of a long history is not kept.
    let runs = rows.iter().filter(|row| row.is_run()).count() as i64;
    let before = run.record.int("attempt") - runs;
    let mut attempt = before;
    let mut lines = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        attempt += i64::from(row.is_run());
        if number < skipped {
            continue;
        }
        lines.push(Line { from: row.from, to: row.to, row: number, what: What::Row(row, attempt) });
        if row.is_run() && run.output.attempt() == Some(attempt) {
            lines.push(Line { from: row.from, to: row.to, row: number, what: What::Output });
        }
    }
    let shown = rows.iter().enumerate().skip(skipped);
    let mut logs: Vec<Line> = shown
        .flat_map(|(row, of)| {
            of.logs.iter().map(move |(at, text)| Line { from: *at, to: *at, row, what: What::Log(text) })
        })
        .collect();
    lines.extend(logs.split_off(logs.len().saturating_sub(LOGS)));
    lines.extend(steps(&run.kept.steps, rows));
    lines.extend(run.kept.signals.iter().map(|signal| {
        let what = What::Signal(signal, lateness(signal, run.entries));
        Line { from: signal.at, to: signal.at, row: NO_ROW, what }
    }));
    lines.extend(run.children.iter().map(|child| {
        let to = child.maybe_int("ended").unwrap_or_else(now);
        Line { from: child.int("posted"), to, row: NO_ROW, what: What::Child(child) }
    }));
    let wait = run.record.record("awaits");
    lines.extend(wait.list("missing").iter().map(|signal| Line {
        from: wait.int("since"),
        to: now(),
        row: NO_ROW,
        what: What::Missing(bytes(signal)),
    }));
    lines.sort_by_key(|line| (line.from, line.row, line.what.rank()));
    if inner.is_empty() {
        return lines;
    }
    let lives = |child: &Record| {
        let at = run.children.iter().position(|other| std::ptr::eq(other, child));
        at.and_then(|at| inner.get(at)).map_or(&[][..], Vec::as_slice)
    };
    let with_inner = |line: Line<'a>| {
        let rows = match line.what {
            What::Child(child) => inner_lines(child, lives(child)),
            _ => Vec::new(),
        };
        std::iter::once(line).chain(rows)
    };
    lines.into_iter().flat_map(with_inner).collect()
}

/// The last waits and attempts of a child.
fn inner_lines<'a>(child: &Record, rows: &'a [Row]) -> Vec<Line<'a>> {
    let mut attempt = child.int("attempt") - rows.iter().filter(|row| row.is_run()).count() as i64;
    let mut lines = Vec::new();
    for row in rows {
        attempt += i64::from(row.is_run());
        lines.push(Line { from: row.from, to: row.to, row: NO_ROW, what: What::Inner(row, attempt) });
    }
    lines.split_off(lines.len().saturating_sub(INNER))
}

/// Steps, each from the step before it in the same attempt, or from the claim.
fn steps<'a>(steps: &'a [Step], rows: &[Row]) -> Vec<Line<'a>> {
    let mut lines = Vec::new();
    let mut before = i64::MIN;
    for step in steps {
        let row = rows.iter().rposition(|row| row.is_run() && row.from <= step.at);
        let from = row.map_or(step.at, |row| rows[row].from.max(before).min(step.at));
        before = step.at;
        lines.push(Line { from, to: step.at, row: row.unwrap_or(NO_ROW), what: What::Step(step) });
    }
    lines.split_off(steps.len().saturating_sub(STEPS))
}

/// Whether the time of a wait was over before this signal arrived, and nothing has waited for signals since.
fn lateness(signal: &Signal, entries: &[Record]) -> Late {
    let over = entries.iter().rev().find(|entry| {
        entry.int("at") <= signal.at && matches!(entry.text("event").as_str(), "awaiting" | "await-timeout")
    });
    match over.filter(|entry| entry.text("event") == "await-timeout") {
        Some(wait) if wait.bytes("signal") == signal.name => Late::Yes,
        Some(wait) if wait.int("signals") > 1 => Late::Perhaps(wait.bytes("signal"), wait.int("signals") - 1),
        _ => Late::No,
    }
}

impl Line<'_> {
    /// From when to when something ran.
    pub fn busy(&self) -> Option<(i64, i64)> {
        match &self.what {
            What::Row(row, _) | What::Inner(row, _) => row.is_run().then_some((self.from, self.to)),
            What::Step(_) | What::Output => Some((self.from, self.to)),
            What::Child(child) => child.maybe_int("claimed").map(|began| (began, self.to)),
            What::Log(_) | What::Signal(..) | What::Missing(_) => None,
        }
    }

    pub fn draw(&self, scale: &Scale, run: &Run) -> Markup {
        match &self.what {
            What::Row(row, attempt) => draw_row(scale, row, *attempt, ""),
            What::Inner(row, attempt) => draw_row(scale, row, *attempt, "inner"),
            What::Output => self.draw_output(run),
            What::Step(step) => {
                let took = span(self.to - self.from);
                let text = html! {
                    "Step " b { (name(&step.name)) } " " span.faint { (took) }
                    @if step.size > 0 { ": " bdi { (value(&step.value, step.size)) } }
                };
                let told = format!("step {}, {took}", shown(&step.name));
                drawn(scale, "step", text, &told, &scale.bar("step", self.from, self.to))
            }
            What::Log(log) => {
                let text = short(headline(log).as_bytes(), TEXT);
                let mark = scale.mark("", self.from, &text);
                drawn(scale, "log", html! { span.faint { "Log " } bdi { (text) } }, "a log line", &mark)
            }
            What::Signal(signal, late) => {
                let text = html! {
                    "Signal " b { (name(&signal.name)) }
                    @if !signal.sender.is_empty() { " from " (name(&signal.sender)) }
                    @if signal.size > 0 { ": " bdi { (value(&signal.value, signal.size)) } }
                    @match late {
                        Late::No => "",
                        Late::Yes => span.faint { " (too late: the wait was over)" },
                        Late::Perhaps(first, more) => span.faint {
                            " (after the time of the wait for " (name(first)) " and " (more) " more was over)"
                        },
                    }
                };
                let told = format!("signal {}", shown(&signal.name));
                drawn(scale, "signal", text, &told, &scale.mark("signal", self.from, &told))
            }
            What::Child(child) => draw_child(scale, run.board, child, self.to),
            What::Missing(signal) => self.draw_missing(scale, run, signal),
        }
    }

    fn draw_output(&self, run: &Run) -> Markup {
        let (end, all) = run.output.end();
        html! {
            li.output {
                p { a href="#output" { "Output" } " " span.faint { (size(all as i64)) } }
                pre tabindex="0" aria-label="The end of its output" { (end) }
            }
        }
    }

    fn draw_missing(&self, scale: &Scale, run: &Run, signal: &[u8]) -> Markup {
        let id = run.record.bytes("id");
        let until = run.record.record("awaits").maybe_int("until");
        let answer = |value: &'static [u8]| {
            address(
                "/confirm",
                &[("b", run.board), ("verb", b"signal"), ("id", &id), ("signal", signal), ("value", value)],
            )
        };
        let text = html! {
            "Waits for " b { (name(signal)) } " " span.faint { (span(self.to - self.from)) }
            @if let Some(until) = until { span.faint { ", until " (at(until)) } }
            @if run.may_signal {
                " " a.button href=(answer(b"true")) { "Approve" span.unseen { " " (name(signal)) } }
                " " a.button href=(answer(b"false")) { "Reject" span.unseen { " " (name(signal)) } }
            }
        };
        let told = format!("waits for the signal {}", shown(signal));
        drawn(scale, "missing", text, &told, &scale.bar("waiting", self.from, self.to))
    }
}

fn drawn(scale: &Scale, class: &str, text: Markup, told: &str, bars: &Markup) -> Markup {
    html! {
        li.(class) {
            p { (text) }
            svg viewBox={ "0 0 " (WIDTH) " 20" } preserveAspectRatio="none" role="img" aria-label=(told) {
                (scale.behind()) (bars) (scale.before())
            }
        }
    }
}

/// The beginning of a value, on one line.
fn value(value: &[u8], size: usize) -> String {
    let text = short(value, TEXT);
    match value.len() < size && !text.ends_with('…') {
        true => text + "…",
        false => text,
    }
}

fn draw_row(scale: &Scale, row: &Row, attempt: i64, place: &str) -> Markup {
    let took = span(row.to - row.from);
    // Attempts are counted anew when a job is requeued or moves to a dead queue.
    let which = if attempt > 0 { format!("Attempt {attempt}") } else { "An earlier attempt".into() };
    let failed = row.end.as_deref().is_some_and(is_bad);
    let (class, told) = match &row.doing {
        Doing::Waiting(_) => ("waiting", format!("waited {took}")),
        Doing::Running(_) if failed => ("running bad", format!("{which}, {took}, failed")),
        Doing::Running(_) => ("running", format!("{which}, {took}")),
    };
    let text = html! {
        @match &row.doing {
            Doing::Waiting(since) => { span.faint { (waits(since, row.end.is_none())) " " (took) } },
            Doing::Running(worker) => {
                b { (which) } " "
                @if !worker.is_empty() { bdi { (worker) } " " }
                span.faint { (took) }
                @match row.end.as_deref() {
                    None => " running",
                    Some(end) => { " → " span.outcome.bad[failed] { (super::event_word(end)) } },
                }
                @if !row.text.is_empty() { span.faint { ": " bdi { (short(headline(&row.text).as_bytes(), 160)) } } }
            },
        }
    };
    let bars = html! {
        (scale.bar(class, row.from, row.to))
        @for (at, text) in &row.logs { (scale.mark("", *at, &short(headline(text).as_bytes(), 200))) }
    };
    drawn(scale, &format!("{class} {place}"), text, &told, &bars)
}

fn is_bad(end: &str) -> bool {
    matches!(end, "failed" | "lapsed" | "timeout" | "expired")
}

/// Why a job waited, or waits.
fn waits(since: &str, is_open: bool) -> &'static str {
    match (since, is_open) {
        ("failed" | "timeout", _) => "Back-off and queue",
        ("awaiting", _) => "Waits for a signal",
        ("children", true) => "Waits for its children",
        ("children", false) => "Its children, and the queue",
        ("signalled", _) => "After a signal",
        ("await-timeout", _) => "After the wait for signals timed out",
        ("lapsed" | "abandoned" | "released" | "requeued" | "advanced", _) => "In the queue again",
        (_, true) => "Waiting for",
        _ => "In the queue",
    }
}

fn draw_child(scale: &Scale, board: &[u8], child: &Record, until: i64) -> Markup {
    let began = child.maybe_int("claimed");
    let now = child.text("state");
    let text = html! {
        "Child " @if child.has("name") { (name(&child.bytes("name"))) " " } (job_link(board, &child.bytes("id"))) " " (state(&now)) " "
        @if let Some(began) = began { span.faint { (span((until - began).max(0))) } }
        @if now == "claimed" && child.has("progress") { " " (crate::pages::jobs::progress(child.float("progress"))) }
    };
    let class = if now == "failed" { "running bad" } else { "running" };
    let bars = html! {
        (scale.bar("waiting", child.int("posted"), began.unwrap_or(until)))
        @if let Some(began) = began { (scale.bar(class, began, until)) }
    };
    let told = format!("child {}, {}", shown(&child.bytes("id")), word(&now));
    drawn(scale, "child", text, &told, &bars)
}

#[cfg(test)]
mod tests {
    use redis::Value;

    use super::super::life::rows;
    use super::*;

    fn entry(at: i64, event: &str, signal: &str) -> Record {
        let bulk = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let pairs = vec![
            (bulk("at"), Value::Int(at)),
            (bulk("event"), bulk(event)),
            (bulk("worker"), bulk("w")),
            (bulk("signal"), bulk(signal)),
        ];
        Record::read(Value::Map(pairs)).unwrap()
    }

    fn step(name: &str, at: i64) -> Step {
        Step { name: name.into(), value: Vec::new(), size: 0, at }
    }

    #[test]
    fn a_step_begins_with_the_one_before_it_or_with_its_attempt() {
        let lived = [
            entry(0, "posted", ""),
            entry(10, "claimed", ""),
            entry(30, "lapsed", ""),
            entry(50, "claimed", ""),
        ];
        let rows = rows(&lived, 90, false);
        let done = [step("a", 15), step("b", 20), step("c", 60), step("d", 60)];
        let spans: Vec<(i64, i64)> = steps(&done, &rows).iter().map(|line| (line.from, line.to)).collect();
        assert_eq!(spans, [(10, 15), (15, 20), (50, 60), (60, 60)]);
        // Of an attempt that the history no longer has.
        let spans: Vec<(i64, i64)> = steps(&done[..1], &[]).iter().map(|line| (line.from, line.to)).collect();
        assert_eq!(spans, [(15, 15)]);
    }

    #[test]
    fn a_signal_is_late_after_the_time_of_its_wait() {
        let signal = |at| Signal { name: b"ok".to_vec(), value: Vec::new(), size: 0, at, sender: Vec::new() };
        let late = |at, lived: &[Record]| lateness(&signal(at), lived);
        let lived = [entry(10, "awaiting", "ok"), entry(20, "await-timeout", "ok")];
        assert_eq!([5, 15, 25].map(|at| late(at, &lived)), [Late::No, Late::No, Late::Yes]);
        let again = [entry(10, "await-timeout", "ok"), entry(20, "awaiting", "ok")];
        assert_eq!(late(25, &again), Late::No);
        assert_eq!(late(25, &[entry(20, "await-timeout", "okay")]), Late::No);
        let several = |signals| {
            let wait = entry(20, "await-timeout", "paid");
            let more = (Value::BulkString(b"signals".to_vec()), Value::Int(signals));
            let pairs = wait.fields().map(|(name, value)| (Value::SimpleString(name.into()), value.clone()));
            Record::read(Value::Map(pairs.chain([more]).collect())).unwrap()
        };
        assert_eq!(late(25, &[several(3)]), Late::Perhaps(b"paid".to_vec(), 2));
        assert_eq!(late(25, &[several(1)]), Late::No);
    }
}
