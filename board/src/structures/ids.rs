//! An index from the ids that clients chose to slots. Server-made ids carry their slot and need no
//! entry.
//!
//! Linear hashing over small tables: one table for each [`SHARE`] entries, so that the index grows
//! by splitting one table of a few thousand entries at a time, and no insert ever pays for a rehash
//! of the whole.
//!
//! In a table an entry stands where its hash says, or in the next free place behind that. So a
//! look-up in a large index mostly reads one line of memory: a table with its marks apart from its
//! entries costs two.

use hashbrown::DefaultHashBuilder;
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

/// The entry of a free place: no slot is that high.
const FREE: Entry = Entry { hash: 0, slot: u32::MAX };

/// One table.
#[derive(Default)]
struct Table {
    /// None, or a power of two of them, of which at least a quarter are free.
    places: Box<[Entry]>,
    len: usize,
}

impl Table {
    /// A place, counted on from the last to the first.
    fn around(&self, at: usize) -> usize {
        at & self.places.len().wrapping_sub(1)
    }

    /// The place that a hash names. It is mixed again because all entries of a table share its low
    /// bits.
    fn home(&self, hash: u32) -> usize {
        self.around(mix(u64::from(hash)) as usize)
    }

    /// The entry in a place; `None` when it is free.
    fn at(&self, at: usize) -> Option<Entry> {
        self.places.get(at).copied().filter(|entry| entry.slot != FREE.slot)
    }

    /// The first entry with this hash that is the sought one, and its place.
    fn find(&self, hash: u32, is: impl Fn(u32) -> bool) -> Option<(usize, u32)> {
        let mut at = self.home(hash);
        loop {
            let entry = self.at(at)?;
            if entry.hash == hash && is(entry.slot) {
                return Some((at, entry.slot));
            }
            at = self.around(at + 1);
        }
    }

    fn insert(&mut self, entry: Entry) {
        if self.len >= self.places.len() / 4 * 3 {
            let places = vec![FREE; (self.places.len() * 2).max(4)].into_boxed_slice();
            let old = std::mem::replace(self, Table { places, len: self.len });
            old.into_entries().for_each(|entry| self.put(entry));
        }
        self.put(entry);
        self.len += 1;
    }

    /// Puts an entry into a place; one is free.
    fn put(&mut self, entry: Entry) {
        let mut at = self.home(entry.hash);
        while self.at(at).is_some() {
            at = self.around(at + 1);
        }
        if let Some(place) = self.places.get_mut(at) {
            *place = entry;
        }
    }

    /// Frees a place. Entries behind it move up, so that none is found only behind a free place.
    fn remove(&mut self, mut free: usize) {
        let mut next = free;
        loop {
            next = self.around(next + 1);
            let Some(entry) = self.at(next) else { break };
            let (from_home, from_free) = (next.wrapping_sub(self.home(entry.hash)), next.wrapping_sub(free));
            if self.around(from_home) >= self.around(from_free) {
                self.places.swap(free, next);
                free = next;
            }
        }
        if let Some(place) = self.places.get_mut(free) {
            *place = FREE;
            self.len -= 1;
        }
    }

    fn into_entries(self) -> impl Iterator<Item = Entry> {
        self.places.into_vec().into_iter().filter(|entry| entry.slot != FREE.slot)
    }
}

/// The index. See the module's comment. It reads the ids of slots through a function of the
/// caller's.
#[derive(Default)]
pub struct Ids {
    tables: Vec<Table>,
    hasher: DefaultHashBuilder,
    len: usize,
}

impl Ids {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes that the index takes on the heap.
    pub fn bytes(&self) -> usize {
        let tables = allotted(self.tables.capacity() * std::mem::size_of::<Table>());
        // The tables are alike in size, since a hash chooses the table.
        let one = self.tables.first().map_or(0, |table| allotted(std::mem::size_of_val(&*table.places)));
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
        table.find(sought.hash, |slot| id_of(slot) == id).map(|(_, slot)| slot)
    }

    fn put(&mut self, entry: Entry) {
        if self.tables.is_empty() {
            self.tables.push(Table::default());
        }
        let at = self.table(&entry);
        if let Some(table) = self.tables.get_mut(at) {
            table.insert(entry);
        }
    }

    /// Adds an id that is not in the index. O(1), with at most one table split.
    pub fn insert(&mut self, id: &[u8], slot: u32) {
        self.put(self.entry(id, slot));
        self.len += 1;
        if self.len > self.tables.len() * SHARE {
            let n = self.tables.len();
            let buddy = n - (n + 1).next_power_of_two() / 2;
            self.tables.push(Table::default());
            let Some(moved) = self.tables.get_mut(buddy).map(std::mem::take) else { return };
            moved.into_entries().for_each(|entry| self.put(entry));
        }
    }

    /// Removes an id. O(1), with at most one table joined to its buddy.
    pub fn remove(&mut self, id: &[u8], slot: u32) {
        let gone = self.entry(id, slot);
        let at = self.table(&gone);
        let Some(table) = self.tables.get_mut(at) else { return };
        if let Some((place, _)) = table.find(gone.hash, |other| other == slot) {
            table.remove(place);
            self.len -= 1;
        }
        if self.len == 0 {
            self.tables = Vec::new();
        } else if self.tables.len() > 1 && self.len < self.tables.len() * SHARE / 4 {
            let Some(last) = self.tables.pop() else { return };
            last.into_entries().for_each(|entry| self.put(entry));
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
