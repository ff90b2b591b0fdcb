//! Listing and counting jobs by filters.
//!
//! A listing walks the states in the order claimed, ready, scheduled, blocked, complete,
//! failed, cancelled, trashed, and each in its own order; what a filter rules out wholly is
//! not walked. One that asks for a label follows the order of posts (see `labelled`). One call
//! looks at a bounded number of jobs, so that it may give fewer than were asked for, with a
//! cursor to go on from.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::board::{Board, Queue, ReadyKey};
use crate::job::State;
use crate::labelled::Bearers;
use crate::line::Line;
use crate::record::Record;

/// One condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter<'a> {
    /// In that state.
    State(State),
    /// In that queue.
    Queue(&'a [u8]),
    /// Of that group.
    Group(&'a [u8]),
    /// Held by that worker.
    Worker(&'a [u8]),
    /// Of that name.
    Name(&'a [u8]),
    /// Has lost a lease.
    Lapsed,
    /// With that tag.
    Tag(&'a [u8]),
    /// Whose last failure is of that kind.
    Kind(&'a [u8]),
    /// That somebody follows.
    Tracked,
    /// Posted on behalf of that user.
    User(&'a [u8]),
    /// Has changed since that revision of the board.
    Since(u64),
}

impl Filter<'_> {
    fn holds(&self, record: &Record<'_>) -> bool {
        match self {
            Filter::State(state) => record.state() == *state,
            Filter::Queue(queue) => record.queue() == *queue,
            Filter::Group(group) => record.group() == Some(group),
            Filter::Worker(worker) => record.worker() == Some(worker),
            Filter::Name(name) => record.name() == Some(name),
            Filter::Lapsed => record.lapses() > 0,
            Filter::Tag(tag) => record.tags().any(|other| other == *tag),
            Filter::Kind(kind) => record.kind() == Some(kind),
            Filter::Tracked => record.tracked(),
            Filter::User(user) => record.user() == Some(user),
            Filter::Since(version) => record.version() as u64 > *version,
        }
    }

    /// A bit for its kind.
    fn kind(&self) -> u16 {
        1 << match self {
            Filter::State(_) => 0,
            Filter::Queue(_) => 1,
            Filter::Group(_) => 2,
            Filter::Worker(_) => 3,
            Filter::Name(_) => 4,
            Filter::Lapsed => 5,
            Filter::Tag(_) => 6,
            Filter::Kind(_) => 7,
            Filter::Tracked => 8,
            Filter::User(_) => 9,
            Filter::Since(_) => 10,
        }
    }
}

/// Conditions: those of one kind are alternatives, kinds add up, and none of the excluding
/// ones may hold.
#[derive(Debug, Clone, Default)]
pub struct Filters<'a> {
    /// Of each kind named here, one has to hold.
    pub any: Vec<Filter<'a>>,
    /// None of these may hold.
    pub none: Vec<Filter<'a>>,
}

impl<'a> Filters<'a> {
    /// Whether there is no condition.
    pub fn is_empty(&self) -> bool {
        self.any.is_empty() && self.none.is_empty()
    }

    /// The revision since when a job has to have changed.
    pub fn since(&self) -> Option<u64> {
        let since = |filter: &Filter<'_>| if let Filter::Since(v) = filter { Some(*v) } else { None };
        self.any.iter().filter_map(since).min()
    }

    /// O(filters).
    pub(crate) fn holds(&self, record: &Record<'_>) -> bool {
        let (mut asked, mut held) = (0, 0);
        for filter in &self.any {
            asked |= filter.kind();
            if held & filter.kind() == 0 && filter.holds(record) {
                held |= filter.kind();
            }
        }
        asked == held && !self.none.iter().any(|f| f.holds(record))
    }

    /// The names of one kind that are asked for, each once.
    pub(crate) fn named(&self, name: impl Fn(&Filter<'a>) -> Option<&'a [u8]>) -> Vec<&'a [u8]> {
        let mut names: Vec<&[u8]> = self.any.iter().filter_map(name).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    pub(crate) fn queues(&self) -> Vec<&'a [u8]> {
        self.named(|f| if let Filter::Queue(q) = f { Some(*q) } else { None })
    }

    pub(crate) fn groups(&self) -> Vec<&'a [u8]> {
        self.named(|f| if let Filter::Group(g) = f { Some(*g) } else { None })
    }

    fn workers(&self) -> Vec<&'a [u8]> {
        self.named(|f| if let Filter::Worker(w) = f { Some(*w) } else { None })
    }

    pub(crate) fn allows_state(&self, state: State) -> bool {
        let mut named = false;
        let mut allowed = false;
        for filter in &self.any {
            match filter {
                Filter::State(s) => {
                    named = true;
                    allowed |= *s == state;
                }
                Filter::Worker(_) if state != State::Claimed => return false,
                _ => {}
            }
        }
        (allowed || !named) && !self.none.contains(&Filter::State(state))
    }
}

/// A place among the states: the state, and the key of the next job there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    pub(crate) state: State,
    pub(crate) priority: i32,
    pub(crate) time: i64,
    pub(crate) seq: i64,
}

impl Cursor {
    /// Reads what [`Cursor::text`] wrote.
    pub fn read(text: &[u8]) -> Option<Cursor> {
        let mut parts = std::str::from_utf8(text).ok()?.split('.');
        let mut number = || parts.next()?.parse::<i64>().ok();
        let cursor = Cursor {
            state: State::try_from(u8::try_from(number()?).ok()?).ok()?,
            priority: i32::try_from(number()?).ok()?,
            time: number()?,
            seq: number()?,
        };
        parts.next().is_none().then_some(cursor)
    }

    /// As clients see it.
    pub fn text(&self) -> String {
        format!("{}.{}.{}.{}", self.state as u8, self.priority, self.time, self.seq)
    }
}

/// Where a listing goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// At a place among the states.
    At(Cursor),
    /// At a place in the order of posts.
    Posted(i64),
}

