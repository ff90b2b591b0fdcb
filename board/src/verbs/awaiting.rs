//! Awaiting: a worker needs signals, or the ends of the job's children, before it can continue. When
//! all is there it keeps its job; otherwise it gives the job up until then, at no cost to the job.

use crate::board::Board;
use crate::effect::{is_name, ApplyError, Validate};
use crate::env::Env;
use crate::error::Refusal;
use crate::job::awaited::OnFailure;
use crate::job::gate::Gate;
use crate::job::remembered::Memo;
use crate::job::{End, State};
use crate::relations::cycles::Coming;
use crate::relations::dependencies::Outcome;
use crate::verbs::cancel::Cancelled;
use crate::verbs::heartbeat::{Beaten, Report, Revived};
use crate::verbs::holder::{end_of, Speaker, Standing};

/// A worker's request to wait for signals, for children, or for both.
#[derive(Debug, Clone, Default)]
pub struct Await<'a> {
    /// The signals that it waits for; none without a name.
    pub gate: Gate,
    /// It waits for its children, and what happens if one of them does not succeed.
    pub children: Option<OnFailure>,
    /// The name of the wait, under which it is remembered that its time was over; without it the
    /// name of the first signal.
    pub step: Option<&'a [u8]>,
    /// A new payload.
    pub payload: Option<&'a [u8]>,
}

impl Await<'_> {
    /// The name of the wait.
    fn name(&self) -> &[u8] {
        self.step.or_else(|| Some(self.gate.names.first()?)).unwrap_or_default()
    }
}

/// The outcome of a request to wait, to be applied.
#[derive(Debug, Clone, PartialEq)]
pub enum AwaitAnswer<'a> {
    /// The worker keeps its job. The effects are to be applied in this order.
    Kept {
        /// The job.
        slot: u32,
        /// A late worker holds its job again.
        revived: Option<Revived>,
        /// The lease is extended.
        beaten: Beaten<'a>,
        /// Whether the time of this wait was over in an earlier run.
        timeout: bool,
    },
    /// The worker gives the job up.
    Waits(Awaiting<'a>),
    /// The job was to be cancelled.
    Cancels(Cancelled<'a>),
    /// The worker gave it up before, with the same token. Nothing happens; the state is that of the
    /// job.
    Again(State),
}

written! {
    /// A worker gave its job up until signals arrive.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Awaiting<'a> {
        1 slot: u32,
        2 gate: Gate,
        /// The name of the wait.
        3 step: &'a [u8],
        4 payload: Option<&'a [u8]>,
        /// Whether the speaker may not be the holder.
        5 taken: bool,
        /// It waits for its children.
        6 children: Option<OnFailure>,
    }
}

impl Validate for Awaiting<'_> {
    fn is_valid(&self, board: &Board) -> bool {
        let signals = self.gate.is_valid() && is_name(self.step) && !board.opens(self.slot, &self.gate);
        let children =
            self.children.is_some_and(|on| board.outcome_of_children(self.slot, on) != Outcome::Met);
        (signals || self.gate.names.is_empty() && children)
            && board.sound_edges(self.slot, &[], &[], Coming::of(self.children))
    }
}

impl Awaiting<'_> {
    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        if board.waits(self.slot) {
            return Err(ApplyError);
        }
        board.close_run(self.slot, end_of(End::Awaiting, self.taken), "released", true, now)?;
        if let Some(payload) = self.payload {
            board.edit(self.slot, |job| {
                job.set_payload(payload);
                Ok(())
            })?;
        }
        if !self.gate.names.is_empty() {
            board.begin_waiting(self.slot, &self.gate, self.step, now)?;
        }
        if let Some(on_failure) = self.children {
            board.ask_for_children(self.slot, on_failure, (true, false))?;
        }
        board.make_ready(self.slot, now)
    }
}

impl Board {
    /// Decides whether a worker keeps its job or gives it up until signals arrive and children have
    /// ended. O(log n), and O(m log s) for m names and s signals, plus the search for a cycle when a
    /// job that waits for children has some.
    pub fn await_signals<'a>(
        &self,
        env: &Env<'_>,
        speaker: &Speaker<'_>,
        request: &'a Await<'a>,
    ) -> Result<AwaitAnswer<'a>, Refusal> {
        let (slot, late, cancel, taken) = match self.standing(env, speaker, Some(End::Awaiting))? {
            Standing::Holds { slot, cancel, taken } => (slot, false, cancel, taken),
            Standing::Late { slot, taken } => (slot, true, false, taken),
            Standing::Again(state) => return Ok(AwaitAnswer::Again(state)),
        };
        let Await { gate, payload, .. } = request;
        let remembered = self.extras(slot).map(|extras| &extras.remembered);
        let named = !gate.names.is_empty();
        let timeout = named && remembered.is_some_and(|remembered| remembered.has_timed_out(request.name()));
        let arrived = timeout || !named || self.opens(slot, gate);
        let children = request.children.filter(|_| !self.has_waived(slot));
        if arrived && children.is_none_or(|on| self.outcome_of_children(slot, on) == Outcome::Met) {
            if late {
                self.check_concurrency(slot, false, env.now)?;
            }
            let lease = self.lease_of(slot).ok_or(Refusal::NoJob)?;
            let report = payload.map(|payload| Report { payload: Some(payload), ..Report::default() });
            let revived = late.then(|| self.revive(env, slot));
            return Ok(AwaitAnswer::Kept {
                slot,
                revived,
                beaten: Beaten::with(slot, lease, report),
                timeout,
            });
        }
        if cancel {
            let end = end_of(End::Awaiting, taken);
            return Ok(AwaitAnswer::Cancels(Cancelled::at_end(self, env, slot, end, None)));
        }
        self.check_cycle(slot, &[], Coming::of(children))?;
        let (mut gate, mut step, payload) = (gate.clone(), request.name(), *payload);
        match arrived {
            true => (gate, step) = (Gate::default(), &[]),
            // That its time was over must have room.
            false => self.check_memo(slot, None, request.name().len())?,
        }
        Ok(AwaitAnswer::Waits(Awaiting { slot, gate, step, payload, taken, children }))
    }

    /// The signals with which a gate has opened for a job: with ANY the one that arrived first.
    pub fn signals_for(&self, slot: u32, gate: &Gate) -> Vec<&Memo> {
        self.extras(slot).map_or_else(Vec::new, |extras| extras.remembered.opened(gate))
    }
}
