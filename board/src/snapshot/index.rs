//! Derives places, orders and counts from the records of a loaded board.

use crate::board::Board;
use crate::item::SnapshotError;
use crate::job::{Job, State, NEVER};
use crate::places::Seldom;
use crate::structures::lazy::Lazy;
use crate::structures::sorted::SortedSlots;

impl Board {
    /// Puts all records, none of which is in a place yet, into their places at once.
    pub(super) fn index(&mut self) -> Result<(), SnapshotError> {
        let mut by_state: [Vec<u32>; 8] = Default::default();
        let mut expiries = Vec::new();
        let mut drops = Vec::new();
        let mut kept: [Vec<u32>; 8] = Default::default();
        for (slot, job) in self.store.jobs.iter() {
            let pinned = job.state.ended() && job.extras.as_ref().is_some_and(|r| r.pins().any());
            let places = if pinned { &mut kept } else { &mut by_state };
            if let Some(slots) = places.get_mut(job.state as usize) {
                slots.push(slot);
            }
            match job.state {
                State::Ready if job.at.get() != NEVER => expiries.push(slot),
                state if state.ended() && job.at.get() != NEVER => drops.push(slot),
                _ => {}
            }
        }
        let [mut scheduled, mut blocked, mut ready, mut claimed, ended @ ..] = by_state;
        self.load_waits(&blocked)?;
        self.load_families()?;
        self.load_by_queue();
        self.places.due = self.line_of(&mut scheduled, Job::at_key);
        if !(blocked.is_empty() && expiries.is_empty() && drops.is_empty()) {
            let in_order = self.line_of(&mut blocked, Job::at_key);
            blocked.retain(|slot| self.store.jobs.get(*slot).is_some_and(|job| job.wait_until() != NEVER));
            self.places.seldom = Lazy::holding(Seldom {
                blocked: in_order,
                waits: self.line_of(&mut blocked, Job::wait_key),
                expiries: self.line_of(&mut expiries, Job::at_key),
                drops: self.line_of(&mut drops, Job::at_key),
            });
        }
        let [_, _, _, _, kept @ ..] = kept;
        let states = [State::Complete, State::Failed, State::Cancelled, State::Trashed];
        for ((state, slots), kept) in states.into_iter().zip(ended).zip(kept) {
            for (pinned, mut slots) in [(false, slots), (true, kept)] {
                if slots.is_empty() {
                    continue;
                }
                slots.iter().for_each(|slot| self.load_kind(*slot));
                let line = self.line_of(&mut slots, Job::ended_key);
                if let Some(place) = self.places.ended.line_mut(state, pinned) {
                    *place = line;
                }
            }
        }
        let jobs = &self.store.jobs;
        let lease_key = |s: u32| self.store.lease_key(s);
        claimed.sort_unstable_by_key(|s| lease_key(*s));
        let leases = SortedSlots::from_sorted(&claimed, lease_key);
        let worker_of = |s: u32| jobs.get(s).and_then(|j| self.claim_of(j)).map_or(0, |c| c.worker);
        let token_of = |s: u32| self.store.claim_token(s);
        claimed.sort_unstable_by_key(|s| (worker_of(*s), token_of(*s)));
        let mut held = Vec::new();
        for slots in claimed.chunk_by(|a, b| worker_of(*a) == worker_of(*b)) {
            if let Some(first) = slots.first() {
                let begins = slots.iter().filter_map(|s| self.claim_of(jobs.get(*s)?)).map(|c| c.claimed);
                let seen = begins.max().unwrap_or_default();
                let numbers = slots.iter().filter_map(|s| Some(jobs.get(*s)?.at.get() as u32));
                let numbers: Vec<u32> = numbers.collect();
                let line = SortedSlots::from_sorted(&numbers, |number| self.store.token(number));
                held.push((worker_of(*first), line, seen));
            }
        }
        let queue_of = |s: u32| jobs.get(s).map_or(0, |j| self.queue_number(j));
        let ready_key = |s: u32| jobs.get(s).map(Job::ready_key).unwrap_or_default();
        ready.sort_unstable_by_key(|s| (queue_of(*s), ready_key(*s)));
        // For each queue the jobs without a group, then those of each group, and then all with
        // groups again.
        let group_of = |s: u32| jobs.get(s).and_then(Job::group);
        let mut lines_of = Vec::new();
        for slots in ready.chunk_by(|a, b| queue_of(*a) == queue_of(*b)) {
            let Some(queue) = slots.first().map(|first| queue_of(*first)) else { continue };
            let (mut grouped, plain): (Vec<u32>, Vec<u32>) =
                slots.iter().partition(|s| group_of(**s).is_some());
            let all = SortedSlots::from_sorted(&grouped, ready_key);
            grouped.sort_by_key(|s| group_of(*s));
            let groups = grouped.chunk_by(|a, b| group_of(*a) == group_of(*b));
            let begun = |s: &u32| jobs.get(*s).is_some_and(Job::has_begun);
            let lines = |slots: &[u32]| {
                let again = slots.iter().copied().filter(begun).map(|s| (ready_key(s), s)).collect();
                (SortedSlots::from_sorted(slots, ready_key), again)
            };
            let groups = groups.filter_map(|slots| Some((group_of(*slots.first()?)?, lines(slots))));
            lines_of.push((
                queue,
                SortedSlots::from_sorted(&plain, ready_key),
                all,
                groups.collect::<Vec<_>>(),
            ));
        }
        self.places.leases = leases;
        for (number, claims, seen) in held {
            let worker = self.workers.names.get_mut(number).ok_or(SnapshotError("worker"))?;
            (worker.claims, worker.local.seen) = (claims, seen);
        }
        let busy: Vec<u32> = lines_of.iter().map(|(number, ..)| *number).collect();
        for (number, line, all, groups) in lines_of {
            let queue = self.queues.get_mut(number).ok_or(SnapshotError("queue"))?;
            queue.ready = line;
            if let Some(fair) = queue.fair.as_deref_mut() {
                fair.all = all;
                for (at, line) in groups {
                    let group = fair.groups.get_mut(at).ok_or(SnapshotError("group"))?;
                    (group.ready, group.again) = line;
                }
            }
        }
        self.load_rounds();
        self.count_all();
        busy.into_iter().for_each(|queue| self.mark_busy(queue));
        self.index_all_labels()?;
        self.wake_at(0);
        Ok(())
    }

