//! Which jobs a listing, a count or a selection is for, and where a page begins.

use std::cmp::Reverse;
use std::mem::discriminant;

use crate::job::order::{ReadyKey, TimeKey};
use crate::job::State;
use crate::reading::list::{LOOK, WALK};
use crate::reading::record::Record;
use crate::structures::merge::Slots;
use crate::structures::texts::contains_any;

/// One condition. Conditions that search a text come last, and are tried last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Filter<'a> {
    /// The job is in this state.
    State(State),
    /// The job is in this queue.
    Queue(&'a [u8]),
    /// The job is of this group.
    Group(&'a [u8]),
    /// This worker holds the job.
    Worker(&'a [u8]),
    /// The job has this name.
    Name(&'a [u8]),
    /// The job has lost a lease.
    Lapsed,
    /// The job has this tag.
    Tag(&'a [u8]),
    /// The last failure of the job is of this kind.
    Kind(&'a [u8]),
    /// The job is tracked.
    Tracked,
    /// The job was posted on behalf of this user.
    User(&'a [u8]),
    /// The job has changed since this revision of the board.
    Since(u64),
    /// The job was posted between these times (Unix ms), both included.
    Posted(i64, i64),
    /// The job has ended between these times (Unix ms), both included.
    Ended(i64, i64),
    /// The job is a child of this one.
    Parent(&'a [u8]),
    /// The job waits for this one.
    After(&'a [u8]),
    /// The job waits for this signal, which has not arrived.
    Awaits(&'a [u8]),
    /// The id of the job begins so.
    Id(&'a [u8]),
    /// The job has this field of its user with this value.
    Meta(&'a [u8], &'a [u8]),
    /// The stage that its worker has reported contains this.
    Stage(&'a [u8]),
    /// The message of its last failure contains this.
    Message(&'a [u8]),
    /// The payload of the job contains this.
    Contains(&'a [u8]),
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
            Filter::Posted(from, to) => (*from..=*to).contains(&record.posted()),
            Filter::Ended(from, to) => record.ended().is_some_and(|at| (*from..=*to).contains(&at)),
            Filter::Parent(parent) => record.is_child_of(parent),
            Filter::After(awaited) => record.waits_for(awaited),
            Filter::Awaits(signal) => record.awaits(signal),
            Filter::Id(beginning) => record.id().text(|id| id.starts_with(beginning)),
            Filter::Meta(field, value) => record.meta().any(|(f, v)| f == *field && v == *value),
            Filter::Stage(_) | Filter::Message(_) | Filter::Contains(_) => {
                contains_any(self.searches(record), self.sought().into_iter())
            }
        }
    }

    /// The text that it seeks in another.
    fn sought(&self) -> Option<&[u8]> {
        match self {
            Filter::Stage(text) | Filter::Message(text) | Filter::Contains(text) => Some(text),
            _ => None,
        }
    }

    /// Whether it seeks a text in another.
    fn is_sought(&self) -> bool {
        self.sought().is_some()
    }

    /// Whether one of these conditions, which are of one kind, holds. Texts are sought together, so that a
    /// long payload is searched once, and not for each of them.
    fn one_holds(kind: &[Filter<'_>], record: &Record<'_>) -> bool {
        match kind.first() {
            Some(first) if first.is_sought() => {
                contains_any(first.searches(record), kind.iter().filter_map(Filter::sought))
            }
            _ => kind.iter().any(|filter| filter.holds(record)),
        }
    }

    /// The text of the job that it searches.
    fn searches<'r>(&self, record: &Record<'r>) -> &'r [u8] {
        let text = match self {
            Filter::Stage(_) => record.stage(),
            Filter::Message(_) => record.message(),
            Filter::Contains(_) => Some(record.payload()),
            _ => None,
        };
        text.unwrap_or_default()
    }

    /// Whether both are conditions of one kind: then one of them has to hold. Fields of `META` are a
    /// kind each.
    fn is_like(&self, other: &Filter<'_>) -> bool {
        match (self, other) {
            (Filter::Meta(field, _), Filter::Meta(another, _)) => field == another,
            _ => discriminant(self) == discriminant(other),
        }
    }
}

/// How many looks the search of a short text counts for: a search begins with some preparation.
const TEXT_LOOKS: usize = 4;

/// Bytes of text that are searched in less than the time of a look at a job.
const LOOK_BYTES: usize = 512;

/// Fields or tags that are compared in about the time of two looks at a job.
const LOOK_COMPARES: usize = 16;

/// Conditions: those of one kind are alternatives, one of each kind must hold, and none of the
/// excluding ones may hold.
#[derive(Debug, Clone, Default)]
pub struct Filters<'a> {
    /// Of each kind named here, one must hold. In order, so those of one kind stand together.
    any: Vec<Filter<'a>>,
    /// None of these may hold.
    none: Vec<Filter<'a>>,
}

impl<'a> Filters<'a> {
    /// These conditions.
    pub fn new(
        any: impl IntoIterator<Item = Filter<'a>>,
        none: impl IntoIterator<Item = Filter<'a>>,
    ) -> Self {
        let (mut any, mut none) = (Vec::from_iter(any), Vec::from_iter(none));
        any.sort_unstable();
        none.sort_unstable();
        Filters { any, none }
    }

    /// Adds a condition that must hold. O(n) for n conditions.
    pub fn ask(&mut self, filter: Filter<'a>) {
        self.any.insert(self.any.partition_point(|other| *other <= filter), filter);
    }

    /// Adds a condition that must not hold. O(n) for n conditions.
    pub fn exclude(&mut self, filter: Filter<'a>) {
        self.none.insert(self.none.partition_point(|other| *other <= filter), filter);
    }

    /// The conditions that must hold.
    pub fn asked(&self) -> impl Iterator<Item = &Filter<'a>> {
        self.any.iter()
    }

    /// The conditions of which none may hold.
    pub fn excluded(&self) -> impl Iterator<Item = &Filter<'a>> {
        self.none.iter()
    }

    /// How many conditions there are.
    pub fn len(&self) -> usize {
        self.any.len() + self.none.len()
    }

    /// Whether there is no condition.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The revision since which a job must have changed.
    pub fn since(&self) -> Option<u64> {
        let since = |filter: &Filter<'_>| if let Filter::Since(v) = filter { Some(*v) } else { None };
        self.any.iter().filter_map(since).min()
    }

    /// The times between which a job must have ended.
    pub(crate) fn ended(&self) -> Option<(i64, i64)> {
        let ended =
            |filter: &Filter<'_>| if let Filter::Ended(a, b) = filter { Some((*a, *b)) } else { None };
        self.any.iter().filter_map(ended).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// Whether a job passes. O(filters + bytes that are searched).
    pub(crate) fn holds(&self, record: &Record<'_>) -> bool {
        let holds = |kind: &[Filter<'_>]| Filter::one_holds(kind, record);
        self.any.chunk_by(Filter::is_like).all(holds) && !self.none.chunk_by(Filter::is_like).any(holds)
    }

    /// Whether a text is sought.
    pub fn search(&self) -> bool {
        self.any.iter().chain(&self.none).any(Filter::is_sought)
    }

    /// How many looks a call takes that is for this many jobs: ten for each, at least [`LOOK`]; no
    /// more when texts are searched, which takes longer than a look.
    pub(crate) fn most_looks(&self, count: usize) -> usize {
        match self.search() {
            true => LOOK,
            false => count.saturating_mul(10).max(LOOK),
        }
    }

    /// How many looks a job counts for: [`TEXT_LOOKS`] for each text that is sought, at least one,
    /// and more for long texts that are searched, and for many fields or tags that are compared.
    /// O(filters).
    pub(crate) fn looks(&self, record: &Record<'_>) -> usize {
        let (sought, bytes) = self
            .any
            .iter()
            .chain(&self.none)
            .filter(|f| f.is_sought())
            .fold((0, 0), |(sought, bytes): (usize, usize), f| {
                (sought + 1, bytes + f.searches(record).len())
            });
        (sought * TEXT_LOOKS).max(1) + bytes / LOOK_BYTES + self.compares(record) / LOOK_COMPARES
    }

    /// How many fields and tags of a job are compared.
    fn compares(&self, record: &Record<'_>) -> usize {
        let compared = self.any.iter().chain(&self.none).map(|filter| match filter {
            Filter::Meta(..) => record.meta().len(),
            Filter::Tag(_) => record.tags().len(),
            _ => 0,
        });
        compared.sum()
    }

    /// The names of one kind that the filters ask for, each once.
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

    pub(crate) fn workers(&self) -> Vec<&'a [u8]> {
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
                Filter::Ended(..) if !state.ended() => return false,
                Filter::After(_) | Filter::Awaits(_) if state != State::Blocked => return false,
                _ => {}
            }
        }
        (allowed || !named) && !self.none.contains(&Filter::State(state))
    }
}

/// A position among the states: the state, and the key of the next job there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    pub(crate) state: State,
    pub(crate) priority: i32,
    pub(crate) time: i64,
    pub(crate) seq: i64,
    /// The next slot, when the walk goes by slots; the key is then that from which on it does.
    pub(crate) slot: Option<u32>,
}

impl Cursor {
    pub(crate) fn ready_key(&self) -> ReadyKey {
        (Reverse(self.priority), self.time, self.seq)
    }

    /// Reads what [`Cursor::text`] wrote.
    pub fn read(text: &[u8]) -> Option<Cursor> {
        let mut parts = std::str::from_utf8(text).ok()?.split('.');
        let mut number = || parts.next()?.parse::<i64>().ok();
        let mut cursor = Cursor {
            state: State::try_from(u8::try_from(number()?).ok()?).ok()?,
            priority: i32::try_from(number()?).ok()?,
            time: number()?,
            seq: number()?,
            slot: None,
        };
        if let Some(slot) = parts.next() {
            cursor.slot = Some(slot.parse().ok().filter(|_| cursor.state == State::Ready)?);
        }
        parts.next().is_none().then_some(cursor)
    }

    /// The cursor as clients see it.
    pub fn text(&self) -> String {
        let slot = self.slot.map_or_else(String::new, |slot| format!(".{slot}"));
        format!("{}.{}.{}.{}{slot}", self.state as u8, self.priority, self.time, self.seq)
    }
}

/// Where a listing continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// At a position among the states.
    At(Cursor),
    /// At a position in the order of posts.
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

    /// The start as clients see it.
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
    /// The most jobs to return.
    pub count: usize,
    /// Whether to walk backwards.
    pub reverse: bool,
}

impl Page<'_> {
    /// A walk along the ends of jobs, which `walk` makes from a key on: only through the times that the
    /// filters allow. Jobs of other states have no end.
    pub(crate) fn ended_within<'a>(
        &self,
        state: State,
        from: Option<TimeKey>,
        key_of: impl Fn(u32) -> TimeKey + 'a,
        walk: impl FnOnce(Option<TimeKey>) -> Slots<'a>,
    ) -> Slots<'a> {
        let Some((first, last)) = self.filters.ended().filter(|_| state.ended()) else { return walk(from) };
        match self.reverse {
            false => {
                let slots = walk(from.max(Some((first, 0))));
                Box::new(slots.take_while(move |slot| key_of(*slot).0 <= last))
            }
            true => {
                let end = (last, i64::MAX);
                let slots = walk(Some(from.map_or(end, |from| from.min(end))));
                Box::new(slots.take_while(move |slot| key_of(*slot).0 >= first))
            }
        }
    }

    /// Whether its start is of the order that its filters need.
    pub fn fits(&self) -> bool {
        self.from.is_none_or(|from| matches!(from, Start::Posted(_)) == self.filters.by_posting())
    }
}
