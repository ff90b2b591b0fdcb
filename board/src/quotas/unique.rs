//! Unique keys, which jobs take with `UNIQUE`: at most one job of a board holds a key.
//!
//! A job takes its key when it is posted, replaced or requeued. What frees it:
//!
//! | the post names | the key is free |
//! |---|---|
//! | nothing, or `UNTIL end` | when the job ends |
//! | `UNTIL start` | when the job is claimed, or ends before; a job that becomes ready again does not take it again |
//! | `FOR ms` alone | after that time, whatever has become of the job; also when its record has been removed |
//! | `FOR` with `UNTIL` | at the first of both |
//!
//! Deleting the job frees its key in any case. A key whose time is over counts as free at once; the
//! clock removes it from the table in slices.

use crate::item::{need, Item, Loading, SnapshotError};
use std::collections::{BTreeMap, BTreeSet};

use crate::board::{after, Board};
use crate::effect::{is_name, ApplyError};
use crate::error::Refusal;
use crate::job::id::Id;
use crate::job::unique_key::Unique;
use crate::job::{State, NEVER};
use crate::structures::byte_string::ByteString;
use crate::structures::lazy::Part;

written! {
    /// A key that a job holds.
    #[derive(Debug, Clone, PartialEq)]
    pub(crate) struct Taken {
        1 pub key: ByteString,
        /// The id of the job that holds it, also when its record has been removed.
        2 pub id: Id<ByteString>,
        /// Its record, while there is one.
        3 pub slot: Option<u32>,
        /// When it is free at the latest, Unix ms, or [`NEVER`].
        4 end: i64,
    }
}

impl Taken {
    pub(crate) fn is_valid(&self) -> bool {
        let id = self.id.borrowed().bytes().len();
        is_name(&self.key) && (1..=255).contains(&id) && (1..=NEVER).contains(&self.end)
    }

    fn bytes(&self) -> usize {
        2 * std::mem::size_of::<Self>() + 3 * self.key.len() + self.id.borrowed().bytes().len()
    }
}

/// All keys that jobs hold, by key and by when they are free.
#[derive(Default)]
pub(crate) struct Keys {
    all: BTreeMap<ByteString, Taken>,
    ends: BTreeSet<(i64, ByteString)>,
    heap: usize,
}

impl Part for Keys {
    const BLANK: &'static Self = &Keys { all: BTreeMap::new(), ends: BTreeSet::new(), heap: 0 };
}

impl Keys {
    pub fn get(&self, key: &[u8]) -> Option<&Taken> {
        self.all.get(key)
    }

    /// All taken keys, sorted.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Taken> {
        self.all.values()
    }

    /// When time frees the next key, Unix ms. O(log n).
    pub fn soonest(&self) -> i64 {
        self.ends.first().map_or(NEVER, |(end, _)| *end)
    }

    pub fn put(&mut self, taken: Taken) {
        self.remove(&taken.key.clone());
        self.heap += taken.bytes();
        if taken.end != NEVER {
            self.ends.insert((taken.end, taken.key.clone()));
        }
        self.all.insert(taken.key.clone(), taken);
    }

    fn remove(&mut self, key: &[u8]) {
        if let Some(old) = self.all.remove(key) {
            self.heap = self.heap.saturating_sub(old.bytes());
            self.ends.remove(&(old.end, old.key));
        }
    }

    pub fn bytes(&self) -> usize {
        self.heap
    }
}

impl Board {
    /// The id of the job that holds a key now, and the slot of its record, if it has one. O(log
    /// keys).
    pub fn holder_of(&self, key: &[u8], now: i64) -> Option<(&Id<ByteString>, Option<u32>)> {
        self.quotas.keys.get(key).filter(|taken| taken.end > now).map(|taken| (&taken.id, taken.slot))
    }

    /// How many keys are taken.
    pub fn key_count(&self) -> usize {
        self.quotas.keys.iter().len()
    }

    /// Refuses a key that another job holds.
    pub(crate) fn check_key(&self, key: &[u8], slot: Option<u32>, now: i64) -> Result<(), Refusal> {
        match self.holder_of(key, now) {
            Some((id, holder)) if holder.is_none() || holder != slot => Err(Refusal::exists(id)),
            _ => Ok(()),
        }
    }

    /// Refuses a job to take its key again, if it has one, as [`Board::take_key`] would.
    pub(crate) fn check_own_key(&self, slot: u32, now: i64) -> Result<(), Refusal> {
        let Some(unique) = self.unique(slot) else { return Ok(()) };
        self.check_key(&unique.key, Some(slot), now)?;
        self.check_new_keys(usize::from(self.is_new_key(&unique.key)))
    }

    /// Refuses jobs, each of which could take its key again alone, when two of them have one key, or they would
    /// hold too many together. O(n log n).
    pub fn check_own_keys(&self, slots: impl IntoIterator<Item = u32>) -> Result<(), Refusal> {
        let mut first: BTreeMap<&[u8], u32> = BTreeMap::new();
        for slot in slots {
            let Some(unique) = self.unique(slot) else { continue };
            if let Some(other) = first.insert(&unique.key, slot) {
                let id = |slot| self.id(slot).map(Id::owned).ok_or(Refusal::NoJob);
                let holder = Refusal::exists(&id(other)?);
                return Err(id(slot)?.borrowed().text(|id| holder.of(id)));
            }
        }
        self.check_new_keys(first.keys().filter(|key| self.is_new_key(key)).count())
    }

