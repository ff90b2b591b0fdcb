//! One job: its record, why it does not run, what happened to it, and what it hangs together with.

use axum::http::{header, HeaderValue};
use axum::response::{IntoResponse, Response};
use futures_util::future::try_join3;
use maud::{html, Markup};
use redis::Value;

use super::layout::hidden;
use super::{failure_card, graph, output, timeline, Memory, Part, View};
use crate::actions::JobVerb;
use crate::app::RequestContext;
use crate::connection::board_command;
use crate::connection::reply::{bytes, records, Record};
use crate::failure::Failure;
use crate::format::{job_link, jobs_address, name, number, size, span, state, when};
use crate::names::{address, hex, own, shown};

/// Everything but payload, result and steps, which may be large.
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

const TIMES: [&str; 8] = ["deadline", "posted", "due", "claimed", "ended", "modified", "intended", "until"];

/// Times in the reasons of JOB.EXPLAIN.
const MOMENTS: [&str; 9] = ["due", "until", "at", "since", "ended", "kept", "claimed", "deadline", "rest"];

/// So much of a payload is shown; all of it can be downloaded.
const SHOWN: usize = 16 * 1024;

/// So much of a step's value is shown, and so many steps, the last ones.
const STEP_SHOWN: usize = 1024;
const STEPS: usize = 200;

/// Fetching more than this at each report of a worker would be a burden.
const LARGE: usize = 64 * 1024;

pub fn id(cx: &RequestContext) -> Result<Vec<u8>, Failure> {
    let named = cx.query.bytes("id").map(<[u8]>::to_vec);
    named.ok_or_else(|| Failure::BadRequest("The address names no job (id=…).".into()))
}

pub async fn view(cx: &RequestContext, memory: &mut Memory) -> Result<View, Failure> {
    let (board, id) = (cx.board()?, id(cx)?);
    let mut get = board_command("GET", &board);
    get.arg(&id).arg("FIELDS").arg(FIELDS.len()).arg(&FIELDS);
    let record = Record::read(cx.ask(&board, get).await?);
    let explain = explain(cx, &board, &id).await;
    let Some(record) = record else {
        return gone(board, &id, explain);
    };
    let entries = history(cx, &board, &id).await;
    let word = record.text("state");
    let top = html! {
        (state_line(&record))
        @if cx.may_write() { (actions(&board, &id, &word, record.has("origin"))) }
        @if let Ok(entries) = &entries { @if let Some(card) = failure_card::draw(&board, &record, entries) { (card) } }
        @else if let Some(card) = failure_card::draw(&board, &record, &[]) { (card) }
    };
    let mut parts = vec![
        Part { id: "now", body: top },
        Part { id: "awaits", body: awaits(cx, &board, &id, &record) },
        Part::new("explain", why(&word), explain.map(|told| told.unwrap_or_else(|| html! {})))?,
        Part::new("history", "Timeline", line(cx, &board, entries, &record).await)?,
        Part { id: "record", body: facts(&board, &record) },
        Part::new("graph", "Dependencies", graph::draw(cx, &board, &record).await)?,
    ];
    parts.push(Part::new("output", "", output::draw(cx, &board, &id, &mut memory.output).await)?);
    let known = (record.int("version"), record.text("state"));
    let stale = match &memory.data {
        Some(told) if memory.large => told.1 != known.1,
        told => told.as_ref() != Some(&known),
    };
    if stale {
        memory.data = Some(known);
        parts.push(Part::new("data", "", data(cx, &board, &id, memory).await)?);
    }
    let head = html! { h1 { "Job " (name(&id)) } };
    Ok(View { title: shown(&id), board: Some(board), place: "Job", head, parts })
}

/// A job without a record: its tombstone may still tell.
fn gone(board: Vec<u8>, id: &[u8], explain: Result<Option<Markup>, Failure>) -> Result<View, Failure> {
    let Some(told) = explain? else {
        return Err(Failure::NotFound("The board has no job of this id.".into()));
    };
    Ok(View {
        title: shown(id),
        head: html! { h1 { "Job " (name(id)) } },
        board: Some(board),
        place: "Job",
        parts: vec![
            Part { id: "record", body: html! { p { "Its record has gone." } } },
            Part { id: "explain", body: told },
        ],
    })
}

