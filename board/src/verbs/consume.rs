//! Consuming: the work is done.

use crate::board::Board;
use crate::effect::{ApplyError, Meta, Validate};
use crate::env::Env;
use crate::error::Refusal;
use crate::job::{End, State};
use crate::places::happened::Happened;
use crate::settings::Setting;
use crate::verbs::holder::{end_of, AtCancel, WorkerVerb};
use crate::verbs::output::Chunk;

/// A worker's report that its job is done.
#[derive(Debug, Clone, Default)]
pub struct Consume<'a> {
    /// The result.
    pub result: Option<&'a [u8]>,
    /// How long the record is retained, ms.
    pub retain: Option<i64>,
    /// A new payload, for readers of the record.
    pub payload: Option<&'a [u8]>,
    /// Complete it although a cancel was requested.
    pub force: bool,
    /// The last output.
    pub output: Option<Chunk<'a>>,
    /// Fields to set.
    pub meta: Meta<'a>,
    /// The queue in which the job must be.
    pub only_in: Option<&'a [u8]>,
}

impl<'a> WorkerVerb<'a> for Consume<'a> {
    const END: End = End::Consumed;
    type Effect = Consumed<'a>;

    fn at_cancel(&self) -> AtCancel<'a> {
        match self.force {
            true => AtCancel::Ignore,
            false => AtCancel::Refuse,
        }
    }

    fn decide(&self, board: &Board, env: &Env<'_>, slot: u32, taken: bool) -> Result<Self::Effect, Refusal> {
        let job = board.job(slot).map_err(|_| Refusal::NoJob)?;
        let setting = match self.result {
            Some(_) => Setting::RetainResult,
            None => Setting::RetainComplete,
        };
        let retain = self.retain.unwrap_or_else(|| board.job_rule(job, setting, env.rules));
        board.check_is_in(slot, self.only_in)?;
        board.check_meta(slot, &self.meta)?;
        let output = board.to_write(slot, self.output)?;
        let Consume { result, payload, ref meta, .. } = *self;
        Ok(Consumed { slot, result, retain, payload, taken, output, meta: meta.clone() })
    }
}

written! {
    /// A job is complete.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Consumed<'a> {
        1 slot: u32,
        2 result: Option<&'a [u8]>,
        3 retain: i64,
        4 payload: Option<&'a [u8]>,
        /// Whether the speaker may not be the holder.
        5 taken: bool,
        /// A chunk of output.
        6 output: Option<&'a [u8]>,
        /// Fields to set.
        7 meta: Meta<'a>,
    }
}

impl Validate for Consumed<'_> {}

impl Consumed<'_> {
    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        let slot = self.slot;
        if board.job(slot)?.state.ended() {
            return Err(ApplyError);
        }
        if let Some(output) = self.output {
            board.write_output(slot, output)?;
        }
        let claim = board.leave(slot)?;
        let end = end_of(End::Consumed, self.taken);
        board.count_run(slot, claim.as_ref(), now);
        let token = match (&claim, board.extras(slot).and_then(|r| r.last_claim.as_ref())) {
            _ if self.taken => 0,
            (Some(claim), _) => claim.token,
            (None, last) => last.map_or(0, |l| l.token),
        };
        let kept = board.keeps(slot, self.retain);
        match &claim {
            Some(claim) if kept => board.settle_claim(slot, claim, end, "released", now)?,
            Some(claim) => board.claim_ended(slot, claim, end, "released", now)?,
            None => {}
        }
        if kept {
            board.edit(slot, |job| {
                if let Some(payload) = self.payload {
                    job.set_payload(payload);
                }
                let extras = job.extras_mut();
                extras.set_meta(self.meta.iter().map(|(f, v)| (&**f, &**v)));
                extras.reports.set_text(|said| &mut said.result, self.result);
                if let Some(last) = extras.last_claim.as_mut() {
                    last.end = end;
                }
                Ok(())
            })?;
        }
        board.happened(slot, &Happened::Completed { claim: claim.as_ref(), token, kept })?;
        board.make_ended(slot, State::Complete, token, self.retain, now)
    }
}
