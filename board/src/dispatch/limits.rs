//! Shared limits: a limit with a name says how many jobs may run at once, and how fast jobs may be
//! claimed, over several queues and groups together.
//!
//! A queue, all groups of a queue together, and a group each have a list of shared limits. A job
//! counts against the list of its queue and the list of its group: the group's own, or else that of
//! all groups. A limit in both lists counts once.
//!
//! A claim asks the limits of a queue, and of all groups of it, for the job that would be next:
//! O(limits named). A group with a list of its own is held back ([`Hold::Limit`], or it rests)
//! while one of these limits is closed, and is looked at again whenever that changes. That is why
//! at most [`GROUPS_MOST`] groups may name one limit themselves.
//!
//! | what | invariant |
//! |---|---|
//! | [`Limit::runs`] | the claimed jobs that count against it |
//! | [`Limit::queues`] | how many lists of each queue and its groups name it |
//! | [`Limit::groups`] | the groups that name it themselves |
//! | [`Limit::paused`] | until when a pause stops claims that count against it |
//! | [`Share::runs`] | the claimed jobs of groups whose list names it, of one queue |

use std::collections::{BTreeMap, BTreeSet};

use crate::board::Board;
use crate::dispatch::buckets::{goes_back, ready_at, take, Bucket, Refill};
use crate::dispatch::costs::Price;
use crate::error::Refusal;
use crate::job::{Job, State};
use crate::queue::Queue;
use crate::settings::{Overrides, Setting};
use crate::structures::byte_string::ByteString;
use crate::structures::lazy::Part;
use crate::structures::slab::Slab;

#[cfg(doc)]
use crate::dispatch::groups::Hold;

/// The most shared limits that one queue, one group, or all groups of a queue may name.
pub const NAMED_MOST: usize = 16;
/// The most shared limits that a board has.
pub const LIMITS_MOST: usize = 10_000;
/// The most groups that name one limit themselves.
pub const GROUPS_MOST: usize = 1_000;

/// A job that starts is counted, and pays its permits: that takes as long as this many looks at a limit.
const COUNTING: usize = 32;

/// A list of limits: their numbers, rising.
pub(crate) type List = Vec<u32>;

/// One shared limit. See the module's comment.
#[derive(Default)]
pub(crate) struct Limit {
    pub name: ByteString,
    pub settings: Overrides,
    pub refill: Option<Refill>,
    pub bucket: Option<Bucket>,
    pub runs: u64,
    pub queues: BTreeMap<u32, u32>,
    pub groups: BTreeSet<(ByteString, u32)>,
    /// It is paused until this time, Unix ms; 0 when it is not.
    pub paused: i64,
}

impl Limit {
    /// How many jobs may run under it; `None` without a bound.
    pub fn most(&self) -> Option<u64> {
        self.settings.get(Setting::Concurrency).and_then(|most| u64::try_from(most).ok())
    }

    pub fn is_full(&self) -> bool {
        self.most().is_some_and(|most| self.runs >= most)
    }

    /// When it has the permits for a job of this cost, Unix ms: a time in the past if it has them
    /// now.
    pub fn permits_at(&self, cost: i64) -> i64 {
        self.refill.map_or(0, |refill| ready_at(&self.bucket, &refill, cost))
    }

    /// When a job of this cost may be claimed, Unix ms: a time in the past if it may now.
    pub fn ready_at(&self, cost: i64) -> i64 {
        self.permits_at(cost).max(self.paused)
    }
}

/// What the groups of one queue have to do with a limit.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Share {
    /// How many lists of groups name it; the list of all groups counts as one.
    pub lists: u32,
    pub runs: u64,
}

/// All shared limits of a board.
#[derive(Default)]
pub(crate) struct Limits {
    all: Slab<Limit>,
    names: BTreeMap<ByteString, u32>,
}

impl Part for Limits {
    const BLANK: &'static Self = &Limits { all: Slab::new(), names: BTreeMap::new() };
}

impl Limits {
    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    pub fn get(&self, number: u32) -> Option<&Limit> {
        self.all.get(number)
    }

    pub fn get_mut(&mut self, number: u32) -> Option<&mut Limit> {
        self.all.get_mut(number)
    }

    /// The number of a limit; `None` when there is none of this name. O(log n).
    pub fn find(&self, name: &[u8]) -> Option<u32> {
        self.names.get(name).copied()
    }

