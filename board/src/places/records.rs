//! Adds, changes and removes records: ids, heap, history.

use crate::board::Board;
use crate::effect::ApplyError;
use crate::job::{End, Extras, Job, State};
use crate::places::happened::Happened;
use crate::places::tombstones::Tombstone;
use crate::settings::Setting;

impl Board {
    /// Removes a record that is in no place, and keeps a tombstone of it.
    pub(crate) fn drop_with_tombstone(
        &mut self,
        slot: u32,
        state: State,
        token: u64,
        ended: i64,
        now: i64,
    ) -> Result<(), ApplyError> {
        self.leave_key(slot);
        let id = self.id(slot).ok_or(ApplyError)?.owned();
        self.drop_record(slot)?;
        let (most, ttl) = (self.own(Setting::Tombstones), self.own(Setting::TombstoneTtl));
        if ended.saturating_add(ttl) > now {
            let tombstone = Tombstone { id, token, state, ended, version: self.revision };
            let forgotten = self.places.tombstones.push(tombstone, most.max(0) as usize, now, ttl);
            self.forget_until(forgotten);
        } else {
            self.remember_gone(id, now);
        }
        Ok(())
    }

    /// Removes a record that is in no place.
    pub(crate) fn drop_record(&mut self, slot: u32) -> Result<Job, ApplyError> {
        self.unindex_for_good(slot)?;
        self.mark_changed(slot);
        let job = self.store.jobs.remove(slot).ok_or(ApplyError)?;
        let chosen = job.chosen_id();
        if !chosen.is_empty() {
            self.store.ids.remove(chosen, slot);
        } else if let Some(seed) = job.seed() {
            self.store.seeds.remove(seed);
        }
        if let Some(tie) = job.extras.as_ref().and_then(|extras| extras.family.as_ref()?.parent) {
            self.relations.families.remove(tie.number, job.seq.get());
        }
        self.store.heap = self.store.heap.saturating_sub(job.heap());
        self.store.allotted = self.store.allotted.saturating_sub(job.allotted());
        self.queue_loses(job.class, self.weight(&job));
        if let Some(group) = job.group() {
            self.release_group(self.queue_number(&job), group);
        }
        self.release_class(job.class);
        Ok(job)
    }

    /// Removes the record of an ended job, as retention does.
    pub(crate) fn retire(&mut self, slot: u32, now: i64) -> Result<(), ApplyError> {
        if !self.job(slot)?.state.ended() || self.pinned(slot) {
            return Err(ApplyError);
        }
        self.leave(slot)?;
        self.drop_ended(slot, now)
    }

    /// Removes the record of an ended job that is in no place.
    pub(crate) fn drop_ended(&mut self, slot: u32, now: i64) -> Result<(), ApplyError> {
        self.happened(slot, &Happened::Retired)?;
        let job = self.job(slot)?;
        let (state, extras) = (job.state, job.extras.as_ref());
        let token = self.last_token(slot);
        let ended = extras.map_or(0, |r| r.ended);
        self.drop_with_tombstone(slot, state, token, ended, now)
    }

    /// The token with which the last holder of a job may report again how it ended; 0 when the job
    /// was taken from it, or nobody held it.
    pub(crate) fn last_token(&self, slot: u32) -> u64 {
        let last = self.extras(slot).and_then(|r| r.last_claim.as_ref());
        last.filter(|last| last.end != End::Taken).map_or(0, |last| last.token)
    }

    /// Adds a record that is in no place yet. Once it has its place in the order of posts, the
    /// caller must index its labels.
    pub(crate) fn add_record(&mut self, slot: u32, job: Job) -> Result<(), ApplyError> {
        self.store.heap += job.heap();
        self.store.allotted += job.allotted();
        self.queue_gains(job.class, self.weight(&job));
        let (named, seed) = (!job.chosen_id().is_empty(), job.seed());
        if !self.store.jobs.insert_at(slot, job) {
            return Err(ApplyError);
        }
        if named {
            self.store.ids.insert(self.store.jobs.get(slot).map_or(&[][..], Job::chosen_id), slot);
        }
        if let Some(seed) = seed {
            self.store.seeds.add(seed);
        }
        Ok(())
    }

    /// Changes what a job holds on the heap, and updates the sum.
    pub(crate) fn edit(
        &mut self,
        slot: u32,
        change: impl FnOnce(&mut Job) -> Result<(), ApplyError>,
    ) -> Result<(), ApplyError> {
        let job = self.store.jobs.get_mut(slot).ok_or(ApplyError)?;
        let (before, allotted) = (job.heap(), job.allotted());
        change(job)?;
        let (class, after) = (job.class, job.heap());
        self.store.allotted = (self.store.allotted + job.allotted()).saturating_sub(allotted);
        self.store.heap = (self.store.heap + after).saturating_sub(before);
        match after.checked_sub(before) {
            Some(0) => {}
            Some(more) => self.queue_gains(class, more),
            None => self.queue_loses(class, before - after),
        }
        Ok(())
    }

    /// What few jobs have, of this job; `None` when it has nothing of it.
    pub(crate) fn extras(&self, slot: u32) -> Option<&Extras> {
        self.store.jobs.get(slot)?.extras.as_deref()
    }
}
