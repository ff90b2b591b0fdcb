//! Room for posts that wait for it: which bound keeps a post back, and where room has become free
//! since somebody last asked. While no post waits, the second costs one look at a pointer.

use std::collections::BTreeSet;

use crate::board::Board;
use crate::dispatch::groups::Group;
use crate::error::Refusal;
use crate::quotas::{live, within, Growth, Load};
use crate::settings::Setting;
use crate::structures::byte_string::ByteString;

/// What keeps a post back, the narrowest first: a post that lacks room in several of them waits in
/// the first, where it keeps back the fewest others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Its group.
    Group,
    /// Its queue.
    Queue,
    /// The board.
    Board,
}

/// A bound that a post would exceed now, and would not if there were fewer other jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lack {
    /// Whose bound it is.
    pub level: Level,
    /// The setting.
    pub bound: &'static str,
    /// The queue that the post waits for.
    pub queue: ByteString,
    /// The group that it waits for, if groups of the queue are bounded.
    pub group: Option<ByteString>,
}

/// Where room may have become free: jobs have ended or moved, records have shrunk or gone.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Freed {
    /// Anywhere: a bound has changed.
    pub anywhere: bool,
    /// In these queues.
    pub queues: BTreeSet<ByteString>,
    /// In these groups: queue and group.
    pub groups: BTreeSet<(ByteString, ByteString)>,
}

impl Board {
    /// Notes from now on where room becomes free, or no longer does.
    #[inline]
    pub fn watch_room(&mut self, watches: bool) {
        if self.local.freed.is_some() != watches {
            self.local.freed = watches.then(Box::default);
        }
    }

    /// Whether room may have become free since [`Board::freed`]. O(1).
    #[inline]
    pub fn has_freed(&self) -> bool {
        let some = |freed: &Freed| freed.anywhere || !freed.queues.is_empty();
        self.local.freed.as_ref().is_some_and(|freed| some(freed))
    }

    /// Where room may have become free since the last call.
    pub fn freed(&mut self) -> Freed {
        self.local.freed.as_deref_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Room may have become free in a queue, and in a group of it.
    #[inline]
    pub(crate) fn frees(&mut self, queue: u32, group: Option<u32>) {
        if self.local.freed.is_some() {
            self.mark_freed(queue, group);
        }
    }

    #[cold]
    fn mark_freed(&mut self, queue: u32, group: Option<u32>) {
        let (Some(freed), Some(name)) = (&mut self.local.freed, self.queues.key(queue)) else { return };
        freed.queues.insert(name.clone());
        let fair = self.queues.get(queue).and_then(|queue| queue.fair.as_deref());
        if let Some(group) = fair.zip(group).and_then(|(fair, at)| fair.groups.get(at)) {
            freed.groups.insert((name.clone(), group.name.clone()));
        }
    }

    /// A bound has changed.
    pub(crate) fn frees_anywhere(&mut self) {
        if let Some(freed) = &mut self.local.freed {
            freed.anywhere = true;
        }
    }

    /// What keeps back posts that [`Board::check_posts`] refuses for `max-jobs` or `max-bytes`.
    /// `growth` is what they add, `whole` what they would add if they replaced nothing. The refusal
    /// is that of posts that exceed a bound by themselves: for them room never becomes free.
    /// O(queues and groups that grow).
    pub fn lack(&self, growth: &Growth, whole: &Growth) -> Result<Option<Lack>, Refusal> {
        let mut found = None;
        let (queue, group) = growth.place();
        let group_in = |name: &ByteString| group.clone().filter(|_| *name == queue);
        let mut saw =
            |never: Result<(), Refusal>, now: Result<(), Refusal>, level, of: &ByteString, group| {
                never?;
                if let (None, Err(Refusal::Limit(bound))) = (&found, now) {
                    found = Some(Lack { level, bound, queue: of.clone(), group });
                }
                Ok(())
            };
        for (key, by) in &growth.groups {
            let (queue, group) = key;
            let most = self.most_in_group(queue, group);
            let check = |jobs: i64| match most >= 0 && jobs > most {
                true => Err(Refusal::Limit("max-jobs")),
                false => Ok(()),
            };
            let never = check(whole.groups.get(key).copied().unwrap_or(0));
            let now = if *by > 0 { check(self.live_in_group(queue, group) as i64 + by) } else { Ok(()) };
            saw(never, now, Level::Group, queue, Some(group.clone()))?;
        }
        for (name, load) in &growth.queues {
            let Some(queue) = self.queues.find(&**name).and_then(|at| self.queues.get(at)) else { continue };
            let all = whole.queues.get(name).copied().unwrap_or_default();
            let now = within(&queue.settings, *load, queue.live(), queue.bytes as u64);
            saw(within(&queue.settings, all, 0, 0), now, Level::Queue, name, group_in(name))?;
        }
        let never = within(&self.settings, whole.all, 0, 0);
        let now = within(&self.settings, growth.all, self.live(), self.record_bytes());
        saw(never, now, Level::Board, &queue, group.clone())?;
        Ok(found)
    }

    pub(super) fn most_in_group(&self, queue: &[u8], group: &[u8]) -> i64 {
        self.fair_named(queue).map_or(-1, |fair| match fair.find(group).and_then(|at| fair.groups.get(at)) {
            Some(group) => fair.value(group, Setting::MaxJobs),
            None => fair.value(&Group::default(), Setting::MaxJobs),
        })
    }

    pub(super) fn live_in_group(&self, queue: &[u8], group: &[u8]) -> u64 {
        let fair = self.fair_named(queue);
        let group = fair.and_then(|fair| fair.groups.get(fair.find(group)?));
        group.map_or(0, |group| live(|state| group.count(state)))
    }
}

impl Growth {
    /// Whether nothing is added.
    pub fn is_nothing(&self) -> bool {
        let Load { jobs, bytes } = self.all;
        jobs <= 0 && bytes <= 0
    }

    /// The queue and the group to which most is added; a group only where groups are bounded.
    pub fn place(&self) -> (ByteString, Option<ByteString>) {
        let most = self.queues.iter().max_by_key(|(_, load)| (load.jobs, load.bytes));
        let queue = most.map(|(name, _)| name.clone()).unwrap_or_default();
        let group = self.groups.iter().find(|((of, _), by)| *of == queue && **by > 0);
        (queue, group.map(|((_, group), _)| group.clone()))
    }
}
