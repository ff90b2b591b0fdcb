//! One schedule: its times, its past and coming runs; and the form that makes or changes one.

use axum::body::Bytes;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{html, Markup};

use super::compose::{payload, payload_field, OF_QUESTION};
use super::layout::{another_command, has_shown, hidden, secret, shown_command};
use super::{answer, Part, View};
use crate::actions::Words;
use crate::app::RequestContext;
use crate::connection::board_command;
use crate::connection::reply::{list, text, Record};
use crate::failure::Failure;
use crate::format::{board_address, job_link, name, now, soon, span, state, when};
use crate::names::{address, own, short, shown};
use crate::query::Query;

/// Past runs that are looked for.
const RUNS: i64 = 20;

/// Coming runs that are shown.
const COMING: i64 = 5;

/// Fields of the form, the words of JOB.SCHEDULE that they stand behind, and what they mean.
const FIELDS: [(&str, &str, &str); 11] = [
    ("every", "EVERY", "15m, 1h, 1d"),
    ("cron", "CRON", "or times: 30 2 * * MON-FRI"),
    ("tz", "TZ", "UTC; Europe/Berlin"),
    ("queue", "QUEUE", "default"),
    ("name", "NAME", "none"),
    ("priority", "PRIORITY", "0"),
    ("jitter", "JITTER", "none; 5m"),
    ("max", "MAX", "no limit"),
    ("overlap", "OVERLAP", "allow, skip or replace"),
    ("backlog", "BACKLOG", "one, skip, all, or how many"),
    ("timeout", "TIMEOUT", "as set; 10m"),
];

/// Where a schedule is shown.
pub fn schedule_address(board: &[u8], id: &[u8]) -> String {
    address("/schedule", &[("b", board), ("schedule", id)])
}

/// The id of the run with this number.
pub fn run_id(schedule: &[u8], number: i64) -> Vec<u8> {
    [b"@", schedule, b"@", number.to_string().as_bytes()].concat()
}

async fn read(cx: &RequestContext, board: &[u8], id: &[u8]) -> Result<Option<Record>, Failure> {
    let mut command = board_command("SCHEDULE GET", board);
    command.arg(id);
    Ok(Record::read(cx.ask(board, command).await?))
}

pub async fn view(cx: &RequestContext) -> Result<View, Failure> {
    let board = cx.board()?;
    let id = cx.query.bytes("schedule").unwrap_or_default().to_vec();
    let missing = || Failure::NotFound("The board has no schedule of this id.".into());
    let row = read(cx, &board, &id).await?.ok_or_else(missing)?;
    let act = |verb: &'static [u8]| address("/confirm", &[("b", &board), ("verb", verb), ("schedule", &id)]);
    let told = html! {
        @if cx.may_write() {
            p.actions {
                a.button href=(address("/schedule/edit", &[("b", &board), ("schedule", &id)])) { "Edit" } " "
                @if row.text("state") == "paused" { a.button href=(act(b"schedule-resume")) { "Resume" } }
                @else { a.button href=(act(b"schedule-pause")) { "Pause" } }
                " " a.button href=(act(b"schedule-run")) { "Run now" } " " a.button href=(act(b"schedule-del")) { "Delete" }
            }
        }
        dl.facts {
            @for (field, value) in row.fields() {
                @if field != "payload" { dt { (field) } dd { (fact(&board, &id, field, value)) } }
            }
        }
    };
    let payload = super::job::content(&row.bytes("payload"));
    Ok(View {
        title: format!("Schedule {}", shown(&id)),
        head: html! { h1 { "Schedule " (name(&id)) } },
        place: "Schedules",
        parts: vec![
            Part { id: "coming", body: html! { h2 { "Coming runs" } (coming(&row)) } },
            Part::new("runs", "Past runs", runs(cx, &board, &id, row.int("last")).await)?,
            Part { id: "record", body: html! { h2 { "Schedule" } (told) } },
            Part { id: "data", body: html! { h2 { "Payload" } (payload) } },
        ],
        board: Some(board),
    })
}

