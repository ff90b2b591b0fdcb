//! What one copy of a board knows by itself: it is in no snapshot and no digest, and no effect
//! depends on it.

use crate::dispatch::best_queue::BestQueue;
use crate::dispatch::permit_waits::PermitWaits;
use crate::events::Events;
use crate::places::next_event::NextEvent;
use crate::quotas::room::Freed;
use crate::relations::bounds::Looks;
use crate::statistics::pace::PaceCounter;
use crate::structures::allotted::allotted;
use crate::structures::histogram::Histogram;
use crate::structures::lazy::Lazy;
use crate::workers::sessions::Sessions;

/// Local knowledge of the board.
#[derive(Default)]
pub(crate) struct Local {
    /// Whether the board or a queue limits its jobs or bytes.
    pub bounded: bool,
    /// The last token that came from another server, with a load or a batch.
    pub foreign: u64,
    pub last_class: u32,
    /// The queues that have ready jobs.
    pub busy: Vec<u32>,
    /// The jobs that these queues would give next, while there are many.
    pub best_queue: BestQueue,
    /// The queues that have got ready jobs since [`Board::woken`](crate::Board::woken).
    pub woken: Vec<u32>,
    /// Whether the next queue to open is among those that wait for permits, and stands for all: for
    /// clients that wait for every queue.
    pub waits_for_next: bool,
    /// Whether no client waits for work, so that nobody asks for what would be in `woken`.
    pub unattended: bool,
    /// The queues that have no ready job any more, since [`Board::emptied`](crate::Board::emptied),
    /// while a client lingered.
    pub emptied: Vec<Vec<u8>>,
    /// When the last effect was applied, Unix ms.
    pub moment: i64,
    /// Queues that lack permits and for which clients wait.
    pub waiting_for_permits: Lazy<PermitWaits>,
    /// When a client that waits for a batch has lingered long enough.
    pub linger_end: NextEvent,
    /// Whether that time has come since [`Board::woken`](crate::Board::woken).
    pub lingered: bool,
    /// No time event is due before this: a lower bound, exact after
    /// [`Board::reckon`](crate::Board::reckon).
    pub next_event: NextEvent,
    /// Whether anyone but its worker has ended a claim since [`Board::taken`](crate::Board::taken).
    pub taken: bool,
    /// Which connection carries which session claim.
    pub sessions: Lazy<Sessions>,
    /// Whether a worker has stopped being quiet since [`Board::roused`](crate::Board::roused).
    pub roused: bool,
    /// How many edges decisions have looked at.
    pub looks: Looks,
    /// Events to publish.
    pub events: Events,
    /// Whether a job has ended with a record since [`Board::overfull`](crate::Board::overfull)
    /// looked.
    pub grown: bool,
    /// Where room has become free for posts, while any wait for it.
    pub freed: Option<Box<Freed>>,
    /// How late time was since [`Board::take_lateness`](crate::Board::take_lateness), by
    /// [`Late`](crate::Late).
    pub lateness: Option<Box<[Histogram; 3]>>,
}

impl Local {
    /// Bytes on the heap, without those of few boards.
    pub fn bytes(&self) -> usize {
        let queues = allotted(self.busy.capacity() * 4) + allotted(self.woken.capacity() * 4);
        let late = self.lateness.iter().map(|late| allotted(std::mem::size_of_val(&**late)));
        queues
            + self.best_queue.bytes()
            + late.sum::<usize>()
            + self.events.bytes()
            + self.sessions.allocated()
            + self.waiting_for_permits.allocated()
    }
}

/// Local knowledge of a queue.
#[derive(Default)]
pub(crate) struct QueueLocal {
    /// Its position in [`Local::busy`].
    pub busy_at: Option<u32>,
    /// Whether it is in [`Local::woken`].
    pub woken: bool,
    /// How fast its jobs are posted and end.
    pub pace: PaceCounter,
}

/// Local knowledge of a worker.
#[derive(Default)]
pub(crate) struct WorkerLocal {
    /// When it last spoke, Unix ms.
    pub seen: i64,
}