    /// The key that a job was posted with.
    pub(crate) fn unique(&self, slot: u32) -> Option<&Unique> {
        self.extras(slot)?.unique.as_deref()
    }

    /// A job takes its key, if it has one.
    pub(crate) fn take_key(&mut self, slot: u32, now: i64) -> Result<(), ApplyError> {
        let Some(unique) = self.unique(slot) else { return Ok(()) };
        if self.check_key(&unique.key, Some(slot), now).is_err() {
            return Err(ApplyError);
        }
        let end = unique.time.map_or(NEVER, |ms| after(now, ms).clamp(1, NEVER - 1));
        let id = self.id(slot).ok_or(ApplyError)?.owned();
        let taken = Taken { key: unique.key.clone(), id, slot: Some(slot), end };
        self.quotas.keys.put(taken);
        self.wake_at(end);
        self.begins_key(slot, false);
        Ok(())
    }

    fn begins_key(&mut self, slot: u32, begun: bool) {
        if let Some(job) = self.store.jobs.get_mut(slot) {
            if let Some(unique) = job.extras.as_mut().and_then(|extras| extras.unique.as_mut()) {
                unique.begun = begun;
            }
        }
    }

    /// A job frees its key, if it still holds it.
    pub(crate) fn free_key(&mut self, slot: u32) {
        let Some(key) = self.unique(slot).map(|unique| unique.key.clone()) else { return };
        if self.quotas.keys.get(&key).is_some_and(|taken| taken.slot == Some(slot)) {
            self.quotas.keys.remove(&key);
        }
    }

    /// A job was claimed: frees its key if the claim does.
    pub(crate) fn start_frees(&mut self, slot: u32) {
        if self.unique(slot).is_some_and(Unique::at_start) {
            self.free_key(slot);
            self.begins_key(slot, true);
        }
    }

    /// The record of a job is being removed; a key for a time stays taken.
    pub(crate) fn leave_key(&mut self, slot: u32) {
        let Some(unique) = self.unique(slot) else { return };
        if unique.at_end() {
            return self.free_key(slot);
        }
        let mut held = self.quotas.keys.get(&unique.key).filter(|taken| taken.slot == Some(slot)).cloned();
        if let Some(taken) = held.take() {
            self.quotas.keys.put(Taken { slot: None, ..taken });
        }
    }

    /// Frees the first `n` keys, as far as their time was over at `until`.
    pub(crate) fn free_keys(&mut self, until: i64, n: u32) {
        for _ in 0..n {
            match self.quotas.keys.ends.first() {
                Some((end, key)) if *end <= until => {
                    let key = key.clone();
                    self.quotas.keys.remove(&key);
                }
                _ => return,
            }
        }
    }

    /// Checks that the table of keys and the records agree.
    pub(crate) fn check_keys(&self) -> Result<(), String> {
        let timed = self.quotas.keys.iter().filter(|taken| taken.end != NEVER);
        let ends: BTreeSet<_> = timed.map(|taken| (taken.end, taken.key.clone())).collect();
        let heap: usize = self.quotas.keys.iter().map(Taken::bytes).sum();
        if ends != self.quotas.keys.ends || heap != self.quotas.keys.heap {
            return Err("keys do not stand in the order of their ends".into());
        }
        for taken in self.quotas.keys.iter() {
            let known = match taken.slot {
                None => taken.end != NEVER,
                Some(slot) => self.store.jobs.get(slot).is_some_and(|job| {
                    let unique = self.unique(slot);
                    let over = job.state.ended() && unique.is_some_and(Unique::at_end)
                        || unique.is_some_and(Unique::over);
                    let untimed = unique.is_some_and(|u| u.time.is_none());
                    self.store.id(slot, job) == taken.id.borrowed()
                        && unique.is_some_and(|u| u.key == taken.key)
                        && !over
                        && untimed == (taken.end == NEVER)
                }),
            };
            if !known {
                return Err("a key that nobody can hold".into());
            }
        }
        for (slot, job) in self.store.jobs.iter() {
            let Some(unique) = self.unique(slot) else { continue };
            if unique.at_start() && job.state == State::Claimed && !unique.begun {
                return Err(format!("slot {slot} was claimed, but its key does not know"));
            }
            let free = job.state.ended() || unique.over() || self.is_dead(slot);
            let holds = self.quotas.keys.get(&unique.key).is_some_and(|taken| taken.slot == Some(slot));
            if unique.time.is_none() && !free && !holds {
                return Err(format!("slot {slot} has lost its key"));
            }
        }
        Ok(())
    }
}

impl<'a> Item<'a> for Taken {
    fn each(board: &'a Board, put: impl FnMut(&Self)) {
        board.quotas.keys.iter().for_each(put);
    }

    fn load(self, board: &mut Board, _loading: &mut Loading) -> Result<(), SnapshotError> {
        need(self.is_valid(), "key")?;
        need(board.quotas.keys.get(&self.key).is_none(), "a key twice")?;
        board.quotas.keys.put(self);
        Ok(())
    }
}
