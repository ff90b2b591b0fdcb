//! Distributions of durations: exact sums, and counts in bins.
//!
//! The bins are the same everywhere, so that distributions can be added. Bin 0 holds 0 ms; each
//! other bin holds the durations above the bin before it, up to its own bound. A bound is at most a
//! tenth above the one before, so the middle of a bin is within 5 % of all durations in it:
//!
//! | up to | in steps of | | up to | in steps of |
//! |---|---|---|---|---|
//! | 100 ms | 1 ms | | 10 h | 6 min |
//! | 1 s | 10 ms | | 1 d | 1 h |
//! | 10 s | 100 ms | | 10 d | 2.4 h |
//! | 1 min | 1 s | | 100 d | 1 d |
//! | 10 min | 6 s | | 1000 d | 10 d |
//! | 1 h | 1 min | | longer | one bin |

use serde::Deserializer;

use crate::format::{Unreadable, Written};
use crate::structures::allotted::allotted;
use crate::structures::lazy::Part;

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Durations above `above` are in steps of `step` from bin `first` on.
struct Stretch {
    above: u64,
    step: u64,
    first: u64,
}

const fn stretch(above: u64, step: u64, first: u64) -> Stretch {
    Stretch { above, step, first }
}

/// From the longest to the shortest; up to 100 ms each duration has its own bin.
const STRETCHES: [Stretch; 11] = [
    stretch(1_000 * DAY, u64::MAX, 845),
    stretch(100 * DAY, 10 * DAY, 755),
    stretch(10 * DAY, DAY, 665),
    stretch(DAY, DAY / 10, 575),
    stretch(10 * HOUR, HOUR, 561),
    stretch(HOUR, 6 * MINUTE, 471),
    stretch(10 * MINUTE, MINUTE, 421),
    stretch(MINUTE, 6 * SECOND, 331),
    stretch(10 * SECOND, SECOND, 281),
    stretch(SECOND, 100, 191),
    stretch(100, 10, 101),
];
const EACH: u64 = 100;
const BINS: u64 = 846;

/// A bin and its count share one word: the bin is in the upper ten bits.
const COUNT_BITS: u32 = 54;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

fn bin_of(ms: u64) -> u64 {
    if ms <= EACH {
        return ms;
    }
    let stretch = STRETCHES.iter().find(|s| ms > s.above);
    stretch.map_or(0, |s| s.first + (ms - s.above - 1) / s.step)
}

/// The shortest and the longest duration of a bin, ms.
fn span(bin: u64) -> (u64, u64) {
    if bin <= EACH {
        return (bin, bin);
    }
    let stretch = STRETCHES.iter().find(|s| bin >= s.first);
    stretch.map_or((0, 0), |s| {
        let below = s.above.saturating_add((bin - s.first).saturating_mul(s.step));
        (below.saturating_add(1), below.saturating_add(s.step))
    })
}

/// Durations: how many, their sum and squares, the shortest and the longest, and how many in each
/// bin. All are integers, so that copies that saw the same durations are equal. An empty histogram
/// has no heap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    count: u64,
    sum: u64,
    squares: u128,
    min: u64,
    max: u64,
    /// The bins that hold something, in order.
    bins: Vec<u64>,
}

impl Part for Histogram {
    const BLANK: &'static Self =
        &Histogram { count: 0, sum: 0, squares: 0, min: 0, max: 0, bins: Vec::new() };
}

impl Histogram {
    /// Adds a duration; a negative one counts as 0. A full histogram stays as it is. O(log bins).
    pub fn add(&mut self, ms: i64) {
        if self.count == COUNT_MASK {
            return;
        }
        let ms = ms.max(0) as u64;
        self.min = if self.count == 0 { ms } else { self.min.min(ms) };
        self.max = self.max.max(ms);
        self.count += 1;
        self.sum = self.sum.saturating_add(ms);
        self.squares = self.squares.saturating_add(u128::from(ms) * u128::from(ms));
        self.put(bin_of(ms), 1);
    }

    fn put(&mut self, bin: u64, n: u64) {
        let at = self.bins.partition_point(|b| b >> COUNT_BITS < bin);
        match self.bins.get_mut(at).filter(|b| **b >> COUNT_BITS == bin) {
            Some(word) => {
                let sum = (*word & COUNT_MASK).saturating_add(n).min(COUNT_MASK);
                *word = bin << COUNT_BITS | sum;
            }
            None => self.bins.insert(at, bin << COUNT_BITS | n.min(COUNT_MASK)),
        }
    }

