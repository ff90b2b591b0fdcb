//! One board: queues, groups, workers, failures, limits, and how it goes.

use futures_util::future::join;
use maud::{html, Markup};
use redis::Value;

use super::boards::{age, drain};
use super::{Part, View};
use crate::app::Cx;
use crate::chart::{Chart, Line};
use crate::failure::Failure;
use crate::link::board_command;
use crate::names::{address, shown};
use crate::reply::{page, records, Record};
use crate::show::{
    board_address, count_link, name, now, number, paused, rate, size, soon, span, when, STATES,
};
use crate::trends::Point;

/// Rows of one table. A page never has more, whatever there is.
const ROWS: usize = 100;

pub async fn view(cx: &Cx) -> Result<View, Failure> {
    let board = cx.board()?;
    let info = Record::read(cx.ask(&board, board_command("INFO", &board)).await?);
    let info = info.ok_or_else(|| Failure::NotFound("There is no board of that name.".into()))?;
    let trend = trend(cx, &board, &info).await;
    let parts = vec![
        Part { id: "overview", body: overview(&board, &info) },
        Part::new("pace", "The last 15 minutes", trend)?,
        Part::new("queues", "Queues", queues(cx, &board).await)?,
        Part::new("groups", "Groups", groups(cx, &board).await)?,
        Part::new("limits", "Limits", limits(cx, &board).await)?,
        Part::new("workers", "Workers", workers(cx, &board).await)?,
        Part::new("kinds", "Failures by kind", kinds(cx, &board).await)?,
        Part::new("tags", "Tags", tags(cx, &board).await)?,
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
                dt { "Claims" } dd { @if info.int("paused") == 0 { "go on" } @else { (paused(info.int("paused"))) } }
            }
            div {
                dt { "Oldest ready job" } dd { (age(info.int("oldest"))) }
            }
            div {
                dt { "In, out" } dd { (rate(info.float("arrival-rate"))) ", " (rate(info.float("completion-rate"))) }
            }
            div {
                dt { "None ready in" } dd { (drain(info.int("drain"))) }
            }
            div {
                dt { "Next timed event" } dd { @if info.int("next") < 0 { "none" } @else { "in " (span(info.int("next"))) } }
            }
            div {
                dt { "Schedules" } dd { a href=(board_address("/schedules", board)) { (number(info.int("schedules"))) } }
            }
            div {
                dt { "Time is late by" } dd {
                    "leases " (span(info.int("lease-lateness-p99"))) ", delays " (span(info.int("due-lateness-p99")))
                    ", schedules " (span(info.int("fire-lateness-p99"))) span.faint { " (99 %, today)" }
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

async fn trend(cx: &Cx, board: &[u8], info: &Record) -> Result<Markup, Failure> {
    let stats = cx.ask(board, board_command("STATS", board)).await?;
    let seen = (cx.session.user.clone(), board.to_vec(), None);
    let points = cx.app.trends.note(seen, now(), info.int("ready"), info.int("claimed"), &stats);
    Ok(plots(&points))
}

fn plots(points: &[Point]) -> Markup {
    let chart = |title, lines, ms| Chart { title, lines, ms }.draw();
    let counts = vec![
        line("ready", points, |point| Some(point.ready as f64)),
        line("running", points, |point| Some(point.claimed as f64)),
    ];
    html! {
        @if points.len() < 2 { p.note { "Plots grow while this page is open." } }
        div.charts {
            (chart("Jobs", counts, false))
            (chart("Wait before a claim, of the minute before", percentiles(points, |point| point.wait), true))
            (chart("Run, of the minute before", percentiles(points, |point| point.run), true))
        }
    }
}

fn line(label: &'static str, points: &[Point], value: impl Fn(&Point) -> Option<f64>) -> Line {
    Line { label, points: points.iter().map(|point| (point.at, value(point))).collect() }
}

fn percentiles(points: &[Point], of: fn(&Point) -> [Option<f64>; 3]) -> Vec<Line> {
    let labels = ["50 %", "95 %", "99 %"].into_iter().enumerate();
    labels.map(|(at, label)| line(label, points, |point| of(point)[at])).collect()
}

async fn queues(cx: &Cx, board: &[u8]) -> Result<Markup, Failure> {
    let mut rows = records(cx.ask(board, board_command("QUEUES", board)).await?);
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
                            th scope="col" { "limits" }
                            @if cx.may_write() { th scope="col" { "actions" } }
                        }
                    }
                    tbody { @for row in &rows { (queue_row(cx, board, row)) } }
                }
            }
        }
    })
}

