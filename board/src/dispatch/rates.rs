//! Rates: how fast jobs may be claimed. Each claim takes permits from the board, the queue and the
//! group.
//!
//! Each claim asks the buckets of the board and of the queue for the job that the queue would give;
//! a waiting client is woken when that job can have its permits. A group whose next job lacks
//! permits is in no round until it can have them ([`Group::rest`](crate::dispatch::groups::Group::rest)): many waiting groups cost a
//! claim nothing.

use crate::board::Board;
use crate::dispatch::buckets::{goes_back, ready_at, take};
use crate::dispatch::costs::Price;
use crate::dispatch::fair::PLAIN;
use crate::effect::{ApplyError, Effect, Validate};
use crate::env::Env;
use crate::error::Refusal;
use crate::job::{Job, NEVER};
use crate::queue::Queue;

written! {
    /// The first `n` groups that waited for permits until now can give jobs again.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Rested {
        1 until: i64,
        2 n: u32,
    }
}

impl Validate for Rested {}

impl Rested {
    pub(crate) fn apply(&self, board: &mut Board, _now: i64) -> Result<(), ApplyError> {
        for _ in 0..self.n {
            match board.dispatch.rests.first() {
                Some((until, name, at)) if *until <= self.until => {
                    let (queue, at) = (board.queues.find(&**name).ok_or(ApplyError)?, *at);
                    board.tidy_group(queue, at);
                }
                _ => return Ok(()),
            }
        }
        Ok(())
    }
}

impl Board {
    /// When a job may take its permits from its board, its queue and its group, Unix ms: a time in
    /// the past if it may now. O(1).
    pub(crate) fn tokens_at(&self, queue: &Queue, job: &Job) -> i64 {
        let group = job.group().and_then(|at| Some((queue.fair.as_deref()?, queue.group(at)?)));
        if self.dispatch.rate.refill.is_none()
            && queue.seldom.refill.is_none()
            && group.is_none()
            && queue.seldom.limits.is_empty()
        {
            return 0;
        }
        let price = Price::of_job(job);
        let of_group = group.and_then(|(fair, group)| Some((&group.bucket, fair.refill(group)?)));
        let all = [
            self.dispatch.rate.refill.map(|refill| (&self.dispatch.rate.bucket, refill)),
            queue.seldom.refill.map(|refill| (&queue.seldom.bucket, refill)),
            of_group,
        ];
        let ready = |(bucket, refill)| ready_at(bucket, &refill, price.plain);
        let own = all.into_iter().flatten().map(ready).max();
        let lists = [&queue.seldom.limits, queue.group_limits(job.group())];
        self.local.best_queue.look_at_limits(lists.iter().map(|list| list.len()).sum());
        let named = lists.into_iter().map(|list| self.dispatch.limits.tokens_at(list, price)).max();
        own.max(named).unwrap_or(0)
    }

    /// Refuses a claim of a job that lacks permits.
    pub(crate) fn check_tokens(&self, job: &Job, now: i64) -> Result<(), Refusal> {
        let queue = self.queue_of(job);
        match queue.is_some_and(|queue| self.tokens_at(queue, job) > now) {
            true if self.paused_limit(job, now).is_some() => Err(Refusal::Paused),
            true => Err(Refusal::Limit("rate")),
            false => Ok(()),
        }
    }

    /// Takes the permits of a job that is about to be claimed.
    pub(crate) fn take_tokens(&mut self, slot: u32, now: i64) -> Result<(), ApplyError> {
        let job = self.store.jobs.get(slot).ok_or(ApplyError)?;
        let (queue, group) = (self.queue_number(job), job.group());
        let price = Price::of_job(job);
        let (cost, named) = (price.plain, self.named_costs(queue, group, price));
        if let Some(refill) = self.dispatch.rate.refill {
            let back = goes_back(&self.dispatch.rate.bucket, now);
            take(&mut self.dispatch.rate.bucket, &refill, cost, now);
            if back {
                self.board_rate_changed();
            }
        }
        let queue = self.queues.get_mut(queue).ok_or(ApplyError)?;
        if let Some(refill) = queue.seldom.refill {
            take(&mut queue.seldom.bucket, &refill, cost, now);
        }
        if let (Some(at), Some(fair)) = (group, queue.fair.as_deref_mut()) {
            let refill = fair.groups.get(at).and_then(|group| fair.refill(group));
            if let (Some(refill), Some(group)) = (refill, fair.groups.get_mut(at)) {
                take(&mut group.bucket, &refill, cost, now);
            }
        }
        self.take_named(&named, now);
        Ok(())
    }

