//! What was done through this console: who sent which command to which board, and what came of it. The last
//! of them are remembered while it runs.

use std::collections::VecDeque;
use std::sync::Mutex;

use crate::access::sessions::lock;
use crate::format::now;
use crate::names::short;

/// So many are remembered.
const KEPT: usize = 5000;

/// Characters of a command that are kept: payloads and lists of ids may be long.
const COMMAND: usize = 300;

#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Unix ms.
    pub at: i64,
    pub user: String,
    pub board: Vec<u8>,
    pub command: String,
    /// The server's answer, or why it refused.
    pub outcome: String,
    pub refused: bool,
}

#[derive(Default)]
pub struct Audit {
    entries: Mutex<VecDeque<Entry>>,
}

impl Audit {
    pub fn note(&self, user: &str, board: &[u8], command: &str, outcome: Result<&str, &str>) {
        let (Ok(text) | Err(text)) = outcome;
        let mut entries = lock(&self.entries);
        if entries.len() >= KEPT {
            entries.pop_front();
        }
        entries.push_back(Entry {
            at: now(),
            user: user.to_owned(),
            board: board.to_vec(),
            command: short(command.as_bytes(), COMMAND),
            outcome: short(text.as_bytes(), COMMAND),
            refused: outcome.is_err(),
        });
    }

    /// The last ones of a board, newest first, and how many there are.
    pub fn of(&self, board: &[u8], most: usize) -> (Vec<Entry>, usize) {
        let entries = lock(&self.entries);
        let own = entries.iter().rev().filter(|entry| entry.board == board);
        (own.clone().take(most).cloned().collect(), own.count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_come_first_and_the_oldest_go() {
        let audit = Audit::default();
        audit.note("ann", b"other", "JOB.PAUSE other", Ok("done."));
        for number in 0..KEPT {
            audit.note("ann", b"b", &format!("JOB.CANCEL b 1 {number}"), Err("ENDED"));
        }
        let (last, all) = audit.of(b"b", 2);
        assert_eq!((last.len(), all), (2, KEPT));
        assert!(last[0].command.ends_with(&format!(" {}", KEPT - 1)) && last[0].refused);
        assert_eq!(audit.of(b"other", 2), (Vec::new(), 0));
    }
}
