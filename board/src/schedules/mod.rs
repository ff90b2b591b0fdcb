//! Schedules: what they post, and when. They are few beside the jobs, and kept by id.
//!
//! | field | meaning |
//! |---|---|
//! | `next` | the intended time of the next child; [`NEVER`] while paused, and when the schedule is over |
//! | `at` | when that child is posted: `next` plus jitter |
//! | `last` | the number of the last child: `@id@last`; it only rises |
//! | `fired` | children posted so far |
//!
//! Uses `job`, `places` and `structures`.

pub(crate) mod cron;

use crate::board::Board;
use crate::item::{need, Item, Loading, SnapshotError};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::effect::is_name;
use crate::job::costs::are_costs;
use crate::job::gate::Gate;
use crate::job::kin::SHARE_MOST;
use crate::job::unique_key::Unique;
use crate::job::{is_time, Options, COSTS_MOST, META_MOST, NEVER};
use crate::places::labels::are_tags;
use crate::schedules::cron::{with_cron, CRON_LONGEST, ZONE_LONGEST};
use crate::settings::{LONGEST, MOST};
use crate::structures::byte_string::ByteString;
use crate::structures::lazy::Part;

/// The longest id of a schedule, bytes: the ids of its children must be ids of jobs.
pub const SCHEDULE_ID_LONGEST: usize = 230;
/// The numbers of children stay below this.
pub(crate) const NUMBERS: u64 = 1 << 53;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$inner:meta])* $value:ident = $number:literal $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub enum $name { $($(#[$inner])* $value = $number,)* }

        impl $name {
            /// Its name in commands and replies.
            pub fn name(self) -> &'static str {
                match self { $($name::$value => $word,)* }
            }

            /// The value of this name, in upper or lower case.
            pub fn named(word: &[u8]) -> Option<Self> {
                [$($name::$value,)*].into_iter().find(|v| word.eq_ignore_ascii_case(v.name().as_bytes()))
            }
        }

        impl From<$name> for u8 {
            fn from(value: $name) -> u8 {
                value as u8
            }
        }

        impl TryFrom<u8> for $name {
            type Error = &'static str;
            fn try_from(number: u8) -> Result<Self, &'static str> {
                match number { $($number => Ok($name::$value),)* _ => Err("word") }
            }
        }

        written_as_number!($name, $name::default());
    };
}

words! {
    /// What a schedule does about missed times.
    Backlog {
        /// Nothing.
        Skip = 0 "skip",
        /// One child, for the last of them.
        #[default]
        One = 1 "one",
        /// A child for each.
        All = 2 "all",
    }
}

words! {
    /// What a schedule does while its last child has not ended.
    Overlap {
        /// Posts anyway.
        #[default]
        Allow = 0 "allow",
        /// Posts nothing.
        Skip = 1 "skip",
        /// Cancels that child first, claimed or not.
        Replace = 2 "replace",
    }
}

written! {
    /// What a schedule posts.
    #[derive(Debug, Clone, Default, PartialEq)]
    pub struct Template {
        /// The payload, opaque bytes.
        1 pub payload: ByteString,
        /// Their name, the type of the job.
        2 pub name: Option<ByteString>,
        /// Their queue; `default` when not named.
        3 pub queue: Option<ByteString>,
        /// Their priority; higher ones are claimed first.
        4 pub priority: Option<i32>,
        /// How long after the intended time they become ready, ms.
        5 pub delay: Option<i64>,
        /// Options with defaults in the settings.
        6 pub options: Options,
        /// The user's own fields.
        7 pub meta: Vec<(ByteString, ByteString)>,
        /// Their group.
        8 pub group: Option<ByteString>,
        /// The user on whose behalf they are posted.
        9 pub user: Option<ByteString>,
        /// The jobs' tags.
        10 pub tags: Vec<ByteString>,
        /// The id of their parent.
        11 pub parent: Option<ByteString>,
        /// Their weight among the children of that parent.
        12 pub share: Option<u32>,
        /// The most live jobs of that user and name.
        13 pub most_live: Option<i64>,
        /// The unique key that a child takes.
        14 pub unique: Option<Unique>,
        /// The signals that must arrive before a child runs.
        15 pub gate: Option<Gate>,
        /// What a claim takes from single limits, by name.
        16 pub costs: Vec<(ByteString, i64)>,
    }
}

