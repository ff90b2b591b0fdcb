//! Whole boards as bytes: for RDB files, `DUMP`, the rewrite of append-only files, slot
//! migration, and digests.
//!
//! A snapshot is a sequence of parts: one head, then named limits in the order of their numbers,
//! then the queues that name any, then the queues that have groups, each with
//! its groups in the order of their numbers, then jobs in the order of their slots, then
//! tombstones, then schedules in the order of their ids, then ends that are still to be told,
//! then families whose children are still to be let go, then keys that are taken in their order,
//! then workers that registered or go, by name, then statistics by day and queue, then records
//! that have gone, then an end, which says how many came before it. Each part is a tag and a
//! MessagePack value with fields by position. The parts follow from the state alone, so equal
//! boards give equal bytes.
//!
//! When loaded, every byte is taken for hostile: nothing is allocated on the word of a
//! length, every number is checked, and the finished board must pass [`Board::check`].

mod images;
mod index;
mod load;
mod write;

use xxhash_rust::xxh3::Xxh3;

use crate::board::Board;

pub use load::Loader;

const FORMAT: u8 = 1;
/// A part is closed when it is this long.
const PART: usize = 32 * 1024;

// The tags of parts.
const HEAD: u8 = 1;
const JOBS: u8 = 2;
const TOMBSTONES: u8 = 3;
const END: u8 = 4;
const SCHEDULES: u8 = 5;
const TELLS: u8 = 6;
const KEYS: u8 = 8;
const GONE: u8 = 9;
const WORKERS: u8 = 10;
const DAYS: u8 = 11;
const PARTINGS: u8 = 12;
const GROUPS: u8 = 13;
const ROUNDS: u8 = 14;
const LIMITS: u8 = 16;
const LISTS: u8 = 17;

/// No history that settings allow is longer.
const HISTORY_MOST: usize = 2_000;

/// Bytes that are no snapshot of ours: what is wrong with them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage(pub &'static str);

impl Board {
    /// A number that two boards share only if they are equal, but for chance. O(n).
    pub fn digest(&self) -> u128 {
        let mut hash = Xxh3::new();
        self.snapshot(|part| hash.update(part));
        hash.digest128()
    }

    /// A true copy. O(n).
    pub fn copy(&self) -> Result<Board, Damage> {
        let mut loader = Loader::default();
        let mut damage = None;
        self.snapshot(|part| {
            if let Err(found) = loader.part(part) {
                damage.get_or_insert(found);
            }
        });
        damage.map_or_else(|| loader.finish(), Err)
    }
}
