//! Statistics of a board, by queue and day (UTC).
//!
//! There is a record only for a queue and a day on which something happened. A loaded queue knows
//! the number of its record of today, so an event costs no search; that knowledge is local, the
//! records are state. Time drops a day `stats-days` days after its begin.

use crate::item::{need, Item, Loading, SnapshotError};
use std::cell::Cell;
use std::collections::BTreeMap;

use crate::board::Board;
use crate::effect::is_name;
use crate::job::{Claim, End, Job, LastClaim, NEVER};
use crate::settings::Setting;
use crate::statistics::stats::{Late, Stats, Tally};
use crate::structures::allotted::allotted;
use crate::structures::byte_string::ByteString;
use crate::structures::histogram::Histogram;

/// A day, ms.
pub const DAY: i64 = 86_400_000;

written! {
    /// One record in a snapshot.
    pub(crate) struct DayImage {
        1 day: i32,
        2 queue: ByteString,
        3 stats: Stats,
    }
}

/// Records by number: for a board with one record this costs little more than the record.
#[derive(Default)]
struct Records {
    all: Vec<Option<Box<Stats>>>,
    free: Vec<u32>,
}

impl Records {
    fn get(&self, number: u32) -> Option<&Stats> {
        self.all.get(number as usize)?.as_deref()
    }

    fn get_mut(&mut self, number: u32) -> Option<&mut Stats> {
        self.all.get_mut(number as usize)?.as_deref_mut()
    }

    fn len(&self) -> usize {
        self.all.len() - self.free.len()
    }

    fn insert(&mut self, stats: Stats) -> u32 {
        let number = self.free.pop().unwrap_or(self.all.len() as u32);
        match self.all.get_mut(number as usize) {
            Some(place) => *place = Some(Box::new(stats)),
            None => self.all.push(Some(Box::new(stats))),
        }
        number
    }

    fn remove(&mut self, number: u32) {
        if let Some(place) = self.all.get_mut(number as usize) {
            *place = None;
            self.free.push(number);
        }
        if self.len() == 0 {
            *self = Records::default();
        }
    }
}

/// All records of a board.
#[derive(Default)]
pub(crate) struct Days {
    records: Records,
    /// The numbers of the records, by day and name of the queue.
    by_day: BTreeMap<(i32, ByteString), u32>,
    /// Whether counting is off.
    off: bool,
    /// A day, and how many records it has. Local.
    counted: Cell<(i32, usize)>,
    /// Counts removals: numbers that queues learned before the last one are invalid.
    epoch: u32,
}

/// The number of a queue's record of one day, as far as it is known.
#[derive(Clone, Copy, Default)]
pub(crate) struct Today {
    day: i32,
    epoch: u32,
    /// The number of the record plus one.
    number: u32,
}

/// The day of a time, in days since 1970.
pub fn day_of(time: i64) -> i32 {
    (time.clamp(0, NEVER) / DAY) as i32
}

impl Days {
    /// How many records there are.
    pub fn len(&self) -> usize {
        self.by_day.len()
    }

    /// About how many bytes they take. O(n).
    pub fn bytes(&self) -> usize {
        let own = |((_, queue), at): (&(i32, ByteString), &u32)| {
            let record = allotted(size_of::<Stats>()) + self.records.get(*at).map_or(0, Stats::heap);
            record + allotted(queue.len())
        };
        // A node of the tree has room for eleven records, and is two thirds full on average.
        let nodes = self.by_day.len().div_ceil(7) * allotted(11 * size_of::<((i32, ByteString), u32)>());
        let places = allotted(self.records.all.capacity() * size_of::<usize>());
        nodes + places + self.by_day.iter().map(own).sum::<usize>()
    }

    /// The records by day and name of the queue.
    pub fn images(&self) -> impl Iterator<Item = DayImage> + '_ {
        self.by_day.iter().filter_map(|((day, queue), at)| {
            Some(DayImage { day: *day, queue: queue.clone(), stats: self.records.get(*at)?.clone() })
        })
    }

    /// Adds a record from a snapshot; false when it is invalid or not after all others.
    pub fn restore(&mut self, image: DayImage) -> bool {
        let DayImage { day, queue, stats } = image;
        let key = (day, queue);
        let last = self.by_day.last_key_value();
        let fits = (0..=day_of(NEVER)).contains(&day)
            && is_name(&key.1)
            && stats != Stats::default()
            && last.is_none_or(|(last, _)| *last < key);
        if fits {
            let at = self.records.insert(stats);
            self.by_day.insert(key, at);
        }
        fits
    }

    /// Checks that each key leads to a record, and that each record has a key.
    pub fn check(&self) -> Result<(), String> {
        let led = self.by_day.values().filter(|at| self.records.get(**at).is_some()).count();
        match led == self.len() && led == self.records.len() {
            true => Ok(()),
            false => Err("statistics that no day leads to, or the reverse".into()),
        }
    }

    /// How many records a day has. O(1) when it is the day of the last call.
    fn of(&self, day: i32) -> usize {
        let (counted, n) = self.counted.get();
        if counted == day && n > 0 {
            return n;
        }
        let n = self.by_day.range((day, ByteString::default())..).take_while(|(key, _)| key.0 == day).count();
        self.counted.set((day, n));
        n
    }

    /// The first day that has a record. O(1).
    fn first(&self) -> Option<i32> {
        self.by_day.first_key_value().map(|((day, _), _)| *day)
    }

    /// Drops up to `n` records of days before this one.
    pub fn drop_before(&mut self, day: i32, n: u32) {
        for _ in 0..n {
            let Some(first) = self.by_day.first_entry().filter(|e| e.key().0 < day) else { return };
            self.records.remove(first.remove());
            self.epoch = self.epoch.wrapping_add(1);
            self.counted.set((0, 0));
        }
    }
}

