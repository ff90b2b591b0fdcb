//! How many records fit into one reply, by `max-reply`: at least one.

use board::{Board, Fields};

use crate::config::config;
use crate::redis::reply::{measure, Reply};
use crate::replies::errors::{syntax, Done};
use crate::replies::records::write_record;

/// A record in a reply is at most this much longer than in memory, not counting `after`.
const NAMES: usize = 16 << 10;

/// The room that is left in a reply for records.
pub struct Room<'f> {
    fields: &'f [Fields],
    /// Whether records are measured instead of estimated.
    exact: bool,
    used: usize,
}

impl<'f> Room<'f> {
    /// An empty reply.
    pub fn new(fields: &'f [Fields]) -> Room<'f> {
        // An entry of a history is short in memory beside its names in the reply.
        let exact = fields.contains(&Fields::AFTER) || fields.contains(&Fields::HISTORY);
        Room { fields, exact, used: 0 }
    }

    /// Takes the room for the last of these records; the others have been taken before. Returns
    /// false when the reply is full. Measures records only when an estimate says that it is.
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

/// How many of these records, from the first on, fit into one reply.
pub fn fit(board: &Board, slots: &[u32], fields: &[Fields]) -> usize {
    let mut room = Room::new(fields);
    let full = |n: &usize| !room.take(board, slots.get(..*n).unwrap_or(slots));
    (1..slots.len()).find(full).unwrap_or(slots.len())
}

/// How many of these rows, from the first on, fit into one reply.
pub fn fit_rows<T>(rows: &[T], write: impl Fn(Reply<'_>, &T)) -> usize {
    let mut used = 0;
    let full = |row: &T| {
        used += measure(|reply| write(reply, row));
        used >= config().max_reply as usize
    };
    rows.iter().position(full).map_or(rows.len(), |last| last + 1)
}

/// Refuses records that are named by id and do not fit into one reply together.
pub fn check_fit(board: &Board, slots: &[u32], fields: &[Fields]) -> Done {
    match fit(board, slots, fields) < slots.len() {
        true => syntax(format!(
            "the records are longer than max-reply ({}) together: name fewer ids or FIELDS",
            config().max_reply
        )),
        false => Ok(()),
    }
}
