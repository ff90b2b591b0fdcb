//! Queues that lack permits and for which clients wait.

use std::collections::{BTreeMap, BTreeSet};

use crate::structures::lazy::Part;

/// When to look at each of these queues, Unix ms: at the earliest time that was asked for, since the job
/// that needed the permits may be another by then.
#[derive(Default)]
pub(crate) struct PermitWaits {
    by_time: BTreeSet<(i64, u32)>,
    by_queue: BTreeMap<u32, i64>,
}

impl Part for PermitWaits {
    const BLANK: &'static Self = &PermitWaits { by_time: BTreeSet::new(), by_queue: BTreeMap::new() };
}

impl PermitWaits {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_time.is_empty()
    }

    /// Asks for a look at a queue. O(log n).
    pub fn add(&mut self, queue: u32, at: i64) {
        let known = self.by_queue.entry(queue).or_insert(i64::MAX);
        if at < *known {
            self.by_time.remove(&(*known, queue));
            self.by_time.insert((at, queue));
            *known = at;
        }
    }

    /// The next time.
    pub fn next_at(&self) -> Option<i64> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Removes and returns the next queue, if its time has come.
    pub fn pop(&mut self, now: i64) -> Option<u32> {
        self.next_at().filter(|at| *at <= now)?;
        let (_, queue) = self.by_time.pop_first()?;
        self.by_queue.remove(&queue);
        Some(queue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_looked_at_once_at_the_earliest_time() {
        let mut waits = PermitWaits::default();
        (0..1_000).for_each(|n| waits.add(7, 2_000 - n));
        (0..1_000).for_each(|n| waits.add(7, 1_500 + n));
        waits.add(8, 1_200);
        assert_eq!((waits.by_time.len(), waits.by_queue.len()), (2, 2));
        assert_eq!((waits.pop(1_000), waits.pop(1_001), waits.pop(1_001)), (None, Some(7), None));
        waits.add(7, 1_300);
        assert_eq!((waits.pop(2_000), waits.pop(2_000), waits.pop(2_000)), (Some(8), Some(7), None));
        assert!(waits.is_empty() && waits.by_queue.is_empty());
    }
}
