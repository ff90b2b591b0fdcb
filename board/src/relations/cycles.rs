//! Jobs that would wait for each other for ever.
//!
//! A job waits for the jobs of its edges, and for its children while it has a [`ChildWait`]. A search
//! from both ends, which alternates, looks for a way from a job back to itself: most jobs have few that
//! wait for them, or wait for few, so one of the ends is soon known as a whole.
//!
//! [`ChildWait`]: crate::job::kin::ChildWait

use std::collections::{BTreeMap, BTreeSet};

use crate::board::Board;
use crate::error::Refusal;
use crate::job::awaited::{Edge, OnFailure};

/// The most edges that the search for a cycle looks at, from each end: about a millisecond.
const CHAIN_MOST: usize = 20_000;

/// What a job gets beside edges.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Coming {
    /// Whether it waits for its children.
    pub children: bool,
    /// Its new parent.
    pub parent: Option<u32>,
}

impl Coming {
    /// That a job waits for its children, if it does.
    pub fn of(children: Option<OnFailure>) -> Coming {
        Coming { children: children.is_some(), parent: None }
    }
}

/// One end of a search.
#[derive(Default)]
struct End {
    seen: BTreeSet<u32>,
    ahead: Vec<u32>,
    looks: usize,
}

impl End {
    /// Adds jobs, as far as the bound allows; true when one of them is at the other end.
    fn meets(&mut self, jobs: impl Iterator<Item = u32>, other: &End) -> bool {
        for job in jobs {
            self.looks += 1;
            if self.looks > CHAIN_MOST {
                return false;
            }
            if other.seen.contains(&job) {
                return true;
            }
            if self.seen.insert(job) {
                self.ahead.push(job);
            }
        }
        false
    }

    fn is_over(&self) -> bool {
        self.looks > CHAIN_MOST
    }
}

impl Board {
    /// Refuses edges, children to wait for, or a parent, by which jobs would wait for each other in a
    /// cycle.
    pub(crate) fn check_cycle(&self, slot: u32, edges: &[Edge], coming: Coming) -> Result<(), Refusal> {
        if !self.local.looks.allows(0) {
            return Err(Refusal::Limit("dependency chain"));
        }
        let (found, looks) = self.search_cycle(slot, edges, coming);
        self.local.looks.take(looks);
        found
    }

    /// Whether jobs would wait for each other in a cycle: the check of a decision, for replayed
    /// effects.
    pub(crate) fn is_acyclic(&self, slot: u32, edges: &[Edge], coming: Coming) -> bool {
        self.search_cycle(slot, edges, coming).0.is_ok()
    }

    /// What [`Board::check_cycle`] says, and how many edges were looked at.
    fn search_cycle(&self, slot: u32, edges: &[Edge], coming: Coming) -> (Result<(), Refusal>, usize) {
        let (mut ahead, mut behind) = (End::default(), End::default());
        let found = self.search_between(slot, edges, coming, (&mut ahead, &mut behind));
        (found, ahead.looks + behind.looks)
    }

    fn search_between(
        &self,
        slot: u32,
        edges: &[Edge],
        coming: Coming,
        (ahead, behind): (&mut End, &mut End),
    ) -> Result<(), Refusal> {
        if edges.iter().any(|edge| edge.slot == slot) {
            return Err(Refusal::Cycle);
        }
        let parent = coming.parent.or_else(|| self.parent_of(slot));
        let parent = parent.filter(|parent| self.child_wait(*parent).is_some());
        let children = coming.children && self.children(slot).is_some();
        if edges.is_empty() && !children || !self.awaited(slot) && parent.is_none() {
            return Ok(());
        }
        behind.seen.insert(slot);
        let own = self.children_from(slot, 0).take(if children { CHAIN_MOST + 1 } else { 0 });
        let first = edges.iter().map(|edge| edge.slot).chain(own.map(|(_, child)| child));
        ahead.meets(first, behind);
        let mut found = self.comes_behind(slot, behind, (slot, children), parent, ahead);
        while !found {
            let forward = !ahead.is_over() && (behind.is_over() || ahead.looks <= behind.looks);
            let end = if forward { &mut *ahead } else { &mut *behind };
            if end.is_over() {
                return Err(Refusal::Limit("dependency chain"));
            }
            let Some(next) = end.ahead.pop() else { return Ok(()) };
            found = match forward {
                true => {
                    let moves = |child: &u32| *child != slot || coming.parent.is_none_or(|new| new == next);
                    ahead.meets(self.whom_it_awaits(next).filter(moves), behind)
                }
                false => {
                    let parent = self.parent_of(next).filter(|parent| self.child_wait(*parent).is_some());
                    self.comes_behind(next, behind, (slot, children), parent, ahead)
                }
            };
        }
        Err(Refusal::Cycle)
    }

    /// Refuses a new parent for a job that keeps what it waits for.
    pub(crate) fn check_kept(&self, slot: u32, parent: Option<u32>) -> Result<(), Refusal> {
        self.check_cycle(slot, self.edges(slot), self.kept(slot, parent))
    }

    /// What a job that keeps what it waits for gets with a new parent.
    pub(crate) fn kept(&self, slot: u32, parent: Option<u32>) -> Coming {
        Coming { children: self.child_wait(slot).is_some_and(|wait| !wait.run), parent }
    }

    /// What a job waits for.
    fn whom_it_awaits(&self, slot: u32) -> impl Iterator<Item = u32> + '_ {
        let waits = self.child_wait(slot).is_some();
        let children = waits.then(|| self.children_from(slot, 0).map(|(_, child)| child));
        self.edges(slot).iter().map(|edge| edge.slot).chain(children.into_iter().flatten())
    }

    /// Adds those that wait for a job; true when the search meets there: also with a child of the job
    /// that it began with, if that is to wait for its children.
    fn comes_behind(
        &self,
        slot: u32,
        behind: &mut End,
        (first, children): (u32, bool),
        parent: Option<u32>,
        ahead: &End,
    ) -> bool {
        let waiters = self.relations.waits.of(slot, 0).map(|(_, waiter)| waiter).chain(parent);
        let mut child = false;
        let waiters = waiters.inspect(|waiter| child |= children && self.parent_of(*waiter) == Some(first));
        behind.meets(waiters, ahead) || child
    }

    /// Refuses new jobs that become children of a job that waits for its children, and wait for jobs
    /// of the board, by which that job would wait for itself. `ways` has for each such parent what its
    /// new children wait for.
    pub(crate) fn check_ways(&self, ways: &BTreeMap<u32, &[u32]>) -> Result<(), (u32, Refusal)> {
        let mut looks = 0;
        for (parent, first) in ways {
            let mut seen = BTreeSet::new();
            let mut ahead = first.to_vec();
            while let Some(next) = ahead.pop() {
                if next == *parent {
                    return Err((*parent, Refusal::Cycle));
                }
                if !seen.insert(next) {
                    continue;
                }
                let more = ways.get(&next).copied().unwrap_or_default().iter().copied();
                let room = (CHAIN_MOST + 1).saturating_sub(looks);
                let before = ahead.len();
                ahead.extend(self.whom_it_awaits(next).chain(more).take(room));
                looks += ahead.len() - before;
                if looks > CHAIN_MOST {
                    return Err((*parent, Refusal::Limit("dependency chain")));
                }
            }
        }
        Ok(())
    }
}
