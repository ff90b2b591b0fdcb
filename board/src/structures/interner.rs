//! Values that many jobs share, kept once and counted by reference: names of queues and workers,
//! and the classes of jobs. The numbers are local to one copy of a board; no effect contains them.
//!
//! An entry without references is kept for a while: a queue that runs empty between two jobs is not
//! torn down and built again. At most [`IDLE`] such entries are kept.

use hashbrown::{DefaultHashBuilder, HashTable};
use std::cell::Cell;
use std::hash::{BuildHasher, Hash};

use crate::structures::allotted::allotted;

const IDLE: u32 = 64;
/// No entry: no value ever has this number.
pub const NONE: u32 = u32::MAX;

struct Entry<K, V> {
    key: K,
    value: V,
    refs: u64,
    /// Whether it is in the list of idle entries, where it may also be when it has got references again.
    idle: bool,
    /// The next entry of that list.
    next: u32,
}

enum Place<K, V> {
    Used(Entry<K, V>),
    /// The next free place.
    Free(u32),
}

/// See the module's comment.
pub struct Interner<K, V> {
    entries: Vec<Place<K, V>>,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// How many entries have references.
    used: usize,
    /// The first free place.
    free: u32,
    /// The list of idle entries, oldest first: how many, the first and the last one.
    idle: u32,
    oldest: u32,
    newest: u32,
    /// The last number found: mostly the next that is asked for.
    last: Cell<u32>,
}

impl<K, V> Default for Interner<K, V> {
    fn default() -> Self {
        Interner {
            entries: Vec::new(),
            index: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            used: 0,
            free: NONE,
            idle: 0,
            oldest: NONE,
            newest: NONE,
            last: Cell::new(0),
        }
    }
}

impl<K: Hash + Eq, V: Default> Interner<K, V> {
    /// The number of a key; `None` when it is unknown. O(1).
    pub fn find<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<u32>
    where
        K: std::borrow::Borrow<Q>,
    {
        let is = |number: u32| self.key(number).is_some_and(|k| k.borrow() == key);
        if is(self.last.get()) {
            return Some(self.last.get());
        }
        let hash = self.hasher.hash_one(key);
        let found = self.index.find(hash, |number| is(*number)).copied()?;
        self.last.set(found);
        Some(found)
    }

    /// Adds an unknown key. Returns its number, and the key of an idle entry if that one was
    /// dropped for it.
    pub fn add(&mut self, key: K) -> (u32, Option<K>) {
        let hash = self.hasher.hash_one(&key);
        let entry = Place::Used(Entry { key, value: V::default(), refs: 0, idle: false, next: NONE });
        let number = self.free;
        let number = match self.entries.get_mut(number as usize) {
            Some(place) => {
                if let Place::Free(next) = std::mem::replace(place, entry) {
                    self.free = next;
                }
                number
            }
            None => {
                if self.entries.is_empty() {
                    // Most boards have one queue and few workers.
                    self.entries.reserve_exact(1);
                }
                self.entries.push(entry);
                (self.entries.len() - 1) as u32
            }
        };
        let (entries, hasher) = (&self.entries, &self.hasher);
        self.index.insert_unique(hash, number, |n| match entries.get(*n as usize) {
            Some(Place::Used(entry)) => hasher.hash_one(&entry.key),
            _ => 0,
        });
        (number, self.rest(number))
    }

    fn entry(&self, number: u32) -> Option<&Entry<K, V>> {
        match self.entries.get(number as usize)? {
            Place::Used(entry) => Some(entry),
            Place::Free(_) => None,
        }
    }

    fn entry_mut(&mut self, number: u32) -> Option<&mut Entry<K, V>> {
        match self.entries.get_mut(number as usize)? {
            Place::Used(entry) => Some(entry),
            Place::Free(_) => None,
        }
    }

    /// The key of a number. O(1).
    pub fn key(&self, number: u32) -> Option<&K> {
        Some(&self.entry(number)?.key)
    }

    /// The value of a number. O(1).
    pub fn get(&self, number: u32) -> Option<&V> {
        Some(&self.entry(number)?.value)
    }

