//! Listing and counting jobs by filters.
//!
//! A listing walks the states in the order claimed, ready, scheduled, blocked, complete, failed,
//! cancelled, trashed, and each in its own order; it skips what a filter excludes as a whole. A
//! listing by label follows the order of posts (see `list_labels`). One call looks at a bounded
//! number of jobs, so it may return fewer jobs than were asked for, with a cursor to continue from.

use crate::job::Job;
use std::cmp::Reverse;
use std::ops::Bound;

use crate::board::Board;
use crate::job::order::ReadyKey;
use crate::job::State;
use crate::queue::Queue;
use crate::reading::filters::{Cursor, Filter, Filters, Page, Start};
use crate::structures::byte_string::ByteString;
use crate::structures::merge::{directed, in_order, merged, Slots};
use crate::structures::sorted::SortedSlots;

/// The states in the order of a listing.
pub(crate) const WALK: [State; 8] = [
    State::Claimed,
    State::Ready,
    State::Scheduled,
    State::Blocked,
    State::Complete,
    State::Failed,
    State::Cancelled,
    State::Trashed,
];

/// The most jobs that a call looks at, or ten for each that it may return if that is more.
pub(crate) const LOOK: usize = 10_000;

impl Board {
    /// The slots of the records that have changed since the revision in the filters: see
    /// [`Board::changed_since`].
    fn slots_changed(&self, filters: &Filters<'_>, most: usize) -> Option<Vec<u32>> {
        self.changed_since(filters.since()?, most)
    }

    /// One page of these slots as a listing. O(n log n).
    pub(crate) fn list_changed(&self, slots: Vec<u32>, page: &Page<'_>) -> (Vec<u32>, Option<Start>) {
        let holds = |slot: &u32| self.record_of(*slot).is_some_and(|record| page.filters.holds(&record));
        let start = |slot: u32| match page.filters.by_posting() {
            true => Some(Start::Posted(self.seq(slot))),
            false => self.cursor(self.store.jobs.get(slot)?.state, slot).map(Start::At),
        };
        let found = slots.into_iter().filter(holds);
        let mut places: Vec<(Start, u32)> = found.filter_map(|slot| Some((start(slot)?, slot))).collect();
        places.sort_unstable_by_key(|(at, _)| at.rank());
        if page.reverse {
            places.reverse();
        }
        let passed = |(at, _): &(Start, u32), from: Start| match page.reverse {
            true => at.rank() > from.rank(),
            false => at.rank() < from.rank(),
        };
        let begin = page.from.map_or(0, |from| places.partition_point(|place| passed(place, from)));
        let mut rest = places.into_iter().skip(begin);
        let slots = rest.by_ref().take(page.count).map(|(_, slot)| slot).collect();
        (slots, rest.next().map(|(start, _)| start))
    }

    /// One page of a listing: slots, and where to continue. O(log n + jobs looked at).
    pub fn list(&self, page: &Page<'_>) -> (Vec<u32>, Option<Start>) {
        let named = self.fewest_named(&page.filters);
        let least = named.as_ref().map_or(usize::MAX, |named| named.most);
        if let Some(slots) = self.slots_changed(&page.filters, least) {
            return self.list_changed(slots, page);
        }
        if let Some(named) = named.filter(|_| page.filters.by_posting()) {
            return self.list_named(page, &named);
        }
        let at = match page.from {
            Some(Start::At(cursor)) => Some(cursor),
            _ => None,
        };
        let mut found = Vec::new();
        let mut looks = page.filters.most_looks(page.count);
        let mut states = WALK.to_vec();
        if page.reverse {
            states.reverse();
        }
        let begin = at.map(|c| c.state).and_then(|s| states.iter().position(|t| *t == s));
        for state in states.into_iter().skip(begin.unwrap_or(0)) {
            if self.most_in(state, &page.filters) == 0 {
                continue;
            }
            let from = at.filter(|c| c.state == state);
            if let Some(walk) = self.by_slot(state, from, page) {
                if let Some(next) = self.fill_by_slot(walk, page, &mut looks, &mut found) {
                    return (found, Some(Start::At(next)));
                }
                continue;
            }
            let slots = self.walk(state, from, page);
            if let Some(slot) = self.fill(page, slots, &mut looks, &mut found) {
                return (found, self.cursor(state, slot).map(Start::At));
            }
        }
        (found, None)
    }

