//! Settings of a board and of its queues.

use crate::board::Board;
use crate::dispatch::buckets::Refill;
use crate::effect::{is_name, ApplyError, Validate};
use crate::settings::{Rules, Setting};

/// A queue, or the whole board.
pub type Scope<'a> = Option<&'a [u8]>;

/// Where a value in force comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The group.
    Group,
    /// All groups of the queue.
    Groups,
    /// The shared limit.
    Limit,
    /// The queue.
    Queue,
    /// The board.
    Board,
    /// The server's configuration.
    Module,
    /// The default: nobody set it.
    Default,
}

impl Source {
    /// Its name in replies.
    pub fn name(self) -> &'static str {
        match self {
            Source::Group => "group",
            Source::Groups => "groups",
            Source::Limit => "limit",
            Source::Queue => "queue",
            Source::Board => "board",
            Source::Module => "module",
            Source::Default => "default",
        }
    }
}

written! {
    /// A setting was set, or reset.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Configured<'a> {
        /// The queue, or the whole board.
        1 pub queue: Scope<'a>,
        /// The setting.
        2 pub setting: Setting,
        /// Its new value, or `None` for the value of the level above.
        3 pub value: Option<i64>,
    }
}

impl Validate for Configured<'_> {
    fn is_valid(&self, _board: &Board) -> bool {
        self.queue.is_none_or(is_name)
    }
}

/// Whether a change may make jobs claimable.
fn wakes(setting: Setting) -> bool {
    use Setting::*;
    matches!(setting, Concurrency | Rate | RatePeriod | Burst)
}

impl Configured<'_> {
    pub(crate) fn apply(&self, board: &mut Board, _now: i64) -> Result<(), ApplyError> {
        let spec = self.setting.spec();
        if self.value.is_some_and(|v| !(spec.min..=spec.max).contains(&v)) {
            return Err(ApplyError);
        }
        board.emit_setting(spec.name, self.queue, None, self.value);
        let Some(name) = self.queue else {
            if !spec.board {
                return Err(ApplyError);
            }
            board.settings.set(self.setting, self.value);
            board.set_stats();
            board.wake_at(0);
            board.dispatch.refill = Refill::set_by(&board.settings);
            if wakes(self.setting) {
                board.wake_all();
            }
            if !spec.inherited {
                board.find_bounds();
            }
            return Ok(());
        };
        if !spec.queue {
            return Err(ApplyError);
        }
        let number = board.queue(name);
        let queue = board.queues.get_mut(number).ok_or(ApplyError)?;
        let before = queue.settings.is_empty();
        queue.settings.set(self.setting, self.value);
        let after = queue.settings.is_empty();
        queue.refill = Refill::set_by(&queue.settings);
        if wakes(self.setting) {
            board.wake_queue(number);
        }
        match (before, after) {
            (true, false) => board.queues.hold(number),
            (false, true) => {
                board.queues.release(number);
            }
            _ => {}
        }
        if !spec.inherited {
            board.find_bounds();
        }
        Ok(())
    }
}

impl Board {
    /// The value in force, and where it comes from.
    pub fn setting(&self, scope: Scope<'_>, setting: Setting, rules: &Rules) -> (i64, Source) {
        let spec = setting.spec();
        let queue = scope.and_then(|name| self.queues.get(self.queues.find(name)?));
        if let Some(value) = queue.and_then(|q| q.settings.get(setting)) {
            return (value, Source::Queue);
        }
        let here = scope.is_none() || spec.inherited;
        if let Some(value) = self.settings.get(setting).filter(|_| here) {
            return (value, Source::Board);
        }
        match rules.get(setting) {
            value if spec.module && value != spec.default => (value, Source::Module),
            _ => (spec.default, Source::Default),
        }
    }

    /// The settings that a board or a queue has of its own.
    pub fn own_settings(&self, scope: Scope<'_>) -> Vec<Setting> {
        let own = match scope {
            None => Some(&self.settings),
            Some(name) => self.queues.find(name).and_then(|q| self.queues.get(q)).map(|q| &q.settings),
        };
        let all = crate::settings::SPECS.iter().map(|s| s.setting);
        all.filter(|s| own.is_some_and(|o| o.get(*s).is_some())).collect()
    }
}
