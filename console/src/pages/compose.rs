//! A job that is posted here: a new one, one like an earlier one, or an earlier one with another payload.
//! The first form is answered with the command; nothing has been done by then.

use axum::body::Bytes;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{html, Markup};

use super::layout::{another_command, has_shown, hidden, secret, shown_command, SHOWN};
use super::{answer, Part, View};
use crate::actions::Words;
use crate::app::RequestContext;
use crate::connection::board_command;
use crate::connection::reply::{bytes, Record};
use crate::failure::Failure;
use crate::format::{board_address, job_link, name, size, word};
use crate::names::{address, hex, own, shown, unhex};
use crate::query::Query;

/// Longer payloads are not edited here.
const MOST: usize = 256 * 1024;

/// Fields of the form that are texts, and the words of JOB.POST that they stand behind.
const TEXTS: [(&str, &str, &str); 5] = [
    ("id", "ID", "made by the server"),
    ("name", "NAME", "none"),
    ("queue", "QUEUE", "default"),
    ("group", "GROUP", "none"),
    ("user", "USER", "none"),
];

/// The fields whose values are numbers.
const NUMBERS: [(&str, &str, &str); 3] =
    [("priority", "PRIORITY", "0"), ("retries", "RETRIES", "as set"), ("cost", "COST", "1")];

const ENDED: [&str; 4] = ["complete", "failed", "cancelled", "trashed"];

const COPIED: [&str; 10] =
    ["state", "name", "queue", "group", "user", "priority", "cost", "tags", "meta", "payload"];

/// Before the names of fields with what cannot be typed.
const KEPT: &str = "kept.";
const KEPT_TAG: &str = "kept.tag";
const KEPT_FIELD: &str = "kept.meta-field";
const KEPT_VALUE: &str = "kept.meta-value";

/// Fields of the question whether a command is right.
pub const OF_QUESTION: [&str; 3] = ["csrf", "sure", SHOWN];

/// What the form is for.
enum Purpose {
    New,
    Like(Vec<u8>, Record),
    /// Another payload for this job, which is in this state.
    Edit(Vec<u8>, Record),
}

pub async fn get(cx: RequestContext) -> Response {
    let view = view(&cx).await;
    answer(&cx, view, None)
}

fn may_write(cx: &RequestContext) -> Result<(), Failure> {
    super::confirm::read_only(cx)
}

async fn purpose(cx: &RequestContext, board: &[u8]) -> Result<Purpose, Failure> {
    let Some(id) = cx.query.bytes("from") else { return Ok(Purpose::New) };
    let mut get = board_command("GET", board);
    get.arg(id).arg("FIELDS").arg(COPIED.len()).arg(&COPIED);
    let record = Record::read(cx.ask(board, get).await?);
    let record = record.ok_or_else(|| Failure::NotFound("The board has no job of this id.".into()))?;
    let id = id.to_vec();
    Ok(if cx.query.is_set("edit") { Purpose::Edit(id, record) } else { Purpose::Like(id, record) })
}

async fn view(cx: &RequestContext) -> Result<View, Failure> {
    may_write(cx)?;
    let board = cx.board()?;
    let purpose = purpose(cx, &board).await?;
    let (heading, record) = match &purpose {
        Purpose::New => (html! { "Post a job on " (name(&board)) }, None),
        Purpose::Like(id, record) => (html! { "Post a job like " (name(id)) }, Some(record)),
        Purpose::Edit(id, record) if is_ended(record) => {
            (html! { "Edit and requeue " (name(id)) }, Some(record))
        }
        Purpose::Edit(id, record) => (html! { "Edit " (name(id)) }, Some(record)),
    };
    let payload = record.map(|record| record.bytes("payload")).unwrap_or_default();
    let body = html! {
        @if payload.len() > MOST {
            p.refused { "This payload has " (size(payload.len() as i64)) "; up to " (size(MOST as i64)) " are edited here." }
        } @else {
            form.compose method="post" action=(own(&cx.here)) {
                (secret(&cx.session))
                (payload_field(&payload))
                @if !matches!(purpose, Purpose::Edit(..)) { (options(record)) }
                button.primary { "Preview" }
                @if let Purpose::Like(..) = purpose {
                    p.note { "The form shows what the job's record has. Lease, timeout, retries and back-off of its post are not in it: the settings of the queue count." }
                }
            }
        }
    };
    Ok(View {
        title: "Post a job".into(),
        board: Some(board),
        place: "",
        head: html! { h1 { (heading) } },
        parts: vec![Part { id: "compose", body }],
    })
}