impl Start {
    /// Reads what [`Start::text`] wrote.
    pub fn read(text: &[u8]) -> Option<Start> {
        match text {
            [b'>', seq @ ..] => std::str::from_utf8(seq).ok()?.parse().ok().map(Start::Posted),
            text => Cursor::read(text).map(Start::At),
        }
    }

    /// The order of listings.
    pub(crate) fn rank(&self) -> (Option<usize>, Reverse<i32>, i64, i64) {
        match self {
            Start::At(at) => {
                let priority = if at.state == State::Ready { at.priority } else { 0 };
                let state = WALK.iter().position(|state| *state == at.state);
                (state, Reverse(priority), at.time, at.seq)
            }
            Start::Posted(seq) => (None, Reverse(0), 0, *seq),
        }
    }

    /// As clients see it.
    pub fn text(&self) -> String {
        match self {
            Start::At(cursor) => cursor.text(),
            Start::Posted(seq) => format!(">{seq}"),
        }
    }
}

/// What one call of a listing asks for.
#[derive(Debug, Clone, Default)]
pub struct Page<'a> {
    /// Which jobs.
    pub filters: Filters<'a>,
    /// Where the last call ended.
    pub from: Option<Start>,
    /// How many at most.
    pub count: usize,
    /// Backwards.
    pub reverse: bool,
}

impl Page<'_> {
    /// Whether it goes on in the order that its filters have.
    pub fn fits(&self) -> bool {
        self.from.is_none_or(|from| matches!(from, Start::Posted(_)) == self.filters.by_posting())
    }
}

const WALK: [State; 8] = [
    State::Claimed,
    State::Ready,
    State::Scheduled,
    State::Blocked,
    State::Complete,
    State::Failed,
    State::Cancelled,
    State::Trashed,
];

/// A call looks at no more jobs than this, and ten for each that it may give.
pub(crate) const LOOK: usize = 10_000;

pub(crate) type Slots<'a> = Box<dyn Iterator<Item = u32> + 'a>;

