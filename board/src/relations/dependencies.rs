//! Who waits for whom.
//!
//! A blocked job keeps what it waits for in its record ([`Edge`]); the board keeps who waits
//! for each job, in the order of posting. A job that ends while others wait for it is put
//! down here and they are told one by one, in bounded slices, so that an end costs the same
//! however many wait. Until all have been told, and as long as one holds, its record stays.
//!
//! | an edge to a job that | means |
//! |---|---|
//! | has not ended | wait |
//! | is complete | met: the edge goes |
//! | failed, was cancelled or trashed | what the edge's [`OnFailure`] says |

use crate::item::{need, Item, Loading, SnapshotError};
use crate::job::awaited::AFTER_MOST;
use crate::job::is_time;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::board::Board;
use crate::effect::ApplyError;
use crate::error::Refusal;
use crate::job::awaited::{Edge, OnFailure};
use crate::job::history::HistoryKind;
use crate::job::{End, State, U48};
use crate::retry::Next;
use crate::settings::Rules;

/// The search for a cycle looks at no more edges than this: about a millisecond.
const CHAIN_MOST: usize = 20_000;

written! {
    /// A job that has ended: those who wait for it, from an order of posting on, are to be told.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) struct Resolution {
        1 pub slot: u32,
        /// Its order of posting: another job in its slot, or a new life of it, is not meant.
        2 pub seq: i64,
        3 pub from: i64,
    }
}

/// See the module's comment.
#[derive(Default)]
pub(crate) struct Waits {
    /// Slots of those that wait, by slot of what they wait for and their order of posting.
    by_awaited: BTreeMap<(u32, i64), u32>,
    /// First ended, first told.
    pub resolutions: VecDeque<Resolution>,
}

impl Waits {
    /// Bytes that it takes, about.
    pub fn bytes(&self) -> usize {
        self.by_awaited.len() * 36 + self.resolutions.len() * std::mem::size_of::<Resolution>()
    }

    /// How many edges there are.
    pub fn len(&self) -> usize {
        self.by_awaited.len()
    }

    /// Those who wait for a job, from an order of posting on: order and slot.
    pub fn of(&self, slot: u32, from: i64) -> impl Iterator<Item = (i64, u32)> + '_ {
        self.by_awaited.range((slot, from)..=(slot, i64::MAX)).map(|((_, seq), waiter)| (*seq, *waiter))
    }

    /// Adds one from a snapshot; false when it is there already.
    pub fn restore(&mut self, awaited: u32, seq: i64, waiter: u32) -> bool {
        self.by_awaited.insert((awaited, seq), waiter).is_none()
    }
}

/// How an edge stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Waits,
    Met,
    /// The job that waits ends in that state.
    Ends(State),
}

impl Board {
    /// Whether others wait for a job. O(1).
    pub(crate) fn awaited(&self, slot: u32) -> bool {
        self.extras(slot).is_some_and(|extras| extras.awaited > 0)
    }

    /// What a job waits for, by slot.
    pub(crate) fn edges(&self, slot: u32) -> &[Edge] {
        self.extras(slot).map_or(&[], |extras| &extras.after)
    }

    /// Edges in the order of posting of what they lead to.
    pub(crate) fn by_seq(&self, edges: &[Edge]) -> Vec<Edge> {
        let mut edges = edges.to_vec();
        edges.sort_by_key(|edge| self.store.jobs.get(edge.slot).map_or(0, |job| job.seq.get()));
        edges
    }

    /// How an edge stands. O(1).
    pub(crate) fn outcome(&self, edge: &Edge) -> Outcome {
        let state = self.store.jobs.get(edge.slot).map_or(State::Complete, |job| job.state);
        match edge.on_failure {
            _ if !state.ended() => Outcome::Waits,
            _ if state == State::Complete => Outcome::Met,
            OnFailure::Hold => Outcome::Waits,
            OnFailure::Cancel => Outcome::Ends(State::Cancelled),
            OnFailure::Fail => Outcome::Ends(State::Failed),
            OnFailure::Run => Outcome::Met,
        }
    }