fn queue_row(cx: &Cx, board: &[u8], row: &Record) -> Markup {
    let queue = row.bytes("queue");
    let act = |verb: &[u8]| address("/confirm", &[("b", board), ("verb", verb), ("queue", &queue)]);
    html! {
        tr {
            th scope="row" {
                a href=(address("/stats", &[("b", board), ("queue", &queue)])) { (name(&queue)) } " "
                (paused(row.int("paused")))
            }
            @for state in STATES {
                td.number { (count_link(row.int(state), board, &[("state", state.as_bytes()), ("queue", &queue)])) }
            }
            td.number { @if row.int("concurrency") < 0 { "any" } @else { (number(row.int("concurrency"))) } }
            td.number { (age(row.int("oldest"))) }
            td.number { (rate(row.float("arrival-rate"))) }
            td.number { (rate(row.float("completion-rate"))) }
            td.number { (drain(row.int("drain"))) }
            td { (row.text("limits")) }
            @if cx.may_write() {
                td.actions {
                    @if row.int("paused") == 0 { a href=(act(b"pause")) { "pause" } } @else { a href=(act(b"resume")) { "resume" } }
                    " " a href=(address("/settings", &[("b", board), ("queue", &queue)])) { "settings" }
                }
            }
        }
    }
}

async fn groups(cx: &Cx, board: &[u8]) -> Result<Markup, Failure> {
    let mut command = board_command("GROUPS", board);
    if let Some(cursor) = cx.query.bytes("groups") {
        command.arg("CURSOR").arg(cursor);
    }
    command.arg("COUNT").arg(ROWS);
    let (next, rows) = page(cx.ask(board, command).await?);
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

fn group_row(cx: &Cx, board: &[u8], row: &Record) -> Markup {
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

async fn limits(cx: &Cx, board: &[u8]) -> Result<Markup, Failure> {
    let mut command = board_command("LIMITS", board);
    if let Some(cursor) = cx.query.bytes("limits") {
        command.arg("CURSOR").arg(cursor);
    }
    command.arg("COUNT").arg(ROWS);
    let (next, rows) = page(cx.ask(board, command).await?);
    Ok(html! {
        @if rows.is_empty() { p { "None." } } @else {
            div.wide {
                table {
                    caption.unseen { "Named limits" }
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

/// Who is registered, and who holds jobs without being so.
async fn workers(cx: &Cx, board: &[u8]) -> Result<Markup, Failure> {
    let mut list = board_command("WORKER LIST", board);
    if let Some(cursor) = cx.query.bytes("workers") {
        list.arg("CURSOR").arg(cursor);
    }
    list.arg("COUNT").arg(ROWS);
    let (holding, registered) =
        join(cx.ask(board, board_command("WORKERS", board)), cx.ask(board, list)).await;
    let holding = records(holding?);
    let (next, registered) = match registered {
        Ok(reply) => page(reply),
        Err(Failure::NotAllowed(_)) => (None, Vec::new()),
        Err(failure) => return Err(failure),
    };
    let known: std::collections::HashSet<Vec<u8>> =
        registered.iter().map(|row| row.bytes("worker")).collect();
    let unknown: Vec<&Record> = holding.iter().filter(|row| !known.contains(&row.bytes("worker"))).collect();
    let rows: Vec<&Record> = registered.iter().chain(unknown.iter().copied().take(ROWS)).collect();
    Ok(html! {
        @if rows.is_empty() { p { "None holds a job or is registered." } } @else {
            @if unknown.len() > ROWS { p.note { (number(holding.len() as i64)) " workers hold jobs; not all are shown." } }
            div.wide {
                table {
                    caption.unseen { "Workers" }
                    thead {
                        tr {
                            th scope="col" { "Worker" } th scope="col" { "role" } th scope="col" { "meta" }
                            th.number scope="col" { "running" } th.number scope="col" { "last heard" }
                            th.number scope="col" { "lost leases" } th scope="col" { "registered until" }
                        }
                    }
                    tbody {
                        @for row in rows {
                            tr {
                                th scope="row" { (name(&row.bytes("worker"))) @if row.int("quiet") == 1 { " " span.badge.paused { "quiet" } } }
                                td { (row.text("role")) }
                                td { (meta(row.get("meta"))) }
                                td.number { (count_link(row.int("claimed"), board, &[("worker", &row.bytes("worker"))])) }
                                td.number { (age(row.maybe_int("active").unwrap_or(-1))) }
                                td.number { @if row.has("lapsed") { (number(row.int("lapsed"))) } }
                                td { (registration(row)) }
                            }
                        }
                    }
                }
            }
            (next_page(board, "workers", next.as_deref()))
        }
    })
}

fn registration(row: &Record) -> Markup {
    html! {
        @if !row.has("registered") { span.faint { "not registered" } }
        @else if row.int("session") == 1 { "its connection closes" }
        @else if row.int("expires") < 0 { "it deregisters" }
        @else { (soon(row.int("expires"))) }
    }
}

pub fn meta(value: Option<&Value>) -> Markup {
    let pairs = value.cloned().and_then(Record::read).unwrap_or_default();
    html! {
        @for (number, (field, value)) in pairs.fields().enumerate() {
            @if number > 0 { ", " }
            bdi { (field) ": " (crate::reply::text(value)) }
        }
    }
}

async fn kinds(cx: &Cx, board: &[u8]) -> Result<Markup, Failure> {
    let reply = cx.ask(board, board_command("KINDS", board)).await?;
    let mut kinds = match reply {
        Value::Map(pairs) => pairs,
        _ => Vec::new(),
    };
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(crate::reply::int(count)));
    let all = kinds.len();
    kinds.truncate(ROWS);
    Ok(html! {
        @if kinds.is_empty() { p { "No failed job is kept." } } @else {
            @if all > ROWS { p.note { "The " (ROWS) " most frequent of " (number(all as i64)) "." } }
            table {
                caption.unseen { "Failed jobs that are kept, by kind" }
                thead { tr { th scope="col" { "Kind" } th.number scope="col" { "failed jobs" } @if cx.may_write() { th scope="col" { "actions" } } } }
                tbody {
                    @for (kind, count) in &kinds {
                        @let kind = crate::reply::bytes(kind);
                        @let filters = [("state", &b"failed"[..]), ("kind", kind.as_slice())];
                        tr {
                            th scope="row" { (name(&kind)) }
                            td.number { (count_link(crate::reply::int(count).unwrap_or(0), board, &filters)) }
                            @if cx.may_write() {
                                td.actions {
                                    a href=(address("/confirm", &[("b", board), ("verb", b"requeue"), ("where", b"1"), filters[0], filters[1]])) { "requeue" }
                                }
                            }
                        }
                    }
                }
            }
        }
    })
}

async fn tags(cx: &Cx, board: &[u8]) -> Result<Markup, Failure> {
    let mut command = board_command("TAGS", board);
    if let Some(cursor) = cx.query.bytes("tags") {
        command.arg("CURSOR").arg(cursor);
    }
    command.arg("COUNT").arg(ROWS);
    let (next, rows) = page(cx.ask(board, command).await?);
    Ok(html! {
        @if rows.is_empty() { p { "None." } } @else {
            ul.tags {
                @for row in &rows {
                    @let tag = row.bytes("tag");
                    li { (name(&tag)) " " (count_link(row.int("jobs"), board, &[("tag", &tag)])) }
                }
            }
            (next_page(board, "tags", next.as_deref()))
        }
    })
}

fn next_page(board: &[u8], which: &str, cursor: Option<&[u8]>) -> Markup {
    html! {
        @if let Some(cursor) = cursor {
            nav.pages { a href={ (address("/board", &[("b", board), (which, cursor)])) "#" (which) } { "More" } }
        }
    }
}
