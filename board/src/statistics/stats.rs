//! Statistics of the jobs of one queue on one day: counts, and how long jobs waited and ran, and
//! how late time was.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserializer;

use crate::format::{read_map, write_map, Unreadable, Written};
use crate::structures::allotted::allotted;
use crate::structures::byte_string::ByteString;
use crate::structures::histogram::Histogram;
use crate::structures::lazy::Lazy;

/// What is counted. The numbers are part of the format of snapshots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Tally {
    /// A job was posted.
    Posted = 0,
    /// A post replaced a job.
    Replaced = 1,
    /// A schedule posted it; counted as posted as well.
    Fired = 2,
    /// A worker took a job.
    Claimed = 3,
    /// A job completed.
    Completed = 4,
    /// A job failed for good, of whatever kind.
    Failed = 5,
    /// A try failed, and another follows.
    Retried = 6,
    /// A lease ended.
    Lapsed = 7,
    /// A run timed out.
    Timeouts = 8,
    /// A late worker got its job back.
    Revived = 9,
    /// A worker abandoned a job.
    Abandoned = 10,
    /// An operator took a job from its worker.
    Released = 11,
    /// A job was cancelled.
    Cancelled = 12,
    /// A worker trashed a job.
    Trashed = 13,
    /// A job waited too long to be claimed; counted as failed as well.
    Expired = 14,
    /// An ended job was requeued.
    Requeued = 15,
    /// An operator deleted a job.
    Deleted = 16,
    /// A job began to wait for signals.
    Awaited = 17,
    /// A signal arrived.
    Signalled = 18,
    /// The time of a wait for signals was over.
    AwaitTimeouts = 19,
}

impl Tally {
    /// All of them, in the order of their numbers.
    pub const ALL: [Tally; 20] = [
        Tally::Posted,
        Tally::Replaced,
        Tally::Fired,
        Tally::Claimed,
        Tally::Completed,
        Tally::Failed,
        Tally::Retried,
        Tally::Lapsed,
        Tally::Timeouts,
        Tally::Revived,
        Tally::Abandoned,
        Tally::Released,
        Tally::Cancelled,
        Tally::Trashed,
        Tally::Expired,
        Tally::Requeued,
        Tally::Deleted,
        Tally::Awaited,
        Tally::Signalled,
        Tally::AwaitTimeouts,
    ];

    /// Its name in replies.
    pub fn name(self) -> &'static str {
        match self {
            Tally::Posted => "posted",
            Tally::Replaced => "replaced",
            Tally::Fired => "fired",
            Tally::Claimed => "claimed",
            Tally::Completed => "completed",
            Tally::Failed => "failed",
            Tally::Retried => "retried",
            Tally::Lapsed => "lapsed",
            Tally::Timeouts => "timeouts",
            Tally::Revived => "revived",
            Tally::Abandoned => "abandoned",
            Tally::Released => "released",
            Tally::Cancelled => "cancelled",
            Tally::Trashed => "trashed",
            Tally::Expired => "expired",
            Tally::Requeued => "requeued",
            Tally::Deleted => "deleted",
            Tally::Awaited => "awaited",
            Tally::Signalled => "signalled",
            Tally::AwaitTimeouts => "await-timeouts",
        }
    }
}

/// What can be late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Late {
    /// A claim ended after its end.
    Lease = 0,
    /// A delayed job became ready after it was due.
    Due = 1,
    /// A schedule posted its child after its time.
    Fire = 2,
}

impl Late {
    /// All of them, in the order of their numbers.
    pub const ALL: [Late; 3] = [Late::Lease, Late::Due, Late::Fire];

    /// Its name in replies.
    pub fn name(self) -> &'static str {
        match self {
            Late::Lease => "lease",
            Late::Due => "due",
            Late::Fire => "fire",
        }
    }
}

/// What happened to the jobs of one queue on one day.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    counts: Counts,
    pub(super) wait: Lazy<Histogram>,
    pub(super) run: Lazy<Histogram>,
    pub(super) late: Option<Box<[Histogram; 3]>>,
    pub(super) signal_wait: Option<Box<Histogram>>,
    costs: Option<Box<CostSums>>,
}

