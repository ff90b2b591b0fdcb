//! A sorted sequence of slots that costs four bytes an entry.
//!
//! The keys are not stored: they live in the records and are read through a function of the
//! caller's, so a key must not change while its slot is in a line. The sequence is cut into runs of
//! at most [`RUN`] slots; the first run is kept by itself (lines are read at the head), the others
//! in a tree under a separator that is at most their first key.
//!
//! Taking the head and adding at the tail touch one run; any other position costs a walk down the
//! tree, O(log n), and a search in one run.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use crate::structures::allotted::allotted;
use crate::structures::lazy::Lazy;

const RUN: usize = 256;

/// With room for this many slots an empty line keeps its memory: a queue that runs empty between jobs
/// must not pay for it.
const SMALL: usize = 16;

type Run = VecDeque<u32>;

/// A line. See the module's comment.
pub struct SortedSlots<K> {
    first: Run,
    rest: Lazy<BTreeMap<K, Run>>,
    len: usize,
}

impl<K> Default for SortedSlots<K> {
    fn default() -> Self {
        SortedSlots { first: Run::new(), rest: Lazy::default(), len: 0 }
    }
}

impl<K> SortedSlots<K> {
    /// A line without slots.
    pub const fn new() -> Self {
        SortedSlots { first: Run::new(), rest: Lazy::new(), len: 0 }
    }
}

impl<K: Ord + Copy + 'static> SortedSlots<K> {
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
        let tree = self.rest.len() * (std::mem::size_of::<(K, Run)>() * 3 / 2);
        allotted(self.first.capacity() * 4) + (self.len - self.first.len()) * 4 + tree
    }

    /// The head of the line. O(1).
    pub fn first(&self) -> Option<u32> {
        self.first.front().copied()
    }

    /// Adds a slot at the position of its key.
    pub fn insert(&mut self, key: K, slot: u32, key_of: impl Fn(u32) -> K) {
        self.len += 1;
        // Nearly always the tail: found without a comparison on the way down.
        let at_tail = self.rest.last_key_value().map(|(separator, _)| *separator <= key);
        let run = match at_tail {
            None => &mut self.first,
            Some(true) => self.rest.last_entry().map_or(&mut self.first, |last| last.into_mut()),
            Some(false) => match self.rest.range_mut(..=key).next_back() {
                Some((_, run)) => run,
                None => &mut self.first,
            },
        };
        if run.back().is_none_or(|last| key_of(*last) <= key) {
            if run.len() < RUN {
                run.push_back(slot);
                return;
            }
            // The key is behind a full run: at the tail of the line, or in a gap.
            let mut fresh = Run::with_capacity(8);
            fresh.push_back(slot);
            self.rest.insert(key, fresh);
            return;
        }
        let at = run.partition_point(|other| key_of(*other) < key);
        run.insert(at, slot);
        if run.len() > RUN {
            let upper = run.split_off(RUN / 2);
            if let Some(first) = upper.front() {
                self.rest.insert(key_of(*first), upper);
            }
        }
    }

    /// Removes a slot with this key; false when the line does not have it.
    pub fn remove(&mut self, key: K, slot: u32) -> bool {
        let mut separator = None;
        let mut run = &mut self.first;
        if run.front() != Some(&slot) && !self.rest.is_empty() {
            if let Some((s, found)) = self.rest.range_mut(..=key).next_back() {
                separator = Some(*s);
                run = found;
            }
        }
        let found = if run.front() == Some(&slot) {
            run.pop_front().is_some()
        } else if run.back() == Some(&slot) {
            run.pop_back().is_some()
        } else {
            run.iter().position(|other| *other == slot).is_some_and(|at| run.remove(at).is_some())
        };
        if found {
            self.len -= 1;
            self.tidy(separator);
        }
        found
    }

    /// Joins a run that has become small with a neighbour, and moves a new head to the front.
    fn tidy(&mut self, separator: Option<K>) {
        let Some(separator) = separator else {
            if self.first.is_empty() {
                self.next_run();
            }
            return;
        };
        let Some(len) = self.rest.get(&separator).map(Run::len) else { return };
        if len == 0 {
            self.rest.remove(&separator);
        } else if len < RUN / 4 {
            let after = (Bound::Excluded(separator), Bound::Unbounded);
            let small = |(key, run): (&K, &Run)| (run.len() < RUN / 2).then_some(*key);
            if let Some(next) = self.rest.range(after).next().and_then(small) {
                self.join(separator, next);
            } else if let Some(previous) = self.rest.range(..separator).next_back().and_then(small) {
                self.join(previous, separator);
            }
        }
    }

    /// The first run is empty: the next one takes its place. An empty line gives back what it no longer
    /// needs.
    fn next_run(&mut self) {
        match self.rest.there().and_then(BTreeMap::pop_first) {
            Some((_, run)) => self.first = run,
            None if self.first.capacity() > SMALL => self.first = Run::new(),
            None => return,
        }
        if self.rest.is_empty() {
            self.rest = Lazy::default();
        }
    }

    fn join(&mut self, left: K, right: K) {
        if let Some(mut moved) = self.rest.remove(&right) {
            if let Some(run) = self.rest.get_mut(&left) {
                run.append(&mut moved);
            }
        }
    }

    /// The slots from the first whose key is at least `from`, in order. O(log n) to begin.
    pub fn iter_from<'a>(
        &'a self,
        from: Option<K>,
        key_of: impl Fn(u32) -> K + 'a,
    ) -> impl Iterator<Item = u32> + 'a {
        let start = from.and_then(|k| self.rest.range(..=k).next_back().map(|(s, _)| *s));
        let head = start.is_none().then_some(&self.first);
        let tail = match start {
            Some(s) => self.rest.range(s..),
            None => self.rest.range(..),
        };
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
        let tail = match from {
            Some(k) => self.rest.range(..=k),
            None => self.rest.range(..),
        };
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
        let Some((own, run)) = self.rest.range(..=key).next_back() else {
            return (within(&self.first), true);
        };
        let mut before = self.rest.range(..own);
        let ahead = before.by_ref().take(most).map(|(_, run)| run.len()).sum::<usize>();
        let ahead = self.first.len() + ahead + within(run);
        if before.next().is_none() {
            return (ahead, true);
        }
        let mut after = self.rest.range((Bound::Excluded(own), Bound::Unbounded)).rev();
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
        let rest: BTreeMap<K, Run> =
            runs.filter_map(|run| Some((key_of(*run.first()?), run.iter().copied().collect()))).collect();
        let rest = if rest.is_empty() { Lazy::default() } else { Lazy::holding(rest) };
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
        assert!(line.rest.len() <= 100_000 / RUN + 1);
        for slot in 0..100_000 {
            assert_eq!(line.first(), Some(slot));
            assert!(line.remove(rising(slot), slot));
        }
        assert!(line.is_empty() && line.rest.is_empty());
    }

    #[test]
    fn runs_thinned_at_random_are_joined() {
        let mut line = SortedSlots::default();
        (0..100_000).for_each(|slot| line.insert(rising(slot), slot, rising));
        (0..100_000).filter(|s| s % 64 != 0).for_each(|s| assert!(line.remove(rising(s), s)));
        assert!(line.rest.len() < 60, "{} runs for {} slots", line.rest.len(), line.len());
    }
}