fn is_ended(record: &Record) -> bool {
    ENDED.contains(&record.text("state").as_str())
}

/// A complete job is not requeued: it is posted again under its id.
fn is_complete(record: &Record) -> bool {
    record.text("state") == "complete"
}

/// What is wrong with a payload in the place of one that was JSON.
fn broken(old: &[u8], new: &[u8]) -> Option<String> {
    let read = |payload| serde_json::from_slice::<serde_json::Value>(payload);
    read(old).ok().and_then(|_| read(new).err()).map(|error| error.to_string())
}

/// A field for text keeps text; other bytes are edited by their numbers.
pub fn payload_field(payload: &[u8]) -> Markup {
    let odd = |one: char| one.is_control() && one != '\n' && one != '\t';
    let plain = std::str::from_utf8(payload).ok().filter(|text| !text.chars().any(odd));
    html! {
        @match plain {
            // The first line end of a text area is not part of it.
            Some(text) => label { "Payload" textarea name="payload" rows="12" spellcheck="false" autocomplete="off" { "\n" (text) } },
            None => label { "Payload, in hexadecimal" textarea name="payload-hex" rows="12" spellcheck="false" autocomplete="off" { (hex(payload)) } },
        }
    }
}

/// Whether a field of the form, or a line in one, gives these bytes back.
fn can_be_typed(value: &[u8]) -> bool {
    shown(value).as_bytes() == value && value.trim_ascii() == value
}

/// A field of meta as a line of the form.
fn is_line(field: &[u8], value: &[u8]) -> bool {
    can_be_typed(field) && !field.contains(&b' ') && can_be_typed(value)
}

/// What the form starts with; what cannot be typed is kept as it is.
fn options(record: Option<&Record>) -> Markup {
    let value =
        |field: &str| record.filter(|_| field != "id").map(|record| record.bytes(field)).unwrap_or_default();
    let tags = record.map(|record| record.list("tags")).unwrap_or_default();
    let (tags, odd_tags): (Vec<_>, Vec<_>) = tags.iter().map(bytes).partition(|tag| can_be_typed(tag));
    let meta = match record.and_then(|record| record.get("meta")) {
        Some(redis::Value::Map(pairs)) => pairs.as_slice(),
        _ => &[],
    };
    let meta = meta.iter().map(|(field, value)| (bytes(field), bytes(value)));
    let (meta, odd_meta): (Vec<_>, Vec<_>) = meta.partition(|(field, value)| is_line(field, value));
    html! {
        div.fields {
            @for (field, _, placeholder) in TEXTS {
                @let value = value(field);
                @if can_be_typed(&value) { label { (field) " " input name=(field) value=(shown(&value)) placeholder=(placeholder); } }
                @else { span { (field) " " (name(&value)) (hidden(&format!("{KEPT}{field}"), &value)) } }
            }
            @for (field, _, placeholder) in NUMBERS { label { (field) " " input name=(field) value=(shown(&value(field))) placeholder=(placeholder) inputmode="numeric"; } }
            label { "delay " input name="delay" placeholder="none; 5s, 10m, 2h"; }
        }
        label { "tags, one a line" textarea name="tags" rows="2" { @for tag in &tags { "\n" (shown(tag)) } } }
        @for tag in &odd_tags { p { "tag " (name(tag)) (hidden(KEPT_TAG, tag)) } }
        label { "meta, one field a line: field value" textarea name="meta" rows="2" { @for (field, value) in &meta { "\n" (shown(field)) " " (shown(value)) } } }
        @for (field, value) in &odd_meta {
            p { "meta " (name(field)) " " (name(value)) (hidden(KEPT_FIELD, field)) (hidden(KEPT_VALUE, value)) }
        }
    }
}

pub async fn post(cx: RequestContext, body: Bytes) -> Response {
    match done(&cx, &Query::read(&body)).await {
        Ok(Step::Ask(view)) => answer(&cx, Ok(view), None),
        Ok(Step::Done(to)) => Redirect::to(&to).into_response(),
        Err(failure) => cx.fail(&failure),
    }
}

enum Step {
    Ask(View),
    Done(String),
}