    /// The number of a limit, which is added if it is new. O(log n).
    pub fn at(&mut self, name: &[u8]) -> u32 {
        match self.find(name) {
            Some(number) => number,
            None => {
                let number = self.all.insert(Limit { name: name.into(), ..Limit::default() });
                self.names.insert(name.into(), number);
                number
            }
        }
    }

    /// Adds a limit under a number; false when the number or the name is taken.
    pub fn restore(&mut self, number: u32, limit: Limit) -> bool {
        let name = limit.name.clone();
        self.find(&name).is_none() && self.all.insert_at(number, limit) && {
            self.names.insert(name, number);
            true
        }
    }

    /// Removes a limit that has no settings and no pause, and that nothing names.
    pub fn tidy(&mut self, number: u32) {
        let unused =
            |limit: &Limit| limit.settings.is_empty() && limit.queues.is_empty() && limit.paused == 0;
        if self.get(number).is_some_and(unused) {
            if let Some(limit) = self.all.remove(number) {
                self.names.remove(&limit.name);
            }
        }
    }

    /// All limits, by number.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Limit)> {
        self.all.iter()
    }

    /// The limits whose names come after this name, by name.
    pub fn after(&self, name: Option<&[u8]>) -> impl Iterator<Item = &Limit> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = name.map_or(Unbounded, Excluded);
        self.names.range::<[u8], _>((from, Unbounded)).filter_map(|(_, number)| self.get(*number))
    }

    pub fn bytes(&self) -> usize {
        self.names.keys().map(|name| 256 + 2 * name.len()).sum()
    }

    /// The limits of a list.
    pub fn of<'l>(&'l self, list: &'l [u32]) -> impl Iterator<Item = &'l Limit> {
        list.iter().filter_map(|number| self.get(*number))
    }

    /// The first limit of a list that is full. O(list).
    pub fn first_full(&self, list: &[u32]) -> Option<u32> {
        list.iter().copied().find(|number| self.get(*number).is_some_and(Limit::is_full))
    }

    /// When a job of this price may be claimed as far as the limits of a list say, Unix ms. O(list).
    pub fn tokens_at(&self, list: &[u32], price: Price<'_>) -> i64 {
        self.of(list).map(|limit| limit.ready_at(price.of(&limit.name))).max().unwrap_or(0)
    }
}

/// Whether a list is valid: rising, and not too long.
pub(crate) fn is_list(list: &[u32]) -> bool {
    list.len() <= NAMED_MOST && list.is_sorted_by(|a, b| a < b)
}

impl Queue {
    /// The shared limits of a group; none for jobs without a group.
    pub(crate) fn group_limits(&self, group: Option<u32>) -> &[u32] {
        match (group, self.fair.as_deref()) {
            (Some(at), Some(fair)) => fair.limits_of(at),
            _ => &[],
        }
    }
}

impl Board {
    /// The shared limits that count for a job of this queue and group, each once. O(k).
    pub(crate) fn limits_of(&self, queue: u32, group: Option<u32>) -> Vec<u32> {
        let Some(queue) = self.queues.get(queue) else { return Vec::new() };
        let more = queue.group_limits(group).iter().filter(|number| !queue.seldom.limits.contains(number));
        queue.seldom.limits.iter().chain(more).copied().collect()
    }

    /// Counts a job of this queue and group that starts (`by` 1) or stops (`by` -1) running. O(k
    /// log n).
    pub(crate) fn tally_limits(&mut self, queue: u32, group: Option<u32>, by: i64) {
        for number in self.limits_of(queue, group) {
            self.local.best_queue.look_at_limits(COUNTING);
            if let Some(limit) = self.dispatch.limits.get_mut(number) {
                limit.runs = limit.runs.saturating_add_signed(by);
            }
        }
        let fair = self.queues.get_mut(queue).and_then(|queue| queue.fair.as_deref_mut());
        if let Some((fair, at)) = fair.zip(group) {
            for number in fair.limits_of(at).to_vec() {
                if let Some(share) = fair.shares.get_mut(&number) {
                    share.runs = share.runs.saturating_add_signed(by);
                }
            }
        }
    }

    /// A job of this queue and group has stopped running: frees the jobs that a full limit kept
    /// back. O(k), and for each limit that was full O(queues and groups that name it).
    pub(crate) fn limits_freed(&mut self, queue: u32, group: Option<u32>) {
        for number in self.limits_of(queue, group) {
            let Some(limit) = self.dispatch.limits.get(number) else { continue };
            if limit.most().is_some_and(|most| limit.runs.saturating_add(1) == most) {
                self.wake_limited(number);
            }
        }
    }

