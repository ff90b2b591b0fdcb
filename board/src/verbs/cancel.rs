//! Cancelling: an operator cancels a job. If a worker holds it, that worker is asked to stop.

use crate::board::{after, Board};
use crate::effect::{ApplyError, Effect, Validate};
use crate::env::Env;
use crate::error::Refusal;
use crate::job::{is_time, End, State};
use crate::places::happened::Happened;
use crate::settings::Setting;
use crate::verbs::heartbeat::Report;

/// What a cancel does to one job.
#[derive(Debug, Clone, PartialEq)]
pub enum CancelAnswer {
    /// This effect cancels the job.
    Cancelled(Effect<'static>),
    /// This effect asks the holder to stop.
    Requested(Effect<'static>),
    /// The job was cancelled, or its holder asked, before.
    Already,
}

written! {
    /// Somebody asked the holder of a job to stop.
    #[derive(Debug, Clone, PartialEq)]
    pub struct CancelRequested {
        1 slot: u32,
        /// When the claim ends at the latest, Unix ms.
        2 end: i64,
    }
}

impl Validate for CancelRequested {
    fn is_valid(&self, _board: &Board) -> bool {
        is_time(self.end)
    }
}

impl CancelRequested {
    pub(crate) fn apply(&self, board: &mut Board, _now: i64) -> Result<(), ApplyError> {
        board.retime(self.slot, |claim| {
            claim.cancel = true;
            claim.cancel_end = self.end;
        })?;
        board.happened(self.slot, &Happened::CancelRequested)
    }
}

written! {
    /// A job was cancelled; or its claim ended after its holder had been asked to stop.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Cancelled<'a> {
        1 slot: u32,
        2 end: End,
        3 reason: Option<&'a [u8]>,
        4 retain: i64,
        /// What its worker reports with the end of its claim.
        5 report: Option<Box<Report<'a>>>,
    }
}

impl Validate for Cancelled<'_> {
    fn is_valid(&self, _board: &Board) -> bool {
        self.report.as_ref().is_none_or(|report| report.is_valid())
    }
}

impl<'a> Cancelled<'a> {
    /// The effect of a claim's end on a job whose holder was asked to stop.
    pub(crate) fn at_end(
        board: &Board,
        env: &Env<'_>,
        slot: u32,
        end: End,
        reason: Option<&'a [u8]>,
    ) -> Self {
        Cancelled { slot, end, reason, retain: board.retention(State::Cancelled, env.rules), report: None }
    }

    /// The same with a report of the worker.
    pub(crate) fn reporting(self, report: Option<Report<'a>>) -> Self {
        Cancelled { report: report.map(Box::new), ..self }
    }

    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        if let Some(report) = &self.report {
            let holder = board.claim_of(board.job(self.slot)?).map(|claim| board.worker_name(claim).to_vec());
            let worker = holder.filter(|_| self.end != End::Taken);
            report.apply(board, self.slot, worker.as_deref(), false, now)?;
        }
        board.end_job(self.slot, State::Cancelled, self.end, self.reason, self.retain, now)
    }
}

impl Board {
    /// Refuses a job that was not posted on behalf of this user. O(1).
    pub fn check_user(&self, slot: u32, user: &[u8]) -> Result<(), Refusal> {
        match self.extras(slot).and_then(|extras| extras.user.as_deref()) {
            Some(owner) if owner == user => Ok(()),
            owner => Err(Refusal::NotOwner(owner.unwrap_or(b"-").into())),
        }
    }

    /// Decides the cancel of one job; `force` also ends a claim. O(log n).
    pub fn cancel(&self, env: &Env<'_>, slot: u32, force: bool) -> Result<CancelAnswer, Refusal> {
        let job = self.job(slot).map_err(|_| Refusal::NoJob)?;
        match (job.state, self.claim_of(job)) {
            (State::Cancelled, _) => Ok(CancelAnswer::Already),
            (state, _) if state.ended() => Err(Refusal::Ended(state)),
            (_, Some(claim)) if !force => Ok(match claim.cancel {
                true => CancelAnswer::Already,
                false => {
                    let end = after(env.now, self.job_rule(job, Setting::CancelGrace, env.rules));
                    CancelAnswer::Requested(CancelRequested { slot, end }.into())
                }
            }),
            _ => {
                let cancelled = Cancelled::at_end(self, env, slot, End::Taken, None);
                Ok(CancelAnswer::Cancelled(cancelled.into()))
            }
        }
    }
}
