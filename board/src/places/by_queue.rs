//! The scheduled, blocked and ended jobs of each queue, in the order of listings: a listing of one
//! queue costs the same however many jobs other queues have. Ready jobs have their place in the
//! queue itself, and claimed jobs are few.

use crate::board::Board;
use crate::effect::ApplyError;
use crate::job::order::TimeKey;
use crate::job::{Job, State};
use crate::queue::Queue;
use crate::structures::sorted::SortedSlots;

/// A queue's lines by state, each while the queue has such jobs.
#[derive(Default)]
pub(crate) struct ByQueue(Option<Box<[SortedSlots<TimeKey>; 6]>>);

fn place(state: State) -> Option<usize> {
    match state {
        State::Ready | State::Claimed => None,
        State::Scheduled => Some(0),
        State::Blocked => Some(1),
        State::Complete => Some(2),
        State::Failed => Some(3),
        State::Cancelled => Some(4),
        State::Trashed => Some(5),
    }
}

impl ByQueue {
    pub fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |lines| {
            std::mem::size_of_val(&**lines) + lines.iter().map(SortedSlots::bytes).sum::<usize>()
        })
    }
}

impl Queue {
    /// The queue's jobs in this state; `None` for ready and claimed jobs, or when there are none.
    pub(crate) fn aside(&self, state: State) -> Option<&SortedSlots<TimeKey>> {
        self.by_queue.0.as_ref()?.get(place(state)?)
    }

    fn aside_mut(&mut self, state: State) -> Option<&mut SortedSlots<TimeKey>> {
        let at = place(state)?;
        self.by_queue.0.get_or_insert_with(Box::default).get_mut(at)
    }
}

impl Board {
    pub(crate) fn aside_key(job: &Job) -> TimeKey {
        match job.state.ended() {
            true => job.ended_key(),
            false => job.at_key(),
        }
    }

    /// A job has got a place of such a state: adds it to the line.
    pub(crate) fn join_aside(&mut self, queue: u32, slot: u32) -> Result<(), ApplyError> {
        let jobs = &self.store.jobs;
        let job = jobs.get(slot).ok_or(ApplyError)?;
        let line = self.queues.get_mut(queue).and_then(|queue| queue.aside_mut(job.state));
        let key_of = |s| jobs.get(s).map(Self::aside_key).unwrap_or_default();
        line.ok_or(ApplyError)?.insert(Self::aside_key(job), slot, key_of);
        Ok(())
    }

    /// Removes a job from its line; false when it was not there.
    pub(crate) fn quit_aside(&mut self, queue: u32, slot: u32) -> bool {
        let Some(job) = self.store.jobs.get(slot) else { return false };
        let Some(queue) = self.queues.get_mut(queue) else { return false };
        let stood = queue.aside_mut(job.state).is_some_and(|line| line.remove(Self::aside_key(job), slot));
        if queue.by_queue.0.as_ref().is_some_and(|lines| lines.iter().all(SortedSlots::is_empty)) {
            queue.by_queue = ByQueue::default();
        }
        stood
    }

    /// Puts all such records into their lines at once, after a load.
    pub(crate) fn load_by_queue(&mut self) {
        let standing =
            |job: &Job| place(job.state).map(|at| (self.queue_number(job), at, Self::aside_key(job)));
        let mut slots: Vec<_> =
            self.store.jobs.iter().filter_map(|(slot, job)| Some((standing(job)?, slot))).collect();
        slots.sort_unstable();
        for same in slots.chunk_by(|a, b| (a.0 .0, a.0 .1) == (b.0 .0, b.0 .1)) {
            let Some(((queue, at, _), _)) = same.first() else { continue };
            let all: Vec<u32> = same.iter().map(|(_, slot)| *slot).collect();
            let jobs = &self.store.jobs;
            let line =
                SortedSlots::from_sorted(&all, |s| jobs.get(s).map(Self::aside_key).unwrap_or_default());
            let lines =
                self.queues.get_mut(*queue).map(|queue| queue.by_queue.0.get_or_insert_with(Box::default));
            if let Some(place) = lines.and_then(|lines| lines.get_mut(*at)) {
                *place = line;
            }
        }
    }

    /// Checks that each queue has the jobs that it counts, in their order.
    pub(crate) fn check_by_queue(&self) -> Result<(), String> {
        for (number, name, queue) in self.queues.iter() {
            for state in State::ALL.into_iter().filter(|state| state.is_aside()) {
                let slots: Vec<u32> = queue
                    .aside(state)
                    .map_or_else(Vec::new, |line| line.iter_from(None, |_| Default::default()).collect());
                let here = |slot: &u32| {
                    self.store
                        .jobs
                        .get(*slot)
                        .is_some_and(|j| j.state == state && self.queue_number(j) == number)
                };
                let keys = slots.iter().map(|slot| self.store.jobs.get(*slot).map(Self::aside_key));
                let sorted = keys.is_sorted_by(|a, b| a < b);
                let counted = queue.counts.get(state as usize).copied() == Some(slots.len() as u64);
                if !sorted || !counted || !slots.iter().all(here) {
                    return Err(format!("{} jobs of the queue {name:?} stand elsewhere", state.name()));
                }
            }
        }
        Ok(())
    }
}