    /// Refuses what a job that others wait for would make of their order: a cycle.
    pub(crate) fn check_cycle(&self, slot: u32, edges: &[Edge]) -> Result<(), Refusal> {
        if edges.iter().any(|edge| edge.slot == slot) {
            return Err(Refusal::Cycle);
        }
        if !self.awaited(slot) {
            return Ok(());
        }
        let mut seen = BTreeSet::new();
        let mut ahead: Vec<u32> = edges.iter().map(|edge| edge.slot).collect();
        let mut looks = ahead.len();
        while let Some(next) = ahead.pop() {
            if next == slot {
                return Err(Refusal::Cycle);
            }
            if seen.insert(next) {
                let further = self.edges(next);
                looks += further.len();
                if looks > CHAIN_MOST {
                    return Err(Refusal::Limit("dependency chain"));
                }
                ahead.extend(further.iter().map(|edge| edge.slot));
            }
        }
        Ok(())
    }

    /// Refuses more edges than a job may have, beside those that it keeps.
    pub(crate) fn check_edge_count(&self, kept: &[Edge], edges: &[Edge]) -> Result<(), Refusal> {
        let known = |edge: &Edge| kept.binary_search_by_key(&edge.slot, |k| k.slot).is_ok();
        let fresh = edges.iter().filter(|edge| self.outcome(edge) != Outcome::Met && !known(edge));
        match kept.len() + fresh.count() > AFTER_MOST {
            true => Err(Refusal::Limit("dependencies")),
            false => Ok(()),
        }
    }

    /// Whether a job may wait for these as well, beside those that it keeps: what a decision
    /// has checked, for replay.
    pub(crate) fn sound_edges(&self, slot: u32, kept: &[Edge], edges: &[Edge]) -> bool {
        self.check_edge_count(kept, edges).is_ok()
            && edges.iter().all(|edge| self.store.jobs.get(edge.slot).is_some())
            && self.check_cycle(slot, edges).is_ok()
    }

    /// Lets a job wait for another, or on other terms; nothing when the edge is met already.
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

    /// One more waits for a job. The record of one that has ended stays from now on.
    fn count_waiter(&mut self, slot: u32, now: i64) -> Result<(), ApplyError> {
        self.repin(slot, now, |pins| {
            pins.awaited = pins.awaited.saturating_add(1);
            Some(())
        })
    }

    /// One fewer waits for a job. After the last the record of one that has ended goes when
    /// its time has come, unless something else keeps it.
    fn discount_waiter(&mut self, slot: u32, now: i64) -> Result<(), ApplyError> {
        self.repin(slot, now, |pins| {
            pins.awaited = pins.awaited.checked_sub(1)?;
            Some(())
        })
    }

