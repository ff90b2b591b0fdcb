//! What an action would do, before it is done; and doing it.

use axum::body::Bytes;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{html, Markup};

use super::board::ROWS;
use super::layout::{hidden, secret};
use super::{answer, aside, Part, View};
use crate::actions::{for_filters, for_ids, ids, update, JobVerb, Plan, Words};
use crate::alike::{self, Alike};
use crate::app::RequestContext;
use crate::connection::board_command;
use crate::connection::reply::{bytes, int, list, text, Record};
use crate::failure::Failure;
use crate::filters::Filters;
use crate::format::{board_address, job_link, name, number, state};
use crate::names::{address, own, shown};
use crate::query::Query;

/// How many jobs the look of a dry run counts; the page shows further ones as "more".
const LOOK: &[u8] = b"10000";

/// One slice of the work itself: short enough for a busy server.
const SLICE: &[u8] = b"1000";

pub fn verb_text(verb: &str) -> &'static str {
    match verb {
        "requeue" => "Requeue",
        "return" => "Send back",
        "now" => "Run now",
        "cancel" => "Cancel",
        "release" => "Release",
        "delete" => "Delete",
        "update" => "Change",
        "pause" => "Pause",
        "resume" => "Resume",
        "settings" => "Change settings",
        "signal" => "Send the signal",
        "worker-quiet" => "Make quiet",
        "worker-resume" => "Resume the worker",
        "schedule-pause" => "Pause the schedule",
        "schedule-resume" => "Resume the schedule",
        "schedule-run" => "Run the schedule now",
        "schedule-del" => "Delete the schedule",
        "aside" => "Set aside",
        "aside-end" => "Bring back",
        _ => "Act",
    }
}

pub fn read_only(cx: &RequestContext) -> Result<(), Failure> {
    match cx.may_write() {
        true => Ok(()),
        false => Err(Failure::Refused("This console is read-only. Start it with --write to act.".into())),
    }
}

/// What would be done.
struct Forecast {
    /// The command; none when it would do nothing.
    words: Option<Words>,
    /// Of chosen jobs, those that the command names.
    fit: Option<Vec<Vec<u8>>>,
    /// Whether the answer carries these jobs itself, since the address does not name them.
    carried: bool,
    /// Whether the console does it itself, without a command.
    own: bool,
    told: Markup,
}

impl Forecast {
    fn of_one(words: Option<Words>, told: Markup) -> Self {
        Self { words, fit: None, carried: false, own: false, told }
    }

    /// Where the answer yes is sent: it names what is shown to be done, and nothing else.
    fn answer(&self, query: &Query) -> String {
        let named = |(field, value): &(&str, &[u8])| match &self.fit {
            Some(fit) if *field == "id" => fit.iter().any(|id| id == value),
            _ => true,
        };
        address("/act", &query.iter().filter(named).collect::<Vec<_>>())
    }
}

pub async fn get(cx: RequestContext) -> Response {
    if let (Some("settings"), Ok(board)) = (cx.query.text("verb"), cx.board()) {
        match super::settings::only_changed(&cx, &board).await {
            Ok(None) => {}
            Ok(Some(less)) => {
                let fields: Vec<(&str, &[u8])> = less.iter().collect();
                return Redirect::to(&address("/confirm", &fields)).into_response();
            }
            Err(failure) => return cx.fail(&failure),
        }
    }
    let view = view(&cx).await;
    answer(&cx, view, None)
}

async fn view(cx: &RequestContext) -> Result<View, Failure> {
    read_only(cx)?;
    let board = cx.board()?;
    let verb = cx.query.text("verb").unwrap_or_default();
    // An update that says nothing yet is asked what to change first.
    let forecast = match Plan::read(&board, &cx.query)? {
        Plan::Jobs { verb, ids } => of_jobs(cx, &board, verb, &ids).await,
        Plan::Where { verb, filters } => of_filters(cx, &board, verb, &filters).await,
        Plan::Alike { verb, alike } => of_failures(cx, &board, verb, &alike).await,
        Plan::Aside { alike, ends } => {
            let told = aside::forecast(cx, &board, &alike, ends).await;
            told.map(|told| Forecast { own: true, ..Forecast::of_one(None, told) })
        }
        Plan::One(words) => of_one(cx, &board, signed(cx, verb, words)).await,
    };
    let forecast = match forecast {
        Err(Failure::BadRequest(text)) if verb == "update" => Forecast::of_one(None, html! { p { (text) } }),
        other => other?,
    };
    let head = html! {
        h1 { (verb_text(verb)) ": is this right?" }
        (options(verb, &cx.query))
    };
    let body = html! {
        (forecast.told)
        @if let Some(words) = &forecast.words { (super::layout::command(words, 2000)) }
        @if forecast.words.is_some() || forecast.own {
            form method="post" action=(forecast.answer(&cx.query)) {
                (secret(&cx.session))
                @if forecast.carried { @for id in forecast.fit.iter().flatten() { (hidden("id", id)) } }
                button.primary { (verb_text(verb)) }
                " " a.button href=(back(&board, &cx.query)) { "Do nothing" }
            }
        } @else {
            p { a.button href=(back(&board, &cx.query)) { "Back" } }
        }
    };
    Ok(View {
        title: verb_text(verb).into(),
        board: Some(board),
        place: "",
        head,
        parts: vec![Part { id: "forecast", body }],
    })
}

