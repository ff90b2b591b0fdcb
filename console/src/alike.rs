//! Failures that are the same: of one kind, with messages that differ in numbers alone.

use std::time::{Duration, Instant};

use crate::app::RequestContext;
use crate::connection::board_command;
use crate::connection::reply::{page, Record};
use crate::failure::Failure;

/// The newest failures of a board, of which pages make groups. Older ones are counted by kind alone: the
/// server has no index of messages.
pub const NEWEST: usize = 1000;

/// Looking at them takes no longer than this.
const PATIENCE: Duration = Duration::from_millis(1500);

/// Characters of a message that are compared.
const COMPARED: usize = 200;

pub const FIELDS: [&str; 8] = ["id", "queue", "name", "kind", "message", "ended", "attempt", "previous"];

/// What several failures have in common.
#[derive(Clone, Debug, PartialEq)]
pub struct Alike {
    pub kind: Vec<u8>,
    /// `None`: whatever the message is.
    pub pattern: Option<String>,
}

impl Alike {
    pub fn holds(&self, row: &Record) -> bool {
        row.bytes("kind") == self.kind
            && self.pattern.as_ref().is_none_or(|wanted| *wanted == pattern(&row.bytes("message")))
    }
}

/// Failures that are the same, newest first.
pub struct Group<'a> {
    pub alike: Alike,
    pub rows: Vec<&'a Record>,
}

/// The newest failures, newest first, and where older ones begin.
pub async fn newest(cx: &RequestContext, board: &[u8]) -> Result<(Vec<Record>, Option<Vec<u8>>), Failure> {
    let began = Instant::now();
    let (mut rows, mut cursor) = (Vec::new(), b"0".to_vec());
    loop {
        let mut command = board_command("LIST", board);
        command.arg("STATE").arg("failed").arg("REV").arg("CURSOR").arg(&cursor);
        command.arg("COUNT").arg(NEWEST - rows.len()).arg("FIELDS").arg(FIELDS.len()).arg(&FIELDS);
        let (next, found) = page(cx.ask_shared(board, command).await?);
        rows.extend(found);
        match next {
            Some(next) if rows.len() < NEWEST && began.elapsed() < PATIENCE => cursor = next,
            next => return Ok((rows, next)),
        }
    }
}

/// Puts together what is the same, the most frequent first.
pub fn groups(rows: &[Record]) -> Vec<Group<'_>> {
    let mut found: Vec<Group> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for row in rows {
        let key = (row.bytes("kind"), pattern(&row.bytes("message")));
        let place = *places.entry(key).or_insert_with_key(|(kind, pattern)| {
            let alike = Alike { kind: kind.clone(), pattern: Some(pattern.clone()) };
            found.push(Group { alike, rows: Vec::new() });
            found.len() - 1
        });
        found[place].rows.push(row);
    }
    found.sort_by_key(|group| std::cmp::Reverse(group.rows.len()));
    found
}

/// The line of a message that says what went wrong: the first, and of a traceback the last.
pub fn headline(message: &[u8]) -> String {
    let text = String::from_utf8_lossy(message);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let line = if first.starts_with("Traceback (") { lines.next_back().unwrap_or(first) } else { first };
    line.to_owned()
}

/// A message without what differs from one time to the next: numbers, and words of hexadecimal digits, such as a UUID.
pub fn pattern(message: &[u8]) -> String {
    let line = headline(message);
    let mut text = String::new();
    let mut word = String::new();
    for one in line.chars().take(COMPARED) {
        if one.is_ascii_alphanumeric() || one == '-' {
            word.push(one);
        } else {
            add(&mut text, &std::mem::take(&mut word));
            text.push(one);
        }
    }
    add(&mut text, &word);
    text
}

fn add(text: &mut String, word: &str) {
    let has_digit = word.chars().any(|one| one.is_ascii_digit());
    if word.len() >= 8 && has_digit && word.chars().all(|one| one.is_ascii_hexdigit() || one == '-') {
        text.push('#');
        return;
    }
    let mut digits = false;
    for one in word.chars() {
        if !one.is_ascii_digit() {
            text.push(one);
        } else if !digits {
            text.push('#');
        }
        digits = one.is_ascii_digit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redis::Value;

    fn row(kind: &str, message: &str) -> Record {
        let bulk = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let pairs = vec![(bulk("kind"), bulk(kind)), (bulk("message"), bulk(message))];
        Record::read(Value::Map(pairs)).unwrap()
    }

    #[test]
    fn numbers_make_no_difference() {
        assert_eq!(pattern(b"order 4711 not found"), pattern(b"order 8 not found"));
        assert_eq!(
            pattern(b"no user 0195f3aa-77bc-7c1e-9f20-5a1b2c3d4e5f"),
            pattern(b"no user 0195f3ab-0000-7d1e-8f20-000000000000")
        );
        assert_ne!(pattern(b"order 1 not found"), pattern(b"order 1 not paid"));
        assert_eq!(pattern(b"sha256 of v2"), "sha# of v#");
    }

    #[test]
    fn a_traceback_is_named_by_its_last_line() {
        let trace = b"Traceback (most recent call last):\n  File \"a.py\", line 3\nValueError: no 7\n";
        assert_eq!((headline(trace), pattern(trace)), ("ValueError: no 7".into(), "ValueError: no #".into()));
        assert_eq!(headline(b"\n first \n second"), "first");
        assert_eq!(headline(b""), "");
    }

    #[test]
    fn groups_are_by_kind_and_message_the_largest_first() {
        let rows = [row("A", "x"), row("B", "n 1"), row("B", "n 2"), row("A", "y")];
        let found: Vec<(Vec<u8>, usize)> =
            groups(&rows).into_iter().map(|group| (group.alike.kind, group.rows.len())).collect();
        assert_eq!(found, [(b"B".to_vec(), 2), (b"A".to_vec(), 1), (b"A".to_vec(), 1)]);
        assert!(Alike { kind: b"B".to_vec(), pattern: None }.holds(&rows[1]));
        assert!(!Alike { kind: b"B".to_vec(), pattern: Some("n".into()) }.holds(&rows[1]));
    }
}