/// What EXPLAIN answers for a job in this state.
fn why(state: &str) -> &'static str {
    match state {
        "claimed" => "What it is doing",
        "complete" | "failed" | "cancelled" | "trashed" => "How it ended",
        _ => "Why isn't it running?",
    }
}

/// Only what a job in this state can have done to it.
fn actions(board: &[u8], id: &[u8], state: &str, dead: bool) -> Markup {
    let verbs = [
        ("requeue", JobVerb::Requeue),
        ("return", JobVerb::Return),
        ("cancel", JobVerb::Cancel),
        ("release", JobVerb::Release),
        ("delete", JobVerb::Delete),
        ("update", JobVerb::Update),
    ];
    html! {
        p.actions {
            @for (word, verb) in verbs {
                @if verb.outcome(state, false).is_ok() && (dead || verb != JobVerb::Return) {
                    a.button href=(address("/confirm", &[("b", board), ("verb", word.as_bytes()), ("id", id)])) {
                        (super::confirm::verb_text(word))
                    } " "
                }
            }
            (super::compose::links(board, id, state))
        }
    }
}

/// The signals that the job waits for, with a form for each missing one, and its children.
fn awaits(cx: &RequestContext, board: &[u8], id: &[u8], record: &Record) -> Markup {
    if !record.has("awaits") {
        return html! {};
    }
    let wait = record.record("awaits");
    html! {
        @if wait.has("signals") { (awaited_signals(cx, board, id, &wait)) }
        @if wait.has("children") { (awaited_children(board, id, record, &wait.record("children"))) }
    }
}

/// Times here are absolute, so that a refresh changes nothing and keeps what the reader has typed.
fn awaited_signals(cx: &RequestContext, board: &[u8], id: &[u8], wait: &Record) -> Markup {
    let missing = wait.list("missing");
    let then = match wait.text("ontimeout").as_str() {
        "fail" => "it fails",
        "cancel" => "it is cancelled",
        _ => "it runs without them",
    };
    html! {
        h2 { "Waits for signals" }
        p {
            @if wait.int("any") == 1 && missing.len() > 1 { "One of them is enough. " }
            "Since " (crate::format::at(wait.int("since")))
            @if wait.has("until") { ", until " (crate::format::at(wait.int("until"))) "; then " (then) "." }
            @else { ", without end." }
        }
        ul {
            @for signal in missing.iter().map(bytes) {
                li {
                    (name(&signal))
                    @if cx.may_write() { (signal_forms(board, id, &signal)) }
                }
            }
        }
    }
}

/// How many of its children have not ended, and what becomes of the job when one fails.
fn awaited_children(board: &[u8], id: &[u8], record: &Record, wait: &Record) -> Markup {
    let of_state = |state: &'static str| jobs_address(board, &[("parent", id), ("state", state.as_bytes())]);
    let then = match wait.text("onfailure").as_str() {
        "cancel" => "it is cancelled when one fails",
        "fail" => "it fails when one fails",
        "run" => "it runs when all have ended, also without success",
        _ => "it waits on when one fails, until that is requeued or deleted",
    };
    html! {
        h2 { "Waits for its children" }
        p {
            (number(record.int("pending"))) " of " (number(record.int("children"))) " have not ended"
            @if wait.int("since") > 0 { ", since " (crate::format::at(wait.int("since"))) }
            "; " (then) ". "
            a href=(jobs_address(board, &[("parent", id)])) { "All children" }
            @if record.int("unsuccessful") > 0 {
                ", " (number(record.int("unsuccessful"))) " without success: "
                a href=(of_state("failed")) { "failed" } ", "
                a href=(of_state("cancelled")) { "cancelled" } ", "
                a href=(of_state("trashed")) { "trashed" }
            }
        }
    }
}

