//! Advancing: one part of the work is done, and the job moves to another queue under the same id.
//! Jobs that wait for it keep waiting.

use crate::board::Board;
use crate::effect::{is_name, ApplyError, Meta, Validate};
use crate::env::Env;
use crate::error::Refusal;
use crate::job::awaited::{Edge, OnFailure};
use crate::job::costs::{are_costs, pack, PackedCosts};
use crate::job::gate::Gate;
use crate::job::{Costs, End, State, COSTS_MOST, NEVER, U48};
use crate::places::happened::Happened;
use crate::relations::cycles::Coming;
use crate::settings::MOST;
use crate::verbs::depend::After;
use crate::verbs::holder::{end_of, AtCancel, WorkerVerb};
use crate::verbs::output::Chunk;

/// A worker's request to move its job.
#[derive(Debug, Clone, Default)]
pub struct Advance<'a> {
    /// The next queue.
    pub queue: &'a [u8],
    /// A new name.
    pub name: Option<&'a [u8]>,
    /// The job is not ready before this time, Unix ms.
    pub due: Option<i64>,
    /// A new priority.
    pub priority: Option<i32>,
    /// A new payload.
    pub payload: Option<&'a [u8]>,
    /// The jobs that it waits for first.
    pub after: Option<After<'a>>,
    /// The last output of this run.
    pub output: Option<Chunk<'a>>,
    /// The signals that must arrive first.
    pub gate: Option<Box<Gate>>,
    /// The permits that the next claim takes.
    pub cost: Option<i64>,
    /// What the next claim takes from single limits.
    pub costs: Option<Costs<'a>>,
    /// Fields to set.
    pub meta: Meta<'a>,
    /// The queue in which the job must be.
    pub only_in: Option<&'a [u8]>,
}

impl<'a> WorkerVerb<'a> for Advance<'a> {
    const END: End = End::Advanced;
    type Effect = Advanced<'a>;

    fn at_cancel(&self) -> AtCancel<'a> {
        AtCancel::Refuse
    }

    /// O(log n + m log m) for m jobs to wait for, plus the search for a cycle when others wait for
    /// the job.
    fn decide(&self, board: &Board, env: &Env<'_>, slot: u32, taken: bool) -> Result<Self::Effect, Refusal> {
        board.check_is_in(slot, self.only_in)?;
        board.check_meta(slot, &self.meta)?;
        board.check_queue(self.queue)?;
        if board.is_dead(slot) {
            board.check_own_key(slot, env.now)?;
        }
        let after = match &self.after {
            Some(after) => board.decide_edges(env, slot, None, after, None)?,
            None => Vec::new(),
        };
        board.check_edge_count(&[], &after)?;
        let output = board.to_write(slot, self.output)?;
        let Advance { queue, name, due, priority, payload, .. } = *self;
        let costs = self.costs.as_ref().map(|costs| board.checked_costs(costs)).transpose()?;
        let (gate, cost, meta) = (self.gate.clone(), self.cost, self.meta.clone());
        let children = self.after.as_ref().and_then(|after| after.children);
        Ok(Advanced {
            slot,
            queue,
            name,
            due,
            priority,
            payload,
            after,
            taken,
            output,
            gate,
            cost,
            costs,
            children,
            meta,
        })
    }
}

written! {
    /// A job moved to another queue: attempts, failures and lapses start again at 0.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Advanced<'a> {
        1 slot: u32,
        2 queue: &'a [u8],
        3 name: Option<&'a [u8]>,
        4 due: Option<i64>,
        5 priority: Option<i32>,
        6 payload: Option<&'a [u8]>,
        7 after: Vec<Edge>,
        /// Whether the speaker may not be the holder.
        8 taken: bool,
        /// A chunk of output.
        9 output: Option<&'a [u8]>,
        /// The signals that must arrive first, in place of those that its post named.
        10 gate: Option<Box<Gate>>,
        /// The permits that the next claim takes, in place of those that its post named.
        11 cost: Option<i64>,
        /// The same of single limits, by name.
        12 costs: Option<Costs<'a>>,
        /// It waits for its children first.
        13 children: Option<OnFailure>,
        /// Fields to set.
        14 meta: Meta<'a>,
    }
}

impl Validate for Advanced<'_> {
    fn is_valid(&self, board: &Board) -> bool {
        is_name(self.queue)
            && self.name.is_none_or(is_name)
            && self.gate.as_ref().is_none_or(|gate| gate.is_valid())
            && self.cost.is_none_or(|cost| (1..=MOST).contains(&cost))
            && self.costs.as_ref().is_none_or(|costs| are_costs(costs.iter().copied(), COSTS_MOST))
            && board.sound_edges(self.slot, board.edges(self.slot), &self.after, Coming::of(self.children))
    }
}

impl Advanced<'_> {
    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        let slot = self.slot;
        if let Some(output) = self.output {
            board.write_output(slot, output)?;
        }
        board.close_run(slot, end_of(End::Advanced, self.taken), "released", true, now)?;
        let last = board.extras(slot).and_then(|r| r.last_claim.as_ref()).ok_or(ApplyError)?;
        let (worker, token) = (last.worker.clone(), last.token);
        let due = self.due.filter(|due| *due > now);
        board.happened(slot, &Happened::Advanced { to: self.queue, due })?;
        // The kind of the last failure, which is a label, is removed.
        board.unindex_labels(slot)?;
        let returns = board.is_dead(slot);
        board.reclass(slot, Some(self.queue), self.name, Default::default())?;
        let packed = self.costs.as_ref().map(|costs| pack(costs));
        board.edit(slot, |job| {
            if self.cost.is_some() || packed.is_some() {
                job.set_costs(self.cost, packed.as_deref().map(PackedCosts::of));
            }
            job.since = U48::new(NEVER);
            job.priority = self.priority.unwrap_or(job.priority);
            if let Some(payload) = self.payload {
                job.set_payload(payload);
            }
            let extras = job.extras_mut();
            extras.set_meta(self.meta.iter().map(|(f, v)| (&**f, &**v)));
            extras.begin_attempts_afresh(Some(End::Advanced));
            extras.forget_steps();
            if self.gate.is_some() || extras.remembered.gate.is_some() {
                extras.remembered.gate = self.gate.clone();
            }
            if let Some(said) = extras.reports.there() {
                (said.kind, said.message, said.reason) = (None, None, None);
            }
            extras.modified = now;
            extras.origin = None;
            extras.advanced = (!self.taken).then(|| Box::new((worker, token)));
            Ok(())
        })?;
        board.index_labels(slot)?;
        if returns {
            board.take_key(slot, now)?;
        }
        for edge in &self.after {
            board.attach(slot, *edge, now)?;
        }
        if let Some(on_failure) = self.children {
            board.ask_for_children(slot, on_failure, (false, false))?;
        }
        board.comes_in(slot, due.unwrap_or(now), State::Claimed, true, now)
    }
}
