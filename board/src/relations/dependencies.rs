//! Dependencies: which jobs wait for which.
//!
//! The record of a blocked job keeps what it waits for ([`Edge`]); the board keeps the waiting jobs
//! of each job, in the order of posting. The record of a job for which others wait is kept until
//! all edges to it are [resolved](crate::relations::resolutions), and as long as one remains.
//!
//! | an edge to a job that | means |
//! |---|---|
//! | has not ended | wait |
//! | is complete | met: the edge is removed |
//! | failed, was cancelled or trashed | what the edge's [`OnFailure`] says |

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::board::Board;
use crate::effect::ApplyError;
use crate::error::Refusal;
use crate::item::{need, SnapshotError};
use crate::job::awaited::{Edge, OnFailure, AFTER_MOST};
use crate::job::id::Id;
use crate::job::{State, U48};
use crate::relations::cycles::Coming;
use crate::relations::resolutions::Resolution;
use crate::structures::lazy::Part;
use crate::structures::merge::{along, Slots};

/// The dependencies of a board. See the module's comment.
#[derive(Default)]
pub(crate) struct Waits {
    /// Slots of the waiting jobs, by the slot of the job that they wait for and their own order of
    /// posting.
    by_awaited: BTreeMap<(u32, i64), u32>,
    /// Ended jobs whose edges are still to be resolved, first ended first.
    pub resolutions: VecDeque<Resolution>,
}

impl Part for Waits {
    const BLANK: &'static Self = &Waits { by_awaited: BTreeMap::new(), resolutions: VecDeque::new() };
}

impl Waits {
    /// About how many bytes it takes.
    pub fn bytes(&self) -> usize {
        self.by_awaited.len() * 36 + self.resolutions.len() * std::mem::size_of::<Resolution>()
    }

    /// How many edges there are.
    pub fn len(&self) -> usize {
        self.by_awaited.len()
    }

    /// The jobs that wait for a job, from an order of posting on: order and slot.
    pub fn of(&self, slot: u32, from: i64) -> impl Iterator<Item = (i64, u32)> + '_ {
        self.by_awaited.range((slot, from)..=(slot, i64::MAX)).map(|((_, seq), waiter)| (*seq, *waiter))
    }

    /// The jobs that wait for a job, in the order of their posts.
    pub fn walk(&self, slot: u32, from: Option<i64>, reverse: bool) -> Slots<'_> {
        along(&self.by_awaited, slot, from, reverse)
    }

    /// Adds an edge from a snapshot; false when it exists already.
    pub fn restore(&mut self, awaited: u32, seq: i64, waiter: u32) -> bool {
        self.by_awaited.insert((awaited, seq), waiter).is_none()
    }
}

/// What an edge means for the waiting job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Waits,
    Met,
    /// The waiting job ends in this state.
    Ends(State),
}

impl Board {
    /// Whether others wait for a job. O(1).
    pub(crate) fn awaited(&self, slot: u32) -> bool {
        self.extras(slot).is_some_and(|extras| extras.awaited > 0)
    }

    /// The edges of a job.
    pub(crate) fn edges(&self, slot: u32) -> &[Edge] {
        self.extras(slot).map_or(&[], |extras| &extras.after)
    }

    /// Edges in the order of posting of the jobs that they lead to.
    pub(crate) fn by_seq(&self, edges: &[Edge]) -> Vec<Edge> {
        let mut edges = edges.to_vec();
        edges.sort_by_key(|edge| self.store.jobs.get(edge.slot).map_or(0, |job| job.seq.get()));
        edges
    }

    /// How a job has ended, for those who wait for it: a dead one has failed. O(1).
    pub(crate) fn verdict(&self, slot: u32) -> Option<State> {
        match self.store.jobs.get(slot).map_or(State::Complete, |job| job.state) {
            state if state.ended() => Some(state),
            _ => self.is_dead(slot).then_some(State::Failed),
        }
    }

    /// What an edge means now. O(1).
    pub(crate) fn outcome(&self, edge: &Edge) -> Outcome {
        let Some(state) = self.verdict(edge.slot) else { return Outcome::Waits };
        match edge.on_failure {
            _ if state == State::Complete => Outcome::Met,
            OnFailure::Hold => Outcome::Waits,
            OnFailure::Cancel => Outcome::Ends(State::Cancelled),
            OnFailure::Fail => Outcome::Ends(State::Failed),
            OnFailure::Run => Outcome::Met,
        }
    }

