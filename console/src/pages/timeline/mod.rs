//! A job along one line of time: waits, attempts with what came of them, log lines, steps, signals, output and
//! children, each where it began; below them the events one by one.

mod life;
mod lines;

use maud::{html, Markup};
use redis::Value;

use self::life::{rows, said};
use crate::app::RequestContext;
use crate::connection::board_command;
use crate::connection::reply::{list, records, Record};
use crate::failure::Failure;
use crate::format::{name, now, number, span, when};
use crate::names::lines as text_lines;
use crate::pages::job::{Kept, Output};

/// The width of a bar in its own units; the page stretches it.
const WIDTH: f64 = 1000.0;

/// Nothing is drawn narrower than this.
const THIN: f64 = 3.0;

/// Children on the line.
const CHILDREN: usize = 25;

/// Waits and attempts on the line; of more the last ones are drawn.
const ROWS: usize = 60;

const CHILD_FIELDS: [&str; 8] = ["id", "name", "state", "posted", "claimed", "ended", "worker", "progress"];

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

/// What is known of a job's run.
pub struct Run<'a> {
    pub board: &'a [u8],
    pub record: &'a Record,
    pub entries: &'a [Record],
    pub children: &'a [Record],
    pub kept: &'a Kept,
    pub output: &'a Output,
    /// Whether the reader may answer signals here.
    pub may_signal: bool,
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
        let lines = lines::lines(self, &rows, skipped);
        let Some(first) = lines.iter().map(|line| line.from).min() else { return html! {} };
        let last = lines.iter().map(|line| line.to).max().unwrap_or(first).max(first);
        let scale = Scale { first, last };
        let children = self.record.int("children");
        html! {
            p.span {
                span { (when(first)) } " " b { (span(last - first)) } " "
                span { @if self.record.has("ended") { (crate::format::at(last)) } @else { "now" } }
            }
            @if skipped > 0 { p.note { (number(skipped as i64)) " earlier waits and attempts are not drawn." } }
            ol.timeline { @for line in &lines { (line.draw(scale, self)) } }
            @if children > self.children.len() as i64 && !self.children.is_empty() {
                p.note { "The first " (self.children.len()) " of " (number(children)) " children." }
            }
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

    /// A moment.
    fn mark(self, class: &str, at: i64, title: &str) -> Markup {
        let x = self.x(at).min(WIDTH - THIN);
        html! { rect class={ "mark " (class) } x=(x) y="0" width=(THIN) height="20" { title { (title) } } }
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
                    " " b { (entry.text("event")) }
                    @if entry.has("worker") { " " (name(&entry.bytes("worker"))) }
                    @if !text.is_empty() { ": " bdi.lines { (text_lines(&text)) } }
                    @if entry.has("final") { span.faint { " (final)" } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_outside_is_drawn_at_the_edge() {
        let scale = Scale { first: 5, last: 5 };
        assert!((0.0..=WIDTH).contains(&scale.x(-100)) && (0.0..=WIDTH).contains(&scale.x(100)));
    }
}
