//! What jobs were posted with, kept once for all jobs that are alike.

use crate::settings::{LONGEST, MOST};
use crate::structures::byte_string::ByteString;

written! {
    /// The options of a job, each `None` unless its post named it: times in ms, -1 without end.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
    pub struct Options {
        /// How many failures are followed by another attempt.
        1 pub retries: Option<i64>,
        /// How many lost leases are followed by another claim.
        2 pub lapses: Option<i64>,
        /// The first pause after a failure, and the longest, ms.
        3 pub backoff: Option<(i64, i64)>,
        /// Per cent by which a pause varies either way.
        4 pub jitter: Option<i64>,
        /// How long a claim holds without a heartbeat, ms.
        5 pub lease: Option<i64>,
        /// How long one run may take, ms.
        6 pub timeout: Option<i64>,
        /// How long it may wait for its claim, ms.
        7 pub expire: Option<i64>,
        /// How long its record is retained when it is complete, ms.
        8 pub retain: Option<i64>,
        /// Permits that a claim of it takes. Kept with the job, since many jobs have one of their own.
        9 pub cost: Option<i64>,
    }
}

impl Options {
    /// Whether a client may name every value.
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

    /// These options; where one is not named, that of the others.
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

/// What jobs of one class share.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Class {
    /// Number of the queue's name.
    pub queue: u32,
    /// The name of the job, its type; empty when it has none.
    pub name: ByteString,
    /// What it was posted with, without its cost.
    pub options: Options,
}
