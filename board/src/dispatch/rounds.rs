//! Moves jobs into and out of the ready lines of their queue, with or without groups.

use crate::board::Board;
use crate::dispatch::fair::{level, ready_key_of, Fair, PLAIN};
use crate::dispatch::groups::{Group, Hold};
use crate::effect::ApplyError;
use crate::error::Refusal;
use crate::job::order::ReadyKey;
use crate::job::{Job, State};
use crate::queue::Queue;
use crate::settings::Setting;
use crate::structures::byte_string::ByteString;
use crate::structures::sorted::SortedSlots;

impl Queue {
    /// Whether the queue has no ready job. O(1).
    pub(crate) fn is_idle(&self) -> bool {
        self.ready.is_empty() && self.fair.as_ref().is_none_or(|fair| fair.all.is_empty())
    }

    /// How many ready jobs the queue has. O(1).
    pub(crate) fn ready_len(&self) -> usize {
        self.ready.len() + self.fair.as_ref().map_or(0, |fair| fair.all.len())
    }

    /// Its lines of ready jobs: each ready job is in one of them.
    pub(crate) fn ready_lines(&self) -> impl Iterator<Item = &SortedSlots<ReadyKey>> {
        std::iter::once(&self.ready).chain(self.fair.as_ref().map(|fair| &fair.all))
    }

    /// The group of this name. O(1).
    pub(crate) fn group_named(&self, name: &[u8]) -> Option<&Group> {
        let fair = self.fair.as_ref()?;
        fair.groups.get(fair.find(name)?).map(|group| &**group)
    }

    /// The ready jobs of a group.
    pub(crate) fn group_line(&self, name: &[u8]) -> Option<&SortedSlots<ReadyKey>> {
        self.group_named(name).map(|group| &group.ready)
    }

    /// The group of this number. O(1).
    pub(crate) fn group(&self, at: u32) -> Option<&Group> {
        self.fair.as_ref()?.groups.get(at).map(|group| &**group)
    }
}

impl Board {
    /// Whether a queue has no ready job. O(1).
    pub(crate) fn is_idle(&self, queue: u32) -> bool {
        self.queues.get(queue).is_some_and(Queue::is_idle)
    }

    /// Puts a job into the line of its group, or of the jobs without one, in a queue with groups.
    pub(crate) fn join_ready(&mut self, queue: u32, slot: u32) -> Result<(), ApplyError> {
        let job = self.store.jobs.get(slot).ok_or(ApplyError)?;
        let (key, group) = (job.ready_key(), job.group());
        let key_of = |s| ready_key_of(&self.store.jobs, s);
        let queue = self.queues.get_mut(queue).ok_or(ApplyError)?;
        let fair = queue.fair.as_deref_mut().ok_or(ApplyError)?;
        match group {
            None => {
                queue.ready.insert(key, slot, key_of);
                fair.reseat(PLAIN, &queue.ready, &self.store.jobs, &mut self.dispatch.turns);
            }
            Some(at) => {
                fair.all.insert(key, slot, key_of);
                let group = fair.groups.get_mut(at).ok_or(ApplyError)?;
                group.ready.insert(key, slot, key_of);
                if job.has_begun() {
                    group.again.insert((key, slot));
                }
            }
        }
        Ok(())
    }

    /// Takes a job out of its ready line, in a queue with groups; false when it is in none.
    pub(crate) fn quit_ready(&mut self, queue: u32, slot: u32) -> Result<bool, ApplyError> {
        let job = self.store.jobs.get(slot).ok_or(ApplyError)?;
        let (key, group) = (job.ready_key(), job.group());
        let queue = self.queues.get_mut(queue).ok_or(ApplyError)?;
        let fair = queue.fair.as_deref_mut().ok_or(ApplyError)?;
        let stood = match group {
            None => queue.ready.remove(key, slot),
            Some(at) => {
                let group = fair.groups.get_mut(at).ok_or(ApplyError)?;
                if job.has_begun() {
                    group.again.remove(&(key, slot));
                }
                group.ready.remove(key, slot) & fair.all.remove(key, slot)
            }
        };
        let at = group.unwrap_or(PLAIN);
        fair.left(at, level(key), &queue.ready, &self.store.jobs);
        fair.reseat(at, &queue.ready, &self.store.jobs, &mut self.dispatch.turns);
        Ok(stood)
    }

    /// Puts a group where it belongs in the rounds of its queue, after something about it has
    /// changed. O(log n).
    pub(crate) fn reseat(&mut self, number: u32, at: u32) {
        self.weigh_rest(number, at);
        let Some(queue) = self.queues.get_mut(number) else { return };
        let Some(fair) = queue.fair.as_deref_mut() else { return };
        match fair.reseat(at, &queue.ready, &self.store.jobs, &mut self.dispatch.turns) {
            true => self.mark_busy(number),
            false => self.review_candidates(number),
        }
    }

