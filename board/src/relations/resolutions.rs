//! What an end means for those who wait for it.
//!
//! When a job ends while others wait for it, a [`Resolution`] is queued, and the clock resolves its
//! edges one by one in bounded slices, so that an end costs the same however many jobs wait.

use crate::board::Board;
use crate::effect::ApplyError;
use crate::item::{need, Item, Loading, SnapshotError};
use crate::job::history::HistoryKind;
use crate::job::kin::ChildWait;
use crate::job::{is_time, Extras, State};
use crate::relations::dependencies::Outcome;
use crate::settings::Rules;

written! {
    /// An ended job: the edges of the jobs that wait for it, from an order of posting on, are still
    /// to be resolved. Or a job that waits for its children.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) struct Resolution {
        1 pub slot: u32,
        /// Its order of posting: this does not mean another job in its slot, or a new life of it.
        2 pub seq: i64,
        3 pub from: i64,
        /// Whether it is not about its edges, but a blocked job that waits for its children: what they
        /// mean for it is still to be done.
        4 pub children: bool,
    }
}

impl Board {
    /// Unblocks a blocked job that waits for nothing any more.
    pub(crate) fn unblock(&mut self, slot: u32, now: i64) -> Result<(), ApplyError> {
        let job = self.job(slot)?;
        let children =
            |wait: &ChildWait| wait.open || self.outcome_of_children(slot, wait.on_failure) != Outcome::Met;
        let waits = |extras: &Extras| extras.waits_for_others() || extras.child_wait().is_some_and(children);
        if job.state != State::Blocked || self.extras(slot).is_some_and(waits) {
            return Ok(());
        }
        let due = job.at.get();
        self.leave(slot)?;
        self.make_due(slot, due, now)
    }

    /// Queues the edges to an ended job to be resolved, from an order of posting on.
    pub(crate) fn resolve_from(&mut self, slot: u32, from: i64) -> Result<(), ApplyError> {
        let seq = self.job(slot)?.seq.get();
        self.relations.waits.resolutions.push_back(Resolution { slot, seq, from, children: false });
        self.wake_at(0);
        Ok(())
    }

    /// Takes up to `n` steps: resolves one edge, or finds that all edges to a job are resolved. A job
    /// that ends with many edges takes [several](Board::steps_for_edges).
    pub(crate) fn resolve(&mut self, n: u32, now: i64, rules: &Rules) -> Result<(), ApplyError> {
        let mut left = n;
        while left > 0 {
            left -= 1;
            let Some(tell) = self.relations.waits.resolutions.front().copied() else { return Ok(()) };
            let job = self.store.jobs.get(tell.slot);
            if tell.children {
                let stands = job.is_some_and(|job| job.seq.get() == tell.seq);
                self.relations.waits.resolutions.pop_front();
                if stands {
                    left = left.saturating_sub(self.steps_for_edges(tell.slot));
                    self.resolve_children(tell.slot, now, rules)?;
                }
                continue;
            }
            let stands =
                job.is_some_and(|job| job.seq.get() == tell.seq) && self.verdict(tell.slot).is_some();
            let next = if stands { self.relations.waits.of(tell.slot, tell.from).next() } else { None };
            let Some((seq, waiter)) = next else {
                self.relations.waits.resolutions.pop_front();
                continue;
            };
            if let Some(front) = self.relations.waits.resolutions.front_mut() {
                front.from = seq.saturating_add(1);
            }
            let edge = self.edges(waiter).iter().find(|edge| edge.slot == tell.slot).copied();
            let edge = edge.ok_or(ApplyError)?;
            match self.outcome(&edge) {
                Outcome::Waits => {}
                Outcome::Met => {
                    self.detach(waiter, tell.slot, now)?;
                    self.unblock(waiter, now)?;
                }
                Outcome::Ends(state) => {
                    left = left.saturating_sub(self.steps_for_edges(waiter));
                    self.end_waiter(waiter, tell.slot, state, rules)?;
                }
            }
        }
        Ok(())
    }

    /// Whether an edge of a blocked job, or its children, are met or end it, which is still to be
    /// resolved.
    pub(crate) fn untold(&self, slot: u32) -> bool {
        !self.relations.waits.resolutions.is_empty()
            && (self.children_due(slot)
                || self.edges(slot).iter().any(|edge| self.outcome(edge) != Outcome::Waits))
    }

    /// Resolves all edges of one blocked job, and its wait for its children. O(n) for n edges.
    pub(crate) fn resolve_one(&mut self, slot: u32, now: i64, rules: &Rules) -> Result<(), ApplyError> {
        let edges = self.by_seq(self.edges(slot));
        for state in [State::Failed, State::Cancelled] {
            let mut ends = edges.iter().filter(|edge| self.outcome(edge) == Outcome::Ends(state));
            if let Some(first) = ends.next() {
                return self.end_waiter(slot, first.slot, state, rules);
            }
            let children = self.child_wait(slot).map(|wait| self.outcome_of_children(slot, wait.on_failure));
            if children == Some(Outcome::Ends(state)) {
                return self.end_for_children(slot, state, rules);
            }
        }
        let met = edges.iter().filter(|edge| self.outcome(edge) == Outcome::Met).map(|edge| edge.slot);
        self.detach_several(slot, &met.collect::<Vec<_>>(), now)?;
        self.resolve_children(slot, now, rules)
    }

    /// Ends a job because of the end of a job that it waits for.
    fn end_waiter(&mut self, slot: u32, cause: u32, state: State, rules: &Rules) -> Result<(), ApplyError> {
        let end = self.verdict(cause).ok_or(ApplyError)?;
        let mut text = self.id(cause).ok_or(ApplyError)?.to_vec();
        text.push(b' ');
        text.extend_from_slice(end.name().as_bytes());
        self.give_up(slot, state, HistoryKind::Dependency, &text, rules)
    }
}

impl<'a> Item<'a> for Resolution {
    fn each(board: &'a Board, put: impl FnMut(&Self)) {
        board.relations.waits.resolutions.iter().for_each(put);
    }

    fn load(self, board: &mut Board, _loading: &mut Loading) -> Result<(), SnapshotError> {
        need(is_time(self.seq) && is_time(self.from), "tell")?;
        board.relations.waits.resolutions.push_back(self);
        Ok(())
    }
}
