//! What jobs were posted with, kept once for all jobs that are alike.

use std::ops::RangeInclusive;

use crate::settings::{Setting, LONGEST, MOST};
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

/// An option that is one number.
pub struct Number<'a> {
    /// Its value.
    pub value: &'a mut Option<i64>,
    /// What a post may name.
    pub range: RangeInclusive<i64>,
    /// Whether it is a time, ms.
    pub time: bool,
    /// Whether 0 is refused: -1 stands for none then.
    pub nonzero: bool,
}

const NO_OPTIONS: Options = Options {
    retries: None,
    lapses: None,
    backoff: None,
    jitter: None,
    lease: None,
    timeout: None,
    expire: None,
    retain: None,
    cost: None,
};

impl Options {
    /// The options that are one number: their names in posts, and in the fields of a schedule.
    pub const NUMBERS: [(&'static str, &'static str); 8] = [
        ("RETRIES", "retries"),
        ("LAPSES", "lapses"),
        ("JITTER", "backoff-jitter"),
        ("LEASE", "lease"),
        ("TIMEOUT", "timeout"),
        ("EXPIRE", "expire"),
        ("RETAIN", "retain"),
        ("COST", "cost"),
    ];

    /// The option that posts call so, if it is one of [`Options::NUMBERS`].
    pub fn number(&mut self, name: &str) -> Option<Number<'_>> {
        let (value, range, time) = match name {
            "RETRIES" => (&mut self.retries, -1..=MOST, false),
            "LAPSES" => (&mut self.lapses, -1..=MOST, false),
            "JITTER" => (&mut self.jitter, 0..=100, false),
            "LEASE" => (&mut self.lease, 1..=LONGEST, true),
            "TIMEOUT" => (&mut self.timeout, -1..=LONGEST, true),
            "EXPIRE" => (&mut self.expire, -1..=LONGEST, true),
            "RETAIN" => (&mut self.retain, -1..=LONGEST, true),
            "COST" => (&mut self.cost, 1..=MOST, false),
            _ => return None,
        };
        Some(Number { value, range, time, nonzero: matches!(name, "TIMEOUT" | "EXPIRE") })
    }

    /// The option that stands for a setting, if it is named.
    pub(crate) fn of(&self, setting: Setting) -> Option<i64> {
        match setting {
            Setting::Lease => self.lease,
            Setting::Retries => self.retries,
            Setting::Lapses => self.lapses,
            Setting::BackoffBase => self.backoff.map(|(base, _)| base),
            Setting::BackoffMax => self.backoff.map(|(_, max)| max),
            Setting::Jitter => self.jitter,
            Setting::Timeout => self.timeout,
            Setting::Expire => self.expire,
            Setting::RetainComplete | Setting::RetainResult => self.retain,
            _ => None,
        }
    }

    /// Whether a client may name every value.
    pub fn is_valid(&self) -> bool {
        let mut own = *self;
        let mut within = |name: &str| {
            own.number(name).is_some_and(|n| n.value.is_none_or(|value| n.range.contains(&value)))
        };
        let pause = |ms: i64| (0..=LONGEST).contains(&ms);
        Self::NUMBERS.iter().all(|(name, _)| within(name))
            && self.backoff.is_none_or(|(base, max)| pause(base) && pause(max))
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
    /// What it was posted with, without its cost; `None` for no options.
    pub own: Option<Box<Options>>,
}

impl Class {
    /// What it was posted with, without its cost.
    pub fn options(&self) -> &Options {
        self.own.as_deref().unwrap_or(&NO_OPTIONS)
    }
}
