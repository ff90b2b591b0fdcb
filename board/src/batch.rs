//! Batches: how effects are sent.
//!
//! A batch is what one command does to one board: a MessagePack array of revision before, time of
//! decision and number of effects, then the effects.

use std::fmt;

use serde::Deserialize;

use crate::board::Board;
use crate::effect::{Apply, Effect};
use crate::format::{next_tag, Decoder};
use crate::job::NEVER;

/// Why a copy cannot take a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayError {
    /// The copy is at the first revision, the batch begins at the second: what is between is
    /// missing.
    Gap(u64, u64),
    /// This version knows no effect with this tag.
    Unknown(u8),
    /// The effect with this tag has fields that this version does not know, or names something that
    /// does not exist.
    ApplyError(u8),
    /// There are fewer effects than the batch announces, or more.
    Count,
    /// The copy was broken before.
    Before,
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplayError::Gap(at, begin) => {
                write!(f, "it is at revision {at}, the next change at {begin}: some are missing")
            }
            ReplayError::Unknown(tag) => write!(f, "this version knows no effect {tag}"),
            ReplayError::ApplyError(tag) => write!(f, "an effect {tag} does not fit"),
            ReplayError::Count => f.write_str("a batch is cut, or too long"),
            ReplayError::Before => f.write_str("it was broken before"),
        }
    }
}

/// What one command, or one tick of the timer, does to one board: built in a buffer that is reused.
#[derive(Default)]
pub struct Batch {
    bytes: Vec<u8>,
    /// Where in the bytes the count is.
    count_at: usize,
    count: u32,
}

impl Batch {
    /// Begins a batch on a board of this revision.
    pub fn begin(&mut self, revision: u64, now: i64) {
        self.bytes.clear();
        self.bytes.push(0x93);
        match u32::try_from(revision) {
            Ok(revision) => self.number(0xce, &revision.to_be_bytes()),
            Err(_) => self.number(0xcf, &revision.to_be_bytes()),
        }
        self.number(0xd3, &now.to_be_bytes());
        (self.count_at, self.count) = (self.bytes.len(), 0);
        self.bytes.push(0);
    }

    fn number(&mut self, marker: u8, bytes: &[u8]) {
        self.bytes.push(marker);
        self.bytes.extend_from_slice(bytes);
    }

    /// Adds an effect, encoded.
    pub fn push(&mut self, effect: &impl Apply) {
        effect.encode(&mut self.bytes);
        self.count += 1;
    }

    /// Counts an effect of a batch that nobody will read.
    pub fn count(&mut self) {
        self.count += 1;
    }

    /// Bytes of the buffer, which keeps its size for the next batch.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Whether the batch has no effect.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Ends the batch, once, and returns its bytes. Every effect must have been added by `push`.
    pub fn finish(&mut self) -> &[u8] {
        let at = self.count_at;
        match (u8::try_from(self.count), self.bytes.get_mut(at)) {
            (Ok(count @ ..=0x7f), Some(place)) => *place = count,
            // The head has no room for a larger count: most batches have one effect or two.
            _ => {
                let [a, b, c, d] = self.count.to_be_bytes();
                self.bytes.splice(at..=at, [0xce, a, b, c, d]);
            }
        }
        &self.bytes
    }
}

/// The revision before a batch, the time of its decision and how many effects it has.
type Head = (u64, i64, u32);

/// When the board was created whose first batch this is, Unix ms; `None` for a later batch.
fn created_by(batch: &[u8]) -> Option<i64> {
    let (revision, now, _) = Head::deserialize(&mut Decoder::from_read_ref(batch)).ok()?;
    (revision == 0 && (0..NEVER).contains(&now)).then_some(now)
}

/// Whether a batch is the first one of a board.
pub fn begins(batch: &[u8]) -> bool {
    created_by(batch).is_some()
}

/// What replaying a batch did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// The batch changed the board.
    Done,
    /// The board already had the batch.
    Skipped,
    /// Something before the batch is missing, or it does not fit: the board is broken from now on.
    Broken(ReplayError),
    /// These bytes are no batch; nothing changed.
    Malformed,
}

impl Board {
    /// Applies a batch that another copy of this board decided. Effects apply once and in
    /// order: an old batch is skipped, a gap breaks the copy.
    pub fn replay(&mut self, batch: &[u8]) -> Applied {
        let mut from = Decoder::from_read_ref(batch);
        let Ok((revision, now, count)) = Head::deserialize(&mut from) else {
            return Applied::Malformed;
        };
        if !(0..NEVER).contains(&now) {
            return Applied::Malformed;
        }
        if revision < self.revision() {
            return Applied::Skipped;
        }
        let flaw = match self.broken() {
            true => Some(ReplayError::Before),
            false if revision > self.revision() => Some(ReplayError::Gap(self.revision(), revision)),
            false => self.take(&mut from, now, count).err(),
        };
        if let Some(flaw) = flaw {
            self.set_broken();
            // The held parts are no longer the state of the board.
            self.held = None;
            return Applied::Broken(flaw);
        }
        self.local.foreign = self.token;
        // Lateness is reported by the server that decided the batch, not by copies.
        self.local.lateness = None;
        Applied::Done
    }

