//! An action on many jobs, while it runs.

use std::sync::Arc;

use axum::body::Bytes;
use axum::response::{IntoResponse, Redirect, Response};
use maud::html;

use super::layout::secret;
use super::{Part, View};
use crate::actions::runs::Run;
use crate::app::RequestContext;
use crate::failure::Failure;
use crate::format::{board_address, number};
use crate::names::own;
use crate::query::Query;

fn run(cx: &RequestContext) -> Result<Arc<Run>, Failure> {
    let id = cx.query.number("run").and_then(|id| usize::try_from(id).ok()).unwrap_or(0);
    let gone = || Failure::NotFound("The console no longer knows this action.".into());
    cx.session.runs.get(id).ok_or_else(gone)
}

pub fn view(cx: &RequestContext) -> Result<View, Failure> {
    let run = run(cx)?;
    let progress = run.progress();
    let query = cx.here.split_once('?').map_or("", |(_, query)| query);
    let body = html! {
        p role="status" {
            b #done { (number(progress.done)) } " jobs done. "
            @if let Some(failure) = &progress.failure { span.refused { (failure.title()) ": " (failure.text()) } }
            @else if progress.stopped { span #outcome { "Stopped." } }
            @else if progress.ended { span #outcome { "All done." } }
            @else { progress aria-label="working" {} }
        }
        @if progress.held_count > 0 {
            p { (progress.held_count) " stay as they are, because of other jobs: " @for id in &progress.held { bdi.name { (id) } " " } }
        }
        @if !progress.ended {
            form method="post" action={ (own("/stop")) "?" (query) } { (secret(&cx.session)) button { "Stop" } }
        }
    };
    Ok(View {
        title: run.title.clone(),
        board: Some(run.board.clone()),
        place: "",
        head: html! {
            h1 { (run.title) }
            pre.data tabindex="0" { (run.words) }
            p { a href=(board_address("/board", &run.board)) { "To the board" } }
        },
        parts: vec![Part { id: "run", body }],
    })
}

pub async fn stop(cx: RequestContext, body: Bytes) -> Response {
    if !Query::read(&body).bytes("csrf").is_some_and(|csrf| cx.session.owns(csrf)) {
        return cx
            .fail(&Failure::Refused("This form belongs to another session. Nothing was changed.".into()));
    }
    match run(&cx) {
        Ok(run) => {
            run.stop();
            let query = cx.here.split_once('?').map_or("", |(_, query)| query);
            Redirect::to(&own(&format!("/run?{query}"))).into_response()
        }
        Err(failure) => cx.fail(&failure),
    }
}
