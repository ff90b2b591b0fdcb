//! What jobs were posted with, kept once for all that are alike.

use crate::settings::{LONGEST, MOST};
use crate::structures::byte_string::ByteString;

written! {
    /// What a job was posted with, each only if it was named: times in ms, -1 without end.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
    pub struct Options {
        /// Failures that are followed by another try.
        1 pub retries: Option<i64>,
        /// Lost leases that are followed by another claim.
        2 pub lapses: Option<i64>,
        /// First pause after a failure, and the longest.
        3 pub backoff: Option<(i64, i64)>,
        /// Per cent by which a pause is varied either way.
        4 pub jitter: Option<i64>,
        /// How long a claim holds without a heartbeat.
        5 pub lease: Option<i64>,
        /// How long one run may take.
        6 pub timeout: Option<i64>,
        /// How long it may wait to be claimed.
        7 pub expire: Option<i64>,
        /// How long its record stays when it is complete.
        8 pub retain: Option<i64>,
        /// Tokens that a claim of it takes.
        9 pub cost: Option<i64>,
    }
}

impl Options {
    /// Whether every value is one that a client may name.
    pub fn is_valid(&self) -> bool {
        let within =
            |value: Option<i64>, least: i64, most: i64| value.is_none_or(|v| (least..=most).contains(&v));
        let (base, max) = self.backoff.unzip();
        within(self.retries, -1, MOST)
            && within(self.lapses, -1, MOST)
            && within(base, 0, LONGEST)
            && within(max, 0, LONGEST)
            && within(self.jitter, 0, 100)
            && within(self.lease, 1, LONGEST)
            && within(self.timeout, -1, LONGEST)
            && within(self.expire, -1, LONGEST)
            && within(self.retain, -1, LONGEST)
            && within(self.cost, 1, MOST)
    }

    /// These, and where they are silent the others.
    pub fn or(self, other: Options) -> Options {
        Options {
            retries: self.retries.or(other.retries),
            lapses: self.lapses.or(other.lapses),
            backoff: self.backoff.or(other.backoff),
            jitter: self.jitter.or(other.jitter),
            lease: self.lease.or(other.lease),
            timeout: self.timeout.or(other.timeout),
            expire: self.expire.or(other.expire),
            retain: self.retain.or(other.retain),
            cost: self.cost.or(other.cost),
        }
    }
}

/// What jobs of one kind share.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Class {
    /// Number of the queue's name.
    pub queue: u32,
    /// The name of the job, its type; empty when it has none.
    pub name: ByteString,
    /// What it was posted with.
    pub options: Options,
}