/// Where one goes from here.
fn back(board: &[u8], query: &Query) -> String {
    let ids: Vec<&[u8]> = query.all("id").collect();
    if query.any("alike").is_some() {
        return board_address("/failures", board);
    }
    match (query.text("verb").unwrap_or_default(), ids.as_slice()) {
        ("settings", _) => super::settings::place_address(board, query),
        ("worker-quiet" | "worker-resume", _) => board_address("/workers", board),
        ("schedule-del", _) => board_address("/schedules", board),
        (verb, _) if verb.starts_with("schedule") => {
            super::schedule::schedule_address(board, query.bytes("schedule").unwrap_or_default())
        }
        ("delete", [_]) => board_address("/jobs", board),
        (_, [id]) => address("/job", &[("b", board), ("id", id)]),
        ("pause" | "resume", _) if query.is_set("group") || query.is_set("limit") => {
            board_address("/limits", board)
        }
        ("pause" | "resume", _) => board_address("/board", board),
        _ => {
            let filters = Filters::read(query);
            let fields: Vec<_> = [("b", board)].into_iter().chain(filters.fields()).collect();
            address("/jobs", &fields)
        }
    }
}

/// The options of a verb, which change the forecast.
fn options(verb: &str, query: &Query) -> Markup {
    let value = |field: &str| shown(query.bytes(field).unwrap_or_default());
    let fields: &[&str] = match verb {
        "requeue" => &["to", "fresh"],
        "return" => &["fresh"],
        "cancel" => &["force"],
        "update" => &update::CHANGES.each_ref().map(|change| change.field),
        "pause" if query.is_set("limit") => &["for"],
        "pause" => &["for", "release"],
        _ => return html! {},
    };
    html! {
        form.filters action=(own("/confirm")) aria-label="Options" {
            @for (field, value) in query.iter() {
                @if !fields.contains(&field) { (hidden(field, value)) }
            }
            @for option in fields {
                @match *option {
                    _ if verb == "update" => @for change in update::CHANGES.iter().filter(|change| change.field == *option) {
                        label { (change.label) " " input name=(change.field) value=(value(change.field)) placeholder=(change.placeholder); }
                    },
                    "to" => label { "into the queue " input name="to" value=(value("to")) placeholder="as it is"; },
                    "force" => label { input type="checkbox" name="force" value="1" checked[query.is_set("force")]; " also take running jobs from their workers (FORCE)" },
                    "fresh" => label { input type="checkbox" name="fresh" value="1" checked[query.is_set("fresh")]; " do all steps again (FRESH)" },
                    "for" => label { "for this many seconds " input name="for" inputmode="decimal" value=(value("for")) placeholder="until resumed"; },
                    _ => label { input type="checkbox" name="release" value="1" checked[query.is_set("release")]; " take running jobs back (RELEASE)" },
                }
            }
            button { "Dry run" }
        }
    }
}

/// A signal says who sends it: whoever is signed in.
fn signed(cx: &RequestContext, verb: &str, words: Words) -> Words {
    match verb {
        "signal" => words.with(&[b"SENDER", cx.session.user.as_bytes()]),
        _ => words,
    }
}