fn fact(board: &[u8], id: &[u8], field: &str, value: &redis::Value) -> Markup {
    let number = crate::connection::reply::int(value).unwrap_or(0);
    html! {
        @match field {
            "next" | "due" | "start" | "intended" => (when(number)),
            "end" if number >= 0 => (when(number)),
            "every" | "jitter" | "delay" | "lease" | "timeout" if number >= 0 => (span(number)),
            "last" => (job_link(board, &run_id(id, number))),
            _ => bdi { (text(value)) },
        }
    }
}

/// The next times, as the server will find them: it reads expressions with the same code.
fn coming(row: &Record) -> Markup {
    let next = row.int("next");
    let end = row.maybe_int("end").filter(|end| *end >= 0).unwrap_or(i64::MAX);
    let left = row.maybe_int("max").filter(|max| *max >= 0).map_or(COMING, |max| max - row.int("fired"));
    let most = COMING.min(left.max(1)) as usize;
    let times = match row.bytes("cron") {
        // A zone that this console does not know leaves the time that the server has found.
        cron if !cron.is_empty() => {
            board::cron_times(&cron, &row.bytes("tz"), next, most).unwrap_or(vec![next])
        }
        _ => (0..most as i64).map(|step| next.saturating_add(step * row.int("every"))).collect(),
    };
    html! {
        @if !row.has("next") { p { "None: it is " (row.text("state")) "." } } @else {
            ol.plain { @for at in times.into_iter().filter(|at| *at <= end) { li { (when(at)) } } }
            @if row.int("jitter") > 0 { p.note { "Each is posted up to " (span(row.int("jitter"))) " later." } }
        }
    }
}

/// The next times of an expression in the form, or why the server will refuse it.
fn foreseen(form: &Query) -> Markup {
    let field = |name: &str| form.bytes(name).unwrap_or_default().trim_ascii().to_vec();
    let (cron, zone) = (field("cron"), field("tz"));
    if cron.is_empty() {
        return html! {};
    }
    let why = match board::cron_times(&cron, &zone, now(), COMING as usize) {
        Ok(times) => {
            return html! {
                p { "It would run at:" }
                ol.plain #foreseen { @for at in times { li { (when(at)) } } }
            }
        }
        Err(board::CronFault::Expression(why)) => format!("This is no cron expression: {why}."),
        Err(board::CronFault::Zone) => format!("There is no time zone {}.", shown(&zone)),
        Err(board::CronFault::NoTime) => "This expression names no time that ever comes.".into(),
    };
    html! { p.refused { (why) } }
}

/// What became of the last runs, as far as their records are kept.
async fn runs(cx: &RequestContext, board: &[u8], id: &[u8], last: i64) -> Result<Markup, Failure> {
    let ids: Vec<Vec<u8>> = (1.max(last - RUNS + 1)..=last).rev().map(|number| run_id(id, number)).collect();
    if ids.is_empty() {
        return Ok(html! { p { "None yet." } });
    }
    let mut command = board_command("MGET", board);
    command.arg(ids.len()).arg(&ids);
    command.arg("FIELDS").arg(6).arg(&["state", "intended", "claimed", "ended", "kind", "message"]);
    let found = list(cx.ask(board, command).await?);
    Ok(html! {
        div.wide {
            table.stacked {
                caption.unseen { "Past runs, newest first" }
                thead { tr { @for head in ["Run", "State", "Due", "Took", "Failure"] { th scope="col" { (head) } } } }
                tbody {
                    @for (id, row) in ids.iter().zip(found.into_iter().map(Record::read)) {
                        tr {
                            th scope="row" { (job_link(board, id)) }
                            @match row {
                                None => { td data-label="State" { span.faint { "no longer kept" } } td {} td {} td {} },
                                Some(row) => {
                                    td data-label="State" { (state(&row.text("state"))) }
                                    td data-label="Due" { (soon(row.int("intended"))) }
                                    td data-label="Took" { @if row.has("ended") && row.has("claimed") { (span((row.int("ended") - row.int("claimed")).max(0))) } }
                                    td data-label="Failure" { @if row.has("kind") { b { (name(&row.bytes("kind"))) } ": " (short(&row.bytes("message"), 120)) } }
                                },
                            }
                        }
                    }
                }
            }
        }
    })
}

