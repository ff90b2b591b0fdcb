//! Statistics of the naive board: counts by word, and every duration one by one.

use std::collections::BTreeMap;

use board::{Histogram, Late, Setting, State, Stats, Tally};

use crate::compare::same;
use crate::naive::{Bytes, Hold, Model, Way};

const DAY: i64 = 24 * 60 * 60 * 1000;

/// What happened to the jobs of one queue on one day.
#[derive(Debug, Default, Clone)]
pub struct Day {
    pub counts: BTreeMap<Tally, u64>,
    pub wait: Vec<i64>,
    pub run: Vec<i64>,
    pub late: [Vec<i64>; 3],
    pub signal_wait: Vec<i64>,
    /// What claims have cost beyond one each, and of single limits.
    pub beyond: i64,
    pub costs: BTreeMap<Bytes, i64>,
}

impl Model {
    fn day(&mut self, queue: &[u8]) -> Option<&mut Day> {
        let key = (self.now / DAY, queue.to_vec());
        let kept = self.board_rule(Setting::StatsDays) > 0;
        let kept = kept && (self.days.contains_key(&key) || self.check_day(key.0));
        kept.then(|| self.days.entry(key).or_default())
    }

    pub fn note(&mut self, queue: &[u8], tally: Tally) {
        if let Some(day) = self.day(queue) {
            *day.counts.entry(tally).or_default() += 1;
        }
    }

    pub fn note_at(&mut self, at: usize, tally: Tally) {
        let queue = self.jobs[at].queue.clone();
        self.note(&queue, tally);
    }

    pub fn settle_claim(&mut self, at: usize, state: State) {
        self.note_at(
            at,
            match state {
                State::Complete => Tally::Completed,
                State::Failed => Tally::Failed,
                State::Cancelled => Tally::Cancelled,
                _ => Tally::Trashed,
            },
        );
    }

    pub fn count_claim(&mut self, at: usize) {
        self.note_at(at, Tally::Claimed);
        let (queue, waited) = (self.jobs[at].queue.clone(), self.now - self.jobs[at].ready);
        if let Some(day) = self.day(&queue) {
            day.wait.push(waited.max(0));
        }
        let job = self.jobs[at].clone();
        let mut named = job.costs.clone();
        named.retain(|limit, _| self.limits_of(&job).contains(limit));
        self.count_cost(&queue, job.options.cost.unwrap_or(1) - 1, named);
    }

    pub fn count_cost(&mut self, queue: &[u8], beyond: i64, costs: BTreeMap<Bytes, i64>) {
        if beyond == 0 && costs.is_empty() {
            return;
        }
        let Some(day) = self.day(queue) else { return };
        day.beyond += beyond;
        costs.into_iter().for_each(|(limit, cost)| *day.costs.entry(limit).or_default() += cost);
    }

    /// Whoever may says that the run of a job is over, in time or late.
    pub fn count_run(&mut self, at: usize) {
        let job = &self.jobs[at];
        let past = job.past.as_ref().filter(|past| past.way == Way::Lapsed);
        let hold: Option<&Hold> = job.hold.as_ref().or(past.map(|p| &p.hold));
        let Some(hold) = hold else { return };
        let (queue, ran) = (job.queue.clone(), self.now - hold.claimed);
        if let Some(day) = self.day(&queue) {
            day.run.push(ran.max(0));
        }
    }

    pub fn count_await(&mut self, at: usize, from: i64) {
        let (queue, waited) = (self.jobs[at].queue.clone(), self.now - from);
        if let Some(day) = self.day(&queue) {
            day.signal_wait.push(waited.max(0));
        }
    }

    pub fn count_lateness(&mut self, queue: &[u8], late: Late, due: i64) {
        let by = self.now - due;
        if let Some(day) = self.day(queue) {
            day.late[late as usize].push(by);
        }
    }

    /// When the first day goes.
    pub fn day_goes(&self) -> Option<i64> {
        let ((day, _), _) = self.days.first_key_value()?;
        Some(match self.board_rule(Setting::StatsDays) {
            0 => 0,
            days => (day + days) * DAY,
        })
    }

