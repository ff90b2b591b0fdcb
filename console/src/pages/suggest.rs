//! What there is to search for, for what is being typed: states, tags, kinds of failure, queues, workers, groups,
//! and what the newest jobs have: names, users, signals, meta, fields and texts in payloads.

use std::collections::HashMap;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::future::join_all;

use crate::app::RequestContext;
use crate::connection::board_command;
use crate::connection::reply::{bytes, page, text, Record};
use crate::failure::Failure;
use crate::format::STATES;
use crate::grammar::written;
use crate::payload;
use crate::preview;

/// Suggestions at most.
const MOST: usize = 12;

/// Rows of each listing that are looked at.
const LOOK: usize = 200;

/// Jobs of each state that are looked at, the newest.
const JOBS: usize = 100;

/// Payloads that are looked at, when nothing else fits what is typed.
const PAYLOADS: usize = 20;

/// Characters that must be typed before payloads are looked at.
const TYPED: usize = 3;

/// A longer text of a payload is not suggested.
const LONGEST: usize = 60;

/// Listings, and the fields of searches that they fill.
const SOURCES: [(&str, &str); 5] =
    [("TAGS", "tag"), ("KINDS", "kind"), ("QUEUES", "queue"), ("WORKERS", "worker"), ("GROUPS", "group")];

const FIELDS: [&str; 5] = ["id", "name", "user", "meta", "awaits"];

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
    // The last word may have any case; what was typed before it keeps its own. Some spaces are several bytes long.
    let typed = cx.query.text("q").unwrap_or_default();
    let space = typed.char_indices().rfind(|(_, one)| one.is_whitespace());
    let (before, last) = typed.split_at(space.map_or(0, |(at, one)| at + one.len_utf8()));
    let last = last.to_lowercase();
    let last = last.as_str();
    let mut terms: Vec<String> = STATES.iter().map(|state| written("state", state)).collect();
    terms.extend(["since 1h".into(), "since 1d".into(), "tracked".into(), "lapsed".into()]);
    // Open pages share these answers: typing asks the server rarely.
    let shared = RequestContext { is_live: true, ..cx.clone() };
    for (verb, field) in SOURCES {
        let mut command = board_command(verb, &board);
        command.arg("COUNT").arg(LOOK);
        let rows = allowed(shared.ask_shared(&board, command).await.map(|reply| page(reply).1))?;
        terms.extend(rows.iter().filter_map(|row| term(field, row.bytes(field))));
    }
    let jobs = join_all(STATES.map(|state| newest(&shared, &board, state))).await;
    let jobs: Vec<Record> = jobs.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
    terms.extend(of_jobs(&jobs));
    let fits = |term: &String| fits(&term.to_lowercase(), last);
    let mut found: Vec<String> = terms.into_iter().filter(fits).collect();
    found.dedup();
    let in_payloads = last.starts_with("payload.") || "payload.".starts_with(last) && !last.is_empty();
    if (found.is_empty() || in_payloads) && last.chars().count() >= TYPED {
        let ids: Vec<Vec<u8>> = jobs.iter().take(PAYLOADS).map(|job| job.bytes("id")).collect();
        let payloads = preview::payloads(cx, &board, &ids).await?;
        let payloads: Vec<Vec<u8>> = payloads.into_iter().flatten().collect();
        found.extend(often(payloads.iter().flat_map(|payload| paths(payload))).into_iter().filter(fits));
        if found.is_empty() {
            let texts = often(payloads.iter().flat_map(|payload| texts(payload)));
            found.extend(texts.into_iter().map(|text| written("text", &text)).filter(fits));
        }
    }
    Ok(found.into_iter().take(MOST).map(|term| format!("{before}{term}")).collect())
}

/// Whether a term begins so, or what it asks for, or the name of a field of meta.
fn fits(term: &str, typed: &str) -> bool {
    let begins = |text: &str| text.trim_start_matches('"').starts_with(typed);
    term.starts_with(typed)
        || term.split_once(':').is_some_and(|(field, value)| {
            begins(value)
                || field.strip_prefix("meta.").is_some_and(|field| field.starts_with(typed))
                || field.strip_prefix("payload.").is_some_and(|path| {
                    path.starts_with(typed)
                        || path.rsplit('.').next().is_some_and(|key| key.starts_with(typed))
                })
        })
}

/// What the user may not read is not suggested.
fn allowed(rows: Result<Vec<Record>, Failure>) -> Result<Vec<Record>, Failure> {
    match rows {
        Err(Failure::NotAllowed(_)) => Ok(Vec::new()),
        other => other,
    }
}

fn term(field: &str, value: Vec<u8>) -> Option<String> {
    String::from_utf8(value).ok().filter(|value| !value.is_empty()).map(|value| written(field, &value))
}

