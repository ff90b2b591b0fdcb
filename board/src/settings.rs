//! Every setting of a board: its name, where it can be set, its default and its range. They are
//! written only here; the module's configuration is made from this table.

use serde::Deserializer;

use crate::events::ALL_EVENTS;
use crate::format::{read_map, write_map, Unreadable, Written};
use crate::structures::allotted::allotted;

/// One setting. The numbers are part of the format of effects and snapshots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Setting {
    Lease = 0,
    Retries = 1,
    Lapses = 2,
    BackoffBase = 3,
    BackoffMax = 4,
    Jitter = 5,
    Timeout = 6,
    Expire = 7,
    RetainComplete = 8,
    RetainResult = 9,
    RetainFailed = 10,
    RetainTrashed = 11,
    RetainCancelled = 12,
    KeepComplete = 13,
    KeepFailed = 14,
    KeepTrashed = 15,
    KeepCancelled = 16,
    Tombstones = 17,
    TombstoneTtl = 18,
    HistoryFirst = 19,
    HistoryLast = 20,
    Concurrency = 21,
    Grace = 22,
    CancelGrace = 23,
    Ownerless = 24,
    Weight = 25,
    Ordered = 26,
    Ageing = 27,
    StatsDays = 28,
    Rate = 29,
    RatePeriod = 30,
    Burst = 31,
    SessionGrace = 32,
    Events = 33,
    MaxJobs = 34,
    MaxBytes = 35,
    EventsTracked = 36,
    MaxQueues = 37,
    MaxGroups = 38,
    MaxSchedules = 39,
    MaxKeys = 40,
    MaxSteps = 41,
    MaxStepBytes = 42,
    OutputBytes = 43,
    RetainOutput = 44,
    LapseDelay = 45,
}

/// What a setting belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// A whole board.
    Board,
    /// A queue.
    Queue,
    /// A group, or all groups of a queue.
    Group,
    /// A shared limit.
    Limit,
}

/// Where a setting can be set, and its bounds.
pub struct Spec {
    /// The setting.
    pub setting: Setting,
    /// Its name in commands and configuration.
    pub name: &'static str,
    /// Its value when nobody has set it.
    pub default: i64,
    /// Its lowest value.
    pub min: i64,
    /// Its highest value.
    pub max: i64,
    /// Whether the module's configuration has it.
    pub module: bool,
    /// Whether a board can have its own.
    pub board: bool,
    /// Whether a queue can have its own.
    pub queue: bool,
    /// Whether a group can have its own.
    pub group: bool,
    /// Whether queues without a value of their own have the board's.
    pub inherited: bool,
}

impl Spec {
    /// Whether it can be set at this level.
    pub fn at(&self, level: Level) -> bool {
        match level {
            Level::Board => self.board,
            Level::Queue => self.queue,
            Level::Group => self.group,
            Level::Limit => {
                use Setting::*;
                matches!(self.setting, Concurrency | Rate | RatePeriod | Burst)
            }
        }
    }
}

/// The longest duration of a setting, ms: some 34 years.
pub const LONGEST: i64 = 1 << 40;
/// The highest count of a setting.
pub const MOST: i64 = i32::MAX as i64;
const DAY: i64 = 86_400_000;

const fn spec(setting: Setting, name: &'static str, default: i64, range: (i64, i64)) -> Spec {
    let (min, max) = range;
    Spec {
        setting,
        name,
        default,
        min,
        max,
        module: true,
        board: true,
        queue: true,
        group: false,
        inherited: true,
    }
}

const fn whole_board(spec: Spec) -> Spec {
    Spec { queue: false, ..spec }
}

const fn not_module(spec: Spec) -> Spec {
    Spec { module: false, ..spec }
}

const fn also_group(spec: Spec) -> Spec {
    Spec { group: true, ..spec }
}

const fn of_each_level(spec: Spec) -> Spec {
    Spec { module: false, group: true, inherited: false, ..spec }
}

const fn group_only(spec: Spec) -> Spec {
    Spec { board: false, queue: false, module: false, group: true, ..spec }
}

const fn own_total(spec: Spec) -> Spec {
    Spec { module: false, inherited: false, ..spec }
}

const fn board_only(spec: Spec) -> Spec {
    Spec { queue: false, module: false, ..spec }
}

