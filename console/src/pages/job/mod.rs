//! One job: its record, why it does not run, what happened to it, and its dependencies.

mod actions;
mod awaits;
mod data;
mod explain;
mod failure_card;
mod graph;
mod neighbours;
mod output;
mod record;
mod search;
mod signals;

use maud::{html, Markup};

use super::layout::copy;
use super::{timeline, Memory, Part, View};
use crate::app::RequestContext;
use crate::connection::board_command;
use crate::connection::reply::{records, Record};
use crate::failure::Failure;
use crate::format::{name, state};
use crate::names::{is_plain, shown};

pub use data::{content, get_data, Kept, Signal, Step};
pub use output::Output;
pub use search::Found;

/// Everything but payload, result, steps and signals, which may be large.
const FIELDS: [&str; 42] = [
    "id",
    "seq",
    "state",
    "queue",
    "name",
    "group",
    "priority",
    "cost",
    "attempt",
    "left",
    "token",
    "worker",
    "session",
    "deadline",
    "progress",
    "stage",
    "kind",
    "message",
    "reason",
    "posted",
    "due",
    "claimed",
    "ended",
    "modified",
    "intended",
    "version",
    "previous",
    "user",
    "unique",
    "parent",
    "share",
    "children",
    "pending",
    "unsuccessful",
    "after",
    "tags",
    "tracked",
    "meta",
    "origin",
    "awaits",
    "costs",
    "spent",
];

/// The parts of the page, from above.
const PARTS: [&str; 10] =
    ["now", "awaits", "explain", "history", "find", "found", "record", "graph", "output", "data"];

pub fn id(cx: &RequestContext) -> Result<Vec<u8>, Failure> {
    let named = cx.query.bytes("id").map(<[u8]>::to_vec);
    named.ok_or_else(|| Failure::BadRequest("The address names no job (id=…).".into()))
}

pub async fn view(cx: &RequestContext, memory: &mut Memory) -> Result<View, Failure> {
    let (board, id) = (cx.board()?, id(cx)?);
    let mut get = board_command("GET", &board);
    get.arg(&id).arg("FIELDS").arg(FIELDS.len()).arg(&FIELDS);
    let record = Record::read(cx.ask(&board, get).await?);
    let explain = explain::draw(cx, &board, &id).await;
    let seq = record.as_ref().map_or(0, |record| record.int("seq"));
    let was_shown = memory.told;
    if memory.seq != seq {
        // Of another job under this id nothing is known.
        *memory = Memory { seq, ..Memory::default() };
    }
    memory.told = true;
    let Some(record) = record else {
        return removed(board, &id, explain, was_shown);
    };
    let entries = history(cx, &board, &id).await;
    let word = record.text("state");
    let told: &[Record] = entries.as_deref().unwrap_or_default();
    let beside = match neighbours::draw(cx, &board, &record).await {
        Err(Failure::NotAllowed(_) | Failure::Server(_)) => html! {},
        drawn => drawn?,
    };
    let top = html! {
        (beside)
        (state_line(&record))
        @if cx.may_write() { (actions::draw(&board, &id, &word, record.has("origin"))) }
        @if let Some(card) = failure_card::draw(&board, &record, told) { (card) }
    };
    let output = output::read(cx, &board, &id, &mut memory.output).await;
    let data = data::refresh(cx, &board, &id, &record, &mut memory.job).await;
    let written = memory.output.written();
    let found = search::draw(cx, &board, &id, told, written, &mut memory.found).await;
    let form = search::form(cx, &board, &id, told, written > 0);
    let mut parts = vec![
        Part { id: "now", body: top },
        Part { id: "awaits", body: awaits::draw(cx, &board, &id, &record) },
        Part::new("explain", explain::heading(&word), explain.map(|told| told.unwrap_or_else(|| html! {})))?,
        Part::new("history", "Timeline", line(cx, &board, entries, &record, memory).await)?,
        Part { id: "find", body: form },
        Part::new("found", "", found)?,
        Part { id: "record", body: record::draw(&board, &record) },
        Part::new("graph", "Dependencies", graph::draw(cx, &board, &record).await)?,
        Part::new("output", "", output.map(|()| memory.output.draw()))?,
    ];
    if let Some(data) = data {
        parts.push(Part::new("data", "", data)?);
    }
    let head = html! {
        div.title { h1 { "Job " (name(&id)) } @if is_plain(&id) { (copy("the id", "h1", Some(&shown(&id)))) } }
    };
    Ok(View { title: shown(&id), board: Some(board), place: "Job", head, parts })
}

/// A job without a record: the board may still know how it ended. From an open page that has shown it, it goes.
fn removed(
    board: Vec<u8>,
    id: &[u8],
    explain: Result<Option<Markup>, Failure>,
    was_shown: bool,
) -> Result<View, Failure> {
    let told = match explain {
        Ok(None) | Err(Failure::NotAllowed(_) | Failure::Server(_)) if was_shown => html! {},
        Ok(None) => return Err(Failure::NotFound("The board has no job of this id.".into())),
        Ok(Some(told)) => told,
        Err(failure) => return Err(failure),
    };
    let body = |id| match id {
        "record" => html! { p { "The server no longer keeps its record." } },
        "explain" => told.clone(),
        _ => html! {},
    };
    Ok(View {
        title: shown(id),
        head: html! { h1 { "Job " (name(id)) } },
        board: Some(board),
        place: "Job",
        parts: PARTS.map(|id| Part { id, body: body(id) }).into(),
    })
}

fn state_line(record: &Record) -> Markup {
    html! {
        p.state-line {
            (state(&record.text("state")))
            @if record.has("name") { " " b { (name(&record.bytes("name"))) } }
            " in " (name(&record.bytes("queue")))
            @if record.has("progress") { " " (super::jobs::progress(record.float("progress"))) }
            @if record.has("stage") { " " bdi { (record.text("stage")) } }
        }
    }
}

async fn history(cx: &RequestContext, board: &[u8], id: &[u8]) -> Result<Vec<Record>, Failure> {
    let mut command = board_command("HISTORY", board);
    command.arg(id);
    Ok(records(cx.ask(board, command).await?))
}

async fn line(
    cx: &RequestContext,
    board: &[u8],
    entries: Result<Vec<Record>, Failure>,
    record: &Record,
    memory: &Memory,
) -> Result<Markup, Failure> {
    let entries = entries?;
    let children = timeline::children(cx, board, record).await?;
    let lives = timeline::lives(cx, board, &children).await?;
    let run = timeline::Run {
        board,
        record,
        entries: &entries,
        children: &children,
        lives: &lives,
        kept: &memory.job,
        output: &memory.output,
        may_signal: cx.may_write(),
        is_linear: cx.query.text("scale") == Some("linear"),
    };
    Ok(run.draw())
}