    /// A job of this queue and group has started running: holds the groups that name a limit which
    /// this made full. O(k), and for each such limit O(groups that name it).
    pub(crate) fn limits_filled(&mut self, queue: u32, group: Option<u32>) {
        for number in self.limits_of(queue, group) {
            if self.dispatch.limits.get(number).is_some_and(|limit| limit.most() == Some(limit.runs)) {
                self.reseat_limited(number);
            }
        }
    }

    /// The rates of limits that count for a job of this queue and group, and what it costs there. O(k).
    pub(crate) fn named_costs(&self, queue: u32, group: Option<u32>, price: Price<'_>) -> Vec<(u32, i64)> {
        if self.dispatch.limits.is_empty() {
            return Vec::new();
        }
        let cost = |number: u32| {
            let limit = self.dispatch.limits.get(number).filter(|limit| limit.refill.is_some())?;
            Some((number, price.of(&limit.name)))
        };
        self.limits_of(queue, group).into_iter().filter_map(cost).collect()
    }

    /// Takes these permits of limits.
    pub(crate) fn take_named(&mut self, costs: &[(u32, i64)], now: i64) {
        for (number, cost) in costs {
            let Some(limit) = self.dispatch.limits.get_mut(*number) else { continue };
            if let Some(refill) = limit.refill {
                let back = goes_back(&limit.bucket, now);
                take(&mut limit.bucket, &refill, *cost, now);
                if back {
                    self.limit_opened(*number);
                }
                self.reseat_limited(*number);
            }
        }
    }

    /// The first paused limit that counts for a job. O(k).
    pub(crate) fn paused_limit(&self, job: &Job, now: i64) -> Option<&Limit> {
        let limits = self.limits_of(self.queue_number(job), job.group()).into_iter();
        let mut limits = limits.filter_map(|number| self.dispatch.limits.get(number));
        limits.find(|limit| limit.paused > now)
    }

    /// A limit may have opened or closed: looks again at the groups that name it themselves.
    pub(crate) fn reseat_limited(&mut self, number: u32) {
        self.limit_closed(number);
        let groups = self.dispatch.limits.get(number).map(|limit| &limit.groups);
        let groups: Vec<(ByteString, u32)> = groups.into_iter().flatten().cloned().collect();
        for (name, at) in groups {
            if let Some(queue) = self.queues.find(&*name) {
                self.reseat(queue, at);
            }
        }
    }

    /// Frees what this limit kept back.
    pub(crate) fn wake_limited(&mut self, number: u32) {
        self.limit_opened(number);
        self.reseat_limited(number);
        self.wake_shared(|board| {
            let queues = board.dispatch.limits.get(number).map(|limit| limit.queues.keys().copied());
            queues.into_iter().flatten().collect()
        });
    }

    /// Refuses that a job of this queue and group runs while a shared limit is full.
    pub(crate) fn check_named(&self, queue: u32, group: Option<u32>) -> Result<(), Refusal> {
        if self.dispatch.limits.is_empty() {
            return Ok(());
        }
        match self.dispatch.limits.first_full(&self.limits_of(queue, group)) {
            Some(_) => Err(Refusal::Limit("concurrency")),
            None => Ok(()),
        }
    }

    /// The claimed jobs of a queue that count against a limit.
    pub(crate) fn runs_under(&self, queue: u32, number: u32) -> u64 {
        let Some(queue) = self.queues.get(queue) else { return 0 };
        let share = queue.fair.as_deref().and_then(|fair| fair.shares.get(&number));
        match queue.seldom.limits.contains(&number) {
            true => queue.count(State::Claimed),
            false => share.map_or(0, |share| share.runs),
        }
    }

    /// The numbers of the limits that count for a job in this queue and group, each once, rising.
    /// O(k log k).
    pub(crate) fn limits_at(&self, queue: &[u8], group: Option<&[u8]>) -> Vec<u32> {
        let Some(number) = self.queues.find(queue) else { return Vec::new() };
        let fair = self.queues.get(number).and_then(|queue| queue.fair.as_deref());
        let known = group.and_then(|name| fair?.find(name));
        let mut list = self.limits_of(number, known);
        if let (Some(_), None, Some(fair)) = (group, known, fair) {
            list.extend(fair.limits.iter().copied());
        }
        list.sort_unstable();
        list.dedup();
        list
    }
}
