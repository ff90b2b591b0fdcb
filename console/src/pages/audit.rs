//! What was done to a board through this console.

use axum::response::Response;
use maud::html;

use super::board::ROWS;
use super::{answer, Part, View};
use crate::app::RequestContext;
use crate::connection::board_command;
use crate::failure::Failure;
use crate::format::{name, number, when};
use crate::names::shown;

pub async fn get(cx: RequestContext) -> Response {
    let view = view(&cx).await;
    answer(&cx, view, None)
}

async fn view(cx: &RequestContext) -> Result<View, Failure> {
    let board = cx.board()?;
    // Commands have payloads: who may not read jobs of the board learns nothing of them here.
    let mut get = board_command("GET", &board);
    get.arg("-").arg("FIELDS").arg(1).arg("id");
    match cx.ask(&board, get).await {
        // A broken copy answers so.
        Ok(_) | Err(Failure::Server(_)) => {}
        Err(failure) => return Err(failure),
    }
    let (entries, all) = cx.app.audit.of(&board, ROWS);
    let body = html! {
        p.note {
            "Commands that users sent from these pages "
            @if cx.app.audit.is_on_disk() { "in the last " (crate::audit::DAYS) " days" } @else { "since the console was started" }
            ". What other programs did is in the history of each job."
        }
        @if entries.is_empty() { p { "Nothing was done here yet." } } @else {
            @if all > entries.len() { p.note { "The last " (ROWS) " of " (number(all as i64)) "." } }
            div.wide {
                table.stacked {
                    caption.unseen { "What was done, newest first" }
                    thead { tr { @for head in ["When", "User", "Command", "Outcome"] { th scope="col" { (head) } } } }
                    tbody {
                        @for entry in &entries {
                            tr {
                                td data-label="When" { (when(entry.at)) }
                                td data-label="User" { (name(entry.user.as_bytes())) }
                                td data-label="Command" { code { (entry.command) } }
                                td data-label="Outcome" { @if entry.refused { span.refused { (entry.outcome) } } @else { (entry.outcome) } }
                            }
                        }
                    }
                }
            }
        }
    };
    Ok(View {
        title: format!("Audit of {}", shown(&board)),
        head: html! { h1 { "Audit of " (name(&board)) } },
        board: Some(board),
        place: "Audit",
        parts: vec![Part { id: "audit", body }],
    })
}
