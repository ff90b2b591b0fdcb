//! The keys that order jobs.

use std::cmp::Reverse;

use crate::job::{Claim, Job};

/// Best first: higher priority, then ready for longer, then posted earlier.
pub(crate) type ReadyKey = (Reverse<i32>, i64, i64);
/// Earliest first, then posted earlier.
pub(crate) type TimeKey = (i64, i64);

impl Job {
    /// A job with ageing is at level 0, and earlier by what its priority is worth: of two jobs of
    /// the same ageing the key puts the same one first at any time.
    pub(crate) fn ready_key(&self) -> ReadyKey {
        match self.ageing() {
            0 => self.plain_key(),
            ageing => (Reverse(0), self.since.get() - i64::from(self.priority) * ageing, self.seq.get()),
        }
    }

    /// The key that orders the next jobs of several queues.
    pub(crate) fn plain_key(&self) -> ReadyKey {
        (Reverse(self.priority), self.since.get(), self.seq.get())
    }

    pub(crate) fn at_key(&self) -> TimeKey {
        (self.at.get(), self.seq.get())
    }

    /// When the wait of a blocked job times out, Unix ms, or [`NEVER`](crate::job::NEVER).
    pub(crate) fn wait_until(&self) -> i64 {
        self.extras.as_ref().map_or(crate::job::NEVER, |extras| extras.remembered.until())
    }

    pub(crate) fn wait_key(&self) -> TimeKey {
        (self.wait_until(), self.seq.get())
    }

    pub(crate) fn ended_key(&self) -> TimeKey {
        (self.extras.as_ref().map_or(0, |r| r.ended), self.seq.get())
    }

    pub(crate) fn lease_key(&self, claim: &Claim) -> TimeKey {
        (claim.next_at(), self.seq.get())
    }
}
