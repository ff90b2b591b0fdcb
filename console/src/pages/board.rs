//! One board: how it goes, its queues, groups and limits; `work` has the rest.

use futures_util::future::join;
use maud::{html, Markup};

use super::boards::{age, drain};
use super::{attention, work, Part, View};
use crate::app::RequestContext;
use crate::connection::board_command;
use crate::connection::reply::{page, Record};
use crate::failure::Failure;
use crate::format::{board_address, count_link, name, number, paused, rate, size, span, when, STATES};
use crate::names::{address, shown};

/// Rows of one table. A page never has more, whatever there is.
pub const ROWS: usize = 100;

/// Rows of one answer where all are asked for.
const PAGE: usize = 1000;

/// One page of a listing of the server's, from the cursor that the address has under `which`, and where it
/// goes on.
pub async fn rows(
    cx: &RequestContext,
    board: &[u8],
    verb: &str,
    which: &str,
) -> Result<(Option<Vec<u8>>, Vec<Record>), Failure> {
    let mut command = board_command(verb, board);
    if let Some(cursor) = cx.query.bytes(which) {
        command.arg("CURSOR").arg(cursor);
    }
    command.arg("COUNT").arg(ROWS);
    Ok(page(cx.ask(board, command).await?))
}

/// All rows of a listing of the server's, page by page.
pub async fn all_rows(cx: &RequestContext, board: &[u8], verb: &str) -> Result<Vec<Record>, Failure> {
    let (mut rows, mut cursor) = (Vec::new(), b"0".to_vec());
    loop {
        let mut command = board_command(verb, board);
        command.arg("CURSOR").arg(&cursor).arg("COUNT").arg(PAGE);
        let (next, found) = page(cx.ask(board, command).await?);
        rows.extend(found);
        match next {
            Some(next) => cursor = next,
            None => return Ok(rows),
        }
    }
}

pub async fn view(cx: &RequestContext) -> Result<View, Failure> {
    let board = cx.board()?;
    let info = Record::read(cx.ask_shared(&board, board_command("INFO", &board)).await?);
    let info = info.ok_or_else(|| Failure::NotFound("There is no board of that name.".into()))?;
    let (trend, needs) =
        join(super::recent::draw(cx, &board, None, &info), attention::of(cx, &board, &info)).await;
    let needs = html! { h2 { "What needs you" } (attention::draw(&[(&board, needs?)], false)) };
    let parts = vec![
        Part { id: "overview", body: overview(&board, &info) },
        Part { id: "needs", body: needs },
        Part::new("pace", "The last 15 minutes", trend)?,
        Part::new("queues", "Queues", queues(cx, &board).await)?,
        Part::new("groups", "Groups", groups(cx, &board).await)?,
        Part::new("limits", "Limits", limits(cx, &board).await)?,
        Part::new("workers", "Workers", work::workers(cx, &board).await)?,
        Part::new("kinds", "Failures by kind", work::kinds(cx, &board).await)?,
        Part::new("tags", "Tags", work::tags(cx, &board).await)?,
    ];
    let head = html! {
        h1 { "Board " (name(&board)) }
        @if cx.may_write() { (actions(&board)) }
    };
    Ok(View { title: shown(&board), board: Some(board), place: "Board", head, parts })
}

fn actions(board: &[u8]) -> Markup {
    html! {
        p.actions {
            a.button href=(board_address("/post", board)) { "Post a job" }
            a.button href=(address("/confirm", &[("b", board), ("verb", b"pause")])) { "Pause the board" }
            a.button href=(address("/confirm", &[("b", board), ("verb", b"resume")])) { "Resume the board" }
        }
    }
}

