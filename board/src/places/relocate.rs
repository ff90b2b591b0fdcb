//! Moves what jobs hold to better places in memory, for servers that defragment theirs.
//!
//! Only a slot refers to a job, so its allocations may move. Only what every job has is moved;
//! lines and trees are few and large, and stay.

use crate::board::Board;
use crate::job::gate::Gate;
use crate::job::history::History;
use crate::job::remembered::{Memos, Remembered};
use crate::job::{Extras, Job, Reports};
use crate::structures::byte_string::ByteString;
use crate::structures::lazy::{Lazy, Part};
use crate::structures::mover::Mover;

/// How many jobs are moved before the mover is asked again whether to stop.
const STEP: u32 = 64;

impl Board {
    /// Moves what the jobs from this slot on hold. Returns the slot to continue from, or `None` at
    /// the end. The state does not change. O(n) for n slots.
    pub fn relocate(&mut self, from: u32, mover: &mut impl Mover) -> Option<u32> {
        let end = self.store.jobs.end().max(self.store.claims.end());
        for slot in from..end {
            if slot > from && slot % STEP == 0 && mover.is_tired() {
                return Some(slot);
            }
            self.store.jobs.relocate_chunk(slot, mover);
            self.store.claims.relocate_chunk(slot, mover);
            if let Some(job) = self.store.jobs.get_mut(slot) {
                job.relocate(mover);
            }
        }
        let mut next = from.max(end);
        while let Some(slot) = self.store.jobs.far_from(next) {
            if slot > from && mover.is_tired() {
                return Some(slot);
            }
            if let Some(job) = self.store.jobs.get_mut(slot) {
                job.relocate(mover);
            }
            next = slot + 1;
        }
        None
    }
}

impl ByteString {
    fn relocate(&mut self, mover: &mut impl Mover) {
        let bytes = std::mem::take(self.boxed_mut());
        *self.boxed_mut() = mover.bytes(bytes);
    }
}

impl Job {
    fn relocate(&mut self, mover: &mut impl Mover) {
        let blob = std::mem::take(self.blob_mut());
        *self.blob_mut() = mover.bytes(blob);
        if let Some(extras) = self.extras.take() {
            let mut extras = mover.value(extras);
            extras.relocate(mover);
            self.extras = Some(extras);
        }
    }
}

impl Extras {
    fn relocate(&mut self, mover: &mut impl Mover) {
        self.reports.relocate(mover);
        self.retrying.relocate(mover);
        let said = self.reports.there().into_iter().flat_map(Reports::texts_mut);
        let stale = self.retrying.there().into_iter().flat_map(|tried| &mut tried.stale);
        for text in said.chain(stale).chain(&mut self.user) {
            text.relocate(mover);
        }
        self.meta = mover.values(std::mem::take(&mut self.meta));
        for (field, value) in &mut self.meta {
            field.relocate(mover);
            value.relocate(mover);
        }
        if let Some(last) = self.last_claim.take() {
            self.last_claim.insert(mover.value(last)).worker.relocate(mover);
        }
        if let Some(advanced) = self.advanced.take() {
            self.advanced.insert(mover.value(advanced)).0.relocate(mover);
        }
        if let Some(family) = self.family.take() {
            self.family = Some(mover.value(family));
        }
        if let Some(origin) = self.origin.take() {
            self.origin.insert(mover.value(origin)).queue.relocate(mover);
        }
        if let Some(unique) = self.unique.take() {
            self.unique = Some(mover.value(unique));
        }
        self.history.relocate(mover);
        self.remembered.relocate(mover);
        self.remembered.there().into_iter().for_each(|remembered| remembered.relocate(mover));
    }
}

impl<T: Part> Lazy<T> {
    fn relocate(&mut self, mover: &mut impl Mover) {
        let part = self.boxed_mut();
        *part = part.take().map(|value| mover.value(value));
    }
}

impl Remembered {
    fn relocate(&mut self, mover: &mut impl Mover) {
        self.steps.relocate(mover);
        if let Some(output) = self.output.take() {
            let (bytes, ends) = self.output.insert(mover.value(output)).parts_mut();
            *bytes = mover.values(std::mem::take(bytes));
            *ends = mover.values(std::mem::take(ends));
        }
        if let Some(spending) = self.spending.take() {
            let costs = &mut self.spending.insert(mover.value(spending)).costs;
            *costs = mover.values(std::mem::take(costs));
            costs.iter_mut().for_each(|(name, _)| name.relocate(mover));
        }
        self.signals.relocate(mover);
        self.timeouts.relocate(mover);
        if let Some(gate) = self.gate.take() {
            self.gate.insert(mover.value(gate)).relocate(mover);
        }
        if let Some(waiting) = self.waiting.take() {
            let waiting = self.waiting.insert(mover.value(waiting));
            waiting.gate.relocate(mover);
            waiting.step.relocate(mover);
        }
    }
}

impl Gate {
    fn relocate(&mut self, mover: &mut impl Mover) {
        self.names = mover.values(std::mem::take(&mut self.names));
        self.names.iter_mut().for_each(|name| name.relocate(mover));
    }
}

impl Memos {
    fn relocate(&mut self, mover: &mut impl Mover) {
        let (memos, by_name) = self.parts_mut();
        *memos = mover.values(std::mem::take(memos));
        *by_name = mover.values(std::mem::take(by_name));
        for memo in memos {
            memo.name.relocate(mover);
            memo.value.relocate(mover);
            memo.sender.iter_mut().for_each(|sender| sender.relocate(mover));
        }
    }
}

impl History {
    fn relocate(&mut self, mover: &mut impl Mover) {
        let entries = self.entries_mut();
        *entries = mover.values(std::mem::take(entries));
        for entry in entries {
            for text in entry.worker.iter_mut().chain(&mut entry.text) {
                text.relocate(mover);
            }
        }
    }
}