async fn done(cx: &RequestContext, form: &Query) -> Result<Step, Failure> {
    may_write(cx)?;
    super::confirm::own_form(cx, form)?;
    let board = cx.board()?;
    let purpose = purpose(cx, &board).await?;
    let words = command(&board, &purpose, form)?;
    if !form.is_set("sure") || !has_shown(form, &words) {
        return Ok(Step::Ask(question(cx, board, &purpose, &words, form)));
    }
    let reply = super::confirm::send(cx, &board, &words).await?;
    Ok(Step::Done(match &purpose {
        Purpose::Edit(id, record) => {
            cx.session.say(if is_ended(record) { "Edited and requeued." } else { "Edited." }.into());
            address("/job", &[("b", &board), ("id", id)])
        }
        _ => {
            cx.session.say("Posted.".into());
            address("/job", &[("b", &board), ("id", &bytes(&reply))])
        }
    }))
}

pub fn payload(form: &Query) -> Result<Vec<u8>, Failure> {
    if let Some(digits) = form.any("payload-hex") {
        let digits: Vec<u8> = digits.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
        return unhex(&digits)
            .ok_or_else(|| Failure::BadRequest("The payload must be pairs of hexadecimal digits.".into()));
    }
    let text = form.any("payload").unwrap_or_default();
    // Browsers send each line end as two characters.
    Ok(String::from_utf8_lossy(text).replace("\r\n", "\n").into_bytes())
}

fn command(board: &[u8], purpose: &Purpose, form: &Query) -> Result<Words, Failure> {
    let payload = payload(form)?;
    if payload.len() > MOST {
        return Err(Failure::BadRequest("The payload is too long to be edited here.".into()));
    }
    match purpose {
        // One command for both: the job never runs with its old payload.
        Purpose::Edit(id, record) if is_complete(record) => {
            Ok(Words::of(&[b"JOB.POST", board, &payload, b"ID", id, b"XX"]))
        }
        Purpose::Edit(id, record) if is_ended(record) => {
            Ok(Words::of(&[b"JOB.REQUEUE", board, b"1", id, b"PAYLOAD", &payload]))
        }
        Purpose::Edit(id, _) => {
            Ok(Words::of(&[b"JOB.UPDATE", board, b"1", id, b"SET", b"PAYLOAD", &payload]))
        }
        _ => new(board, &payload, form),
    }
}

fn new(board: &[u8], payload: &[u8], form: &Query) -> Result<Words, Failure> {
    let mut words = Words::of(&[b"JOB.POST", board, payload]);
    for (field, word, _) in TEXTS.iter().chain(&NUMBERS) {
        let typed = form.bytes(field).map(<[u8]>::trim_ascii).filter(|value| !value.is_empty());
        if let Some(value) = form.bytes(&format!("{KEPT}{field}")).or(typed) {
            words = words.with(&[word.as_bytes(), value]);
        }
    }
    if let Some(delay) = form.bytes("delay").map(<[u8]>::trim_ascii).filter(|value| !value.is_empty()) {
        words = words.with(&[b"DELAY", delay]);
    }
    let lines = |field| -> Vec<&[u8]> {
        let text = form.bytes(field).unwrap_or_default();
        text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty()).collect()
    };
    let tags: Vec<&[u8]> = lines("tags").into_iter().chain(form.all(KEPT_TAG)).collect();
    if !tags.is_empty() {
        words = words.with(&[b"TAGS", tags.len().to_string().as_bytes()]).with(&tags);
    }
    let end_of_field = |line: &[u8]| line.iter().position(|&byte| byte == b' ').unwrap_or(line.len());
    let typed = lines("meta").into_iter().map(|line| line.split_at(end_of_field(line)));
    let typed = typed.map(|(field, value)| (field, value.trim_ascii()));
    let meta: Vec<(&[u8], &[u8])> = typed.chain(form.all(KEPT_FIELD).zip(form.all(KEPT_VALUE))).collect();
    if !meta.is_empty() {
        words = words.with(&[b"META", meta.len().to_string().as_bytes()]);
        for (field, value) in meta {
            words = words.with(&[field, value]);
        }
    }
    Ok(words)
}

