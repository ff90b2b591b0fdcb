//! The types of jobs, by name: how many are done and fail a minute, how long they wait and run. The server counts
//! by queue, not by name: `endings` counts what has ended while somebody looks.

use std::collections::HashMap;
use std::time::Instant;

use futures_util::future::{join_all, try_join};
use maud::{html, Markup};

use super::board::ROWS;
use super::boards::per_minute;
use super::{Part, View};
use crate::app::RequestContext;
use crate::chart::{Chart, Line};
use crate::connection::board_command;
use crate::connection::reply::{int, page, Record};
use crate::endings::{Completed, Ending, Read, Summary, Tally, MINUTE};
use crate::failure::Failure;
use crate::format::{board_address, count_link, jobs_address, name, now, number, soon, span};
use crate::names::shown;

/// Jobs that are ready or running and are looked at, the newest of each state.
const LOOK: usize = 500;

/// Jobs that have ended and are read in one look at a state, page by page.
const ENDED: usize = 1000;
const PAGES: usize = 3;

const FIELDS: [&str; 7] = ["id", "name", "posted", "due", "claimed", "ended", "attempt"];

/// A board that keeps its done jobs for less than this shows few of them, ms.
const KEPT: i64 = 10_000;

/// Jobs of one state by name, and whether these are all.
struct Sample {
    names: HashMap<Vec<u8>, i64>,
    whole: bool,
}

/// One type of job.
struct Type {
    ready: i64,
    running: i64,
    ended: Tally,
    /// All jobs of this name that the board keeps, whatever their state.
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
    let key = (cx.session.user.clone(), board.to_vec());
    let (from_done, from_failed) = cx.app.endings.from(&key);
    let earlier = completed(cx, board).await?;
    let ((done, asked), (failed, _)) =
        try_join(ended(cx, board, "complete", from_done), ended(cx, board, "failed", from_failed)).await?;
    let at = now();
    let counted = earlier.map(|(count, _)| count);
    // At the first look and at a new day a comparison begins, with a count from behind the look.
    let after = match counted {
        Some(count) if cx.app.endings.base(&key).is_none_or(|base| count < base) => {
            completed_of(cx.ask(board, board_command("STATS", board)).await?)
        }
        _ => None,
    };
    let before = counted.filter(|_| earlier.is_some_and(|(_, at)| at <= asked));
    let counted = Completed { before, after };
    let seen = cx.app.endings.note(key, at, done, failed, counted);
    let (ready, running) = try_join(sample(cx, board, "ready"), sample(cx, board, "claimed")).await?;
    // What ended before the last 15 minutes has a line as well, so that its jobs are found here.
    let (older, broken) = try_join(sample(cx, board, "complete"), sample(cx, board, "failed")).await?;
    let mut types: HashMap<Vec<u8>, Type> = HashMap::new();
    let named = |word: Vec<u8>, types: &mut HashMap<Vec<u8>, Type>, set: &dyn Fn(&mut Type)| {
        set(types.entry(word).or_insert_with(|| Type {
            ready: 0,
            running: 0,
            ended: Tally::default(),
            all: None,
        }));
    };
    for (word, count) in &ready.names {
        named(word.clone(), &mut types, &|one| one.ready = *count);
    }
    for (word, count) in &running.names {
        named(word.clone(), &mut types, &|one| one.running = *count);
    }
    for word in older.names.keys().chain(broken.names.keys()) {
        named(word.clone(), &mut types, &|_| {});
    }
    for (word, tally) in &seen.types {
        named(word.clone(), &mut types, &|one| one.ended = tally.clone());
    }
    let mut types: Vec<(Vec<u8>, Type)> = types.into_iter().collect();
    let weight = |one: &Type| (one.ended.done + one.ended.failed, one.running + one.ready);
    types.sort_by(|(word, one), (other, two)| weight(two).cmp(&weight(one)).then(word.cmp(other)));
    let found = types.len();
    types.truncate(ROWS);
    let counts = join_all(types.iter().map(|(word, _)| all(cx, board, word))).await;
    for ((_, one), count) in types.iter_mut().zip(counts) {
        one.all = count?;
    }
    let kept = kept(cx, board).await?;
    Ok(html! {
        (reach(board, &seen, at, kept))
        @if found > ROWS { p.note { "The " (ROWS) " busiest of " (number(found as i64)) "." } }
        @if types.is_empty() { p { "No job is ready or running, and none was seen to end." } } @else {
            div.wide {
                table.stacked {
                    caption.unseen { "Types of jobs" }
                    thead {
                        tr {
                            th scope="col" { "Type" }
                            @for head in HEADS { th.number scope="col" { (head) } }
                        }
                    }
                    tbody {
                        @for (word, one) in &types { (table_row(board, word, one, &seen, at, (ready.whole, running.whole))) }
                    }
                }
            }
        }
    })
}

