//! Lists of jobs by filters, a page at a time.

use axum::response::{IntoResponse, Redirect, Response};
use maud::{html, Markup};

use super::jobs_list::{list, Listed};
use super::layout::hidden;
use super::{answer, LivePage, Part, View};
use crate::alike::headline;
use crate::app::RequestContext;
use crate::connection::board_command;
use crate::connection::reply::{int, Record};
use crate::failure::Failure;
use crate::filters::{Filters, FLAGS, NAMED};
use crate::format::{job_link, name, number, soon, state, word, STATES};
use crate::grammar::written;
use crate::names::{address, own, short, shown};

pub async fn get(cx: RequestContext) -> Response {
    if let (Ok(board), Some(id)) = (cx.board(), cx.query.bytes("id")) {
        return Redirect::to(&address("/job", &[("b", &board), ("id", id)])).into_response();
    }
    // Further pages stay as they are, and so do lists for which the server looks at each job.
    if cx.query.is_set("cursor") || !Filters::read(&cx.query).are_indexed() {
        let view = view(&cx).await;
        return answer(&cx, view, None);
    }
    super::get(LivePage::Jobs, cx).await
}

pub async fn view(cx: &RequestContext) -> Result<View, Failure> {
    let board = cx.board()?;
    let filters = Filters::read(&cx.query);
    let count = match filters.count_is_cheap() {
        true => Some(count(cx, &board, &filters).await?),
        false => count_of_few(cx, &board, &filters).await?,
    };
    let listed = list(cx, &board, &filters).await?;
    let head = html! {
        h1 { "Jobs of " (name(&board)) }
        (search_form(&board, &filters))
        (chips(&board, &filters, cx.query.is_set("rev")))
        details.more {
            summary { "All filters" }
            (form(cx, &board, &filters))
        }
    };
    let body = html! {
        p #count {
            @if filters.since().is_some() { (number(listed.rows.len() as i64)) @if listed.next.is_some() { " or more, newest first." } @else { " jobs, newest first." } }
            @else if let Some(count) = count { (number(count)) @if count == 1 { " job" } @else { " jobs" } @if filters.is_empty() { ", ended ones included" } "." }
            @else { "Not counted: the server would have to look at each job." }
        }
        (table(cx, &board, &filters, &listed, count))
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
    Ok(int(&cx.ask_shared(board, command).await?).unwrap_or(0))
}

/// Jobs that the server may look at to count others.
const FEW: i64 = 5000;

/// The same where the server has to look at each job of one of the names, tags, users and kinds that the filters
/// name, when one of these has few jobs.
async fn count_of_few(cx: &RequestContext, board: &[u8], filters: &Filters) -> Result<Option<i64>, Failure> {
    if !filters.are_indexed() || filters.since().is_some() {
        return Ok(None);
    }
    for field in ["kind", "name", "tag", "user"] {
        let of =
            Filters::read(&filters.values(field).map(|value| (field.to_owned(), value.to_vec())).collect());
        let is_one = !of.is_empty() && of.count_is_cheap();
        if is_one && count(cx, board, &of).await? <= FEW {
            return count(cx, board, filters).await.map(Some);
        }
    }
    Ok(None)
}

/// The field with the search as one would type it.
fn search_form(board: &[u8], filters: &Filters) -> Markup {
    let terms: Vec<String> =
        filters.fields().iter().map(|(field, value)| written(field, &shown(value))).collect();
    html! {
        form.filters.search action=(own("/find")) role="search" aria-label="Jobs" {
            (hidden("b", board))
            input type="search" name="q" value=(terms.join(" ")) list="suggestions" data-suggest="1" autocomplete="off"
                aria-label="Find jobs" placeholder="failed since 2h kind:IOError";
            button { "Find" }
        }
    }
}

/// Each filter, to be taken away; and the states, to be added or taken away.
fn chips(board: &[u8], filters: &Filters, rev: bool) -> Markup {
    let all = filters.fields();
    let without = |at: usize| {
        let kept = all.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, field)| *field);
        let rev = rev.then_some(("rev", &b"1"[..]));
        address("/jobs", &[("b", board)].into_iter().chain(kept).chain(rev).collect::<Vec<_>>())
    };
    let with = |state: &'static str| {
        let more = [("state", state.as_bytes())];
        address(
            "/jobs",
            &[("b", board)].into_iter().chain(all.iter().copied()).chain(more).collect::<Vec<_>>(),
        )
    };
    html! {
        p.chips {
            @for (at, (field, value)) in all.iter().enumerate() {
                a.chip.on href=(without(at)) {
                    bdi { (written(field, &shown(value))) } span aria-hidden="true" { " ×" } span.unseen { ", remove this filter" }
                }
            }
            @for state in STATES {
                @if !filters.has("state", state.as_bytes()) { a.chip href=(with(state)) { (written("state", state)) } }
            }
            @if !all.is_empty() { a href=(address("/jobs", &[("b", board)])) { "Clear" } }
        }
    }
}

