//! What a board remembers of removed jobs for a short while: a repeated consume gets the same reply
//! as before, and a repeated post finds its id taken.

use crate::board::Board;
use crate::item::{need, Item, Loading, SnapshotError};
use crate::job::id;
use crate::job::{is_time, TOKENS};
use crate::settings::Setting;
use hashbrown::DefaultHashBuilder;
use std::collections::VecDeque;
use std::hash::BuildHasher;

use crate::job::id::Id;
use crate::job::State;
use crate::structures::allotted::allotted;
use crate::structures::byte_string::ByteString;

written! {
    /// A job whose record has been removed.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Tombstone {
        /// Its id.
        1 pub id: Id<ByteString>,
        /// The token of its last claim, 0 when there was none.
        2 pub token: u64,
        /// Its last state.
        3 pub state: State,
        /// When it ended, Unix ms.
        4 pub ended: i64,
        /// The board's revision when it was removed.
        5 pub version: u64,
    }
}

struct Entry {
    tombstone: Tombstone,
    /// Number of the entry of the same bucket before this one.
    before: u32,
}

/// A ring of tombstones, found by id. Entries are numbered in their order; a bucket holds the
/// number of its newest entry. Dropping an entry needs no work in its bucket: its number is then
/// older than the oldest in the ring, and ends the chain.
#[derive(Default)]
pub struct Tombstones {
    ring: VecDeque<Entry>,
    oldest: u32,
    buckets: Vec<u32>,
    hasher: DefaultHashBuilder,
    /// Bytes on the heap that the ids take.
    heap: usize,
}

impl Tombstones {
    /// How many are kept.
    pub fn len(&self) -> usize {
        self.ring.len()
    }

    /// Bytes that they take.
    pub fn bytes(&self) -> usize {
        allotted(self.ring.capacity() * size_of::<Entry>()) + self.buckets.capacity() * 4 + self.heap
    }

    /// All tombstones, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Tombstone> {
        self.ring.iter().map(|entry| &entry.tombstone)
    }

    fn bucket(&self, id: Id<&[u8]>) -> usize {
        self.hasher.hash_one(id) as usize & self.buckets.len().wrapping_sub(1)
    }

    /// The position in the ring of the newest entry with this id.
    fn position(&self, id: Id<&[u8]>) -> Option<usize> {
        let mut number = *self.buckets.get(self.bucket(id))?;
        loop {
            let at = number.wrapping_sub(self.oldest) as usize;
            let entry = self.ring.get(at)?;
            if entry.tombstone.id.borrowed() == id {
                return Some(at);
            }
            // Each step must lead further back, so that the walk ends.
            if entry.before.wrapping_sub(self.oldest) as usize >= at {
                return None;
            }
            number = entry.before;
        }
    }

    /// The tombstone of an id, if at most `ttl` ms have passed since its job ended. O(1).
    pub fn get(&self, id: Id<&[u8]>, now: i64, ttl: i64) -> Option<&Tombstone> {
        let tombstone = &self.ring.get(self.position(id)?)?.tombstone;
        (tombstone.ended.saturating_add(ttl) > now).then_some(tombstone)
    }

    /// Adds a tombstone; drops the oldest while there are more than `most` or they are older than
    /// `ttl` ms. One call drops at most two, so that no call pays for many. Returns the version of
    /// the last dropped one, or 0.
    pub fn push(&mut self, tombstone: Tombstone, most: usize, now: i64, ttl: i64) -> u64 {
        if most == 0 {
            (self.ring, self.buckets, self.heap) = Default::default();
            return tombstone.version;
        }
        if self.ring.len() >= self.buckets.len() {
            self.grow();
        }
        self.heap += tombstone.id.allotted();
        self.ring.push_back(Entry { tombstone, before: 0 });
        self.chain(self.ring.len() - 1);
        let mut last = 0;
        for _ in 0..2 {
            let stale = self.ring.front().is_some_and(|e| e.tombstone.ended.saturating_add(ttl) <= now);
            if self.ring.len() > most || stale {
                if let Some(Entry { tombstone, .. }) = self.ring.pop_front() {
                    last = tombstone.version;
                    self.heap -= tombstone.id.allotted();
                }
                self.oldest = self.oldest.wrapping_add(1);
            }
        }
        last
    }

    /// Puts the entry at this position at the head of its bucket.
    fn chain(&mut self, at: usize) {
        let Some(entry) = self.ring.get(at) else { return };
        let bucket = self.bucket(entry.tombstone.id.borrowed());
        let number = self.oldest.wrapping_add(at as u32);
        if let (Some(entry), Some(head)) = (self.ring.get_mut(at), self.buckets.get_mut(bucket)) {
            entry.before = std::mem::replace(head, number);
        }
    }

    fn grow(&mut self) {
        let gone = self.oldest.wrapping_sub(1);
        self.buckets = vec![gone; (self.buckets.len() * 2).max(4)];
        (0..self.ring.len()).for_each(|at| self.chain(at));
    }

    /// Forgets all tombstones of an id. They keep their positions in the ring, under an id that no
    /// client can ask for.
    pub fn forget(&mut self, id: Id<&[u8]>) {
        while let Some(entry) = self.position(id).and_then(|at| self.ring.get_mut(at)) {
            self.heap -= entry.tombstone.id.allotted();
            entry.tombstone.id = Id::Named(ByteString::default());
        }
    }

    /// Adds a tombstone from a snapshot, oldest first.
    pub fn restore(&mut self, tombstone: Tombstone) {
        let now = tombstone.ended;
        if tombstone.id.is_blank() {
            self.ring.push_back(Entry { tombstone, before: self.oldest.wrapping_sub(1) });
        } else {
            self.push(tombstone, usize::MAX, now, i64::MAX);
        }
    }
}

