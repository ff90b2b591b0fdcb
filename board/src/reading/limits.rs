//! Shared limits, to read.

use crate::board::Board;
use crate::dispatch::buckets::debt;
use crate::dispatch::limits::Limit;
use crate::settings::Setting;

/// A shared limit, to read.
pub struct LimitOf<'b> {
    limit: &'b Limit,
}

impl<'b> LimitOf<'b> {
    /// Its name.
    pub fn name(&self) -> &'b [u8] {
        &self.limit.name
    }

    /// How many claimed jobs count against it.
    pub fn claimed(&self) -> u64 {
        self.limit.runs
    }

    /// The value in force for it, and whether it has been set.
    pub fn setting(&self, setting: Setting) -> (i64, bool) {
        let own = self.limit.settings.get(setting);
        (own.unwrap_or(setting.spec().default), own.is_some())
    }

    /// How many queues name it, for themselves or for their groups.
    pub fn queues(&self) -> usize {
        self.limit.queues.len()
    }

    /// Whether as many jobs run under it as it allows.
    pub fn is_full(&self) -> bool {
        self.limit.is_full()
    }

    /// When it will have the permits for a job of this cost: Unix ms, [`crate::NEVER`] when it
    /// never will; `None` when it has them now.
    pub fn dry_until(&self, cost: i64, now: i64) -> Option<i64> {
        Some(self.limit.permits_at(cost)).filter(|at| *at > now)
    }

    /// How many permits it owes: claims have cost more than they were expected to.
    pub fn debt(&self, now: i64) -> i64 {
        self.limit.refill.map_or(0, |refill| debt(&self.limit.bucket, &refill, now))
    }

    /// Until when it is paused: Unix ms, [`crate::NEVER`] without end; `None` when it is not.
    pub fn paused(&self, now: i64) -> Option<i64> {
        Some(self.limit.paused).filter(|until| *until > now)
    }
}

impl Board {
    /// The limit of this name, to read. O(log n).
    pub fn limit(&self, name: &[u8]) -> Option<LimitOf<'_>> {
        Some(LimitOf { limit: self.dispatch.limits.get(self.dispatch.limits.find(name)?)? })
    }

    /// How many shared limits there are. O(1).
    pub fn limit_count(&self) -> usize {
        self.dispatch.limits.len()
    }

    /// The limits whose names come after this name, by name. O(log n) for each.
    pub fn limits_after(&self, name: Option<&[u8]>) -> impl Iterator<Item = LimitOf<'_>> {
        self.dispatch.limits.after(name).map(|limit| LimitOf { limit })
    }

    /// The names, sorted, of the limits that a queue names, or a group of it, or
    /// [`crate::ALL_GROUPS`]; `None` when there is no list.
    pub fn limits_named(&self, queue: &[u8], group: Option<&[u8]>) -> Option<Vec<&[u8]>> {
        let queue = self.queues.get(self.queues.find(queue)?)?;
        let list = match group {
            None => Some(&queue.seldom.limits).filter(|list| !list.is_empty()),
            Some(crate::ALL_GROUPS) => {
                queue.fair.as_deref().map(|fair| &fair.limits).filter(|list| !list.is_empty())
            }
            Some(group) => queue.group_named(group).and_then(|group| group.limits.as_ref()),
        };
        let mut names: Vec<&[u8]> = self.dispatch.limits.of(list?).map(|limit| &*limit.name).collect();
        names.sort_unstable();
        Some(names)
    }

    /// The limits that count for a job in this queue and group, each once, by name. O(k log k).
    pub fn limits_over(&self, queue: &[u8], group: Option<&[u8]>) -> Vec<LimitOf<'_>> {
        let list = self.limits_at(queue, group);
        let all = list.iter().filter_map(|number| self.dispatch.limits.get(*number));
        let mut all: Vec<LimitOf<'_>> = all.map(|limit| LimitOf { limit }).collect();
        all.sort_unstable_by_key(|limit| limit.name());
        all
    }
}