pub async fn get_edit(cx: RequestContext) -> Response {
    let view = edit(&cx).await;
    answer(&cx, view, None)
}

async fn edit(cx: &RequestContext) -> Result<View, Failure> {
    super::confirm::read_only(cx)?;
    let board = cx.board()?;
    let id = cx.query.bytes("schedule").unwrap_or_default().to_vec();
    let row = if id.is_empty() { None } else { read(cx, &board, &id).await? };
    let value = |field: &str| match row.as_ref().and_then(|row| row.get(field)) {
        // Without a unit it would be milliseconds.
        Some(value) if ["every", "jitter", "timeout"].contains(&field) => match text(value).as_str() {
            "-1" | "0" => String::new(),
            ms => format!("{ms}ms"),
        },
        Some(value) => text(value),
        None => String::new(),
    };
    let bytes = row.as_ref().map(|row| row.bytes("payload")).unwrap_or_default();
    let body = html! {
        form.compose method="post" action=(own(&cx.here)) {
            (secret(&cx.session))
            @if row.is_none() { label { "id" input name="id" required; } }
            div.fields {
                @for (field, _, placeholder) in FIELDS {
                    label { (field) " " input name=(field) value=(value(field)) placeholder=(placeholder) autocomplete="off"; }
                }
            }
            (payload_field(&bytes))
            button.primary { "Preview" }
            @if row.is_some() { p.note { "Only what differs is sent. The same times again change nothing; other times count from now on." } }
        }
    };
    Ok(View {
        title: "Schedule".into(),
        head: html! { h1 { @if row.is_some() { "Edit the schedule " (name(&id)) } @else { "New schedule on " (name(&board)) } } },
        board: Some(board),
        place: "Schedules",
        parts: vec![Part { id: "compose", body }],
    })
}

pub async fn post_edit(cx: RequestContext, body: Bytes) -> Response {
    match done(&cx, &Query::read(&body)).await {
        Ok(Ok(to)) => Redirect::to(&to).into_response(),
        Ok(Err(view)) => answer(&cx, Ok(view), None),
        Err(failure) => cx.fail(&failure),
    }
}

/// Where to go when it is done, or the question before that.
async fn done(cx: &RequestContext, form: &Query) -> Result<Result<String, View>, Failure> {
    super::confirm::read_only(cx)?;
    super::confirm::own_form(cx, form)?;
    let board = cx.board()?;
    let id = cx.query.bytes("schedule").or(form.bytes("id")).unwrap_or_default().to_vec();
    if id.is_empty() {
        return Err(Failure::BadRequest("Give the schedule an id.".into()));
    }
    let row = read(cx, &board, &id).await?;
    let words = command(&board, &id, row.as_ref(), form)?;
    if form.is_set("sure") && has_shown(form, &words) {
        super::confirm::send(cx, &board, &words).await?;
        cx.session
            .say(if row.is_some() { "The schedule is changed." } else { "The schedule is made." }.into());
        return Ok(Ok(schedule_address(&board, &id)));
    }
    let body = html! {
        (another_command(form))
        p { @if row.is_some() { "This changes the schedule " (name(&id)) "." } @else { "This makes the schedule " (name(&id)) "." } }
        (foreseen(form))
        (super::layout::command(&words, 4000))
        form method="post" action=(own(&cx.here)) {
            (secret(&cx.session))
            (shown_command(&words))
            @for (field, value) in form.iter() { @if !OF_QUESTION.contains(&field) { (hidden(field, value)) } }
            button.primary name="sure" value="1" { "Save the schedule" }
            " " a.button href=(board_address("/schedules", &board)) { "Do nothing" }
        }
    };
    Ok(Err(View {
        title: "Schedule".into(),
        head: html! { h1 { "Save the schedule: is this right?" } },
        board: Some(board),
        place: "Schedules",
        parts: vec![Part { id: "forecast", body }],
    }))
}