    /// Adds those of these jobs that pass to a page, until it is full or the looks are used up. Returns
    /// where it stopped before the end.
    pub(crate) fn fill(
        &self,
        page: &Page<'_>,
        slots: Slots<'_>,
        looks: &mut usize,
        found: &mut Vec<u32>,
    ) -> Option<u32> {
        for slot in slots {
            if found.len() >= page.count || *looks == 0 {
                return Some(slot);
            }
            let Some(record) = self.record_of(slot) else { continue };
            *looks = looks.saturating_sub(page.filters.looks(&record));
            if page.filters.holds(&record) {
                found.push(slot);
            }
        }
        None
    }

    pub(crate) fn cursor(&self, state: State, slot: u32) -> Option<Cursor> {
        let job = self.store.jobs.get(slot)?;
        if state == State::Ready {
            let (level, time, seq) = job.ready_key();
            return Some(Cursor { state, priority: level.0, time, seq, slot: None });
        }
        let (time, seq) = match state {
            State::Claimed => self.store.lease_key(slot),
            state if state.ended() => job.ended_key(),
            _ => job.at_key(),
        };
        Some(Cursor { state, priority: job.priority, time, seq, slot: None })
    }

    /// The slots of one state, in its order, from a cursor.
    pub(crate) fn walk<'a>(&'a self, state: State, from: Option<Cursor>, page: &Page<'_>) -> Slots<'a> {
        let key = from.map(|c| (c.time, c.seq));
        let queues = page.filters.queues();
        if !queues.is_empty() && state.is_aside() {
            let numbers = queues.into_iter().filter_map(|name| self.queues.find(name));
            let named = numbers.filter_map(|number| self.queues.get(number));
            let key_of = |s: u32| self.store.jobs.get(s).map(Self::aside_key).unwrap_or_default();
            let lines = named.filter_map(|queue| queue.aside(state));
            return page.ended_within(state, key, key_of, |key| merged(lines, key, page.reverse, key_of));
        }
        let at_key = |s: u32| self.store.jobs.get(s).map(Job::at_key).unwrap_or_default();
        match state {
            State::Claimed => {
                let key_of = |s| self.store.lease_key(s);
                match self.held_by_few(&page.filters) {
                    Some(slots) => in_order(slots, key, page.reverse, key_of),
                    None => directed(&self.places.leases, key, page.reverse, key_of),
                }
            }
            State::Scheduled => directed(&self.places.due, key, page.reverse, at_key),
            State::Ready => self.walk_ready(from, page),
            State::Blocked => directed(&self.places.seldom.blocked, key, page.reverse, at_key),
            _ => {
                let key_of = |s: u32| self.store.jobs.get(s).map(Job::ended_key).unwrap_or_default();
                let lines =
                    [false, true].into_iter().filter_map(|pinned| self.places.ended.line(state, pinned));
                let lines = lines.filter(|line| !line.is_empty());
                page.ended_within(state, key, key_of, |key| merged(lines, key, page.reverse, key_of))
            }
        }
    }

    /// Ready jobs of all queues that the filters allow, merged into the order of claims.
    fn walk_ready<'a>(&'a self, from: Option<Cursor>, page: &Page<'_>) -> Slots<'a> {
        let key = from.map(|c| (Reverse(c.priority), c.time, c.seq));
        let key_of = |s: u32| self.store.jobs.get(s).map(Job::ready_key).unwrap_or_default();
        let (queues, groups) = (page.filters.queues(), page.filters.groups());
        let numbers: Vec<u32> = match queues.is_empty() {
            true => self.busy().to_vec(),
            false => queues.iter().filter_map(|name| self.queues.find(*name)).collect(),
        };
        let named = numbers.into_iter().filter_map(|q| self.queues.get(q));
        let lines: Vec<&SortedSlots<ReadyKey>> = match groups.is_empty() {
            true => named.flat_map(Queue::ready_lines).collect(),
            false => {
                named.flat_map(|queue| groups.iter().filter_map(|name| queue.group_line(name))).collect()
            }
        };
        merged(lines, key, page.reverse, key_of)
    }