/// All settings, by number.
pub const SPECS: [Spec; 46] = {
    use Setting::*;
    [
        spec(Lease, "lease", 30_000, (1, LONGEST)),
        spec(Retries, "retries", 10, (-1, MOST)),
        spec(Lapses, "lapses", 5, (-1, MOST)),
        spec(BackoffBase, "backoff-base", 5_000, (0, LONGEST)),
        spec(BackoffMax, "backoff-max", 3_600_000, (0, LONGEST)),
        spec(Jitter, "jitter", 10, (0, 100)),
        spec(Timeout, "timeout", -1, (-1, LONGEST)),
        spec(Expire, "expire", -1, (-1, LONGEST)),
        whole_board(spec(RetainComplete, "retain-complete", 0, (-1, LONGEST))),
        whole_board(spec(RetainResult, "retain-result", 3_600_000, (-1, LONGEST))),
        whole_board(spec(RetainFailed, "retain-failed", 30 * DAY, (-1, LONGEST))),
        whole_board(spec(RetainTrashed, "retain-trashed", 30 * DAY, (-1, LONGEST))),
        whole_board(spec(RetainCancelled, "retain-cancelled", DAY, (-1, LONGEST))),
        whole_board(spec(KeepComplete, "keep-complete", 100_000, (0, MOST))),
        whole_board(spec(KeepFailed, "keep-failed", 100_000, (0, MOST))),
        whole_board(spec(KeepTrashed, "keep-trashed", 100_000, (0, MOST))),
        whole_board(spec(KeepCancelled, "keep-cancelled", 100_000, (0, MOST))),
        board_only(spec(Tombstones, "tombstones", 10_000, (0, 1_000_000))),
        board_only(spec(TombstoneTtl, "tombstone-ttl", 60_000, (0, LONGEST))),
        board_only(spec(HistoryFirst, "history-first", 5, (0, 1_000))),
        board_only(spec(HistoryLast, "history-last", 15, (0, 1_000))),
        also_group(not_module(spec(Concurrency, "concurrency", -1, (-1, MOST)))),
        spec(Grace, "grace", 0, (0, LONGEST)),
        spec(CancelGrace, "cancel-grace", -1, (-1, LONGEST)),
        board_only(spec(Ownerless, "ownerless", 0, (0, 1))),
        group_only(spec(Weight, "weight", 1, (1, 1_000))),
        group_only(spec(Ordered, "ordered", 0, (0, 1))),
        not_module(spec(Ageing, "ageing", 0, (0, MOST))),
        board_only(spec(StatsDays, "stats-days", 30, (0, 3_650))),
        of_each_level(spec(Rate, "rate", -1, (-1, MOST))),
        of_each_level(spec(RatePeriod, "rate-period", 1_000, (1, MOST))),
        of_each_level(spec(Burst, "burst", 1, (1, MOST))),
        whole_board(spec(SessionGrace, "session-grace", 0, (0, LONGEST))),
        whole_board(spec(Events, "events", 0, (0, ALL_EVENTS as i64))),
        also_group(own_total(spec(MaxJobs, "max-jobs", -1, (-1, MOST)))),
        own_total(spec(MaxBytes, "max-bytes", -1, (-1, 1 << 53))),
        whole_board(spec(EventsTracked, "events-tracked", 0, (0, 1))),
        board_only(spec(MaxQueues, "max-queues", 100_000, (1, 10_000_000))),
        board_only(spec(MaxGroups, "max-groups", 1_000_000, (1, 100_000_000))),
        board_only(spec(MaxSchedules, "max-schedules", 10_000, (1, 1_000_000))),
        board_only(spec(MaxKeys, "max-keys", 10_000_000, (1, 1_000_000_000))),
        board_only(spec(MaxSteps, "max-steps", 1_000, (0, 100_000))),
        board_only(spec(MaxStepBytes, "max-step-bytes", 16 << 20, (0, 1 << 30))),
        board_only(spec(OutputBytes, "output-bytes", 65_536, (0, 64 << 20))),
        board_only(spec(RetainOutput, "retain-output", 60_000, (0, LONGEST))),
        spec(LapseDelay, "lapse-delay", 0, (0, LONGEST)),
    ]
};