impl Board {
    /// One page of a listing: slots, and where to go on. O(log n + what it looks at).
    pub fn list(&self, page: &Page<'_>) -> (Vec<u32>, Option<Start>) {
        let bearers = self.fewest_bearers(&page.filters);
        let least = bearers.as_ref().map_or(usize::MAX, Bearers::most);
        if let Some(slots) = self.changed_since(&page.filters, least) {
            return self.list_changed(slots, page);
        }
        if let Some(bearers) = bearers {
            return self.list_bearers(page, &bearers);
        }
        let at = match page.from {
            Some(Start::At(cursor)) => Some(cursor),
            _ => None,
        };
        let mut found = Vec::new();
        let mut looks = page.count.saturating_mul(10).max(LOOK);
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
            for slot in self.walk(state, from, page) {
                if found.len() >= page.count || looks == 0 {
                    return (found, self.cursor(state, slot).map(Start::At));
                }
                looks -= 1;
                if self.record_of(slot).is_some_and(|record| page.filters.holds(&record)) {
                    found.push(slot);
                }
            }
        }
        (found, None)
    }

    pub(crate) fn cursor(&self, state: State, slot: u32) -> Option<Cursor> {
        let job = self.jobs.get(slot)?;
        if state == State::Ready {
            let (level, time, seq) = Self::ready_key(job);
            return Some(Cursor { state, priority: level.0, time, seq });
        }
        let (time, seq) = match state {
            State::Claimed => Self::lease_key_of(&self.jobs, &self.claims, slot),
            state if state.ended() => Self::ended_key(job),
            _ => Self::at_key(job),
        };
        Some(Cursor { state, priority: job.priority, time, seq })
    }

    /// The slots of one state, in its order, from a cursor.
    pub(crate) fn walk<'a>(&'a self, state: State, from: Option<Cursor>, page: &Page<'_>) -> Slots<'a> {
        let key = from.map(|c| (c.time, c.seq));
        let queues = page.filters.queues();
        if !queues.is_empty() && state.is_aside() {
            let numbers = queues.into_iter().filter_map(|name| self.queues.find(name));
            let lanes = numbers.filter_map(|number| self.queues.get(number));
            let key_of = |s: u32| self.jobs.get(s).map(Self::aside_key).unwrap_or_default();
            let lines = lanes.filter_map(|lane| lane.aside(state));
            return merged(lines, key, page.reverse, key_of);
        }
        let at_key = |s: u32| self.jobs.get(s).map(Self::at_key).unwrap_or_default();
        match state {
            State::Claimed => {
                let key_of = |s| Self::lease_key_of(&self.jobs, &self.claims, s);
                match self.held_by_few(&page.filters) {
                    Some(slots) => in_order(slots, key, page.reverse, key_of),
                    None => directed(&self.leases, key, page.reverse, key_of),
                }
            }
            State::Scheduled => directed(&self.due, key, page.reverse, at_key),
            State::Ready => self.walk_ready(from, page),
            State::Blocked => directed(&self.blocked, key, page.reverse, at_key),
            _ => {
                let at = (state as usize).saturating_sub(State::Complete as usize);
                let key_of = |s: u32| self.jobs.get(s).map(Self::ended_key).unwrap_or_default();
                let lines = [&self.ended, &self.kept].into_iter().filter_map(|lines| lines.get(at));
                merged(lines.filter(|line| !line.is_empty()), key, page.reverse, key_of)
            }
        }
    }

    /// Ready jobs of all queues that the filters allow, merged into the order of claims.
    fn walk_ready<'a>(&'a self, from: Option<Cursor>, page: &Page<'_>) -> Slots<'a> {
        let key = from.map(|c| (Reverse(c.priority), c.time, c.seq));
        let key_of = |s: u32| self.jobs.get(s).map(Self::ready_key).unwrap_or_default();
        let (queues, groups) = (page.filters.queues(), page.filters.groups());
        let numbers: Vec<u32> = match queues.is_empty() {
            true => self.busy().to_vec(),
            false => queues.iter().filter_map(|name| self.queues.find(*name)).collect(),
        };
        let lanes = numbers.into_iter().filter_map(|q| self.queues.get(q));
        let lines: Vec<&Line<ReadyKey>> = match groups.is_empty() {
            true => lanes.flat_map(Queue::ready_lines).collect(),
            false => lanes.flat_map(|lane| groups.iter().filter_map(|name| lane.group_line(name))).collect(),
        };
        merged(lines, key, page.reverse, key_of)
    }

    /// How many jobs pass the filters. O(1) for none, for states, queues or both, and for labels
    /// of one sort, unless they are several tags; O(queues) for groups. Otherwise it walks the
    /// smallest set of: what the workers hold, the jobs that bear the labels, the states and
    /// queues allowed.
    pub fn count_jobs(&self, filters: &Filters<'_>) -> u64 {
        if filters.is_empty() {
            return WALK.iter().filter(|s| !s.ended()).map(|s| self.count(*s)).sum();
        }
        let by_count = |f: &Filter<'_>| matches!(f, Filter::State(_) | Filter::Queue(_) | Filter::Group(_));
        if filters.none.is_empty() && filters.any.iter().all(by_count) {
            return self.count_from_tallies(filters);
        }
        if let Some(n) = self.count_bearers(filters) {
            return n;
        }
        let holds = |slot: &u32| self.record_of(*slot).is_some_and(|r| filters.holds(&r));
        let walked: usize = WALK.into_iter().map(|state| self.most_in(state, filters)).sum();
        let bearers = self.fewest_bearers(filters).filter(|b| b.most() < walked);
        let least = bearers.as_ref().map_or(walked, Bearers::most);
        if let Some(slots) = self.changed_since(filters, least) {
            return slots.iter().filter(|slot| holds(slot)).count() as u64;
        }
        if let Some(bearers) = bearers {
            return self.walk_bearers(&bearers, None, false).filter(holds).count() as u64;
        }
        let workers = filters.workers();
        if !workers.is_empty() {
            return workers.into_iter().flat_map(|w| self.held(w, 0)).filter(holds).count() as u64;
        }
        let page = Page { filters: filters.clone(), ..Page::default() };
        let states = WALK.into_iter().filter(|s| self.most_in(*s, filters) > 0);
        states.flat_map(|s| self.walk(s, None, &page)).filter(holds).count() as u64
    }

    /// How many jobs a walk over a state would look at for those filters; 0 when none can pass.
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

    /// How many jobs those workers hold.
    fn held_by(&self, workers: &[&[u8]]) -> usize {
        let known = workers.iter().filter_map(|w| self.workers.get(self.workers.find(*w)?));
        known.map(|worker| worker.claims.len()).sum()
    }

    /// What the named workers hold, if any are named and they do not hold more than a call
    /// looks at.
    fn held_by_few(&self, filters: &Filters<'_>) -> Option<Vec<u32>> {
        let workers = filters.workers();
        let few = !workers.is_empty() && self.held_by(&workers) <= LOOK;
        few.then(|| workers.into_iter().flat_map(|w| self.held(w, 0)).collect())
    }

    fn count_from_tallies(&self, filters: &Filters<'_>) -> u64 {
        let (queues, groups) = (filters.queues(), filters.groups());
        let states: Vec<State> = WALK.into_iter().filter(|s| filters.allows_state(*s)).collect();
        let sum = |count: &dyn Fn(State) -> u64| states.iter().map(|state| count(*state)).sum::<u64>();
        match (queues.is_empty(), groups.is_empty()) {
            (true, true) => sum(&|state| self.count(state)),
            (false, true) => queues.iter().map(|q| sum(&|state| self.count_in(q, state))).sum(),
            (all, false) => {
                let lanes = self.queues.iter().filter(|(_, name, _)| all || queues.contains(&&***name));
                let each = |lane: &Queue, name: &[u8]| {
                    lane.group_named(name).map_or(0, |group| sum(&|state| group.count(state)))
                };
                lanes.map(|(_, _, lane)| groups.iter().map(|name| each(lane, name)).sum::<u64>()).sum()
            }
        }
    }

    /// How many jobs of a queue are in that state. O(1).
    pub fn count_in(&self, queue: &[u8], state: State) -> u64 {
        let lane = self.queues.find(queue).and_then(|q| self.queues.get(q));
        lane.and_then(|l| l.counts.get(state as usize)).copied().unwrap_or(0)
    }

    /// The queues that hold jobs, have settings of their own or of groups, or are paused, by name. O(queues).
    pub fn queue_names(&self) -> Vec<&[u8]> {
        let own = |q: &Queue| {
            let set = !q.settings.is_empty() || !q.limits.is_empty();
            set || q.paused > 0 || q.fair.as_ref().is_some_and(|f| f.is_known())
        };
        let used = self.queues.iter().filter(|(_, _, q)| q.counts.iter().any(|n| *n > 0) || own(q));
        let mut names: Vec<&[u8]> = used.map(|(_, name, _)| &**name).collect();
        names.sort_unstable();
        names
    }

    /// The workers that hold jobs, by name: how many, and when they last spoke, as far as
    /// this copy knows. O(workers).
    pub fn worker_names(&self) -> Vec<(&[u8], usize, i64)> {
        let held = self.workers.iter().map(|(_, name, w)| (&**name, w.claims.len(), w.seen));
        let mut names: Vec<(&[u8], usize, i64)> = held.filter(|(_, n, _)| *n > 0).collect();
        names.sort_unstable();
        names
    }

    /// The kinds of the failed jobs that are kept, and how many of each. O(kinds).
    pub fn kinds(&self) -> impl ExactSizeIterator<Item = (&[u8], u64)> {
        self.kinds.iter().map(|(kind, n)| (&**kind, *n))
    }

    /// How many ended jobs are remembered after they went.
    pub fn tombstones(&self) -> usize {
        self.tombstones.len()
    }
}

