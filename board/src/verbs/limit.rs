//! Settings of shared limits, and the lists in which queues and groups name them.

use crate::board::Board;
use crate::dispatch::buckets::Refill;
use crate::dispatch::limits::{is_list, Limit, List, GROUPS_MOST, LIMITS_MOST};
use crate::dispatch::lists::Owner;
use crate::effect::{is_name, ApplyError, Validate};
use crate::error::Refusal;
use crate::events::number;
use crate::scope::Scope;
use crate::scope::ALL_GROUPS;
use crate::settings::Setting;

written! {
    /// A queue, a group or all groups of a queue name these shared limits from now on.
    #[derive(Debug, Clone, PartialEq)]
    pub struct LimitsNamed<'a> {
        1 queue: &'a [u8],
        /// The group, or [`ALL_GROUPS`]; `None` for the queue itself.
        2 group: Option<&'a [u8]>,
        /// The limits; `None` removes the list.
        3 limits: Option<Vec<&'a [u8]>>,
    }
}

impl Validate for LimitsNamed<'_> {
    fn is_valid(&self, _board: &Board) -> bool {
        let names = self.limits.iter().flatten();
        is_name(self.queue) && self.group.is_none_or(is_name) && names.into_iter().all(|name| is_name(name))
    }
}

impl<'a> LimitsNamed<'a> {
    /// A list of these limits, which exist.
    pub fn new(queue: &'a [u8], group: Option<&'a [u8]>, limits: Option<&[&'a [u8]]>) -> Self {
        let limits = limits.map(<[_]>::to_vec);
        LimitsNamed { queue, group, limits }
    }
}

impl LimitsNamed<'_> {
    pub(crate) fn apply(&self, board: &mut Board, _now: i64) -> Result<(), ApplyError> {
        let scope = self.group.map_or(Scope::Queue(self.queue), |group| Scope::Group(self.queue, group));
        let count = self.limits.as_ref().map(|limits| limits.len() as i64);
        board.emit_setting("limits", scope, number("value", count));
        let numbers = |names: &Vec<&[u8]>| {
            let mut list: Vec<u32> =
                names.iter().map(|name| board.dispatch.limits.find(name)).collect::<Option<_>>()?;
            list.sort_unstable();
            Some(List::from(list))
        };
        let list = self.limits.as_ref().map(|names| numbers(names).ok_or(ApplyError)).transpose()?;
        if !list.as_deref().is_none_or(is_list) {
            return Err(ApplyError);
        }
        let queue = board.queue(self.queue);
        let owner = match self.group {
            None => Owner::Queue,
            Some(ALL_GROUPS) => Owner::Groups,
            Some(name) => Owner::Group(board.group_at(queue, name)?),
        };
        board.set_list(queue, owner, list)?;
        if let Owner::Group(at) = owner {
            board.tidy_group(queue, at);
        }
        board.close_rounds(queue);
        board.wake_queue(queue);
        Ok(())
    }
}

impl Board {
    pub(crate) fn configure_limit(
        &mut self,
        name: &[u8],
        setting: Setting,
        value: Option<i64>,
    ) -> Result<(), ApplyError> {
        self.check_new_limit(name).map_err(|_| ApplyError)?;
        let number = self.dispatch.limits.at(name);
        let limit = self.dispatch.limits.get_mut(number).ok_or(ApplyError)?;
        limit.settings.set(setting, value);
        limit.refill = Refill::set_by(&limit.settings);
        let queues = limit.queues.keys().copied().collect::<Vec<_>>();
        self.wake_limited(number);
        self.dispatch.limits.tidy(number);
        queues.into_iter().for_each(|queue| self.review_candidates(queue));
        Ok(())
    }

    /// Refuses a limit that would be one too many. O(log n).
    pub fn check_new_limit(&self, name: &[u8]) -> Result<(), Refusal> {
        match self.dispatch.limits.find(name).is_none() && self.dispatch.limits.len() >= LIMITS_MOST {
            true => Err(Refusal::Limit("limits")),
            false => Ok(()),
        }
    }

    /// Refuses a list by which too many groups would name a limit themselves. O(k log n).
    pub fn check_limits_named(
        &self,
        queue: &[u8],
        group: Option<&[u8]>,
        limits: &[&[u8]],
    ) -> Result<(), Refusal> {
        let Some(group) = group.filter(|group| *group != ALL_GROUPS) else { return Ok(()) };
        let fair = self.queues.find(queue).and_then(|queue| self.queues.get(queue)?.fair.as_deref());
        let at = fair.and_then(|fair| fair.find(group));
        let many = |name: &&[u8]| {
            let limit = self.dispatch.limits.find(name).and_then(|number| self.dispatch.limits.get(number));
            let names = |limit: &Limit| at.is_some_and(|at| limit.groups.contains(&(queue.into(), at)));
            limit.is_some_and(|limit| limit.groups.len() >= GROUPS_MOST && !names(limit))
        };
        match limits.iter().any(many) {
            true => Err(Refusal::Limit("groups")),
            false => Ok(()),
        }
    }
}
