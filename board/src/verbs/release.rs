//! Releasing: an operator takes a job from its worker, at no cost to the job.

use crate::board::Board;
use crate::effect::{ApplyError, Effect, Validate};
use crate::env::Env;
use crate::error::Refusal;
use crate::job::history::HistoryKind;
use crate::job::End;
use crate::verbs::cancel::Cancelled;

written! {
    /// An operator took a job from its worker.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Released {
        1 pub(crate) slot: u32,
    }
}

impl Validate for Released {}

impl Released {
    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        let claim = board.leave(self.slot)?.ok_or(ApplyError)?;
        let worker = Some(board.worker_name(&claim).into());
        board.settle_claim(self.slot, claim, End::Taken, now)?;
        board.happened(self.slot, HistoryKind::Released, worker, None)?;
        board.make_ready(self.slot, now)
    }
}

impl Board {
    /// Decides the release of one job. O(log n).
    pub fn release(&self, env: &Env<'_>, slot: u32) -> Result<Effect<'static>, Refusal> {
        let job = self.job(slot).map_err(|_| Refusal::NoJob)?;
        match self.claim_of(job) {
            None => Err(Refusal::NotClaimed(job.state)),
            Some(claim) if claim.cancel => Ok(Cancelled::at_end(self, env, slot, End::Taken, None).into()),
            Some(_) => Ok(Released { slot }.into()),
        }
    }

    /// Decides that a job whose claim never reached its worker is ready again, at no cost.
    pub fn undo_claim(&self, env: &Env<'_>, slot: u32, token: u64) -> Option<Effect<'static>> {
        let claim = self.claim_of(self.store.jobs.get(slot)?)?;
        (claim.token == token).then(|| self.release(env, slot).ok()).flatten()
    }
}
