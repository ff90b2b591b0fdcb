//! Effects: what happens to a board, and how it is sent.
//!
//! An effect contains what happened, with absolute times, the ids that were made and the random
//! bits that were drawn, so that applying it needs nothing but the board. A batch is what one
//! command does to one board: a MessagePack array of revision before, time of decision and number
//! of effects, then for each effect its tag and its fields by number ([`crate::format`]). Tags and
//! numbers are the format of replication links and append-only files: new ones may be added, none
//! may change.

use std::fmt;

use serde::Deserialize;

use crate::board::Board;
use crate::dispatch::rates::Rested;
use crate::format::{next_tag, Decoder, Written};
use crate::job::NEVER;
use crate::settings::LONGEST;
use crate::verbs::*;

/// Fields and values of a META option.
pub type Meta<'a> = Vec<(&'a [u8], &'a [u8])>;

/// The copy cannot take the effect: it names something that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApplyError;

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

/// Checks that decided effects satisfy by construction. Replay runs them; with debug assertions, so
/// does every decision.
pub(crate) trait Validate {
    /// Whether a decision on this board could have given every number and name.
    fn is_valid(&self, _board: &Board) -> bool {
        true
    }
}

/// Whether a name of a queue, a worker or a job has a valid length.
pub(crate) fn is_name(name: &[u8]) -> bool {
    (1..=255).contains(&name.len())
}

/// Whether a lease has a valid length, ms.
pub(crate) fn is_lease(ms: i64) -> bool {
    (1..=LONGEST).contains(&ms)
}

/// Whether a grace has a valid length, ms.
pub(crate) fn is_grace(ms: i64) -> bool {
    (0..=LONGEST).contains(&ms)
}

/// One effect of a known type, or any [`Effect`]. A decided effect is applied and encoded as its
/// own type, since an [`Effect`] is as large as the largest and is moved as a whole.
pub trait Apply: fmt::Debug {
    /// Appends it to a batch.
    fn encode(&self, out: &mut Vec<u8>);
    /// Whether a copy of this board would take it.
    fn fits(&self, board: &Board) -> bool;
    /// Applies it. For [`Board::apply`] alone, which counts it.
    fn apply_to(&self, board: &mut Board, now: i64) -> Result<(), ApplyError>;
}

impl<T: Apply> Apply for &T {
    fn encode(&self, out: &mut Vec<u8>) {
        (**self).encode(out);
    }

    fn fits(&self, board: &Board) -> bool {
        (**self).fits(board)
    }

    fn apply_to(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        (**self).apply_to(board, now)
    }
}