    /// Adds all durations of another histogram, if there is room for them. O(bins).
    pub fn merge(&mut self, other: &Histogram) {
        if other.count == 0 || other.count > COUNT_MASK - self.count {
            return;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.squares = self.squares.saturating_add(other.squares);
        for word in &other.bins {
            self.put(word >> COUNT_BITS, word & COUNT_MASK);
        }
    }

    /// Removes all durations, and keeps the allocation.
    pub(crate) fn clear(&mut self) {
        let mut bins = std::mem::take(&mut self.bins);
        bins.clear();
        *self = Histogram { bins, ..Histogram::default() };
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum, ms.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The shortest, ms; 0 when there is none.
    pub fn min(&self) -> u64 {
        self.min
    }

    /// The longest, ms; 0 when there is none.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Their mean, ms; 0 when there is none.
    pub fn mean(&self) -> f64 {
        match self.count {
            0 => 0.0,
            n => self.sum as f64 / n as f64,
        }
    }

    /// The sample standard deviation, ms; 0 for fewer than two.
    pub fn deviation(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        // sum² / n in whole numbers, q²n + 2qr + r²/n for sum = qn + r: a difference of floats
        // would lose a small deviation beside a large mean.
        let (n, sum) = (u128::from(self.count), u128::from(self.sum));
        let (q, r) = (sum / n, sum % n);
        let whole = (q * q).saturating_mul(n).saturating_add(2 * q * r);
        let around = self.squares.saturating_sub(whole) as f64 - (r * r) as f64 / n as f64;
        (around.max(0.0) / (n - 1) as f64).sqrt()
    }

    /// The duration, ms, that this many hundredths of all durations do not exceed: the middle of
    /// its bin, so within 5 %. O(bins).
    pub fn percentile(&self, hundredths: u64) -> u64 {
        let rank = (u128::from(self.count) * u128::from(hundredths)).div_ceil(100).max(1) as u64;
        let mut seen = 0u64;
        for (from, to, n) in self.bins() {
            seen = seen.saturating_add(n);
            if seen >= rank {
                return (from + (to.min(self.max).saturating_sub(from)) / 2).clamp(self.min, self.max);
            }
        }
        self.max
    }

    /// The bins that hold something: their shortest and longest duration, ms, and their counts.
    pub fn bins(&self) -> impl ExactSizeIterator<Item = (u64, u64, u64)> + '_ {
        self.bins.iter().map(|word| {
            let (from, to) = span(word >> COUNT_BITS);
            (from, to, word & COUNT_MASK)
        })
    }

    /// About how many bytes it takes on the heap.
    pub(crate) fn heap(&self) -> usize {
        allotted(self.bins.capacity() * std::mem::size_of::<u64>())
    }
}

written! {
    /// A histogram in its written form: the squares in two halves, bins with their counts. The
    /// total count follows from the bins.
    struct Image {
        1 sum: u64,
        2 squares: u64,
        3 squares_above: u64,
        4 min: u64,
        5 max: u64,
        6 bins: Vec<(u16, u64)>,
    }
}

impl From<&Histogram> for Image {
    fn from(dist: &Histogram) -> Image {
        let bins = dist.bins.iter().map(|word| ((word >> COUNT_BITS) as u16, word & COUNT_MASK));
        let (squares, squares_above) = (dist.squares as u64, (dist.squares >> 64) as u64);
        Image { sum: dist.sum, squares, squares_above, min: dist.min, max: dist.max, bins: bins.collect() }
    }
}

impl TryFrom<Image> for Histogram {
    type Error = Unreadable;
    fn try_from(image: Image) -> Result<Histogram, Unreadable> {
        let Image { sum, min, max, bins: pairs, .. } = image;
        let squares = u128::from(image.squares_above) << 64 | u128::from(image.squares);
        let sorted = pairs.is_sorted_by(|a, b| a.0 < b.0);
        let held = pairs.iter().all(|(bin, n)| u64::from(*bin) < BINS && (1..=COUNT_MASK).contains(n));
        let first = pairs.first().map_or(0, |(bin, _)| u64::from(*bin));
        let last = pairs.last().map_or(0, |(bin, _)| u64::from(*bin));
        let count = pairs.iter().fold(0u64, |sum, (_, n)| sum.saturating_add(*n));
        let within = match count {
            0 => (sum, squares, min, max) == (0, 0, 0, 0),
            1 => min == max && sum == min,
            _ => min <= max && sum >= min.saturating_add(max) && u128::from(sum) <= product(count, max),
        };
        if !(sorted && held && within && count <= COUNT_MASK && first == bin_of(min) && last == bin_of(max)) {
            return Err(Unreadable);
        }
        let bins = pairs.into_iter().map(|(bin, n)| u64::from(bin) << COUNT_BITS | n).collect();
        Ok(Histogram { count, sum, squares, min, max, bins })
    }
}

impl<'a> Written<'a> for Histogram {
    fn blank() -> Self {
        Histogram::default()
    }

