//! Room for running jobs: how many of a queue, and of a group in it, may run at once.
//!
//! A job counts from its claim until the claim ends. A limit that is lowered below what runs
//! takes nothing back: nothing more is claimed until fewer run than it allows.

use std::collections::BTreeMap;

use crate::board::{Board, Queue};
use crate::error::Refusal;
use crate::job::State;
use crate::settings::Setting;

impl Board {
    /// How many jobs of a queue may run at once, if not any number. O(1).
    pub(crate) fn most(&self, lane: &Queue) -> Option<u64> {
        let own = lane.settings.get(Setting::Concurrency);
        own.or_else(|| self.settings.get(Setting::Concurrency)).and_then(|most| u64::try_from(most).ok())
    }

    /// Whether a queue runs as many jobs as it may. O(1).
    pub(crate) fn is_full(&self, lane: &Queue) -> bool {
        self.most(lane).is_some_and(|most| lane.count(State::Claimed) >= most)
    }

    /// How many jobs of a queue may run at once; -1 for any number. O(1).
    pub fn concurrency(&self, queue: &[u8]) -> i64 {
        let lane = self.queues.find(queue).and_then(|q| self.queues.get(q));
        let most = match lane {
            Some(lane) => self.most(lane),
            None => self.most(&Queue::default()),
        };
        most.map_or(-1, |most| most as i64)
    }

    /// Refuses that a job runs in a queue where no more may, or of a group.
    pub(crate) fn check_slot(&self, slot: u32, claim: bool, now: i64) -> Result<(), Refusal> {
        let job = self.job(slot).map_err(|_| Refusal::NoJob)?;
        match self.queues.get(self.queue_number(job)).is_some_and(|lane| self.is_full(lane)) {
            true => Err(Refusal::Limit("concurrency")),
            false => self.check_group(job, claim.then_some(slot), now),
        }
    }

    /// Refuses that these jobs go to a queue when more would run there than may. O(n).
    pub fn check_room(&self, queue: &[u8], slots: &[u32]) -> Result<(), Refusal> {
        let most = self.concurrency(queue);
        let moves = |slot: &&u32| {
            let job = self.jobs.get(**slot).filter(|job| job.state == State::Claimed);
            job.is_some_and(|job| self.queue_name(job) != queue)
        };
        let mut groups: BTreeMap<&[u8], u64> = BTreeMap::new();
        for slot in slots.iter().filter(moves) {
            if let Some(name) = self.jobs.get(*slot).and_then(|job| self.group_name(job)) {
                *groups.entry(name).or_default() += 1;
            }
        }
        for (name, moved) in groups {
            if self.group_room(queue, name).is_some_and(|room| room < moved) {
                return Err(Refusal::Limit("concurrency"));
            }
        }
        let moved = slots.iter().filter(moves).count() as u64;
        let runs = self.count_in(queue, State::Claimed);
        match most >= 0 && moved > 0 && runs + moved > most as u64 {
            true => Err(Refusal::Limit("concurrency")),
            false => Ok(()),
        }
    }

    /// A job of that queue runs no more: where a limit has kept others, they can be claimed.
    pub(crate) fn slot_freed(&mut self, queue: u32) {
        if self.queues.get(queue).is_some_and(|lane| self.most(lane).is_some()) {
            self.wake_queue(queue);
        }
    }
}