    /// A job is about to be claimed: counts the turn of its group and takes its permits.
    pub(crate) fn charge(&mut self, slot: u32, now: i64) -> Result<(), ApplyError> {
        let job = self.store.jobs.get(slot).ok_or(ApplyError)?;
        let queue = self.queue_number(job);
        let (group, level) = (job.group().unwrap_or(PLAIN), level(job.ready_key()));
        let queue = self.queues.get_mut(queue).ok_or(ApplyError)?;
        if let Some(fair) = queue.fair.as_deref_mut() {
            fair.charge(group, level, &mut self.dispatch.turns);
        } else if queue.seldom.refill.is_none()
            && self.dispatch.rate.refill.is_none()
            && queue.seldom.limits.is_empty()
        {
            return Ok(());
        }
        self.take_tokens(slot, now)
    }

    /// The groups of a queue, which has rounds from now on.
    pub(crate) fn open_rounds(&mut self, queue: u32) -> Result<&mut Fair, ApplyError> {
        let queue = self.queues.get_mut(queue).ok_or(ApplyError)?;
        let fair = queue.fair.get_or_insert_with(|| {
            let mut fair = Box::<Fair>::default();
            fair.reseat(PLAIN, &queue.ready, &self.store.jobs, &mut self.dispatch.turns);
            fair
        });
        Ok(fair)
    }

    /// The number of a group of a queue, which is added if it is new.
    pub(crate) fn group_at(&mut self, queue: u32, name: &[u8]) -> Result<u32, ApplyError> {
        let fair = self.open_rounds(queue)?;
        Ok(fair.find(name).unwrap_or_else(|| fair.add(name)))
    }

    /// The same as [`Board::group_at`], and holds a reference to the group.
    pub(crate) fn hold_group(&mut self, queue: u32, name: &[u8]) -> Result<u32, ApplyError> {
        let at = self.group_at(queue, name)?;
        let group = self.open_rounds(queue)?.groups.get_mut(at).ok_or(ApplyError)?;
        group.refs += 1;
        Ok(at)
    }

    /// The number of a group of this class's queue, with a reference held to it.
    pub(crate) fn hold_group_of(&mut self, class: u32, name: &[u8]) -> Result<u32, ApplyError> {
        let queue = self.store.classes.key(class).ok_or(ApplyError)?.queue;
        self.hold_group(queue, name)
    }

    /// Moves a job that is in no place to another group of its queue.
    pub(crate) fn regroup(&mut self, slot: u32, name: &[u8]) -> Result<(), ApplyError> {
        let job = self.job(slot)?;
        let (queue, old) = (self.queue_number(job), job.group());
        let group = self.hold_group(queue, name)?;
        self.edit(slot, |job| {
            job.set_group(Some(group));
            Ok(())
        })?;
        if let Some(old) = old {
            self.release_group(queue, old);
        }
        Ok(())
    }

    /// Releases one reference to a group.
    pub(crate) fn release_group(&mut self, queue: u32, at: u32) {
        self.frees(queue, Some(at));
        let fair = self.queues.get_mut(queue).and_then(|queue| queue.fair.as_deref_mut());
        if let Some(group) = fair.and_then(|fair| fair.groups.get_mut(at)) {
            group.refs = group.refs.saturating_sub(1);
        }
        self.tidy_group(queue, at);
    }

    /// Looks at a group again: removes it if nothing needs it, and with the last group the rounds
    /// of its queue.
    pub(crate) fn tidy_group(&mut self, queue: u32, at: u32) {
        self.reseat(queue, at);
        if let Some(fair) = self.queues.get_mut(queue).and_then(|queue| queue.fair.as_deref_mut()) {
            fair.tidy(at);
        }
        self.close_rounds(queue);
    }

    /// Removes the rounds of a queue that nothing needs.
    pub(crate) fn close_rounds(&mut self, queue: u32) {
        let rounds = self.queues.get_mut(queue).map(|queue| &mut queue.fair);
        let Some(fair) = rounds.and_then(|rounds| rounds.take_if(|fair| fair.is_unused())) else { return };
        if fair.review.is_some() {
            if let Some(name) = self.queues.key(queue) {
                self.dispatch.reviews.remove(name);
            }
        }
    }

    /// How many more jobs of this group may run; `None` without a limit.
    pub(crate) fn group_room(&self, queue: &[u8], group: &[u8]) -> Option<u64> {
        let fair = self.queues.get(self.queues.find(queue)?)?.fair.as_deref()?;
        match fair.find(group).and_then(|at| fair.groups.get(at)) {
            Some(group) => fair.room(group),
            None => fair.room(&Group::default()),
        }
    }