fn signal_forms(board: &[u8], id: &[u8], signal: &[u8]) -> Markup {
    let fields = || {
        html! {
            (hidden("b", board)) (hidden("verb", b"signal")) (hidden("id", id)) (hidden("signal", signal))
        }
    };
    html! {
        form.filters action=(own("/confirm")) aria-label={ "Answer " (shown(signal)) } {
            (fields())
            button name="value" value="true" { "Approve" } " "
            button name="value" value="false" { "Reject" }
        }
        form.filters action=(own("/confirm")) aria-label={ "Value for " (shown(signal)) } {
            (fields())
            label { "another value " input name="value"; }
            button { "Send" }
        }
    }
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

fn facts(board: &[u8], record: &Record) -> Markup {
    html! {
        h2 { "Record" }
        dl.facts {
            @for (field, value) in record.fields().filter(|(field, _)| *field != "awaits") {
                dt { (field) }
                dd { (fact(board, field, value)) }
            }
        }
    }
}

fn fact(board: &[u8], field: &str, value: &Value) -> Markup {
    let list = |filter: &'static str| html! { a href=(jobs_address(board, &[(filter, &bytes(value))])) { (name(&bytes(value))) } };
    html! {
        @match field {
            "state" => (state(&crate::connection::reply::text(value))),
            "parent" => (job_link(board, &bytes(value))),
            "after" => @for other in crate::connection::reply::list(value.clone()) { (job_link(board, &bytes(&other))) " " },
            "tags" => @for tag in crate::connection::reply::list(value.clone()) {
                a.tag href=(jobs_address(board, &[("tag", &bytes(&tag))])) { (name(&bytes(&tag))) } " "
            },
            "queue" => (list("queue")),
            "name" => (list("name")),
            "group" => (list("group")),
            "user" => (list("user")),
            "worker" => (list("worker")),
            "kind" => (list("kind")),
            "meta" | "costs" | "spent" => (super::work::meta(Some(value))),
            "origin" => (origin(board, value)),
            "left" => @if crate::connection::reply::int(value) == Some(-1) { "for ever" } @else { (crate::connection::reply::text(value)) " retries" },
            _ if TIMES.contains(&field) => (when(crate::connection::reply::int(value).unwrap_or(0))),
            "message" => bdi.lines { (crate::names::lines(&bytes(value))) },
            _ => bdi { (crate::connection::reply::text(value)) },
        }
    }
}

/// Where a dead job failed.
fn origin(board: &[u8], value: &Value) -> Markup {
    let Some(origin) = Record::read(value.clone()) else { return html! {} };
    let queue = origin.bytes("queue");
    html! {
        a href=(jobs_address(board, &[("queue", &queue)])) { (name(&queue)) }
        ", " (number(origin.int("attempts"))) " attempts, until " (when(origin.int("at")))
    }
}

async fn explain(cx: &RequestContext, board: &[u8], id: &[u8]) -> Result<Option<Markup>, Failure> {
    let mut command = board_command("EXPLAIN", board);
    command.arg(id);
    let Some(told) = Record::read(cx.ask(board, command).await?) else { return Ok(None) };
    let reasons = records(told.get("reasons").cloned().unwrap_or(Value::Nil));
    Ok(Some(html! {
        @if told.int("claimable") == 1 { p { span.badge.ready { "a claim of it takes it now" } } }
        ol.reasons {
            @for reason in &reasons {
                li {
                    p { b { (reason.text("reason")) } ": " bdi { (sentence(reason)) } }
                    (reason_facts(board, reason))
                }
            }
        }
        @if told.has("waiting") {
            p.faint { (told.int("waiting")) " blocked claims wait for jobs of its queue." }
        }
    }))
}

/// Its sentence, with its own times for people.
fn sentence(reason: &Record) -> Markup {
    let text = reason.text("text");
    let moment = reason.fields().find_map(|(field, value)| {
        let at = crate::connection::reply::int(value).filter(|at| MOMENTS.contains(&field) && *at > 0)?;
        text.split_once(&at.to_string()).map(|(before, after)| (before, at, after))
    });
    html! {
        @match moment {
            Some((before, at, after)) => { (before) (crate::format::at(at)) (after) },
            None => (text),
        }
    }
}

fn reason_facts(board: &[u8], reason: &Record) -> Markup {
    let facts: Vec<_> = reason.fields().filter(|(field, _)| !["reason", "text"].contains(field)).collect();
    html! {
        @if !facts.is_empty() {
            dl.facts.small {
                @for (field, value) in facts {
                    dt { (field) }
                    dd {
                        @match field {
                            _ if MOMENTS.contains(&field) => {
                                @match crate::connection::reply::int(value) { Some(-1) => "without end", Some(at) => (when(at)), None => "" }
                            },
                            "jobs" | "holders" => @for other in records(value.clone()) {
                                span.pair { (job_link(board, &other.bytes("id"))) " " (other.text("state")) (other.text("worker")) } " "
                            },
                            "id" => (job_link(board, &bytes(value))),
                            "rate-period" => (span(crate::connection::reply::int(value).unwrap_or(0))),
                            _ => bdi { (crate::connection::reply::text(value)) },
                        }
                    }
                }
            }
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
) -> Result<Markup, Failure> {
    let entries = entries?;
    let children = timeline::children(cx, board, record).await?;
    Ok(timeline::draw(board, &entries, record, &children))
}

async fn one_field(
    cx: &RequestContext,
    board: &[u8],
    id: &[u8],
    field: &str,
) -> Result<Option<Vec<u8>>, Failure> {
    let mut command = board_command("GET", board);
    command.arg(id).arg("FIELDS").arg(1).arg(field);
    let record = Record::read(cx.ask(board, command).await?);
    Ok(record.and_then(|record| record.get(field).map(bytes)))
}

async fn data(cx: &RequestContext, board: &[u8], id: &[u8], memory: &mut Memory) -> Result<Markup, Failure> {
    let (payload, result, steps) = try_join3(
        one_field(cx, board, id, "payload"),
        one_field(cx, board, id, "result"),
        steps(cx, board, id),
    )
    .await?;
    let all: usize = steps.iter().map(|step| step.value.len()).sum();
    memory.large = all > LARGE
        || [&payload, &result].iter().any(|value| value.as_ref().is_some_and(|value| value.len() > LARGE));
    let block = |field: &'static str, heading: &'static str, value: &[u8]| {
        let from = address("/data", &[("b", board), ("id", id), ("field", field.as_bytes())]);
        html! {
            h2 { (heading) }
            (content(value))
            p.faint { (size(value.len() as i64)) ". " a href=(from) download { "Download" } }
        }
    };
    Ok(html! {
        @if let Some(payload) = payload { (block("payload", "Payload", &payload)) }
        @if let Some(result) = result { (block("result", "Result", &result)) }
        @if !steps.is_empty() { (done_steps(board, id, &steps)) }
    })
}

/// A step that is done.
struct Step {
    name: Vec<u8>,
    value: Vec<u8>,
    at: i64,
}

async fn steps(cx: &RequestContext, board: &[u8], id: &[u8]) -> Result<Vec<Step>, Failure> {
    let mut command = board_command("GET", board);
    command.arg(id).arg("FIELDS").arg(1).arg("steps");
    let record = Record::read(cx.ask(board, command).await?);
    let Some(Value::Map(pairs)) = record.and_then(|record| record.get("steps").cloned()) else {
        return Ok(Vec::new());
    };
    let step = |(name, step): (Value, Value)| {
        let step = Record::read(step).unwrap_or_default();
        Step { name: bytes(&name), value: step.bytes("value"), at: step.int("at") }
    };
    Ok(pairs.into_iter().map(step).collect())
}

/// The last steps of its work, the latest first.
fn done_steps(board: &[u8], id: &[u8], steps: &[Step]) -> Markup {
    let more = steps.len().saturating_sub(STEPS);
    html! {
        h2 { "Steps" }
        div.wide tabindex="0" {
            table {
                caption.unseen { "Steps that are done, the latest first" }
                thead { tr { th scope="col" { "Step" } th scope="col" { "Done" } th scope="col" { "Value" } } }
                tbody {
                    @for step in steps.iter().rev().take(STEPS) {
                        @let fields: [(&str, &[u8]); 4] =
                            [("b", board), ("id", id), ("field", b"step"), ("step", &step.name)];
                        tr {
                            th scope="row" { (name(&step.name)) }
                            td { (when(step.at)) }
                            td {
                                (beginning(&step.value, STEP_SHOWN))
                                a.faint href=(address("/data", &fields)) download { (size(step.value.len() as i64)) }
                            }
                        }
                    }
                }
            }
        }
        @if more > 0 { p.note { "And " (more) " before them." } }
    }
}

/// Text as it is, JSON with its lines broken, other bytes by their numbers.
pub fn content(value: &[u8]) -> Markup {
    beginning(value, SHOWN)
}

/// The same, up to so many bytes.
fn beginning(value: &[u8], most: usize) -> Markup {
    let cut = &value[..value.len().min(most)];
    let json =
        (value.len() <= most).then(|| serde_json::from_slice::<serde_json::Value>(value).ok()).flatten();
    let text = match json {
        Some(json) if json.is_object() || json.is_array() => serde_json::to_string_pretty(&json).ok(),
        _ => printable(cut),
    };
    html! {
        @match text {
            Some(text) => pre.data tabindex="0" { (text) },
            None => pre.data.binary tabindex="0" { (dump(cut)) },
        }
        @if value.len() > cut.len() { p.note { "The first " (size(most as i64)) "." } }
    }
}

/// As text, if it is some; a character may be cut at the end.
fn printable(value: &[u8]) -> Option<String> {
    let text = match std::str::from_utf8(value) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&value[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    let odd = |one: char| one.is_control() && !['\n', '\t', '\r'].contains(&one);
    (!text.chars().any(odd)).then(|| text.to_owned())
}

fn dump(value: &[u8]) -> String {
    let line = |(number, bytes): (usize, &[u8])| {
        let letters = bytes.iter().map(|byte| if byte.is_ascii_graphic() { *byte as char } else { '.' });
        format!("{:06x}  {:<32}  {}\n", number * 16, hex(bytes), letters.collect::<String>())
    };
    value.chunks(16).enumerate().map(line).collect()
}

/// A payload, a result or the value of a step as it is, to be saved, never to be shown by the browser.
pub async fn get_data(cx: RequestContext) -> Response {
    match read_data(&cx).await {
        Ok((field, value)) => {
            let disposition = HeaderValue::try_from(format!("attachment; filename=\"{field}.bin\""));
            let headers = [
                (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
                (header::CONTENT_DISPOSITION, disposition.expect("a plain name")),
            ];
            (headers, value).into_response()
        }
        Err(failure) => cx.fail(&failure),
    }
}

async fn read_data(cx: &RequestContext) -> Result<(&'static str, Vec<u8>), Failure> {
    let (board, id) = (cx.board()?, id(cx)?);
    let field = match cx.query.text("field") {
        Some("payload") => "payload",
        Some("result") => "result",
        Some("step") => {
            let named = cx.query.bytes("step").unwrap_or_default();
            let found = steps(cx, &board, &id).await?.into_iter().find(|step| step.name == named);
            let found = found.ok_or_else(|| Failure::NotFound("The job has no such step.".into()))?;
            return Ok(("step", found.value));
        }
        _ => return Err(Failure::BadRequest("field must be payload, result or step.".into())),
    };
    let value = one_field(cx, &board, &id, field).await?;
    let value = value.ok_or_else(|| Failure::NotFound(format!("The job has no {field}.")))?;
    Ok((field, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_shown_by_what_it_is() {
        let shown = |value: &[u8]| content(value).into_string();
        assert!(shown(br#"{"a":[1]}"#).contains("\n  &quot;a&quot;: [\n"));
        assert!(shown(b"<script>").contains("&lt;script&gt;"));
        assert!(shown(b"\x00\xffAB").contains("000000  00ff4142"));
        assert!(shown("ö".repeat(SHOWN).as_bytes()).contains("The first 16.0 KiB"));
    }
}