/// What the numbers are about, and what they miss.
fn reach(board: &[u8], seen: &Summary, at: i64, kept: Option<i64>) -> Markup {
    let unseen = seen.done.filter(|(since, done, these)| done > these && at - since > 2000);
    html! {
        p.note {
            "Done and failed jobs, and their times, are those of the last 15 minutes"
            @if seen.covered.0.max(seen.covered.1) >= MINUTE {
                ", as far as they were seen here: done jobs of " (span(seen.covered.0)) ", failed ones of " (span(seen.covered.1))
            }
            ". A failed try that another one follows is not counted. Of ready and running jobs the newest " (number(LOOK as i64))
            " are looked at; all jobs are those that the board keeps."
        }
        @if let Some((since, done, these)) = unseen {
            p.refused #unseen {
                "Of " (number(done)) " jobs done since " (soon(since)) " " (number(these)) " were seen. "
                @match kept {
                    Some(kept) if (0..KEPT).contains(&kept) => {
                        "The server keeps done jobs without a result for " code { "retain-complete" } ", here " (span(kept))
                        ": with 10 s or more all of them are seen. "
                        a href=(board_address("/settings", board)) { "Settings" }
                    },
                    _ => "They end faster than the console reads them, or somebody deletes them.",
                }
            }
        }
    }
}

/// The jobs that have ended so since then, the newest first: so many at most. And when they were asked for.
async fn ended(
    cx: &RequestContext,
    board: &[u8],
    state: &str,
    from: Option<i64>,
) -> Result<(Read, Instant), Failure> {
    let from = from.map_or_else(|| "-15m".to_owned(), |at| at.to_string());
    let (mut rows, mut cursor, mut first) = (Vec::new(), b"0".to_vec(), None);
    let mut pages = 0;
    loop {
        pages += 1;
        let mut command = board_command("LIST", board);
        command.arg("STATE").arg(state).arg("ENDED").arg(&from).arg("+").arg("REV");
        command.arg("CURSOR").arg(&cursor).arg("COUNT").arg(ENDED);
        command.arg("FIELDS").arg(FIELDS.len()).arg(&FIELDS);
        let (reply, asked) = cx.ask_dated(board, command).await?;
        let (next, found) = page(reply);
        rows.extend(found.iter().map(ending));
        let asked = *first.get_or_insert(asked);
        match next {
            Some(next) if pages < PAGES => cursor = next,
            next => return Ok((Read { rows, whole: next.is_none() }, asked)),
        }
    }
}

fn ending(row: &Record) -> Ending {
    let (claimed, ended) = (row.maybe_int("claimed"), row.int("ended"));
    let first = claimed.filter(|_| row.int("attempt") == 1);
    Ending {
        id: row.bytes("id"),
        name: row.bytes("name"),
        ended,
        wait: first.map(|at| (at - row.maybe_int("due").unwrap_or(row.int("posted"))).max(0)),
        run: claimed.map(|at| (ended - at).max(0)),
    }
}

/// How many jobs the server has counted as done today, and when it was asked, for those who may ask.
async fn completed(cx: &RequestContext, board: &[u8]) -> Result<Option<(i64, Instant)>, Failure> {
    match cx.ask_dated(board, board_command("STATS", board)).await {
        Ok((reply, asked)) => Ok(completed_of(reply).map(|count| (count, asked))),
        Err(Failure::NotAllowed(_)) => Ok(None),
        Err(failure) => Err(failure),
    }
}

fn completed_of(stats: redis::Value) -> Option<i64> {
    Record::read(stats).map(|stats| stats.int("completed"))
}

/// How long the board keeps done jobs without a result, ms, for those who may ask.
async fn kept(cx: &RequestContext, board: &[u8]) -> Result<Option<i64>, Failure> {
    let mut command = board_command("SETTINGS GET", board);
    command.arg("retain-complete");
    match cx.ask_shared(board, command).await {
        Ok(reply) => {
            let setting = Record::read(reply).unwrap_or_default();
            Ok(setting.list("retain-complete").first().and_then(int))
        }
        Err(Failure::NotAllowed(_)) => Ok(None),
        Err(failure) => Err(failure),
    }
}

