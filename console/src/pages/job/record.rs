//! The record of a job, field by field.

use maud::{html, Markup};
use redis::Value;

use crate::connection::reply::{bytes, int, list, text, Record};
use crate::format::{job_link, jobs_address, name, number, state, when};

const TIMES: [&str; 8] = ["deadline", "posted", "due", "claimed", "ended", "modified", "intended", "until"];

pub fn draw(board: &[u8], record: &Record) -> Markup {
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
    let jobs = |filter: &'static str| html! { a href=(jobs_address(board, &[(filter, &bytes(value))])) { (name(&bytes(value))) } };
    html! {
        @match field {
            "state" => (state(&text(value))),
            "parent" => (job_link(board, &bytes(value))),
            "after" => @for other in list(value.clone()) { (job_link(board, &bytes(&other))) " " },
            "tags" => @for tag in list(value.clone()) {
                a.tag href=(jobs_address(board, &[("tag", &bytes(&tag))])) { (name(&bytes(&tag))) } " "
            },
            "queue" => (jobs("queue")),
            "name" => (jobs("name")),
            "group" => (jobs("group")),
            "user" => (jobs("user")),
            "worker" => (jobs("worker")),
            "kind" => (jobs("kind")),
            "meta" | "costs" | "spent" => (crate::pages::work::meta(Some(value))),
            "origin" => (origin(board, value)),
            "left" => @if int(value) == Some(-1) { "without limit" } @else { (text(value)) " retries" },
            _ if TIMES.contains(&field) => (when(int(value).unwrap_or(0))),
            "message" => bdi.lines { (crate::names::lines(&bytes(value))) },
            _ => bdi { (text(value)) },
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
