//! Selections by filter: the jobs that an operator's verb is for, slice by slice.
//!
//! A slice is chosen before anything changes, so a dry run gives the numbers of a real one. It
//! walks the places in the order of a job's life: blocked, scheduled, ready, claimed, then the
//! ended ones, each in its own order. A job that moves on while a loop runs is met later in the
//! walk. A requeue walks all ended jobs as one, oldest end first.
//!
//! The verbs move jobs, also ahead of the walk, and others post and claim meanwhile. So a cursor
//! carries, beside the position, when the loop began, and the walk passes over jobs that are newer:
//! posted since, for a release claimed since, for a requeue ended since, for an update updated
//! since. A loop touches each job at most once, and ends.
//!
//! A job that others wait for is cancelled or deleted after them, if all jobs that wait for it,
//! near and far, are in the selection too. Otherwise it is held back and reported. An ended job
//! past its retention is removed by itself with the last of them: the walk passes over it, whatever
//! the slices.

use crate::board::Board;
use crate::env::Env;
use crate::job::State;
use crate::reading::filters::{Cursor, Filters};
use crate::verbs::selection_slice::Slice;
use crate::verbs::{Label, Requeue, Signal, To, Update};

/// What an operator does with the jobs of a selection.
#[derive(Debug, Clone, Copy)]
pub enum Operation<'a> {
    /// Cancel them; with force also those that workers hold.
    Cancel {
        /// See [`Board::cancel`].
        force: bool,
    },
    /// Take them from their workers.
    Release,
    /// Requeue them.
    Requeue(Requeue<'a>),
    /// Delete their records.
    Delete,
    /// Update them.
    Update(&'a Update<'a>),
    /// Change their labels, and with an update the jobs too.
    Label(&'a Label<'a>, Option<&'a Update<'a>>),
    /// Send them a signal.
    Signal(&'a Signal<'a>),
}

use State::*;

/// States that are walked one after the other; those of one element are walked as one.
type Places = &'static [&'static [State]];

const LIVE: Places = &[&[Blocked], &[Scheduled], &[Ready], &[State::Claimed]];
const CLAIMED: Places = &[&[State::Claimed]];
const ENDED: Places = &[&[State::Failed, State::Cancelled, State::Trashed]];
/// Ended jobs, and dead ones.
const GONE: Places =
    &[&[Blocked], &[Scheduled], &[Ready], &[State::Failed, State::Cancelled, State::Trashed]];
const ALL: Places = &[
    &[Blocked],
    &[Scheduled],
    &[Ready],
    &[State::Claimed],
    &[Complete],
    &[State::Failed],
    &[State::Cancelled],
    &[State::Trashed],
];

impl Operation<'_> {
    fn places(&self) -> Places {
        match self {
            Operation::Update(update) | Operation::Label(_, Some(update)) if update.is_of_any_state() => ALL,
            Operation::Cancel { .. }
            | Operation::Update(_)
            | Operation::Label(_, Some(_))
            | Operation::Signal(_) => LIVE,
            Operation::Release => CLAIMED,
            Operation::Requeue(Requeue { to: To::Origin, .. }) => GONE,
            Operation::Requeue(_) => ENDED,
            Operation::Delete | Operation::Label(_, None) => ALL,
        }
    }

    /// Whether it would leave behind jobs that wait for a removed one.
    pub(super) fn takes_away(&self) -> bool {
        matches!(self, Operation::Cancel { .. } | Operation::Delete)
    }
}

/// Where a loop over a selection continues, and when it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelectionCursor {
    revision: i64,
    token: u64,
    place: Cursor,
}

impl SelectionCursor {
    /// Reads what [`SelectionCursor::text`] wrote.
    pub fn read(text: &[u8]) -> Option<SelectionCursor> {
        let mut parts = text.splitn(3, |byte| *byte == b'.');
        let mut number = || std::str::from_utf8(parts.next()?).ok()?.parse::<i64>().ok();
        let (revision, token) = (number()?, u64::try_from(number()?).ok()?);
        Some(SelectionCursor { revision, token, place: Cursor::read(parts.next()?)? })
    }

    /// The cursor as clients see it.
    pub fn text(&self) -> String {
        format!("{}.{}.{}", self.revision, self.token, self.place.text())
    }
}

/// One slice of a selection by filter.
#[derive(Debug, Clone)]
pub struct Selection<'a> {
    /// What to do with them.
    pub deed: Operation<'a>,
    /// Which jobs.
    pub filters: Filters<'a>,
    /// Where the last slice ended.
    pub from: Option<SelectionCursor>,
    /// The most jobs.
    pub count: usize,
    /// The slice ends when its records have this many bytes together.
    pub bytes: usize,
    /// Whether nothing is to be changed.
    pub dry: bool,
}

/// A chosen slice.
#[derive(Debug, Default, PartialEq)]
pub struct Chosen {
    /// The jobs, in the order in which the operation must take them.
    pub slots: Vec<u32>,
    /// Jobs of the selection that the operation cannot take now.
    pub held: Vec<u32>,
    /// Where to continue.
    pub next: Option<SelectionCursor>,
}

impl Board {
    /// Chooses the next slice of a selection. It looks at ten jobs for each that it may choose, and
    /// at 10,000 at least; at fewer when it searches texts. O(log n + jobs looked at).
    pub fn select(&self, env: &Env<'_>, selection: &Selection<'_>) -> Chosen {
        let begun = selection.from.map(|from| (from.revision, from.token));
        let begun = begun.unwrap_or((self.revision() as i64, self.token()));
        let mut slice = Slice::new(self, env, selection, begun);
        let mut from = selection.from.map(|from| from.place);
        let places = selection.deed.places();
        let first = from.and_then(|from| places.iter().position(|states| states.contains(&from.state)));
        for states in places.iter().skip(first.unwrap_or(0)) {
            let from = from.take().filter(|from| states.contains(&from.state));
            let by_slot = self.by_slot_in(states, from, &selection.filters);
            let slots = match by_slot {
                Some(walk) => self.slots_from(walk),
                None => self.walk_places(states, from, &selection.filters),
            };
            for slot in slots {
                let passes = by_slot.is_some_and(|walk| !self.is_in(walk, slot));
                let done = !slice.full() && {
                    slice.look(slot);
                    passes || slice.visit(slot)
                };
                if !done {
                    let (revision, token) = begun;
                    let place = match by_slot {
                        Some(walk) => Some(walk.at(slot)),
                        None => self.place_of(states, slot, &selection.filters),
                    };
                    slice.chosen.next = place.map(|place| SelectionCursor { revision, token, place });
                    return slice.chosen;
                }
            }
        }
        slice.chosen
    }
}
