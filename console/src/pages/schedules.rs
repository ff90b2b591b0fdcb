//! The schedules of a board, and when they post next.

use axum::response::Response;
use maud::{html, Markup};

use super::{answer, Part, View};
use crate::app::RequestContext;
use crate::connection::reply::Record;
use crate::failure::Failure;
use crate::format::{job_link, name, number, span, when};
use crate::names::{address, shown};

pub async fn get(cx: RequestContext) -> Response {
    let view = view(&cx).await;
    answer(&cx, view, None)
}

async fn view(cx: &RequestContext) -> Result<View, Failure> {
    let board = cx.board()?;
    let (next, rows) = super::board::rows(cx, &board, "SCHEDULE LIST", "cursor").await?;
    let body = html! {
        @if rows.is_empty() { p { "None." } } @else { (table(cx, &board, &rows)) }
        @if let Some(next) = &next {
            nav.pages { a href=(address("/schedules", &[("b", &board), ("cursor", next)])) rel="next" { "Next page" } }
        }
    };
    Ok(View {
        title: format!("Schedules of {}", shown(&board)),
        head: html! { h1 { "Schedules of " (name(&board)) } },
        board: Some(board),
        place: "Schedules",
        parts: vec![Part { id: "schedules", body }],
    })
}

fn table(cx: &RequestContext, board: &[u8], rows: &[Record]) -> Markup {
    html! {
        div.wide {
            table {
                caption.unseen { "Schedules, by id" }
                thead {
                    tr {
                        @for head in ["Schedule", "state", "times", "next", "after that", "posted", "last", "queue", "name"] { th scope="col" { (head) } }
                        @if cx.may_write() { th scope="col" { "actions" } }
                    }
                }
                tbody { @for row in rows { (table_row(cx, board, row)) } }
            }
        }
    }
}

fn table_row(cx: &RequestContext, board: &[u8], row: &Record) -> Markup {
    let id = row.bytes("id");
    let act = |verb: &'static [u8]| address("/confirm", &[("b", board), ("verb", verb), ("schedule", &id)]);
    let paused = row.text("state") == "paused";
    html! {
        tr {
            th scope="row" { (name(&id)) }
            td { span.badge.(if paused { "paused" } else { "plain" }) { (row.text("state")) } }
            td {
                @if row.has("every") { "every " (span(row.int("every"))) } @else { code { (row.text("cron")) } " " (row.text("tz")) }
                @if row.int("jitter") > 0 { span.faint { " ± " (span(row.int("jitter"))) } }
            }
            td { @if row.has("next") { (when(row.int("next"))) } @else { "none" } }
            td { (further(row)) }
            td.number {
                (number(row.int("fired"))) @if row.has("max") { " of " (number(row.int("max"))) }
                @if row.int("refused") > 0 { span.refused { ", refused " (number(row.int("refused"))) } }
            }
            td { @if row.has("last") { (job_link(board, format!("@{}@{}", row.text("id"), row.int("last")).as_bytes())) } }
            td { (name(&row.bytes("queue"))) }
            td { (name(&row.bytes("name"))) }
            @if cx.may_write() {
                td.actions {
                    @if paused { a href=(act(b"schedule-resume")) { "resume" } } @else { a href=(act(b"schedule-pause")) { "pause" } }
                    " " a href=(act(b"schedule-run")) { "run now" } " " a href=(act(b"schedule-del")) { "delete" }
                }
            }
        }
    }
}

/// The two times after the next one, of a schedule with an interval; the server alone knows those of an
/// expression.
fn further(row: &Record) -> Markup {
    let (every, next) = (row.int("every"), row.int("next"));
    let end = row.maybe_int("end").filter(|end| *end >= 0).unwrap_or(i64::MAX);
    html! {
        @if row.has("every") && row.has("next") {
            @for at in [next + every, next + 2 * every] { @if at <= end { (when(at)) " " } }
        }
    }
}
