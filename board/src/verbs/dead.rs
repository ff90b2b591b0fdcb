//! Dead letters: a queue may name a dead queue, to which its jobs move in place of failing for good.
//!
//! There a job can be claimed again, with its payload, kind, message, attempts and history at hand:
//! to look at it, to mend it, or to send it back ([`Requeued`](super::Requeued) with `origin`). For
//! those who wait for it, a dead job counts as failed until it goes back.

use crate::board::Board;
use crate::effect::{is_name, ApplyError, Validate};
use crate::events::text;
use crate::job::history::HistoryKind;
use crate::job::{End, Options, Origin, State, U48};
use crate::scope::Scope;
use crate::structures::byte_string::ByteString;

written! {
    /// A queue has this dead queue from now on, or none.
    #[derive(Debug, Clone, PartialEq)]
    pub struct DeadQueueNamed<'a> {
        1 queue: &'a [u8],
        2 dead: Option<&'a [u8]>,
    }
}

impl<'a> DeadQueueNamed<'a> {
    /// Another queue, or none.
    pub fn new(queue: &'a [u8], dead: Option<&'a [u8]>) -> Self {
        DeadQueueNamed { queue, dead }
    }
}

impl Validate for DeadQueueNamed<'_> {
    fn is_valid(&self, _board: &Board) -> bool {
        is_name(self.queue) && self.dead.is_none_or(|dead| is_name(dead) && dead != self.queue)
    }
}

impl DeadQueueNamed<'_> {
    pub(crate) fn apply(&self, board: &mut Board, _now: i64) -> Result<(), ApplyError> {
        board.emit_setting("dead-queue", Scope::Queue(self.queue), text("value", self.dead));
        let number = board.queue(self.queue);
        let queue = board.queues.get_mut(number).ok_or(ApplyError)?;
        let before = queue.seldom.dead.is_none();
        queue.seldom.dead = self.dead.map(ByteString::from);
        board.hold_for(number, before, self.dead.is_none());
        Ok(())
    }
}

impl Board {
    /// The dead queue of a queue, if it names one.
    pub fn dead_queue(&self, queue: &[u8]) -> Option<&[u8]> {
        self.queues.get(self.queues.find(queue)?)?.seldom.dead.as_deref()
    }

    /// Whether a job has died and not gone back.
    pub(crate) fn is_dead(&self, slot: u32) -> bool {
        self.extras(slot).is_some_and(|extras| extras.origin.is_some())
    }

    /// The dead queue to which a job moves when it fails for good; `None` when it stays. A job moves
    /// once, and only where there is room.
    pub(crate) fn grave(&self, slot: u32, event: HistoryKind) -> Option<ByteString> {
        use HistoryKind::{Expired, Failed, Lapsed, Timeout};
        let job = self.store.jobs.get(slot)?;
        let dead = self.queue_of(job)?.seldom.dead.as_ref()?;
        let dies = matches!(event, Failed | Lapsed | Timeout | Expired) && !self.is_dead(slot);
        let has_room =
            dies && self.check_queue(dead).is_ok() && self.check_limits(&[slot], Some(dead)).is_ok();
        has_room.then(|| dead.clone())
    }

    /// Moves a job that is in no place to a dead queue.
    pub(crate) fn die(&mut self, slot: u32, dead: &[u8], now: i64) -> Result<(), ApplyError> {
        self.free_key(slot);
        let (queue, revision) = (ByteString::from(self.queue_name(self.job(slot)?)), self.revision() as i64);
        self.reclass(slot, Some(dead), None, Options::default())?;
        self.edit(slot, |job| {
            job.since = U48::new(now);
            let extras = job.extras_mut();
            let origin = Origin { queue, attempts: extras.attempt, at: now };
            // A failure that is sent again is answered.
            extras.begin_attempts_afresh(Some(End::Failed));
            extras.origin = Some(Box::new(origin));
            extras.closed = revision;
            extras.modified = now;
            Ok(())
        })?;
        if self.awaited(slot) {
            self.resolve_from(slot, 0)?;
        }
        // What its children have done is done.
        self.comes_in(slot, now, State::Ready, false, now)
    }
}
