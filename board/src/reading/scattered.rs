//! Ready jobs of very many queues. In the order of claims the first of them is known only after a
//! look at each queue. So when that is more than one call may look at, a walk over ready jobs goes by
//! their slots, which stay the same and are equal on every copy.

use std::cmp::Reverse;

use crate::board::Board;
use crate::job::order::ReadyKey;
use crate::job::{Job, State};
use crate::queue::Queue;
use crate::reading::filters::{Cursor, Filters, Page};
use crate::reading::list::LOOK;
use crate::structures::merge::Slots;

/// A walk over ready jobs by their slots.
#[derive(Clone, Copy)]
pub(crate) struct BySlot {
    /// Where it continues.
    from: u32,
    /// The walk began in the order of claims, and has had the jobs before this key.
    key: ReadyKey,
    reverse: bool,
}

impl Board {
    /// The walk by slots over the jobs in a state, from a position on; `None` when one in the order of
    /// the state does.
    pub(crate) fn by_slot(&self, state: State, from: Option<Cursor>, page: &Page<'_>) -> Option<BySlot> {
        if state != State::Ready || !page.filters.queues().is_empty() {
            return None;
        }
        let begun = from.and_then(|cursor| cursor.slot);
        if begun.is_none() && self.lines_of_ready(&page.filters) <= LOOK {
            return None;
        }
        let all = match page.reverse {
            false => (Reverse(i32::MAX), i64::MIN, i64::MIN),
            true => (Reverse(i32::MIN), i64::MAX, i64::MAX),
        };
        let key = from.map_or(all, |cursor| cursor.ready_key());
        Some(BySlot { from: begun.unwrap_or(0), key, reverse: page.reverse })
    }

    /// How many lines of ready jobs a walk without named queues has to begin.
    fn lines_of_ready(&self, filters: &Filters<'_>) -> usize {
        self.busy().len().saturating_mul(filters.groups().len().max(1))
    }

    /// Adds the jobs of such a walk that pass to a page, until it is full or the looks are used up.
    /// Returns where it stopped before the end.
    pub(crate) fn fill_by_slot(
        &self,
        walk: BySlot,
        page: &Page<'_>,
        looks: &mut usize,
        found: &mut Vec<u32>,
    ) -> Option<Cursor> {
        for slot in self.slots_from(walk) {
            if found.len() >= page.count || *looks == 0 {
                return Some(walk.at(slot));
            }
            if !self.is_in(walk, slot) {
                *looks -= 1;
                continue;
            }
            let Some(record) = self.record_of(slot) else { continue };
            *looks = looks.saturating_sub(page.filters.looks(&record));
            if page.filters.holds(&record) {
                found.push(slot);
            }
        }
        None
    }

    /// The slots of all records from there on; [`Board::is_in`] says which are in the walk. Each is a
    /// look.
    pub(crate) fn slots_from(&self, walk: BySlot) -> Slots<'_> {
        Box::new(self.store.jobs.iter_from(walk.from).map(|(slot, _)| slot))
    }

    /// Whether a walk by slots has the job in this slot.
    pub(crate) fn is_in(&self, walk: BySlot, slot: u32) -> bool {
        self.store.jobs.get(slot).is_some_and(|job| walk.has(job))
    }

    /// All ready jobs, in no order.
    pub(crate) fn all_ready(&self) -> Slots<'_> {
        let queues = self.busy().iter().filter_map(|queue| self.queues.get(*queue));
        let key_of = |_| (Reverse(0), 0, 0);
        Box::new(queues.flat_map(Queue::ready_lines).flat_map(move |line| line.iter_from(None, key_of)))
    }
}

impl BySlot {
    fn has(&self, job: &Job) -> bool {
        let passed = match self.reverse {
            false => job.ready_key() < self.key,
            true => job.ready_key() > self.key,
        };
        job.state == State::Ready && !passed
    }

    /// The position of a slot.
    pub(crate) fn at(&self, slot: u32) -> Cursor {
        let (level, time, seq) = self.key;
        Cursor { state: State::Ready, priority: level.0, time, seq, slot: Some(slot) }
    }
}
