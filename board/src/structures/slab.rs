//! Values in numbered slots. An insert always takes the lowest free slot, so the numbers follow
//! from the set of occupied slots alone: a copy with the same occupied slots takes the same next
//! one.
//!
//! Slots live in chunks of [`CHUNK`]; a chunk is allocated with its first value and freed with its
//! last, so growth never copies more than one chunk and never stalls. The slots of the first chunk
//! grow one by one, twofold each time: most boards are small. All operations are O(1) but for the
//! walk down the bitmap of occupied slots, which has one level for each factor of 64.
//!
//! A board that once was large may be loaded with a few values in slots far apart. Such values are
//! kept one by one until there are [`FEW`] in the range of one chunk, or until that range is to
//! take the next value; then they move into a chunk. So a slab takes no more than a small multiple
//! of what it holds. The bitmap covers chunks alone.

use std::collections::BTreeMap;

use crate::structures::allotted::allotted;
use crate::structures::bitmap::Bitmap;
use crate::structures::lazy::Lazy;
use crate::structures::mover::Mover;

/// With records of 64 bytes a chunk is 16 KiB, a size of the allocator's.
const CHUNK: usize = 256;
/// A range with this many values gets a chunk.
const FEW: usize = 16;
/// Slots are below this: a bound for what a snapshot may claim.
pub const MAX_SLOT: u32 = 1 << 30;

/// With room for this many the first slots are kept when the last value goes: a queue that runs
/// empty between jobs must not pay for it.
const SMALL: usize = 16;

type Chunk<T> = Box<[Option<T>; CHUNK]>;

/// Allocated in place: an array by value would be made on the stack and copied.
fn empty_chunk<T>() -> Option<Chunk<T>> {
    let values: Vec<Option<T>> = std::iter::repeat_with(|| None).take(CHUNK).collect();
    values.into_boxed_slice().try_into().ok()
}

/// See the module's comment.
pub struct Slab<T> {
    /// The slots of the first chunk, as far as they were used.
    first: Vec<Option<T>>,
    /// All chunks; the first one is never there.
    chunks: Vec<Option<Chunk<T>>>,
    used: Bitmap,
    /// Values in ranges without a chunk; the range of the lowest free slot has one.
    far: Lazy<BTreeMap<u32, T>>,
    len: usize,
}

impl<T> Slab<T> {
    /// A slab without values.
    pub const fn new() -> Self {
        Slab { first: Vec::new(), chunks: Vec::new(), used: Bitmap::new(), far: Lazy::new(), len: 0 }
    }
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab::new()
    }
}

fn split(slot: u32) -> (usize, usize) {
    (slot as usize / CHUNK, slot as usize % CHUNK)
}