written! {
    /// A schedule. See the module's comment.
    #[derive(Debug, Clone, Default, PartialEq)]
    pub struct Schedule {
        /// Its id.
        1 pub id: ByteString,
        /// Interval between two times, ms; 0 when there is an expression.
        2 pub every: i64,
        /// A cron expression; empty when there is an interval.
        3 pub cron: ByteString,
        /// The zone of the expression; empty for UTC.
        4 pub zone: ByteString,
        /// The times are whole numbers of intervals from here, Unix ms.
        5 pub anchor: i64,
        /// No time is before this, Unix ms.
        6 pub start: Option<i64>,
        /// No time is after this, Unix ms.
        7 pub end: Option<i64>,
        /// The most children.
        8 pub max: Option<u64>,
        /// What it does about missed times.
        9 pub backlog: Backlog,
        /// What it does at a time while its last child is live.
        10 pub overlap: Overlap,
        /// By how much a child may be late on purpose, ms.
        11 pub jitter: i64,
        /// Whether it is paused.
        12 pub paused: bool,
        /// See the table in the module's comment.
        13 pub fired: u64,
        /// See the table in the module's comment.
        14 pub last: u64,
        /// The intended time of the last child, Unix ms.
        15 pub intended: Option<i64>,
        /// See the table in the module's comment.
        16 pub next: i64,
        /// See the table in the module's comment.
        17 pub at: i64,
        /// What it posts.
        18 pub template: Template,
        /// How often it passed over a time because the board would have refused the child.
        19 pub refused: u64,
        /// With [`Backlog::All`]: of the missed times only this many, the last ones; 0 for each.
        20 pub most_missed: u32,
        /// Missed times up to this one are what `most_missed` has left of them, Unix ms.
        21 pub(crate) counted: i64,
    }
}

/// The highest `most_missed`: a turn of the timer looks at as many times.
pub const BACKLOG_MOST: u32 = 400;

/// The id of the `n`th child of a schedule.
pub(crate) fn child_id(schedule: &[u8], n: u64) -> Vec<u8> {
    [b"@", schedule, b"@", n.to_string().as_bytes()].concat()
}

impl Schedule {
    /// Its state, as a word in replies.
    pub fn state(&self) -> &'static str {
        match (self.paused, self.next) {
            (true, _) => "paused",
            (_, NEVER) => "over",
            _ => "active",
        }
    }

    /// Its first time at or after `from`, without regard to START and END.
    fn time_from(&self, from: i64) -> Option<i64> {
        if self.every == 0 {
            return with_cron(&self.cron, &self.zone, |cron| cron.first_from(from));
        }
        let past = from.saturating_sub(self.anchor).max(0);
        let steps = past / self.every + i64::from(past % self.every > 0);
        self.anchor.checked_add(steps.checked_mul(self.every)?)
    }

    /// Its first time at or after `from`, between START and END; [`NEVER`] when there is none.
    pub(crate) fn first_from(&self, from: i64) -> i64 {
        let found = self.time_from(from.max(self.start.unwrap_or(0)));
        found.filter(|t| *t <= self.end.unwrap_or(NEVER) && *t < NEVER).unwrap_or(NEVER)
    }

    /// Its last time up to `until`, but at least `next`.
    pub(crate) fn last_until(&self, until: i64) -> i64 {
        let until = until.min(self.end.unwrap_or(NEVER));
        let found = match self.every {
            0 => with_cron(&self.cron, &self.zone, |cron| cron.last_until(until)),
            every => Some(until - until.saturating_sub(self.anchor).rem_euclid(every)),
        };
        found.unwrap_or(self.next).max(self.next)
    }

    /// The first of its last `most_missed` times up to `last`, but at least `next`.
    /// O(`most_missed`) for an expression.
    pub(crate) fn first_of_the_last(&self, last: i64) -> i64 {
        let steps = i64::from(self.most_missed.saturating_sub(1));
        if self.every > 0 {
            return last.saturating_sub(steps.saturating_mul(self.every)).max(self.next);
        }
        let mut at = last;
        for _ in 0..steps {
            let before = self.last_until(at.saturating_sub(1));
            if before <= self.next || before >= at {
                return self.next;
            }
            at = before;
        }
        at
    }

    /// Whether a decision could have given every part.
    pub(crate) fn is_valid(&self) -> bool {
        let name = |name: &Option<ByteString>| name.as_ref().is_none_or(|n| is_name(n));
        let template = &self.template;
        (1..=SCHEDULE_ID_LONGEST).contains(&self.id.len())
            && (0..=LONGEST).contains(&self.every)
            && self.cron.len() <= CRON_LONGEST
            && self.zone.len() <= ZONE_LONGEST
            && self.cron.is_empty() == (self.every > 0)
            && [self.anchor, self.next, self.at].into_iter().all(is_time)
            && [self.start, self.end, self.intended].into_iter().flatten().all(is_time)
            && self.max.is_none_or(|n| n < NUMBERS)
            && (0..=LONGEST).contains(&self.jitter)
            && self.fired < NUMBERS
            && self.last < NUMBERS
            && self.at >= self.next
            && (self.at == NEVER) == (self.next == NEVER)
            && (!self.paused || self.next == NEVER)
            && name(&template.name)
            && name(&template.queue)
            && name(&template.group)
            && name(&template.user)
            && template.most_live.is_none_or(|n| (1..=MOST).contains(&n) && template.user.is_some())
            && template.unique.as_ref().is_none_or(Unique::is_valid)
            && self.refused < NUMBERS
            && self.most_missed <= BACKLOG_MOST
            && (self.most_missed == 0 || self.backlog == Backlog::All)
            && is_time(self.counted)
            && template.delay.is_none_or(|ms| (0..=LONGEST).contains(&ms))
            && template.options.is_valid()
            && template.meta.len() <= META_MOST
            && template.meta.iter().all(|(field, _)| field.len() <= 255)
            && are_tags(template.tags.iter().map(|tag| &**tag))
            && name(&template.parent)
            && are_costs(template.costs.iter().map(|(limit, cost)| (&**limit, *cost)), COSTS_MOST)
            && template.share.is_none_or(|share| (1..=SHARE_MOST).contains(&i64::from(share)))
    }

    fn bytes(&self) -> usize {
        let text = |t: &Option<ByteString>| t.as_ref().map_or(0, |t| t.len());
        let template = &self.template;
        2 * std::mem::size_of::<Self>()
            + 3 * self.id.len()
            + self.cron.len()
            + self.zone.len()
            + template.payload.len()
            + text(&template.name)
            + text(&template.queue)
            + text(&template.group)
            + text(&template.user)
            + text(&template.parent)
            + template.unique.as_ref().map_or(0, Unique::bytes)
            + template.meta.iter().map(|(f, v)| f.len() + v.len() + 32).sum::<usize>()
            + template.tags.iter().map(|tag| tag.len() + 16).sum::<usize>()
            + template.costs.iter().map(|(limit, _)| limit.len() + 32).sum::<usize>()
    }
}

