//! Buckets of permits, as in the token bucket algorithm: a bucket holds at most `burst` permits and
//! gains `rate` permits in each period. It counts in whole units so that nothing is ever rounded: a
//! permit is as many units as its period has ms, and each ms adds `rate` units.
//!
//! A claim takes what its job is expected to cost. What it cost in the end is settled later, so a
//! bucket may owe permits: claims wait until it has earned them.

use crate::job::{is_time, NEVER};
use crate::settings::{Overrides, Setting, MOST};

/// A bucket owes at most what it gains in this many periods, or this many bursts, whichever is more:
/// a mistaken report stops nobody for longer.
const DEBT: i64 = 10;

/// How fast a bucket fills, in permits and ms, and how much it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refill {
    /// Permits added in each period.
    pub rate: i64,
    /// Length of the period, ms.
    pub period: i64,
    /// The most permits that the bucket holds.
    pub burst: i64,
}

impl Refill {
    /// The refill of these settings; `None` when they set no rate.
    pub fn of(value: impl Fn(Setting) -> i64) -> Option<Refill> {
        let rate = value(Setting::Rate);
        let (period, burst) = (value(Setting::RatePeriod), value(Setting::Burst));
        (rate >= 0).then_some(Refill { rate, period: period.max(1), burst: burst.max(1) })
    }

    /// The refill of the settings of a board or a queue; `None` when they set no rate.
    pub fn set_by(settings: &Overrides) -> Option<Refill> {
        Refill::of(|setting| settings.get(setting).unwrap_or(setting.spec().default))
    }

    /// The most that a bucket owes, in units: what it gains in [`DEBT`] periods, or as many bursts.
    fn lowest(&self) -> i64 {
        self.rate.max(self.burst).saturating_mul(DEBT).saturating_mul(self.period).min(MOST * MOST)
    }

    /// What a claim of a job of this cost takes, in permits.
    pub fn taken(&self, cost: i64) -> i64 {
        cost.clamp(0, self.burst)
    }

    fn whole(&self) -> i64 {
        self.burst.saturating_mul(self.period)
    }

    /// The units that a job of this cost takes; a job that costs more than the bucket holds takes
    /// all.
    fn need(&self, cost: i64) -> i64 {
        self.taken(cost).saturating_mul(self.period)
    }
}

written! {
    /// A bucket that is, or was, not full. A full bucket is `None`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) struct Bucket {
        /// Units in it at that time; below zero what it owes.
        1 level: i64,
        /// The time of the level, Unix ms.
        2 at: i64,
        /// The period in which units are counted, ms.
        3 period: i64,
    }
}

impl Bucket {
    /// Whether a sequence of takes can have led to these numbers.
    pub fn is_valid(&self) -> bool {
        (-MOST * MOST..=MOST * MOST).contains(&self.level)
            && is_time(self.at)
            && (1..=MOST).contains(&self.period)
    }

    fn start(&self, refill: &Refill) -> i64 {
        if self.period == refill.period {
            return self.level.min(refill.whole());
        }
        let level = i128::from(self.level) * i128::from(refill.period) / i128::from(self.period.max(1));
        level.clamp((-MOST * MOST).into(), refill.whole().into()) as i64
    }

    /// The units in it at a time; a clock that went back adds nothing.
    fn level(&self, refill: &Refill, now: i64) -> i64 {
        let fallen = i128::from(refill.rate) * i128::from(now.saturating_sub(self.at).max(0));
        (i128::from(self.start(refill)) + fallen).min(refill.whole().into()) as i64
    }

    /// When it holds `need` units, Unix ms. O(1).
    fn when(&self, refill: &Refill, need: i64) -> i64 {
        if need == 0 {
            return 0;
        }
        let lacks = need.saturating_sub(self.start(refill));
        match (lacks, refill.rate) {
            (..=0, _) => 0,
            (_, 0) => NEVER,
            (lacks, rate) => self.at.saturating_add((lacks - 1) / rate + 1).min(NEVER),
        }
    }
}

/// Whether a take now would be earlier than the last: then the clock went back, and the permits may
/// be there earlier than before.
pub(crate) fn goes_back(bucket: &Option<Bucket>, now: i64) -> bool {
    bucket.as_ref().is_some_and(|bucket| now < bucket.at)
}

