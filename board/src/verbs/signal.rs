//! Signalling: somebody outside tells a job what it waits for, or will wait for.

use crate::board::Board;
use crate::effect::{is_name, ApplyError, Validate};
use crate::error::Refusal;
use crate::places::happened::Happened;
use crate::relations::dependencies::Outcome;

/// A signal for jobs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Signal<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// What it says.
    pub value: &'a [u8],
    /// Who sends it.
    pub sender: Option<&'a [u8]>,
}

impl Signal<'_> {
    /// How many bytes it writes into each job.
    pub fn weight(&self) -> usize {
        self.name.len() + self.value.len() + self.sender.map_or(0, <[u8]>::len)
    }
}

/// What a signal does to one job.
#[derive(Debug, Clone, PartialEq)]
pub enum SignalAnswer<'a> {
    /// This effect stores it and unblocks the job.
    Wakes(Signalled<'a>),
    /// This effect stores it.
    Kept(Signalled<'a>),
    /// One of its name arrived before: that one counts.
    Already,
    /// The job has ended.
    Ended,
}

written! {
    /// A signal arrived.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Signalled<'a> {
        1 slot: u32,
        2 name: &'a [u8],
        3 value: &'a [u8],
        4 sender: Option<&'a [u8]>,
    }
}

impl Validate for Signalled<'_> {
    fn is_valid(&self, _board: &Board) -> bool {
        is_name(self.name) && self.sender.is_none_or(is_name)
    }
}

impl Signalled<'_> {
    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        let slot = self.slot;
        if board.job(slot)?.state.ended() || board.signal(slot, self.name).is_some() {
            return Err(ApplyError);
        }
        board.edit(slot, |job| {
            let extras = job.extras_mut();
            extras.modified = now;
            extras.remembered.signals.set(self.name, self.value, self.sender, now);
            Ok(())
        })?;
        board.happened(slot, &Happened::Signalled(self.name, self.sender))?;
        board.touch(slot)?;
        board.signal_came(slot, now)
    }
}

impl Board {
    /// What a signal of a job says. O(log n).
    pub fn signal(&self, slot: u32, name: &[u8]) -> Option<&[u8]> {
        Some(&self.extras(slot)?.remembered.signals.get(name)?.value)
    }

    /// Decides a signal for one job. The first of a name counts, for as long as the job lives.
    /// O(log n), and O(m log n) for m names that the job waits for.
    pub fn send_signal<'a>(&self, slot: u32, signal: &Signal<'a>) -> Result<SignalAnswer<'a>, Refusal> {
        if self.job(slot).map_err(|_| Refusal::NoJob)?.state.ended() {
            return Ok(SignalAnswer::Ended);
        }
        if self.signal(slot, signal.name).is_some() {
            return Ok(SignalAnswer::Already);
        }
        self.check_memo(slot, None, signal.weight())?;
        let Signal { name, value, sender } = *signal;
        let (mut missing, mut awaited) = (0, false);
        for other in self.missing_signals(slot) {
            missing += 1;
            awaited |= **other == *name;
        }
        let any = self.waiting(slot).is_some_and(|waiting| waiting.gate.any);
        let children = self.child_wait(slot);
        let met = children.is_none_or(|wait| self.outcome_of_children(slot, wait.on_failure) == Outcome::Met);
        let wakes = awaited && (any || missing == 1) && self.edges(slot).is_empty() && met;
        let signalled = Signalled { slot, name, value, sender };
        Ok(if wakes { SignalAnswer::Wakes(signalled) } else { SignalAnswer::Kept(signalled) })
    }
}
