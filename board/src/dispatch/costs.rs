//! What jobs cost: how many permits a claim takes from each bucket, and what is settled when its
//! worker says how many it was in the end.
//!
//! Board, queue and group count the plain cost. A shared limit counts what the job names for it,
//! or else the plain cost. A claim takes its estimate, at most a whole burst of each bucket. A report
//! is absolute: the buckets that count for the job then take, or get back, what it differs from the
//! one before, so a report that comes twice changes nothing.

use crate::board::Board;
use crate::dispatch::buckets::{settle, Refill};
use crate::effect::ApplyError;
use crate::error::{clean, Refusal};
use crate::job::costs::{PackedCosts, Spending};
use crate::job::{Costs, Job};
use crate::structures::byte_string::ByteString;

/// What one claim takes, or has cost.
#[derive(Clone, Copy)]
pub(crate) struct Price<'b> {
    /// The permits of everything that is not named.
    pub plain: i64,
    named: Named<'b>,
}

#[derive(Clone, Copy)]
enum Named<'b> {
    Packed(PackedCosts<'b>),
    List(&'b [(ByteString, i64)]),
}

impl<'b> Price<'b> {
    /// One permit of everything.
    pub const ONE: Price<'static> = Price { plain: 1, named: Named::List(&[]) };

    /// What a claim of a job takes.
    pub fn of_job(job: &'b Job) -> Price<'b> {
        match job.is_priced() {
            false => Price::ONE,
            true => Price::estimate(job.cost(), job.costs()),
        }
    }

    /// What a job is expected to cost.
    pub fn estimate(cost: Option<i64>, costs: PackedCosts<'b>) -> Price<'b> {
        Price { plain: cost.unwrap_or(1), named: Named::Packed(costs) }
    }

    /// What a worker said that its claim has cost.
    pub fn said(spending: &'b Spending) -> Price<'b> {
        Price { plain: spending.cost, named: Named::List(&spending.costs) }
    }

    /// What is named for this limit.
    pub fn named(&self, limit: &[u8]) -> Option<i64> {
        match self.named {
            Named::Packed(mut costs) => costs.find(|(name, _)| *name == limit).map(|(_, cost)| cost),
            Named::List(costs) => costs.iter().find(|(name, _)| **name == *limit).map(|(_, cost)| *cost),
        }
    }

    /// The permits of this limit.
    pub fn of(&self, limit: &[u8]) -> i64 {
        self.named(limit).unwrap_or(self.plain)
    }
}

impl Board {
    /// What a claim of the job in a slot takes.
    pub(crate) fn price(&self, slot: u32) -> Price<'_> {
        self.store.jobs.get(slot).map_or(Price::ONE, Price::of_job)
    }

    /// What the worker of this claim last said that it has cost.
    pub(crate) fn spent(&self, slot: u32, token: u64) -> Option<&Spending> {
        let spending = self.extras(slot)?.remembered.spending.as_deref();
        spending.filter(|spending| spending.token == token)
    }

    /// Costs by name of the limit. Refuses a limit that is named twice, or that does not exist.
    pub(crate) fn checked_costs<'a>(&self, costs: &Costs<'a>) -> Result<Costs<'a>, Refusal> {
        let costs = sorted(costs)?;
        match costs.iter().find(|(limit, _)| self.dispatch.limits.find(limit).is_none()) {
            None => Ok(costs),
            Some((limit, _)) => Err(Refusal::Argument(format!(
                "COSTS names '{0}', and there is no such limit: JOB.SETTINGS SET board LIMIT {0} rate makes it",
                clean(limit)
            ))),
        }
    }

    /// Refuses the costs of a schedule's children as those of a post.
    pub fn check_costs(&self, costs: &Costs<'_>) -> Result<(), Refusal> {
        self.checked_costs(costs).map(|_| ())
    }

    /// Settles what a claim has cost: `before` is what the buckets have counted so far, of which a claim
    /// took at most a burst of each when it is an `estimate`. O(k), and O(queues with ready jobs)
    /// when the board gets permits back and a client waits for work.
    pub(crate) fn settle_costs(
        &mut self,
        slot: u32,
        (before, estimate): (Price<'_>, bool),
        after: Price<'_>,
        now: i64,
    ) -> Result<(), ApplyError> {
        let job = self.store.jobs.get(slot).ok_or(ApplyError)?;
        let (queue_number, group) = (self.queue_number(job), job.group());
        let more = |refill: &Refill, before: i64, after: i64| {
            after - if estimate { refill.taken(before) } else { before }
        };
        let plain = |refill: &Refill| more(refill, before.plain, after.plain);
        if let Some(refill) = self.dispatch.rate.refill {
            settle(&mut self.dispatch.rate.bucket, &refill, plain(&refill), now);
            self.board_rate_changed();
            if plain(&refill) < 0 {
                self.wake_shared(|board| board.busy().to_vec());
            }
        }
        let queue = self.queues.get_mut(queue_number).ok_or(ApplyError)?;
        if let Some(refill) = queue.seldom.refill {
            settle(&mut queue.seldom.bucket, &refill, plain(&refill), now);
            match plain(&refill) < 0 {
                true => self.wake_queue(queue_number),
                false => self.review_candidates(queue_number),
            }
        }
        if let Some(at) = group {
            let fair = self.queues.get_mut(queue_number).and_then(|queue| queue.fair.as_deref_mut());
            let fair = fair.ok_or(ApplyError)?;
            let refill = fair.groups.get(at).and_then(|group| fair.refill(group));
            if let (Some(refill), Some(group)) = (refill, fair.groups.get_mut(at)) {
                settle(&mut group.bucket, &refill, plain(&refill), now);
                self.reseat(queue_number, at);
            }
        }
        for number in self.limits_of(queue_number, group) {
            let Some(limit) = self.dispatch.limits.get_mut(number) else { continue };
            let Some(refill) = limit.refill else { continue };
            let more = more(&refill, before.of(&limit.name), after.of(&limit.name));
            settle(&mut limit.bucket, &refill, more, now);
            match more < 0 {
                true => self.wake_limited(number),
                false => {
                    self.limit_opened(number);
                    self.reseat_limited(number);
                }
            }
        }
        Ok(())
    }

    /// Counts what the claim of a job costs.
    pub(crate) fn count_cost(&mut self, slot: u32, now: i64) {
        let Some(job) = self.store.jobs.get(slot).filter(|job| job.is_priced()) else { return };
        let (queue, cost) = (self.queue_number(job), job.cost().unwrap_or(1));
        let costs: Vec<(ByteString, i64)> = self.counting(job, |limit| Price::of_job(job).named(limit));
        self.add_costs(queue, cost - 1, &costs, now);
    }

    /// Counts by how much the costs of a claim have changed.
    pub(crate) fn count_spent(&mut self, slot: u32, before: Price<'_>, after: Price<'_>, now: i64) {
        let Some(job) = self.store.jobs.get(slot) else { return };
        let more = |limit: &[u8]| after.named(limit).map(|cost| cost - before.named(limit).unwrap_or(0));
        let (queue, costs) = (self.queue_number(job), self.counting(job, more));
        self.add_costs(queue, after.plain - before.plain, &costs, now);
    }

    /// A number for each limit that counts for a job.
    fn counting(&self, job: &Job, cost: impl Fn(&[u8]) -> Option<i64>) -> Vec<(ByteString, i64)> {
        let numbers = self.limits_of(self.queue_number(job), job.group()).into_iter();
        let limits = numbers.filter_map(|number| Some(&self.dispatch.limits.get(number)?.name));
        limits.filter_map(|limit| Some((limit.clone(), cost(limit)?))).collect()
    }
}

/// Costs by name of the limit. Refuses a limit that is named twice.
pub(crate) fn sorted<'a>(costs: &Costs<'a>) -> Result<Costs<'a>, Refusal> {
    let mut costs = costs.clone();
    costs.sort_unstable();
    let twice = costs.windows(2).find(|two| matches!(two, [a, b] if a.0 == b.0)).and_then(|two| two.first());
    match twice {
        None => Ok(costs),
        Some((limit, _)) => Err(Refusal::Argument(format!("COSTS names '{}' twice", clean(limit)))),
    }
}