pub(crate) fn directed<'a, K: Ord + Copy + 'a>(
    line: &'a Line<K>,
    from: Option<K>,
    reverse: bool,
    key_of: impl Fn(u32) -> K + 'a,
) -> Slots<'a> {
    match reverse {
        true => Box::new(line.iter_back_from(from, key_of)),
        false => Box::new(line.iter_from(from, key_of)),
    }
}

/// The slots of several lines in one order.
pub(crate) fn merged<'a, K: Ord + Copy + 'a>(
    lines: impl IntoIterator<Item = &'a Line<K>>,
    from: Option<K>,
    reverse: bool,
    key_of: impl Fn(u32) -> K + Copy + 'a,
) -> Slots<'a> {
    let sources = lines.into_iter().map(|line| directed(line, from, reverse, key_of)).collect();
    match reverse {
        true => Box::new(Merge::new(sources, move |s| Reverse(key_of(s)))),
        false => Box::new(Merge::new(sources, key_of)),
    }
}

/// Slots as a line of them would be walked.
fn in_order<'a, K: Ord + Copy + 'a>(
    mut slots: Vec<u32>,
    from: Option<K>,
    reverse: bool,
    key_of: impl Fn(u32) -> K + 'a,
) -> Slots<'a> {
    slots.sort_unstable_by_key(|s| key_of(*s));
    match reverse {
        true => {
            slots.reverse();
            Box::new(slots.into_iter().skip_while(move |s| from.is_some_and(|from| key_of(*s) > from)))
        }
        false => Box::new(slots.into_iter().skip_while(move |s| from.is_some_and(|from| key_of(*s) < from))),
    }
}

/// Sorted sequences as one.
pub(crate) struct Merge<'a, K, F> {
    sources: Vec<Slots<'a>>,
    heads: BinaryHeap<Reverse<(K, u32, usize)>>,
    key_of: F,
}

impl<'a, K: Ord, F: Fn(u32) -> K> Merge<'a, K, F> {
    pub(crate) fn new(mut sources: Vec<Slots<'a>>, key_of: F) -> Self {
        let firsts = sources.iter_mut().enumerate().filter_map(|(i, s)| Some((s.next()?, i)));
        let heads = firsts.map(|(slot, i)| Reverse((key_of(slot), slot, i))).collect();
        Merge { sources, heads, key_of }
    }
}

impl<K: Ord, F: Fn(u32) -> K> Iterator for Merge<'_, K, F> {
    type Item = u32;
    fn next(&mut self) -> Option<u32> {
        let Reverse((_, slot, source)) = self.heads.pop()?;
        if let Some(next) = self.sources.get_mut(source).and_then(Iterator::next) {
            self.heads.push(Reverse(((self.key_of)(next), next, source)));
        }
        Some(slot)
    }
}
