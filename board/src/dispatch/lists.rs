//! The lists in which queues and groups name shared limits.

use crate::board::Board;
use crate::dispatch::limits::{List, GROUPS_MOST};
use crate::effect::ApplyError;

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
        let Some(fair) = self.queues.get_mut(queue).and_then(|lane| lane.fair.as_deref_mut()) else { return };
        for number in numbers {
            if fair.shares.get(number).is_some_and(|share| share.lists == 0) {
                fair.shares.remove(number);
            }
        }
    }
}
