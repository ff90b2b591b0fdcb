//! Deleting: a record goes, whatever its state.

use serde::{Deserialize, Serialize};

use crate::board::Board;
use crate::effect::{Sound, Unfit};

/// A record is gone, and nothing remembers it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Deleted {
    /// The job.
    pub slot: u32,
}

impl Sound for Deleted {}

impl Deleted {
    pub(crate) fn apply(&self, board: &mut Board, _now: i64) -> Result<(), Unfit> {
        board.leave(self.slot)?;
        let job = board.drop_record(self.slot)?;
        board.forget_tombstone(job.id());
        Ok(())
    }
}
