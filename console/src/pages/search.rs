//! One field for everything: a job of that id, or how many jobs have that name, tag, user, queue or state.

use axum::response::{IntoResponse, Redirect, Response};
use maud::html;

use super::{answer, Part, View};
use crate::app::RequestContext;
use crate::connection::board_command;
use crate::failure::Failure;
use crate::filters::Filters;
use crate::format::{jobs_address, name, number};
use crate::names::address;
use crate::query::Query;

/// Those of which counting is quick.
const FIELDS: [&str; 6] = ["state", "name", "tag", "user", "queue", "kind"];

pub async fn get(cx: RequestContext) -> Response {
    match look(&cx).await {
        Ok(Outcome::Job(address)) => Redirect::to(&address).into_response(),
        Ok(Outcome::Lists(view)) => answer(&cx, Ok(view), None),
        Err(failure) => cx.fail(&failure),
    }
}

enum Outcome {
    Job(String),
    Lists(View),
}

async fn look(cx: &RequestContext) -> Result<Outcome, Failure> {
    let board = cx.board()?;
    let Some(wanted) = cx.query.bytes("q").map(<[u8]>::trim_ascii).filter(|wanted| !wanted.is_empty()) else {
        return Ok(Outcome::Job(address("/jobs", &[("b", &board)])));
    };
    let mut get = board_command("GET", &board);
    get.arg(wanted).arg("FIELDS").arg(1).arg("id");
    // An id that is too long is no id.
    match cx.ask(&board, get).await {
        Ok(redis::Value::Nil) | Err(Failure::Server(_)) => {}
        Ok(_) => return Ok(Outcome::Job(address("/job", &[("b", &board), ("id", wanted)]))),
        Err(failure) => return Err(failure),
    }
    let mut counts = Vec::new();
    for field in FIELDS {
        let filters = Filters::read(&Query::from_iter([(field.to_owned(), wanted.to_vec())]));
        if filters.is_empty() {
            continue;
        }
        match super::jobs::count(cx, &board, &filters).await {
            Ok(0) | Err(Failure::Server(_)) => {}
            Ok(count) => counts.push((field, count)),
            Err(failure) => return Err(failure),
        }
    }
    let body = html! {
        p { "There is no job with this id." }
        @if counts.is_empty() { p { "No job has this name, tag, user, queue, state or kind of failure either." } }
        ul {
            @for (field, count) in &counts {
                li { a href=(jobs_address(&board, &[(field, wanted)])) { (number(*count)) " with this " (field) } }
            }
        }
    };
    Ok(Outcome::Lists(View {
        title: "Find".into(),
        head: html! { h1 { "Find " (name(wanted)) } },
        board: Some(board),
        place: "",
        parts: vec![Part { id: "found", body }],
    }))
}
