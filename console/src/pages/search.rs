//! One field for everything: a job of that id, a search such as `failed since 2h`, or what a word means.

use axum::response::{IntoResponse, Redirect, Response};
use maud::{html, Markup};

use super::{answer, Part, View};
use crate::app::RequestContext;
use crate::connection::board_command;
use crate::connection::reply::page as rows_of;
use crate::failure::Failure;
use crate::filters::Filters;
use crate::format::{jobs_address, name, number};
use crate::grammar::{self, Term};
use crate::names::{address, shown};
use crate::query::Query;

/// Those of which counting is quick.
const FIELDS: [&str; 5] = ["name", "tag", "user", "queue", "kind"];

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
    // An id as it stands, whatever words it has.
    if let Some(found) = job(cx, &board, wanted).await? {
        return Ok(found);
    }
    let terms = grammar::read(&String::from_utf8_lossy(wanted));
    let mut fields: Vec<(&'static str, Vec<u8>)> = Vec::new();
    let mut odd: Vec<String> = Vec::new();
    let mut unknown: Vec<(Vec<u8>, Option<usize>)> = Vec::new();
    for term in &terms {
        match term {
            Term::Field("id", id) => {
                if let Some(found) = job(cx, &board, id.as_bytes()).await? {
                    return Ok(found);
                }
                odd.push(format!("There is no job with the id {id}."));
            }
            Term::Field(field, value) => fields.push((field, value.clone().into_bytes())),
            Term::Odd(text) => odd.push(format!("{text} is no state and no time that the search knows.")),
            Term::Word(word) => match meanings(cx, &board, word.as_bytes()).await?.as_slice() {
                [(field, _)] if terms.len() > 1 => fields.push((field, word.clone().into_bytes())),
                [] => {
                    odd.push(format!(
                        "Nothing is called {word}: no id, name, tag, user, queue, kind of failure."
                    ));
                    let word = word.clone().into_bytes();
                    let queues = queues(cx, &board, &word).await?;
                    unknown.push((word, queues));
                }
                found => return Ok(Outcome::Lists(choice(board, word.as_bytes(), found, &fields))),
            },
        }
    }
    if odd.is_empty() {
        let all: Vec<(&str, &[u8])> =
            fields.iter().map(|(field, value)| (*field, value.as_slice())).collect();
        return Ok(Outcome::Job(jobs_address(&board, &all)));
    }
    let body = html! {
        @for text in &odd { p { bdi { (shown(text.as_bytes())) } } }
        @for (word, queues) in &unknown { (deeper(&board, word, *queues)) }
        (help())
    };
    Ok(Outcome::Lists(page(board, wanted, body)))
}

/// The address of a job, if there is one with this id.
async fn job(cx: &RequestContext, board: &[u8], id: &[u8]) -> Result<Option<Outcome>, Failure> {
    let mut get = board_command("GET", board);
    get.arg(id).arg("FIELDS").arg(1).arg("id");
    // An id that is too long is no id.
    match cx.ask(board, get).await {
        Ok(redis::Value::Nil) | Err(Failure::Server(_)) => Ok(None),
        Ok(_) => Ok(Some(Outcome::Job(address("/job", &[("b", board), ("id", id)])))),
        Err(failure) => Err(failure),
    }
}

/// The fields that have this value, and of how many jobs.
async fn meanings(
    cx: &RequestContext,
    board: &[u8],
    word: &[u8],
) -> Result<Vec<(&'static str, i64)>, Failure> {
    let mut found = Vec::new();
    for field in FIELDS {
        let filters = Filters::read(&Query::from_iter([(field.to_owned(), word.to_vec())]));
        match super::jobs::count(cx, board, &filters).await {
            Ok(0) | Err(Failure::Server(_)) => {}
            Ok(count) => found.push((field, count)),
            Err(failure) => return Err(failure),
        }
    }
    Ok(found)
}

/// The most queues that one page counts.
const QUEUES: usize = 100;

/// How many queues have this in their names; `None` for more than are counted.
async fn queues(cx: &RequestContext, board: &[u8], word: &[u8]) -> Result<Option<usize>, Failure> {
    let mut command = board_command("QUEUES", board);
    command.arg("CONTAINS").arg(word).arg("COUNT").arg(QUEUES);
    match cx.ask(board, command).await {
        Ok(reply) => {
            let (next, rows) = rows_of(reply);
            Ok(next.is_none().then_some(rows.len()))
        }
        Err(Failure::NotAllowed(_) | Failure::Server(_)) => Ok(Some(0)),
        Err(failure) => Err(failure),
    }
}

/// A word that means several things, or one.
fn choice(
    board: Vec<u8>,
    word: &[u8],
    found: &[(&'static str, i64)],
    others: &[(&'static str, Vec<u8>)],
) -> View {
    let body = html! {
        p { "No job has this id, but:" }
        ul {
            @for (field, count) in found {
                @let all: Vec<(&str, &[u8])> = others.iter().map(|(field, value)| (*field, value.as_slice())).chain([(*field, word)]).collect();
                li {
                    a href=(jobs_address(&board, &all)) {
                        (number(*count)) @if *count == 1 { " job" } @else { " jobs" } " with the " (what(field)) " " (name(word))
                    }
                }
            }
        }
    };
    page(board, word, body)
}

/// What a field is called in a sentence.
fn what(field: &str) -> &str {
    match field {
        "kind" => "kind of failure",
        other => other,
    }
}

/// Searches that look at each job, and so are not made unasked.
fn deeper(board: &[u8], word: &[u8], queues: Option<usize>) -> Markup {
    let link = |fields: &[(&str, &[u8])], text: &str| {
        html! { li { a href=(jobs_address(board, fields)) { (text) } } }
    };
    html! {
        p { "Look for " (name(word)) " in" }
        ul {
            @if queues != Some(0) {
                li {
                    a href=(address("/queues", &[("b", board), ("name", word)])) {
                        @match queues {
                            Some(1) => "1 queue whose name contains it",
                            Some(count) => { (count) " queues whose names contain it" },
                            None => { "More than " (QUEUES) " queues whose names contain it" },
                        }
                    }
                }
            }
            (link(&[("prefix", word)], "the beginnings of ids"))
            (link(&[("state", b"failed"), ("message", word)], "the messages of failed jobs"))
            (link(&[("text", word)], "payloads"))
        }
    }
}

fn help() -> Markup {
    html! {
        p.faint {
            "A search is an id, or words: " code { "failed since 2h kind:IOError" } ", " code { "running queue:mails" } ", "
            code { "name:send user:ann tag:vip worker:w1 group:acme tracked lapsed" } ", "
            code { "id:order-* message:\"no route\" text:ann@example.com stage:upload parent:order-42 after:pack-42 awaits:approved meta.region:eu payload.order.id:4711" } "."
        }
    }
}

fn page(board: Vec<u8>, wanted: &[u8], body: Markup) -> View {
    View {
        title: "Find".into(),
        head: html! { h1 { "Find " (name(wanted)) } },
        board: Some(board),
        place: "",
        parts: vec![Part { id: "found", body }],
    }
}
