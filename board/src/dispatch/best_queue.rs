//! Which queue gives the best job of all, for claims that name no queue: O(log queues).
//!
//! While few queues have ready jobs, a claim looks at each of them. With more than [`MANY`], a copy
//! keeps [`Candidates`]: in no snapshot, and dropped when few have jobs again. Whatever lets a queue
//! give a better job, or give one again, calls [`Board::review_candidates`]. What makes its job
//! worse or keeps it back need not: a claim sees that when it comes to it.

use std::cell::Cell;
use std::collections::BTreeSet;

use crate::board::Board;
use crate::dispatch::buckets::ready_at;
use crate::dispatch::candidates::{Candidates, Cost, First, Needs, Spot, Spots};
use crate::dispatch::costs::Price;
use crate::job::order::ReadyKey;
use crate::job::{State, NEVER};
use crate::queue::Queue;

/// With more queues that have ready jobs than this, a copy keeps their candidates; with less than
/// half as many, it does so no longer.
const MANY: usize = 128;

/// The candidates of a board, while many queues have ready jobs.
pub(crate) struct BestQueue {
    candidates: Cell<Option<Box<Candidates>>>,
    many: usize,
    /// How many queues claims have looked at.
    looks: Cell<u64>,
    /// How much work the shared limits of jobs have been to them, in looks at one limit.
    limit_looks: Cell<u64>,
}

impl Default for BestQueue {
    fn default() -> Self {
        BestQueue {
            candidates: Cell::default(),
            many: MANY,
            looks: Cell::default(),
            limit_looks: Cell::default(),
        }
    }
}

impl BestQueue {
    /// Whether there are candidates.
    fn is_kept(&self) -> bool {
        self.with(|_| ()).is_some()
    }

    /// Works with the candidates, if they are kept.
    fn with<R>(&self, work: impl FnOnce(&mut Candidates) -> R) -> Option<R> {
        let mut candidates = self.candidates.take()?;
        let done = work(&mut candidates);
        self.candidates.set(Some(candidates));
        Some(done)
    }

    pub fn bytes(&self) -> usize {
        self.with(|candidates| std::mem::size_of::<Candidates>() + candidates.bytes()).unwrap_or(0)
    }

    /// Counts a look at a queue.
    pub fn look(&self) {
        self.looks.set(self.looks.get().wrapping_add(1));
    }

    /// Counts looks at shared limits, or work that takes as long.
    pub fn look_at_limits(&self, n: usize) {
        self.limit_looks.set(self.limit_looks.get().wrapping_add(n as u64));
    }
}

/// How many looks at queues and shared limits the claims of one command take, so that all its jobs
/// together take no more than about 20 ms. Without shared limits no command comes near.
const CLAIM_WORK: u64 = 2_000_000;

/// A job that a queue would hand out.
struct Candidate {
    slot: u32,
    key: ReadyKey,
    /// Until when its queue or its group keeps it back, Unix ms: not after now when they do not.
    until: i64,
    needs: Needs,
}

impl Board {
    /// Keeps candidates as soon as more queues than this have ready jobs. The answers of a board do
    /// not depend on it.
    pub fn keep_candidates_above(&mut self, queues: usize) {
        self.local.best_queue.many = queues;
        self.rebuild_candidates();
    }

    /// How many queues claims have looked at so far, on this copy.
    pub fn queue_looks(&self) -> u64 {
        self.local.best_queue.looks.get()
    }

    /// How much claims have looked at so far, on this copy: queues and shared limits.
    pub fn claim_work(&self) -> u64 {
        let best = &self.local.best_queue;
        best.looks.get().wrapping_add(best.limit_looks.get())
    }

    /// Whether the claims of one command have looked at enough since [`Board::claim_work`] was this.
    pub fn has_worked_enough(&self, since: u64) -> bool {
        self.claim_work().wrapping_sub(since) >= CLAIM_WORK
    }

    /// Looks at a queue again, of which something has changed. O(log queues) while candidates are
    /// kept.
    pub(crate) fn review_candidates(&mut self, queue: u32) {
        let Some(mut candidates) = self.local.best_queue.candidates.take() else { return };
        self.place_candidates(&mut candidates, queue, self.local.moment);
        self.local.best_queue.candidates.set(Some(candidates));
    }

    /// Begins or ends to keep candidates, after the number of queues with ready jobs has changed.
    pub(crate) fn count_candidates(&mut self) {
        let (busy, many) = (self.busy().len(), self.local.best_queue.many);
        match self.local.best_queue.is_kept() {
            false if busy > many => self.rebuild_candidates(),
            true if busy < many / 2 => self.local.best_queue.candidates = Cell::default(),
            _ => {}
        }
    }

    /// Looks at all queues again, if candidates are to be kept. O(n log n) for n queues with ready
    /// jobs.
    pub(crate) fn rebuild_candidates(&mut self) {
        self.local.best_queue.candidates = Cell::default();
        if self.busy().len() <= self.local.best_queue.many {
            return;
        }
        let mut candidates = Box::<Candidates>::default();
        for queue in self.busy() {
            self.place_candidates(&mut candidates, *queue, self.local.moment);
        }
        self.local.best_queue.candidates = Cell::new(Some(candidates));
    }

