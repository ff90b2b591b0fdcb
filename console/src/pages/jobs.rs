//! Lists of jobs by filters, a page at a time.

use std::time::{Duration, Instant};

use axum::response::{IntoResponse, Redirect, Response};
use maud::{html, Markup};

use super::layout::hidden;
use super::{answer, Part, View};
use crate::app::RequestContext;
use crate::connection::board_command;
use crate::connection::reply::{int, page, Record};
use crate::failure::Failure;
use crate::filters::{Filters, FLAGS, NAMED};
use crate::format::{job_link, name, number, soon, state, STATES};
use crate::names::{address, shown};

const PAGE: usize = 50;

/// Filters that few jobs pass make the server look at many: it is asked again until the page is full, but
/// no longer than this.
const SEARCH: Duration = Duration::from_millis(1500);

const FIELDS: [&str; 16] = [
    "id", "state", "queue", "name", "priority", "attempt", "left", "worker", "progress", "stage", "posted",
    "due", "ended", "kind", "user", "tags",
];

pub async fn get(cx: RequestContext) -> Response {
    if let (Ok(board), Some(id)) = (cx.board(), cx.query.bytes("id")) {
        return Redirect::to(&address("/job", &[("b", &board), ("id", id)])).into_response();
    }
    let view = view(&cx).await;
    answer(&cx, view, None)
}

struct Listed {
    rows: Vec<Record>,
    next: Option<Vec<u8>>,
}

async fn view(cx: &RequestContext) -> Result<View, Failure> {
    let board = cx.board()?;
    let filters = Filters::read(&cx.query);
    let count = match filters.count_is_cheap() {
        true => Some(count(cx, &board, &filters).await?),
        false => None,
    };
    let listed = list(cx, &board, &filters).await?;
    let head = html! {
        h1 { "Jobs of " (name(&board)) }
        (form(cx, &board, &filters))
    };
    let body = html! {
        p #count {
            @if let Some(count) = count { (number(count)) " jobs" @if filters.is_empty() { ", ended ones included" } "." }
            @else { "Not counted: that would need a look at each." }
        }
        (table(cx, &board, &filters, &listed))
        (pages(cx, &board, &filters, &listed))
    };
    Ok(View {
        title: format!("Jobs of {}", shown(&board)),
        board: Some(board),
        place: "Jobs",
        head,
        parts: vec![Part { id: "list", body }],
    })
}

/// How many pass; without filters all, also those that have ended.
pub async fn count(cx: &RequestContext, board: &[u8], filters: &Filters) -> Result<i64, Failure> {
    let mut command = board_command("COUNT", board);
    if filters.is_empty() {
        for state in STATES {
            command.arg("STATE").arg(state);
        }
    }
    filters.add_to(&mut command);
    Ok(int(&cx.ask(board, command).await?).unwrap_or(0))
}

async fn list(cx: &RequestContext, board: &[u8], filters: &Filters) -> Result<Listed, Failure> {
    let began = Instant::now();
    let mut rows: Vec<Record> = Vec::new();
    let mut cursor = cx.query.bytes("cursor").unwrap_or(b"0").to_vec();
    loop {
        let mut command = board_command("LIST", board);
        filters.add_to(&mut command);
        if cx.query.is_set("rev") {
            command.arg("REV");
        }
        command.arg("CURSOR").arg(&cursor).arg("COUNT").arg(PAGE - rows.len());
        command.arg("FIELDS").arg(FIELDS.len()).arg(&FIELDS);
        let (next, found) = page(cx.ask(board, command).await?);
        rows.extend(found);
        match next {
            Some(next) if rows.len() < PAGE && began.elapsed() < SEARCH => cursor = next,
            next => return Ok(Listed { rows, next }),
        }
    }
}

fn form(cx: &RequestContext, board: &[u8], filters: &Filters) -> Markup {
    html! {
        form.filters action="/jobs" aria-label="Filters" {
            (hidden("b", board))
            fieldset {
                legend { "State" }
                @for state in STATES {
                    label { input type="checkbox" name="state" value=(state) checked[filters.has("state", state.as_bytes())]; " " (state) }
                }
            }
            div.fields {
                label { "id " input name="id"; }
                @for (field, _) in NAMED {
                    @let value = cx.query.bytes(field).unwrap_or_default();
                    @if crate::names::is_plain(value) {
                        label { (field) " " input name=(field) value=(shown(value)); }
                    } @else {
                        (hidden(field, value)) span { (field) " " (name(value)) }
                    }
                }
                @for (field, _) in FLAGS {
                    label { input type="checkbox" name=(field) value="1" checked[cx.query.is_set(field)]; " " (field) }
                }
                label { input type="checkbox" name="rev" value="1" checked[cx.query.is_set("rev")]; " last first" }
                button { "Show" }
                a href=(address("/jobs", &[("b", board)])) { "Clear" }
            }
        }
    }
}