    /// Derives until when a group must rest, before it is seated.
    pub(crate) fn weigh_rest(&mut self, queue: u32, at: u32) {
        if at == PLAIN {
            return;
        }
        let Some(fair) = self.queues.get(queue).and_then(|queue| queue.fair.as_deref()) else { return };
        let Some(group) = fair.groups.get(at) else { return };
        let before = group.rest;
        let mut rest = group.rests_until(&fair.settings, |slot| self.price(slot).plain, self.local.moment);
        if let Some(list) = &group.limits {
            let named =
                fair.candidate(group).map(|slot| self.dispatch.limits.tokens_at(list, self.price(slot)));
            rest = rest.max(named.filter(|until| *until > self.local.moment));
        }
        let barred =
            group.limits.as_ref().is_some_and(|list| self.dispatch.limits.first_full(list).is_some());
        if barred != group.barred {
            let fair = self.queues.get_mut(queue).and_then(|queue| queue.fair.as_deref_mut());
            if let Some(group) = fair.and_then(|fair| fair.groups.get_mut(at)) {
                group.barred = barred;
            }
        }
        if rest == before {
            return;
        }
        let Some(name) = self.queues.key(queue).cloned() else { return };
        if let Some(until) = before {
            self.dispatch.rests.remove(&(until, name.clone(), at));
        }
        if let Some(until) = rest {
            self.wake_at(until);
            self.dispatch.rests.insert((until, name, at));
        }
        // Holds the queue as long as one of its groups rests.
        match (before, rest) {
            (None, Some(_)) => self.queues.hold(queue),
            (Some(_), None) => {
                self.queues.release(queue);
            }
            _ => {}
        }
        let fair = self.queues.get_mut(queue).and_then(|queue| queue.fair.as_deref_mut());
        if let Some(group) = fair.and_then(|fair| fair.groups.get_mut(at)) {
            group.rest = rest;
        }
    }

    /// Decides that at most `n` groups whose permits are there by now give jobs again. O(1).
    pub fn rest_over(&self, env: &Env<'_>, n: u32) -> Option<Effect<'static>> {
        let over = self.dispatch.rests.first().is_some_and(|(until, ..)| *until <= env.now);
        over.then(|| Rested { until: env.now, n }.into())
    }

    /// The slot of the job that a queue gives next. O(log groups), O(1) without groups.
    pub(crate) fn next_of(&self, queue: &Queue, now: i64) -> Option<u32> {
        let Some(fair) = queue.fair.as_deref() else { return queue.ready.first() };
        let [own, shared] = fair.firsts(&queue.ready);
        let open = |slot| {
            self.dispatch.limits.first_full(&fair.limits).is_none()
                && self.dispatch.limits.tokens_at(&fair.limits, self.price(slot)) <= now
        };
        let first = match (own, shared) {
            (Some(own), Some(shared)) if own.0 < shared.0 => Some(own),
            (own, Some(shared)) if !fair.limits.is_empty() && !open(shared.1) => own,
            (own, shared) => shared.or(own),
        };
        first.map(|(_, slot)| slot)
    }

    /// When permits let a queue give a job, Unix ms: a time in the past if they do now. Other
    /// obstacles do not count.
    fn opens_at(&self, queue: &Queue) -> Option<i64> {
        let at = |slot| self.store.jobs.get(slot).map(|job| self.tokens_at(queue, job));
        let Some(fair) = queue.fair.as_deref() else { return at(queue.ready.first()?) };
        let [own, shared] = fair.firsts(&queue.ready);
        let shared = shared.filter(|_| self.dispatch.limits.first_full(&fair.limits).is_none());
        [own, shared].into_iter().flatten().filter_map(|(_, slot)| at(slot)).min()
    }

    /// A client waits for a job of these queues, or of every queue when none is named: schedules
    /// its wake-up for when the missing permits are there. Asked when a client begins to wait, and by
    /// whoever looks whether there is a job for those that do ([`Board::gives`]). O(queues named), or
    /// O(log queues) when none is named.
    pub fn wait_for_permits(&mut self, queues: &[&[u8]], now: i64) {
        self.local.unattended = false;
        if let Some(next) = queues.is_empty().then(|| self.next_opening(now)).flatten() {
            if let Some((at, queue)) = next {
                self.local.waits_for_next = true;
                self.local.waiting_for_permits.add(queue, at);
                self.wake_at(at);
            }
            return;
        }
        let queues: Vec<u32> = match queues.is_empty() {
            true => self.busy().to_vec(),
            false => queues.iter().filter_map(|name| self.queues.find(*name)).collect(),
        };
        for queue in queues {
            let opens = self.queues.get(queue).and_then(|queue| self.opens_at(queue));
            let Some(at) = opens else { continue };
            if at > now && at < NEVER {
                self.local.waiting_for_permits.add(queue, at);
                self.wake_at(at);
            }
        }
    }

    /// Wakes the queues that lacked permits until now. O(log n) for each.
    pub(crate) fn wake_with_permits(&mut self, now: i64) {
        let mut woken = false;
        while let Some(queue) = self.local.waiting_for_permits.there().and_then(|waits| waits.pop(now)) {
            self.wake_queue(queue);
            woken = true;
        }
        // This queue may have no job any more, and then nobody who waits for every queue is asked.
        if woken && std::mem::take(&mut self.local.waits_for_next) {
            self.wait_for_permits(&[], now);
        }
    }

    /// When a queue will have the permits for its next job: Unix ms; `None` when it lacks none,
    /// [`NEVER`] when it never will.
    pub fn lacks_permits_until(&self, queue: &[u8], now: i64) -> Option<i64> {
        let at = self.opens_at(self.queues.get(self.queues.find(queue)?)?)?;
        (at > now).then_some(at)
    }
}
