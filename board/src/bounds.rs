//! What a board bounds beside jobs and bytes: names of queues and groups, schedules, keys. What
//! is there already is never refused.

use std::collections::BTreeSet;

use crate::board::Board;
use crate::error::Refusal;
use crate::settings::Setting;

impl Board {
    fn bound(&self, setting: Setting) -> usize {
        self.own(setting).max(0) as usize
    }

    /// Whether a queue is one of those that count. O(1).
    pub(crate) fn has_queue(&self, name: &[u8]) -> bool {
        self.queues.find(name).is_some_and(|number| self.queues.refs(number) > 0)
    }

    /// Refuses a queue that would be one too many. O(1).
    pub fn check_queue(&self, name: &[u8]) -> Result<(), Refusal> {
        match self.has_queue(name) {
            true => Ok(()),
            false => self.check_queues(1),
        }
    }

    /// Refuses `n` new queues that would be too many. O(1).
    pub(crate) fn check_queues(&self, n: usize) -> Result<(), Refusal> {
        let most = self.bound(Setting::MaxQueues);
        if n == 0 || self.queues.used() + n <= most {
            return Ok(());
        }
        // Those that only a class refers to which no job has any more do not count.
        let idle: BTreeSet<u32> = self.classes.unused().map(|class| class.queue).collect();
        let unused = |number: &&u32| self.queues.get(**number).is_some_and(|lane| !Board::is_queue(lane));
        match self.queues.used() + n - idle.iter().filter(unused).count() <= most {
            true => Ok(()),
            false => Err(Refusal::Limit("max-queues")),
        }
    }

    /// Refuses settings or a pause of a group that the queue does not know, when it knows as many
    /// as it may. O(1).
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

    /// Refuses a schedule that would be one too many. O(1).
    pub(crate) fn check_new_schedule(&self) -> Result<(), Refusal> {
        match self.schedules.len() >= self.bound(Setting::MaxSchedules) {
            true => Err(Refusal::Limit("max-schedules")),
            false => Ok(()),
        }
    }

    /// Refuses a key that would be one too many. O(1).
    pub(crate) fn check_new_key(&self) -> Result<(), Refusal> {
        match self.key_count() >= self.bound(Setting::MaxKeys) {
            true => Err(Refusal::Limit("max-keys")),
            false => Ok(()),
        }
    }
}
