//! What a copy of a board knows by itself: in no snapshot, no digest, and nothing that an effect
//! does follows from it.

use std::collections::BTreeSet;

use crate::events::Events;
use crate::places::next_event::NextEvent;
use crate::statistics::pace::PaceCounter;
use crate::structures::histogram::Histogram;
use crate::workers::sessions::Sessions;

/// Of the board.
#[derive(Default)]
pub(crate) struct Local {
    /// The board or a queue has a limit of jobs or bytes.
    pub bounded: bool,
    /// The last token that came from elsewhere, with a load or a batch.
    pub foreign: u64,
    pub last_class: u32,
    /// The queues that have ready jobs.
    pub busy: Vec<u32>,
    /// Those that have got one since [`Board::woken`](crate::Board::woken).
    pub woken: Vec<u32>,
    /// When the last effect happened.
    pub moment: i64,
    /// Queues that somebody waits for and that lack permits, by when these are there.
    pub waiting_for_permits: BTreeSet<(i64, u32)>,
    /// No time event before this: a lower bound, exact after [`Board::reckon`](crate::Board::reckon).
    pub next_event: NextEvent,
    /// Somebody other than its worker has ended a claim since [`Board::taken`](crate::Board::taken).
    pub taken: bool,
    /// Which connection carries which session claim.
    pub sessions: Sessions,
    /// A worker is quiet no longer since [`Board::roused`](crate::Board::roused).
    pub roused: bool,
    /// Events to be published.
    pub events: Events,
    /// A record of an ended job has come since [`Board::overfull`](crate::Board::overfull) looked.
    pub grown: bool,
    /// How late time was since [`Board::take_lateness`](crate::Board::pour_lateness), as in
    /// [`Late`](crate::Late).
    pub lateness: [Histogram; 3],
}

/// Of a queue.
#[derive(Default)]
pub(crate) struct QueueLocal {
    /// Its place in [`Local::busy`].
    pub busy_at: Option<u32>,
    /// It is in [`Local::woken`].
    pub woken: bool,
    /// How fast its jobs come and end.
    pub pace: PaceCounter,
}

/// Of a worker.
#[derive(Default)]
pub(crate) struct WorkerLocal {
    /// When it last spoke.
    pub seen: i64,
}
