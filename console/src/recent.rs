//! The last quarter of an hour of a board, from what its statistics have gained between two looks.
//!
//! JOB.STATS counts days. Two looks at the histograms of today, some seconds apart, tell what came between.
//! A board is looked at while somebody has its page open. What one user has seen no other is shown.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Mutex;

use redis::Value;

use crate::access::sessions::lock;
use crate::connection::reply::{int, list, Record};

/// No two samples are nearer, ms.
const STEP: i64 = 4_000;

/// Percentiles are those of what came in so long, ms.
const WINDOW: i64 = 60_000;

/// Older samples go, ms.
pub const SPAN: i64 = 15 * 60_000;

/// Paces are those of so long, ms.
const SMOOTH: i64 = 20_000;

/// Points further apart are not joined: nobody looked in between. Who looks at a slow server rests for
/// `live::LONGEST_REST` at most: room for looks of many times `connection::PATIENCE`. An answer that pages share is
/// younger, ms.
const GAP: i64 = 150_000;

/// How many boards, each for one user, are remembered; those looked at longest ago go.
const MOST: usize = 200;

/// Bins of a distribution in ms: from each first value to the last value and the number that lies between.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bins(BTreeMap<i64, (i64, i64)>);

impl Bins {
    /// From the `histogram` of JOB.STATS.
    pub fn read(distribution: &Record) -> Self {
        let mut bins = BTreeMap::new();
        for bin in distribution.list("histogram") {
            let numbers: Vec<i64> = list(bin).iter().filter_map(int).collect();
            if let [from, to, count] = numbers[..] {
                bins.insert(from, (if to < 0 { from } else { to }, count));
            }
        }
        Self(bins)
    }

    pub fn iter(&self) -> impl Iterator<Item = (i64, i64, i64)> + '_ {
        self.0.iter().map(|(&from, &(to, count))| (from, to, count))
    }

    pub fn count(&self) -> i64 {
        self.0.values().map(|(_, count)| count).sum()
    }

    /// What came since `earlier`; all of it when a new day has begun meanwhile.
    fn since(&self, earlier: &Bins) -> Bins {
        if self.count() < earlier.count() {
            return self.clone();
        }
        let gained = self.0.iter().filter_map(|(&from, &(to, count))| {
            let before = earlier.0.get(&from).map_or(0, |(_, count)| *count);
            (count > before).then_some((from, (to, count - before)))
        });
        Bins(gained.collect())
    }

    /// The middle of the bin in which so many percent lie; `None` of nothing.
    pub fn percentile(&self, percent: i64) -> Option<f64> {
        let wanted = (self.count() * percent + 99) / 100;
        let mut passed = 0;
        for (&from, &(to, count)) in &self.0 {
            passed += count;
            if passed >= wanted && count > 0 {
                return Some((from + to) as f64 / 2.0);
            }
        }
        None
    }
}

#[derive(Clone, Debug, Default)]
struct Sample {
    at: i64,
    ready: i64,
    claimed: i64,
    /// Jobs that were done and that failed since the day began.
    done: i64,
    failed: i64,
    wait: Bins,
    run: Bins,
}

/// One point of the plots; percentiles 50, 95, 99 in ms of what came in the minute before.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    pub at: i64,
    pub ready: i64,
    pub claimed: i64,
    /// A minute, since the point before; `None` after a gap.
    pub done: Option<f64>,
    pub failed: Option<f64>,
    /// Nobody looked for a while before this one.
    pub after_gap: bool,
    pub wait: [Option<f64>; 3],
    pub run: [Option<f64>; 3],
}

#[derive(Default)]
struct Trend {
    /// Of the last window, with all their bins; the first may be older.
    recent: VecDeque<Sample>,
    points: VecDeque<Point>,
}

impl Trend {
    fn add(&mut self, sample: Sample) {
        if self.recent.back().is_some_and(|last| sample.at - last.at < STEP) {
            return;
        }
        while self.recent.len() > 1 && sample.at - self.recent[1].at >= WINDOW {
            self.recent.pop_front();
        }
        while self.points.front().is_some_and(|first| sample.at - first.at > SPAN) {
            self.points.pop_front();
        }
        let last = self.recent.back();
        let after_gap = last.is_some_and(|last| sample.at - last.at > GAP);
        // Over some looks, or since the last one where looks are rare.
        let base = self.recent.iter().find(|earlier| sample.at - earlier.at <= SMOOTH).or(last);
        let pace = |of: fn(&Sample) -> i64| {
            let last = base.filter(|_| !after_gap)?;
            // A new day has begun at nothing.
            let gained = if of(&sample) < of(last) { of(&sample) } else { of(&sample) - of(last) };
            Some(gained as f64 * 60_000.0 / (sample.at - last.at) as f64)
        };
        let (done, failed) = (pace(|sample| sample.done), pace(|sample| sample.failed));
        if after_gap {
            self.recent.clear();
        }
        let before = self.recent.front().unwrap_or(&sample);
        let percentiles = |bins: Bins| [50, 95, 99].map(|percent| bins.percentile(percent));
        self.points.push_back(Point {
            at: sample.at,
            ready: sample.ready,
            claimed: sample.claimed,
            done,
            failed,
            after_gap,
            wait: percentiles(sample.wait.since(&before.wait)),
            run: percentiles(sample.run.since(&before.run)),
        });
        self.recent.push_back(sample);
    }

    fn last(&self) -> i64 {
        self.recent.back().map_or(0, |sample| sample.at)
    }
}

/// User, board and queue.
pub type Seen = (String, Vec<u8>, Option<Vec<u8>>);