fn table(cx: &RequestContext, board: &[u8], filters: &Filters, listed: &Listed) -> Markup {
    html! {
        @if listed.rows.is_empty() {
            p { @if listed.next.is_some() { "None so far. There are more to look at." } @else { "None." } }
        } @else {
            form action="/confirm" {
                (hidden("b", board))
                div.wide {
                    table.jobs {
                        caption.unseen { "Jobs" }
                        thead {
                            tr {
                                @if cx.may_write() { th scope="col" { input type="checkbox" data-all="id" aria-label="All of this page"; } }
                                @for head in ["Id", "State", "Queue", "Name", "Priority", "Attempt", "Worker", "Time", "Failure", "User", "Tags"] {
                                    th scope="col" { (head) }
                                }
                            }
                        }
                        tbody { @for row in &listed.rows { (table_row(cx, board, row)) } }
                    }
                }
                @if cx.may_write() { (actions(board, filters)) }
            }
        }
    }
}

fn table_row(cx: &RequestContext, board: &[u8], row: &Record) -> Markup {
    let id = row.bytes("id");
    let (field, value) = crate::query::hidden_field("id", &id);
    html! {
        tr {
            @if cx.may_write() { td { input type="checkbox" name=(field) value=(value) aria-label={ "Choose " (shown(&id)) }; } }
            th scope="row" { (job_link(board, &id)) }
            td { (state(&row.text("state"))) }
            td { (name(&row.bytes("queue"))) }
            td { (name(&row.bytes("name"))) }
            td.number { (row.int("priority")) }
            td.number { (row.int("attempt")) }
            td { (name(&row.bytes("worker"))) @if row.has("progress") { " " (progress(row.float("progress"))) } }
            td { (moment(row)) }
            td { (name(&row.bytes("kind"))) }
            td { (name(&row.bytes("user"))) }
            td { @for tag in row.list("tags") { (name(&crate::connection::reply::bytes(&tag))) " " } }
        }
    }
}

pub fn progress(percent: f64) -> Markup {
    html! { progress max="100" value=(percent) aria-label="progress" {} " " (percent) " %" }
}

/// The time that says most of a job in its state.
fn moment(row: &Record) -> Markup {
    let (word, field) = if row.has("ended") {
        ("ended", "ended")
    } else if row.has("due") {
        ("due", "due")
    } else {
        ("posted", "posted")
    };
    html! { span.faint { (word) " " } (soon(row.int(field))) }
}

fn actions(board: &[u8], filters: &Filters) -> Markup {
    let verbs = ["requeue", "cancel", "release", "delete", "update"];
    html! {
        fieldset.actions {
            legend { "With the jobs that are chosen" }
            @for verb in verbs { button name="verb" value=(verb) { (super::confirm::verb_text(verb)) } " " }
        }
        @if !filters.is_empty() {
            p.actions {
                "With all that pass the filters: "
                @for verb in verbs {
                    @let fields: Vec<(&str, &[u8])> = [("b", board), ("verb", verb.as_bytes()), ("where", &b"1"[..])]
                        .into_iter().chain(filters.fields()).collect();
                    a.button href=(address("/confirm", &fields)) { (super::confirm::verb_text(verb)) } " "
                }
            }
        }
    }
}

fn pages(cx: &RequestContext, board: &[u8], filters: &Filters, listed: &Listed) -> Markup {
    let to = |cursor: Option<&[u8]>| {
        let mut fields = vec![("b", board)];
        fields.extend(filters.fields());
        if cx.query.is_set("rev") {
            fields.push(("rev", b"1"));
        }
        fields.extend(cursor.map(|cursor| ("cursor", cursor)));
        address("/jobs", &fields)
    };
    html! {
        nav.pages aria-label="Pages" {
            @if cx.query.is_set("cursor") { a href=(to(None)) { "First page" } }
            @if let Some(next) = &listed.next { a href=(to(Some(next))) rel="next" { "Next page" } }
        }
    }
}
