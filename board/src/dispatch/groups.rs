//! One group of a queue: its jobs, its settings, and what keeps it from giving one.
//! [`crate::dispatch::fair`] decides which group is next.

use std::collections::BTreeSet;

use crate::dispatch::buckets::{full_at, ready_at, Bucket, Refill};
use crate::dispatch::fair::Seat;
use crate::dispatch::limits::List;
use crate::job::order::ReadyKey;
use crate::job::State;
use crate::settings::{Overrides, Setting};
use crate::structures::byte_string::ByteString;
use crate::structures::sorted::SortedSlots;

/// What keeps a group out of the rounds although it has ready jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// It is paused until this time, Unix ms.
    Paused(i64),
    /// As many of its jobs run as its limit allows; the limit.
    Full(u64),
    /// It is ordered, and its last job has not ended.
    Ordered,
    /// Its next job lacks permits until this time, Unix ms: those of the group, or of a shared
    /// limit that it names.
    Dry(i64),
    /// A shared limit that it names itself is full.
    Limit,
}

/// Jobs of one queue that take turns with other groups.
#[derive(Default)]
pub(crate) struct Group {
    pub name: ByteString,
    pub ready: SortedSlots<ReadyKey>,
    /// The jobs of that line that have been claimed before, for an ordered group.
    pub again: BTreeSet<(ReadyKey, u32)>,
    pub counts: [u32; 8],
    /// How many of its jobs have been claimed and have not ended.
    pub open: u32,
    /// How many job records name it.
    pub refs: u32,
    pub settings: Overrides,
    /// It is paused until this time, Unix ms; 0 when it is not.
    pub paused: i64,
    pub seat: Seat,
    pub bucket: Option<Bucket>,
    /// Its key in [`crate::dispatch::Dispatch::rests`]: until when it lacks permits or, when
    /// nothing else needs it, until when its bucket is not full, Unix ms.
    pub rest: Option<i64>,
    /// The shared limits that it names itself; `None` when those of all groups count.
    pub limits: Option<List>,
    /// Whether one of these limits is full. Follows from them.
    pub barred: bool,
}

/// The settings in force for a group.
pub(crate) struct Terms {
    pub weight: u64,
    pub most: Option<u64>,
    pub ordered: bool,
    pub refill: Option<Refill>,
}

impl Group {
    pub fn value(&self, of_all: &Overrides, setting: Setting) -> i64 {
        let own = self.settings.get(setting).or_else(|| of_all.get(setting));
        own.unwrap_or(setting.spec().default)
    }

    pub fn terms(&self, of_all: &Overrides) -> Terms {
        if self.settings.is_empty() && of_all.is_empty() {
            return Terms { weight: 1, most: None, ordered: false, refill: None };
        }
        Terms {
            weight: self.value(of_all, Setting::Weight).max(1) as u64,
            most: u64::try_from(self.value(of_all, Setting::Concurrency)).ok(),
            ordered: self.value(of_all, Setting::Ordered) > 0,
            refill: Refill::of(|setting| self.value(of_all, setting)),
        }
    }

    /// The slot of the job that it gives next once nothing holds it.
    pub fn candidate(&self, terms: &Terms) -> Option<u32> {
        match terms.ordered && self.open > 0 {
            true => self.again.first().map(|(_, slot)| *slot),
            false => self.ready.first(),
        }
    }

    pub fn hold(&self, terms: &Terms) -> Option<Hold> {
        let runs = self.count(State::Claimed);
        let waits = || self.open > 0 && (runs > 0 || self.again.is_empty());
        match terms.most.filter(|most| runs >= *most) {
            _ if self.paused > 0 => Some(Hold::Paused(self.paused)),
            Some(most) => Some(Hold::Full(most)),
            None if terms.ordered && waits() => Some(Hold::Ordered),
            None if self.barred => Some(Hold::Limit),
            None => self.rest.map(Hold::Dry),
        }
    }

    /// Whether it has jobs, settings or a pause.
    pub fn is_known(&self) -> bool {
        self.refs > 0 || !self.settings.is_empty() || self.paused > 0 || self.limits.is_some()
    }

    /// Whether nothing needs it any more.
    pub fn is_unused(&self) -> bool {
        !self.is_known() && self.rest.is_none()
    }

    /// Until when it must rest for permits, Unix ms: see [`Group::rest`].
    pub fn rests_until(&self, of_all: &Overrides, cost: impl Fn(u32) -> i64, now: i64) -> Option<i64> {
        let terms = self.terms(of_all);
        let refill = terms.refill?;
        let until = match self.candidate(&terms) {
            Some(slot) => ready_at(&self.bucket, &refill, cost(slot)),
            None if !self.is_known() => full_at(&self.bucket, &refill),
            None => 0,
        };
        (until > now).then_some(until)
    }

    /// How many of its jobs are in this state. O(1).
    pub fn count(&self, state: State) -> u64 {
        self.counts.get(state as usize).copied().unwrap_or(0).into()
    }
}
