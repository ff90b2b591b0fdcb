//! Steps: a worker stores what a part of its work came to, so that no later run does it again.

use crate::board::Board;
use crate::effect::{is_lease, is_name, ApplyError, Validate};
use crate::env::Env;
use crate::error::Refusal;
use crate::job::NEVER;
use crate::settings::Setting;
use crate::verbs::heartbeat::Beaten;
use crate::verbs::holder::{Speaker, Standing};
use crate::verbs::output::Chunk;
use crate::verbs::protocol::{KeepVerb, Kept};

/// What a step came to.
#[derive(Debug, Clone, Default)]
pub struct Step<'a> {
    /// The name of the step.
    pub name: &'a [u8],
    /// What it came to.
    pub value: &'a [u8],
    /// The lease from now on, ms; without it the claim's own.
    pub lease: Option<i64>,
    /// Whether the value takes the place of one that is stored.
    pub replace: bool,
    /// Output with the step.
    pub output: Option<Chunk<'a>>,
}

written! {
    /// A worker stored what a step came to.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Stepped<'a> {
        1 slot: u32,
        2 name: &'a [u8],
        3 value: &'a [u8],
        /// The lease of its claim, from now, ms; 0 when the worker is late and does not get the job
        /// back.
        4 lease: i64,
        /// A chunk of output.
        5 output: Option<&'a [u8]>,
    }
}

impl Validate for Stepped<'_> {
    fn is_valid(&self, _board: &Board) -> bool {
        is_name(self.name) && (self.lease == 0 || is_lease(self.lease))
    }
}

impl Stepped<'_> {
    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        if self.lease > 0 {
            board.extend(self.slot, self.lease, now.saturating_add(self.lease).clamp(0, NEVER), now)?;
        } else if board.job(self.slot)?.state.ended() {
            return Err(ApplyError);
        } else {
            board.touch(self.slot)?;
        }
        board.edit(self.slot, |job| {
            let extras = job.extras_mut();
            extras.modified = now;
            extras.remembered.steps.set(self.name, self.value, None, now);
            Ok(())
        })?;
        match self.output {
            Some(output) => board.write_output(self.slot, output),
            None => Ok(()),
        }
    }
}

impl<'a> KeepVerb<'a> for Step<'a> {
    /// The first value wins, whoever sends the next; a late worker's step is stored also when it does
    /// not get its job back, since what it did must not be done again. O(log n).
    fn decide(&self, board: &Board, env: &Env<'_>, speaker: &Speaker<'_>) -> Result<Kept<'a>, Refusal> {
        let (slot, late) = match board.standing(env, speaker, None)? {
            Standing::Holds { slot, .. } => (slot, false),
            Standing::Late { slot, .. } => (slot, true),
            Standing::Again(state) => return Err(Refusal::NotClaimed(state)),
        };
        let holds = !late || board.check_concurrency(slot, false, env.now).is_ok();
        let old = board.step_value(slot, self.name).map(<[u8]>::len);
        let stores = self.replace || old.is_none();
        if stores {
            let new = old.map_or(self.name.len(), |_| 0) + self.value.len();
            board.check_memo(slot, old, new)?;
        }
        let output = board.to_write(slot, self.output)?;
        let lease = match holds {
            true => self.lease.or_else(|| board.lease_of(slot)).ok_or(Refusal::NoJob)?,
            false => 0,
        };
        let Step { name, value, .. } = *self;
        Ok(Kept {
            slot,
            revived: (late && holds).then(|| board.revive(env, slot)),
            stepped: stores.then_some(Stepped { slot, name, value, lease, output }),
            beaten: (holds && !stores).then(|| Beaten::of(slot, lease).writing(output)),
        })
    }
}

impl Board {
    /// What a step of a job came to. O(log n).
    pub fn step_value(&self, slot: u32, name: &[u8]) -> Option<&[u8]> {
        Some(&self.extras(slot)?.remembered.steps.get(name)?.value)
    }

    /// Refuses this many bytes, new or in place of `old` ones, when the job would remember more than
    /// it may.
    pub(super) fn check_memo(&self, slot: u32, old: Option<usize>, new: usize) -> Result<(), Refusal> {
        let (count_before, bytes_before) =
            self.extras(slot).map_or((0, 0), |extras| extras.remembered.size());
        let count = count_before + usize::from(old.is_none());
        let bytes = bytes_before + new - old.unwrap_or(0);
        let over = |setting, n: usize, before: usize| n > before && n as i64 > self.own(setting);
        match (over(Setting::MaxSteps, count, count_before), over(Setting::MaxStepBytes, bytes, bytes_before))
        {
            (true, _) => Err(Refusal::Limit("max-steps")),
            (_, true) => Err(Refusal::Limit("max-step-bytes")),
            _ => Ok(()),
        }
    }
}
