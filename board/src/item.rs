//! Items: what snapshots consist of. Each is written and read in the room of its subject.

use crate::board::Board;
use crate::format::Written;

/// These bytes are no valid snapshot; the text says why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotError(pub &'static str);

pub(crate) fn damaged<T>(what: &'static str) -> Result<T, SnapshotError> {
    Err(SnapshotError(what))
}

pub(crate) fn need(holds: bool, what: &'static str) -> Result<(), SnapshotError> {
    if holds {
        Ok(())
    } else {
        damaged(what)
    }
}

/// A sort of item. Items follow from the state alone, so equal boards give equal items.
pub(crate) trait Item<'a>: Written<'a> {
    /// Calls `put` with all items of this sort on a board, in their order.
    fn each(board: &'a Board, put: impl FnMut(&Self));

    /// Adds it to a board that has all items before it. Its bytes are not trusted.
    fn load(self, board: &mut Board, loading: &mut Loading) -> Result<(), SnapshotError>;
}

/// What is known of a snapshot while it is being loaded.
#[derive(Default)]
pub(crate) struct Loading {
    /// Jobs have been loaded into slots below this one.
    pub next_slot: u32,
    /// Queues with groups, held until all jobs are loaded.
    pub with_groups: Vec<u32>,
}
