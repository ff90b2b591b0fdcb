//! Who works, what failed by kind, and tags.

use std::collections::HashSet;

use maud::{html, Markup};
use redis::Value;

use super::board::{all_rows, next_page, rows, ROWS};
use crate::app::RequestContext;
use crate::connection::reply::Record;
use crate::failure::Failure;
use crate::format::{count_link, name, number, soon};
use crate::names::address;

/// Who is registered, and behind the last of them who holds jobs without being so; and where the next page begins.
pub async fn all_workers(
    cx: &RequestContext,
    board: &[u8],
) -> Result<(Vec<Record>, Option<Vec<u8>>), Failure> {
    let (next, mut rows) = match rows(cx, board, "WORKER LIST", &[], "workers").await {
        Err(Failure::NotAllowed(_)) => (None, Vec::new()),
        registered => registered?,
    };
    if next.is_some() {
        return Ok((rows, next));
    }
    let holding = all_rows(cx, board, "WORKERS").await?;
    let known: HashSet<Vec<u8>> = match cx.query.is_set("workers") {
        false => rows.iter().map(|row| row.bytes("worker")).collect(),
        true => all_rows(cx, board, "WORKER LIST").await?.iter().map(|row| row.bytes("worker")).collect(),
    };
    let unknown = holding.into_iter().filter(|row| !known.contains(&row.bytes("worker")));
    rows.extend(unknown.take(ROWS));
    Ok((rows, next))
}

pub fn registration(row: &Record) -> Markup {
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
            bdi { (field) ": " (crate::connection::reply::text(value)) }
        }
    }
}

pub async fn kinds(cx: &RequestContext, board: &[u8]) -> Result<Markup, Failure> {
    let mut kinds = all_rows(cx, board, "KINDS").await?;
    kinds.sort_by_key(|row| std::cmp::Reverse(row.int("jobs")));
    let all = kinds.len();
    kinds.truncate(ROWS);
    Ok(html! {
        @if kinds.is_empty() { p { "There is no failed job." } } @else {
            @if all > ROWS { p.note { "The " (ROWS) " most frequent of " (number(all as i64)) "." } }
            table {
                caption.unseen { "Failed jobs that are kept, by kind" }
                thead { tr { th scope="col" { "Kind" } th.number scope="col" { "failed jobs" } @if cx.may_write() { th scope="col" { "actions" } } } }
                tbody {
                    @for row in &kinds {
                        @let kind = row.bytes("kind");
                        @let filters = [("state", &b"failed"[..]), ("kind", kind.as_slice())];
                        tr {
                            th scope="row" { (name(&kind)) }
                            td.number { (count_link(row.int("jobs"), board, &filters)) }
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

pub async fn tags(cx: &RequestContext, board: &[u8]) -> Result<Markup, Failure> {
    let (next, rows) = rows(cx, board, "TAGS", &[], "tags").await?;
    Ok(html! {
        @if rows.is_empty() { p { "None." } } @else {
            ul.tags {
                @for row in &rows {
                    @let tag = row.bytes("tag");
                    li { (name(&tag)) " " (count_link(row.int("jobs"), board, &[("tag", &tag)])) }
                }
            }
            (next_page("/board", board, "tags", next.as_deref()))
        }
    })
}