fn overview(board: &[u8], info: &Record) -> Markup {
    html! {
        @if info.int("broken") == 1 {
            p.refused role="alert" { "This copy of the board is broken: a change of the replication stream was missing." }
        }
        ul.figures {
            @for state in STATES {
                li { span.figure { (count_link(info.int(state), board, &[("state", state.as_bytes())])) } " " (state) }
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
    }
}

async fn queues(cx: &RequestContext, board: &[u8]) -> Result<Markup, Failure> {
    let mut rows = all_rows(cx, board, "QUEUES").await?;
    let all = rows.len();
    let wanted = cx.query.text("queues").unwrap_or_default().to_lowercase();
    rows.retain(|row| row.text("queue").to_lowercase().contains(&wanted));
    let matching = rows.len();
    rows.truncate(ROWS);
    Ok(html! {
        @if all > ROWS {
            form.filters {
                (super::layout::hidden("b", board))
                label { "Name " input type="search" name="queues" value=(cx.query.text("queues").unwrap_or_default()); }
                button { "Filter" }
            }
            p.note { "The first " (rows.len()) " of " (number(matching as i64)) "." }
        }
        @if all == 0 { p { "None." } } @else {
            div.wide {
                table {
                    caption.unseen { "Queues of the board" }
                    thead {
                        tr {
                            th scope="col" { "Queue" }
                            @for state in STATES { th.number scope="col" { (state) } }
                            @for head in ["at once", "oldest", "in", "out", "empty in"] { th.number scope="col" { (head) } }
                            @if cx.may_write() { th scope="col" { "actions" } }
                        }
                    }
                    tbody { @for row in &rows { (queue_row(cx, board, row)) } }
                }
            }
        }
    })
}

fn queue_row(cx: &RequestContext, board: &[u8], row: &Record) -> Markup {
    let queue = row.bytes("queue");
    let act = |verb: &[u8]| address("/confirm", &[("b", board), ("verb", verb), ("queue", &queue)]);
    html! {
        tr {
            th scope="row" {
                a href=(address("/stats", &[("b", board), ("queue", &queue)])) { (name(&queue)) } " "
                (paused(row.int("paused")))
                @if !row.list("limits").is_empty() { div.faint { "limits " (row.text("limits")) } }
            }
            @for state in STATES {
                td.number { (count_link(row.int(state), board, &[("state", state.as_bytes()), ("queue", &queue)])) }
            }
            td.number { @if row.int("concurrency") < 0 { "any" } @else { (number(row.int("concurrency"))) } }
            td.number { (age(row.int("oldest"))) }
            td.number { (rate(row.float("arrival-rate"))) }
            td.number { (rate(row.float("completion-rate"))) }
            td.number { (drain(row.int("drain"))) }
            @if cx.may_write() {
                td.actions {
                    @if row.int("paused") == 0 { a href=(act(b"pause")) { "pause" } } @else { a href=(act(b"resume")) { "resume" } }
                    " " a href=(address("/settings", &[("b", board), ("queue", &queue)])) { "settings" }
                }
            }
        }
    }
}

async fn groups(cx: &RequestContext, board: &[u8]) -> Result<Markup, Failure> {
    let (next, rows) = rows(cx, board, "GROUPS", "groups").await?;
    Ok(html! {
        @if rows.is_empty() { p { "None." } } @else {
            div.wide {
                table {
                    caption.unseen { "Groups, which take turns in their queues" }
                    thead {
                        tr {
                            th scope="col" { "Group" } th scope="col" { "queue" }
                            @for head in ["ready", "running", "scheduled", "failed", "weight", "at once", "rate"] { th.number scope="col" { (head) } }
                            th scope="col" { "limits" }
                            @if cx.may_write() { th scope="col" { "actions" } }
                        }
                    }
                    tbody { @for row in &rows { (group_row(cx, board, row)) } }
                }
            }
            (next_page(board, "groups", next.as_deref()))
        }
    })
}

fn group_row(cx: &RequestContext, board: &[u8], row: &Record) -> Markup {
    let (queue, group) = (row.bytes("queue"), row.bytes("group"));
    let here = [("b", board), ("queue", queue.as_slice()), ("group", group.as_slice())];
    let act = |verb: &'static [u8]| address("/confirm", &[here[0], here[1], here[2], ("verb", verb)]);
    html! {
        tr {
            th scope="row" { (name(&group)) " " (paused(row.int("paused"))) }
            td { (name(&queue)) }
            @for state in ["ready", "claimed", "scheduled", "failed"] {
                td.number { (count_link(row.int(state), board, &[("state", state.as_bytes()), here[1], here[2]])) }
            }
            td.number { (row.int("weight")) @if row.int("ordered") == 1 { " ordered" } }
            td.number { @if row.int("concurrency") < 0 { "any" } @else { (number(row.int("concurrency"))) } }
            td.number { (tokens(row)) }
            td { (row.text("limits")) }
            @if cx.may_write() {
                td.actions {
                    @if row.int("paused") == 0 { a href=(act(b"pause")) { "pause" } } @else { a href=(act(b"resume")) { "resume" } }
                    " " a href=(address("/settings", &here)) { "settings" }
                }
            }
        }
    }
}

/// A rate of tokens.
fn tokens(row: &Record) -> String {
    if row.int("rate") < 0 {
        "any".into()
    } else {
        format!("{} in {}, burst {}", row.int("rate"), span(row.int("rate-period")), row.int("burst"))
    }
}

async fn limits(cx: &RequestContext, board: &[u8]) -> Result<Markup, Failure> {
    let (next, rows) = rows(cx, board, "LIMITS", "limits").await?;
    Ok(html! {
        @if rows.is_empty() { p { "None." } } @else {
            div.wide {
                table {
                    caption.unseen { "Shared limits" }
                    thead {
                        tr {
                            th scope="col" { "Limit" }
                            @for head in ["queues", "running", "at once", "rate"] { th.number scope="col" { (head) } }
                            th scope="col" { "without tokens until" }
                            @if cx.may_write() { th scope="col" { "actions" } }
                        }
                    }
                    tbody {
                        @for row in &rows {
                            tr {
                                th scope="row" { (name(&row.bytes("limit"))) }
                                td.number { (number(row.int("queues"))) }
                                td.number { (number(row.int("claimed"))) }
                                td.number { @if row.int("concurrency") < 0 { "any" } @else { (number(row.int("concurrency"))) } }
                                td.number { (tokens(row)) }
                                td { @match row.int("dry") { 0 => "", -1 => "for ever", at => (when(at)) } }
                                @if cx.may_write() {
                                    td.actions { a href=(address("/settings", &[("b", board), ("limit", &row.bytes("limit"))])) { "settings" } }
                                }
                            }
                        }
                    }
                }
            }
            (next_page(board, "limits", next.as_deref()))
        }
    })
}

pub fn next_page(board: &[u8], which: &str, cursor: Option<&[u8]>) -> Markup {
    html! {
        @if let Some(cursor) = cursor {
            nav.pages { a href={ (address("/board", &[("b", board), (which, cursor)])) "#" (which) } { "More" } }
        }
    }
}
