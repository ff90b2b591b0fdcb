//! Concurrency: how many jobs of a queue, and of a group in it, may run at once.
//!
//! A job counts from its claim until the claim ends. Lowering a limit takes back no running job:
//! claims resume when fewer run than the limit allows.

use std::collections::BTreeMap;

use crate::board::Board;
use crate::error::Refusal;
use crate::job::State;
use crate::queue::Queue;
use crate::settings::Setting;
use crate::structures::byte_string::ByteString;

impl Board {
    /// How many jobs of a queue may run at once; `None` without a limit. O(1).
    pub(crate) fn most(&self, queue: &Queue) -> Option<u64> {
        let own = queue.settings.get(Setting::Concurrency);
        own.or_else(|| self.settings.get(Setting::Concurrency)).and_then(|most| u64::try_from(most).ok())
    }

    /// Whether the queue, or a shared limit that it names, is full. O(1).
    pub(crate) fn is_full(&self, queue: &Queue) -> bool {
        self.most(queue).is_some_and(|most| queue.count(State::Claimed) >= most)
            || self.dispatch.limits.first_full(&queue.seldom.limits).is_some()
    }

    /// How many jobs of a queue may run at once; -1 without a limit. O(1).
    pub fn concurrency(&self, queue: &[u8]) -> i64 {
        let queue = self.queues.find(queue).and_then(|q| self.queues.get(q));
        let most = match queue {
            Some(queue) => self.most(queue),
            None => self.most(&Queue::default()),
        };
        most.map_or(-1, |most| most as i64)
    }

    /// Refuses that a job runs in a full queue or a full group.
    pub(crate) fn check_concurrency(&self, slot: u32, claim: bool, now: i64) -> Result<(), Refusal> {
        let job = self.job(slot).map_err(|_| Refusal::NoJob)?;
        let queue = self.queue_number(job);
        if self.queues.get(queue).is_some_and(|queue| self.is_full(queue)) {
            return Err(Refusal::Limit("concurrency"));
        }
        self.check_group(job, claim.then_some(slot), now)?;
        self.check_named(queue, job.group())
    }

    /// Refuses to move these jobs to a queue when more of them would run there than its limits
    /// allow. O(n log n).
    pub fn check_room(&self, queue: &[u8], slots: &[u32]) -> Result<(), Refusal> {
        let mut moves = Moves::default();
        slots.iter().for_each(|slot| moves.add(self, *slot, queue));
        match Moves::default().fit(self, queue, &moves) {
            true => Ok(()),
            false => Err(Refusal::Limit("concurrency")),
        }
    }

    /// A job of this queue has stopped running: what a full limit kept back can be claimed.
    pub(crate) fn run_ended(&mut self, queue: u32, group: Option<u32>) {
        if !self.dispatch.limits.is_empty() {
            self.limits_freed(queue, group);
        }
        if self.queues.get(queue).is_some_and(|queue| self.most(queue).is_some()) {
            self.wake_queue(queue);
        }
    }
}

/// Running jobs that move to another queue: what they would take of its limits.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    jobs: i64,
    groups: BTreeMap<ByteString, i64>,
    /// By shared limit: the jobs that join it less those that leave it.
    limits: BTreeMap<u32, i64>,
}

impl Moves {
    /// Counts a job that moves to the queue, if it runs in another one. O(k log n).
    pub fn add(&mut self, board: &Board, slot: u32, queue: &[u8]) {
        let job = board.store.jobs.get(slot).filter(|job| job.state == State::Claimed);
        let Some(job) = job.filter(|job| board.queue_name(job) != queue) else { return };
        self.jobs += 1;
        let group = board.group_name(job);
        if let Some(name) = group {
            *self.groups.entry(name.into()).or_default() += 1;
        }
        if board.dispatch.limits.is_empty() {
            return;
        }
        for number in board.limits_at(queue, group) {
            *self.limits.entry(number).or_default() += 1;
        }
        for number in board.limits_of(board.queue_number(job), job.group()) {
            *self.limits.entry(number).or_default() -= 1;
        }
    }

    /// Whether there is room for `more` beside these jobs. O(n log n) in their number.
    pub fn fit(&self, board: &Board, queue: &[u8], more: &Moves) -> bool {
        let (most, jobs) = (board.concurrency(queue), self.jobs + more.jobs);
        let runs = board.count_in(queue, State::Claimed) as i64;
        let group = |(name, by): (&ByteString, &i64)| {
            let by = by + self.groups.get(name).copied().unwrap_or(0);
            by <= 0 || board.group_room(queue, name).is_none_or(|room| room >= by as u64)
        };
        let limit = |(number, by): (&u32, &i64)| {
            let by = by + self.limits.get(number).copied().unwrap_or(0);
            let most = board.dispatch.limits.get(*number).and_then(|limit| Some((limit.runs, limit.most()?)));
            by <= 0 || most.is_none_or(|(runs, most)| runs.saturating_add(by as u64) <= most)
        };
        (more.jobs <= 0 || most < 0 || runs + jobs <= most)
            && more.groups.iter().all(group)
            && more.limits.iter().all(limit)
    }
}
