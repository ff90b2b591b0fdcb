//! One board: how it goes, what needs a person, its queues, kinds of failure and tags.

use futures_util::future::join;
use maud::{html, Markup};

use super::boards::{age, drain};
use super::{attention, days, queues, work, Memory, Part, View};
use crate::app::RequestContext;
use crate::connection::board_command;
use crate::connection::reply::{page, Record};
use crate::failure::Failure;
use crate::format::{board_address, count_link, name, number, paused, rate, size, span, word, STATES};
use crate::names::{address, shown};

/// Rows of one table. A page never has more, whatever there is.
pub const ROWS: usize = 100;

/// Rows of one answer where all are asked for.
const PAGE: usize = 1000;

/// One page of a listing of the server's with these options, from the cursor that the address has under `which`,
/// and where it goes on.
pub async fn rows(
    cx: &RequestContext,
    board: &[u8],
    verb: &str,
    words: &[&[u8]],
    which: &str,
) -> Result<(Option<Vec<u8>>, Vec<Record>), Failure> {
    at_most(cx, board, verb, words, which, ROWS).await
}

/// The same with another number of rows.
pub async fn at_most(
    cx: &RequestContext,
    board: &[u8],
    verb: &str,
    words: &[&[u8]],
    which: &str,
    most: usize,
) -> Result<(Option<Vec<u8>>, Vec<Record>), Failure> {
    let mut cursor = cx.query.bytes(which).unwrap_or(b"0").to_vec();
    let mut rows = Vec::new();
    loop {
        let mut command = board_command(verb, board);
        command.arg(words).arg("CURSOR").arg(&cursor).arg("COUNT").arg(most - rows.len());
        let (next, found) = page(cx.ask_shared(board, command).await?);
        rows.extend(found);
        match next {
            // The server ends a page early when it has many bytes.
            Some(next) if rows.len() < most => cursor = next,
            next => return Ok((next, rows)),
        }
    }
}

/// All rows of a listing of the server's, page by page.
pub async fn all_rows(cx: &RequestContext, board: &[u8], verb: &str) -> Result<Vec<Record>, Failure> {
    let (mut rows, mut cursor) = (Vec::new(), b"0".to_vec());
    loop {
        let mut command = board_command(verb, board);
        command.arg("CURSOR").arg(&cursor).arg("COUNT").arg(PAGE);
        let (next, found) = page(cx.ask_shared(board, command).await?);
        rows.extend(found);
        match next {
            Some(next) => cursor = next,
            None => return Ok(rows),
        }
    }
}

pub async fn view(cx: &RequestContext, memory: &mut Memory) -> Result<View, Failure> {
    let board = cx.board()?;
    let info = Record::read(cx.ask_shared(&board, board_command("INFO", &board)).await?);
    let info = info.ok_or_else(|| Failure::NotFound("There is no board of that name.".into()))?;
    let (trend, needs) =
        join(super::recent::draw(cx, &board, None, &info), attention::of(cx, &board, &info)).await;
    let needs = html! { h2 { "What needs you" } (attention::draw(cx, &[(&board, needs?)], false)) };
    let mut parts = vec![
        Part { id: "overview", body: overview(cx, &board, &info) },
        Part { id: "needs", body: needs },
        Part::new("pace", "The last 15 minutes", trend)?,
        Part::new("queues", "Queues", queues::some(cx, &board).await)?,
        Part::new("kinds", "Failures by kind", work::kinds(cx, &board).await)?,
        Part::new("tags", "Tags", work::tags(cx, &board).await)?,
    ];
    if !memory.told {
        parts.extend(days::part(cx, &[&board]).await?);
    }
    memory.told = true;
    if let Some(day) = super::recent::day(cx, &board) {
        parts.insert(3, Part { id: "day", body: html! { h2 { "The last day" } (day) } });
    }
    let head = html! { h1 { "Board " (name(&board)) } };
    Ok(View { title: shown(&board), board: Some(board), place: "Board", head, parts })
}

/// What may be done to the board as it is now.
fn actions(board: &[u8], info: &Record) -> Markup {
    html! {
        p.actions {
            a.button href=(board_address("/post", board)) { "Post a job" }
            @if info.int("paused") == 0 {
                a.button href=(address("/confirm", &[("b", board), ("verb", b"pause")])) { "Pause the board" }
            } @else {
                a.button href=(address("/confirm", &[("b", board), ("verb", b"resume")])) { "Resume the board" }
            }
        }
    }
}

fn overview(cx: &RequestContext, board: &[u8], info: &Record) -> Markup {
    html! {
        @if info.int("broken") == 1 {
            p.refused role="alert" { "This copy of the board is broken: a change of the replication stream was missing." }
        }
        ul.figures {
            @for state in STATES {
                li { span.figure { (count_link(info.int(state), board, &[("state", state.as_bytes())])) } " " (word(state)) }
            }
        }
        dl.facts.overview {
            div {
                dt { "Paused" } dd { @if info.int("paused") == 0 { "Not paused" } @else { (paused(info.int("paused"))) } }
            }
            div {
                dt { "Oldest ready job" } dd { (age(info.int("oldest"))) }
            }
            div {
                dt { "In, out" } dd { (rate(info.float("arrival-rate"))) ", " (rate(info.float("completion-rate"))) }
            }
            div {
                dt { "Empties in" } dd { (drain(info.int("drain"))) }
            }
            div {
                dt { "Next timed event" } dd { @if info.int("next") < 0 { "none" } @else { "in " (span(info.int("next"))) } }
            }
            @if info.int("blocked-posts") > 0 {
                div {
                    dt { "Posts that wait for room" }
                    dd { (number(info.int("blocked-posts"))) span.faint { ", " (size(info.int("blocked-post-bytes"))) } }
                }
            }
            div {
                dt { "Workers" } dd { a href=(board_address("/workers", board)) { (number(info.int("workers"))) " with jobs" } }
            }
            div {
                dt { "Schedules" } dd { a href=(board_address("/schedules", board)) { (number(info.int("schedules"))) } }
            }
            div {
                dt { "Timer lag (p99)" } dd {
                    "leases " (span(info.int("lease-lateness-p99"))) ", delays " (span(info.int("due-lateness-p99")))
                    ", schedules " (span(info.int("fire-lateness-p99"))) span.faint { " (today)" }
                }
            }
            div {
                dt { "Memory" } dd { (size(info.int("bytes"))) span.faint { ", records " (size(info.int("record-bytes"))) } }
            }
            div {
                dt { "Revision" } dd { (number(info.int("revision"))) }
            }
        }
        @if cx.may_write() { (actions(board, info)) }
    }
}

pub fn next_page(path: &str, board: &[u8], which: &str, cursor: Option<&[u8]>) -> Markup {
    html! {
        @if let Some(cursor) = cursor {
            nav.pages { a href={ (address(path, &[("b", board), (which, cursor)])) "#" (which) } { "More" } }
        }
    }
}