async fn sample(cx: &RequestContext, board: &[u8], state: &str) -> Result<Sample, Failure> {
    let mut command = board_command("LIST", board);
    command.arg("STATE").arg(state).arg("REV").arg("COUNT").arg(LOOK).arg("FIELDS").arg(1).arg("name");
    let (next, rows) = page(cx.ask_shared(board, command).await?);
    let mut names: HashMap<Vec<u8>, i64> = HashMap::new();
    for row in rows {
        *names.entry(row.bytes("name")).or_default() += 1;
    }
    Ok(Sample { names, whole: next.is_none() })
}

const HEADS: [&str; 12] = [
    "all jobs",
    "ready",
    "running",
    "done",
    "failed",
    "failed %",
    "done a minute",
    "15 minutes",
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

/// So many in so long, a minute; of less than ten seconds nothing is said.
fn pace(count: i64, covered: i64) -> Option<f64> {
    (covered >= 10_000).then(|| count as f64 * MINUTE as f64 / covered as f64)
}

/// The share of the jobs that ended and failed, when both counts are about the same time.
fn share(one: &Tally, covered: (i64, i64)) -> Option<String> {
    let (done, failed) =
        (pace(one.done, covered.0).unwrap_or(0.0), pace(one.failed, covered.1).unwrap_or(0.0));
    let both = done + failed;
    (both > 0.0).then(|| match failed / both * 100.0 {
        share if share > 0.0 && share < 0.95 => format!("{share:.1} %"),
        share => format!("{share:.0} %"),
    })
}

fn table_row(
    board: &[u8],
    word: &[u8],
    one: &Type,
    seen: &Summary,
    at: i64,
    (all_ready, all_running): (bool, bool),
) -> Markup {
    let time = |ms: Option<i64>| ms.map_or("–".into(), span);
    let named = |fields: &[(&str, &[u8])], count| match word {
        [] if count == 0 => html! { span.faint.none { "0" } },
        [] => html! { (number(count)) },
        _ => count_link(count, board, &[fields, &[("name", word)]].concat()),
    };
    let sampled = |state: &'static str, count: i64, whole: bool| {
        html! {
            @if !whole && count == 0 { span.faint { "–" } } @else {
                @if !whole { "≥ " } (named(&[("state", state.as_bytes())], count))
            }
        }
    };
    let ended = &one.ended;
    let all = match one.all {
        Some(count) => count_link(count, board, &[("name", word)]),
        None => html! { "–" },
    };
    let cells = [
        all,
        sampled("ready", one.ready, all_ready),
        sampled("claimed", one.running, all_running),
        html! { @if ended.done == 0 { span.faint.none { "0" } } @else { (number(ended.done)) } },
        named(&[("state", b"failed"), ("since", b"15m")], ended.failed),
        html! { (share(ended, seen.covered).unwrap_or("–".into())) },
        html! { (per_minute(pace(ended.done, seen.covered.0))) },
        course(ended, &seen.known, at),
        html! { (time(ended.wait.percentile(50))) },
        html! { (time(ended.wait.percentile(95))) },
        html! { (time(ended.run.percentile(50))) },
        html! { (time(ended.run.percentile(95))) },
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

/// Done and failed, minute by minute; a minute that nobody read has no value.
fn course(one: &Tally, known: &[(bool, bool)], at: i64) -> Markup {
    let first = at.div_euclid(MINUTE) + 1 - one.course.len() as i64;
    let line = |label, value: fn(&(i64, i64)) -> i64, is_known: fn(&(bool, bool)) -> bool| {
        let point = |(minute, (counts, known))| {
            ((first + minute as i64) * MINUTE, is_known(known).then(|| value(counts) as f64))
        };
        Line { label, points: one.course.iter().zip(known).enumerate().map(point).collect() }
    };
    let lines = vec![
        line("done", |counts| counts.0, |known| known.0),
        line("failed", |counts| counts.1, |known| known.1),
    ];
    html! { @if !one.course.is_empty() { (Chart { title: "Done and failed a minute", lines, ms: false }.spark()) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_paces() {
        let one = |done, failed| Tally { done, failed, ..Tally::default() };
        let shares = [
            (one(90, 10), (60_000, 60_000)),
            (one(10, 10), (60_000, 600_000)),
            (one(999, 1), (60_000, 60_000)),
        ]
        .map(|(one, covered)| share(&one, covered).unwrap());
        assert_eq!(shares, ["10 %", "9 %", "0.1 %"]);
        assert_eq!(share(&one(0, 0), (60_000, 60_000)), None);
        assert_eq!(pace(30, 900_000), Some(2.0));
        assert_eq!(pace(30, 9_000), None);
    }
}