/// `JOB.SCHEDULE SET` with what differs from the schedule as it is.
fn command(board: &[u8], id: &[u8], row: Option<&Record>, form: &Query) -> Result<Words, Failure> {
    let mut words = Words::of(&[b"JOB.SCHEDULE", b"SET", board, id, &payload(form)?]);
    let given = |field: &str| form.any(field).map(<[u8]>::trim_ascii);
    let is_given = |field| given(field).is_some_and(|value| !value.is_empty());
    for (field, word, placeholder) in FIELDS {
        let value = given(field).unwrap_or_default();
        let old = row.map(|row| row.bytes(field)).unwrap_or_default();
        let is_replaced = match field {
            "every" => is_given("cron"),
            "cron" | "tz" => is_given("every") && !is_given("cron"),
            _ => false,
        };
        let is_nothing =
            ["every", "jitter", "timeout"].contains(&field) && [&b"-1"[..], b"0"].contains(&&old[..]);
        let is_default = placeholder.split([',', ';']).next().is_some_and(|word| word.as_bytes() == old);
        let is_emptied = given(field).is_some_and(<[u8]>::is_empty) && !old.is_empty();
        if is_emptied && !is_nothing && !is_default && !is_replaced {
            let text = format!("Without a value {field} would stay {}: write what it is to be.", shown(&old));
            return Err(Failure::BadRequest(text));
        }
        // The form has names as they are shown.
        let same =
            value == shown(&old).trim().as_bytes() || value.strip_suffix(b"ms").is_some_and(|ms| ms == old);
        if !value.is_empty() && !same {
            words = words.with(&[word.as_bytes(), value]);
        }
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_set() {
        let bulk = |text: &str| redis::Value::BulkString(text.as_bytes().to_vec());
        let row = Record::read(redis::Value::Map(vec![
            (bulk("every"), redis::Value::Int(60_000)),
            (bulk("queue"), bulk("q")),
        ]))
        .unwrap();
        let form = Query::read(b"payload=x&every=60000ms&queue=other&name=n&cron=");
        assert_eq!(
            command(b"b", b"s", Some(&row), &form).unwrap().text(),
            "JOB.SCHEDULE SET b s x QUEUE other NAME n"
        );
        // Emptied, it would stay as it is, but for what is replaced and what is nothing else.
        let zoned = Record::read(redis::Value::Map(vec![
            (bulk("cron"), bulk("0 2 * * *")),
            (bulk("tz"), bulk("Europe/Berlin")),
            (bulk("queue"), bulk("default")),
            (bulk("name"), bulk("a\n")),
            (bulk("jitter"), redis::Value::Int(0)),
        ]))
        .unwrap();
        let set = |form: &str| command(b"b", b"s", Some(&zoned), &Query::read(form.as_bytes()));
        assert!(set("payload=x&cron=0+2+*+*+*&tz=").is_err());
        assert_eq!(
            set("payload=x&every=1h&cron=&tz=&queue=&name=a%5Cx0a&jitter=").unwrap().text(),
            "JOB.SCHEDULE SET b s x EVERY 1h"
        );
        let text = command(b"b", b"s", None, &Query::read(b"payload=&every=15m")).unwrap().text();
        assert_eq!(text, "JOB.SCHEDULE SET b s \"\" EVERY 15m");
    }
}