impl Board {
    /// Turns statistics on or off, as the settings say.
    pub(crate) fn set_stats(&mut self) {
        self.days.off = self.own(Setting::StatsDays) == 0;
    }

    /// Today's record of a queue, to write to; `None` when counting is off. O(1), but for the first
    /// event of the day.
    #[inline]
    pub(crate) fn today(&mut self, queue: u32, now: i64) -> Option<&mut Stats> {
        if self.days.off {
            return None;
        }
        let (day, epoch) = (day_of(now), self.days.epoch);
        let today = self.queues.get(queue)?.today;
        let number = match today.day == day && today.epoch == epoch && today.number > 0 {
            true => today.number - 1,
            false => self.open_day(queue, day)?,
        };
        self.days.records.get_mut(number)
    }

    /// Finds or makes the record of a queue for a day. O(log records).
    #[cold]
    fn open_day(&mut self, queue: u32, day: i32) -> Option<u32> {
        let key = (day, self.queues.key(queue)?.clone());
        let number = match self.days.by_day.get(&key) {
            Some(number) => *number,
            // Clients may use ever new names of queues, and those of one day stay for `stats-days`:
            // they are bounded as queues are.
            None if self.days.of(day) >= self.own(Setting::MaxQueues).max(0) as usize => return None,
            None => {
                let number = self.days.records.insert(Stats::default());
                self.days.by_day.insert(key, number);
                let (_, counted) = self.days.counted.get();
                self.days.counted.set((day, counted + 1));
                self.wake_at(self.day_ends(day));
                number
            }
        };
        self.queues.get_mut(queue)?.today = Today { day, epoch: self.days.epoch, number: number + 1 };
        Some(number)
    }

    /// When a day is dropped, Unix ms.
    fn day_ends(&self, day: i32) -> i64 {
        match self.own(Setting::StatsDays) {
            0 => 0,
            days => (i64::from(day) + days) * DAY,
        }
    }

    /// When the first day is dropped, Unix ms, or [`NEVER`]. O(1).
    pub(crate) fn next_day_ends(&self) -> i64 {
        self.days.first().map_or(NEVER, |day| self.day_ends(day))
    }

    /// Counts something that happened to a job of a queue.
    pub(crate) fn note(&mut self, queue: u32, tally: Tally, now: i64) {
        let Some(today) = self.today(queue, now) else { return };
        today.add(tally);
        if let Some(queue) = self.queues.get_mut(queue) {
            queue.local.pace.count(tally, now);
        }
    }

    /// Counts something that happened to a job.
    pub(crate) fn count_stat(&mut self, slot: u32, tally: Tally, now: i64) {
        let Some(job) = self.store.jobs.get(slot) else { return };
        self.note(self.queue_number(job), tally, now);
    }

    /// Records how late an action of time, due at `at`, was for a job of a queue; one before its
    /// time does not count.
    pub(crate) fn count_lateness(&mut self, queue: u32, late: Late, at: i64, now: i64) {
        if at > now {
            return;
        }
        if let Some(dist) = self.local.lateness.get_or_insert_default().get_mut(late as usize) {
            dist.add(now.saturating_sub(at));
        }
        let Some(today) = self.today(queue, now) else { return };
        if let Some(dist) = today.late.get_or_insert_with(Box::default).get_mut(late as usize) {
            dist.add(now.saturating_sub(at));
        }
    }

    /// Records how long a job waited for signals or for its children, from `from` on.
    pub(crate) fn count_await(&mut self, slot: u32, from: i64, now: i64) {
        let Some(job) = self.store.jobs.get(slot) else { return };
        if let Some(today) = self.today(self.queue_number(job), now) {
            today.signal_wait.get_or_insert_default().add(now.saturating_sub(from));
        }
    }

