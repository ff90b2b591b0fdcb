//! Requeueing: an operator makes an ended job ready again.

use std::collections::BTreeMap;

use crate::board::Board;
use crate::effect::{is_name, ApplyError, Validate};
use crate::env::Env;
use crate::error::Refusal;
use crate::events::{EventField, EventKind};
use crate::job::history::HistoryKind;
use crate::job::{Options, State, U48};

/// How to requeue a job.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Requeue<'a> {
    /// Another queue than its own.
    pub queue: Option<&'a [u8]>,
    /// Whether it forgets its steps, and does all its work again.
    pub fresh: bool,
}

written! {
    /// An ended job was requeued: attempts start again at 0, at the end of its line.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Requeued<'a> {
        1 slot: u32,
        2 queue: Option<&'a [u8]>,
        /// Whether it forgets its steps.
        3 fresh: bool,
    }
}

impl Validate for Requeued<'_> {
    fn is_valid(&self, _board: &Board) -> bool {
        self.queue.is_none_or(is_name)
    }
}

impl Requeued<'_> {
    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        if !board.job(self.slot)?.state.ended() {
            return Err(ApplyError);
        }
        board.leave(self.slot)?;
        if self.queue.is_some() {
            board.reclass(self.slot, self.queue, None, Options::default())?;
        }
        board.happened(self.slot, HistoryKind::Requeued, None, None)?;
        board.edit(self.slot, |job| {
            job.since = U48::new(now);
            let extras = job.extras_mut();
            extras.begin_attempts_afresh();
            if self.fresh {
                extras.forget_steps();
            }
            extras.advanced = None;
            extras.ended = 0;
            extras.drop_at = 0;
            extras.modified = now;
            // The last holder may no longer report on it.
            if let Some(last) = extras.last_claim.as_mut() {
                last.end = crate::job::End::Taken;
            }
            Ok(())
        })?;
        board.renew_ageing(self.slot)?;
        board.emit_of(EventKind::Retried, self.slot, |board, job| {
            (None, vec![board.queue_field(job), EventField::Flag("requeued", true)])
        });
        board.take_key(self.slot, now)?;
        board.make_ready(self.slot, now)?;
        board.begin_in_family(self.slot, true, now)
    }
}

impl Board {
    /// Decides the requeue of one job. O(log n).
    pub fn requeue<'a>(
        &self,
        env: &Env<'_>,
        slot: u32,
        requeue: &Requeue<'a>,
    ) -> Result<Requeued<'a>, Refusal> {
        let Requeue { queue, fresh } = *requeue;
        match self.job(slot).map_err(|_| Refusal::NoJob)?.state {
            State::Complete => return Err(Refusal::Ended(State::Complete)),
            state if !state.ended() => return Err(Refusal::NotEnded(state)),
            _ => {}
        }
        if let Some(unique) = self.unique(slot) {
            self.check_key(&unique.key, Some(slot), env.now)?;
            self.check_new_keys(usize::from(self.is_new_key(&unique.key)))?;
        }
        self.check_limits(&[slot], queue)?;
        Ok(Requeued { slot, queue, fresh })
    }

    /// Refuses to requeue several jobs, each of which could be requeued alone, when two of them
    /// have one key or they would exceed a limit together. O(n log n).
    pub fn check_requeues(&self, slots: &[u32], queue: Option<&[u8]>) -> Result<(), Refusal> {
        let mut first: BTreeMap<&[u8], u32> = BTreeMap::new();
        for slot in slots {
            let Some(unique) = self.unique(*slot) else { continue };
            if let Some(other) = first.insert(&unique.key, *slot) {
                let id = |slot| self.job(slot).map(|job| job.id().owned()).map_err(|_| Refusal::NoJob);
                let holder = Refusal::exists(&id(other)?);
                return Err(id(*slot)?.borrowed().text(|id| holder.of(id)));
            }
        }
        self.check_new_keys(first.keys().filter(|key| self.is_new_key(key)).count())?;
        self.check_limits(slots, queue)
    }

    /// The order of posting of a job.
    pub fn seq(&self, slot: u32) -> i64 {
        self.store.jobs.get(slot).map_or(0, |job| job.seq.get())
    }
}
