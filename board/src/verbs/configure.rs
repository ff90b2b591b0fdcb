//! Settings of a board, of its queues and groups, and of shared limits.

use crate::board::Board;
use crate::dispatch::buckets::Refill;
use crate::effect::{ApplyError, Validate};
use crate::events::number;
use crate::scope::{Scope, ALL_GROUPS};
use crate::settings::{Overrides, Rules, Setting, SPECS};

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
    fn of(scope: Scope<'_>) -> Source {
        match scope {
            Scope::Board => Source::Board,
            Scope::Queue(_) => Source::Queue,
            Scope::Group(_, ALL_GROUPS) => Source::Groups,
            Scope::Group(..) => Source::Group,
            Scope::Limit(_) => Source::Limit,
        }
    }

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
        /// What it counts for.
        1 pub scope: Scope<'a> = Scope::Board,
        /// The setting.
        2 pub setting: Setting,
        /// Its new value, or `None` for the value of the level above.
        3 pub value: Option<i64>,
    }
}

impl Validate for Configured<'_> {
    fn is_valid(&self, _board: &Board) -> bool {
        self.scope.is_valid()
    }
}

/// Whether a change may make jobs claimable.
fn wakes(setting: Setting) -> bool {
    use Setting::*;
    matches!(setting, Concurrency | Rate | RatePeriod | Burst)
}

impl Configured<'_> {
    pub(crate) fn apply(&self, board: &mut Board, _now: i64) -> Result<(), ApplyError> {
        let (setting, spec) = (self.setting, self.setting.spec());
        let in_range = self.value.is_none_or(|value| (spec.min..=spec.max).contains(&value));
        if !in_range || !spec.at(self.scope.level()) {
            return Err(ApplyError);
        }
        board.emit_setting(spec.name, self.scope, number("value", self.value));
        match self.scope {
            Scope::Board => board.configure_board(setting, self.value),
            Scope::Queue(queue) => return board.configure_queue(queue, setting, self.value),
            Scope::Group(queue, group) => return board.configure_group(queue, group, setting, self.value),
            Scope::Limit(limit) => return board.configure_limit(limit, setting, self.value),
        }
        Ok(())
    }
}

impl Board {
    fn configure_board(&mut self, setting: Setting, value: Option<i64>) {
        self.settings.set(setting, value);
        self.set_stats();
        self.wake_at(0);
        self.dispatch.set_refill(Refill::set_by(&self.settings));
        if wakes(setting) {
            self.rebuild_candidates();
            self.wake_all();
        }
        if !setting.spec().inherited {
            self.find_bounds();
            self.frees_anywhere();
        }
    }

    fn configure_queue(
        &mut self,
        name: &[u8],
        setting: Setting,
        value: Option<i64>,
    ) -> Result<(), ApplyError> {
        let number = self.queue(name);
        let queue = self.queues.get_mut(number).ok_or(ApplyError)?;
        let before = queue.settings.is_empty();
        queue.settings.set(setting, value);
        let after = queue.settings.is_empty();
        queue.set_refill(Refill::set_by(&queue.settings));
        if wakes(setting) {
            self.wake_queue(number);
        }
        self.hold_for(number, before, after);
        if !setting.spec().inherited {
            self.find_bounds();
            self.frees_anywhere();
        }
        Ok(())
    }

    fn settings_of(&self, scope: Scope<'_>) -> Option<&Overrides> {
        let queue = |name: &[u8]| self.queues.get(self.queues.find(name)?);
        match scope {
            Scope::Board => Some(&self.settings),
            Scope::Queue(name) => Some(&queue(name)?.settings),
            Scope::Group(name, group) => {
                let fair = queue(name)?.fair.as_deref()?;
                match group {
                    ALL_GROUPS => Some(&fair.settings),
                    _ => Some(&fair.groups.get(fair.find(group)?)?.settings),
                }
            }
            Scope::Limit(name) => {
                let limits = &self.dispatch.limits;
                Some(&limits.get(limits.find(name)?)?.settings)
            }
        }
    }

    /// The value in force, and where it comes from.
    pub fn setting(&self, scope: Scope<'_>, setting: Setting, rules: &Rules) -> (i64, Source) {
        let spec = setting.spec();
        let above = match scope {
            Scope::Queue(_) if spec.inherited => Some(Scope::Board),
            Scope::Group(queue, _) => Some(Scope::Group(queue, ALL_GROUPS)),
            _ => None,
        };
        let mut set = [Some(scope), above].into_iter().flatten().filter_map(|scope| {
            let value = self.settings_of(scope)?.get(setting)?;
            Some((value, Source::of(scope)))
        });
        let of_server = matches!(scope, Scope::Board | Scope::Queue(_)) && spec.module;
        set.next().unwrap_or_else(|| match rules.get(setting) {
            value if of_server && value != spec.default => (value, Source::Module),
            _ => (spec.default, Source::Default),
        })
    }

    /// The settings that the scope has of its own.
    pub fn own_settings(&self, scope: Scope<'_>) -> Vec<Setting> {
        let own = self.settings_of(scope);
        let all = SPECS.iter().map(|spec| spec.setting);
        all.filter(|setting| own.is_some_and(|own| own.get(*setting).is_some())).collect()
    }
}