    /// A shared limit may have opened. O(sets of limits and costs that it is in).
    pub(crate) fn limit_opened(&self, number: u32) {
        self.local.best_queue.with(|candidates| candidates.limit_opened(number));
    }

    /// A shared limit may have closed. O(sets of limits and costs that it is in, where another job of
    /// the same queue is next while it is closed).
    pub(crate) fn limit_closed(&self, number: u32) {
        self.local.best_queue.with(|candidates| candidates.limit_closed(number));
    }

    /// The board has got permits back.
    pub(crate) fn board_rate_changed(&self) {
        self.local.best_queue.with(Candidates::board_changed);
    }

    /// The job that a claim of no named queue gets; `None` within `Some` when there is none, and
    /// `None` when no candidates are kept. O(log queues), and for each candidate that has got worse
    /// since it was looked at.
    pub(crate) fn best_candidate(&self, now: i64) -> Option<Option<u32>> {
        self.local.best_queue.with(|candidates| self.first_open(candidates, now))
    }

    fn first_open(&self, candidates: &mut Candidates, now: i64) -> Option<u32> {
        self.return_held(candidates, now);
        while let Some(First { entry: (key, queue), peers }) = candidates.first() {
            if let Some((number, until)) = self.closed_peers(peers, now) {
                candidates.close(number, until);
                continue;
            }
            let (same, found) = self.place_candidates(candidates, queue, now);
            let first = found.into_iter().flatten().find(|found| found.key == key);
            if let Some(first) = first.filter(|_| same) {
                return Some(first.slot);
            }
        }
        None
    }

    /// Looks again at what was held or closed until now.
    fn return_held(&self, candidates: &mut Candidates, now: i64) {
        candidates.open_until(now);
        while let Some(queue) = candidates.held_until(now) {
            self.place_candidates(candidates, queue, now);
        }
    }

    /// The number of peers that are closed, and until when; `None` when they are open.
    fn closed_peers(&self, peers: Option<(u32, &Needs)>, now: i64) -> Option<(u32, i64)> {
        let (number, needs) = peers?;
        let rate = needs.board.zip(self.dispatch.rate.refill);
        let rate = rate.map_or(0, |(cost, refill)| ready_at(&self.dispatch.rate.bucket, &refill, cost));
        let until = rate.max(self.limits_open_at(&needs.open));
        let instead = !needs.closed.is_empty() && self.limits_open_at(&needs.closed) <= now;
        match until > now {
            true => Some((number, until)),
            false => instead.then_some((number, NEVER)),
        }
    }

    /// When shared limits let a job be claimed: Unix ms, [`NEVER`] while one of them is full.
    fn limits_open_at(&self, costs: &[Cost]) -> i64 {
        let limits =
            costs.iter().filter_map(|(number, cost)| Some((self.dispatch.limits.get(*number)?, *cost)));
        limits
            .map(|(limit, cost)| if limit.is_full() { NEVER } else { limit.ready_at(cost) })
            .max()
            .unwrap_or(0)
    }

    /// How many ready jobs all queues have for claims, at most `most`, if candidates are kept; `count`
    /// says it of one queue. O(most log queues).
    pub(crate) fn count_candidate_jobs(
        &self,
        most: usize,
        now: i64,
        count: impl Fn(u32) -> Option<usize>,
    ) -> Option<usize> {
        self.local.best_queue.with(|candidates| {
            self.return_held(candidates, now);
            let (mut found, mut counted) = (0, BTreeSet::new());
            let (mut closed, mut worse) = (Vec::new(), Vec::new());
            for (peers, entries) in candidates.may_be_open() {
                if found >= most {
                    break;
                }
                if let Some(now_closed) = self.closed_peers(peers, now) {
                    closed.push(now_closed);
                    continue;
                }
                for (_, queue) in entries {
                    if found >= most {
                        break;
                    }
                    match count(*queue) {
                        Some(jobs) if counted.insert(*queue) => found += jobs,
                        Some(_) => {}
                        None => worse.push(*queue),
                    }
                }
            }
            closed.into_iter().for_each(|(number, until)| candidates.close(number, until));
            for queue in worse {
                self.place_candidates(candidates, queue, now);
            }
            found.min(most)
        })
    }

    /// When time lets a queue give a job again, Unix ms, and that queue; if candidates are kept.
    pub(crate) fn next_opening(&self, now: i64) -> Option<Option<(i64, u32)>> {
        self.local.best_queue.with(|candidates| {
            self.first_open(candidates, now);
            candidates.next_opening()
        })
    }

