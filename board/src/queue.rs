//! What a board keeps of a queue.

use crate::dispatch::buckets::{Bucket, Refill};
use crate::dispatch::fair::Fair;
use crate::dispatch::limits::List;
use crate::job::order::ReadyKey;
use crate::job::State;
use crate::local::QueueLocal;
use crate::places::by_queue::ByQueue;
use crate::settings::Overrides;
use crate::statistics::days::Today;
use crate::structures::sorted::SortedSlots;

/// A named lane.
#[derive(Default)]
pub struct Queue {
    /// Ready jobs without a group.
    pub(crate) ready: SortedSlots<ReadyKey>,
    /// Its groups, while it has any.
    pub(crate) fair: Option<Box<Fair>>,
    /// Its jobs that are scheduled, blocked or have ended.
    pub(crate) by_queue: ByQueue,
    pub(crate) counts: [u64; 8],
    pub(crate) settings: Overrides,
    /// Bytes of the records of its jobs.
    pub(crate) bytes: usize,
    /// Nothing is claimed from it until then, Unix ms; 0 when it is not paused itself.
    pub(crate) paused: i64,
    /// How fast jobs may be claimed from it, by its settings.
    pub(crate) refill: Option<Refill>,
    /// The tokens for that.
    pub(crate) bucket: Option<Bucket>,
    /// The limits that it names.
    pub(crate) limits: List,
    /// Where today's statistics of it stand.
    pub(crate) today: Today,
    pub(crate) local: QueueLocal,
}

impl Queue {
    /// How many of its jobs are in that state.
    pub(crate) fn count(&self, state: State) -> u64 {
        self.counts.get(state as usize).copied().unwrap_or(0)
    }
}
