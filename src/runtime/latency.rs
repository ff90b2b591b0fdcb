//! Lateness that this server has seen since it was started: INFO and `JOB.METRICS` report it. It is
//! no state of any board.

use board::{Board, Histogram};

use crate::redis::cell::MainCell;

/// All lateness. See the module's comment.
#[derive(Default)]
pub struct Latency {
    /// How late time was, by [`board::Late`].
    pub late: [Histogram; 3],
    /// How long the jobs that blocked claims got had been ready.
    pub pickup: Histogram,
}

static SEEN: MainCell<Option<Latency>> = MainCell::new(None);

/// Calls `work` with the lateness so far.
pub fn with<R>(work: impl FnOnce(&mut Latency) -> R) -> R {
    SEEN.with(|seen| work(seen.get_or_insert_default()))
}

/// Takes over the lateness of a board since the last call.
pub fn saw(board: &mut Board) {
    if board.was_late() {
        with(|seen| board.take_lateness(&mut seen.late));
    }
}