    /// Drops days; false when there are none to drop.
    pub fn drop_days(&mut self, n: usize) -> bool {
        let mut dropped = 0;
        while dropped < n && self.day_goes().is_some_and(|time| time <= self.now) {
            self.days.pop_first();
            dropped += 1;
        }
        dropped > 0
    }

    /// Whether the board says the same of every queue and day.
    pub fn same_stats(&self, board: &board::Board) -> Result<(), String> {
        let ends = [self.days.first_key_value(), self.days.last_key_value()]
            .map(|d| d.map(|((day, _), _)| *day as i32));
        same("first and last day", board.days(), ends[0].zip(ends[1]))?;
        let mut days: Vec<i64> = self.days.keys().map(|(day, _)| *day).collect();
        days.dedup();
        for day in days {
            let queues = board.stats_of(day as i32).map(|(queue, _)| queue.to_vec());
            let want = self.days.keys().filter(|(d, _)| *d == day).map(|(_, queue)| queue.clone());
            same("queues of a day", queues.collect::<Vec<Bytes>>(), want.collect())?;
        }
        let mut all: BTreeMap<i64, Stats> = BTreeMap::new();
        for ((day, queue), want) in &self.days {
            let got = board.stats(Some(queue), *day as i32).ok_or("statistics are lost")?;
            for tally in Tally::ALL {
                let n = want.counts.get(&tally).copied().unwrap_or(0);
                same(tally.name(), got.count(tally), n)?;
            }
            let claimed = want.counts.get(&Tally::Claimed).copied().unwrap_or(0) as i64;
            same("costs of a day", got.cost(), claimed + want.beyond)?;
            let costs = got.costs().map(|(limit, cost)| (limit.to_vec(), cost));
            same("named costs of a day", costs.collect(), want.costs.clone())?;
            same_dist("wait", got.wait(), &want.wait)?;
            same_dist("run", got.run(), &want.run)?;
            let none = Histogram::default();
            same_dist("await", got.signal_wait().unwrap_or(&none), &want.signal_wait)?;
            for late in Late::ALL {
                same_dist(
                    late.name(),
                    got.late(late).unwrap_or(&Histogram::default()),
                    &want.late[late as usize],
                )?;
            }
            same_dist("lateness", &got.lateness(), &want.late.concat())?;
            all.entry(*day).or_default().merge(&got);
        }
        for (day, want) in all {
            same("the whole board", board.stats(None, day as i32), Some(want))?;
        }
        Ok(())
    }
}

fn same_dist(what: &str, got: &Histogram, want: &[i64]) -> Result<(), String> {
    same(what, got.count(), want.len() as u64)?;
    same(what, got.sum(), want.iter().sum::<i64>() as u64)?;
    same(what, got.min(), want.iter().min().copied().unwrap_or(0) as u64)?;
    same(what, got.max(), want.iter().max().copied().unwrap_or(0) as u64)?;
    let mut sorted = want.to_vec();
    sorted.sort_unstable();
    for hundredths in [50, 95, 99].into_iter().filter(|_| !sorted.is_empty()) {
        let rank = (sorted.len() * hundredths).div_ceil(100);
        let (exact, told) = (sorted[rank - 1], got.percentile(hundredths as u64) as i64);
        same(&format!("{what}: {told} is near {exact}"), (told - exact).abs() * 20 <= exact, true)?;
    }
    for (from, to, n) in got.bins() {
        let held = want.iter().filter(|ms| (from..=to).contains(&(**ms as u64))).count();
        same(what, n, held as u64)?;
    }
    same(what, got.bins().map(|(.., n)| n).sum(), want.len() as u64)?;
    let mean = want.iter().sum::<i64>() as f64 / want.len().max(1) as f64;
    let squares = want.iter().map(|ms| (*ms as f64 - mean).powi(2)).sum::<f64>();
    let deviation = (squares / (want.len().max(2) - 1) as f64).sqrt();
    let near =
        (got.mean() - mean).abs() < 1e-6 && (got.deviation() - deviation).abs() <= 1e-6 * (1.0 + deviation);
    same(what, near, true)
}