    /// Refuses edges beyond the most that a job may have; `kept` are those that it has.
    pub(crate) fn check_edge_count(&self, kept: &[Edge], edges: &[Edge]) -> Result<(), Refusal> {
        let known = |edge: &Edge| kept.binary_search_by_key(&edge.slot, |k| k.slot).is_ok();
        let fresh = edges.iter().filter(|edge| self.outcome(edge) != Outcome::Met && !known(edge));
        match kept.len() + fresh.count() > AFTER_MOST {
            true => Err(Refusal::Limit("dependencies")),
            false => Ok(()),
        }
    }

    /// Whether a job may have these edges beside `kept`: the checks of a decision, for replayed
    /// effects.
    pub(crate) fn sound_edges(&self, slot: u32, kept: &[Edge], edges: &[Edge], coming: Coming) -> bool {
        self.check_edge_count(kept, edges).is_ok()
            && edges.iter().all(|edge| self.store.jobs.get(edge.slot).is_some())
            && self.is_acyclic(slot, edges, coming)
    }

    /// Makes a job wait for another, or on other terms; does nothing when the edge is met already.
    pub(crate) fn attach(&mut self, slot: u32, edge: Edge, now: i64) -> Result<(), ApplyError> {
        let outcome = self.outcome(&edge);
        if outcome == Outcome::Met {
            return self.detach(slot, edge.slot, now);
        }
        let seq = self.job(slot)?.seq.get();
        let mut fresh = false;
        self.edit(slot, |job| {
            let after = &mut job.extras_mut().after;
            match after.binary_search_by_key(&edge.slot, |e| e.slot) {
                Ok(at) => after.get_mut(at).ok_or(ApplyError)?.on_failure = edge.on_failure,
                Err(at) => {
                    after.insert(at, edge);
                    fresh = true;
                }
            }
            Ok(())
        })?;
        if fresh {
            self.relations.waits.by_awaited.insert((edge.slot, seq), slot);
            self.count_waiter(edge.slot, now)?;
        }
        if let Outcome::Ends(_) = outcome {
            self.resolve_from(edge.slot, seq)?;
        }
        Ok(())
    }

    /// Counts one more waiting job. The record of an ended job is kept from now on.
    fn count_waiter(&mut self, slot: u32, now: i64) -> Result<(), ApplyError> {
        self.repin(slot, now, |pins| {
            pins.awaited = pins.awaited.saturating_add(1);
            Some(())
        })
    }

    /// Counts one waiting job less. After the last, the record of an ended job is removed when its
    /// time is over, unless something else keeps it.
    fn discount_waiter(&mut self, slot: u32, now: i64) -> Result<(), ApplyError> {
        self.repin(slot, now, |pins| {
            pins.awaited = pins.awaited.checked_sub(1)?;
            Some(())
        })
    }

    /// Removes an edge. The caller deals with the consequences.
    pub(crate) fn detach(&mut self, slot: u32, awaited: u32, now: i64) -> Result<(), ApplyError> {
        let seq = self.job(slot)?.seq.get();
        if self.relations.waits.by_awaited.remove(&(awaited, seq)).is_none() {
            return Ok(());
        }
        self.forget_edge(slot, awaited)?;
        self.discount_waiter(awaited, now)
    }

    /// Removes several edges, in this order. The caller deals with the consequences. O(n log n) for all
    /// edges of the job.
    pub(crate) fn detach_several(&mut self, slot: u32, awaited: &[u32], now: i64) -> Result<(), ApplyError> {
        let seq = self.job(slot)?.seq.get();
        let by_awaited = &mut self.relations.waits.by_awaited;
        let gone: Vec<u32> =
            awaited.iter().copied().filter(|other| by_awaited.remove(&(*other, seq)).is_some()).collect();
        if gone.is_empty() {
            return Ok(());
        }
        let named: BTreeSet<u32> = gone.iter().copied().collect();
        self.edit(slot, |job| {
            job.extras_mut().after.retain(|edge| !named.contains(&edge.slot));
            Ok(())
        })?;
        self.touch(slot)?;
        gone.iter().try_for_each(|other| self.discount_waiter(*other, now))
    }