/// All schedules of a board, by id and by when they fire.
#[derive(Default)]
pub(crate) struct Schedules {
    by_id: BTreeMap<ByteString, Schedule>,
    order: BTreeSet<(i64, ByteString)>,
    heap: usize,
}

impl Part for Schedules {
    const BLANK: &'static Self = &Schedules { by_id: BTreeMap::new(), order: BTreeSet::new(), heap: 0 };
}

impl Schedules {
    pub fn get(&self, id: &[u8]) -> Option<&Schedule> {
        self.by_id.get(id)
    }

    /// Adds a schedule, in place of the one with its id.
    pub fn put(&mut self, schedule: Schedule) {
        self.remove(&schedule.id.clone());
        self.heap += schedule.bytes();
        if schedule.at != NEVER {
            self.order.insert((schedule.at, schedule.id.clone()));
        }
        self.by_id.insert(schedule.id.clone(), schedule);
    }

    /// Removes a schedule; false when there is none.
    pub fn remove(&mut self, id: &[u8]) -> bool {
        let Some(old) = self.by_id.remove(id) else { return false };
        self.heap = self.heap.saturating_sub(old.bytes());
        self.order.remove(&(old.at, old.id));
        true
    }

    /// Changes numbers and times of a schedule; its size must stay the same.
    pub fn change(&mut self, id: &[u8], change: impl FnOnce(&mut Schedule)) -> bool {
        let Some(schedule) = self.by_id.get_mut(id) else { return false };
        let before = schedule.at;
        change(schedule);
        if schedule.at != before {
            self.order.remove(&(before, schedule.id.clone()));
            if schedule.at != NEVER {
                self.order.insert((schedule.at, schedule.id.clone()));
            }
        }
        true
    }

    /// The schedule that fires first.
    pub fn first(&self) -> Option<&Schedule> {
        self.by_id.get(&self.order.first()?.1)
    }

    /// When the first schedule fires, Unix ms. O(log n).
    pub fn soonest(&self) -> i64 {
        self.order.first().map_or(NEVER, |(at, _)| *at)
    }

    /// The schedules behind `after`, by id.
    pub fn after(&self, after: Option<&[u8]>) -> impl Iterator<Item = &Schedule> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.by_id.range::<[u8], _>((from, Bound::Unbounded)).map(|(_, schedule)| schedule)
    }

    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    pub fn bytes(&self) -> usize {
        self.heap
    }

    /// Checks that both orders agree.
    pub fn check(&self) -> Result<(), String> {
        let timed: BTreeSet<(i64, &ByteString)> =
            self.by_id.values().filter(|s| s.at != NEVER).map(|s| (s.at, &s.id)).collect();
        let same = timed.into_iter().eq(self.order.iter().map(|(at, id)| (*at, id)));
        let heap: usize = self.by_id.values().map(Schedule::bytes).sum();
        match same && heap == self.heap && self.by_id.values().all(Schedule::is_valid) {
            true => Ok(()),
            false => Err("schedules do not stand in order".into()),
        }
    }
}

impl<'a> Item<'a> for Schedule {
    fn each(board: &'a Board, put: impl FnMut(&Self)) {
        board.schedules.after(None).for_each(put);
    }

    fn load(self, board: &mut Board, _loading: &mut Loading) -> Result<(), SnapshotError> {
        need(self.is_valid(), "schedule")?;
        need(board.schedules.get(&self.id).is_none(), "a schedule twice")?;
        board.schedules.put(self);
        Ok(())
    }
}
