//! The queues of a board, by name or those with most of something first.

use std::cmp::Reverse;

use memchr::memmem::Finder;

use crate::board::Board;
use crate::job::State;
use crate::queue::Queue;
use crate::reading::list::first;

/// What queues are sorted by, those with most of it first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueOrder {
    /// How many of their jobs are in a state.
    Jobs(State),
    /// The age of the oldest ready job.
    Oldest,
}

/// A queue in such an order: how much it has, and its name. Of equal ones the first name is first.
pub type RankedQueue<'b> = (Reverse<i64>, &'b [u8]);

impl Board {
    fn named_queues(&self) -> impl Iterator<Item = (&[u8], &Queue)> {
        self.queues.iter().filter(|(_, _, q)| Self::is_queue(q)).map(|(_, name, q)| (&**name, q))
    }

    /// How many queues [`Board::queue_names`] has. O(queues).
    pub fn queue_count(&self) -> usize {
        self.named_queues().count()
    }

    /// The queues that have jobs, have settings of their own or of groups, or are paused, by name.
    /// O(queues).
    pub fn queue_names(&self) -> Vec<&[u8]> {
        let mut names: Vec<&[u8]> = self.named_queues().map(|(name, _)| name).collect();
        names.sort_unstable();
        names
    }

    /// Of the queues whose names contain this text the first `n` behind a name, and whether there
    /// are more. O(queues + n log n).
    pub fn queues_after(&self, text: &[u8], after: Option<&[u8]>, n: usize) -> (Vec<&[u8]>, bool) {
        let mut wanted = named(text);
        let names = self.named_queues().map(|(name, _)| name);
        first(names.filter(|name| after.is_none_or(|after| *name > after) && wanted(name)), n)
    }

    /// The same in an order, behind a queue in that order. O(queues + n log n); by the oldest ready
    /// job also one look at each priority of each queue.
    pub fn queues_by(
        &self,
        order: QueueOrder,
        text: &[u8],
        after: Option<RankedQueue<'_>>,
        n: usize,
        now: i64,
    ) -> (Vec<RankedQueue<'_>>, bool) {
        let mut wanted = named(text);
        let named = self.named_queues().filter(|(name, _)| wanted(name));
        let ranked = named.map(|(name, queue)| (Reverse(self.rank(order, queue, now)), name));
        first(ranked.filter(|queue| after.is_none_or(|after| *queue > after)), n)
    }

    fn rank(&self, order: QueueOrder, queue: &Queue, now: i64) -> i64 {
        match order {
            QueueOrder::Jobs(state) => i64::try_from(queue.count(state)).unwrap_or(i64::MAX),
            QueueOrder::Oldest => self.oldest_ready(queue, now).unwrap_or(-1),
        }
    }
}

/// Whether a name contains this text; small and capital letters of ASCII are the same. O(bytes).
fn named(text: &[u8]) -> impl FnMut(&[u8]) -> bool {
    let text = Finder::new(&text.to_ascii_lowercase()).into_owned();
    let mut small: Vec<u8> = Vec::new();
    move |name| {
        small.clear();
        small.extend(name.iter().map(u8::to_ascii_lowercase));
        text.needle().is_empty() || text.find(&small).is_some()
    }
}