#[derive(Default)]
pub struct Trends {
    known: Mutex<HashMap<Seen, Trend>>,
    /// Sums over the boards of a list: by its user, what it looks for, and its page.
    sums: Mutex<HashMap<(String, String, usize), Trend>>,
}

/// Makes room for one more where there are too many.
fn make_room<K: Clone + Eq + Hash>(known: &mut HashMap<K, Trend>, wanted: &K) {
    if known.len() >= MOST && !known.contains_key(wanted) {
        let oldest = known.iter().min_by_key(|(_, trend)| trend.last()).map(|(key, _)| key.clone());
        oldest.map(|key| known.remove(&key));
    }
}

impl Trends {
    /// Notes how many jobs are done and fail a minute on all boards of a list together.
    pub fn note_sum(
        &self,
        listed: (String, String, usize),
        at: i64,
        done: Option<f64>,
        failed: Option<f64>,
    ) -> Vec<Point> {
        let mut sums = lock(&self.sums);
        make_room(&mut sums, &listed);
        let trend = sums.entry(listed).or_default();
        let last = trend.points.back().map(|point| point.at);
        if last.is_none_or(|last| at - last >= STEP) {
            let after_gap = last.is_some_and(|last| at - last > GAP);
            while trend.points.front().is_some_and(|first| at - first.at > SPAN) {
                trend.points.pop_front();
            }
            trend.points.push_back(Point {
                at,
                ready: 0,
                claimed: 0,
                done,
                failed,
                after_gap,
                wait: [None; 3],
                run: [None; 3],
            });
            trend.recent = [Sample { at, ..Sample::default() }].into();
        }
        trend.points.iter().cloned().collect()
    }

    /// Notes what a user sees of a board now, and gives what they have seen so far.
    pub fn note(&self, seen: Seen, at: i64, ready: i64, claimed: i64, stats: &Value) -> Vec<Point> {
        let stats = Record::read(stats.clone()).unwrap_or_default();
        let sample = Sample {
            at,
            ready,
            claimed,
            done: stats.int("completed"),
            failed: stats.int("failed") + stats.int("retried"),
            wait: Bins::read(&stats.record("wait")),
            run: Bins::read(&stats.record("run")),
        };
        let mut known = lock(&self.known);
        make_room(&mut known, &seen);
        let trend = known.entry(seen).or_default();
        trend.add(sample);
        trend.points.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::PATIENCE;
    use crate::live::LONGEST_REST;

    fn bins(counts: &[(i64, i64)]) -> Bins {
        Bins(counts.iter().map(|&(at, count)| (at, (at, count))).collect())
    }

    #[test]
    fn percentiles_are_those_of_the_bins() {
        assert_eq!(bins(&[]).percentile(50), None);
        assert_eq!(bins(&[(5, 1)]).percentile(99), Some(5.0));
        let many = bins(&[(1, 50), (2, 45), (9, 5)]);
        assert_eq!([50, 51, 95, 96].map(|percent| many.percentile(percent).unwrap()), [1.0, 2.0, 2.0, 9.0]);
    }

    #[test]
    fn a_point_tells_of_the_last_minute_alone() {
        let mut trend = Trend::default();
        let mut wait = vec![(1, 100)];
        for minute in 0..4 {
            trend.add(Sample { at: minute * 30_000, wait: bins(&wait), ..Sample::default() });
            wait.push((1000 + minute, 1));
        }
        let median: Vec<Option<f64>> = trend.points.iter().map(|point| point.wait[0]).collect();
        assert_eq!(median, [None, Some(1000.0), Some(1000.0), Some(1001.0)]);
    }

    #[test]
    fn paces_are_those_since_the_last_look_and_gaps_stay_gaps() {
        let mut trend = Trend::default();
        for (at, done) in
            [(0, 100), (5_000, 110), (10_000, 110), (200_000, 500), (205_000, 505), (210_000, 2)]
        {
            trend.add(Sample { at, done, ..Sample::default() });
        }
        let paces: Vec<Option<f64>> = trend.points.iter().map(|point| point.done).collect();
        assert_eq!(paces, [None, Some(120.0), Some(60.0), None, Some(60.0), Some(12.0)]);
        let gaps: Vec<bool> = trend.points.iter().map(|point| point.after_gap).collect();
        assert_eq!(gaps, [false, false, false, true, false, false]);
    }

    #[test]
    fn slow_looks_tell_what_came_between() {
        let slowest = (5 * PATIENCE + LONGEST_REST).as_millis() as i64;
        for step in [SMOOTH + 2_000, 33_000, slowest] {
            let mut trend = Trend::default();
            for look in 0..3 {
                let wait = bins(&[(7, 100 + look * step / 500)]);
                trend.add(Sample { at: look * step, done: look * step / 500, wait, ..Sample::default() });
            }
            let told: Vec<_> =
                trend.points.iter().map(|point| (point.done, point.wait[0], point.after_gap)).collect();
            let known = (Some(120.0), Some(7.0), false);
            assert_eq!(told, [(None, None, false), known, known], "{step}");
        }
    }

    #[test]
    fn samples_keep_their_distance_and_grow_old() {
        let mut trend = Trend::default();
        for at in (0..SPAN * 2).step_by(1000) {
            trend.add(Sample { at, ..Sample::default() });
        }
        assert!(trend.points.len() as i64 <= SPAN / STEP + 1);
        assert!(trend.recent.len() as i64 <= WINDOW / STEP + 2);
    }

    #[test]
    fn a_new_day_begins_at_nothing() {
        assert_eq!(bins(&[(7, 2)]).since(&bins(&[(1, 100)])), bins(&[(7, 2)]));
    }
}
