//! A sorted sequence of slots that costs four bytes an entry.
//!
//! The keys are not stored: they live in the records and are read through a function of the
//! caller's, so a key must not change while its slot is in a line. The sequence is cut into runs of
//! at most [`RUN`] slots. Lines are read at the head and grow at the tail, so the first run and the
//! last are kept by themselves, those between in a tree. Each but the first has a separator, which
//! is at most its first key.
//!
//! Taking the head and adding at the tail touch one run; any other position costs a walk down the
//! tree, O(log n), and a search in one run.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Bound, RangeBounds};

use crate::structures::allotted::allotted;

const RUN: usize = 256;

/// With room for this many slots an empty line keeps its memory: a queue that runs empty between jobs
/// must not pay for it.
const SMALL: usize = 16;

type Run = VecDeque<u32>;

/// The runs behind the first, of which there is at least one.
struct Rest<K> {
    separator: K,
    last: Run,
    /// Those before the last, by their separators.
    between: BTreeMap<K, Run>,
}

impl<K: Ord + Copy> Rest<K> {
    /// The runs whose separators are within these bounds.
    fn range(&self, bounds: impl RangeBounds<K> + Clone) -> impl DoubleEndedIterator<Item = (K, &Run)> {
        let last = bounds.contains(&self.separator).then_some((self.separator, &self.last));
        self.between.range(bounds).map(|(separator, run)| (*separator, run)).chain(last)
    }

    /// The run in which a key belongs, with its separator; `None` when that is the first of the line.
    fn of(&mut self, key: K) -> Option<(K, &mut Run)> {
        if self.separator <= key {
            return Some((self.separator, &mut self.last));
        }
        self.between.range_mut(..=key).next_back().map(|(separator, run)| (*separator, run))
    }

    /// Adds a run.
    fn add(&mut self, separator: K, run: Run) {
        if separator < self.separator {
            self.between.insert(separator, run);
        } else {
            let last = std::mem::replace(&mut self.last, run);
            self.between.insert(std::mem::replace(&mut self.separator, separator), last);
        }
    }

    /// Removes a run. The last is empty afterwards when there was no other.
    fn take(&mut self, separator: K) -> Run {
        if separator != self.separator {
            return self.between.remove(&separator).unwrap_or_default();
        }
        let (before, run) = self.between.pop_last().unwrap_or((separator, Run::new()));
        self.separator = before;
        std::mem::replace(&mut self.last, run)
    }

    /// Removes the first run; `None` when there is none left.
    fn take_first(&mut self) -> Option<Run> {
        let run = match self.between.pop_first() {
            Some((_, run)) => run,
            None => std::mem::take(&mut self.last),
        };
        (!run.is_empty()).then_some(run)
    }

    /// Appends a run to the one before it.
    fn join(&mut self, left: K, right: K) {
        let mut moved = self.take(right);
        if let Some((_, run)) = self.of(left) {
            run.append(&mut moved);
        }
    }

    /// Joins a run of `len` slots, which are few, with a neighbour, or removes it when it is empty.
    fn tidy(&mut self, separator: K, len: usize) {
        if len == 0 {
            self.take(separator);
            return;
        }
        let small = |(separator, run): (K, &Run)| (run.len() < RUN / 2).then_some(separator);
        let after = (Bound::Excluded(separator), Bound::Unbounded);
        let next = self.range(after).next().and_then(small);
        let previous = self.range(..separator).next_back().and_then(small);
        match (next, previous) {
            (Some(next), _) => self.join(separator, next),
            (None, Some(previous)) => self.join(previous, separator),
            (None, None) => {}
        }
    }
}

/// A line. See the module's comment.
pub struct SortedSlots<K> {
    first: Run,
    rest: Option<Box<Rest<K>>>,
    len: usize,
}

impl<K> Default for SortedSlots<K> {
    fn default() -> Self {
        SortedSlots::new()
    }
}

impl<K> SortedSlots<K> {
    /// A line without slots.
    pub const fn new() -> Self {
        SortedSlots { first: Run::new(), rest: None, len: 0 }
    }
}

impl<K: Ord + Copy> SortedSlots<K> {
    /// How many slots are in the line.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the line is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes that the line takes beside its own struct.
    pub fn bytes(&self) -> usize {
        let node = std::mem::size_of::<(K, Run)>() * 3 / 2;
        let rest = |rest: &Rest<K>| allotted(std::mem::size_of::<Rest<K>>()) + rest.between.len() * node;
        allotted(self.first.capacity() * 4)
            + (self.len - self.first.len()) * 4
            + self.rest.as_deref().map_or(0, rest)
    }

    /// The head of the line. O(1).
    pub fn first(&self) -> Option<u32> {
        self.first.front().copied()
    }

