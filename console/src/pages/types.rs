//! The types of jobs, by name: a sample of the newest jobs says how many failed, how long they waited and ran.
//! The server counts what is done by queue, not by name; the page says so.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use maud::{html, Markup};

use super::board::ROWS;
use super::{Part, View};
use crate::app::RequestContext;
use crate::connection::board_command;
use crate::connection::reply::{int, page, Record};
use crate::failure::Failure;
use crate::format::{count_link, jobs_address, name, now, number, span};
use crate::names::shown;

/// Jobs of each state that are looked at.
const LOOK: usize = 500;

/// ms.
const MINUTE: i64 = 60_000;

const FIELDS: [&str; 7] = ["name", "posted", "due", "claimed", "ended", "attempt", "state"];

/// What the sample has of the jobs in one state.
#[derive(Debug, PartialEq)]
struct Cover {
    state: &'static str,
    jobs: usize,
    /// When it begins, unless it has all of them.
    since: Option<i64>,
}

impl Cover {
    fn of(state: &'static str, rows: &[Record], is_whole: bool) -> Self {
        let field = match state {
            "complete" | "failed" => "ended",
            "claimed" => "claimed",
            _ => "posted",
        };
        let oldest = rows.iter().map(|row| row.int(field)).min();
        Self { state, jobs: rows.len(), since: oldest.filter(|_| !is_whole) }
    }

    fn draw(&self) -> Markup {
        let state = crate::format::word(self.state);
        html! {
            @match self.since {
                None => { "all " (number(self.jobs as i64)) " " (state) },
                Some(since) => { (number(self.jobs as i64)) " " (state) " since " (crate::format::at(since)) },
            }
        }
    }
}

#[derive(Default)]
struct Type {
    done: i64,
    failed: i64,
    running: i64,
    ready: i64,
    waits: Vec<i64>,
    runs: Vec<i64>,
    /// When the complete ones ended.
    ended: Vec<i64>,
    /// All jobs of this name, whatever their state.
    all: Option<i64>,
}

pub async fn view(cx: &RequestContext) -> Result<View, Failure> {
    let board = cx.board()?;
    let body = list(cx, &board).await;
    Ok(View {
        title: format!("Job types of {}", shown(&board)),
        head: html! { h1 { "Job types of " (name(&board)) } },
        place: "Types",
        parts: vec![Part::new("types", "", body)?],
        board: Some(board),
    })
}

async fn list(cx: &RequestContext, board: &[u8]) -> Result<Markup, Failure> {
    let mut types: BTreeMap<Vec<u8>, Type> = BTreeMap::new();
    // Of done jobs, the end of the oldest one in a sample that is not whole.
    let mut from = 0;
    let mut covered = Vec::new();
    for state in ["complete", "failed", "claimed", "ready"] {
        let mut command = board_command("LIST", board);
        command.arg("STATE").arg(state).arg("REV").arg("COUNT").arg(LOOK);
        command.arg("FIELDS").arg(FIELDS.len()).arg(&FIELDS);
        let (next, rows) = page(cx.ask_shared(board, command).await?);
        let cover = Cover::of(state, &rows, next.is_none());
        if state == "complete" {
            from = cover.since.unwrap_or(0);
        }
        covered.push(cover);
        for row in rows {
            types.entry(row.bytes("name")).or_default().add(state, &row);
        }
    }
    let mut types: Vec<(Vec<u8>, Type)> = types.into_iter().collect();
    types.sort_by_key(|(_, one)| std::cmp::Reverse(one.done + one.failed + one.running + one.ready));
    types.truncate(ROWS);
    let counts = join_all(types.iter().map(|(word, _)| all(cx, board, word))).await;
    for ((_, one), count) in types.iter_mut().zip(counts) {
        one.all = count?;
    }
    Ok(html! {
        p.note {
            "A sample: the newest " (number(LOOK as i64)) " jobs in each of the states done, failed, running and ready. It covers "
            @for (number, cover) in covered.iter().enumerate() { @if number > 0 { "; " } (cover.draw()) }
            ". "
            "The column \u{201c}all jobs\u{201d} counts every job of the type that the board keeps. "
            "The server counts what was done by queue: see Statistics. It keeps done jobs for " code { "retain-complete" } "."
        }
        @if types.is_empty() { p { "There is no job." } } @else {
            div.wide {
                table.stacked {
                    caption.unseen { "Types of jobs" }
                    thead {
                        tr {
                            th scope="col" { "Type" }
                            @for head in HEADS { th.number scope="col" { (head) } }
                        }
                    }
                    tbody { @for (word, one) in &mut types { (table_row(board, word, one, from)) } }
                }
            }
        }
    })
}

