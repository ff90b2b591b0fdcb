//! The lists in which queues and groups name shared limits.

use std::collections::{BTreeMap, BTreeSet};

use crate::board::Board;
use crate::dispatch::limits::{List, Share, GROUPS_MOST};
use crate::effect::ApplyError;
use crate::job::State;
use crate::structures::byte_string::ByteString;

/// Whose list it is.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Owner {
    Queue,
    Groups,
    Group(u32),
}

impl Board {
    /// Gives an owner its list, and counts running jobs where they now belong: O(k log n), however
    /// many jobs and groups there are.
    pub(crate) fn set_list(
        &mut self,
        queue: u32,
        owner: Owner,
        list: Option<List>,
    ) -> Result<(), ApplyError> {
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
            Owner::Queue => {
                self.queues.get_mut(queue).ok_or(ApplyError)?.seldom.limits = list.unwrap_or_default()
            }
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

    fn list_of(&mut self, queue: u32, owner: Owner) -> Result<Option<List>, ApplyError> {
        let some = |list: &List| Some(list.clone()).filter(|list| !list.is_empty());
        Ok(match owner {
            Owner::Queue => some(&self.queues.get(queue).ok_or(ApplyError)?.seldom.limits),
            Owner::Groups => some(&self.open_rounds(queue)?.limits),
            Owner::Group(at) => self.open_rounds(queue)?.groups.get(at).ok_or(ApplyError)?.limits.clone(),
        })
    }

    /// Adds `by` times the running jobs of a queue to the counts of these limits.
    fn shift_runs(&mut self, queue: u32, numbers: &[u32], by: i64) {
        for number in numbers {
            let runs = self.runs_under(queue, *number) as i64;
            if let Some(limit) = self.dispatch.limits.get_mut(*number) {
                limit.runs = limit.runs.saturating_add_signed(by * runs);
            }
        }
    }

    /// Counts that a list of a queue or of its groups names a limit, or no longer does.
    pub(crate) fn count_list(
        &mut self,
        queue: u32,
        owner: Owner,
        number: u32,
        by: i32,
    ) -> Result<(), ApplyError> {
        let name = self.queues.key(queue).cloned().ok_or(ApplyError)?;
        let limit = self.dispatch.limits.get_mut(number).ok_or(ApplyError)?;
        let lists = limit.queues.entry(queue).or_default();
        *lists = lists.saturating_add_signed(by);
        if *lists == 0 {
            limit.queues.remove(&queue);
        }
        if let Owner::Group(at) = owner {
            match by > 0 {
                true if limit.groups.len() >= GROUPS_MOST => return Err(ApplyError),
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
        let Some(fair) = self.queues.get_mut(queue).and_then(|queue| queue.fair.as_deref_mut()) else {
            return;
        };
        for number in numbers {
            if fair.shares.get(number).is_some_and(|share| share.lists == 0) {
                fair.shares.remove(number);
            }
        }
    }
}

impl Board {
    /// Checks that every limit knows who names it and what runs under it. O(n k).
    pub(crate) fn check_named_limits(&self) -> Result<(), String> {
        let mut runs: BTreeMap<u32, u64> = BTreeMap::new();
        let mut shares: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for (_, job) in self.store.jobs.iter().filter(|(_, job)| job.state == State::Claimed) {
            let queue = self.queue_number(job);
            for number in self.limits_of(queue, job.group()) {
                *runs.entry(number).or_default() += 1;
            }
            let named = self.queues.get(queue).map_or(&[][..], |queue| queue.group_limits(job.group()));
            for number in named {
                *shares.entry((queue, *number)).or_default() += 1;
            }
        }
        let mut queues: BTreeMap<u32, BTreeMap<u32, u32>> = BTreeMap::new();
        let mut groups: BTreeMap<u32, BTreeSet<(ByteString, u32)>> = BTreeMap::new();
        for (queue_number, name, queue) in self.queues.iter() {
            let fair = queue.fair.as_deref();
            let own = fair.into_iter().flat_map(|fair| fair.groups.iter());
            let own = own.filter_map(|(at, group)| Some((Some(at), group, group.limits.as_deref()?)));
            let mut lists: BTreeMap<u32, u32> = BTreeMap::new();
            for (at, group, list) in own {
                if group.barred != self.dispatch.limits.first_full(list).is_some() {
                    return Err("a group is kept back by no limit, or not by one that is full".into());
                }
                for number in list {
                    groups.entry(*number).or_default().insert((name.clone(), at.unwrap_or_default()));
                    *lists.entry(*number).or_default() += 1;
                }
            }
            fair.iter().flat_map(|fair| &*fair.limits).for_each(|n| *lists.entry(*n).or_default() += 1);
            let share = |(number, lists): (&u32, &u32)| {
                let runs = shares.get(&(queue_number, *number)).copied().unwrap_or(0);
                (*number, Share { lists: *lists, runs })
            };
            let shares: BTreeMap<u32, Share> = lists.iter().map(share).collect();
            let grouped = fair.map_or(0, |fair| {
                let without = fair.groups.iter().filter(|(_, group)| group.limits.is_none());
                without.map(|(_, group)| group.count(State::Claimed)).sum()
            });
            if fair.is_some_and(|fair| fair.shares != shares || fair.runs != grouped) {
                return Err("the groups of a queue do not know their limits".into());
            }
            for number in &*queue.seldom.limits {
                *lists.entry(*number).or_default() += 1;
            }
            for (number, lists) in lists {
                queues.entry(number).or_default().insert(queue_number, lists);
            }
        }
        for (number, limit) in self.dispatch.limits.iter() {
            if limit.runs != runs.get(&number).copied().unwrap_or(0) {
                return Err(format!("limit {:?} counts {} jobs, not {runs:?}", limit.name, limit.runs));
            }
            if limit.queues != queues.remove(&number).unwrap_or_default()
                || limit.groups != groups.remove(&number).unwrap_or_default()
                || limit.queues.is_empty() && limit.settings.is_empty() && limit.paused == 0
                || limit.groups.len() > GROUPS_MOST
            {
                return Err(format!("limit {:?} does not know who names it", limit.name));
            }
        }
        match queues.is_empty()
            && groups.is_empty()
            && self.dispatch.limits.iter().count() == self.dispatch.limits.len()
        {
            true => Ok(()),
            false => Err("a list names a limit that is not there".into()),
        }
    }
}