    /// The value of a number, to change. O(1).
    pub fn get_mut(&mut self, number: u32) -> Option<&mut V> {
        Some(&mut self.entry_mut(number)?.value)
    }

    /// How many references a number has. O(1).
    pub fn refs(&self, number: u32) -> u64 {
        self.entry(number).map_or(0, |entry| entry.refs)
    }

    /// Adds a reference.
    pub fn hold(&mut self, number: u32) {
        if let Some(Place::Used(entry)) = self.entries.get_mut(number as usize) {
            self.used += usize::from(entry.refs == 0);
            entry.refs += 1;
        }
    }

    /// Releases a reference. Returns the key of an idle entry if one was dropped.
    pub fn release(&mut self, number: u32) -> Option<K> {
        let Some(Place::Used(entry)) = self.entries.get_mut(number as usize) else { return None };
        self.used -= usize::from(entry.refs == 1);
        entry.refs = entry.refs.saturating_sub(1);
        if entry.refs == 0 && !entry.idle {
            return self.rest(number);
        }
        None
    }

    /// Adds an entry to the idle ones. Returns the key of the oldest if that one was dropped for it.
    fn rest(&mut self, number: u32) -> Option<K> {
        if let Some(entry) = self.entry_mut(number) {
            (entry.idle, entry.next) = (true, NONE);
        }
        let last = std::mem::replace(&mut self.newest, number);
        match self.entry_mut(last) {
            Some(last) => last.next = number,
            None => self.oldest = number,
        }
        self.idle += 1;
        if self.idle <= IDLE {
            return None;
        }
        let oldest = self.oldest;
        let entry = self.entry_mut(oldest)?;
        let (next, refs) = (entry.next, entry.refs);
        entry.idle = false;
        (self.oldest, self.idle) = (next, self.idle - 1);
        if refs > 0 {
            return None;
        }
        let hash = self.hasher.hash_one(self.key(oldest)?);
        if let Ok(found) = self.index.find_entry(hash, |n| *n == oldest) {
            found.remove();
        }
        let place = std::mem::replace(self.entries.get_mut(oldest as usize)?, Place::Free(self.free));
        self.free = oldest;
        match place {
            Place::Used(entry) => Some(entry.key),
            Place::Free(_) => None,
        }
    }

    /// How many entries have references. O(1).
    pub fn used(&self) -> usize {
        self.used
    }

    /// Bytes that the entries and their index take, without what keys and values point to.
    pub fn bytes(&self) -> usize {
        allotted(self.entries.capacity() * std::mem::size_of::<Place<K, V>>())
            + allotted(self.index.allocation_size())
    }

    /// The keys of the idle entries.
    pub fn unused(&self) -> impl Iterator<Item = &K> {
        let first = self.entry(self.oldest);
        let idle = std::iter::successors(first, |entry| self.entry(entry.next));
        idle.filter(|entry| entry.refs == 0).map(|entry| &entry.key)
    }

    /// All entries with references, in no meaningful order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &K, &V)> {
        self.all().filter(|(number, ..)| self.refs(*number) > 0)
    }

    /// All entries, in no meaningful order.
    pub fn all(&self) -> impl Iterator<Item = (u32, &K, &V)> {
        self.entries.iter().enumerate().filter_map(|(number, place)| match place {
            Place::Used(entry) => Some((number as u32, &entry.key, &entry.value)),
            Place::Free(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_in_use_stays_and_idle_ones_go_in_turn() {
        let mut pool: Interner<String, u32> = Interner::default();
        let (kept, _) = pool.add("kept".into());
        pool.hold(kept);
        for i in 0..1000 {
            let (n, _) = pool.add(format!("q{i}"));
            pool.hold(n);
            pool.release(n);
        }
        assert_eq!(pool.find("kept"), Some(kept));
        assert_eq!(pool.find("q0"), None);
        assert!(pool.find("q999").is_some());
        assert!(pool.entries.len() <= IDLE as usize + 3);
        assert_eq!(pool.iter().map(|(_, k, _)| k.as_str()).collect::<Vec<_>>(), ["kept"]);
    }
}
