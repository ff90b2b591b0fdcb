//! What the worker of a job writes while it runs, for the page of the job.

use maud::{html, Markup};
use redis::Cmd;

use crate::app::RequestContext;
use crate::connection::board_command;
use crate::connection::reply::{bytes, Record};
use crate::failure::Failure;
use crate::format::size;
use crate::names::lines;

/// So much of it is shown, the end.
const SHOWN: usize = 16 * 1024;

/// So many lines and characters of its end stand on the line of time.
const END_LINES: usize = 4;
const END: usize = 400;

/// So many chunks are asked for at once.
const CHUNKS: usize = 1000;

/// What was read so far.
#[derive(Default)]
pub struct Output {
    /// How many chunks.
    since: i64,
    /// The end of them.
    text: Vec<u8>,
    /// Bytes before that.
    before: usize,
    /// Chunks that the server no longer had.
    missed: i64,
    attempt: i64,
}

impl Output {
    fn add(&mut self, told: &Record) {
        if told.int("anew") == 1 {
            *self = Output::default();
        }
        (self.since, self.attempt) = (told.int("next"), told.int("attempt"));
        self.missed += told.int("missed");
        for chunk in told.list("chunks") {
            self.text.extend_from_slice(&bytes(&chunk));
        }
        if let Some(over) = self.text.len().checked_sub(SHOWN) {
            // Not in the middle of a character.
            let begins = |byte: &u8| *byte & 0xc0 != 0x80;
            let over = over + self.text[over..].iter().position(begins).unwrap_or(0);
            self.before += over;
            self.text.drain(..over);
        }
    }

    /// The attempt that wrote it, when there is some.
    pub fn attempt(&self) -> Option<i64> {
        (self.since > 0).then_some(self.attempt)
    }

    /// How many chunks were written.
    pub fn written(&self) -> i64 {
        self.since
    }

    /// Its last lines, and how many bytes there are.
    pub fn end(&self) -> (String, usize) {
        let text = lines(&self.text);
        let last: Vec<&str> = text.trim_end().rsplit('\n').take(END_LINES).collect();
        let end = last.into_iter().rev().collect::<Vec<_>>().join("\n");
        let skip = end.chars().count().saturating_sub(END);
        (end.chars().skip(skip).collect(), self.text.len() + self.before)
    }

    pub fn draw(&self) -> Markup {
        html! {
            @if self.since > 0 {
                h2 { "Output" }
                pre.data tabindex="0" { (lines(&self.text)) }
                p.faint {
                    "Written by attempt " (self.attempt) "."
                    @if self.before > 0 { " " (size(self.before as i64)) " before it." }
                    @if self.missed > 0 { " The server no longer has " (self.missed) " earlier chunks." }
                }
            }
        }
    }
}

/// Reads what has been written since the last look.
pub async fn read(cx: &RequestContext, board: &[u8], id: &[u8], output: &mut Output) -> Result<(), Failure> {
    while let Some(told) = Record::read(cx.ask(board, since(board, id, output.since)).await?) {
        output.add(&told);
        if told.list("chunks").len() < CHUNKS {
            break;
        }
    }
    Ok(())
}

/// All of the output that the server still has, and how many chunks were written by then: an answer that pages
/// share may be older than what [`read`] has seen.
pub async fn all(cx: &RequestContext, board: &[u8], id: &[u8]) -> Result<(Vec<u8>, i64), Failure> {
    let (mut text, mut next) = (Vec::new(), 0);
    while let Some(told) = Record::read(cx.ask_shared(board, since(board, id, next)).await?) {
        if told.int("anew") == 1 {
            text.clear();
        }
        next = told.int("next");
        let chunks = told.list("chunks");
        text.extend(chunks.iter().flat_map(bytes));
        if chunks.len() < CHUNKS {
            break;
        }
    }
    Ok((text, next))
}

fn since(board: &[u8], id: &[u8], number: i64) -> Cmd {
    let mut command = board_command("OUTPUT", board);
    command.arg(id).arg("SINCE").arg(number).arg("COUNT").arg(CHUNKS);
    command
}

#[cfg(test)]
mod tests {
    use redis::Value;

    use super::*;

    fn told(anew: i64, next: i64, chunk: &[u8]) -> Record {
        let number = |name: &str, n| (Value::SimpleString(name.into()), Value::Int(n));
        let chunks = Value::Array(vec![Value::BulkString(chunk.to_vec())]);
        let all = vec![
            number("anew", anew),
            number("next", next),
            number("missed", 0),
            number("attempt", next),
            (Value::SimpleString("chunks".into()), chunks),
        ];
        Record::read(Value::Map(all)).expect("a map is a record")
    }

    #[test]
    fn the_end_is_shown_and_a_new_run_begins_anew() {
        let mut output = Output::default();
        output.add(&told(1, 1, b"a"));
        output.add(&told(0, 2, "é".repeat(SHOWN).as_bytes()));
        assert_eq!(output.text.len() + output.before, 1 + 2 * SHOWN);
        assert_eq!(lines(&output.text), "é".repeat(SHOWN / 2));
        output.add(&told(1, 3, b"b"));
        assert_eq!((&output.text[..], output.before, output.attempt), (&b"b"[..], 0, 3));
        assert_eq!((output.attempt(), output.end()), (Some(3), ("b".into(), 1)));
        output.add(&told(0, 4, b"\n1\n2\n3\n4\n"));
        assert_eq!(output.end().0, "1\n2\n3\n4");
        assert_eq!(Output::default().attempt(), None);
    }
}
