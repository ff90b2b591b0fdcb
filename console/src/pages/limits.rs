//! Shared limits and groups: what each allows, uses and holds back.

use std::collections::HashMap;

use futures_util::future::join;
use maud::{html, Markup};

use super::attention::queue_rows;
use super::board::{next_page, rows};
use super::{Part, View};
use crate::app::RequestContext;
use crate::connection::reply::{bytes, Record};
use crate::failure::Failure;
use crate::format::{count_link, jobs_address, name, number, paused, span, when, word};
use crate::names::{address, shown};

pub async fn view(cx: &RequestContext) -> Result<View, Failure> {
    let board = cx.board()?;
    let (limits, groups) = join(limits(cx, &board), groups(cx, &board)).await;
    Ok(View {
        title: format!("Limits of {}", shown(&board)),
        head: html! { h1 { "Limits and groups of " (name(&board)) } },
        place: "Limits",
        parts: vec![Part::new("limits", "Shared limits", limits)?, Part::new("groups", "Groups", groups)?],
        board: Some(board),
    })
}

/// The queues that name each limit, with ready jobs, and how many these are.
#[derive(Default)]
struct Waiting {
    queues: Vec<Vec<u8>>,
    ready: i64,
    /// Further queues with ready jobs were not looked at.
    cut: bool,
}

/// Queues whose jobs a link to what waits names.
const LINKED: usize = 50;

/// What waits behind each limit, as far as queues name limits for themselves.
async fn waiting(cx: &RequestContext, board: &[u8]) -> HashMap<Vec<u8>, Waiting> {
    let mut found: HashMap<Vec<u8>, Waiting> = HashMap::new();
    let looked = queue_rows(cx, board).await.unwrap_or_default();
    for row in looked.rows.iter().filter(|row| row.int("ready") > 0) {
        for limit in row.list("limits") {
            let waiting = found.entry(bytes(&limit)).or_default();
            waiting.ready += row.int("ready");
            waiting.cut = !looked.all_ready;
            waiting.queues.push(row.bytes("queue"));
        }
    }
    found
}

impl Waiting {
    fn draw(&self, board: &[u8]) -> Markup {
        let queues = self.queues.iter().map(|queue| ("queue", queue.as_slice()));
        let filters: Vec<(&str, &[u8])> = std::iter::once(("state", &b"ready"[..])).chain(queues).collect();
        let text = html! { @if self.cut { "at least " } (number(self.ready)) @if self.ready == 1 { " ready job" } @else { " ready jobs" } };
        html! {
            @if self.queues.len() > LINKED { (text) } @else { a href=(jobs_address(board, &filters)) { (text) } }
            ": "
        }
    }
}

/// What a limit that gives nothing now holds back, and why.
fn held_back(board: &[u8], row: &Record, waiting: Option<&Waiting>) -> Markup {
    let full = row.int("concurrency") >= 0 && row.int("claimed") >= row.int("concurrency");
    let nothing = !full && row.int("paused") == 0;
    let debt = row.int("debt");
    html! {
        @if let Some(waiting) = waiting.filter(|_| !nothing || row.int("dry") != 0) { (waiting.draw(board)) }
        @if row.int("paused") != 0 { (paused(row.int("paused"))) " " }
        @if full { span.badge.paused { "full" } " " }
        @match row.int("dry") {
            0 => @if nothing { span.faint { "nothing" } },
            -1 => { span.badge.paused { "no permits" } ", and none will come" },
            at => { span.badge.paused { "no permits" } " until " (when(at)) },
        }
        @if debt > 0 { ", owes " (number(debt)) @if debt == 1 { " permit" } @else { " permits" } }
    }
}

pub async fn groups(cx: &RequestContext, board: &[u8]) -> Result<Markup, Failure> {
    let (next, rows) = rows(cx, board, "GROUPS", &[], "groups").await?;
    Ok(html! {
        @if rows.is_empty() { p { "None." } } @else {
            div.wide {
                table.stacked {
                    caption.unseen { "Groups, which take turns in their queues" }
                    thead {
                        tr {
                            th scope="col" { "Group" } th scope="col" { "queue" }
                            @for head in ["ready", "running", "scheduled", "failed", "weight", "concurrency", "rate"] { th.number scope="col" { (head) } }
                            th scope="col" { "limits" }
                            @if cx.may_write() { th scope="col" { "actions" } }
                        }
                    }
                    tbody { @for row in &rows { (group_row(cx, board, row)) } }
                }
            }
            (next_page("/limits", board, "groups", next.as_deref()))
        }
    })
}

