//! What snapshots are made of: items, each written and read where its subject is.

use crate::board::Board;
use crate::format::Written;

/// Bytes that are no snapshot of ours: what is wrong with them.
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

/// A sort of items. They follow from the state alone, so equal boards give equal items.
pub(crate) trait Item<'a>: Written<'a> {
    /// Gives all of a board, in their order.
    fn each(board: &'a Board, put: impl FnMut(&Self));

    /// Puts it into a board that has all items before it. It may say anything.
    fn load(self, board: &mut Board, loading: &mut Loading) -> Result<(), SnapshotError>;
}

/// What is known of a snapshot while it is read.
#[derive(Default)]
pub(crate) struct Loading {
    /// No job has been in this slot or a later one.
    pub next_slot: u32,
    /// Queues with groups, held until all jobs are there.
    pub with_groups: Vec<u32>,
}
