//! Whole boards as bytes: for RDB files, `DUMP`, the rewrite of append-only files, slot
//! migration, and digests.
//!
//! A snapshot is a sequence of items: those of the table below, sort by sort, then an end with
//! their number. Each item is a tag and a map ([`crate::format`]), and is defined in the room of
//! its subject ([`crate::item`]); a part is some of them. The items follow from the state alone, so
//! equal boards give equal bytes.
//!
//! Loading trusts no byte: it allocates nothing on the word of a length, checks every number, and
//! the finished board must pass [`Board::check`].
//!
//! A server must start, whatever is in its files. While it starts, a snapshot that this version
//! cannot read is *held* ([`Loader::holding`]): the board is broken, and is written again byte for
//! byte until an effect is applied to it, so that a version that can read it finds it whole.
//!
//! Uses `dispatch`, `events`, `job`, `places`, `quotas`, `relations`, `schedules`, `statistics`,
//! `structures` and `workers`.

mod head;
mod index;
mod load;
mod write;

use xxhash_rust::xxh3::Xxh3;

use crate::board::Board;
use crate::dispatch::items::{GroupImage, LimitImage, PauseImage, QueueImage, RoundsImage};
use crate::events::changes::Gone;
use crate::format::{Decoder, Written};
use crate::item::{Item, SnapshotError};
use crate::places::items::JobImage;
use crate::places::tombstones::Tombstone;
use crate::quotas::unique::Taken;
use crate::relations::family::Parting;
use crate::relations::resolutions::Resolution;
use crate::schedules::Schedule;
use crate::statistics::days::DayImage;
use crate::structures::byte_string::ByteString;
use crate::workers::registrations::WorkerImage;
use head::Head;
use write::Writer;

pub use load::Loader;

/// A part is closed when it has this many bytes.
const PART: usize = 32 * 1024;
/// The tag of the head.
const HEAD: u8 = 1;
/// The tag of the end.
const END: u8 = 4;

written! {
    struct EndImage {
        /// How many items there are before it.
        1 items: u64,
    }
}

/// The sorts of items in their order, each with its tag and its name in errors. A tag is never
/// reused.
macro_rules! items {
    ($($tag:literal $image:ident: $name:literal,)*) => {
        impl Board {
            /// Writes all but the end, and returns the part to which the end belongs.
            fn write_items(&self, part: &mut impl FnMut(&[u8])) -> Writer {
                let mut writer = Writer::default();
                $($image::each(self, |item| {
                    writer.put($tag, item);
                    writer.close(part, PART);
                });)*
                writer
            }
        }

        impl Loader {
            /// Reads the item behind a tag.
            fn item(&mut self, tag: u8, from: &mut Decoder<'_>) -> Result<(), SnapshotError> {
                match tag {
                    $($tag => $image::read(from)
                        .or(Err(SnapshotError($name)))?
                        .load(&mut self.board, &mut self.loading),)*
                    END => self.end(EndImage::read(from).or(Err(SnapshotError("the end")))?),
                    _ => Err(SnapshotError("an item that this version does not know")),
                }
            }

            /// Checks that every item, and everything in it, may get new fields.
            #[cfg(test)]
            fn check_growth() {
                $($image::check_growth();)*
                EndImage::check_growth();
            }
        }
    };
}

items! {
    1 Head: "the head",
    14 LimitImage: "a limit",
    15 QueueImage: "a queue",
    16 PauseImage: "a pause",
    13 RoundsImage: "the groups of a queue",
    12 GroupImage: "a group",
    2 JobImage: "a job",
    3 Tombstone: "a tombstone",
    5 Schedule: "a schedule",
    6 Resolution: "an end to be resolved",
    7 Taken: "a unique key",
    9 WorkerImage: "a worker",
    10 DayImage: "statistics of a day",
    11 Parting: "a parent to be let go",
    8 Gone: "a removed record",
}

/// The parts of a snapshot that this version cannot read, to be written again unchanged.
#[derive(Clone)]
pub(crate) struct Held {
    /// Why this version cannot read them.
    pub why: &'static str,
    /// All parts.
    pub parts: Vec<ByteString>,
}

impl Held {
    pub fn bytes(&self) -> usize {
        self.parts.iter().map(|part| part.len() + size_of::<ByteString>()).sum()
    }
}

impl Board {
    /// A number that differs for different boards, but for chance. O(n).
    pub fn digest(&self) -> u128 {
        let mut hash = Xxh3::new();
        self.snapshot(|part| hash.update(part));
        hash.digest128()
    }

    /// An equal board. O(n).
    pub fn copy(&self) -> Result<Board, SnapshotError> {
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

    /// A broken board of this revision, with the parts that cannot be read.
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
