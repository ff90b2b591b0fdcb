//! Output: what a worker writes while its job runs, chunk by chunk, and who reads it.
//!
//! A chunk comes with a verb of the worker, and has no effect of its own. The worker counts the
//! chunks of its run, so that one that it sends again is known.

use crate::board::Board;
use crate::effect::ApplyError;
use crate::error::Refusal;
use crate::job::output::Unread;
use crate::job::Extras;
use crate::settings::Setting;

/// A chunk that a worker sends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chunk<'a> {
    /// Its number in this run, from 1.
    pub number: u64,
    /// What it says.
    pub text: &'a [u8],
}

impl Board {
    /// The token and the attempt of the current run, or of the last one. Without a run, which a job
    /// of an ownerless board may end without, both are 0.
    pub(crate) fn run_of(&self, slot: u32) -> (u64, u32) {
        let job = self.store.jobs.get(slot);
        if let Some(claim) = job.and_then(|job| self.claim_of(job)) {
            return (claim.token, claim.attempt);
        }
        let extras = self.extras(slot);
        let last = extras.and_then(|extras| extras.last_claim.as_ref());
        (last.map_or(0, |last| last.token), extras.map_or(0, |extras| extras.attempt))
    }

    /// How many chunks the current run has written. O(1).
    pub fn written(&self, slot: u32) -> u64 {
        let output = self.extras(slot).and_then(|extras| extras.remembered.output.as_ref());
        output.map_or(0, |output| output.written_by(self.run_of(slot).0))
    }

    /// Decides what a verb writes: nothing when the chunk was written before. O(1).
    #[inline]
    pub(crate) fn to_write<'a>(
        &self,
        slot: u32,
        chunk: Option<Chunk<'a>>,
    ) -> Result<Option<&'a [u8]>, Refusal> {
        match chunk {
            Some(chunk) => self.check_chunk(slot, chunk),
            None => Ok(None),
        }
    }

    fn check_chunk<'a>(&self, slot: u32, chunk: Chunk<'a>) -> Result<Option<&'a [u8]>, Refusal> {
        if chunk.text.len() as i64 > self.own(Setting::OutputBytes) {
            return Err(Refusal::Limit("output-bytes"));
        }
        let written = self.written(slot);
        match chunk.number > written {
            true if chunk.number > written + 1 => Err(Refusal::Gap(written + 1)),
            new => Ok(new.then_some(chunk.text)),
        }
    }

    /// Writes a chunk of the current run.
    pub(crate) fn write_output(&mut self, slot: u32, text: &[u8]) -> Result<(), ApplyError> {
        let (token, attempt) = self.run_of(slot);
        let most = usize::try_from(self.own(Setting::OutputBytes)).unwrap_or(0);
        self.edit(slot, |job| {
            let output = job.extras_mut().remembered.output.get_or_insert_default();
            output.add(token, attempt, text, most);
            Ok(())
        })?;
        self.mark_changed(slot);
        Ok(())
    }

    /// How long the record of a job is kept when it ends: as long as its readers need for the end of
    /// its output, at least. O(1).
    pub(crate) fn retained(&self, extras: Option<&Extras>, retain: i64) -> i64 {
        let writes = |extras: &Extras| extras.remembered.output.is_some();
        match retain >= 0 && extras.is_some_and(writes) {
            true => retain.max(self.own(Setting::RetainOutput)),
            false => retain,
        }
    }

    /// How many chunks were written to the record in a slot in all. O(1).
    pub fn output_end(&self, slot: u32) -> u64 {
        let output = self.extras(slot).and_then(|extras| extras.remembered.output.as_ref());
        output.map_or(0, |output| output.end())
    }

    /// Up to `most` chunks of the job in a slot behind the first `since`. O(chunks).
    pub fn output_since(&self, slot: u32, since: u64, most: usize) -> Unread<'_> {
        let output = self.extras(slot).and_then(|extras| extras.remembered.output.as_ref());
        let none = Unread { next: 0, missed: 0, anew: since > 0, attempt: 0, chunks: Vec::new() };
        output.map_or(none, |output| output.since(since, most))
    }
}
