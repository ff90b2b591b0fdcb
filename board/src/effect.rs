//! Effects: what happens to a board.
//!
//! An effect contains what happened, with absolute times, the ids that were made and the random
//! bits that were drawn, so that applying it needs nothing but the board. It is written as its tag
//! and its fields by number ([`crate::format`]). Tags and numbers are the format of replication
//! links and append-only files: new ones may be added, none may change.

use std::fmt;

use crate::batch::ReplayError;
use crate::board::Board;
use crate::dispatch::rates::Rested;
use crate::format::{next_tag, Decoder, Written};
use crate::settings::LONGEST;
use crate::verbs::*;

/// Fields and values of a META option.
pub type Meta<'a> = Vec<(&'a [u8], &'a [u8])>;

/// The copy cannot take the effect: it names something that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApplyError;

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

            pub(crate) fn decode(from: &mut Decoder<'a>) -> Result<Self, ReplayError> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
