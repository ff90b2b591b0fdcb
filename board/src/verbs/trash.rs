//! Trashing: a worker puts a job aside that nobody should attempt again.

use crate::board::Board;
use crate::effect::{ApplyError, Validate};
use crate::env::Env;
use crate::error::Refusal;
use crate::events::{text_field, EventField, EventKind};
use crate::job::history::{Entry, HistoryKind};
use crate::job::{End, State};
use crate::verbs::holder::{end_of, AtCancel, WorkerVerb};

/// A worker's request to trash its job.
#[derive(Debug, Clone, Default)]
pub struct Trash<'a> {
    /// Why.
    pub reason: Option<&'a [u8]>,
}

impl<'a> WorkerVerb<'a> for Trash<'a> {
    const END: End = End::Trashed;
    type Effect = Trashed<'a>;

    fn at_cancel(&self) -> AtCancel<'a> {
        AtCancel::Cancel(self.reason)
    }

    fn decide(&self, board: &Board, env: &Env<'_>, slot: u32, apart: bool) -> Result<Self::Effect, Refusal> {
        let retain = board.retention(State::Trashed, env.rules);
        Ok(Trashed { slot, reason: self.reason, retain, apart })
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
        4 apart: bool,
    }
}

impl Validate for Trashed<'_> {}

impl Trashed<'_> {
    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        let end = end_of(End::Trashed, self.apart);
        board.end_job(self.slot, State::Trashed, end, self.reason, self.retain, now)
    }
}

impl Board {
    /// Ends the life of a live job without success, whoever holds it.
    pub(crate) fn end_job(
        &mut self,
        slot: u32,
        state: State,
        end: End,
        reason: Option<&[u8]>,
        retain: i64,
        now: i64,
    ) -> Result<(), ApplyError> {
        if self.job(slot)?.state.ended() {
            return Err(ApplyError);
        }
        let claim = self.leave(slot)?;
        let (held, trashed) = (claim.is_some(), state == State::Trashed);
        if end != End::Taken || trashed {
            self.count_run(slot, claim.as_ref(), now);
        }
        if let Some(claim) = claim {
            if end == End::Taken {
                self.emit_lost(slot, &claim, "cancelled");
            }
            self.write_end(slot, claim, end, now)?;
        }
        self.edit(slot, |job| {
            let extras = job.extras_mut();
            extras.reports.set(|said| &mut said.reason, reason);
            if let (Some(last), true) = (extras.last_claim.as_mut(), held || end != End::Taken || trashed) {
                last.end = end;
            }
            Ok(())
        })?;
        let last = self.extras(slot).and_then(|r| r.last_claim.as_ref());
        let said = last.filter(|_| !trashed || end != End::Taken);
        let (worker, token) = (said.map(|l| l.worker.clone()), self.last_token(slot));
        let event = if trashed { HistoryKind::Trashed } else { HistoryKind::Cancelled };
        self.record(slot, Entry { at: now, event, worker, text: reason.map(|r| r.into()) })?;
        let kept = self.keeps(slot, retain);
        let topic = if state == State::Trashed { EventKind::Trashed } else { EventKind::Cancelled };
        self.emit_end(topic, slot, |facts| {
            text_field(facts, "reason", reason);
            facts.push(EventField::Flag("kept", kept));
        });
        self.make_ended(slot, state, token, retain, now)
    }
}