    fn is_blank(&self) -> bool {
        self.count == 0
    }

    fn write(&self, to: &mut Vec<u8>) {
        Image::from(self).write(to);
    }

    fn read<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        Image::read(from)?.try_into().map_err(Unreadable::error)
    }

    #[cfg(test)]
    fn check_growth() {
        Image::check_growth();
    }
}

fn product(a: u64, b: u64) -> u128 {
    u128::from(a) * u128::from(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_follow_each_other_and_none_is_wider_than_a_tenth() {
        let mut next = 0;
        for bin in 0..BINS - 1 {
            let (from, to) = span(bin);
            assert_eq!((from, bin_of(from), bin_of(to)), (next, bin, bin));
            assert!((to - from) * 10 <= from.max(10), "{from} to {to}");
            next = to + 1;
        }
        assert_eq!((next, bin_of(next), bin_of(u64::MAX)), (1_000 * DAY + 1, BINS - 1, BINS - 1));
    }

    #[test]
    fn no_bin_crosses_a_second_below_a_minute_nor_a_minute_an_hour_or_a_day_above() {
        let ends: Vec<u64> = (0..BINS).map(|bin| span(bin).1).collect();
        for n in 1..60 {
            assert!(ends.contains(&(n * SECOND)) && ends.contains(&(n * MINUTE)));
        }
        assert!((1..24).all(|n| ends.contains(&(n * HOUR))) && (1..7).all(|n| ends.contains(&(n * DAY))));
    }

    #[test]
    fn mean_deviation_and_percentiles_are_those_of_the_samples() {
        let mut dist = Histogram::default();
        assert_eq!((dist.mean(), dist.deviation(), dist.percentile(99)), (0.0, 0.0, 0));
        for ms in 1..=100 {
            dist.add(ms);
        }
        assert_eq!((dist.count(), dist.sum(), dist.min(), dist.max()), (100, 5050, 1, 100));
        assert_eq!([50, 95, 99].map(|p| dist.percentile(p)), [50, 95, 99]);
        assert!((dist.deviation() - 29.011_491_975_882_016).abs() < 1e-9);
        let mut far = Histogram::default();
        let day = 86_400_000 * 365;
        (day..day + 3).for_each(|ms| far.add(ms));
        assert!((far.deviation() - 1.0).abs() < 1e-9, "{}", far.deviation());
    }

    #[test]
    fn a_percentile_is_within_five_per_cent() {
        for ms in (0..2_000_000u64).step_by(7).chain([DAY - 1, 3 * DAY + 5, 900 * DAY]) {
            let mut dist = Histogram::default();
            dist.add(0);
            dist.add(ms as i64);
            dist.add(1_000_000_000_000);
            let got = dist.percentile(60);
            assert!(got.abs_diff(ms) * 20 <= ms.max(1), "{ms} became {got}");
        }
    }

    #[test]
    fn what_is_merged_is_as_if_added() {
        let (mut one, mut two, mut both) = (Histogram::default(), Histogram::default(), Histogram::default());
        for ms in 0..3_000i64 {
            let ms = ms * ms * 31 % 100_003;
            if ms % 2 == 0 { &mut one } else { &mut two }.add(ms);
            both.add(ms);
        }
        one.merge(&two);
        one.merge(&Histogram::default());
        assert_eq!(one, both);
        let mut empty = Histogram::default();
        empty.merge(&both);
        assert_eq!(empty, both);
    }

    #[test]
    fn bytes_that_contradict_themselves_are_no_distribution() {
        let good = || Image {
            sum: 30,
            squares: 500,
            squares_above: 0,
            min: 10,
            max: 20,
            bins: vec![(10, 1), (20, 1)],
        };
        assert!(Histogram::try_from(good()).is_ok());
        let tries: [fn(&mut Image); 7] = [
            |image| image.sum = 29,
            |image| image.sum = 41,
            |image| image.min = 11,
            |image| image.max = 19,
            |image| image.bins = vec![(20, 1), (10, 1)],
            |image| image.bins = vec![(10, 0), (20, 1)],
            |image| image.bins = vec![(10, 1), (20, 1), (1023, 1)],
        ];
        for spoil in tries {
            let mut image = good();
            spoil(&mut image);
            assert!(Histogram::try_from(image).is_err());
        }
    }
}