fn question(cx: &RequestContext, board: Vec<u8>, purpose: &Purpose, words: &Words, form: &Query) -> View {
    let (verb, told) = match purpose {
        Purpose::New | Purpose::Like(..) => ("Post", html! { p { "A new job:" } }),
        Purpose::Edit(id, record) if is_complete(record) => (
            "Run again with this payload",
            html! { p { (job_link(&board, id)) " is done, and runs again from its beginning with the new payload: the server forgets its steps, signals and result." } },
        ),
        Purpose::Edit(id, record) if is_ended(record) => (
            "Requeue with this payload",
            html! { p { (job_link(&board, id)) " is " (word(&record.text("state"))) ", and becomes ready with the new payload. It keeps its steps and signals, so what is done is not done again. Attempts and retries start afresh." } },
        ),
        Purpose::Edit(id, record) => (
            "Change the payload",
            html! { p { (job_link(&board, id)) " is " (word(&record.text("state"))) ". " @if record.text("state") == "claimed" { "Its worker keeps the old payload." } } },
        ),
    };
    let back = match purpose {
        Purpose::New => board_address("/board", &board),
        Purpose::Like(id, _) | Purpose::Edit(id, _) => address("/job", &[("b", &board), ("id", id)]),
    };
    let fault = match purpose {
        Purpose::Like(_, record) | Purpose::Edit(_, record) => {
            payload(form).ok().and_then(|new| broken(&record.bytes("payload"), &new))
        }
        Purpose::New => None,
    };
    let body = html! {
        (another_command(form))
        (told)
        @if let Some(fault) = fault {
            p.refused { "The payload was JSON, and is no longer: " (fault) ". A worker that reads JSON fails with it." }
        }
        (super::layout::command(words, 4000))
        form method="post" action=(own(&cx.here)) {
            (secret(&cx.session))
            (shown_command(words))
            @for (field, value) in form.iter() { @if !OF_QUESTION.contains(&field) { (hidden(field, value)) } }
            button.primary name="sure" value="1" { (verb) }
            " " a.button href=(back) { "Do nothing" }
        }
    };
    View {
        title: verb.into(),
        head: html! { h1 { (verb) ": is this right?" } },
        board: Some(board),
        place: "",
        parts: vec![Part { id: "forecast", body }],
    }
}

/// What one can do with the data of a job.
pub fn links(board: &[u8], id: &[u8], state: &str) -> Markup {
    let to = |more: &[(&str, &[u8])]| address("/post", &[&[("b", board), ("from", id)], more].concat());
    html! {
        a.button href=(to(&[("edit", b"1")])) {
            @if ENDED.contains(&state) { "Edit and requeue" } @else { "Edit payload" }
        } " "
        a.button href=(to(&[])) { "Duplicate" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(purpose: &Purpose, form: &str) -> String {
        command(b"b", purpose, &Query::read(form.as_bytes())).unwrap().text()
    }

    #[test]
    fn a_form_becomes_a_post() {
        let form = "payload=a%0D%0Ab&name=mail&queue=&priority=+7+&delay=5s&tags=red%0D%0Adark+blue&meta=why+it+is%0D%0Ax";
        assert_eq!(
            written(&Purpose::New, form),
            "JOB.POST b \"a\\x0ab\" NAME mail PRIORITY 7 DELAY 5s TAGS 2 red \"dark blue\" META 2 why \"it is\" x \"\""
        );
        assert_eq!(written(&Purpose::New, "payload-hex=00+ff"), "JOB.POST b \"\\x00\\xff\"");
        assert!(payload(&Query::read(b"payload-hex=0g")).is_err());
    }

    #[test]
    fn another_payload_and_a_new_try_are_one_command() {
        let record = |state: &str| {
            Record::read(redis::Value::Map(vec![(
                redis::Value::SimpleString("state".into()),
                redis::Value::SimpleString(state.into()),
            )]))
            .unwrap()
        };
        let edit = |state| written(&Purpose::Edit(b"j".to_vec(), record(state)), "payload=x");
        assert_eq!(edit("failed"), "JOB.REQUEUE b 1 j PAYLOAD x");
        assert_eq!(edit("complete"), "JOB.POST b x ID j XX");
        assert_eq!(edit("ready"), "JOB.UPDATE b 1 j SET PAYLOAD x");
    }

    #[test]
    fn what_is_no_text_is_edited_by_its_numbers() {
        assert!(payload_field(b"a\nb").into_string().contains("name=\"payload\""));
        assert!(payload_field(b"a\r\nb").into_string().contains("name=\"payload-hex\""));
        assert!(payload_field(b"\xff").into_string().contains(">ff</textarea>"));
    }
}
