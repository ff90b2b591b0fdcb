//! What a board keeps of a queue.

use crate::dispatch::buckets::{Bucket, Refill};
use crate::dispatch::fair::Fair;
use crate::job::order::ReadyKey;
use crate::job::State;
use crate::local::QueueLocal;
use crate::places::by_queue::ByQueue;
use crate::settings::Overrides;
use crate::statistics::days::Today;
use crate::structures::allotted::allotted;
use crate::structures::byte_string::ByteString;
use crate::structures::lazy::{Lazy, Part};
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
    pub(crate) seldom: Lazy<Seldom>,
    /// Which record has its statistics of today.
    pub(crate) today: Today,
    pub(crate) local: QueueLocal,
}

/// What few queues have.
#[derive(Default)]
pub(crate) struct Seldom {
    /// How fast jobs may be claimed from it; `None` without a limit. Follows from settings.
    pub refill: Option<Refill>,
    /// Its permits; `None` when all are there.
    pub bucket: Option<Bucket>,
    /// The shared limits that it names.
    pub limits: Vec<u32>,
    /// The queue to which its jobs move in place of failing for good.
    pub dead: Option<ByteString>,
}

impl Part for Seldom {
    const BLANK: &'static Self = &Seldom { refill: None, bucket: None, limits: Vec::new(), dead: None };
}

impl Queue {
    /// Sets how fast jobs may be claimed from it. Without a rate it has no permits: a snapshot keeps
    /// none for it.
    pub(crate) fn set_refill(&mut self, refill: Option<Refill>) {
        if refill != self.seldom.refill {
            self.seldom.refill = refill;
        }
        if refill.is_none() && self.seldom.bucket.is_some() {
            self.seldom.bucket = None;
        }
    }

    /// Whether it has something of its own that a snapshot keeps.
    pub(crate) fn is_configured(&self) -> bool {
        !self.settings.is_empty() || !self.seldom.limits.is_empty() || self.seldom.dead.is_some()
    }

    /// About how many bytes it takes beside its own struct.
    pub(crate) fn heap(&self) -> usize {
        let seldom = self.seldom.allocated() + allotted(self.seldom.limits.capacity() * 4);
        let fair = self.fair.as_ref().map_or(0, |fair| allotted(std::mem::size_of::<Fair>()) + fair.bytes());
        self.ready.bytes() + fair + self.by_queue.bytes() + self.settings.bytes() + seldom
    }

    /// How many of its jobs are in this state.
    pub(crate) fn count(&self, state: State) -> u64 {
        self.counts.get(state as usize).copied().unwrap_or(0)
    }
}