async fn of_jobs(
    cx: &RequestContext,
    board: &[u8],
    verb: JobVerb,
    ids: &[Vec<u8>],
) -> Result<Forecast, Failure> {
    let mut command = board_command("MGET", board);
    command.arg(ids.len()).arg(ids).arg("FIELDS").arg(2).arg("state").arg("worker");
    let states: Vec<Option<String>> = list(cx.ask(board, command).await?)
        .into_iter()
        .map(|record| Record::read(record).map(|record| record.text("state")))
        .collect();
    let force = cx.query.is_set("force");
    let outcome = |state: &Option<String>| match state {
        Some(state) => match update::refusal(&cx.query, state).filter(|_| verb == JobVerb::Update) {
            Some(refusal) => Err(refusal),
            None => verb.outcome(state, force),
        },
        None => Err("the board does not know it"),
    };
    let fit: Vec<Vec<u8>> = ids
        .iter()
        .zip(&states)
        .filter(|(_, state)| outcome(state).is_ok())
        .map(|(id, _)| id.clone())
        .collect();
    let words = match fit.is_empty() {
        true => None,
        false => Some(for_ids(board, verb, &fit, &cx.query)?),
    };
    let told = html! {
        p { "Dry run: " b #fits { (fit.len()) " of " (ids.len()) } " jobs." @if fit.len() < ids.len() { " The others are passed over." } }
        @if ids.len() > ROWS { p.note { "The first " (ROWS) " of them:" } }
        table {
            thead { tr { th scope="col" { "Job" } th scope="col" { "is" } th scope="col" { "becomes" } } }
            tbody {
                @for (id, found) in ids.iter().zip(&states).take(ROWS) {
                    tr {
                        th scope="row" { (job_link(board, id)) }
                        td { @if let Some(found) = found { (state(found)) } }
                        td { @match outcome(found) { Ok(text) => (text), Err(text) => span.faint { "passed over: " (text) } } }
                    }
                }
            }
        }
    };
    Ok(Forecast { words, fit: Some(fit), carried: false, own: false, told })
}

/// The jobs of a group of failures, as they are now.
async fn of_failures(
    cx: &RequestContext,
    board: &[u8],
    verb: JobVerb,
    alike: &Alike,
) -> Result<Forecast, Failure> {
    let (newest, _) = alike::newest(cx, board).await?;
    let ids: Vec<Vec<u8>> = newest.iter().filter(|row| alike.holds(row)).map(|row| row.bytes("id")).collect();
    if ids.is_empty() {
        return Ok(Forecast::of_one(None, html! { p { "No job has this failure any more." } }));
    }
    let forecast = of_jobs(cx, board, verb, &ids).await?;
    Ok(Forecast { carried: true, ..forecast })
}

async fn of_filters(
    cx: &RequestContext,
    board: &[u8],
    verb: JobVerb,
    filters: &Filters,
) -> Result<Forecast, Failure> {
    let dry = |count| for_filters(board, verb, filters, &cx.query, &[b"COUNT", count, b"DRYRUN"]);
    let reply = match cx.ask(board, dry(LOOK)?.command()).await {
        // Where `max-batch` is lower: a look at fewer. Several would not know what the ones before take of a bound.
        Err(Failure::Server(text)) if text.contains("COUNT must be") => {
            cx.ask(board, dry(SLICE)?.command()).await
        }
        reply => reply,
    };
    let reply = list(reply?);
    let count = reply.first().and_then(int).unwrap_or(0);
    let whole = reply.get(1).map(bytes).is_none_or(|cursor| cursor == b"0");
    let held = list(reply.get(2).cloned().unwrap_or_default());
    let words = for_filters(board, verb, filters, &cx.query, &[b"COUNT", SLICE])?;
    let told = html! {
        p { "Dry run: " b #fits { @if whole { (number(count)) } @else { "more than " (number(count)) } } " jobs." }
        dl.facts { @for (field, value) in filters.fields() { dt { (field) } dd { (name(value)) } } }
        @if !held.is_empty() {
            p { (held.len()) " stay as they are, because of other jobs: " @for id in held.iter().take(20) { (job_link(board, &bytes(id))) " " } }
        }
        p.faint { "Jobs that match only later stay as they are. The console takes 1,000 jobs at a time; you can stop it in between." }
    };
    Ok(Forecast::of_one((count > 0 || !whole).then_some(words), told))
}

async fn of_one(cx: &RequestContext, board: &[u8], words: Words) -> Result<Forecast, Failure> {
    let told = match cx.query.text("verb").unwrap_or_default() {
        "pause" | "resume" if cx.query.is_set("limit") => {
            let limit = cx.query.bytes("limit").unwrap_or_default();
            html! { p { "This is about all jobs that count against the shared limit " (name(limit)) ", in whatever queue." } }
        }
        "pause" | "resume" => claims(cx, board).await?,
        "settings" => super::settings::forecast(cx, board).await?,
        "signal" => html! {
            p { "The signal " (name(cx.query.bytes("signal").unwrap_or_default())) " for " @for id in cx.query.all("id") { (job_link(board, id)) " " } }
            p.faint { "The first signal of a name counts: it cannot be taken back." }
        },
        verb @ ("worker-quiet" | "worker-resume") => {
            let worker = cx.query.bytes("worker").unwrap_or_default();
            html! {
                p {
                    "The worker " (name(worker))
                    @if verb == "worker-quiet" { " gets no more jobs and keeps those that it holds, until it is resumed or its registration ends." }
                    @else { " gets jobs again." }
                }
            }
        }
        _ => html! { p { "Schedule " (name(cx.query.bytes("schedule").unwrap_or_default())) } },
    };
    Ok(Forecast::of_one(Some(words), told))
}

/// How many jobs a pause or its end is about.
async fn claims(cx: &RequestContext, board: &[u8]) -> Result<Markup, Failure> {
    let mut counts = Vec::new();
    for state in ["ready", "claimed"] {
        let mut command = board_command("COUNT", board);
        command.arg("STATE").arg(state);
        for (field, word) in [("queue", "QUEUE"), ("group", "GROUP")] {
            if let Some(value) = cx.query.bytes(field) {
                command.arg(word).arg(value);
            }
        }
        counts.push(int(&cx.ask(board, command).await?).unwrap_or(0));
    }
    let place = match (cx.query.bytes("queue"), cx.query.bytes("group")) {
        (None, _) => html! { "the whole board" },
        (Some(queue), None) => html! { "the queue " (name(queue)) },
        (Some(queue), Some(group)) => html! { "the group " (name(group)) " of the queue " (name(queue)) },
    };
    Ok(html! {
        p { "This is about " (place) ": " b #fits { (number(counts[0])) " ready" } " and " (number(counts[1])) " running jobs." }
    })
}

/// Does what the address says, for somebody whose form it is.
pub async fn post(cx: RequestContext, body: Bytes) -> Response {
    match act(&cx, &Query::read(&body)).await {
        Ok(to) => Redirect::to(&to).into_response(),
        Err(failure) => cx.fail(&failure),
    }
}

/// Refuses a form that was not made for this session.
pub fn own_form(cx: &RequestContext, form: &Query) -> Result<(), Failure> {
    match form.bytes("csrf").is_some_and(|csrf| cx.session.owns(csrf)) {
        true => Ok(()),
        false => Err(Failure::Refused("This form belongs to another session. Nothing was changed.".into())),
    }
}

/// Sends a command that changes something, and notes that it was sent.
pub async fn send(cx: &RequestContext, board: &[u8], words: &Words) -> Result<redis::Value, Failure> {
    let reply = cx.ask(board, words.command()).await;
    let outcome = match &reply {
        Ok(reply) => Ok(answer_text(reply)),
        Err(failure) => Err(failure.text()),
    };
    let outcome = outcome.as_ref().map(String::as_str).map_err(String::as_str);
    cx.app.audit.note(&cx.session.user, board, &words.text(), outcome);
    reply
}

async fn act(cx: &RequestContext, form: &Query) -> Result<String, Failure> {
    read_only(cx)?;
    own_form(cx, form)?;
    let board = cx.board()?;
    let verb = cx.query.text("verb").unwrap_or_default();
    let words = match Plan::read(&board, &cx.query)? {
        Plan::Where { verb: kind, filters } => return begin(cx, board, verb, kind, filters),
        Plan::Aside { alike, ends } => {
            cx.session.say(aside::act(cx, &board, &alike, ends).await?);
            return Ok(back(&board, &cx.query));
        }
        Plan::One(words) => signed(cx, verb, words),
        Plan::Jobs { verb, ids } => for_ids(&board, verb, &ids, &cx.query)?,
        Plan::Alike { verb, .. } => for_ids(&board, verb, &ids(form)?, &cx.query)?,
    };
    let reply = send(cx, &board, &words).await?;
    cx.session.say(format!("{}: {}", verb_text(verb), answer_text(&reply)));
    Ok(back(&board, &cx.query))
}

/// The server's reply in a few words.
fn answer_text(reply: &redis::Value) -> String {
    match list(reply.clone()).as_slice() {
        [] => match text(reply).as_str() {
            "OK" => "done.".into(),
            "" => "nothing was done.".into(),
            other => format!("{other}."),
        },
        [count, cursor, ..] if int(count).is_some() && text(cursor) == "0" => {
            format!("{} done.", int(count).unwrap_or(0))
        }
        words => {
            let mut told: Vec<String> = words.iter().map(text).collect();
            let all = told.len();
            told.dedup();
            match told.as_slice() {
                [word] if all > 1 => format!("{all} {word}."),
                _ => format!("{}.", told.join(", ")),
            }
        }
    }
}

/// Begins slice after slice; the page of the run tells how far it is.
fn begin(
    cx: &RequestContext,
    board: Vec<u8>,
    verb: &str,
    kind: JobVerb,
    filters: Filters,
) -> Result<String, Failure> {
    let first = for_filters(&board, kind, &filters, &cx.query, &[b"COUNT", SLICE])?;
    let (query, of) = (cx.query.clone(), board.clone());
    let slice = move |cursor: &[u8]| {
        let words = for_filters(&of, kind, &filters, &query, &[b"COUNT", SLICE, b"CURSOR", cursor]);
        words.expect("what has been read once").command()
    };
    cx.app.audit.note(&cx.session.user, &board, &first.text(), Ok("begun, slice by slice"));
    let title = verb_text(verb).to_owned();
    let run = cx.session.runs.begin(cx.session.link.clone(), board.clone(), title, first.text(), slice);
    Ok(address("/run", &[("b", &board), ("run", run.id.to_string().as_bytes())]))
}
