//! Trashing: a worker puts a job aside that nobody should attempt again.

use crate::board::Board;
use crate::effect::{ApplyError, Meta, Validate};
use crate::env::Env;
use crate::error::Refusal;
use crate::job::{End, State};
use crate::verbs::heartbeat::Report;
use crate::verbs::holder::{end_of, AtCancel, WorkerVerb};

/// A worker's request to trash its job.
#[derive(Debug, Clone, Default)]
pub struct Trash<'a> {
    /// Why.
    pub reason: Option<&'a [u8]>,
    /// What else the worker reports: fields.
    pub report: Report<'a>,
}

impl<'a> WorkerVerb<'a> for Trash<'a> {
    const END: End = End::Trashed;
    type Effect = Trashed<'a>;

    fn at_cancel(&self) -> AtCancel<'a> {
        AtCancel::Cancel(self.reason)
    }

    fn report(&self) -> Option<&Report<'a>> {
        Some(&self.report)
    }

    fn decide(&self, board: &Board, env: &Env<'_>, slot: u32, taken: bool) -> Result<Self::Effect, Refusal> {
        let retain = board.retention(State::Trashed, env.rules);
        Ok(Trashed { slot, reason: self.reason, retain, taken, meta: self.report.meta.clone() })
    }
}

written! {
    /// A worker trashed a job.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Trashed<'a> {
        1 slot: u32,
        2 reason: Option<&'a [u8]>,
        3 retain: i64,
        /// Whether the speaker may not be the holder.
        4 taken: bool,
        /// Fields to set.
        5 meta: Meta<'a>,
    }
}

impl Validate for Trashed<'_> {}

impl Trashed<'_> {
    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        let end = end_of(End::Trashed, self.taken);
        if !self.meta.is_empty() {
            board.edit(self.slot, |job| {
                job.extras_mut().set_meta(self.meta.iter().map(|(f, v)| (&**f, &**v)));
                Ok(())
            })?;
        }
        board.end_job(self.slot, State::Trashed, end, self.reason, self.retain, now)
    }
}