impl<T: 'static> Slab<T> {
    /// How many slots are occupied.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Bytes that the slots themselves take, occupied or free.
    pub fn bytes(&self) -> usize {
        let pointers = self.chunks.capacity() * std::mem::size_of::<Option<Chunk<T>>>();
        let first = self.first.capacity() * std::mem::size_of::<Option<T>>();
        let chunk = std::mem::size_of::<[Option<T>; CHUNK]>();
        let far = self.far.len() * (std::mem::size_of::<(u32, T)>() + 8);
        allotted(first) + self.chunks.iter().flatten().count() * chunk + pointers + far + self.used.bytes()
    }

    /// The slot that the next [`Slab::insert`] takes.
    pub fn next_free(&self) -> u32 {
        self.used.first_clear() as u32
    }

    /// Puts a value into the lowest free slot, and returns the slot.
    pub fn insert(&mut self, value: T) -> u32 {
        let slot = self.next_free();
        self.insert_at(slot, value);
        slot
    }

    /// Puts a value into this slot; false when it is occupied or beyond [`MAX_SLOT`].
    pub fn insert_at(&mut self, slot: u32, value: T) -> bool {
        if slot >= MAX_SLOT {
            return false;
        }
        let (at, inside) = split(slot);
        if at == 0 && inside >= self.first.len() {
            if self.first.capacity() == 0 {
                // Many boards never have two jobs at once.
                self.first.reserve_exact(1);
            }
            self.first.resize_with(inside + 1, || None);
        }
        if at > 0 && !matches!(self.chunks.get(at), Some(Some(_))) {
            if slot != self.next_free() {
                return self.insert_far(slot, value);
            }
            self.add_chunk(at);
        }
        match self.place_mut(at, inside) {
            Some(free @ None) => *free = Some(value),
            _ => return false,
        }
        self.used.set(slot as usize);
        self.len += 1;
        if !self.far.is_empty() {
            self.gather(self.next_free(), 1);
        }
        true
    }

    /// Where the value of a slot is; `None` when there is no chunk.
    fn place_mut(&mut self, at: usize, inside: usize) -> Option<&mut Option<T>> {
        match at {
            0 => self.first.get_mut(inside),
            _ => self.chunks.get_mut(at)?.as_mut()?.get_mut(inside),
        }
    }

    fn add_chunk(&mut self, at: usize) {
        if at >= self.chunks.len() {
            self.chunks.resize_with(at + 1, || None);
        }
        if let Some(place) = self.chunks.get_mut(at) {
            *place = empty_chunk();
        }
    }

    #[cold]
    fn insert_far(&mut self, slot: u32, value: T) -> bool {
        if self.far.contains_key(&slot) {
            return false;
        }
        self.far.insert(slot, value);
        self.len += 1;
        self.gather(self.next_free(), 1);
        self.gather(slot, FEW);
        true
    }

    /// Gives the range of a slot a chunk if enough values are kept one by one in it.
    #[cold]
    fn gather(&mut self, slot: u32, few: usize) {
        let (at, _) = split(slot);
        let first = (at * CHUNK) as u32;
        let range = first..first + CHUNK as u32;
        if self.far.range(range.clone()).take(few).count() < few {
            return;
        }
        self.add_chunk(at);
        let mut values = self.far.split_off(&first);
        self.far.append(&mut values.split_off(&range.end));
        let Some(Some(chunk)) = self.chunks.get_mut(at) else { return };
        for (slot, value) in values {
            if let Some(place) = chunk.get_mut(split(slot).1) {
                *place = Some(value);
                self.used.set(slot as usize);
            }
        }
    }

    /// Removes and returns a value.
    pub fn remove(&mut self, slot: u32) -> Option<T> {
        let (at, inside) = split(slot);
        let Some(place) = self.place_mut(at, inside) else {
            let value = self.far.there()?.remove(&slot)?;
            self.len -= 1;
            return Some(value);
        };
        let value = place.take()?;
        self.used.clear(slot as usize);
        self.len -= 1;
        if at > 0 && self.used.is_clear(at * CHUNK, CHUNK) {
            if let Some(chunk) = self.chunks.get_mut(at) {
                *chunk = None;
            }
            while matches!(self.chunks.last(), Some(None)) {
                self.chunks.pop();
            }
        }
        if self.len == 0 {
            self.give_back();
        }
        Some(value)
    }

    /// Frees what an empty slab no longer needs.
    fn give_back(&mut self) {
        if self.first.capacity() > SMALL {
            self.first = Vec::new();
        }
        self.chunks = Vec::new();
        self.used.give_back();
    }

    /// The value in a slot.
    pub fn get(&self, slot: u32) -> Option<&T> {
        let (at, inside) = split(slot);
        if at == 0 {
            return self.first.get(inside)?.as_ref();
        }
        match self.chunks.get(at) {
            Some(Some(chunk)) => chunk.get(inside)?.as_ref(),
            _ => self.far.get(&slot),
        }
    }

    /// The value in a slot, to change.
    pub fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        let (at, inside) = split(slot);
        if at == 0 {
            return self.first.get_mut(inside)?.as_mut();
        }
        match self.chunks.get_mut(at) {
            Some(Some(chunk)) => chunk.get_mut(inside)?.as_mut(),
            _ => self.far.get_mut(&slot),
        }
    }

    /// The first slot behind all chunks.
    pub fn end(&self) -> u32 {
        self.first.len().max(self.chunks.len() * CHUNK) as u32
    }

    /// The first slot, from this one on, whose value is kept outside chunks.
    pub fn far_from(&self, slot: u32) -> Option<u32> {
        self.far.range(slot..).next().map(|(slot, _)| *slot)
    }

    /// Moves the chunk that begins at this slot, if there is one.
    pub fn relocate_chunk(&mut self, slot: u32, mover: &mut impl Mover) {
        if slot == 0 {
            self.first = mover.values(std::mem::take(&mut self.first));
        } else if let (at, 0) = split(slot) {
            if let Some(place) = self.chunks.get_mut(at) {
                *place = place.take().map(|chunk| mover.value(chunk));
            }
        }
    }

    /// The values from a slot on, in the order of their slots.
    pub fn iter_from(&self, slot: u32) -> impl Iterator<Item = (u32, &T)> {
        let from = slot as usize / CHUNK;
        let first = (from == 0).then_some((0, &*self.first));
        let chunks = self.chunks.iter().enumerate().skip(from);
        let chunks = first.into_iter().chain(chunks.filter_map(|(at, c)| Some((at, &c.as_ref()?[..]))));
        let values = chunks.flat_map(|(at, chunk)| {
            let all = chunk.iter().enumerate();
            all.filter_map(move |(i, value)| Some(((at * CHUNK + i) as u32, value.as_ref()?)))
        });
        let mut near = values.skip_while(move |(at, _)| *at < slot).peekable();
        let mut far = self.far.range(slot..).map(|(at, value)| (*at, value)).peekable();
        std::iter::from_fn(move || match (near.peek(), far.peek()) {
            (Some((near, _)), Some((at, _))) if at < near => far.next(),
            (None, _) => far.next(),
            _ => near.next(),
        })
    }

    /// All values in the order of their slots.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.iter_from(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_of_records_fits_into_a_size_of_the_allocators() {
        assert!(std::mem::size_of::<[Option<crate::job::Job>; CHUNK]>() <= 16 * 1024);
    }

    #[test]
    fn the_lowest_free_slot_is_taken_next_at_any_size() {
        let mut slab = Slab::default();
        let n = 300_000u32;
        for i in 0..n {
            assert_eq!(slab.insert(i), i);
        }
        for slot in [299_999, 70_000, 5, 65_536, 1023] {
            assert_eq!(slab.remove(slot), Some(slot));
        }
        for slot in [5, 1023, 65_536, 70_000, 299_999, 300_000] {
            assert_eq!(slab.insert(slot), slot);
        }
        assert_eq!(slab.len() as u32, n + 1);
    }

    #[test]
    fn a_few_values_take_little_and_an_empty_slab_gives_back_what_many_took() {
        let mut slab = Slab::default();
        slab.insert(7u64);
        let small = slab.bytes();
        assert!(small <= 256, "{small}");
        (0..CHUNK as u64 * 10).for_each(|i| {
            slab.insert(i);
        });
        (0..=CHUNK as u32 * 10).for_each(|slot| {
            slab.remove(slot);
        });
        assert!(slab.bytes() <= small, "{}", slab.bytes());
        assert_eq!((slab.len(), slab.insert(7)), (0, 0));
    }

    #[test]
    fn chunks_go_with_their_last_value() {
        let mut slab = Slab::default();
        (0..10_000).for_each(|i| {
            slab.insert(i);
        });
        let full = slab.bytes();
        (0..9_999).for_each(|i| {
            slab.remove(i);
        });
        assert!(slab.bytes() < full / 4);
        assert_eq!(slab.next_free(), 0);
        assert_eq!(slab.iter().collect::<Vec<_>>(), vec![(9_999, &9_999)]);
        assert_eq!(slab.iter_from(9_999).count(), 1);
        assert_eq!(slab.iter_from(10_000).count(), 0);
    }

    #[test]
    fn a_slab_takes_no_more_than_a_small_multiple_of_what_stands_in_it() {
        let mut slab = Slab::default();
        let n = 1_000;
        let slots = (1..=n).map(|i| i * (MAX_SLOT / n) - 1);
        for slot in slots.clone() {
            assert!(slab.insert_at(slot, [slot; 16]));
        }
        assert!(slab.bytes() < 200 * n as usize, "{}", slab.bytes());
        assert!(slots.clone().eq(slab.iter().map(|(slot, _)| slot)));
        assert_eq!((slab.len(), slab.next_free()), (n as usize, 0));
        assert_eq!(slab.insert([7; 16]), 0);
        let last = MAX_SLOT / n * n - 1;
        assert_eq!(slab.get(last).and_then(|value| value.first()), Some(&last));
        assert!(slots.clone().all(|slot| slab.remove(slot).is_some() && slab.get(slot).is_none()));
        assert_eq!(slab.len(), 1);
    }

    #[test]
    fn what_stands_far_off_changes_no_slot_that_is_taken_next() {
        // Every seventh of a range, sparse and dense ones, then the holes, lowest first.
        let mut slab = Slab::default();
        let taken = |slot: &u32| slot % 7 == 3 && slot % 1_000 < 400 || slot % 1_024 == 1_000;
        for slot in (0..20_000).filter(taken) {
            assert!(slab.insert_at(slot, slot) && !slab.insert_at(slot, slot));
        }
        for slot in (0..20_000).filter(|slot| !taken(slot)) {
            assert_eq!(slab.insert(slot), slot);
        }
        assert!(slab.iter().eq((0..20_000).zip(&(0..20_000).collect::<Vec<_>>())));
        assert!(slab.far.is_empty());
    }

    #[test]
    fn a_slot_out_of_reach_is_refused() {
        let mut slab = Slab::default();
        assert!(!slab.insert_at(MAX_SLOT, ()));
        assert!(slab.insert_at(7, ()));
        assert!(!slab.insert_at(7, ()));
        assert_eq!(slab.next_free(), 0);
    }
}
