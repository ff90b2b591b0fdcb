//! The records of a board, and finding them.

use crate::board::Board;
use crate::effect::ApplyError;
use crate::job::id::{self, Id};
use crate::job::order::TimeKey;
use crate::job::{Claim, Class, Job, State};
use crate::structures::ids::Ids;
use crate::structures::interner::Interner;
use crate::structures::slab::Slab;

/// Jobs and claims, by slot.
#[derive(Default)]
pub(crate) struct Store {
    pub(crate) jobs: Slab<Job>,
    pub(crate) claims: Slab<Claim>,
    pub(crate) ids: Ids,
    /// The classes, each with the label of its name.
    pub(crate) classes: Interner<Class, Option<u32>>,
    /// Bytes on the heap that the records point to.
    pub(crate) heap: usize,
}

impl Store {
    /// The key of a slot in `leases`.
    pub(crate) fn lease_key(&self, slot: u32) -> TimeKey {
        self.jobs
            .get(slot)
            .and_then(|job| Some(job.lease_key(self.claims.get(job.at.get() as u32)?)))
            .unwrap_or_default()
    }

    /// The key of a slot in its worker's `claims`.
    pub(crate) fn claim_token(&self, slot: u32) -> u64 {
        self.jobs.get(slot).and_then(|job| self.claims.get(job.at.get() as u32)).map_or(0, |c| c.token)
    }
}

impl Board {
    /// The slot of the job of that id. O(1).
    pub fn find(&self, id: &[u8]) -> Option<u32> {
        if let Some((made, slot)) = id::read_made(id) {
            if self.store.jobs.get(slot).is_some_and(|job| job.id() == Id::Made(made)) {
                return Some(slot);
            }
        }
        self.store.ids.get(id, |slot| self.store.jobs.get(slot).map_or(&[], Job::chosen_id))
    }

    pub(crate) fn job(&self, slot: u32) -> Result<&Job, ApplyError> {
        self.store.jobs.get(slot).ok_or(ApplyError)
    }

    pub(crate) fn job_mut(&mut self, slot: u32) -> Result<&mut Job, ApplyError> {
        self.store.jobs.get_mut(slot).ok_or(ApplyError)
    }

    pub(crate) fn claim_of(&self, job: &Job) -> Option<&Claim> {
        match job.state {
            State::Claimed => self.store.claims.get(job.at.get() as u32),
            _ => None,
        }
    }

    pub(crate) fn claim_mut(&mut self, slot: u32) -> Result<&mut Claim, ApplyError> {
        let job = self.store.jobs.get(slot).ok_or(ApplyError)?;
        if job.state != State::Claimed {
            return Err(ApplyError);
        }
        self.store.claims.get_mut(job.at.get() as u32).ok_or(ApplyError)
    }

    pub(crate) fn worker_name(&self, claim: &Claim) -> &[u8] {
        self.workers.names.key(claim.worker).map_or(&[], |name| name)
    }

    pub(crate) fn class_of(&self, job: &Job) -> Option<&Class> {
        self.store.classes.key(job.class)
    }

    /// The number of a job's queue; one that no queue has for a job without a class, which no board has.
    pub(crate) fn queue_number(&self, job: &Job) -> u32 {
        self.class_of(job).map_or(u32::MAX, |c| c.queue)
    }

    pub(crate) fn queue_name(&self, job: &Job) -> &[u8] {
        self.queues.key(self.queue_number(job)).map_or(&[], |name| name)
    }
}