    /// The runs behind the first whose separators are within these bounds.
    fn range(&self, bounds: impl RangeBounds<K> + Clone) -> impl DoubleEndedIterator<Item = (K, &Run)> {
        self.rest.as_deref().into_iter().flat_map(move |rest| rest.range(bounds.clone()))
    }

    /// Adds a slot at the position of its key.
    pub fn insert(&mut self, key: K, slot: u32, key_of: impl Fn(u32) -> K) {
        self.len += 1;
        let run = match self.rest.as_deref_mut().and_then(|rest| rest.of(key)) {
            Some((_, run)) => run,
            None => &mut self.first,
        };
        if run.back().is_none_or(|last| key_of(*last) <= key) {
            if run.len() < RUN {
                run.push_back(slot);
                return;
            }
            // The key is behind a full run: at the tail of the line, or in a gap.
            let mut fresh = Run::with_capacity(8);
            fresh.push_back(slot);
            self.add_run(key, fresh);
            return;
        }
        let at = run.partition_point(|other| key_of(*other) < key);
        run.insert(at, slot);
        if run.len() > RUN {
            let upper = run.split_off(RUN / 2);
            if let Some(first) = upper.front() {
                self.add_run(key_of(*first), upper);
            }
        }
    }

    fn add_run(&mut self, separator: K, run: Run) {
        match &mut self.rest {
            Some(rest) => rest.add(separator, run),
            None => self.rest = Some(Box::new(Rest { separator, last: run, between: BTreeMap::new() })),
        }
    }

    /// Removes a slot with this key; false when the line does not have it.
    pub fn remove(&mut self, key: K, slot: u32) -> bool {
        let rest = self.rest.as_deref_mut().filter(|_| self.first.front() != Some(&slot));
        let (separator, run) = match rest.and_then(|rest| rest.of(key)) {
            Some((separator, run)) => (Some(separator), run),
            None => (None, &mut self.first),
        };
        let found = if run.front() == Some(&slot) {
            run.pop_front().is_some()
        } else if run.back() == Some(&slot) {
            run.pop_back().is_some()
        } else {
            run.iter().position(|other| *other == slot).is_some_and(|at| run.remove(at).is_some())
        };
        if found {
            let left = run.len();
            self.len -= 1;
            if left < RUN / 4 {
                self.tidy(separator, left);
            }
        }
        found
    }

    /// A run has become small, with `len` slots left.
    fn tidy(&mut self, separator: Option<K>, len: usize) {
        let Some(separator) = separator else {
            if len == 0 {
                self.next_run();
            }
            return;
        };
        if let Some(rest) = &mut self.rest {
            rest.tidy(separator, len);
        }
        self.rest.take_if(|rest| rest.last.is_empty());
    }

    /// The first run is empty: the next one takes its place. An empty line gives back what it no longer
    /// needs.
    fn next_run(&mut self) {
        match self.rest.as_deref_mut().and_then(Rest::take_first) {
            Some(run) => self.first = run,
            None if self.first.capacity() > SMALL => self.first = Run::new(),
            None => return,
        }
        self.rest.take_if(|rest| rest.last.is_empty());
    }