/// What claims have cost.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct CostSums {
    /// What they have cost beyond one permit each.
    beyond: i64,
    /// What was named for single limits.
    limits: BTreeMap<ByteString, i64>,
}

/// How often each [`Tally`] was counted, up to the last one that was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Counts(Vec<u64>);

impl Counts {
    fn add(&mut self, tally: usize, more: u64) {
        match self.0.get_mut(tally) {
            Some(n) => *n = n.saturating_add(more),
            None if more > 0 => self.put_new(tally, more),
            None => {}
        }
    }

    /// Replaces a count.
    fn put(&mut self, tally: usize, n: u64) {
        match self.0.get_mut(tally) {
            Some(old) => *old = n,
            None => self.add(tally, n),
        }
    }

    #[cold]
    fn put_new(&mut self, tally: usize, n: u64) {
        self.0.reserve_exact(tally + 1 - self.0.len());
        self.0.resize(tally, 0);
        self.0.push(n);
    }
}

impl Stats {
    /// How often this happened.
    pub fn count(&self, tally: Tally) -> u64 {
        self.counts.0.get(tally as usize).copied().unwrap_or(0)
    }

    /// How long jobs waited, from ready to claimed.
    pub fn wait(&self) -> &Histogram {
        &self.wait
    }

    /// How long workers held jobs, from the claim to the end that they reported.
    pub fn run(&self) -> &Histogram {
        &self.run
    }

    /// How long jobs waited for signals; `None` when none did.
    pub fn signal_wait(&self) -> Option<&Histogram> {
        self.signal_wait.as_deref()
    }

    /// How late this was; `None` when nothing was late.
    pub fn late(&self, late: Late) -> Option<&Histogram> {
        self.late.as_ref()?.get(late as usize)
    }

    /// How many permits claims have cost. What is settled later than the day of its claim counts on
    /// the later day, which may so come below zero.
    pub fn cost(&self) -> i64 {
        let beyond = self.costs.as_ref().map_or(0, |costs| costs.beyond);
        (self.count(Tally::Claimed) as i64).saturating_add(beyond)
    }

    /// How many permits of single limits were named for claims, by name of the limit.
    pub fn costs(&self) -> impl ExactSizeIterator<Item = (&[u8], i64)> {
        static NONE: BTreeMap<ByteString, i64> = BTreeMap::new();
        let limits = self.costs.as_ref().map_or(&NONE, |costs| &costs.limits);
        limits.iter().map(|(limit, cost)| (&**limit, *cost))
    }

    /// Adds to what claims have cost beyond one permit each.
    pub(super) fn add_cost(&mut self, more: i64) {
        let costs = self.costs.get_or_insert_default();
        costs.beyond = costs.beyond.saturating_add(more);
        if **costs == CostSums::default() {
            self.costs = None;
        }
    }

    /// Adds to what was named for a limit.
    pub(super) fn add_named_cost(&mut self, limit: &[u8], more: i64) {
        let costs = self.costs.get_or_insert_default();
        match costs.limits.get_mut(limit) {
            Some(sum) => *sum = sum.saturating_add(more),
            None => _ = costs.limits.insert(limit.into(), more),
        }
    }

    /// All lateness in one histogram. O(bins).
    pub fn lateness(&self) -> Histogram {
        let mut all = Histogram::default();
        self.late.iter().flat_map(|late| late.iter()).for_each(|dist| all.merge(dist));
        all
    }

    /// Adds those of another queue or day. O(bins).
    pub fn merge(&mut self, other: &Stats) {
        other.counts.0.iter().enumerate().for_each(|(tally, n)| self.counts.add(tally, *n));
        for (sum, dist) in [(&mut self.wait, &other.wait), (&mut self.run, &other.run)] {
            if dist.count() > 0 {
                sum.merge(dist);
            }
        }
        if let Some(late) = &other.late {
            let own = self.late.get_or_insert_with(Box::default);
            own.iter_mut().zip(late.iter()).for_each(|(sum, dist)| sum.merge(dist));
        }
        if let Some(waits) = &other.signal_wait {
            self.signal_wait.get_or_insert_default().merge(waits);
        }
        if let Some(costs) = &other.costs {
            self.add_cost(costs.beyond);
            costs.limits.iter().for_each(|(limit, cost)| self.add_named_cost(limit, *cost));
        }
    }

