//! Whole boards as bytes: for RDB files, `DUMP`, the rewrite of append-only files, slot
//! migration, and digests.
//!
//! A snapshot is a sequence of items: one head, then named limits in the order of their numbers,
//! then the queues that have settings or name limits, then pauses, then the queues that have
//! groups, each with its groups in the order of their numbers, then jobs in the order of their
//! slots, then tombstones, then schedules in the order of their ids, then ends that are still to
//! be told, then keys that are taken in their order, then workers that registered or go, by name,
//! then statistics by day and queue, then families whose children are still to be let go, then
//! removed records, then an end with the number of items before it. Each item is a tag
//! and a map ([`crate::format`]); a part is some of them. The items follow from the state alone,
//! so equal boards give equal bytes.
//!
//! When loaded, every byte is taken for hostile: nothing is allocated on the word of a
//! length, every number is checked, and the finished board must pass [`Board::check`].
//!
//! A server has to start, whatever is in its files. There a snapshot that this version cannot
//! read is *held* ([`Loader::holding`]): the board is broken, and is written again byte for byte
//! until something is applied to it, so that a version that can read it finds it whole.
//!
//! Uses `dispatch`, `events`, `job`, `places`, `quotas`, `relations`, `schedules`, `statistics`,
//! `structures`, `verbs` and `workers`.

mod images;
mod index;
mod load;
mod write;

use xxhash_rust::xxh3::Xxh3;

use crate::board::Board;
use crate::events::changes::Gone;
use crate::format::{Decoder, Written};
use crate::places::tombstones::Tombstone;
use crate::quotas::unique::Taken;
use crate::relations::dependencies::Tell;
use crate::relations::family::Parting;
use crate::schedules::Schedule;
use crate::statistics::days::DayImage;
use crate::structures::byte_string::ByteString;
use images::*;

pub use load::Loader;

/// A part is closed when it is this long.
const PART: usize = 32 * 1024;

/// The sorts of items: tag, what it holds, and what loads it. A tag is never used again.
macro_rules! items {
    ($($tag:literal $name:ident: $image:ident => $load:ident,)*) => {
        $(const $name: u8 = $tag;)*

        impl Loader {
            /// Reads what follows a tag.
            fn item(&mut self, tag: u8, from: &mut Decoder<'_>) -> Result<(), Damage> {
                match tag {
                    $($tag => self.$load($image::read(from).or(Err(Damage(stringify!($load))))?),)*
                    _ => Err(Damage("an item that this version does not know")),
                }
            }

            /// Checks of every item, and of all that is in it, that it may grow.
            #[cfg(test)]
            fn check_growth() {
                $($image::check_growth();)*
            }
        }
    };
}

items! {
    1 HEAD: Head => head,
    2 JOBS: JobImage => job,
    3 TOMBSTONES: Tombstone => tombstone,
    4 END: EndImage => end,
    5 SCHEDULES: Schedule => schedule,
    6 TELLS: Tell => tell,
    7 KEYS: Taken => key,
    8 GONE: Gone => gone,
    9 WORKERS: WorkerImage => worker,
    10 DAYS: DayImage => statistics,
    11 PARTINGS: Parting => parting,
    12 GROUPS: GroupImage => group,
    13 ROUNDS: RoundsImage => rounds,
    14 LIMITS: LimitImage => limit,
    15 QUEUES: QueueImage => queue,
    16 PAUSES: PauseImage => pause,
}

/// No history that settings allow is longer.
const HISTORY_MOST: usize = 2_000;

/// Bytes that are no snapshot of ours: what is wrong with them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage(pub &'static str);

/// The parts of a snapshot that this version cannot read, to be written again as they came.
#[derive(Clone)]
pub(crate) struct Held {
    /// Why it cannot.
    pub why: &'static str,
    /// All of it.
    pub parts: Vec<ByteString>,
}

impl Held {
    pub fn bytes(&self) -> usize {
        self.parts.iter().map(|part| part.len() + size_of::<ByteString>()).sum()
    }
}

impl Board {
    /// A number that two boards share only if they are equal, but for chance. O(n).
    pub fn digest(&self) -> u128 {
        let mut hash = Xxh3::new();
        self.snapshot(|part| hash.update(part));
        hash.digest128()
    }

    /// A true copy. O(n).
    pub fn copy(&self) -> Result<Board, Damage> {
        if self.held.is_some() {
            return Ok(self.unread(self.held.clone()));
        }
        let mut loader = Loader::default();
        let mut damage = None;
        self.snapshot(|part| {
            if let Err(found) = loader.part(part) {
                damage.get_or_insert(found);
            }
        });
        damage.map_or_else(|| loader.finish(), Err)
    }

    /// A broken board of this revision, with what cannot be read of it.
    fn unread(&self, held: Option<Box<Held>>) -> Board {
        Board { revision: self.revision, token: self.token, broken: true, held, ..Board::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_and_all_that_is_in_it_may_grow() {
        Loader::check_growth();
    }
}