    /// How many jobs pass the filters. O(1) for no filters, for states, queues or both, and for
    /// labels of one sort, unless there are several tags; O(queues) for groups. Otherwise it walks
    /// the smallest of these sets: what the workers hold, the jobs with the labels, the states and
    /// queues allowed; `None` when that takes more than `most` looks.
    pub fn count_jobs(&self, filters: &Filters<'_>, most: usize) -> Option<u64> {
        if filters.is_empty() {
            return Some(WALK.iter().filter(|s| !s.ended()).map(|s| self.count(*s)).sum());
        }
        let by_count = |f: &Filter<'_>| matches!(f, Filter::State(_) | Filter::Queue(_) | Filter::Group(_));
        if filters.excluded().next().is_none() && filters.asked().all(by_count) {
            return self.count_from_tallies(filters, most);
        }
        if let Some(n) = self.count_bearers(filters) {
            return Some(n);
        }
        let walked: usize = WALK.into_iter().map(|state| self.most_in(state, filters)).sum();
        let named = self.fewest_named(filters).filter(|named| named.most < walked);
        let least = named.as_ref().map_or(walked, |named| named.most);
        if let Some(slots) = self.slots_changed(filters, least) {
            return self.count_among(slots, filters, most);
        }
        if least > most {
            return None;
        }
        if let Some(named) = named {
            return self.count_among(self.walk_named(&named, None, false), filters, most);
        }
        let workers = filters.workers();
        if !workers.is_empty() {
            return self.count_among(workers.into_iter().flat_map(|w| self.held(w, 0)), filters, most);
        }
        let page = Page { filters: filters.clone(), ..Page::default() };
        let states = WALK.into_iter().filter(|s| self.most_in(*s, filters) > 0);
        let walk = |state| match self.by_slot(state, None, &page) {
            Some(_) => self.all_ready(),
            None => self.walk(state, None, &page),
        };
        self.count_among(states.flat_map(walk), filters, most)
    }

    /// How many of these jobs pass; `None` when that takes more looks than these.
    fn count_among(
        &self,
        slots: impl IntoIterator<Item = u32>,
        filters: &Filters<'_>,
        mut looks: usize,
    ) -> Option<u64> {
        let mut passing = 0;
        for record in slots.into_iter().filter_map(|slot| self.record_of(slot)) {
            looks = looks.checked_sub(filters.looks(&record))?;
            passing += u64::from(filters.holds(&record));
        }
        Some(passing)
    }

    /// How many jobs a walk over a state would look at for these filters; 0 when none can pass.
    fn most_in(&self, state: State, filters: &Filters<'_>) -> usize {
        if !filters.allows_state(state) {
            return 0;
        }
        let queues = filters.queues();
        let there = queues.iter().map(|q| self.count_in(q, state)).sum::<u64>() as usize;
        let workers = filters.workers();
        match state {
            _ if !queues.is_empty() && there == 0 => 0,
            State::Claimed if !workers.is_empty() => self.held_by(&workers),
            State::Claimed => self.count(state) as usize,
            _ if !queues.is_empty() => there,
            _ => self.count(state) as usize,
        }
    }

    /// How many jobs these workers hold.
    fn held_by(&self, workers: &[&[u8]]) -> usize {
        let known = workers.iter().filter_map(|w| self.workers.names.get(self.workers.names.find(*w)?));
        known.map(|worker| worker.claims.len()).sum()
    }

    /// What the named workers hold, if any are named and they hold no more than a call looks at.
    fn held_by_few(&self, filters: &Filters<'_>) -> Option<Vec<u32>> {
        let workers = filters.workers();
        let few = !workers.is_empty() && self.held_by(&workers) <= LOOK;
        few.then(|| workers.into_iter().flat_map(|w| self.held(w, 0)).collect())
    }

