//! Payload, result, the values of steps and signals: as much of each as a page shows, and all of it to be saved.

use std::time::{Duration, Instant};

use axum::http::{header, HeaderValue};
use axum::response::{IntoResponse, Response};
use futures_util::future::try_join3;
use maud::{html, Markup};
use redis::Value;

use crate::app::RequestContext;
use crate::connection::board_command;
use crate::connection::reply::{bytes, Record};
use crate::failure::Failure;
use crate::format::{name, size, when};
use crate::names::{address, hex};
use crate::pages::layout::copy_from;

/// So much of a payload is shown; all of it can be downloaded.
const SHOWN: usize = 16 * 1024;

/// So much of the value of a step or a signal is shown.
pub const VALUE_SHOWN: usize = 1024;

/// So many steps are shown, the last ones.
const STEPS: usize = 200;

/// Fetching more than this at each report of a worker would be a burden …
const LARGE: usize = 64 * 1024;

/// … so it is fetched again when the state changes, or after this, also when that has failed.
const LARGE_PACE: Duration = Duration::from_secs(20);

/// What an open page remembers of the job's data.
#[derive(Default)]
pub struct Kept {
    /// The version and state of the job when its data was read last.
    of: Option<(i64, String)>,
    read: Option<Instant>,
    is_large: bool,
    failed: bool,
    pub steps: Vec<Step>,
    pub signals: Vec<Signal>,
}

/// A step that is done, with the beginning of its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub name: Vec<u8>,
    pub value: Vec<u8>,
    pub size: usize,
    pub at: i64,
}

/// A signal that has arrived, with the beginning of its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Signal {
    pub name: Vec<u8>,
    pub value: Vec<u8>,
    pub size: usize,
    pub at: i64,
    pub sender: Vec<u8>,
}

/// The data of the job anew, if it has changed since the last look.
pub async fn refresh(
    cx: &RequestContext,
    board: &[u8],
    id: &[u8],
    record: &Record,
    kept: &mut Kept,
) -> Option<Result<Markup, Failure>> {
    let now = (record.int("version"), record.text("state"));
    let is_young = kept.is_large && kept.read.is_some_and(|read| read.elapsed() < LARGE_PACE);
    let is_same = match &kept.of {
        Some(of) if is_young => of.1 == now.1,
        of => of.as_ref() == Some(&now),
    };
    let is_over = !kept.is_large || kept.read.is_some_and(|read| read.elapsed() >= LARGE_PACE);
    if is_same && !(kept.failed && is_over) {
        return None;
    }
    (kept.of, kept.read) = (Some(now), Some(Instant::now()));
    let drawn = read(cx, board, id, kept).await;
    kept.failed = drawn.is_err();
    Some(drawn)
}