    pub(crate) fn add(&mut self, tally: Tally) {
        self.counts.add(tally as usize, 1);
    }

    pub(crate) fn heap(&self) -> usize {
        let late =
            |late: &[Histogram; 3]| late.iter().map(Histogram::heap).sum::<usize>() + size_of_val(late);
        let signals = self.signal_wait.as_deref().map_or(0, |dist| dist.heap() + size_of_val(dist));
        let costs = self.costs.as_deref().map_or(0, |costs| {
            size_of_val(costs) + costs.limits.keys().map(|limit| limit.len() + 48).sum::<usize>()
        });
        let dists = [&self.wait, &self.run].map(|dist| dist.allocated() + dist.heap());
        let counts = allotted(self.counts.0.capacity() * size_of::<u64>());
        counts + dists.iter().sum::<usize>() + self.late.as_deref().map_or(0, late) + signals + costs
    }
}

/// Written as a map from the numbers of tallies to their counts.
impl<'a> Written<'a> for Counts {
    fn blank() -> Self {
        Counts::default()
    }

    fn is_blank(&self) -> bool {
        self.0.iter().all(|n| *n == 0)
    }

    fn write(&self, to: &mut Vec<u8>) {
        let counts = Tally::ALL.into_iter().zip(self.0.iter().copied()).filter(|(_, n)| *n > 0);
        write_map(to, counts.map(|(tally, n)| (tally as u8, n)));
    }

    fn read<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        let mut counts = Counts::default();
        for (number, n) in read_map(from)? {
            let tally: u8 = number;
            let known = usize::from(tally) < Tally::ALL.len();
            known.then(|| counts.put(tally.into(), n)).ok_or_else(|| Unreadable.error())?;
        }
        while counts.0.last() == Some(&0) {
            counts.0.pop();
        }
        Ok(counts)
    }
}

written! {
    /// Statistics in their written form.
    struct Image<'a> {
        1 counts: Cow<'a, Counts>,
        2 wait: Cow<'a, Histogram>,
        3 run: Cow<'a, Histogram>,
        4 late_leases: Cow<'a, Histogram>,
        5 late_dues: Cow<'a, Histogram>,
        6 late_fires: Cow<'a, Histogram>,
        7 signal_wait: Cow<'a, Histogram>,
        8 cost_beyond: i64,
        9 costs: Vec<(ByteString, i64)>,
    }
}

impl<'a> Written<'a> for Stats {
    fn blank() -> Self {
        Stats::default()
    }

    fn is_blank(&self) -> bool {
        *self == Stats::default()
    }

    fn write(&self, to: &mut Vec<u8>) {
        let late = |late: Late| self.late(late).map_or_else(Cow::default, Cow::Borrowed);
        let image = Image {
            counts: Cow::Borrowed(&self.counts),
            wait: Cow::Borrowed(&*self.wait),
            run: Cow::Borrowed(&*self.run),
            late_leases: late(Late::Lease),
            late_dues: late(Late::Due),
            late_fires: late(Late::Fire),
            signal_wait: self.signal_wait().map_or_else(Cow::default, Cow::Borrowed),
            cost_beyond: self.costs.as_ref().map_or(0, |costs| costs.beyond),
            costs: self.costs().map(|(limit, cost)| (limit.into(), cost)).collect(),
        };
        image.write(to);
    }

    fn read<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        let image = Image::read(from)?;
        if !image.costs.is_sorted_by(|a, b| a.0 < b.0) {
            return Err(Unreadable.error());
        }
        let costs = CostSums { beyond: image.cost_beyond, limits: image.costs.into_iter().collect() };
        let late = [image.late_leases, image.late_dues, image.late_fires].map(Cow::into_owned);
        Ok(Stats {
            counts: image.counts.into_owned(),
            wait: Lazy::from(image.wait.into_owned()),
            run: Lazy::from(image.run.into_owned()),
            late: late.iter().any(|dist| dist.count() > 0).then(|| Box::new(late)),
            signal_wait: Some(image.signal_wait.into_owned()).filter(|dist| dist.count() > 0).map(Box::new),
            costs: (costs != CostSums::default()).then(|| Box::new(costs)),
        })
    }

    #[cfg(test)]
    fn check_growth() {
        Image::check_growth();
    }
}