    /// The slots from the first whose key is at least `from`, in order. O(log n) to begin.
    pub fn iter_from<'a>(
        &'a self,
        from: Option<K>,
        key_of: impl Fn(u32) -> K + 'a,
    ) -> impl Iterator<Item = u32> + 'a {
        let start = from.and_then(|key| self.range(..=key).next_back()).map(|(separator, _)| separator);
        let head = start.is_none().then_some(&self.first);
        let tail = self.range((start.map_or(Bound::Unbounded, Bound::Included), Bound::Unbounded));
        let mut before = from;
        head.into_iter().chain(tail.map(|(_, run)| run)).flat_map(move |run| {
            let skip = match before {
                Some(from) => run.partition_point(|slot| key_of(*slot) < from),
                None => 0,
            };
            if skip < run.len() {
                before = None;
            }
            run.range(skip..).copied()
        })
    }

    /// The slots from the last whose key is at most `from`, backwards. O(log n) to begin.
    pub fn iter_back_from<'a>(
        &'a self,
        from: Option<K>,
        key_of: impl Fn(u32) -> K + 'a,
    ) -> impl Iterator<Item = u32> + 'a {
        let tail = self.range((Bound::Unbounded, from.map_or(Bound::Unbounded, Bound::Included)));
        let mut after = from;
        tail.rev().map(|(_, run)| run).chain(std::iter::once(&self.first)).flat_map(move |run| {
            let upto = match after {
                Some(from) => run.partition_point(|slot| key_of(*slot) <= from),
                None => run.len(),
            };
            if upto > 0 {
                after = None;
            }
            run.range(..upto).rev().copied()
        })
    }

    /// How many slots are before this key, and whether the count is exact: when `most` runs from
    /// either end do not reach the key, there may be more. O(log n + most).
    pub fn before(&self, key: K, most: usize, key_of: impl Fn(u32) -> K) -> (usize, bool) {
        let within = |run: &Run| run.partition_point(|slot| key_of(*slot) < key);
        let Some((own, run)) = self.range(..=key).next_back() else {
            return (within(&self.first), true);
        };
        let mut before = self.range(..own);
        let ahead = before.by_ref().take(most).map(|(_, run)| run.len()).sum::<usize>();
        let ahead = self.first.len() + ahead + within(run);
        if before.next().is_none() {
            return (ahead, true);
        }
        let mut after = self.range((Bound::Excluded(own), Bound::Unbounded)).rev();
        let behind = after.by_ref().take(most).map(|(_, run)| run.len()).sum::<usize>();
        let behind = behind + run.len() - within(run);
        match after.next() {
            None => (self.len - behind, true),
            Some(_) => (ahead, false),
        }
    }

    /// A line of slots that the caller has sorted. O(n).
    pub fn from_sorted(slots: &[u32], key_of: impl Fn(u32) -> K) -> Self {
        let mut runs = slots.chunks(RUN);
        let first = runs.next().map(|run| run.iter().copied().collect()).unwrap_or_default();
        let mut between: BTreeMap<K, Run> =
            runs.filter_map(|run| Some((key_of(*run.first()?), run.iter().copied().collect()))).collect();
        let last = between.pop_last();
        let rest = last.map(|(separator, last)| Box::new(Rest { separator, last, between }));
        SortedSlots { first, rest, len: slots.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn key_of(slot: u32) -> (u32, u32) {
        (slot.wrapping_mul(2_654_435_761) >> 20, slot)
    }

    fn rising(slot: u32) -> (u32, u32) {
        (0, slot)
    }

    fn agrees(line: &SortedSlots<(u32, u32)>, model: &BTreeSet<(u32, u32)>) {
        let slots: Vec<u32> = model.iter().map(|(_, slot)| *slot).collect();
        assert_eq!(line.len(), model.len());
        assert_eq!(line.iter_from(None, key_of).collect::<Vec<_>>(), slots);
        let back: Vec<u32> = line.iter_back_from(None, key_of).collect();
        assert_eq!(back, slots.iter().rev().copied().collect::<Vec<_>>());
        assert_eq!(line.first(), slots.first().copied());
    }

    proptest! {
        #[test]
        fn a_line_is_a_sorted_set(steps in prop::collection::vec((any::<bool>(), 0u32..4000), 1..6000)) {
            let mut line = SortedSlots::default();
            let mut model = BTreeSet::new();
            for (add, slot) in steps {
                let key = key_of(slot);
                if add && model.insert(key) {
                    line.insert(key, slot, key_of);
                } else {
                    prop_assert_eq!(line.remove(key, slot), model.remove(&key));
                }
            }
            agrees(&line, &model);
            let from = (1 << 11, 0);
            let forward: Vec<u32> = model.range(from..).map(|k| k.1).collect();
            prop_assert_eq!(line.iter_from(Some(from), key_of).collect::<Vec<_>>(), forward);
            let back: Vec<u32> = model.range(..=from).rev().map(|k| k.1).collect();
            prop_assert_eq!(line.iter_back_from(Some(from), key_of).collect::<Vec<_>>(), back);
            for key in [from, (0, 0), (1 << 12, 0)] {
                let ahead = model.range(..key).count();
                prop_assert_eq!(line.before(key, RUN, key_of), (ahead, true));
                let (least, exact) = line.before(key, 1, key_of);
                prop_assert!(least == ahead || !exact && least < ahead);
            }
            let sorted: Vec<u32> = model.iter().map(|k| k.1).collect();
            agrees(&SortedSlots::from_sorted(&sorted, key_of), &model);
        }
    }

    #[test]
    fn appending_fills_runs_and_taking_heads_empties_them() {
        let mut line = SortedSlots::default();
        for slot in 0..100_000 {
            line.insert(rising(slot), slot, rising);
        }
        assert!(line.range(..).count() <= 100_000 / RUN + 1);
        for slot in 0..100_000 {
            assert_eq!(line.first(), Some(slot));
            assert!(line.remove(rising(slot), slot));
        }
        assert!(line.is_empty() && line.rest.is_none());
    }

    #[test]
    fn runs_thinned_at_random_are_joined() {
        let mut line = SortedSlots::default();
        (0..100_000).for_each(|slot| line.insert(rising(slot), slot, rising));
        (0..100_000).filter(|s| s % 64 != 0).for_each(|s| assert!(line.remove(rising(s), s)));
        let runs = line.range(..).count();
        assert!(runs < 60, "{runs} runs for {} slots", line.len());
    }
}