    /// Adds up what is counted already; `None` when that takes more than `most` looks at a group.
    fn count_from_tallies(&self, filters: &Filters<'_>, most: usize) -> Option<u64> {
        let (queues, groups) = (filters.queues(), filters.groups());
        let asked = if queues.is_empty() { self.queues.used() } else { queues.len() };
        if asked.saturating_mul(groups.len()) > most {
            return None;
        }
        let states: Vec<State> = WALK.into_iter().filter(|s| filters.allows_state(*s)).collect();
        let sum = |count: &dyn Fn(State) -> u64| states.iter().map(|state| count(*state)).sum::<u64>();
        let in_group = |queue: &Queue, name: &[u8]| {
            queue.group_named(name).map_or(0, |group| sum(&|state| group.count(state)))
        };
        let in_groups = |queue| groups.iter().map(|name| in_group(queue, name)).sum::<u64>();
        Some(match (queues.is_empty(), groups.is_empty()) {
            (true, true) => sum(&|state| self.count(state)),
            (false, true) => queues.iter().map(|q| sum(&|state| self.count_in(q, state))).sum(),
            (true, false) => self.queues.iter().map(|(_, _, queue)| in_groups(queue)).sum(),
            (false, false) => {
                let numbers = queues.iter().filter_map(|name| self.queues.find(*name));
                numbers.filter_map(|number| self.queues.get(number)).map(in_groups).sum()
            }
        })
    }

    /// How many jobs of a queue are in this state. O(1).
    pub fn count_in(&self, queue: &[u8], state: State) -> u64 {
        let queue = self.queues.find(queue).and_then(|q| self.queues.get(q));
        queue.and_then(|l| l.counts.get(state as usize)).copied().unwrap_or(0)
    }

    /// Whether a queue has jobs, has settings of its own or of groups, or is paused.
    pub(crate) fn is_queue(queue: &Queue) -> bool {
        queue.counts.iter().any(|n| *n > 0)
            || queue.is_configured()
            || queue.paused > 0
            || queue.fair.as_ref().is_some_and(|f| f.is_known())
    }

    fn holding_workers(&self) -> impl Iterator<Item = (&[u8], usize, i64)> {
        let held = self.workers.names.iter().map(|(_, name, w)| (&**name, w.claims.len(), w.local.seen));
        held.filter(|(_, n, _)| *n > 0)
    }

    /// How many workers hold jobs. O(workers).
    pub fn worker_count(&self) -> usize {
        self.holding_workers().count()
    }

    /// The workers that hold jobs, by name: how many jobs, and when they last spoke (Unix ms) as
    /// far as this copy knows. O(workers).
    pub fn worker_names(&self) -> Vec<(&[u8], usize, i64)> {
        let mut names: Vec<(&[u8], usize, i64)> = self.holding_workers().collect();
        names.sort_unstable();
        names
    }

    /// The first `n` of these workers behind a name, and whether there are more. O(workers + n log
    /// n).
    #[allow(clippy::type_complexity)]
    pub fn workers_after(&self, after: Option<&[u8]>, n: usize) -> (Vec<(&[u8], usize, i64)>, bool) {
        first(self.holding_workers().filter(|(name, ..)| after.is_none_or(|after| *name > after)), n)
    }

    /// The kinds of the failed jobs on the board, and how many of each. O(kinds).
    pub fn kinds(&self) -> impl ExactSizeIterator<Item = (&[u8], u64)> {
        self.places.kinds.iter().map(|(kind, n)| (&**kind, *n))
    }

    /// The kinds behind this one. O(log kinds + those taken).
    pub fn kinds_after(&self, after: Option<&[u8]>) -> impl Iterator<Item = (&[u8], u64)> {
        let from = after.map_or(Bound::Unbounded, |kind| Bound::Excluded(ByteString::from(kind)));
        self.places.kinds.range((from, Bound::Unbounded)).map(|(kind, n)| (&**kind, *n))
    }

    /// How many tombstones the board keeps.
    pub fn tombstones(&self) -> usize {
        self.places.tombstones.len()
    }
}

/// The first `n` in order, and whether there are more. O(all + n log n).
pub(crate) fn first<T: Ord>(all: impl Iterator<Item = T>, n: usize) -> (Vec<T>, bool) {
    let mut all: Vec<T> = all.collect();
    let more = all.len() > n;
    if more && n > 0 {
        all.select_nth_unstable(n - 1);
    }
    all.truncate(n);
    all.sort_unstable();
    (all, more)
}
