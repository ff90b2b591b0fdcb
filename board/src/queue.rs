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
use crate::structures::byte_string::ByteString;
use crate::structures::sorted::SortedSlots;

/// A queue.
#[derive(Default)]
pub struct Queue {
    /// Its ready jobs without a group.
    pub(crate) ready: SortedSlots<ReadyKey>,
    /// Its groups, while it has any.
    pub(crate) fair: Option<Box<Fair>>,
    /// Its scheduled, blocked and ended jobs.
    pub(crate) by_queue: ByQueue,
    pub(crate) counts: [u64; 8],
    pub(crate) settings: Overrides,
    /// Bytes of the records of its jobs.
    pub(crate) bytes: usize,
    /// It is paused until this time, Unix ms; 0 when it is not paused itself.
    pub(crate) paused: i64,
    /// How fast jobs may be claimed from it; `None` without a limit. Follows from settings.
    pub(crate) refill: Option<Refill>,
    /// Its permits; `None` when all are there.
    pub(crate) bucket: Option<Bucket>,
    /// The shared limits that it names.
    pub(crate) limits: List,
    /// The queue to which its jobs move in place of failing for good.
    pub(crate) dead: Option<ByteString>,
    /// Which record has its statistics of today.
    pub(crate) today: Today,
    pub(crate) local: QueueLocal,
}

impl Queue {
    /// Whether it has something of its own that a snapshot keeps.
    pub(crate) fn is_configured(&self) -> bool {
        !self.settings.is_empty() || !self.limits.is_empty() || self.dead.is_some()
    }

    /// How many of its jobs are in this state.
    pub(crate) fn count(&self, state: State) -> u64 {
        self.counts.get(state as usize).copied().unwrap_or(0)
    }
}
