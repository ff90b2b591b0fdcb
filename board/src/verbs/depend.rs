//! Depending: a job waits for other jobs.

use crate::board::Board;
use crate::effect::{ApplyError, Validate};
use crate::env::Env;
use crate::error::Refusal;
use crate::job::awaited::{Edge, OnFailure};
use crate::job::State;
use crate::places::happened::Happened;
use crate::relations::cycles::Coming;

/// The jobs that a job is to wait for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct After<'a> {
    /// Their ids, and what happens if they do not succeed. The last mention of an id counts.
    pub jobs: Vec<(&'a [u8], OnFailure)>,
    /// Refuse unknown ids; otherwise they count as met.
    pub strict: bool,
    /// It waits for its children too, and what happens if one of them does not succeed.
    pub children: Option<OnFailure>,
}

/// A change of what a job waits for.
#[derive(Debug, Clone, PartialEq)]
pub enum Depend<'a> {
    /// It waits for these too.
    Add(After<'a>),
    /// It no longer waits for these.
    Remove(Vec<&'a [u8]>),
    /// It needs no signals, now and when it is requeued.
    RemoveSignals,
    /// It needs no children, now and when a run waits for them again.
    RemoveChildren,
    /// It waits for nothing.
    Clear,
}

written! {
    /// A job waits for other jobs than before.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Depended {
        1 slot: u32,
        2 clear: bool,
        3 remove: Vec<u32>,
        4 add: Vec<Edge>,
        /// Whether it no longer waits for signals.
        5 signals: bool,
        /// Whether it no longer waits for its children.
        6 no_children: bool,
        /// It waits for its children.
        7 children: Option<OnFailure>,
    }
}

impl Validate for Depended {
    fn is_valid(&self, board: &Board) -> bool {
        board.check_unclaimed(self.slot).is_ok()
            && board.sound_edges(self.slot, board.edges(self.slot), &self.add, Coming::of(self.children))
    }
}

impl Depended {
    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        let slot = self.slot;
        let job = board.job(slot)?;
        let due = if job.state == State::Ready { 0 } else { job.at.get() };
        board.leave(slot)?;
        if self.clear {
            board.detach_all(slot, now)?;
        }
        if self.clear || self.signals {
            board.give_up_waiting(slot, now)?;
            board.edit(slot, |job| {
                let remembered = job.extras.as_mut().and_then(|extras| extras.remembered.there());
                remembered.into_iter().for_each(|remembered| remembered.gate = None);
                Ok(())
            })?;
        }
        if self.no_children || self.clear && board.child_wait(slot).is_some() {
            board.waive_children(slot, now)?;
        }
        if let Some(on_failure) = self.children {
            board.end_child_wait(slot, now)?;
            board.ask_for_children(slot, on_failure, (false, false))?;
        }
        board.detach_several(slot, &self.remove, now)?;
        for edge in &self.add {
            board.attach(slot, *edge, now)?;
        }
        board.make_due(slot, due, now)?;
        board.happened(slot, &Happened::Depends)?;
        board.touch(slot)
    }
}

impl Board {
    /// Refuses a job that has ended, or that has been claimed in this life and does not wait.
    fn check_unclaimed(&self, slot: u32) -> Result<(), Refusal> {
        let job = self.job(slot).map_err(|_| Refusal::NoJob)?;
        if let Some(claim) = self.claim_of(job) {
            return Err(Refusal::Claimed(self.worker_name(claim).into()));
        }
        if job.state.ended() {
            return Err(Refusal::Ended(job.state));
        }
        match self
            .extras(slot)
            .filter(|extras| extras.attempt > 0 && job.state != State::Blocked)
            .and_then(|extras| extras.last_claim.as_ref())
        {
            Some(last) => Err(Refusal::Claimed(last.worker.clone())),
            None => Ok(()),
        }
    }

    /// The edges for the job in `slot`: to those of the jobs that still keep it waiting; `parent` is
    /// a new one. O(n log n) for n ids, plus the search for a cycle when others wait for it.
    pub(crate) fn decide_edges(
        &self,
        env: &Env<'_>,
        slot: u32,
        id: Option<&[u8]>,
        after: &After<'_>,
        parent: Option<u32>,
    ) -> Result<Vec<Edge>, Refusal> {
        let mut edges: Vec<Edge> = Vec::with_capacity(after.jobs.len());
        for (other, on_failure) in &after.jobs {
            match self.find(other) {
                _ if id == Some(other) => return Err(Refusal::Cycle),
                Some(slot) => edges.push(Edge { slot, on_failure: *on_failure }),
                None if after.strict => {
                    let tombstone = self.tombstone(other, env.now);
                    if tombstone.is_none_or(|t| t.state != State::Complete) {
                        return Err(Refusal::NoJob.of(other));
                    }
                }
                None => {}
            }
        }
        self.check_cycle(slot, &edges, Coming { children: after.children.is_some(), parent })?;
        // The last one of each id is kept.
        edges.reverse();
        edges.sort_by_key(|edge| edge.slot);
        edges.dedup_by_key(|edge| edge.slot);
        Ok(self.by_seq(&edges))
    }

    /// Decides a change of what a job waits for. The caller must settle the job's time first. O(n
    /// log n) for n ids, plus the search for a cycle when others wait for it.
    pub fn depend(&self, env: &Env<'_>, slot: u32, depend: &Depend<'_>) -> Result<Depended, Refusal> {
        self.check_unclaimed(slot)?;
        let mut depended = Depended {
            slot,
            clear: false,
            remove: Vec::new(),
            add: Vec::new(),
            signals: false,
            no_children: false,
            children: None,
        };
        match depend {
            Depend::Clear => depended.clear = true,
            Depend::RemoveSignals => depended.signals = true,
            Depend::RemoveChildren => depended.no_children = true,
            Depend::Remove(ids) => {
                let mut slots: Vec<u32> = ids.iter().filter_map(|id| self.find(id)).collect();
                slots.sort_by_key(|slot| self.seq(*slot));
                depended.remove = slots;
            }
            Depend::Add(after) => {
                depended.add = self.decide_edges(env, slot, None, after, None)?;
                depended.children = after.children;
                self.check_edge_count(self.edges(slot), &depended.add)?;
            }
        }
        Ok(depended)
    }
}
