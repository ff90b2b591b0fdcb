//! The walks of a selection over the places of jobs.

use crate::board::Board;
use crate::job::{Job, State};
use crate::reading::filters::{Cursor, Filter, Filters, Page};
use crate::reading::scattered::BySlot;
use crate::structures::merge::{Merge, Slots};

impl Board {
    /// The walk by slots over the jobs in these states, if there is one.
    pub(super) fn by_slot_in(
        &self,
        states: &[State],
        from: Option<Cursor>,
        filters: &Filters<'_>,
    ) -> Option<BySlot> {
        let page = Page { filters: filters.clone(), ..Page::default() };
        match states {
            [state] if filters.allows_state(*state) => self.by_slot(*state, from, &page),
            _ => None,
        }
    }

    /// The jobs in these states that may pass the filters, from a position on.
    pub(super) fn walk_places<'a>(
        &'a self,
        states: &[State],
        from: Option<Cursor>,
        filters: &Filters<'_>,
    ) -> Slots<'a> {
        let allowed = states.iter().filter(|state| filters.allows_state(**state));
        if let (&[State::Claimed], Some(worker)) = (states, only_worker(filters)) {
            let above = from.map_or(0, |from| u64::try_from(from.time - 1).unwrap_or(0));
            let held: Slots<'a> = Box::new(self.held(worker, above));
            return if allowed.count() > 0 { held } else { Box::new(std::iter::empty()) };
        }
        let page = Page { filters: filters.clone(), ..Page::default() };
        let mut sources = allowed.map(|state| self.walk(*state, from, &page));
        match states {
            &[_] => sources.next().unwrap_or_else(|| Box::new(std::iter::empty())),
            _ => {
                Box::new(Merge::new(sources.collect(), |slot| self.store.jobs.get(slot).map(Job::ended_key)))
            }
        }
    }

    /// The position of a job in such a walk.
    pub(super) fn place_of(&self, states: &[State], slot: u32, filters: &Filters<'_>) -> Option<Cursor> {
        let state = self.store.jobs.get(slot)?.state;
        match (states, only_worker(filters)) {
            (&[State::Claimed], Some(_)) => {
                let token = self.store.claim_token(slot) as i64;
                Some(Cursor { state, priority: 0, time: token, seq: 0, slot: None })
            }
            _ => self.cursor(state, slot),
        }
    }
}

/// The worker, when the filters name exactly one: the walk then follows its claims, by token.
fn only_worker<'a>(filters: &Filters<'a>) -> Option<&'a [u8]> {
    let mut workers = filters.asked().filter_map(|filter| match filter {
        Filter::Worker(worker) => Some(*worker),
        _ => None,
    });
    workers.next().filter(|_| workers.next().is_none())
}
