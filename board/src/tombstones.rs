//! What is remembered of jobs that have ended and gone, for a short while: a resent consume
//! is answered as before, a resent post finds its id taken.

use hashbrown::{DefaultHashBuilder, HashTable};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::hash::BuildHasher;

use crate::bin::Bin;
use crate::id::Id;
use crate::job::State;

/// One job that has gone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tombstone {
    /// Its id.
    pub id: Id<Bin>,
    /// The token of its last claim, 0 when there was none.
    pub token: u64,
    /// The state in which it went.
    pub state: State,
    /// When it ended, Unix ms.
    pub ended: i64,
}

/// A ring of tombstones, found by id. The newest is counted `newest`; the table holds counts
/// modulo 2^32, which is far more than stand in the ring.
#[derive(Default)]
pub struct Tombstones {
    ring: VecDeque<Tombstone>,
    oldest: u32,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Tombstones {
    /// How many are kept.
    pub fn len(&self) -> usize {
        self.ring.len()
    }

    /// Oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Tombstone> {
        self.ring.iter()
    }

    fn position(&self, id: Id<&[u8]>) -> Option<u32> {
        if self.ring.is_empty() {
            return None;
        }
        let hash = self.hasher.hash_one(id);
        self.index
            .find(hash, |n| {
                let at = n.wrapping_sub(self.oldest) as usize;
                self.ring.get(at).is_some_and(|t| t.id.borrowed() == id)
            })
            .copied()
    }

    /// The tombstone of an id, if it is not older than `ttl` ms.
    pub fn get(&self, id: Id<&[u8]>, now: i64, ttl: i64) -> Option<&Tombstone> {
        let number = self.position(id)?;
        let tombstone = self.ring.get(number.wrapping_sub(self.oldest) as usize)?;
        (tombstone.ended.saturating_add(ttl) > now).then_some(tombstone)
    }

    /// Adds the newest; the oldest go when there are more than `most` or they are older than
    /// `ttl`. Two at most go in one call, so that no call pays for many.
    pub fn push(&mut self, tombstone: Tombstone, most: usize, now: i64, ttl: i64) {
        if most == 0 {
            while self.pop() {}
            return;
        }
        self.forget(tombstone.id.borrowed());
        let hash = self.hasher.hash_one(tombstone.id.borrowed());
        let number = self.oldest.wrapping_add(self.ring.len() as u32);
        self.ring.push_back(tombstone);
        let (ring, oldest, hasher) = (&self.ring, self.oldest, &self.hasher);
        self.index.insert_unique(hash, number, |n| {
            let at = n.wrapping_sub(oldest) as usize;
            ring.get(at).map_or(0, |t| hasher.hash_one(t.id.borrowed()))
        });
        for _ in 0..2 {
            let stale = self.ring.front().is_some_and(|t| t.ended.saturating_add(ttl) <= now);
            if self.ring.len() > most || stale {
                self.pop();
            }
        }
    }

    fn pop(&mut self) -> bool {
        let Some(gone) = self.ring.pop_front() else { return false };
        let number = self.oldest;
        self.oldest = self.oldest.wrapping_add(1);
        let hash = self.hasher.hash_one(gone.id.borrowed());
        if let Ok(entry) = self.index.find_entry(hash, |n| *n == number) {
            entry.remove();
        }
        true
    }

    /// Forgets one id. The ring keeps its place, under a name that cannot be asked for.
    pub fn forget(&mut self, id: Id<&[u8]>) {
        let Some(number) = self.position(id) else { return };
        let hash = self.hasher.hash_one(id);
        if let Ok(entry) = self.index.find_entry(hash, |n| *n == number) {
            entry.remove();
        }
        let at = number.wrapping_sub(self.oldest) as usize;
        if let Some(tombstone) = self.ring.get_mut(at) {
            tombstone.id = Id::Named(Bin::default());
        }
    }

    /// Adds one from a snapshot, in the order in which they were written.
    pub fn restore(&mut self, tombstone: Tombstone) {
        let now = tombstone.ended;
        if tombstone.id.is_blank() {
            self.ring.push_back(tombstone);
        } else {
            self.push(tombstone, usize::MAX, now, i64::MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tombstone(name: &str, ended: i64) -> Tombstone {
        Tombstone { id: Id::Named(Bin::from(name.as_bytes())), token: 7, state: State::Complete, ended }
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