    fn forget_edge(&mut self, slot: u32, awaited: u32) -> Result<(), ApplyError> {
        self.edit(slot, |job| {
            let after = &mut job.extras_mut().after;
            let at = after.binary_search_by_key(&awaited, |e| e.slot).map_err(|_| ApplyError)?;
            after.remove(at);
            Ok(())
        })?;
        self.touch(slot)
    }

    /// Changes a job's place in the order of posts.
    pub(crate) fn set_seq(&mut self, slot: u32, seq: i64) -> Result<(), ApplyError> {
        let old = self.job(slot)?.seq.get();
        if let Some(Id::Made(id)) = self.id(slot) {
            if let Some(seed) = self.job(slot)?.seed() {
                self.store.seeds.remove(seed);
            }
            self.edit(slot, |job| {
                job.keep_id(id);
                Ok(())
            })?;
        }
        let awaited: Vec<u32> = self.edges(slot).iter().map(|edge| edge.slot).collect();
        for awaited in awaited {
            self.relations.waits.by_awaited.remove(&(awaited, old));
            self.relations.waits.by_awaited.insert((awaited, seq), slot);
        }
        if let Some(tie) = self.tie(slot).copied() {
            self.relations.families.remove(tie.number, old);
            self.relations.families.restore(tie.number, seq, slot);
        }
        self.job_mut(slot)?.seq = U48::new(seq);
        Ok(())
    }

    /// Replaces the edges of a waiting job.
    pub(crate) fn reattach(&mut self, slot: u32, edges: &[Edge], now: i64) -> Result<(), ApplyError> {
        let old = self.by_seq(self.edges(slot));
        for edge in edges {
            self.attach(slot, *edge, now)?;
        }
        let named: BTreeSet<u32> = edges.iter().map(|edge| edge.slot).collect();
        let gone = old.iter().map(|edge| edge.slot).filter(|other| !named.contains(other));
        self.detach_several(slot, &gone.collect::<Vec<_>>(), now)
    }

    /// Removes all edges of a job.
    pub(crate) fn detach_all(&mut self, slot: u32, now: i64) -> Result<(), ApplyError> {
        if self.edges(slot).is_empty() {
            return Ok(());
        }
        let seq = self.job(slot)?.seq.get();
        let edges = self.by_seq(self.edges(slot));
        self.edit(slot, |job| {
            job.extras_mut().after = Vec::new();
            Ok(())
        })?;
        for edge in &edges {
            self.relations.waits.by_awaited.remove(&(edge.slot, seq));
            self.discount_waiter(edge.slot, now)?;
        }
        Ok(())
    }

    /// Removes all edges to a job whose record is about to be removed. O(n) for n waiting jobs.
    pub(crate) fn let_go(&mut self, slot: u32, now: i64) -> Result<(), ApplyError> {
        let waiters: Vec<(i64, u32)> = self.relations.waits.of(slot, 0).collect();
        for (seq, waiter) in waiters {
            self.relations.waits.by_awaited.remove(&(slot, seq));
            self.forget_edge(waiter, slot)?;
            self.unblock(waiter, now)?;
        }
        Ok(())
    }

    /// Refuses to remove a job when another outside of `chosen` (sorted) waits for it. O(n) for n
    /// of those inside.
    pub fn check_depended(&self, slot: u32, chosen: &[u32]) -> Result<(), Refusal> {
        if !self.awaited(slot) {
            return Ok(());
        }
        let outside =
            self.relations.waits.of(slot, 0).find(|(_, waiter)| chosen.binary_search(waiter).is_err());
        match outside.and_then(|(_, waiter)| self.id(waiter)) {
            Some(waiter) => Err(Refusal::Depended(waiter.to_vec()[..].into())),
            None => Ok(()),
        }
    }
}

impl Board {
    /// Derives who waits for whom from the edges of each blocked job.
    pub(crate) fn load_waits(&mut self, blocked: &[u32]) -> Result<(), SnapshotError> {
        for slot in blocked {
            let job = self.store.jobs.get(*slot).ok_or(SnapshotError("slot"))?;
            for edge in job.extras.as_ref().map_or(&[][..], |extras| &extras.after) {
                need(self.relations.waits.restore(edge.slot, job.seq.get(), *slot), "an order twice")?;
            }
        }
        Ok(())
    }
}