impl Board {
    /// The tombstone of this id.
    pub fn tombstone(&self, id: &[u8], now: i64) -> Option<&Tombstone> {
        let ttl = self.own(Setting::TombstoneTtl);
        let found = self.places.tombstones.get(Id::Named(id), now, ttl);
        found.or_else(|| {
            let (made, _) = id::read_made(id)?;
            self.places.tombstones.get(Id::Made(made), now, ttl)
        })
    }

    /// Forgets the tombstone of this id.
    pub(crate) fn forget(&mut self, id: &[u8]) {
        self.places.tombstones.forget(Id::Named(id));
        if let Some((made, _)) = id::read_made(id) {
            self.places.tombstones.forget(Id::Made(made));
        }
    }
}

impl<'a> Item<'a> for Tombstone {
    fn each(board: &'a Board, put: impl FnMut(&Self)) {
        board.places.tombstones.iter().for_each(put);
    }

    fn load(self, board: &mut Board, _loading: &mut Loading) -> Result<(), SnapshotError> {
        need(self.id.borrowed().bytes().len() <= 255, "id")?;
        need(self.token < TOKENS && is_time(self.ended), "tombstone")?;
        let before = board.places.tombstones.iter().next_back().map_or(0, |t| t.version);
        need((before..=board.revision).contains(&self.version), "tombstone")?;
        board.places.tombstones.restore(self);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tombstone(name: &str, ended: i64) -> Tombstone {
        Tombstone {
            id: Id::Named(ByteString::from(name.as_bytes())),
            token: 7,
            state: State::Complete,
            ended,
            version: 0,
        }
    }

    fn named(name: &str) -> Id<&[u8]> {
        Id::Named(name.as_bytes())
    }

    #[test]
    fn the_oldest_go_first_and_none_is_found_after_its_time() {
        let mut all = Tombstones::default();
        for i in 0..10 {
            all.push(tombstone(&format!("j{i}"), i), 4, i, 60_000);
        }
        assert_eq!(all.len(), 4);
        assert!(all.get(named("j5"), 10, 60_000).is_none());
        assert_eq!(all.get(named("j6"), 10, 60_000).map(|t| t.token), Some(7));
        assert!(all.get(named("j6"), 60_006, 60_000).is_none());
    }

    #[test]
    fn each_of_many_is_found_while_it_is_kept() {
        let mut all = Tombstones::default();
        for i in 0..5_000 {
            all.push(tombstone(&format!("j{i}"), 0), 1_000, 0, 60_000);
        }
        for i in 0..5_000 {
            let found = all.get(named(&format!("j{i}")), 0, 60_000).is_some();
            assert_eq!(found, i >= 4_000, "{i}");
        }
        assert_eq!(all.buckets.len(), 1_024);
    }

    #[test]
    fn a_forgotten_id_is_not_found_and_its_place_passes_like_any() {
        let mut all = Tombstones::default();
        all.push(tombstone("a", 0), 2, 0, 60_000);
        all.forget(named("a"));
        assert!(all.get(named("a"), 0, 60_000).is_none());
        all.push(tombstone("b", 1), 2, 1, 60_000);
        all.push(tombstone("c", 1), 2, 1, 60_000);
        assert_eq!(all.len(), 2);
        assert!(all.get(named("b"), 1, 60_000).is_some());
    }
}
