//! The schedules of a board, and when they post next.

use maud::{html, Markup};

use super::schedule::{run_id, schedule_address};
use super::{Part, View};
use crate::app::RequestContext;
use crate::connection::board_command;
use crate::connection::reply::{list, Record};
use crate::failure::Failure;
use crate::format::{board_address, name, number, span, state, when};
use crate::names::{address, shown};

pub async fn view(cx: &RequestContext) -> Result<View, Failure> {
    let board = cx.board()?;
    let (next, rows) = super::board::rows(cx, &board, "SCHEDULE LIST", &[], "cursor").await?;
    let last = last_runs(cx, &board, &rows).await?;
    let body = html! {
        @if rows.is_empty() { p { "None." } } @else { (table(cx, &board, &rows, &last)) }
        @if let Some(next) = &next {
            nav.pages { a href=(address("/schedules", &[("b", &board), ("cursor", next)])) rel="next" { "Next page" } }
        }
    };
    let head = html! {
        h1 { "Schedules of " (name(&board)) }
        @if cx.may_write() { p.actions { a.button href=(board_address("/schedule/edit", &board)) { "New schedule" } } }
    };
    Ok(View {
        title: format!("Schedules of {}", shown(&board)),
        head,
        board: Some(board),
        place: "Schedules",
        parts: vec![Part { id: "schedules", body }],
    })
}

/// The states of the last runs; `None` where no record is kept.
async fn last_runs(
    cx: &RequestContext,
    board: &[u8],
    rows: &[Record],
) -> Result<Vec<Option<String>>, Failure> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<Vec<u8>> = rows.iter().map(|row| run_id(&row.bytes("id"), row.int("last"))).collect();
    let mut command = board_command("MGET", board);
    command.arg(ids.len()).arg(&ids).arg("FIELDS").arg(1).arg("state");
    match cx.ask(board, command).await {
        Ok(reply) => Ok(list(reply).into_iter().map(|row| Some(Record::read(row)?.text("state"))).collect()),
        Err(Failure::NotAllowed(_)) => Ok(vec![None; rows.len()]),
        Err(failure) => Err(failure),
    }
}

fn table(cx: &RequestContext, board: &[u8], rows: &[Record], last: &[Option<String>]) -> Markup {
    html! {
        div.wide {
            table.stacked {
                caption.unseen { "Schedules, by id" }
                thead {
                    tr {
                        @for head in ["Schedule", "state", "times", "next", "runs", "last run", "queue", "name"] { th scope="col" { (head) } }
                        @if cx.may_write() { th scope="col" { "actions" } }
                    }
                }
                tbody { @for (row, last) in rows.iter().zip(last) { (table_row(cx, board, row, last.as_deref())) } }
            }
        }
    }
}

fn table_row(cx: &RequestContext, board: &[u8], row: &Record, last: Option<&str>) -> Markup {
    let id = row.bytes("id");
    let act = |verb: &'static [u8]| address("/confirm", &[("b", board), ("verb", verb), ("schedule", &id)]);
    let paused = row.text("state") == "paused";
    html! {
        tr {
            th scope="row" { a href=(schedule_address(board, &id)) { (name(&id)) } }
            td data-label="state" { span.badge.(if paused { "paused" } else { "plain" }) { (row.text("state")) } }
            td data-label="times" {
                @if row.has("every") { "every " (span(row.int("every"))) } @else { code { (row.text("cron")) } " " (row.text("tz")) }
                @if row.int("jitter") > 0 { span.faint { " ± " (span(row.int("jitter"))) } }
            }
            td data-label="next" { @if row.has("next") { (when(row.int("next"))) } @else { "none" } }
            td.number data-label="runs" {
                (number(row.int("fired"))) @if row.has("max") { " of " (number(row.int("max"))) }
                @if row.int("refused") > 0 { span.refused { ", refused " (number(row.int("refused"))) } }
            }
            td data-label="last run" {
                @if row.has("last") {
                    a href=(address("/job", &[("b", board), ("id", &run_id(&id, row.int("last")))])) { "run " (row.int("last")) } " "
                    @match last { Some(word) => (state(word)), None => span.faint { "no longer kept" } }
                }
            }
            td data-label="queue" { (name(&row.bytes("queue"))) }
            td data-label="name" { (name(&row.bytes("name"))) }
            @if cx.may_write() {
                td.actions {
                    a href=(address("/schedule/edit", &[("b", board), ("schedule", &id)])) { "edit" } " "
                    @if paused { a href=(act(b"schedule-resume")) { "resume" } } @else { a href=(act(b"schedule-pause")) { "pause" } }
                    " " a href=(act(b"schedule-run")) { "run now" } " " a href=(act(b"schedule-del")) { "delete" }
                }
            }
        }
    }
}