async fn newest(cx: &RequestContext, board: &[u8], state: &str) -> Result<Vec<Record>, Failure> {
    let mut command = board_command("LIST", board);
    command.arg("STATE").arg(state).arg("REV").arg("COUNT").arg(JOBS);
    command.arg("FIELDS").arg(FIELDS.len()).arg(&FIELDS);
    allowed(cx.ask_shared(board, command).await.map(|reply| page(reply).1))
}

/// What these jobs have, of each field the most frequent first.
fn of_jobs(jobs: &[Record]) -> Vec<String> {
    let named = |field: &'static str| often(jobs.iter().filter_map(move |job| term(field, job.bytes(field))));
    let signals = jobs.iter().flat_map(|job| job.record("awaits").list("missing"));
    let signals = often(signals.filter_map(|signal| term("awaits", bytes(&signal))));
    let meta = jobs.iter().flat_map(|job| {
        let meta = job.record("meta");
        let terms = meta.fields().filter_map(|(field, value)| {
            let (plain, value) =
                (!field.contains([':', '"']) && !field.contains(char::is_whitespace), text(value));
            (plain && value.chars().count() <= LONGEST).then(|| written("meta", &format!("{field}:{value}")))
        });
        terms.collect::<Vec<_>>()
    });
    [named("name"), named("user"), signals, often(meta)].concat()
}

/// Each once, the most frequent first.
fn often(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    texts.for_each(|text| *counts.entry(text).or_default() += 1);
    let mut found: Vec<(String, usize)> = counts.into_iter().collect();
    found.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    found.into_iter().map(|(text, _)| text).collect()
}

/// The fields of a payload of JSON with their values, as searches ask for them.
fn paths(payload: &[u8]) -> Vec<String> {
    let plain = |text: &str| !text.contains(['"', '\\']) && !text.chars().any(char::is_control);
    let fields = payload::fields(payload).into_iter().filter(|(path, value)| {
        plain(path)
            && plain(value)
            && !path.contains(':')
            && !path.contains(char::is_whitespace)
            && (1..=LONGEST).contains(&value.chars().count())
            && path.chars().count() <= LONGEST
    });
    fields.map(|(path, value)| written("payload", &format!("{path}:{value}"))).collect()
}

/// The short texts in a payload of JSON, whatever their depth; of other text the whole, if it is short.
fn texts(payload: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    match serde_json::from_slice::<serde_json::Value>(payload) {
        Ok(json) => add_texts(&json, &mut found),
        Err(_) => found.extend(String::from_utf8(payload.to_vec()).ok()),
    }
    found.retain(|text| {
        (TYPED..=LONGEST).contains(&text.chars().count())
            && !text.contains(['"', '\\'])
            && !text.chars().any(char::is_control)
    });
    found
}

fn add_texts(json: &serde_json::Value, found: &mut Vec<String>) {
    use serde_json::Value::{Array, Number, Object, String};
    match json {
        String(text) => found.push(text.clone()),
        Number(number) => found.push(number.to_string()),
        Array(values) => values.iter().for_each(|value| add_texts(value, found)),
        Object(fields) => fields.values().for_each(|value| add_texts(value, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_payloads() {
        let payload =
            br#"{"to": ["ann@example.com", "x"], "order": {"id": 4711, "note": "a \"b\""}, "paid": true}"#;
        assert_eq!(texts(payload), ["4711", "ann@example.com"]);
        assert_eq!(texts(b"order 7"), ["order 7"]);
        assert_eq!(texts(b"\xff\x00\x01\x02"), [] as [&str; 0]);
        assert_eq!(texts(&b"x".repeat(100)), [] as [&str; 0]);
    }

    #[test]
    fn fields_of_payloads() {
        let payload =
            br#"{"order": {"id": 4711, "note": "two words", "key with space": 1}, "ids": [7, "x\\"]}"#;
        assert_eq!(
            paths(payload),
            ["payload.ids:7", "payload.order.id:4711", "payload.order.note:\"two words\""]
        );
        assert!(paths(b"no json").is_empty());
    }

    #[test]
    fn a_term_fits_by_its_field_its_value_or_its_field_of_meta() {
        for typed in ["meta.region:eu", "meta.r", "region", "eu"] {
            assert!(fits("meta.region:eu", typed), "{typed}");
        }
        for typed in ["payload.order.i", "order.id", "id", "47"] {
            assert!(fits("payload.order.id:4711", typed), "{typed}");
        }
        assert!(fits("text:\"no route\"", "no") && fits("queue:mails", "queue:m"));
        assert!(!fits("queue:mails", "ails") && !fits("running", "claimed"));
    }

    #[test]
    fn the_most_frequent_comes_first() {
        let texts = ["b", "a", "b", "c"].map(str::to_owned);
        assert_eq!(often(texts.into_iter()), ["b", "a", "c"]);
    }
}