    fn line_of(&self, slots: &mut [u32], key: fn(&Job) -> (i64, i64)) -> SortedSlots<(i64, i64)> {
        let key_of = |s: u32| self.store.jobs.get(s).map(key).unwrap_or_default();
        slots.sort_unstable_by_key(|s| key_of(*s));
        SortedSlots::from_sorted(slots, key_of)
    }

    fn load_kind(&mut self, slot: u32) {
        let failed = self.store.jobs.get(slot).filter(|job| job.state == State::Failed);
        if let Some(kind) = failed.and_then(|job| job.extras.as_ref()?.reports.kind.clone()) {
            *self.places.kinds.entry(kind).or_default() += 1;
        }
    }

    fn count_all(&mut self) {
        let open = |job: &Job| job.state == State::Claimed || job.has_begun();
        let place = |job: &Job| (self.queue_number(job), job.group(), job.state, open(job));
        let places: Vec<_> = self.store.jobs.iter().map(|(_, job)| place(job)).collect();
        for (queue, group, state, open) in places {
            self.tally(queue, group, state, 1);
            if open {
                self.tally_open(queue, group, 1);
            }
        }
        let owned = |job: &Job| job.extras.as_ref().is_some_and(|extras| extras.user.is_some());
        let live = self.store.jobs.iter().filter(|(_, job)| !job.state.ended() && owned(job));
        for slot in live.map(|(slot, _)| slot).collect::<Vec<_>>() {
            self.owner_gains(slot);
        }
        self.count_bounds();
        self.find_bounds();
        self.find_barred();
    }
}