    /// Whether a batch is the first one of another board: the server that decided it had none under this
    /// key. Boards of one millisecond are not told apart.
    pub fn is_succeeded_by(&self, batch: &[u8]) -> bool {
        let created = created_by(batch).filter(|_| self.revision > 0 && self.created > 0);
        created.is_some_and(|created| created != self.created)
    }

    /// Applies this many effects; nothing may follow them.
    fn take(&mut self, from: &mut Decoder<'_>, now: i64, count: u32) -> Result<(), ReplayError> {
        for _ in 0..count {
            let effect = Effect::decode(from)?;
            if !self.takes(&effect) || self.apply(&effect, now).is_err() {
                return Err(ReplayError::ApplyError(effect.tag()));
            }
        }
        match next_tag(from) {
            Ok(None) => Ok(()),
            _ => Err(ReplayError::Count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scope::Scope;
    use crate::verbs::{Claimed, Configured, Released};

    #[test]
    fn a_batch_is_read_as_it_was_written() {
        let claimed = Effect::from(Claimed {
            slot: 7,
            worker: b"w\0\xff",
            token: 1 << 52,
            lease: 30_000,
            timeout: -1,
            grace: 0,
        });
        let mut batch = Batch::default();
        batch.begin(9, 1_700_000_000_000);
        batch.push(&claimed);
        let bytes = batch.finish().to_vec();
        let mut from = Decoder::from_read_ref(&bytes[..]);
        assert_eq!(Head::deserialize(&mut from).ok(), Some((9, 1_700_000_000_000, 1)));
        assert_eq!(Effect::decode(&mut from), Ok(claimed));
        assert_eq!(Effect::decode(&mut from), Err(ReplayError::Count));
    }

    #[test]
    fn a_batch_has_as_many_effects_as_it_says() {
        let mut batch = Batch::default();
        for n in [0, 1, 127, 128, 300] {
            for revision in [0, u64::from(u32::MAX) + 1] {
                batch.begin(revision, 1);
                (0..n).for_each(|_| batch.push(&Released { slot: 1, front: None }));
                let mut from = Decoder::from_read_ref(batch.finish());
                assert_eq!(Head::deserialize(&mut from).ok(), Some((revision, 1, n)));
                assert!((0..n).all(|_| Effect::decode(&mut from).is_ok()));
                assert_eq!(Effect::decode(&mut from), Err(ReplayError::Count));
            }
        }
    }

    #[test]
    fn what_breaks_a_copy_is_said() {
        let set = |value| {
            Effect::from(Configured { scope: Scope::Board, setting: crate::settings::Setting::Lease, value })
        };
        let replayed = |change: fn(&mut Vec<u8>)| {
            let mut batch = Batch::default();
            batch.begin(0, 1);
            batch.push(&set(Some(9)));
            let mut bytes = batch.finish().to_vec();
            change(&mut bytes);
            Board::default().replay(&bytes)
        };
        assert_eq!(replayed(|_| ()), Applied::Done);
        // An array's head, five bytes of revision, nine of time, the count, a tag, a map's head, a field.
        assert_eq!(replayed(|bytes| bytes[5] = 7), Applied::Broken(ReplayError::Gap(0, 7)));
        assert_eq!(replayed(|bytes| bytes[16] = 127), Applied::Broken(ReplayError::Unknown(127)));
        assert_eq!(replayed(|bytes| bytes[18] = 9), Applied::Broken(ReplayError::ApplyError(14)));
        assert_eq!(replayed(|bytes| bytes[15] = 2), Applied::Broken(ReplayError::Count));
        assert_eq!(replayed(|bytes| bytes.push(14)), Applied::Broken(ReplayError::Count));
        assert_eq!(
            ReplayError::Gap(3, 5).to_string(),
            "it is at revision 3, the next change at 5: some are missing"
        );
    }

    #[test]
    fn the_first_batch_of_another_board_is_told_from_an_old_one() {
        let set =
            Configured { scope: Scope::Board, setting: crate::settings::Setting::Lease, value: Some(9) };
        let batch_of = |revision, now| {
            let mut batch = Batch::default();
            batch.begin(revision, now);
            batch.push(&set);
            batch.finish().to_vec()
        };
        let mut board = Board::default();
        assert!(!board.is_succeeded_by(&batch_of(0, 1)), "it has none before");
        assert_eq!(board.replay(&batch_of(0, 1)), Applied::Done);
        assert!(!board.is_succeeded_by(&batch_of(0, 1)) && !board.is_succeeded_by(&batch_of(1, 2)));
        assert!(board.is_succeeded_by(&batch_of(0, 2)));
        assert!(!board.is_succeeded_by(b"\x93"));
    }

    #[test]
    fn an_old_batch_is_skipped_and_a_gap_breaks_the_copy() {
        let mut board = Board::default();
        let mut batch = Batch::default();
        batch.begin(0, 1);
        batch.push(&Configured {
            scope: Scope::Board,
            setting: crate::settings::Setting::Lease,
            value: Some(9),
        });
        let first = batch.finish().to_vec();
        assert_eq!(board.replay(&first), Applied::Done);
        assert_eq!(board.replay(&first), Applied::Skipped);
        assert_eq!(board.replay(b"\x93"), Applied::Malformed);
        batch.begin(5, 1);
        assert_eq!(board.replay(batch.finish()), Applied::Broken(ReplayError::Gap(1, 5)));
        assert_eq!(board.replay(batch.finish()), Applied::Broken(ReplayError::Before));
        assert!(board.broken());
    }
}
