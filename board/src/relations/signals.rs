//! Waiting for signals: a job leaves `blocked` when what it waits for has arrived from outside, or when the
//! time of its wait is over.
//!
//! Signals that have arrived stay with the job, the first of each name: so one that comes before the
//! wait is not lost, and a wait in a later run is met at once. That the time of a run's wait was over
//! is remembered under the name of the wait, or the next run would wait again.

use crate::board::Board;
use crate::effect::ApplyError;
use crate::job::gate::{named_first, Gate, OnTimeout, Waiting};
use crate::job::history::HistoryKind;
use crate::job::State;
use crate::places::happened::Happened;
use crate::settings::Rules;
use crate::structures::byte_string::ByteString;

impl Board {
    /// Whether a job waits: for others, for signals or for its children. O(1).
    pub(crate) fn waits(&self, slot: u32) -> bool {
        self.extras(slot).is_some_and(|extras| extras.waits())
    }

    /// What a job waits for from outside. O(1).
    pub(crate) fn waiting(&self, slot: u32) -> Option<&Waiting> {
        self.extras(slot)?.remembered.waiting.as_deref()
    }

    /// Whether what must arrive has arrived. O(n log m) for n names and m signals.
    pub(crate) fn opens(&self, slot: u32, gate: &Gate) -> bool {
        self.extras(slot).is_some_and(|extras| extras.remembered.opens(gate))
    }

    /// Begins the wait of a job that is in no place: the caller must give it one. `step` is the name
    /// of a run's wait.
    pub(crate) fn begin_waiting(
        &mut self,
        slot: u32,
        gate: &Gate,
        step: &[u8],
        now: i64,
    ) -> Result<(), ApplyError> {
        let waiting = Waiting { gate: gate.clone(), from: now, step: step.into() };
        self.happened(slot, &Happened::Awaiting(&waiting))?;
        self.edit(slot, |job| {
            job.extras_mut().remembered.waiting = Some(Box::new(waiting));
            Ok(())
        })
    }

    /// A job that is in no place waits for what its gate names, unless that has arrived.
    pub(crate) fn arm(&mut self, slot: u32, now: i64) -> Result<(), ApplyError> {
        let Some(gate) = self.extras(slot).and_then(|extras| extras.remembered.gate.clone()) else {
            return Ok(());
        };
        match self.opens(slot, &gate) {
            true => Ok(()),
            false => self.begin_waiting(slot, &gate, b"", now),
        }
    }

    /// Ends the wait of a job that is in no place. Returns what it waited for.
    pub(crate) fn end_waiting(&mut self, slot: u32, now: i64) -> Result<Option<Box<Waiting>>, ApplyError> {
        if self.waiting(slot).is_none() {
            return Ok(None);
        }
        let mut waited = None;
        self.edit(slot, |job| {
            let extras = job.extras_mut();
            extras.modified = now;
            waited = extras.remembered.there().and_then(|remembered| remembered.waiting.take());
            Ok(())
        })?;
        if let Some(waited) = &waited {
            self.count_await(slot, waited.from, now);
        }
        Ok(waited)
    }

    /// Ends the wait of a job that is in no place although signals are missing: a later run does not
    /// wait for them again.
    pub(crate) fn give_up_waiting(
        &mut self,
        slot: u32,
        now: i64,
    ) -> Result<Option<Box<Waiting>>, ApplyError> {
        let waited = self.end_waiting(slot, now)?;
        if let Some(waited) = waited.as_ref().filter(|waited| !waited.step.is_empty()) {
            self.edit(slot, |job| {
                job.extras_mut().remembered.timeouts.set(&waited.step, b"", None, now);
                Ok(())
            })?;
        }
        Ok(waited)
    }

    /// A signal has arrived: unblocks the job if it waits for nothing else.
    pub(crate) fn signal_came(&mut self, slot: u32, now: i64) -> Result<(), ApplyError> {
        let met = |waiting: &Waiting| self.opens(slot, &waiting.gate);
        if !self.waiting(slot).is_some_and(met) {
            return Ok(());
        }
        let due = self.job(slot)?.at.get();
        self.leave(slot)?;
        self.end_waiting(slot, now)?;
        self.make_due(slot, due, now)
    }

    /// The time of a job's wait is over.
    pub(crate) fn wait_times_out(&mut self, slot: u32, now: i64, rules: &Rules) -> Result<(), ApplyError> {
        let missing: Vec<ByteString> = self.missing_signals(slot).cloned().collect();
        let text = named_first(missing.iter().map(|name| &**name));
        let on_timeout = self.waiting(slot).ok_or(ApplyError)?.gate.on_timeout;
        let due = self.job(slot)?.at.get();
        match on_timeout {
            OnTimeout::Run => {
                self.leave(slot)?;
                self.give_up_waiting(slot, now)?;
                self.happened(slot, &Happened::AwaitTimeout(&missing))?;
                self.make_due(slot, due, now)
            }
            OnTimeout::Fail => self.give_up(slot, State::Failed, HistoryKind::AwaitTimeout, &text, rules),
            OnTimeout::Cancel => {
                let reason = [b"no signal ", &text[..]].concat();
                self.happened(slot, &Happened::AwaitTimeout(&missing))?;
                self.give_up(slot, State::Cancelled, HistoryKind::AwaitTimeout, &reason, rules)
            }
        }
    }

    /// The signals that a job waits for and that have not arrived.
    pub(crate) fn missing_signals(&self, slot: u32) -> impl Iterator<Item = &ByteString> {
        let remembered = self.extras(slot).map(|extras| &*extras.remembered);
        let waiting = remembered.and_then(|remembered| remembered.waiting.as_ref());
        let names = waiting.map_or(&[][..], |waiting| &waiting.gate.names);
        names.iter().filter(move |name| remembered.is_none_or(|all| all.signals.get(name).is_none()))
    }
}