fn group_row(cx: &RequestContext, board: &[u8], row: &Record) -> Markup {
    let (queue, group) = (row.bytes("queue"), row.bytes("group"));
    let here = [("b", board), ("queue", queue.as_slice()), ("group", group.as_slice())];
    let act = |verb: &'static [u8]| address("/confirm", &[here[0], here[1], here[2], ("verb", verb)]);
    let full =
        row.int("concurrency") >= 0 && row.int("claimed") >= row.int("concurrency") && row.int("ready") > 0;
    html! {
        tr {
            th scope="row" { (name(&group)) " " (paused(row.int("paused"))) @if full { span.badge.paused { "full" } } }
            td data-label="queue" { (name(&queue)) }
            @for state in ["ready", "claimed", "scheduled", "failed"] {
                td.number data-label=(word(state)) { (count_link(row.int(state), board, &[("state", state.as_bytes()), here[1], here[2]])) }
            }
            td.number data-label="weight" { (row.int("weight")) @if row.int("ordered") == 1 { " ordered" } }
            td.number data-label="concurrency" { @if row.int("concurrency") < 0 { "any" } @else { (number(row.int("concurrency"))) } }
            td.number data-label="rate" { (permits(row)) }
            td data-label="limits" { (row.text("limits")) }
            @if cx.may_write() {
                td.actions {
                    @if row.int("paused") == 0 { a href=(act(b"pause")) { "pause" } } @else { a href=(act(b"resume")) { "resume" } }
                    " " a href=(address("/settings", &here)) { "settings" }
                }
            }
        }
    }
}

/// A rate of permits.
fn permits(row: &Record) -> String {
    match row.int("rate") {
        rate if rate < 0 => "any".into(),
        rate => format!(
            "{} in {}, burst {}",
            number(rate),
            span(row.int("rate-period")),
            number(row.int("burst"))
        ),
    }
}

fn limit_actions(board: &[u8], row: &Record) -> Markup {
    let limit = row.bytes("limit");
    let act = |verb: &'static [u8]| address("/confirm", &[("b", board), ("limit", &limit), ("verb", verb)]);
    html! {
        @if row.int("paused") == 0 { a href=(act(b"pause")) { "pause" } } @else { a href=(act(b"resume")) { "resume" } }
        " " a href=(address("/settings", &[("b", board), ("limit", &limit)])) { "settings" }
    }
}

pub async fn limits(cx: &RequestContext, board: &[u8]) -> Result<Markup, Failure> {
    let (next, rows) = rows(cx, board, "LIMITS", &[], "limits").await?;
    let waiting = if rows.is_empty() { HashMap::new() } else { waiting(cx, board).await };
    Ok(html! {
        @if rows.is_empty() { p { "None." } } @else {
            div.wide {
                table.stacked {
                    caption.unseen { "Shared limits" }
                    thead {
                        tr {
                            th scope="col" { "Limit" }
                            @for head in ["queues", "running", "concurrency", "rate"] { th.number scope="col" { (head) } }
                            th scope="col" { "holds back" }
                            @if cx.may_write() { th scope="col" { "actions" } }
                        }
                    }
                    tbody {
                        @for row in &rows {
                            tr {
                                th scope="row" { (name(&row.bytes("limit"))) }
                                td.number data-label="queues" { (number(row.int("queues"))) }
                                td.number data-label="running" { (number(row.int("claimed"))) }
                                td.number data-label="concurrency" { @if row.int("concurrency") < 0 { "any" } @else { (number(row.int("concurrency"))) } }
                                td.number data-label="rate" { (permits(row)) }
                                td data-label="holds back" { (held_back(board, row, waiting.get(&row.bytes("limit")))) }
                                @if cx.may_write() {
                                    td.actions { (limit_actions(board, row)) }
                                }
                            }
                        }
                    }
                }
            }
            (next_page("/limits", board, "limits", next.as_deref()))
        }
    })
}
