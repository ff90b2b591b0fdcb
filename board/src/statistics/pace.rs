//! How fast jobs are posted to a queue and end there: counts of the current minute and of the one
//! before; and when a job was last claimed. Local: what this copy has seen since it was loaded.

use crate::job::Job;
use std::cmp::Reverse;

use crate::board::Board;
use crate::job::order::ReadyKey;
use crate::job::State;
use crate::queue::Queue;
use crate::statistics::stats::Tally;
use crate::structures::sorted::SortedSlots;

const MINUTE: i64 = 60_000;

/// The most priorities that the search for the oldest ready job looks at.
const PRIORITIES: usize = 64;

/// Counts of jobs posted and of jobs ended. See the module's comment.
#[derive(Clone, Copy, Default)]
pub(crate) struct PaceCounter {
    minute: i64,
    running: [u32; 2],
    before: [u32; 2],
    /// When a job was last claimed, Unix ms, or 0.
    claimed: i64,
}

impl PaceCounter {
    /// Counts a job that was posted or ended. O(1).
    pub fn count(&mut self, tally: Tally, now: i64) {
        let way = match tally {
            Tally::Posted => 0,
            Tally::Completed | Tally::Failed | Tally::Cancelled | Tally::Trashed => 1,
            _ => return,
        };
        let minute = now / MINUTE;
        if minute != self.minute {
            self.before = if minute == self.minute + 1 { self.running } else { [0; 2] };
            self.running = [0; 2];
            self.minute = minute;
        }
        if let Some(n) = self.running.get_mut(way) {
            *n = n.saturating_add(1);
        }
    }

    /// Records that a job is claimed. O(1).
    pub fn claims(&mut self, now: i64) {
        self.claimed = now;
    }

    /// When a job was last claimed, Unix ms, or 0.
    pub fn claimed(&self) -> i64 {
        self.claimed
    }

    /// About how many there were in the last minute: of the minute before, the part that is still
    /// within it.
    fn last_minute(&self, now: i64) -> [f64; 2] {
        let part = 1.0 - (now % MINUTE) as f64 / MINUTE as f64;
        let weighted = |n: [u32; 2]| n.map(|n| f64::from(n) * part);
        match now / MINUTE - self.minute {
            0 => {
                let ([came, went], [came_before, went_before]) = (self.running, weighted(self.before));
                [f64::from(came) + came_before, f64::from(went) + went_before]
            }
            1 => weighted(self.running),
            _ => [0.0; 2],
        }
    }
}

/// How fast jobs are posted and end, and how many are ready.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Pace {
    /// Jobs posted a second, over the last minute.
    pub arrivals: f64,
    /// Jobs ended a second, over the last minute.
    pub completions: f64,
    /// How many jobs are ready now.
    pub ready: u64,
    /// The age of the oldest of them, ms, counted from when it could first run; of many priorities,
    /// only the highest 64 are looked at.
    pub oldest: Option<i64>,
}

impl Pace {
    /// How long until none is ready at this pace, ms; `None`: never.
    pub fn drain(&self) -> Option<i64> {
        let net = self.completions - self.arrivals;
        match self.ready {
            0 => Some(0),
            _ if net <= 0.0 => None,
            ready => Some((ready as f64 / net * 1000.0).round() as i64),
        }
    }

    fn add(&mut self, other: Pace) {
        self.arrivals += other.arrivals;
        self.completions += other.completions;
        self.ready = self.ready.saturating_add(other.ready);
        self.oldest = self.oldest.max(other.oldest);
    }
}

impl Board {
    /// The pace of a queue, or of the whole board: O(queues).
    pub fn pace(&self, queue: Option<&[u8]>, now: i64) -> Pace {
        match queue {
            Some(name) => {
                let queue = self.queues.find(name).and_then(|q| self.queues.get(q));
                queue.map_or_else(Pace::default, |queue| self.pace_of(queue, now))
            }
            None => {
                let mut all = Pace::default();
                self.queues.iter().for_each(|(_, _, queue)| all.add(self.pace_of(queue, now)));
                all
            }
        }
    }

    fn pace_of(&self, queue: &Queue, now: i64) -> Pace {
        let [came, went] = queue.local.pace.last_minute(now).map(|n| n / 60.0);
        let oldest = self.oldest_ready(queue, now);
        Pace { arrivals: came, completions: went, ready: queue.count(State::Ready), oldest }
    }

    /// How long ago the oldest ready job of a queue first could run, ms: see [`Pace::oldest`].
    pub(crate) fn oldest_ready(&self, queue: &Queue, now: i64) -> Option<i64> {
        let lines = [Some(&queue.ready), queue.fair.as_ref().map(|fair| &fair.all)];
        let since = lines.into_iter().flatten().filter_map(|line| self.oldest(line)).min();
        since.map(|since| now.saturating_sub(since).max(0))
    }

    /// When the oldest job of a line could first run, Unix ms. Looks at the first job of each
    /// priority; of jobs with ageing, at the first in their line.
    fn oldest(&self, line: &SortedSlots<ReadyKey>) -> Option<i64> {
        let key_of = |slot| self.store.jobs.get(slot).map(Job::ready_key).unwrap_or_default();
        let (mut from, mut oldest) = (None, None);
        for _ in 0..PRIORITIES {
            let Some(slot) = line.iter_from(from, key_of).next() else { break };
            let (Reverse(priority), ..) = key_of(slot);
            let since = self.store.jobs.get(slot).map_or(0, |job| job.since.get());
            oldest = Some(oldest.map_or(since, |oldest: i64| oldest.min(since)));
            let Some(lower) = priority.checked_sub(1) else { break };
            from = Some((Reverse(lower), i64::MIN, i64::MIN));
        }
        oldest
    }
}
