//! Values that many jobs share, kept once and counted by reference: names of queues and workers,
//! and the classes of jobs. The numbers are local to one copy of a board; no effect contains them.
//!
//! An entry without references is kept for a while: a queue that runs empty between two jobs is not
//! torn down and built again. At most [`IDLE`] such entries are kept.

use hashbrown::{DefaultHashBuilder, HashTable};
use std::cell::Cell;
use std::collections::VecDeque;
use std::hash::{BuildHasher, Hash};

const IDLE: usize = 64;

struct Entry<K, V> {
    key: K,
    value: V,
    refs: u64,
    idle: bool,
}

/// See the module's comment.
pub struct Interner<K, V> {
    entries: Vec<Option<Entry<K, V>>>,
    free: Vec<u32>,
    idle: VecDeque<u32>,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// How many entries have references.
    used: usize,
    /// The last number found: mostly the next that is asked for.
    last: Cell<u32>,
}

impl<K, V> Default for Interner<K, V> {
    fn default() -> Self {
        Interner {
            entries: Vec::new(),
            free: Vec::new(),
            idle: VecDeque::new(),
            index: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            used: 0,
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
        let entry = Some(Entry { key, value: V::default(), refs: 0, idle: false });
        let number = match self.free.pop() {
            Some(number) => number,
            None => {
                if self.entries.is_empty() {
                    // Most boards have one queue and few workers.
                    self.entries.reserve_exact(1);
                }
                self.entries.push(None);
                (self.entries.len() - 1) as u32
            }
        };
        if let Some(place) = self.entries.get_mut(number as usize) {
            *place = entry;
        }
        let (entries, hasher) = (&self.entries, &self.hasher);
        self.index.insert_unique(hash, number, |n| match entries.get(*n as usize) {
            Some(Some(entry)) => hasher.hash_one(&entry.key),
            _ => 0,
        });
        (number, self.rest(number))
    }

    fn entry(&self, number: u32) -> Option<&Entry<K, V>> {
        self.entries.get(number as usize)?.as_ref()
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
        Some(&mut self.entries.get_mut(number as usize)?.as_mut()?.value)
    }

    /// How many references a number has. O(1).
    pub fn refs(&self, number: u32) -> u64 {
        self.entry(number).map_or(0, |entry| entry.refs)
    }

    /// Adds a reference.
    pub fn hold(&mut self, number: u32) {
        if let Some(Some(entry)) = self.entries.get_mut(number as usize) {
            self.used += usize::from(entry.refs == 0);
            entry.refs += 1;
        }
    }

    /// Releases a reference. Returns the key of an idle entry if one was dropped.
    pub fn release(&mut self, number: u32) -> Option<K> {
        let Some(Some(entry)) = self.entries.get_mut(number as usize) else { return None };
        self.used -= usize::from(entry.refs == 1);
        entry.refs = entry.refs.saturating_sub(1);
        if entry.refs == 0 && !entry.idle {
            return self.rest(number);
        }
        None
    }

    fn rest(&mut self, number: u32) -> Option<K> {
        if let Some(Some(entry)) = self.entries.get_mut(number as usize) {
            entry.idle = true;
            self.idle.push_back(number);
        }
        if self.idle.len() <= IDLE {
            return None;
        }
        let oldest = self.idle.pop_front()?;
        let place = self.entries.get_mut(oldest as usize)?;
        let entry = place.as_mut()?;
        if entry.refs > 0 {
            entry.idle = false;
            return None;
        }
        let hash = self.hasher.hash_one(&entry.key);
        if let Ok(found) = self.index.find_entry(hash, |n| *n == oldest) {
            found.remove();
        }
        self.free.push(oldest);
        place.take().map(|entry| entry.key)
    }

    /// How many entries have references. O(1).
    pub fn used(&self) -> usize {
        self.used
    }

    /// The keys of the idle entries.
    pub fn unused(&self) -> impl Iterator<Item = &K> {
        self.idle.iter().filter(|number| self.refs(**number) == 0).filter_map(|number| self.key(*number))
    }

    /// All entries with references, in no meaningful order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &K, &V)> {
        self.entries
            .iter()
            .enumerate()
            .filter_map(|(n, entry)| entry.as_ref().map(|e| (n as u32, e)))
            .filter(|(_, entry)| entry.refs > 0)
            .map(|(n, entry)| (n, &entry.key, &entry.value))
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
        assert!(pool.entries.len() <= IDLE + 3);
        assert_eq!(pool.iter().map(|(_, k, _)| k.as_str()).collect::<Vec<_>>(), ["kept"]);
    }
}
