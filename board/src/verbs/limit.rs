//! Settings of named limits, and the lists by which queues and groups name them.

use crate::board::Board;
use crate::dispatch::buckets::Refill;
use crate::dispatch::limits::{is_list, Limit, List, GROUPS_MOST, LIMITS_MOST};
use crate::effect::{is_name, Sound, Unfit};
use crate::error::Refusal;
use crate::settings::{Level, Setting};
use crate::verbs::configure::Scope;
use crate::verbs::groups::ALL_GROUPS;

written! {
    /// A setting of a limit was set, or reset.
    #[derive(Debug, Clone, PartialEq)]
    pub struct LimitConfigured<'a> {
        /// The limit.
        1 pub limit: &'a [u8],
        /// Which.
        2 pub setting: Setting,
        /// Its value from now on, or the default.
        3 pub value: Option<i64>,
    }
}

impl Sound for LimitConfigured<'_> {
    fn sound(&self, _board: &Board) -> bool {
        is_name(self.limit)
    }
}

impl LimitConfigured<'_> {
    pub(crate) fn apply(&self, board: &mut Board, _now: i64) -> Result<(), Unfit> {
        let spec = self.setting.spec();
        let fits = self.value.is_none_or(|value| (spec.min..=spec.max).contains(&value));
        if !fits || !spec.at(Level::Limit) || board.check_new_limit(self.limit).is_err() {
            return Err(Unfit);
        }
        board.tell_limit(spec.name, self.limit, self.value);
        let number = board.dispatch.limits.at(self.limit);
        let limit = board.dispatch.limits.get_mut(number).ok_or(Unfit)?;
        limit.settings.set(self.setting, self.value);
        limit.refill = Refill::set_by(&limit.settings);
        board.wake_limited(number);
        board.dispatch.limits.tidy(number);
        Ok(())
    }
}

written! {
    /// A queue, a group or all groups of a queue name these limits from now on.
    #[derive(Debug, Clone, PartialEq)]
    pub struct LimitsNamed<'a> {
        1 queue: &'a [u8],
        /// The group, or [`ALL_GROUPS`]; without one, the queue itself.
        2 group: Scope<'a>,
        /// The limits; `None`: it has no list of its own any more.
        3 limits: Option<Vec<&'a [u8]>>,
    }
}

impl Sound for LimitsNamed<'_> {
    fn sound(&self, _board: &Board) -> bool {
        let names = self.limits.iter().flatten();
        is_name(self.queue) && self.group.is_none_or(is_name) && names.into_iter().all(|name| is_name(name))
    }
}

impl<'a> LimitsNamed<'a> {
    /// Such a list, of limits that are there.
    pub fn new(queue: &'a [u8], group: Scope<'a>, limits: Option<&[&'a [u8]]>) -> Self {
        let limits = limits.map(<[_]>::to_vec);
        LimitsNamed { queue, group, limits }
    }
}

/// Whose list it is.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Owner {
    Queue,
    Groups,
    Group(u32),
}

