//! The beginnings of payloads, for lists. The server gives payloads whole, so that a list asks for a few at
//! a time and stops when it has fetched enough.

use crate::app::RequestContext;
use crate::connection::board_command;
use crate::connection::reply::{bytes, list, Record};
use crate::failure::Failure;
use crate::names::short;

/// No list fetches more than about this.
const ENOUGH: usize = 512 * 1024;

/// Payloads of the first question; further ones grow where payloads are small.
const FIRST: usize = 4;

/// Characters that are shown.
const SHOWN: usize = 160;

/// The payloads of these jobs; `None` for those that are not fetched, or not there any more.
pub async fn payloads(
    cx: &RequestContext,
    board: &[u8],
    ids: &[Vec<u8>],
) -> Result<Vec<Option<Vec<u8>>>, Failure> {
    let mut found: Vec<Option<Vec<u8>>> = Vec::with_capacity(ids.len());
    let mut fetched = 0;
    while found.len() < ids.len() && fetched < ENOUGH {
        let each = fetched / found.len().max(1);
        let room = if found.is_empty() { FIRST } else { (ENOUGH - fetched) / each.max(1) };
        let some = &ids[found.len()..ids.len().min(found.len() + room.clamp(1, 100))];
        let mut command = board_command("MGET", board);
        command.arg(some.len()).arg(some).arg("FIELDS").arg(1).arg("payload");
        let replies = match cx.ask(board, command).await {
            // A reply that would be too large is no reason to show no list.
            Err(Failure::NotAllowed(_) | Failure::Server(_)) => break,
            other => list(other?),
        };
        for reply in replies {
            let payload = Record::read(reply).and_then(|record| record.get("payload").map(bytes));
            fetched += payload.as_ref().map_or(0, Vec::len);
            found.push(payload);
        }
    }
    found.resize(ids.len(), None);
    Ok(found)
}

/// One line of a payload.
pub fn line(payload: &[u8]) -> String {
    let cut = &payload[..payload.len().min(SHOWN * 4)];
    let text: Vec<u8> = match std::str::from_utf8(payload) {
        Ok(text) if payload.len() <= SHOWN * 8 => {
            text.split_whitespace().collect::<Vec<_>>().join(" ").into()
        }
        _ => cut.to_vec(),
    };
    short(&text, SHOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_becomes_one_short_line() {
        assert_eq!(line(b"{\n  \"a\": 1\n}"), "{ \"a\": 1 }");
        assert_eq!(line(b"\xff\x00"), "\\xff\\x00");
        assert_eq!(line("x".repeat(5000).as_bytes()).chars().count(), SHOWN);
    }
}