    /// Whether lateness was recorded since the last call of [`Board::take_lateness`].
    pub fn was_late(&self) -> bool {
        self.local.lateness.iter().flat_map(|all| all.iter()).any(|late| late.count() > 0)
    }

    /// Adds the lateness since the last call to these histograms. O(bins).
    pub fn take_lateness(&mut self, into: &mut [Histogram; 3]) {
        let late = self.local.lateness.iter_mut().flat_map(|all| all.iter_mut());
        for (sum, late) in into.iter_mut().zip(late) {
            sum.merge(late);
            late.clear();
        }
    }

    /// Counts a claim of a job, and how long the job waited for it.
    pub(crate) fn count_claim(&mut self, slot: u32, now: i64) {
        let Some(job) = self.store.jobs.get(slot) else { return };
        let (queue, waited) = (self.queue_number(job), Self::waited(job, now));
        if let Some(today) = self.today(queue, now) {
            today.add(Tally::Claimed);
            today.wait.add(waited);
        }
        if let Some(queue) = self.queues.get_mut(queue) {
            queue.local.pace.claims(now);
        }
    }

    /// Counts what claims of a queue have cost: permits beyond one for each, and those of single limits.
    pub(crate) fn add_costs(&mut self, queue: u32, beyond: i64, costs: &[(ByteString, i64)], now: i64) {
        if beyond == 0 && costs.is_empty() {
            return;
        }
        let Some(today) = self.today(queue, now) else { return };
        today.add_cost(beyond);
        costs.iter().for_each(|(limit, cost)| today.add_named_cost(limit, *cost));
    }

    /// How long a ready job has been ready, ms.
    fn waited(job: &Job, now: i64) -> i64 {
        let again = job.extras.as_ref().map_or(NEVER, |extras| extras.retrying.ready);
        let ready = if again == NEVER { job.since.get() } else { again };
        now.saturating_sub(ready)
    }

    /// How long a job that was just claimed had been ready, ms. O(1).
    pub fn waited_for(&self, slot: u32, now: i64) -> i64 {
        self.store.jobs.get(slot).map_or(0, |job| Self::waited(job, now))
    }

    /// Records how long a worker ran a job, when it reports the end: `claim` is the claim that just
    /// ended, or `None` when the worker is late.
    pub(crate) fn count_run(&mut self, slot: u32, claim: Option<&Claim>, now: i64) {
        let Some(job) = self.store.jobs.get(slot) else { return };
        let last = || job.extras.as_ref()?.last_claim.as_deref().filter(|last| last.end == End::Lapsed);
        let Some(begin) = claim.map(|c| c.claimed).or_else(|| last().map(|l: &LastClaim| l.claimed)) else {
            return;
        };
        let queue = self.queue_number(job);
        if let Some(today) = self.today(queue, now) {
            today.run.add(now.saturating_sub(begin));
        }
    }

    /// The first and the last day that have records. O(1).
    pub fn days(&self) -> Option<(i32, i32)> {
        let (last, _) = self.days.by_day.last_key_value()?;
        Some((self.days.first()?, last.0))
    }

    /// What happened in a queue on a day; without a queue, on the whole board: O(queues of that
    /// day). `None` when nothing happened, or the day was dropped.
    pub fn stats(&self, queue: Option<&[u8]>, day: i32) -> Option<Stats> {
        if let Some(name) = queue {
            return self.queue_stats(name, day).cloned();
        }
        let mut all: Option<Stats> = None;
        self.stats_of(day).for_each(|(_, stats)| all.get_or_insert_default().merge(stats));
        all
    }

    fn queue_stats(&self, queue: &[u8], day: i32) -> Option<&Stats> {
        self.days.records.get(*self.days.by_day.get(&(day, queue.into()))?)
    }

    /// How late time was in a queue on a day. O(log days and queues).
    pub fn lateness(&self, queue: &[u8], day: i32) -> Option<Histogram> {
        self.queue_stats(queue, day).map(Stats::lateness)
    }

    /// What happened on a day, queue by queue, by name.
    pub fn stats_of(&self, day: i32) -> impl Iterator<Item = (&[u8], &Stats)> {
        let records =
            self.days.by_day.range((day, ByteString::default())..).take_while(move |(k, _)| k.0 == day);
        records.filter_map(|((_, queue), at)| Some((&**queue, self.days.records.get(*at)?)))
    }
}

impl<'a> Item<'a> for DayImage {
    fn each(board: &'a Board, mut put: impl FnMut(&Self)) {
        board.days.images().for_each(|image| put(&image));
    }

    fn load(self, board: &mut Board, _loading: &mut Loading) -> Result<(), SnapshotError> {
        need(board.days.restore(self), "statistics")
    }
}