    /// Puts the candidates of a queue where they are now. Returns whether they were there already,
    /// and which they are.
    fn place_candidates(
        &self,
        candidates: &mut Candidates,
        queue: u32,
        now: i64,
    ) -> (bool, [Option<Candidate>; 2]) {
        self.local.best_queue.look();
        let mut found = [None, None];
        let mut spots: Spots = [None, None];
        if let Some(queue) = self.queues.get(queue).filter(|queue| !queue.is_idle()) {
            match self.held_queue(queue, now) {
                Some(until) => spots = [Some(Spot::Held(until)), None],
                None => {
                    found = self.candidates_of(queue);
                    let mut spot = |found: &mut Candidate| match found.until > now {
                        true => Spot::Held(found.until),
                        false => candidates.spot(found.key, std::mem::take(&mut found.needs)),
                    };
                    spots = found.each_mut().map(|found| found.as_mut().map(&mut spot));
                    // Nothing of its groups can be claimed until that changes.
                    let [first, second] = &mut spots;
                    if first.is_none() {
                        *first = second.take().or(Some(Spot::Held(NEVER)));
                    }
                }
            }
        }
        (candidates.put(queue, spots), found)
    }

    /// Until when a queue itself gives nothing, Unix ms; `None` when it may give something.
    fn held_queue(&self, queue: &Queue, now: i64) -> Option<i64> {
        let full = self.most(queue).is_some_and(|most| queue.count(State::Claimed) >= most);
        match queue.paused > now {
            true => Some(queue.paused),
            false => full.then_some(NEVER),
        }
    }

    /// The jobs of which one is the next of a queue, as [`Board::next_of`] finds it.
    fn candidates_of(&self, queue: &Queue) -> [Option<Candidate>; 2] {
        let candidate = |slot| self.candidate(queue, slot);
        let Some(fair) = queue.fair.as_deref() else {
            return [queue.ready.first().and_then(candidate), None];
        };
        match fair.firsts(&queue.ready) {
            [Some(own), Some(shared)] if own.0 < shared.0 => [candidate(own.1), None],
            [Some(own), Some(shared)] if !fair.limits.is_empty() => {
                let second = candidate(own.1).map(|mut second| {
                    second.needs.closed = self.costs(&fair.limits, self.price(shared.1));
                    second
                });
                [candidate(shared.1), second]
            }
            [own, shared] => [shared.or(own).and_then(|(_, slot)| candidate(slot)), None],
        }
    }

    fn candidate(&self, queue: &Queue, slot: u32) -> Option<Candidate> {
        let job = self.store.jobs.get(slot)?;
        let key = job.plain_key();
        let group = job.group();
        let (mut until, mut needs) = (0, Needs::default());
        let named = queue.group_limits(group);
        let rate = self.dispatch.rate.refill.is_some();
        if group.is_some() || rate || queue.seldom.refill.is_some() || !queue.seldom.limits.is_empty() {
            let price = Price::of_job(job);
            let of_group = group.and_then(|at| {
                let (fair, group) = (queue.fair.as_deref()?, queue.group(at)?);
                Some((&group.bucket, fair.refill(group)?))
            });
            let own = queue.seldom.refill.map(|refill| (&queue.seldom.bucket, refill));
            let ready = |(bucket, refill)| ready_at(bucket, &refill, price.plain);
            until = own.into_iter().chain(of_group).map(ready).max().unwrap_or(0);
            needs.board = rate.then_some(price.plain);
            if !(queue.seldom.limits.is_empty() && named.is_empty()) {
                let mut list: Vec<u32> = queue.seldom.limits.iter().chain(named).copied().collect();
                list.sort_unstable();
                list.dedup();
                self.local.best_queue.look_at_limits(list.len());
                needs.open = self.costs(&list, price);
            }
        }
        Some(Candidate { slot, key, until, needs })
    }

    /// What a job costs under each limit of a list; 0 where that does not count.
    fn costs(&self, list: &[u32], price: Price<'_>) -> Vec<Cost> {
        let cost = |number: &u32| {
            let limit = self.dispatch.limits.get(*number).filter(|limit| limit.refill.is_some());
            (*number, limit.map_or(0, |limit| price.of(&limit.name)))
        };
        list.iter().map(cost).collect()
    }

    /// Checks that the entry of each queue that could give a job now is open, and as good as the job.
    pub(crate) fn check_candidates(&self) -> Result<(), &'static str> {
        let now = self.local.moment;
        let sound = self.local.best_queue.with(|candidates| {
            let open = |number| candidates.closed_until(number) <= now;
            self.busy().iter().all(|queue| {
                let as_good = |spot: &Spot, key| match *spot {
                    Spot::Held(until) => until <= now,
                    Spot::Free(of) => of <= key,
                    Spot::Among(number, of) => of <= key && open(number),
                };
                let head = self.head(*queue, now);
                head.is_none_or(|(key, _)| candidates.spots(*queue).iter().flatten().any(|s| as_good(s, key)))
            })
        });
        match sound {
            Some(false) => Err("a queue could give a job, and no claim would see it"),
            _ => Ok(()),
        }
    }
}