async fn read(cx: &RequestContext, board: &[u8], id: &[u8], kept: &mut Kept) -> Result<Markup, Failure> {
    let (payload, result, (steps, signals)) = try_join3(
        one_field(cx, board, id, "payload"),
        one_field(cx, board, id, "result"),
        steps_and_signals(cx, board, id),
    )
    .await?;
    let values = steps.iter().map(|(_, step)| step).chain(signals.iter().map(|(_, signal)| signal));
    let all: usize = values.map(|value| value.bytes("value").len()).sum();
    kept.is_large = all > LARGE
        || [&payload, &result].iter().any(|value| value.as_ref().is_some_and(|value| value.len() > LARGE));
    let cut = |value: Vec<u8>| (value[..value.len().min(VALUE_SHOWN)].to_vec(), value.len());
    kept.steps = steps
        .into_iter()
        .map(|(name, step)| {
            let (value, size) = cut(step.bytes("value"));
            Step { name, value, size, at: step.int("at") }
        })
        .collect();
    kept.signals = signals
        .into_iter()
        .map(|(name, signal)| {
            let (value, size) = cut(signal.bytes("value"));
            Signal { name, value, size, at: signal.int("at"), sender: signal.bytes("sender") }
        })
        .collect();
    let block = |field: &'static str, heading: &'static str, value: &[u8]| {
        let from = address("/data", &[("b", board), ("id", id), ("field", field.as_bytes())]);
        html! {
            h2 { (heading) @if std::str::from_utf8(value).is_ok() { " " (copy_from(&format!("the {field}"), &from)) } }
            (content(value))
            p.faint { (size(value.len() as i64)) ". " a href=(from) download { "Download" } }
        }
    };
    Ok(html! {
        @if let Some(payload) = payload { (block("payload", "Payload", &payload)) }
        @if let Some(result) = result { (block("result", "Result", &result)) }
        @if !kept.steps.is_empty() { (done_steps(board, id, &kept.steps)) }
        @if !kept.signals.is_empty() { (super::signals::arrived(board, id, &kept.signals)) }
    })
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

/// Names, which may be any bytes, and what the server says of each.
type Named = Vec<(Vec<u8>, Record)>;

async fn steps_and_signals(cx: &RequestContext, board: &[u8], id: &[u8]) -> Result<(Named, Named), Failure> {
    let mut command = board_command("GET", board);
    command.arg(id).arg("FIELDS").arg(2).arg("steps").arg("signals");
    let record = Record::read(cx.ask(board, command).await?).unwrap_or_default();
    let named = |field: &str| match record.get(field) {
        Some(Value::Map(pairs)) => pairs
            .iter()
            .map(|(name, value)| (bytes(name), Record::read(value.clone()).unwrap_or_default()))
            .collect(),
        _ => Vec::new(),
    };
    Ok((named("steps"), named("signals")))
}

/// The last steps of its work, the latest first.
fn done_steps(board: &[u8], id: &[u8], steps: &[Step]) -> Markup {
    let more = steps.len().saturating_sub(STEPS);
    html! {
        h2 { "Steps" }
        div.wide tabindex="0" {
            table.stacked {
                caption.unseen { "Steps that are done, the latest first" }
                thead { tr { th scope="col" { "Step" } th scope="col" { "Done" } th scope="col" { "Value" } } }
                tbody {
                    @for step in steps.iter().rev().take(STEPS) {
                        @let fields: [(&str, &[u8]); 4] =
                            [("b", board), ("id", id), ("field", b"step"), ("step", &step.name)];
                        tr {
                            th scope="row" { (name(&step.name)) }
                            td data-label="Done" { (when(step.at)) }
                            td data-label="Value" {
                                (beginning(&step.value, step.size, VALUE_SHOWN))
                                a.faint href=(address("/data", &fields)) download { (size(step.size as i64)) }
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
    beginning(value, value.len(), SHOWN)
}

/// The same, up to so many bytes; of `size` bytes these are the first.
pub fn beginning(value: &[u8], size: usize, most: usize) -> Markup {
    let cut = &value[..value.len().min(most)];
    let is_whole = cut.len() == size;
    let json = is_whole.then(|| serde_json::from_slice::<serde_json::Value>(value).ok()).flatten();
    let text = match json {
        Some(json) if json.is_object() || json.is_array() => serde_json::to_string_pretty(&json).ok(),
        _ => printable(cut),
    };
    html! {
        @match text {
            Some(text) => pre.data tabindex="0" { (text) },
            None => pre.data.binary tabindex="0" { (dump(cut)) },
        }
        @if !is_whole { p.note { "The first " (crate::format::size(cut.len() as i64)) "." } }
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

/// A payload, a result or the value of a step or signal as it is, to be saved, never to be shown by the browser.
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
    let (board, id) = (cx.board()?, super::id(cx)?);
    let field = match cx.query.text("field") {
        Some("payload") => "payload",
        Some("result") => "result",
        Some("step") => return one_value(cx, &board, &id, "step").await,
        Some("signal") => return one_value(cx, &board, &id, "signal").await,
        _ => return Err(Failure::BadRequest("field must be payload, result, step or signal.".into())),
    };
    let value = one_field(cx, &board, &id, field).await?;
    let value = value.ok_or_else(|| Failure::NotFound(format!("The job has no {field}.")))?;
    Ok((field, value))
}

/// The whole value of the step or signal that the address names.
async fn one_value(
    cx: &RequestContext,
    board: &[u8],
    id: &[u8],
    field: &'static str,
) -> Result<(&'static str, Vec<u8>), Failure> {
    let wanted = cx.query.bytes(field).unwrap_or_default();
    let (steps, signals) = steps_and_signals(cx, board, id).await?;
    let named = if field == "step" { steps } else { signals };
    let found = named.into_iter().find(|(name, _)| name == wanted);
    let (_, found) = found.ok_or_else(|| Failure::NotFound(format!("The job has no such {field}.")))?;
    Ok((field, found.bytes("value")))
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
        assert!(beginning(b"{}", 9, 2).into_string().contains("The first 2 B"));
    }
}