const HEADS: [&str; 10] = [
    "all jobs",
    "ready",
    "running",
    "done",
    "failed",
    "done a minute",
    "wait 50 %",
    "wait 95 %",
    "run 50 %",
    "run 95 %",
];

/// How many jobs have this name; the server counts names, not jobs without one.
async fn all(cx: &RequestContext, board: &[u8], word: &[u8]) -> Result<Option<i64>, Failure> {
    if word.is_empty() {
        return Ok(None);
    }
    let mut command = board_command("COUNT", board);
    command.arg("NAME").arg(word);
    Ok(int(&cx.ask_shared(board, command).await?))
}

impl Type {
    fn add(&mut self, state: &str, row: &Record) {
        match state {
            "complete" => self.done += 1,
            "failed" => self.failed += 1,
            "claimed" => self.running += 1,
            _ => self.ready += 1,
        }
        if let Some(claimed) = row.maybe_int("claimed").filter(|_| row.int("attempt") == 1) {
            self.waits.push((claimed - row.maybe_int("due").unwrap_or(row.int("posted"))).max(0));
        }
        if let (Some(ended), Some(claimed)) = (row.maybe_int("ended"), row.maybe_int("claimed")) {
            self.runs.push((ended - claimed).max(0));
            if state == "complete" {
                self.ended.push(ended);
            }
        }
    }

    /// Jobs done in the last minute. When the sample begins later than that, as many as in its own time.
    fn pace(&self, from: i64, now: i64) -> Option<f64> {
        let from = from.max(now - MINUTE);
        let done = self.ended.iter().filter(|ended| **ended >= from).count();
        (!self.ended.is_empty() && now > from).then(|| done as f64 * MINUTE as f64 / (now - from) as f64)
    }
}

/// So many percent of the values are no larger.
fn percentile(values: &mut [i64], percent: usize) -> Option<i64> {
    values.sort_unstable();
    values.get((values.len() * percent).div_ceil(100).checked_sub(1)?).copied()
}

fn table_row(board: &[u8], word: &[u8], one: &mut Type, from: i64) -> Markup {
    let time = |values: &mut [i64], percent| percentile(values, percent).map_or("–".into(), span);
    let named = |state: &'static str, count| match word {
        [] => html! { (number(count)) },
        _ => count_link(count, board, &[("state", state.as_bytes()), ("name", word)]),
    };
    let pace = super::boards::per_minute(one.pace(from, now()));
    let all = match one.all {
        Some(count) => count_link(count, board, &[("name", word)]),
        None => html! { "–" },
    };
    let cells = [
        all,
        named("ready", one.ready),
        named("claimed", one.running),
        named("complete", one.done),
        named("failed", one.failed),
        html! { (pace) },
        html! { (time(&mut one.waits, 50)) },
        html! { (time(&mut one.waits, 95)) },
        html! { (time(&mut one.runs, 50)) },
        html! { (time(&mut one.runs, 95)) },
    ];
    html! {
        tr {
            th scope="row" {
                @if word.is_empty() { span.faint { "without a name" } }
                @else { a href=(jobs_address(board, &[("name", word)])) { (name(word)) } }
            }
            @for (head, cell) in HEADS.iter().zip(&cells) { td.number data-label=(head) { (cell) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_is_that_of_the_last_minute_or_of_a_shorter_sample() {
        let one = Type { ended: vec![100_000, 150_000, 160_000], ..Type::default() };
        assert_eq!(one.pace(0, 160_000), Some(3.0));
        assert_eq!(one.pace(0, 200_000), Some(2.0));
        assert_eq!(one.pace(150_000, 170_000), Some(6.0));
        assert_eq!(one.pace(0, 900_000), Some(0.0));
        assert_eq!(Type::default().pace(0, 900_000), None);
    }

    #[test]
    fn percentiles_are_values() {
        assert_eq!(percentile(&mut [], 50), None);
        assert_eq!(percentile(&mut [7], 95), Some(7));
        assert_eq!([50, 95].map(|percent| percentile(&mut [4, 1, 3, 2], percent)), [Some(2), Some(4)]);
    }
}