macro_rules! effects {
    ($($(#[$doc:meta])* $tag:literal $name:ident $(<$life:lifetime>)?,)*) => {
        /// One thing that happens to a board.
        // Decided effects are applied as their own types; of those that are read there is one at a
        // time, on the stack.
        #[allow(clippy::large_enum_variant)]
        #[derive(Debug, Clone, PartialEq)]
        pub enum Effect<'a> {
            $($(#[$doc])* $name($name$(<$life>)?),)*
        }

        $(impl<'a> From<$name$(<$life>)?> for Effect<'a> {
            fn from(effect: $name$(<$life>)?) -> Self {
                Effect::$name(effect)
            }
        }

        impl $(<$life>)? Apply for $name $(<$life>)? {
            fn encode(&self, out: &mut Vec<u8>) {
                out.push($tag);
                self.write(out);
            }

            fn fits(&self, board: &Board) -> bool {
                self.is_valid(board)
            }

            fn apply_to(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
                self.apply(board, now)
            }
        })*

        impl Apply for Effect<'_> {
            fn encode(&self, out: &mut Vec<u8>) {
                match self {
                    $(Effect::$name(effect) => effect.encode(out),)*
                }
            }

            fn fits(&self, board: &Board) -> bool {
                match self {
                    $(Effect::$name(effect) => effect.is_valid(board),)*
                }
            }

            fn apply_to(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
                match self {
                    $(Effect::$name(effect) => effect.apply(board, now),)*
                }
            }
        }

        impl<'a> Effect<'a> {
            /// The tags of all effects.
            pub const TAGS: &'static [u8] = &[$($tag),*];

            /// The tag of this effect in a batch.
            pub fn tag(&self) -> u8 {
                match self {
                    $(Effect::$name(_) => $tag,)*
                }
            }

            fn decode(from: &mut Decoder<'a>) -> Result<Self, ReplayError> {
                match next_tag(from).or(Err(ReplayError::Count))?.ok_or(ReplayError::Count)? {
                    $($tag => $name::read(from).map(Effect::$name).or(Err(ReplayError::ApplyError($tag))),)*
                    tag => Err(ReplayError::Unknown(tag)),
                }
            }

            /// Checks that every effect, and everything in it, may get new fields.
            #[cfg(test)]
            fn check_growth() {
                $($name::check_growth();)*
            }
        }
    };
}

effects! {
    /// A job was posted, or replaced the one with its id.
    1 Posted<'a>,
    /// A worker took a job.
    2 Claimed<'a>,
    /// A worker sent a heartbeat, perhaps with a report.
    3 Beaten<'a>,
    /// A job is complete.
    4 Consumed<'a>,
    /// An attempt failed: another follows, or the job has failed.
    5 Failed<'a>,
    /// A worker abandoned a job.
    6 Abandoned<'a>,
    /// A worker trashed a job.
    7 Trashed<'a>,
    /// Somebody asked the holder of a job to stop.
    8 CancelRequested,
    /// A job was cancelled.
    9 Cancelled<'a>,
    /// An operator took a job from its worker.
    10 Released,
    /// An ended job was requeued.
    11 Requeued<'a>,
    /// A record was removed.
    12 Deleted,
    /// An operator changed a job.
    13 Updated<'a>,
    /// A setting was set or reset.
    14 Configured<'a>,
    /// A late worker got its job back.
    15 Revived,
    /// Time did to one job what was due.
    16 Settled,
    /// Time did to the head of a line what was due.
    17 Elapsed,
    /// The oldest ended jobs were removed: there were too many.
    18 Trimmed,
    /// The tombstone of a job was removed.
    19 Forgotten<'a>,
    /// Edges to jobs that have ended were resolved.
    20 Resolved,
    /// A job waits for other jobs than before.
    21 Depended,
    /// The labels of a job changed.
    22 Labelled,
    /// A worker stored what a step came to.
    23 Stepped<'a>,
    /// A worker gave its job up until signals arrive.
    24 Awaiting<'a>,
    /// Time freed unique keys.
    25 Freed,
    /// A signal arrived.
    26 Signalled<'a>,
    /// A board, a queue or a group was paused.
    30 Paused<'a>,
    /// An operator ended a pause.
    31 Resumed<'a>,
    /// Time ended pauses.
    32 Lifted,
    /// A pause took jobs from their workers.
    33 Reclaimed,
    /// An operator changed several jobs in the same way.
    40 UpdatedAll<'a>,
    /// A worker advanced its job to another queue.
    41 Advanced<'a>,
    /// A worker registered.
    47 Registered<'a>,
    /// A worker was deregistered.
    48 Deregistered<'a>,
    /// A worker became quiet, or stopped being quiet.
    49 Quieted<'a>,
    /// Time ended registrations, and claims of their workers.
    50 Departed,
    /// The connection of session claims has closed.
    51 Disconnected,
    /// A claim was bound to its connection.
    52 Bound,
    /// Days of statistics were dropped.
    53 DaysDropped,
    /// A job became the child of another.
    56 Adopted,
    /// Children that were kept for a parent were released.
    57 Parted,
    /// A schedule was added or changed.
    60 ScheduleSet,
    /// A schedule was deleted.
    61 ScheduleDeleted,
    /// A schedule got another next time, or was paused.
    62 ScheduleMoved,
    /// A schedule posted a child.
    63 Fired,
    /// Groups were reviewed after a setting of all groups had changed.
    65 Reviewed,
    /// Groups that waited for permits can give jobs again.
    66 Rested,
    /// A queue or a group names other shared limits.
    91 LimitsNamed<'a>,
    /// A queue has another dead queue.
    92 DeadQueueNamed<'a>,
    /// A worker said what its claim has cost so far.
    110 Spent,
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
    fn every_effect_and_all_that_is_in_it_may_grow() {
        Effect::check_growth();
    }

    #[test]
    fn tags_are_of_one_effect_each() {
        let mut tags = Effect::TAGS.to_vec();
        tags.dedup();
        assert_eq!(tags, Effect::TAGS);
        assert!(Effect::TAGS.is_sorted(), "so that two of one number stand side by side");
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
