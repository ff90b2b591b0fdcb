//! A job along one line of time: waits, attempts with what came of them, log lines, steps, signals, output and
//! children, each where it began; below them the events one by one.

mod life;
mod lines;
mod scale;

use futures_util::future::try_join_all;
use maud::{html, Markup};
use redis::Value;

use self::life::{rows, said};
use self::scale::Scale;
use crate::app::RequestContext;
use crate::connection::board_command;
use crate::connection::reply::{list, records, Record};
use crate::failure::Failure;
use crate::format::{name, now, number, span, when};
use crate::names::{address, lines as text_lines};
use crate::pages::job::{Kept, Output};

/// Children on the line.
const CHILDREN: usize = 25;

/// Waits and attempts on the line; of more the last ones are drawn.
const ROWS: usize = 60;

/// Children of which the attempts are drawn, when they are asked for: the first that a worker has claimed.
const LIVES: usize = 10;

const CHILD_FIELDS: [&str; 9] =
    ["id", "name", "state", "posted", "claimed", "ended", "worker", "progress", "attempt"];

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

/// The histories of these children, where the address asks for them (`children=1`); empty ones of others.
pub async fn lives(
    cx: &RequestContext,
    board: &[u8],
    children: &[Record],
) -> Result<Vec<Vec<Record>>, Failure> {
    if !cx.query.is_set("children") {
        return Ok(Vec::new());
    }
    let claimed = children.iter().filter(|child| child.int("attempt") > 0).take(LIVES);
    let wanted: Vec<Vec<u8>> = claimed.map(|child| child.bytes("id")).collect();
    try_join_all(children.iter().map(|child| async {
        let id = child.bytes("id");
        if !wanted.contains(&id) {
            return Ok(Vec::new());
        }
        let mut command = board_command("HISTORY", board);
        command.arg(&id);
        Ok(records(cx.ask_shared(board, command).await?))
    }))
    .await
}

/// What is known of a job's run.
pub struct Run<'a> {
    pub board: &'a [u8],
    pub record: &'a Record,
    pub entries: &'a [Record],
    pub children: &'a [Record],
    /// Their histories, one each, when the attempts of children are asked for.
    pub lives: &'a [Vec<Record>],
    pub kept: &'a Kept,
    pub output: &'a Output,
    /// Whether the reader may answer signals here.
    pub may_signal: bool,
    /// Whether waits are drawn as long as they were, as the address may ask (`scale=linear`).
    pub is_linear: bool,
}

impl Run<'_> {
    pub fn draw(&self) -> Markup {
        html! {
            (self.line())
            details open[self.entries.len() <= 12] {
                summary { "Each event" }
                (events(self.entries))
            }
        }
    }

    fn line(&self) -> Markup {
        let until = self.record.maybe_int("ended").unwrap_or_else(now);
        let rows = rows(self.entries, until, self.record.has("ended"));
        let skipped = rows.len().saturating_sub(ROWS);
        let inner: Vec<Vec<life::Row>> = self
            .lives
            .iter()
            .zip(self.children)
            .map(|(life, child)| {
                life::rows(life, child.maybe_int("ended").unwrap_or_else(now), child.has("ended"))
            })
            .collect();
        let lines = lines::lines(self, &rows, skipped, &inner);
        let Some(first) = lines.iter().map(|line| line.from).min() else { return html! {} };
        let last = lines.iter().map(|line| line.to).max().unwrap_or(first).max(first);
        let scale =
            if self.is_linear { Scale::linear(first, last) } else { self.folding(first, last, &lines) };
        let children = self.record.int("children");
        html! {
            p.span {
                span { (when(first)) } " " b { (span(last - first)) } " "
                span { @if self.record.has("ended") { (crate::format::at(last)) } @else { "now" } }
            }
            @if skipped > 0 { p.note { (number(skipped as i64)) " earlier waits and attempts are not drawn." } }
            (self.folded(&scale))
            (self.attempts_of_children())
            (scale.axis())
            ol.timeline { @for line in &lines { (line.draw(&scale, self)) } }
            @if children > self.children.len() as i64 && !self.children.is_empty() {
                p.note { "The first " (self.children.len()) " of " (number(children)) " children." }
            }
        }
    }
}

impl Run<'_> {
    fn folding(&self, first: i64, last: i64, lines: &[lines::Line]) -> Scale {
        let busy: Vec<(i64, i64)> = lines.iter().filter_map(lines::Line::busy).collect();
        let moments: Vec<i64> = lines.iter().flat_map(|line| [line.from, line.to]).collect();
        Scale::folding(first, last, &busy, &moments)
    }

    /// This page, drawn in another way.
    fn drawn(&self, is_linear: bool, with_attempts: bool) -> String {
        let id = self.record.bytes("id");
        let mut query = vec![("b", self.board), ("id", &id)];
        query.extend(is_linear.then_some(("scale", &b"linear"[..])));
        query.extend(with_attempts.then_some(("children", &b"1"[..])));
        address("/job", &query) + "#history"
    }

    fn attempts_of_children(&self) -> Markup {
        let claimed = self.children.iter().filter(|child| child.int("attempt") > 0).count();
        html! {
            @if !self.lives.is_empty() {
                p.note {
                    @if claimed > LIVES { "With the attempts of the first " (LIVES) " children. " }
                    a href=(self.drawn(self.is_linear, false)) { "Hide the attempts of children" }
                }
            } @else if claimed > 0 {
                p.note { a href=(self.drawn(self.is_linear, true)) { "Show the attempts of children" } }
            }
        }
    }

    /// What is folded, in words, and the way to the other scale.
    fn folded(&self, scale: &Scale) -> Markup {
        let to = |is_linear| self.drawn(is_linear, !self.lives.is_empty());
        html! {
            @if scale.is_folded() {
                p.note { "Folded, as nothing ran: " (scale.lengths()) ". " a href=(to(true)) { "Show waits as long as they were" } }
            } @else if self.is_linear {
                p.note { "Waits are as long as they were. " a href=(to(false)) { "Fold long waits" } }
            }
        }
    }
}

/// An event, as pages say it.
pub fn event_word(event: &str) -> &str {
    match event {
        "complete" => "done",
        "signalled" => "signal",
        "awaiting" => "waits for",
        "await-timeout" => "waited too long for",
        other => other,
    }
}

fn events(entries: &[Record]) -> Markup {
    html! {
        ol.history {
            @for (number, entry) in entries.iter().enumerate() {
                @let text = said(entry);
                li {
                    span.at {
                        (when(entry.int("at")))
                        @if number > 0 { span.faint { " +" (span((entry.int("at") - entries[number - 1].int("at")).max(0))) } }
                    }
                    " " b { (event_word(&entry.text("event"))) }
                    @if entry.has("worker") { " " (name(&entry.bytes("worker"))) }
                    @if !text.is_empty() { ": " bdi.lines { (text_lines(&text)) } }
                    @if entry.has("final") { span.faint { " (final)" } }
                }
            }
        }
    }
}
