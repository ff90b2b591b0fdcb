//! What a board bounds beside jobs and bytes: names of queues and groups, schedules, unique keys.
//! Names that exist are never refused.

use std::collections::{BTreeMap, BTreeSet};

use crate::board::Board;
use crate::error::Refusal;
use crate::settings::Setting;

impl Board {
    fn bound(&self, setting: Setting) -> usize {
        self.own(setting).max(0) as usize
    }

    /// Refuses a new queue when there are as many as allowed. O(1).
    pub fn check_queue(&self, name: &[u8]) -> Result<(), Refusal> {
        self.check_queue_at(self.queues.find(name))
    }

    /// The same for the queue of a number, if there is one.
    pub(crate) fn check_queue_at(&self, number: Option<u32>) -> Result<(), Refusal> {
        let fresh = number.is_none_or(|number| self.queues.refs(number) == 0);
        self.check_some(usize::from(fresh), || number.into_iter().collect())
    }

    /// Refuses these queues when the new ones among them would be too many. O(n) for n names.
    pub(crate) fn check_queues(&self, names: &BTreeSet<&[u8]>) -> Result<(), Refusal> {
        let known: Vec<u32> = names.iter().filter_map(|name| self.queues.find(*name)).collect();
        let used = known.iter().filter(|number| self.queues.refs(**number) > 0).count();
        self.check_some(names.len() - used, || known)
    }

    /// Refuses when `fresh` unreferenced queues, and those of the `known` ones that no longer
    /// count, would be too many.
    fn check_some(&self, fresh: usize, known: impl FnOnce() -> Vec<u32>) -> Result<(), Refusal> {
        let most = self.bound(Setting::MaxQueues);
        if self.queues.used() + fresh <= most {
            return Ok(());
        }
        let idle = self.idle_queues();
        let again = known().iter().filter(|number| idle.contains(number)).count();
        match fresh + again == 0 || self.queues.used() - idle.len() + fresh + again <= most {
            true => Ok(()),
            false => Err(Refusal::Limit("max-queues")),
        }
    }

    /// The queues to which only classes without jobs refer: they do not count. O(n) for n such classes.
    pub(crate) fn idle_queues(&self) -> BTreeSet<u32> {
        let mut classes: BTreeMap<u32, u64> = BTreeMap::new();
        for class in self.store.classes.unused() {
            *classes.entry(class.queue).or_default() += 1;
        }
        classes.retain(|queue, n| self.queues.refs(*queue) == *n);
        classes.into_keys().collect()
    }

    /// Whether there is room for so many queues that do not count yet, when these are idle.
    pub(crate) fn has_room_for_queues(&self, n: usize, idle: &BTreeSet<u32>) -> bool {
        self.queues.used() - idle.len() + n <= self.bound(Setting::MaxQueues)
    }

    /// Refuses settings or a pause of a group that is new to its queue when the queue has as many
    /// as allowed. O(1).
    pub fn check_new_group(&self, queue: &[u8], group: Option<&[u8]>) -> Result<(), Refusal> {
        let fair = self.queues.find(queue).and_then(|queue| self.queues.get(queue)?.fair.as_deref());
        match fair.zip(group) {
            Some((fair, group))
                if fair.find(group).is_none() && fair.groups.len() >= self.bound(Setting::MaxGroups) =>
            {
                Err(Refusal::Limit("max-groups"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a new schedule when there are as many as allowed. O(1).
    pub(crate) fn check_new_schedule(&self) -> Result<(), Refusal> {
        match self.schedules.len() >= self.bound(Setting::MaxSchedules) {
            true => Err(Refusal::Limit("max-schedules")),
            false => Ok(()),
        }
    }

    /// Whether a key is free. O(log keys).
    pub(crate) fn is_new_key(&self, key: &[u8]) -> bool {
        self.quotas.keys.get(key).is_none()
    }

    /// Refuses `n` new keys when they would be too many. O(1).
    pub(crate) fn check_new_keys(&self, n: usize) -> Result<(), Refusal> {
        match n > 0 && self.key_count() + n > self.bound(Setting::MaxKeys) {
            true => Err(Refusal::Limit("max-keys")),
            false => Ok(()),
        }
    }
}
