//! Deleting: an operator removes a record in any state.

use crate::board::Board;
use crate::effect::{is_name, ApplyError, Validate};
use crate::job::id::{read_made, Id};
use crate::job::{End, State};
use crate::places::happened::Happened;

written! {
    /// A record was removed, and no tombstone is kept.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Deleted {
        /// The job.
        1 pub slot: u32,
    }
}

impl Validate for Deleted {}

impl Deleted {
    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        if let Some(claim) = board.leave(self.slot)? {
            board.happened(self.slot, &Happened::Lost(&claim, End::Taken, "deleted"))?;
        }
        board.happened(self.slot, &Happened::Deleted)?;
        board.end_waiting(self.slot, now)?;
        board.end_child_wait(self.slot, now)?;
        board.detach_all(self.slot, now)?;
        board.let_go(self.slot, now)?;
        if board.job(self.slot)?.state != State::Complete {
            board.leave_parent(self.slot, now)?;
        }
        board.part(self.slot);
        board.free_key(self.slot);
        let id = board.id(self.slot).ok_or(ApplyError)?.owned();
        board.drop_record(self.slot)?;
        id.borrowed().text(|id| board.forget(id));
        board.remember_gone(id, now);
        Ok(())
    }
}

written! {
    /// The tombstone of a job was removed.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Forgotten<'a> {
        /// Its id.
        1 pub id: &'a [u8],
    }
}

impl Validate for Forgotten<'_> {
    fn is_valid(&self, _board: &Board) -> bool {
        is_name(self.id)
    }
}

impl Forgotten<'_> {
    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        board.forget(self.id);
        let id = match read_made(self.id) {
            Some((made, _)) => Id::Made(made),
            None => Id::Named(self.id),
        };
        board.remember_gone(id.owned(), now);
        Ok(())
    }
}
