//! Settings of groups, and the review of all groups of a queue after a value for all of them has
//! changed.

use crate::board::Board;
use crate::effect::{is_name, ApplyError, Effect, Validate};
use crate::settings::{Level, Setting, SPECS};
use crate::structures::byte_string::ByteString;
use crate::verbs::configure::Source;

/// Means all groups of a queue, future ones included.
pub const ALL_GROUPS: &[u8] = b"*";

written! {
    /// A setting of a group was set, or reset.
    #[derive(Debug, Clone, PartialEq)]
    pub struct GroupConfigured<'a> {
        /// The queue.
        1 pub queue: &'a [u8],
        /// The group, or [`ALL_GROUPS`].
        2 pub group: &'a [u8],
        /// The setting.
        3 pub setting: Setting,
        /// Its new value, or `None` for that of all groups or the default.
        4 pub value: Option<i64>,
    }
}

impl Validate for GroupConfigured<'_> {
    fn is_valid(&self, _board: &Board) -> bool {
        is_name(self.queue) && is_name(self.group)
    }
}

impl GroupConfigured<'_> {
    pub(crate) fn apply(&self, board: &mut Board, _now: i64) -> Result<(), ApplyError> {
        let spec = self.setting.spec();
        let fits = self.value.is_none_or(|value| (spec.min..=spec.max).contains(&value));
        if !fits || !spec.at(Level::Group) {
            return Err(ApplyError);
        }
        board.emit_setting(spec.name, Some(self.queue), Some(self.group), self.value);
        let queue = board.queue(self.queue);
        let at = match self.group {
            ALL_GROUPS => None,
            name => Some(board.group_at(queue, name)?),
        };
        let fair = board.open_rounds(queue)?;
        let settings = match at {
            Some(at) => &mut fair.groups.get_mut(at).ok_or(ApplyError)?.settings,
            None => &mut fair.settings,
        };
        let (before, bounds) = (settings.is_empty(), settings.bounds_jobs());
        settings.set(self.setting, self.value);
        let (after, bounded) = (settings.is_empty(), settings.bounds_jobs());
        fair.bounds = (fair.bounds + u32::from(bounded)).saturating_sub(u32::from(bounds));
        board.hold_for(queue, before, after);
        match at {
            Some(at) => board.tidy_group(queue, at),
            None => board.review_groups(queue, self.setting)?,
        }
        if bounds != bounded {
            board.find_bounds();
        }
        Ok(())
    }
}

written! {
    /// The next `n` groups were reviewed after a setting of all groups had changed.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Reviewed {
        1 n: u32,
    }
}

impl Validate for Reviewed {}

impl Reviewed {
    pub(crate) fn apply(&self, board: &mut Board, _now: i64) -> Result<(), ApplyError> {
        let Some(name) = board.dispatch.reviews.first().cloned() else { return Ok(()) };
        let queue = board.queues.find(&*name).ok_or(ApplyError)?;
        let fair = board.open_rounds(queue)?;
        let from = fair.review.ok_or(ApplyError)?;
        let most = self.n as usize;
        let mut some: Vec<u32> =
            fair.groups.iter_from(from).map(|(at, _)| at).take(most.saturating_add(1)).collect();
        fair.review = if some.len() > most { some.pop() } else { None };
        if fair.review.is_none() {
            board.dispatch.reviews.remove(&name);
        }
        for at in some {
            board.tidy_group(queue, at);
        }
        Ok(())
    }
}

impl Board {
    /// Queues a review of all groups of a queue if the changed setting may change their places.
    fn review_groups(&mut self, queue: u32, setting: Setting) -> Result<(), ApplyError> {
        let seats = !matches!(setting, Setting::Weight | Setting::MaxJobs);
        let fair = self.open_rounds(queue)?;
        if seats && fair.groups.len() > 0 {
            fair.review = Some(0);
            let name: ByteString = self.queues.key(queue).cloned().ok_or(ApplyError)?;
            self.dispatch.reviews.insert(name);
            self.wake_at(0);
        }
        self.close_rounds(queue);
        Ok(())
    }

    /// Holds a queue as long as something has settings there.
    pub(crate) fn hold_for(&mut self, queue: u32, empty_before: bool, empty_after: bool) {
        match (empty_before, empty_after) {
            (true, false) => self.queues.hold(queue),
            (false, true) => {
                self.queues.release(queue);
            }
            _ => {}
        }
    }

    /// Decides that the next `n` groups are reviewed; `None` when no review is left. O(1).
    pub fn review(&self, n: u32) -> Option<Effect<'static>> {
        (!self.dispatch.reviews.is_empty()).then(|| Reviewed { n }.into())
    }

    /// The value in force for a group, or for [`ALL_GROUPS`], and where it comes from.
    pub fn group_setting(&self, queue: &[u8], group: &[u8], setting: Setting) -> (i64, Source) {
        let fair = self.queues.find(queue).and_then(|q| self.queues.get(q)?.fair.as_deref());
        let own = fair.and_then(|fair| fair.groups.get(fair.find(group)?)?.settings.get(setting));
        if let Some(value) = own {
            return (value, Source::Group);
        }
        match fair.and_then(|fair| fair.settings.get(setting)) {
            Some(value) => (value, Source::Groups),
            None => (setting.spec().default, Source::Default),
        }
    }

    /// The settings that a group, or [`ALL_GROUPS`], has of its own.
    pub fn own_group_settings(&self, queue: &[u8], group: &[u8]) -> Vec<Setting> {
        let fair = self.queues.find(queue).and_then(|q| self.queues.get(q)?.fair.as_deref());
        let own = fair.and_then(|fair| match group {
            ALL_GROUPS => Some(&fair.settings),
            _ => fair.groups.get(fair.find(group)?).map(|group| &group.settings),
        });
        let all = SPECS.iter().map(|spec| spec.setting);
        all.filter(|s| own.is_some_and(|own| own.get(*s).is_some())).collect()
    }
}
