//! What there is to search for, for what is being typed: states, queues, tags, kinds of failure, workers.

use axum::http::header;
use axum::response::{IntoResponse, Response};

use crate::app::RequestContext;
use crate::connection::board_command;
use crate::connection::reply::page;
use crate::failure::Failure;
use crate::format::STATES;
use crate::grammar::written;

/// So many are suggested.
const MOST: usize = 12;

/// Rows of each listing that are looked at.
const LOOK: usize = 200;

/// Listings, and the fields of searches that they fill.
const SOURCES: [(&str, &str); 4] =
    [("TAGS", "tag"), ("KINDS", "kind"), ("QUEUES", "queue"), ("WORKERS", "worker")];

pub async fn get(cx: RequestContext) -> Response {
    match suggestions(&cx).await {
        Ok(found) => {
            let kind = [(header::CONTENT_TYPE, "application/json")];
            (kind, serde_json::json!(found).to_string()).into_response()
        }
        Err(failure) => cx.fail(&failure),
    }
}

async fn suggestions(cx: &RequestContext) -> Result<Vec<String>, Failure> {
    let board = cx.board()?;
    let text = cx.query.text("q").unwrap_or_default().to_lowercase();
    let (before, last) = match text.rsplit_once(char::is_whitespace) {
        Some((before, last)) => (&text[..before.len() + 1], last),
        None => ("", text.as_str()),
    };
    let mut terms: Vec<String> = STATES.iter().map(|state| written("state", state)).collect();
    terms.extend(["since 1h".into(), "since 1d".into(), "tracked".into(), "lapsed".into()]);
    // Open pages share these answers: typing asks the server rarely.
    let shared = RequestContext { is_live: true, ..cx.clone() };
    for (verb, field) in SOURCES {
        let mut command = board_command(verb, &board);
        command.arg("COUNT").arg(LOOK);
        match shared.ask_shared(&board, command).await {
            Ok(reply) => terms.extend(
                page(reply)
                    .1
                    .iter()
                    .filter_map(|row| String::from_utf8(row.bytes(field)).ok())
                    .map(|name| written(field, &name)),
            ),
            Err(Failure::NotAllowed(_)) => {}
            Err(failure) => return Err(failure),
        }
    }
    let fits = |term: &String| {
        let term = term.to_lowercase();
        term.starts_with(last)
            || term.split_once(':').is_some_and(|(_, value)| value.trim_start_matches('"').starts_with(last))
    };
    // What was typed before, in its own case.
    let typed = cx.query.text("q").unwrap_or_default();
    let before = typed.get(..before.len()).unwrap_or_default();
    Ok(terms.into_iter().filter(fits).take(MOST).map(|term| format!("{before}{term}")).collect())
}
