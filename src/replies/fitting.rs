//! How much fits into one reply, by `max-reply`: one record at least.

use board::{Board, Fields};

use crate::config::config;
use crate::redis::reply::{measure, Reply};
use crate::replies::errors::{syntax, Done};
use crate::replies::records::write_record;

/// No record is longer in a reply than in memory by more than this, but for `after`.
const NAMES: usize = 16 << 10;

/// What is left of a reply for records.
pub struct Room<'f> {
    fields: &'f [Fields],
    /// They are measured, not guessed.
    exact: bool,
    used: usize,
}

impl<'f> Room<'f> {
    /// All of it.
    pub fn new(fields: &'f [Fields]) -> Room<'f> {
        Room { fields, exact: fields.contains(&Fields::AFTER), used: 0 }
    }

    /// Takes up what the last of these records needs; all others have been. False when it is
    /// full then. Records are measured only where a guess would say so.
    pub fn take(&mut self, board: &Board, slots: &[u32]) -> bool {
        let most = config().max_reply as usize;
        let measured = |slot: &u32| measure(|reply| write_record(reply, board, *slot, self.fields));
        let last = || slots.last();
        if self.exact {
            self.used = self.used.saturating_add(last().map_or(0, measured));
            return self.used < most;
        }
        let guess = last().and_then(|slot| board.record_of(*slot)).map_or(0, |record| record.weight());
        let used = self.used.saturating_add(guess + NAMES);
        if used < most {
            self.used = used;
            return true;
        }
        let used = slots.iter().map(measured).sum();
        (self.used, self.exact) = (used, true);
        used < most
    }
}

/// How many of these records, the first ones, fit into one reply.
pub fn fit(board: &Board, slots: &[u32], fields: &[Fields]) -> usize {
    let mut room = Room::new(fields);
    let full = |n: &usize| !room.take(board, slots.get(..*n).unwrap_or(slots));
    (1..slots.len()).find(full).unwrap_or(slots.len())
}

/// How many of these rows, the first ones, fit into one reply.
pub fn fit_rows<T>(rows: &[T], write: impl Fn(Reply<'_>, &T)) -> usize {
    let mut used = 0;
    let full = |row: &T| {
        used += measure(|reply| write(reply, row));
        used >= config().max_reply as usize
    };
    rows.iter().position(full).map_or(rows.len(), |last| last + 1)
}

/// Refuses records that are named one by one and do not fit into one reply together.
pub fn check_fit(board: &Board, slots: &[u32], fields: &[Fields]) -> Done {
    match fit(board, slots, fields) < slots.len() {
        true => syntax(format!(
            "the records are longer than max-reply ({}) together: name fewer ids or FIELDS",
            config().max_reply
        )),
        false => Ok(()),
    }
}
