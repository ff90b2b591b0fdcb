//! Releasing: an operator takes a job from its worker, at no cost to the job.

use crate::board::Board;
use crate::dispatch::fair::ready_key_of;
use crate::effect::{ApplyError, Effect, Validate};
use crate::env::Env;
use crate::error::Refusal;
use crate::job::{is_time, End, Job, NEVER, U48};
use crate::places::happened::Happened;
use crate::verbs::cancel::Cancelled;

written! {
    /// An operator took a job from its worker.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Released {
        1 pub(crate) slot: u32,
        /// It is first of the ready jobs of its priority from now on: as if it had been ready at this
        /// time, Unix ms.
        2 pub(crate) front: Option<i64>,
    }
}

impl Validate for Released {
    fn is_valid(&self, _board: &Board) -> bool {
        self.front.is_none_or(is_time)
    }
}

impl Released {
    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        board.claim_of(board.job(self.slot)?).ok_or(ApplyError)?;
        board.close_run(self.slot, End::Taken, "released", false, now)?;
        board.happened(self.slot, &Happened::Released)?;
        if let Some(since) = self.front {
            board.edit(self.slot, |job| {
                let earlier = job.since.get().saturating_sub(since);
                job.since = U48::new(since);
                // Its age stays what it was.
                let idle = &mut job.extras_mut().retrying.idle;
                *idle = idle.saturating_add(earlier).clamp(0, NEVER);
                Ok(())
            })?;
        }
        board.make_ready(self.slot, now)
    }
}

impl Board {
    /// Decides the release of one job, perhaps to the front. O(log n).
    pub fn release(&self, env: &Env<'_>, slot: u32, front: bool) -> Result<Effect<'static>, Refusal> {
        let job = self.job(slot).map_err(|_| Refusal::NoJob)?;
        match self.claim_of(job) {
            None => Err(Refusal::NotClaimed(job.state)),
            Some(claim) if claim.cancel => Ok(Cancelled::at_end(self, env, slot, End::Taken, None).into()),
            Some(_) => {
                let front = if front { self.before_all(job) } else { None };
                Ok(Released { slot, front }.into())
            }
        }
    }

    /// The time at which a job would have to have become ready to be first of the ready jobs of its
    /// priority, in its queue or its group; `None` when its own is early enough. O(log n).
    fn before_all(&self, job: &Job) -> Option<i64> {
        let queue = self.queue_of(job)?;
        let line = match job.group() {
            Some(at) => &queue.group(at)?.ready,
            None => &queue.ready,
        };
        let own = job.ready_key();
        let key_of = |slot| ready_key_of(&self.store.jobs, slot);
        let first = line.iter_from(Some((own.0, i64::MIN, i64::MIN)), key_of).next()?;
        let head = ready_key_of(&self.store.jobs, first);
        let earlier = own.1.saturating_sub(head.1).saturating_add(1);
        let comes_later = head.0 == own.0 && head < own;
        comes_later.then(|| job.since.get().saturating_sub(earlier).max(0))
    }

    /// Decides that a job whose claim never reached its worker is ready again, at no cost.
    pub fn undo_claim(&self, env: &Env<'_>, slot: u32, token: u64) -> Option<Effect<'static>> {
        let claim = self.claim_of(self.store.jobs.get(slot)?)?;
        (claim.token == token).then(|| self.release(env, slot, false).ok()).flatten()
    }
}
