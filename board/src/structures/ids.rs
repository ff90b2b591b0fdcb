//! An index from the ids that clients chose to slots. Server-made ids carry their slot and need no
//! entry.
//!
//! Linear hashing over small tables: one table for each [`SHARE`] entries, so that the index grows
//! by splitting one table of a few thousand entries at a time, and no insert ever pays for a rehash
//! of the whole.

use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;

use crate::env::mix;
use crate::structures::allotted::allotted;

const SHARE: usize = 2048;

/// A slot, and half of its id's hash: a split reads no record, which at 5 million ids makes
/// it ten times shorter.
#[derive(Clone, Copy)]
struct Entry {
    hash: u32,
    slot: u32,
}

impl Entry {
    /// The hash within a table: it is mixed again because all entries of a table share their low
    /// bits.
    fn inner(&self) -> u64 {
        mix(u64::from(self.hash))
    }
}

/// The index. See the module's comment. It reads the ids of slots through a function of the
/// caller's.
#[derive(Default)]
pub struct Ids {
    tables: Vec<HashTable<Entry>>,
    hasher: DefaultHashBuilder,
    len: usize,
}

impl Ids {
    /// Bytes that the index takes on the heap.
    pub fn bytes(&self) -> usize {
        let tables = allotted(self.tables.capacity() * std::mem::size_of::<HashTable<Entry>>());
        // The tables are alike in size, since a hash chooses the table.
        let one = self.tables.first().map_or(0, HashTable::allocation_size);
        tables + self.tables.len() * one
    }

    fn entry(&self, id: &[u8], slot: u32) -> Entry {
        Entry { hash: self.hasher.hash_one(id) as u32, slot }
    }

    fn table(&self, entry: &Entry) -> usize {
        let n = self.tables.len().max(1);
        let size = n.next_power_of_two();
        let at = entry.hash as usize & (size - 1);
        if at < n {
            at
        } else {
            at & (size / 2 - 1)
        }
    }

    /// The slot of an id. O(1).
    pub fn get<'a>(&self, id: &[u8], id_of: impl Fn(u32) -> &'a [u8]) -> Option<u32> {
        let sought = self.entry(id, 0);
        let table = self.tables.get(self.table(&sought))?;
        let found = table.find(sought.inner(), |e| e.hash == sought.hash && id_of(e.slot) == id)?;
        Some(found.slot)
    }

    fn put(&mut self, entry: Entry) {
        if self.tables.is_empty() {
            self.tables.push(HashTable::new());
        }
        let at = self.table(&entry);
        if let Some(table) = self.tables.get_mut(at) {
            table.insert_unique(entry.inner(), entry, Entry::inner);
        }
    }

    /// Adds an id that is not in the index. O(1), with at most one table split.
    pub fn insert(&mut self, id: &[u8], slot: u32) {
        self.put(self.entry(id, slot));
        self.len += 1;
        if self.len > self.tables.len() * SHARE {
            let n = self.tables.len();
            let buddy = n - (n + 1).next_power_of_two() / 2;
            self.tables.push(HashTable::new());
            let Some(moved) = self.tables.get_mut(buddy).map(std::mem::take) else { return };
            moved.into_iter().for_each(|entry| self.put(entry));
        }
    }

    /// Removes an id. O(1), with at most one table joined to its buddy.
    pub fn remove(&mut self, id: &[u8], slot: u32) {
        let gone = self.entry(id, slot);
        let at = self.table(&gone);
        let Some(table) = self.tables.get_mut(at) else { return };
        if let Ok(entry) = table.find_entry(gone.inner(), |other| other.slot == slot) {
            entry.remove();
            self.len -= 1;
        }
        if self.len == 0 {
            self.tables = Vec::new();
        } else if self.tables.len() > 1 && self.len < self.tables.len() * SHARE / 4 {
            let Some(last) = self.tables.pop() else { return };
            last.into_iter().for_each(|entry| self.put(entry));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_while_the_index_grows_and_shrinks() {
        let names: Vec<String> = (0..50_000).map(|i| format!("job-{i}")).collect();
        let id_of = |slot: u32| names.get(slot as usize).map_or(&b""[..], |n| n.as_bytes());
        let mut ids = Ids::default();
        for (slot, name) in names.iter().enumerate() {
            ids.insert(name.as_bytes(), slot as u32);
        }
        assert!(ids.tables.len() > 20);
        for (slot, name) in names.iter().enumerate() {
            assert_eq!(ids.get(name.as_bytes(), id_of), Some(slot as u32));
        }
        assert_eq!(ids.get(b"job", id_of), None);
        for (slot, name) in names.iter().enumerate().skip(10) {
            ids.remove(name.as_bytes(), slot as u32);
            assert_eq!(ids.get(name.as_bytes(), id_of), None);
        }
        assert_eq!((ids.len, ids.tables.len()), (10, 1));
        assert_eq!(ids.get(b"job-9", id_of), Some(9));
    }
}
