//! The types of jobs, by name: of the newest jobs that are kept, how many failed, how long they waited and
//! ran. The server counts by queue, not by name; this is a sample, and says so.

use std::collections::BTreeMap;

use maud::{html, Markup};

use super::board::ROWS;
use super::{Part, View};
use crate::app::RequestContext;
use crate::connection::board_command;
use crate::connection::reply::{page, Record};
use crate::failure::Failure;
use crate::format::{count_link, jobs_address, name, number, span};
use crate::names::shown;

/// Jobs of each state that are looked at.
const LOOK: usize = 500;

const FIELDS: [&str; 7] = ["name", "posted", "due", "claimed", "ended", "attempt", "state"];

#[derive(Default)]
struct Type {
    done: i64,
    failed: i64,
    running: i64,
    ready: i64,
    waits: Vec<i64>,
    runs: Vec<i64>,
    /// The oldest and newest end.
    ended: Option<(i64, i64)>,
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
    for state in ["complete", "failed", "claimed", "ready"] {
        let mut command = board_command("LIST", board);
        command.arg("STATE").arg(state).arg("REV").arg("COUNT").arg(LOOK);
        command.arg("FIELDS").arg(FIELDS.len()).arg(&FIELDS);
        for row in page(cx.ask_shared(board, command).await?).1 {
            types.entry(row.bytes("name")).or_default().add(state, &row);
        }
    }
    let mut types: Vec<(Vec<u8>, Type)> = types.into_iter().collect();
    types.sort_by_key(|(_, one)| std::cmp::Reverse(one.done + one.failed + one.running + one.ready));
    types.truncate(ROWS);
    Ok(html! {
        p.note {
            "Of the newest " (number(LOOK as i64)) " jobs in each of the states complete, failed, running and ready that are kept. "
            "Exact numbers are kept by queue: see Statistics. Complete jobs are kept as long as the setting retain-complete says."
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
                    tbody { @for (word, one) in &mut types { (table_row(board, word, one)) } }
                }
            }
        }
    })
}

const HEADS: [&str; 9] =
    ["ready", "running", "done", "failed", "done a minute", "wait 50 %", "wait 95 %", "run 50 %", "run 95 %"];

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
            let (first, last) = self.ended.unwrap_or((ended, ended));
            self.ended = Some((first.min(ended), last.max(ended)));
        }
    }

    /// Jobs done a minute, over the time in which they ended.
    fn pace(&self) -> Option<f64> {
        let (first, last) = self.ended?;
        (self.done > 1 && last > first).then(|| self.done as f64 * 60_000.0 / (last - first) as f64)
    }
}

/// So many percent of the values are no larger.
fn percentile(values: &mut [i64], percent: usize) -> Option<i64> {
    values.sort_unstable();
    values.get((values.len() * percent).div_ceil(100).checked_sub(1)?).copied()
}

fn table_row(board: &[u8], word: &[u8], one: &mut Type) -> Markup {
    let time = |values: &mut [i64], percent| percentile(values, percent).map_or("–".into(), span);
    let named = |state: &'static str, count| match word {
        [] => html! { (number(count)) },
        _ => count_link(count, board, &[("state", state.as_bytes()), ("name", word)]),
    };
    let pace = super::boards::per_minute(one.pace());
    let cells = [
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
    fn percentiles_are_values() {
        assert_eq!(percentile(&mut [], 50), None);
        assert_eq!(percentile(&mut [7], 95), Some(7));
        assert_eq!([50, 95].map(|percent| percentile(&mut [4, 1, 3, 2], percent)), [Some(2), Some(4)]);
    }
}
