//! The workers of a board, and what each does now.

use std::collections::HashMap;

use maud::{html, Markup};

use super::boards::age;
use super::work::{all_workers, registration};
use super::{Part, View};
use crate::app::RequestContext;
use crate::connection::board_command;
use crate::connection::reply::{page, Record};
use crate::failure::Failure;
use crate::format::{count_link, job_link, name, number, soon};
use crate::names::{address, shown};

/// Running jobs that are looked at.
const LOOK: usize = 1000;

/// Jobs of one worker that are shown.
const SHOWN: usize = 5;

const FIELDS: [&str; 8] = ["id", "name", "queue", "worker", "claimed", "deadline", "progress", "stage"];

pub async fn view(cx: &RequestContext) -> Result<View, Failure> {
    let board = cx.board()?;
    Ok(View {
        title: format!("Workers of {}", shown(&board)),
        head: html! { h1 { "Workers of " (name(&board)) } },
        place: "Workers",
        parts: vec![Part::new("workers", "", list(cx, &board).await)?],
        board: Some(board),
    })
}

async fn list(cx: &RequestContext, board: &[u8]) -> Result<Markup, Failure> {
    let (rows, next) = all_workers(cx, board).await?;
    let mut command = board_command("LIST", board);
    command.arg("STATE").arg("claimed").arg("COUNT").arg(LOOK);
    command.arg("FIELDS").arg(FIELDS.len()).arg(&FIELDS);
    let (more, running) = page(cx.ask_shared(board, command).await?);
    let mut jobs: HashMap<Vec<u8>, Vec<&Record>> = HashMap::new();
    for job in &running {
        jobs.entry(job.bytes("worker")).or_default().push(job);
    }
    Ok(html! {
        @if rows.is_empty() { p { "No worker holds a job or is registered." } } @else {
            @if more.is_some() { p.note { "This page looks at the first " (number(LOOK as i64)) " running jobs only." } }
            div.wide {
                table.stacked {
                    caption.unseen { "Workers" }
                    thead {
                        tr {
                            th scope="col" { "Worker" } th scope="col" { "does now" } th.number scope="col" { "running" }
                            th.number scope="col" { "last heard" } th.number scope="col" { "lost leases" }
                            @if cx.may_write() { th scope="col" { "actions" } }
                            th scope="col" { "role" } th scope="col" { "meta" } th scope="col" { "registered until" }
                        }
                    }
                    tbody { @for row in &rows { (table_row(cx, board, row, jobs.get(&row.bytes("worker")))) } }
                }
            }
            (super::board::next_page("/workers", board, "workers", next.as_deref()))
        }
    })
}

fn table_row(cx: &RequestContext, board: &[u8], row: &Record, jobs: Option<&Vec<&Record>>) -> Markup {
    let worker = row.bytes("worker");
    html! {
        tr {
            th scope="row" { (name(&worker)) @if row.int("quiet") == 1 { " " span.badge.paused { "quiet" } } }
            td.doing data-label="does now" {
                @match jobs {
                    None => span.faint { "nothing" },
                    Some(jobs) => @for job in jobs.iter().take(SHOWN) {
                        div {
                            @if job.has("name") { (name(&job.bytes("name"))) " " }
                            (job_link(board, &job.bytes("id"))) span.faint { ", since " (soon(job.int("claimed"))) }
                            @if job.has("progress") { " " (super::jobs::progress(job.float("progress"))) }
                            @if job.has("stage") { " " bdi { (job.text("stage")) } }
                        }
                    },
                }
            }
            td.number data-label="running" { (count_link(row.int("claimed"), board, &[("worker", &worker)])) }
            td.number data-label="last heard" { (age(row.maybe_int("active").unwrap_or(-1))) }
            td.number data-label="lost leases" { @if row.has("lapsed") { (number(row.int("lapsed"))) } }
            @if cx.may_write() { td.actions data-label="actions" { @if row.has("registered") { (quiet(board, row)) } } }
            td data-label="role" { (row.text("role")) }
            td data-label="meta" { (super::work::meta(row.get("meta"))) }
            td data-label="registered until" { (registration(row)) }
        }
    }
}

/// Only a registered worker can be quiet.
fn quiet(board: &[u8], row: &Record) -> Markup {
    let (verb, text) = match row.int("quiet") {
        1 => ("worker-resume", "Resume"),
        _ => ("worker-quiet", "Make quiet"),
    };
    let worker = row.bytes("worker");
    let to = address("/confirm", &[("b", board), ("verb", verb.as_bytes()), ("worker", &worker)]);
    html! { a.button href=(to) { (text) span.unseen { " " (shown(&worker)) } } }
}
