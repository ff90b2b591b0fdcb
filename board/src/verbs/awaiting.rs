//! Awaiting: a worker needs signals before it can continue. When they have arrived it keeps its
//! job; otherwise it gives the job up until they have, at no cost to the job.

use crate::board::Board;
use crate::effect::{is_name, ApplyError, Validate};
use crate::env::Env;
use crate::error::Refusal;
use crate::job::gate::Gate;
use crate::job::remembered::Memo;
use crate::job::{End, State};
use crate::verbs::cancel::Cancelled;
use crate::verbs::heartbeat::{Beaten, Report, Revived};
use crate::verbs::holder::{end_of, Speaker, Standing};

/// A worker's request to wait for signals.
#[derive(Debug, Clone, Default)]
pub struct Await<'a> {
    /// What it waits for.
    pub gate: Gate,
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
    }
}

impl Validate for Awaiting<'_> {
    fn is_valid(&self, board: &Board) -> bool {
        self.gate.is_valid() && is_name(self.step) && !board.opens(self.slot, &self.gate)
    }
}

impl Awaiting<'_> {
    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        if board.waits(self.slot) {
            return Err(ApplyError);
        }
        board.close_run(self.slot, end_of(End::Awaiting, self.taken), now)?;
        if let Some(payload) = self.payload {
            board.edit(self.slot, |job| {
                job.set_payload(payload);
                Ok(())
            })?;
        }
        let last = board.extras(self.slot).and_then(|r| r.last_claim.as_ref()).filter(|_| !self.taken);
        let worker = last.map(|last| last.worker.clone());
        board.begin_waiting(self.slot, &self.gate, self.step, worker, now)?;
        board.make_ready(self.slot, now)
    }
}

impl Board {
    /// Decides whether a worker keeps its job or gives it up until signals arrive. O(log n), and
    /// O(m log s) for m names and s signals.
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
        let timeout = remembered.is_some_and(|remembered| remembered.has_timed_out(request.name()));
        if timeout || self.opens(slot, gate) {
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
        // That its time was over must have room.
        self.check_memo(slot, None, request.name().len())?;
        let (gate, step, payload) = (gate.clone(), request.name(), *payload);
        Ok(AwaitAnswer::Waits(Awaiting { slot, gate, step, payload, taken }))
    }

    /// The signals with which a gate has opened for a job: with ANY the one that arrived first.
    pub fn signals_for(&self, slot: u32, gate: &Gate) -> Vec<&Memo> {
        self.extras(slot).map_or_else(Vec::new, |extras| extras.remembered.opened(gate))
    }
}
