//! Abandoning: a worker gives a job back, at no cost to the job.

use crate::board::{after, Board};
use crate::effect::{ApplyError, Meta, Validate};
use crate::env::Env;
use crate::error::Refusal;
use crate::job::End;
use crate::places::happened::Happened;
use crate::verbs::heartbeat::Report;
use crate::verbs::holder::{end_of, AtCancel, WorkerVerb};

/// A worker's request to give its job back.
#[derive(Debug, Clone, Default)]
pub struct Abandon<'a> {
    /// How long the job must wait for its next claim, ms.
    pub delay: Option<i64>,
    /// Why.
    pub reason: Option<&'a [u8]>,
    /// What else the worker reports: fields.
    pub report: Report<'a>,
}

impl<'a> WorkerVerb<'a> for Abandon<'a> {
    const END: End = End::Abandoned;
    type Effect = Abandoned<'a>;

    fn at_cancel(&self) -> AtCancel<'a> {
        AtCancel::Cancel(self.reason)
    }

    fn report(&self) -> Option<&Report<'a>> {
        Some(&self.report)
    }

    fn decide(&self, _board: &Board, env: &Env<'_>, slot: u32, taken: bool) -> Result<Self::Effect, Refusal> {
        let due = self.delay.map(|ms| after(env.now, ms));
        Ok(Abandoned { slot, due, reason: self.reason, taken, meta: self.report.meta.clone() })
    }
}

written! {
    /// A worker abandoned a job.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Abandoned<'a> {
        1 slot: u32,
        2 due: Option<i64>,
        3 reason: Option<&'a [u8]>,
        /// Whether the speaker may not be the holder.
        4 taken: bool,
        /// Fields to set.
        5 meta: Meta<'a>,
    }
}

impl Validate for Abandoned<'_> {}

impl<'a> Abandoned<'a> {
    /// Abandons a job in the name of its holder.
    pub(crate) fn of(slot: u32, reason: Option<&'a [u8]>) -> Self {
        Abandoned { slot, due: None, reason, taken: false, meta: Meta::new() }
    }

    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        board.close_run(self.slot, end_of(End::Abandoned, self.taken), "released", true, now)?;
        board.edit(self.slot, |job| {
            let extras = job.extras_mut();
            extras.set_meta(self.meta.iter().map(|(f, v)| (&**f, &**v)));
            extras.reports.set_text(|said| &mut said.reason, self.reason);
            Ok(())
        })?;
        let due = self.due.filter(|due| *due > now);
        board.happened(self.slot, &Happened::Abandoned { reason: self.reason, due })?;
        board.make_due(self.slot, due.unwrap_or(now), now)
    }
}