fn form(cx: &RequestContext, board: &[u8], filters: &Filters) -> Markup {
    html! {
        form.filters action=(own("/jobs")) aria-label="Filters" {
            (hidden("b", board))
            fieldset {
                legend { "State" }
                @for state in STATES {
                    label { input type="checkbox" name="state" value=(state) checked[filters.has("state", state.as_bytes())]; " " (word(state)) }
                }
            }
            div.fields {
                label { "id " input name="id"; }
                @for (field, _) in NAMED {
                    @if filters.values(field).next().is_none() { label { (field) " " input name=(field); } }
                    @for value in filters.values(field) {
                        @if crate::names::is_plain(value) {
                            label { (field) " " input name=(field) value=(shown(value)); }
                        } @else {
                            (hidden(field, value)) span { (field) " " (name(value)) }
                        }
                    }
                }
                @if let Some(since) = cx.query.text("since") { (hidden("since", since.as_bytes())) }
                @for (field, _) in FLAGS {
                    label { input type="checkbox" name=(field) value="1" checked[cx.query.is_set(field)]; " " (field) }
                }
                label { input type="checkbox" name="rev" value="1" checked[cx.query.is_set("rev")]; " newest first" }
                button { "Show" }
            }
        }
    }
}

fn table(
    cx: &RequestContext,
    board: &[u8],
    filters: &Filters,
    listed: &Listed,
    count: Option<i64>,
) -> Markup {
    html! {
        @if listed.rows.is_empty() {
            p { @if listed.next.is_some() { "None so far. The next page looks further." } @else { "None." } }
        } @else {
            form action=(own("/confirm")) {
                (hidden("b", board))
                div.wide {
                    table.jobs.stacked {
                        caption.unseen { "Jobs" }
                        thead {
                            tr {
                                @if cx.may_write() { th scope="col" { input type="checkbox" data-all="id" aria-label="All of this page"; } }
                                @for head in ["Id", "State", "Name", "Queue", "Time", "Failure", "Attempt", "Worker", "Priority", "User", "Tags"] {
                                    th scope="col" { (head) }
                                }
                            }
                        }
                        tbody { @for row in &listed.rows { (table_row(cx, board, row)) } }
                    }
                }
                @if cx.may_write() { (actions(board, filters, count, &listed.rows)) }
            }
        }
    }
}

fn table_row(cx: &RequestContext, board: &[u8], row: &Record) -> Markup {
    let id = row.bytes("id");
    let (field, value) = crate::query::hidden_field("id", &id);
    html! {
        tr data-row=(value) {
            @if cx.may_write() { td { input type="checkbox" name=(field) value=(value) aria-label={ "Choose " (shown(&id)) }; } }
            th scope="row" { (job_link(board, &id)) }
            td data-label="State" { (state(&row.text("state"))) }
            td data-label="Name" { (name(&row.bytes("name"))) }
            td data-label="Queue" { (name(&row.bytes("queue"))) }
            td data-label="Time" { (moment(row)) }
            td.failing data-label="Failure" {
                @if row.has("kind") { b { (name(&row.bytes("kind"))) } }
                @if row.has("message") { ": " bdi { (short(headline(&row.bytes("message")).as_bytes(), 120)) } }
            }
            td.number data-label="Attempt" { (row.int("attempt")) }
            td data-label="Worker" { (name(&row.bytes("worker"))) @if row.has("progress") && !row.has("ended") { " " (progress(row.float("progress"))) } }
            td.number data-label="Priority" { (row.int("priority")) }
            td data-label="User" { (name(&row.bytes("user"))) }
            td data-label="Tags" { @for tag in row.list("tags") { (name(&crate::connection::reply::bytes(&tag))) " " } }
        }
    }
}

pub fn progress(percent: f64) -> Markup {
    // Rounded down: 100 % are for what is done.
    html! { progress max="100" value=(percent) aria-label="progress" {} " " span.percent { (percent.floor()) " %" } }
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

fn actions(board: &[u8], filters: &Filters, count: Option<i64>, rows: &[Record]) -> Markup {
    let verbs = ["return", "now", "requeue", "cancel", "release", "delete", "update"].into_iter();
    let verbs = verbs.filter(|verb| match *verb {
        "return" => rows.iter().any(|row| row.has("origin")),
        "now" => rows.iter().any(|row| row.text("state") == "scheduled"),
        _ => true,
    });
    // Of all matching, Run now is for the scheduled ones: how many these are is not counted here.
    let is_counted = |verb: &str| verb != "now" || filters.values("state").eq([&b"scheduled"[..]]);
    html! {
        fieldset.actions {
            legend { "Chosen jobs" }
            @for verb in verbs.clone() { button name="verb" value=(verb) { (super::confirm::verb_text(verb)) } " " }
        }
        @if filters.look_into_payloads() {
            p.note { "The console looked into these payloads, which the server does not: all matching jobs cannot be changed at once." }
        } @else if !filters.is_empty() {
            p.actions {
                @if let Some(count) = count { "All " (number(count)) " matching: " } @else { "All matching: " }
                @for verb in verbs {
                    @let fields: Vec<(&str, &[u8])> = [("b", board), ("verb", verb.as_bytes()), ("where", &b"1"[..])]
                        .into_iter().chain(filters.fields()).collect();
                    a.button href=(address("/confirm", &fields)) {
                        (super::confirm::verb_text(verb)) @if !is_counted(verb) { ": the scheduled ones" }
                    } " "
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