    /// Refuses that a job runs which its group keeps back. `claim` is its slot if it is ready, or
    /// was.
    pub(crate) fn check_group(&self, job: &Job, claim: Option<u32>, now: i64) -> Result<(), Refusal> {
        let Some(at) = job.group() else { return Ok(()) };
        let fair = self.queue_of(job).and_then(|queue| queue.fair.as_deref());
        let Some((fair, group)) = fair.and_then(|fair| Some((fair, fair.groups.get(at)?))) else {
            return Ok(());
        };
        match fair.hold(group) {
            Some(Hold::Paused(until)) if claim.is_some() && until > now => Err(Refusal::Paused),
            Some(Hold::Full(_)) => Err(Refusal::Limit("concurrency")),
            Some(Hold::Ordered) if group.count(State::Claimed) > 0 => Err(Refusal::Ordered),
            Some(Hold::Paused(_)) if fair.room(group) == Some(0) => Err(Refusal::Limit("concurrency")),
            _ if claim.is_some() && fair.is_ordered(group) && fair.candidate(group) != claim => {
                Err(Refusal::Ordered)
            }
            _ => Ok(()),
        }
    }

    /// The name of a job's group.
    pub(crate) fn group_name(&self, job: &Job) -> Option<&[u8]> {
        let at = job.group()?;
        self.queue_of(job)?.group(at).map(|group| &*group.name)
    }

    /// The group of this name, to read. O(1).
    pub fn group<'b>(&'b self, queue: &[u8], group: &[u8]) -> Option<GroupOf<'b>> {
        let at = self.queues.find(queue)?;
        let (queue, fair) = (self.queues.key(at)?, self.queues.get(at)?.fair.as_deref()?);
        let number = fair.find(group)?;
        Some(GroupOf { queue, number, fair, group: fair.groups.get(number)? })
    }

    /// How many jobs of a group are in this state. O(1).
    pub fn count_group(&self, queue: &[u8], group: &[u8], state: State) -> u64 {
        let queue = self.queues.find(queue).and_then(|q| self.queues.get(q));
        queue.and_then(|queue| queue.group_named(group)).map_or(0, |group| group.count(state))
    }

    /// Up to `n` groups, queue by queue in the order of the queues' names, starting at a queue and
    /// a group's number; and where the next page starts. O(n) for one queue, O(Q log Q + n) for Q.
    pub fn groups<'b>(
        &'b self,
        from: Option<(&[u8], u32)>,
        only: Option<&[u8]>,
        n: usize,
    ) -> (Vec<GroupOf<'b>>, Option<GroupOf<'b>>) {
        let (first, number) = from.unwrap_or_default();
        let named = |number| Some((self.queues.key(number)?, self.queues.get(number)?));
        let mut queues: Vec<(&ByteString, &Queue)> = match only {
            Some(name) => self.queues.find(name).and_then(named).into_iter().collect(),
            None => self.queues.iter().map(|(_, name, queue)| (name, queue)).collect(),
        };
        queues.retain(|(name, queue)| queue.fair.is_some() && ***name >= *first);
        queues.sort_unstable_by_key(|(name, _)| *name);
        let begin = |name: &ByteString| if **name == *first { number } else { 0 };
        let mut rows = queues.into_iter().flat_map(|(name, queue)| {
            queue.fair.iter().flat_map(move |fair| {
                let groups = fair.groups.iter_from(begin(name)).filter(|(_, group)| group.is_known());
                groups.map(move |(number, group)| GroupOf { queue: name, number, fair, group })
            })
        });
        (rows.by_ref().take(n).collect(), rows.next())
    }
}

/// A group, to read.
pub struct GroupOf<'b> {
    queue: &'b [u8],
    number: u32,
    fair: &'b Fair,
    group: &'b Group,
}

impl<'b> GroupOf<'b> {
    /// Its queue.
    pub fn queue(&self) -> &'b [u8] {
        self.queue
    }

    /// Its number in its queue, the same on every copy.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Its name.
    pub fn name(&self) -> &'b [u8] {
        &self.group.name
    }

    /// How many of its jobs are in this state. O(1).
    pub fn count(&self, state: State) -> u64 {
        self.group.count(state)
    }

    /// The value in force for it.
    pub fn setting(&self, setting: Setting) -> i64 {
        self.fair.value(self.group, setting)
    }

    /// Until when the group itself is paused: Unix ms, [`crate::NEVER`] without end; `None` when it
    /// is not.
    pub fn paused(&self, now: i64) -> Option<i64> {
        Some(self.group.paused).filter(|until| *until > now)
    }

    /// What keeps it from giving a job; `None` when nothing does.
    pub fn hold(&self) -> Option<Hold> {
        self.fair.hold(self.group)
    }
}