    /// A job waits for another no longer. What follows from it is the caller's.
    pub(crate) fn detach(&mut self, slot: u32, awaited: u32, now: i64) -> Result<(), ApplyError> {
        let seq = self.job(slot)?.seq.get();
        if self.relations.waits.by_awaited.remove(&(awaited, seq)).is_none() {
            return Ok(());
        }
        self.forget_edge(slot, awaited)?;
        self.discount_waiter(awaited, now)
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

    /// A job gets another place in the order of posts.
    pub(crate) fn set_seq(&mut self, slot: u32, seq: i64) -> Result<(), ApplyError> {
        let old = self.job(slot)?.seq.get();
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

    /// A job that waits gets these edges in place of those that it has.
    pub(crate) fn reattach(&mut self, slot: u32, edges: &[Edge], now: i64) -> Result<(), ApplyError> {
        let old = self.by_seq(self.edges(slot));
        for edge in edges {
            self.attach(slot, *edge, now)?;
        }
        let named: BTreeSet<u32> = edges.iter().map(|edge| edge.slot).collect();
        for edge in old {
            if !named.contains(&edge.slot) {
                self.detach(slot, edge.slot, now)?;
            }
        }
        Ok(())
    }

    /// A job waits for nothing any more.
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

    /// Nobody waits for a job any more that is about to go. O(n) for n that waited.
    pub(crate) fn let_go(&mut self, slot: u32, now: i64) -> Result<(), ApplyError> {
        let waiters: Vec<(i64, u32)> = self.relations.waits.of(slot, 0).collect();
        for (seq, waiter) in waiters {
            self.relations.waits.by_awaited.remove(&(slot, seq));
            self.forget_edge(waiter, slot)?;
            self.unblock(waiter, now)?;
        }
        Ok(())
    }

    /// Lets a blocked job that waits for nothing any more go on.
    pub(crate) fn unblock(&mut self, slot: u32, now: i64) -> Result<(), ApplyError> {
        let job = self.job(slot)?;
        if job.state != State::Blocked || !self.edges(slot).is_empty() {
            return Ok(());
        }
        let due = job.at.get();
        self.leave(slot)?;
        match due > now {
            true => self.make_scheduled(slot, due, now),
            false => self.make_ready(slot, now),
        }
    }

    /// Those who wait for a job that has ended are to be told, from an order of posting on.
    pub(crate) fn resolve_from(&mut self, slot: u32, from: i64) -> Result<(), ApplyError> {
        let seq = self.job(slot)?.seq.get();
        self.relations.waits.resolutions.push_back(Resolution { slot, seq, from });
        self.wake_at(0);
        Ok(())
    }

    /// Takes up to `n` steps: tells one job, or finds that all have been told.
    pub(crate) fn resolve(&mut self, n: u32, now: i64, rules: &Rules) -> Result<(), ApplyError> {
        for _ in 0..n {
            let Some(tell) = self.relations.waits.resolutions.front().copied() else { return Ok(()) };
            let job = self.store.jobs.get(tell.slot);
            let stands = job.is_some_and(|job| job.state.ended() && job.seq.get() == tell.seq);
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
                Outcome::Ends(state) => self.end_waiter(waiter, tell.slot, state, now, rules)?,
            }
        }
        Ok(())
    }

    /// Whether an edge of a blocked job is met or ends it, and the job has not been told yet.
    pub(crate) fn untold(&self, slot: u32) -> bool {
        !self.relations.waits.resolutions.is_empty()
            && self.edges(slot).iter().any(|edge| self.outcome(edge) != Outcome::Waits)
    }

    /// Tells one blocked job all that there is to tell it. O(n) for n that it waits for.
    pub(crate) fn resolve_one(&mut self, slot: u32, now: i64, rules: &Rules) -> Result<(), ApplyError> {
        let edges = self.by_seq(self.edges(slot));
        for state in [State::Failed, State::Cancelled] {
            let mut ends = edges.iter().filter(|edge| self.outcome(edge) == Outcome::Ends(state));
            if let Some(first) = ends.next() {
                return self.end_waiter(slot, first.slot, state, now, rules);
            }
        }
        for edge in &edges {
            if self.outcome(edge) == Outcome::Met {
                self.detach(slot, edge.slot, now)?;
            }
        }
        self.unblock(slot, now)
    }

    /// Ends a job because of how one ended that it waits for.
    fn end_waiter(
        &mut self,
        slot: u32,
        cause: u32,
        state: State,
        now: i64,
        rules: &Rules,
    ) -> Result<(), ApplyError> {
        let other = self.job(cause)?;
        let mut text = other.id().to_vec();
        text.push(b' ');
        text.extend_from_slice(other.state.name().as_bytes());
        let retain = self.retention(state, rules);
        if state == State::Cancelled {
            return self.end_job(slot, state, End::Taken, Some(&text), retain, now);
        }
        self.leave(slot)?;
        self.fail_job(slot, HistoryKind::Dependency, b"dependency", &text, Next::End { retain }, now)
    }

    /// Refuses to take a job away that one outside of `chosen` (sorted) waits for. O(n) for n
    /// of those inside.
    pub fn check_depended(&self, slot: u32, chosen: &[u32]) -> Result<(), Refusal> {
        if !self.awaited(slot) {
            return Ok(());
        }
        let outside =
            self.relations.waits.of(slot, 0).find(|(_, waiter)| chosen.binary_search(waiter).is_err());
        match outside.and_then(|(_, waiter)| self.store.jobs.get(waiter)) {
            Some(waiter) => Err(Refusal::Depended(waiter.id().to_vec()[..].into())),
            None => Ok(()),
        }
    }
}

impl Board {
    /// Finds out who waits for whom from what each blocked job waits for.
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