/// When a job of this cost may take its permits, Unix ms: a time in the past if it may now. A
/// missing bucket is full.
pub(crate) fn ready_at(bucket: &Option<Bucket>, refill: &Refill, cost: i64) -> i64 {
    bucket.as_ref().map_or(0, |bucket| bucket.when(refill, refill.need(cost)))
}

/// How many permits a bucket owes, rounded up.
pub(crate) fn debt(bucket: &Option<Bucket>, refill: &Refill, now: i64) -> i64 {
    let owed = bucket.as_ref().map_or(0, |bucket| -bucket.level(refill, now)).max(0);
    owed / refill.period + i64::from(owed % refill.period > 0)
}

/// When a bucket is full again and can be forgotten, Unix ms.
pub(crate) fn full_at(bucket: &Option<Bucket>, refill: &Refill) -> i64 {
    bucket.as_ref().map_or(0, |bucket| bucket.when(refill, refill.whole()))
}

/// Takes the permits of a job.
pub(crate) fn take(bucket: &mut Option<Bucket>, refill: &Refill, cost: i64, now: i64) {
    let level = bucket.as_ref().map_or(refill.whole(), |bucket| bucket.level(refill, now));
    let level = level.saturating_sub(refill.need(cost)).max(-refill.lowest());
    *bucket = Some(Bucket { level, at: now, period: refill.period });
}

/// Takes more permits of a claim, or returns some (`more` below zero): a bucket owes no more than
/// its bound, and holds no more than its burst.
pub(crate) fn settle(bucket: &mut Option<Bucket>, refill: &Refill, more: i64, now: i64) {
    let level = bucket.as_ref().map_or(refill.whole(), |bucket| bucket.level(refill, now));
    let level = level.saturating_sub(more.saturating_mul(refill.period));
    let level = level.clamp(-refill.lowest(), refill.whole());
    *bucket = Some(Bucket { level, at: now, period: refill.period });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_window_gives_more_than_burst_and_rate(
            (rate, period, burst) in (0..50i64, 1..2_000i64, 1..20i64),
            steps in prop::collection::vec((0..500i64, 1..8i64), 1..200),
        ) {
            let refill = Refill { rate, period, burst };
            let (mut bucket, mut now, mut taken) = (None, 1_000, Vec::new());
            for (pass, cost) in steps {
                now += pass;
                let at = ready_at(&bucket, &refill, cost);
                prop_assert!(at == 0 || at > bucket.map_or(0, |b: Bucket| b.at));
                if at <= now {
                    take(&mut bucket, &refill, cost, now);
                    taken.push((now, cost.min(burst)));
                } else if at < NEVER {
                    // One ms earlier the permits are not there yet.
                    let early = bucket.map_or(0, |b| b.level(&refill, at - 1));
                    prop_assert!(early < refill.need(cost));
                }
            }
            for (i, (from, _)) in taken.iter().enumerate() {
                let mut sum = 0;
                for (to, cost) in taken.iter().skip(i) {
                    sum += cost;
                    prop_assert!(sum * period <= burst * period + rate * (to - from));
                }
            }
        }
    }

    #[test]
    fn a_clock_that_goes_back_adds_nothing_and_takes_nothing_away() {
        let refill = Refill { rate: 1, period: 1_000, burst: 2 };
        let mut bucket = None;
        take(&mut bucket, &refill, 1, 50_000);
        assert_eq!(ready_at(&bucket, &refill, 1), 0);
        take(&mut bucket, &refill, 1, 10_000);
        assert_eq!(ready_at(&bucket, &refill, 1), 11_000);
        assert_eq!(full_at(&bucket, &refill), 12_000);
    }

    #[test]
    fn a_bucket_keeps_its_share_of_tokens_when_the_period_changes() {
        let refill = Refill { rate: 1, period: 1_000, burst: 4 };
        let mut bucket = None;
        take(&mut bucket, &refill, 3, 0);
        let slow = Refill { period: 60_000, ..refill };
        assert_eq!((ready_at(&bucket, &slow, 1), ready_at(&bucket, &slow, 2)), (0, 60_000));
    }
}