impl Setting {
    /// Its row in the table.
    pub fn spec(self) -> &'static Spec {
        let [first, ..] = &SPECS;
        SPECS.get(self as usize).unwrap_or(first)
    }

    /// The setting of this name.
    pub fn named(name: &[u8]) -> Option<Setting> {
        SPECS.iter().find(|s| name.eq_ignore_ascii_case(s.name.as_bytes())).map(|s| s.setting)
    }
}

impl From<Setting> for u8 {
    fn from(setting: Setting) -> u8 {
        setting as u8
    }
}

impl TryFrom<u8> for Setting {
    type Error = &'static str;
    fn try_from(number: u8) -> Result<Setting, &'static str> {
        SPECS.iter().map(|s| s.setting).find(|s| *s as u8 == number).ok_or("setting")
    }
}

written_as_number!(Setting, Setting::Lease);

/// The values of the server's configuration: in force where neither the job nor its queue nor its
/// board has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules([i64; SPECS.len()]);

impl Default for Rules {
    fn default() -> Self {
        Rules(std::array::from_fn(|i| SPECS.get(i).map_or(0, |s| s.default)))
    }
}

impl Rules {
    /// The value of a setting.
    pub fn get(&self, setting: Setting) -> i64 {
        self.0.get(setting as usize).copied().unwrap_or_default()
    }

    /// Sets a value; the caller has checked its range.
    pub fn set(&mut self, setting: Setting, value: i64) {
        if let Some(place) = self.0.get_mut(setting as usize) {
            *place = value;
        }
    }
}

/// Values that a board, a queue, a group or a shared limit has of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides(Vec<(Setting, i64)>);

impl Overrides {
    /// Its own value, if it has one.
    pub fn get(&self, setting: Setting) -> Option<i64> {
        self.0.iter().find(|(s, _)| *s == setting).map(|(_, v)| *v)
    }

    /// Bytes on the heap.
    pub(crate) fn bytes(&self) -> usize {
        allotted(self.0.capacity() * std::mem::size_of::<(Setting, i64)>())
    }

    /// Whether it limits the number of live jobs.
    pub(crate) fn bounds_jobs(&self) -> bool {
        self.get(Setting::MaxJobs).is_some_and(|most| most >= 0)
    }

    /// Sets its own value, or removes it with `None`.
    pub fn set(&mut self, setting: Setting, value: Option<i64>) {
        let at = self.0.iter().position(|(s, _)| *s == setting);
        match (at.and_then(|at| self.0.get_mut(at)), value) {
            (Some(place), Some(value)) => place.1 = value,
            (None, Some(value)) => {
                self.0.push((setting, value));
                self.0.sort_unstable();
            }
            (_, None) => self.0.retain(|(s, _)| *s != setting),
        }
    }

    /// Removes all own values.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Whether it has no value of its own.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the table allows every value at this level.
    pub fn is_valid(&self, level: Level) -> bool {
        self.0.windows(2).all(|w| matches!(w, [a, b] if a.0 < b.0))
            && self.0.iter().all(|(setting, value)| {
                let spec = setting.spec();
                (spec.min..=spec.max).contains(value) && spec.at(level)
            })
    }
}

/// Written as a map from the number of each setting to its value.
impl<'a> Written<'a> for Overrides {
    fn blank() -> Self {
        Overrides::default()
    }

    fn is_blank(&self) -> bool {
        self.is_empty()
    }

    fn write(&self, to: &mut Vec<u8>) {
        write_map(to, self.0.iter().map(|(setting, value)| (u8::from(*setting), *value)));
    }

    fn read<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        let named = |(number, value)| Some((Setting::try_from(number).ok()?, value));
        let values: Option<Vec<_>> = read_map(from)?.into_iter().map(named).collect();
        values.map(Overrides).ok_or_else(|| Unreadable.error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_stand_at_their_numbers() {
        for (i, spec) in SPECS.iter().enumerate() {
            assert_eq!(spec.setting as usize, i);
            assert!((spec.min..=spec.max).contains(&spec.default));
            assert_eq!(Setting::named(spec.name.to_uppercase().as_bytes()), Some(spec.setting));
        }
    }

    #[test]
    fn an_own_value_comes_and_goes() {
        let mut own = Overrides::default();
        own.set(Setting::Lease, Some(5));
        own.set(Setting::Lease, Some(6));
        assert_eq!(own.get(Setting::Lease), Some(6));
        own.set(Setting::Lease, None);
        assert!(own.is_empty());
    }
}
