//! Who is next, and what keeps a job back.
//!
//! | file | what it decides | invariant |
//! |---|---|---|
//! | `groups` | what a group of a queue is | |
//! | `fair`, `rounds` | whose turn it is | a group has at most one place in the rounds |
//! | `concurrency` | how many jobs may run at once | every claim checks it |
//! | `limits` | shared limits, which queues and groups name | a running job counts wherever its limits are named |
//! | `buckets`, `rates` | how fast jobs may be claimed | whole numbers, nothing rounded |
//! | `permit_waits` | when to look at queues that lack permits | a queue has at most one time |
//! | `costs` | what a claim takes of them, and what is settled when its cost is known | a report that comes twice changes nothing |
//! | `candidates`, `best_queue` | which queue has the best job, where many have some | no job is claimed before its entry says |
//! | `pauses` | what is paused | a paused queue, group or limit knows until when |
//!
//! Uses `job` and `structures`.

pub(crate) mod best_queue;
pub(crate) mod buckets;
pub(crate) mod candidates;
pub(crate) mod concurrency;
pub(crate) mod costs;
pub(crate) mod fair;
pub(crate) mod groups;
pub(crate) mod items;
pub(crate) mod limits;
pub(crate) mod lists;
pub(crate) mod pauses;
pub(crate) mod permit_waits;
pub(crate) mod rates;
pub(crate) mod rounds;

use std::collections::BTreeSet;

use crate::structures::byte_string::ByteString;
use crate::structures::lazy::{Lazy, Part};
use buckets::{Bucket, Refill};
use limits::Limits;
use pauses::Pauses;

/// What keeps jobs back, and the turns of groups.
#[derive(Default)]
pub(crate) struct Dispatch {
    pub(crate) pauses: Lazy<Pauses>,
    pub(crate) rate: Lazy<Rate>,
    /// The shared limits.
    pub(crate) limits: Lazy<Limits>,
    /// Groups that wait for permits, or that are kept for their bucket alone: until when (Unix ms),
    /// which queue, which group.
    pub(crate) rests: BTreeSet<(i64, ByteString, u32)>,
    /// Queues whose groups are still to be reviewed, see [`fair::Fair::review`].
    pub(crate) reviews: BTreeSet<ByteString>,
    /// How many tags groups have been given in the rounds of their queues.
    pub(crate) turns: u64,
}

/// How fast jobs may be claimed from the whole board.
#[derive(Default)]
pub(crate) struct Rate {
    /// `None` without a limit. Follows from settings.
    pub(crate) refill: Option<Refill>,
    /// The board's permits; `None` when all are there.
    pub(crate) bucket: Option<Bucket>,
}

impl Part for Rate {
    const BLANK: &'static Self = &Rate { refill: None, bucket: None };
}

impl Dispatch {
    /// Sets how fast jobs may be claimed from the whole board.
    pub(crate) fn set_refill(&mut self, refill: Option<Refill>) {
        if refill != self.rate.refill {
            self.rate.refill = refill;
        }
    }
}
