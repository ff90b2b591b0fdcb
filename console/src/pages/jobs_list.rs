//! Asking the server for a page of jobs.

use std::time::{Duration, Instant};

use crate::app::RequestContext;
use crate::connection::board_command;
use crate::connection::reply::{bytes, page, Record};
use crate::failure::Failure;
use crate::filters::Filters;

pub const PAGE: usize = 50;

/// Filters that few jobs pass make the server look at many: it is asked again until the page is full, but
/// no longer than this.
const SEARCH: Duration = Duration::from_millis(1500);

const FIELDS: [&str; 18] = [
    "id", "state", "queue", "name", "priority", "attempt", "left", "worker", "progress", "stage", "posted",
    "due", "ended", "kind", "message", "user", "tags", "group",
];

/// The order in which a list comes, as far as times can end it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    Ended,
    Posted,
}

pub struct Listed {
    pub rows: Vec<Record>,
    pub next: Option<Vec<u8>>,
}

pub async fn list(cx: &RequestContext, board: &[u8], filters: &Filters) -> Result<Listed, Failure> {
    let since = match filters.since() {
        Some(since) => Some((since, order(filters)?)),
        None => None,
    };
    let began = Instant::now();
    let mut rows: Vec<Record> = Vec::new();
    let mut cursor = cx.query.bytes("cursor").unwrap_or(b"0").to_vec();
    loop {
        let mut command = board_command("LIST", board);
        match since {
            // A filter by an index would change the order, in which what is older ends the list.
            Some((_, Order::Ended)) => filters.only(&["state", "queue"]).add_to(&mut command),
            _ => filters.add_to(&mut command),
        }
        if cx.query.is_set("rev") || since.is_some() {
            command.arg("REV");
        }
        command.arg("CURSOR").arg(&cursor).arg("COUNT").arg(PAGE - rows.len());
        command.arg("FIELDS").arg(FIELDS.len()).arg(&FIELDS);
        let (next, found) = page(cx.ask(board, command).await?);
        let mut over = false;
        match since {
            None => rows.extend(found),
            Some((since, order)) => {
                let field = if order == Order::Ended { "ended" } else { "posted" };
                for row in found {
                    over |= row.int(field) < since;
                    if !over && fits(&row, filters) {
                        rows.push(row);
                    }
                }
            }
        }
        match next {
            _ if over => return Ok(Listed { rows, next: None }),
            Some(next) if rows.len() < PAGE && began.elapsed() < SEARCH => cursor = next,
            next => return Ok(Listed { rows, next }),
        }
    }
}

/// By which time a list with these filters comes, newest first.
fn order(filters: &Filters) -> Result<Order, Failure> {
    let states: Vec<&[u8]> = filters.values("state").collect();
    match states.as_slice() {
        [b"failed" | b"complete" | b"cancelled" | b"trashed"] => Ok(Order::Ended),
        _ if ["name", "tag", "kind", "user", "tracked"].iter().any(|field| filters.values(field).next().is_some()) => {
            Ok(Order::Posted)
        }
        _ => Err(Failure::BadRequest(
            "since goes with one of failed, done, cancelled and trashed (the jobs that ended since then), or with a name, tag, kind, user or tracked (those posted since then).".into(),
        )),
    }
}

/// The filters that the server was not asked for.
fn fits(row: &Record, filters: &Filters) -> bool {
    let one = |field: &str, value: &[u8]| match field {
        "tag" => row.list("tags").iter().any(|tag| bytes(tag) == value),
        field => row.bytes(field) == value,
    };
    ["name", "tag", "user", "group", "kind"].iter().all(|field| {
        let mut wanted = filters.values(field).peekable();
        wanted.peek().is_none() || wanted.any(|value| one(field, value))
    })
}
