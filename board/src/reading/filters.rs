//! Which jobs a listing, a count or a selection is for, and where a page begins.

use std::cmp::Reverse;

use crate::job::State;
use crate::reading::list::WALK;
use crate::reading::record::Record;

/// One condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// Conditions: those of one kind are alternatives, one of each kind must hold, and none of the
/// excluding ones may hold.
#[derive(Debug, Clone, Default)]
pub struct Filters<'a> {
    /// Of each kind named here, one must hold.
    pub any: Vec<Filter<'a>>,
    /// None of these may hold.
    pub none: Vec<Filter<'a>>,
}

impl<'a> Filters<'a> {
    /// Whether there is no condition.
    pub fn is_empty(&self) -> bool {
        self.any.is_empty() && self.none.is_empty()
    }

    /// The revision since which a job must have changed.
    pub fn since(&self) -> Option<u64> {
        let since = |filter: &Filter<'_>| if let Filter::Since(v) = filter { Some(*v) } else { None };
        self.any.iter().filter_map(since).min()
    }

    /// Whether a job passes. O(filters).
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

    /// The cursor as clients see it.
    pub fn text(&self) -> String {
        format!("{}.{}.{}.{}", self.state as u8, self.priority, self.time, self.seq)
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
    /// Whether its start is of the order that its filters need.
    pub fn fits(&self) -> bool {
        self.from.is_none_or(|from| matches!(from, Start::Posted(_)) == self.filters.by_posting())
    }
}