impl LimitsNamed<'_> {
    pub(crate) fn apply(&self, board: &mut Board, _now: i64) -> Result<(), Unfit> {
        board.tell_limits(self.queue, self.group, self.limits.as_ref().map(Vec::len));
        let numbers = |names: &Vec<&[u8]>| {
            let mut list: Vec<u32> =
                names.iter().map(|name| board.dispatch.limits.find(name)).collect::<Option<_>>()?;
            list.sort_unstable();
            Some(List::from(list))
        };
        let list = self.limits.as_ref().map(|names| numbers(names).ok_or(Unfit)).transpose()?;
        if !list.as_deref().is_none_or(is_list) {
            return Err(Unfit);
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
    /// Gives an owner its list. What runs is counted where it now belongs: O(k log n), however
    /// many jobs and groups there are.
    fn set_list(&mut self, queue: u32, owner: Owner, list: Option<List>) -> Result<(), Unfit> {
        let old = self.list_of(queue, owner)?;
        let before: Vec<u32> = match owner {
            Owner::Queue => old.iter().flatten().copied().collect(),
            Owner::Groups => self.open_rounds(queue)?.limits.to_vec(),
            Owner::Group(at) => self.open_rounds(queue)?.limits_of(at).to_vec(),
        };
        let mut touched = before;
        touched.extend(list.iter().flatten());
        if owner != Owner::Queue {
            touched.extend(&*self.open_rounds(queue)?.limits);
        }
        touched.sort_unstable();
        touched.dedup();
        self.shift_runs(queue, &touched, -1);
        let list = list.filter(|list| matches!(owner, Owner::Group(_)) || !list.is_empty());
        let (had, has) = (old.is_some(), list.is_some());
        for (numbers, by) in [(&old, -1), (&list, 1)] {
            for number in numbers.iter().flatten() {
                self.count_list(queue, owner, *number, by)?;
            }
        }
        match owner {
            Owner::Queue => self.queues.get_mut(queue).ok_or(Unfit)?.limits = list.unwrap_or_default(),
            Owner::Groups => {
                let fair = self.open_rounds(queue)?;
                fair.share_runs(&old.unwrap_or_default(), -(fair.runs as i64));
                fair.limits = list.unwrap_or_default();
                fair.share_runs(&fair.limits.clone(), fair.runs as i64);
            }
            Owner::Group(at) => {
                let fair = self.open_rounds(queue)?;
                fair.unseat(at);
                fair.set_group_list(at, list);
                self.reseat(queue, at);
            }
        }
        self.shift_runs(queue, &touched, 1);
        self.tidy_shares(queue, &touched);
        touched.iter().for_each(|number| self.wake_limited(*number));
        touched.iter().for_each(|number| self.dispatch.limits.tidy(*number));
        self.hold_for(queue, !had, !has);
        Ok(())
    }

    fn list_of(&mut self, queue: u32, owner: Owner) -> Result<Option<List>, Unfit> {
        let some = |list: &List| Some(list.clone()).filter(|list| !list.is_empty());
        Ok(match owner {
            Owner::Queue => some(&self.queues.get(queue).ok_or(Unfit)?.limits),
            Owner::Groups => some(&self.open_rounds(queue)?.limits),
            Owner::Group(at) => self.open_rounds(queue)?.groups.get(at).ok_or(Unfit)?.limits.clone(),
        })
    }

    /// Takes what runs in a queue from the counts of these limits, or adds it.
    fn shift_runs(&mut self, queue: u32, numbers: &[u32], by: i64) {
        for number in numbers {
            let runs = self.runs_under(queue, *number) as i64;
            if let Some(limit) = self.dispatch.limits.get_mut(*number) {
                limit.runs = limit.runs.saturating_add_signed(by * runs);
            }
        }
    }

    /// A list of a queue or of its groups names a limit, or no longer does.
    pub(crate) fn count_list(&mut self, queue: u32, owner: Owner, number: u32, by: i32) -> Result<(), Unfit> {
        let name = self.queues.key(queue).cloned().ok_or(Unfit)?;
        let limit = self.dispatch.limits.get_mut(number).ok_or(Unfit)?;
        let lists = limit.queues.entry(queue).or_default();
        *lists = lists.saturating_add_signed(by);
        if *lists == 0 {
            limit.queues.remove(&queue);
        }
        if let Owner::Group(at) = owner {
            match by > 0 {
                true if limit.groups.len() >= GROUPS_MOST => return Err(Unfit),
                true => limit.groups.insert((name, at)),
                false => limit.groups.remove(&(name, at)),
            };
        }
        if owner != Owner::Queue {
            let share = self.open_rounds(queue)?.shares.entry(number).or_default();
            share.lists = share.lists.saturating_add_signed(by);
        }
        Ok(())
    }

    fn tidy_shares(&mut self, queue: u32, numbers: &[u32]) {
        let Some(fair) = self.queues.get_mut(queue).and_then(|lane| lane.fair.as_deref_mut()) else { return };
        for number in numbers {
            if fair.shares.get(number).is_some_and(|share| share.lists == 0) {
                fair.shares.remove(number);
            }
        }
    }

    /// Refuses a limit that would be one too many. O(log n).
    pub fn check_new_limit(&self, name: &[u8]) -> Result<(), Refusal> {
        match self.dispatch.limits.find(name).is_none() && self.dispatch.limits.len() >= LIMITS_MOST {
            true => Err(Refusal::Limit("limits")),
            false => Ok(()),
        }
    }

    /// Refuses a limit that too many groups would name themselves. O(k log n).
    pub fn check_limits_named(
        &self,
        queue: &[u8],
        group: Scope<'_>,
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
