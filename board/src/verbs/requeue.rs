//! Requeueing: an operator makes an ended job ready again.

use crate::board::Board;
use crate::effect::{is_name, ApplyError, Validate};
use crate::env::Env;
use crate::error::Refusal;
use crate::job::{Options, State, U48};
use crate::places::happened::Happened;
use crate::structures::byte_string::ByteString;

/// Where a requeued job goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum To<'a> {
    /// Its queue.
    #[default]
    Same,
    /// This queue.
    Queue(&'a [u8]),
    /// The queue in which it was before it died; its queue when it has not died. Also a dead job that
    /// has not ended may go.
    Origin,
}

/// How to requeue a job.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Requeue<'a> {
    /// Where it goes.
    pub to: To<'a>,
    /// Whether it forgets its steps, and does all its work again.
    pub fresh: bool,
    /// Another payload.
    pub payload: Option<&'a [u8]>,
}

written! {
    /// An ended job was requeued: attempts start again at 0, at the end of its line.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Requeued<'a> {
        1 slot: u32,
        2 queue: Option<&'a [u8]>,
        /// Whether it forgets its steps.
        3 fresh: bool,
        /// Whether it went back to the queue in which it was before it died.
        4 origin: bool,
        /// Another payload.
        5 payload: Option<&'a [u8]>,
    }
}

impl Validate for Requeued<'_> {
    fn is_valid(&self, _board: &Board) -> bool {
        self.queue.is_none_or(is_name)
    }
}

impl Requeued<'_> {
    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        let to = if self.origin { To::Origin } else { self.queue.map_or(To::Same, To::Queue) };
        let state = board.job(self.slot)?.state;
        if !board.can_requeue(self.slot, to) {
            return Err(ApplyError);
        }
        let stays_dead = board.stays_dead(self.slot, to);
        board.leave(self.slot)?;
        let before = board.queue_number(board.job(self.slot)?);
        let target = board.target(self.slot, to).map(ByteString::from);
        if let Some(queue) = &target {
            board.reclass(self.slot, Some(queue), None, Options::default())?;
        }
        let moved = board.queue_number(board.job(self.slot)?) != before;
        board.edit(self.slot, |job| {
            if let Some(payload) = self.payload {
                job.set_payload(payload);
            }
            job.since = U48::new(now);
            let extras = job.extras_mut();
            extras.begin_attempts_afresh(None);
            if self.fresh {
                extras.forget_steps();
            }
            extras.origin.take_if(|_| !stays_dead);
            extras.ended = 0;
            extras.drop_at = 0;
            extras.modified = now;
            Ok(())
        })?;
        board.happened(self.slot, &Happened::Requeued(target.as_deref().filter(|_| moved)))?;
        if !stays_dead {
            board.take_key(self.slot, now)?;
        }
        board.comes_in(self.slot, now, state, !stays_dead, now)
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
        let Requeue { to, fresh, payload } = *requeue;
        match self.job(slot).map_err(|_| Refusal::NoJob)?.state {
            State::Complete => return Err(Refusal::Ended(State::Complete)),
            state if !self.can_requeue(slot, to) => return Err(Refusal::NotEnded(state)),
            _ => {}
        }
        if !self.stays_dead(slot, to) {
            self.check_own_key(slot, env.now)?;
        }
        let target = self.target(slot, to);
        target.map_or(Ok(()), |queue| self.check_queue(queue))?;
        self.check_return(slot, target, payload)?;
        let queue = if let To::Queue(queue) = to { Some(queue) } else { None };
        Ok(Requeued { slot, queue, fresh, origin: to == To::Origin, payload })
    }

    /// Whether a job is in a state in which it can be requeued there.
    pub(crate) fn can_requeue(&self, slot: u32, to: To<'_>) -> bool {
        let back = to == To::Origin && self.is_dead(slot);
        self.store.jobs.get(slot).is_some_and(|job| match job.state {
            State::Complete | State::Claimed => false,
            state => state.ended() || back,
        })
    }

    /// Whether a requeued job remains in the dead queue.
    pub(crate) fn stays_dead(&self, slot: u32, to: To<'_>) -> bool {
        to == To::Same && self.is_dead(slot)
    }

    /// The other queue to which a requeued job goes.
    pub(crate) fn target<'b>(&'b self, slot: u32, to: To<'b>) -> Option<&'b [u8]> {
        match to {
            To::Same => None,
            To::Queue(queue) => Some(queue),
            To::Origin => Some(&self.extras(slot)?.origin.as_ref()?.queue),
        }
    }

    /// Refuses to requeue several jobs, each of which could be requeued alone, when two of them
    /// have one key or they would exceed a limit together. O(n log n).
    pub fn check_requeues(&self, slots: &[u32], to: To<'_>) -> Result<(), Refusal> {
        self.check_own_keys(slots.iter().copied().filter(|slot| !self.stays_dead(*slot, to)))?;
        self.check_queues(&slots.iter().filter_map(|slot| self.target(*slot, to)).collect())?;
        self.check_moves(slots, |slot| self.target(slot, to))
    }

    /// The order of posting of a job.
    pub fn seq(&self, slot: u32) -> i64 {
        self.store.jobs.get(slot).map_or(0, |job| job.seq.get())
    }
}
