//! What this server has seen of lateness since it was started: it is told in INFO and by
//! `JOB.METRICS`, and is no state of any board.

use board::{Board, Histogram};

use crate::redis::cell::MainCell;

/// See the module's comment.
#[derive(Default)]
pub struct Latency {
    /// How late time was, as in [`board::Late`].
    pub late: [Histogram; 3],
    /// How long jobs had been ready that blocked claims got.
    pub pickup: Histogram,
}

static SEEN: MainCell<Option<Latency>> = MainCell::new(None);

/// Works on what has been seen.
pub fn with<R>(work: impl FnOnce(&mut Latency) -> R) -> R {
    SEEN.with(|seen| work(seen.get_or_insert_default()))
}

/// Takes over how late time was on a board since the last time.
pub fn saw(board: &mut Board) {
    if board.was_late() {
        with(|seen| board.take_lateness(&mut seen.late));
    }
}
