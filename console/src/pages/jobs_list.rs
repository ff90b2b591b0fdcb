//! Asking the server for a page of jobs.

use std::time::{Duration, Instant};

use crate::app::RequestContext;
use crate::connection::board_command;
use crate::connection::reply::{page, Record};
use crate::failure::Failure;
use crate::filters::Filters;

pub const PAGE: usize = 50;

/// Filters that few jobs pass make the server look at many: it is asked again until the page is full, but
/// no longer than this. So does a field of the payload, into which the console looks itself.
const SEARCH: Duration = Duration::from_millis(1500);

const FIELDS: [&str; 19] = [
    "id", "state", "queue", "name", "priority", "attempt", "left", "worker", "progress", "stage", "posted",
    "due", "ended", "kind", "message", "user", "tags", "group", "origin",
];

pub struct Listed {
    pub rows: Vec<Record>,
    pub next: Option<Vec<u8>>,
}

pub async fn list(cx: &RequestContext, board: &[u8], filters: &Filters) -> Result<Listed, Failure> {
    let began = Instant::now();
    let mut rows: Vec<Record> = Vec::new();
    let mut cursor = cx.query.bytes("cursor").unwrap_or(b"0").to_vec();
    loop {
        let mut command = board_command("LIST", board);
        filters.add_to(&mut command);
        if cx.query.is_set("rev") || filters.since().is_some() {
            command.arg("REV");
        }
        command.arg("CURSOR").arg(&cursor).arg("COUNT").arg(PAGE - rows.len());
        // The server ends a page early when it has many bytes.
        let payload = filters.look_into_payloads().then_some("payload");
        command.arg("FIELDS").arg(FIELDS.len() + usize::from(payload.is_some())).arg(&FIELDS).arg(payload);
        // Answers with payloads are large, and no open page asks for them again.
        let reply = match payload {
            Some(_) => cx.ask(board, command).await?,
            None => cx.ask_shared(board, command).await?,
        };
        let (next, found) = page(reply);
        rows.extend(found.into_iter().filter(|row| payload.is_none() || filters.hold(&row.bytes("payload"))));
        match next {
            Some(next) if rows.len() < PAGE && began.elapsed() < SEARCH => cursor = next,
            next => return Ok(Listed { rows, next }),
        }
    }
}
