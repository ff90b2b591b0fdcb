//! A worker's hold on a job, while it lasts and when it has ended.

use super::NEVER;
use crate::structures::byte_string::ByteString;

/// Whether a claim ends with a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Session {
    /// It does not.
    #[default]
    None = 0,
    /// It does.
    Carried = 1,
    /// It did, and the connection has closed: its worker may still come back.
    Lost = 2,
}

numbered!(Session, "session": None, Carried, Lost);

/// One worker's hold on one job.
pub struct Claim {
    /// The job's slot.
    pub slot: u32,
    /// Number of the worker's name.
    pub worker: u32,
    /// The fencing token.
    pub token: u64,
    /// How many times the job has been claimed, this time included.
    pub attempt: u32,
    /// Somebody asked to cancel the job.
    pub cancel: bool,
    /// Its begin stands in the job's history.
    pub told: bool,
    /// Whether it ends with a connection.
    pub session: Session,
    /// When the run began.
    pub claimed: i64,
    /// How long a heartbeat holds, ms.
    pub lease: i64,
    /// When the lease ends.
    pub lease_end: i64,
    /// When the run times out, or [`NEVER`].
    pub run_end: i64,
    /// So many ms longer its holder keeps the job when the lease has ended.
    pub grace: i64,
    /// When it ends because somebody asked to cancel the job, or [`NEVER`].
    pub cancel_end: i64,
}

impl Claim {
    /// By when its worker has to speak, as it is told.
    pub fn deadline(&self) -> i64 {
        self.lease_end.min(self.run_end).min(self.cancel_end)
    }

    /// When the lease has ended and the grace after it has passed.
    pub fn lapses_at(&self) -> i64 {
        let grace = if self.session == Session::Lost { 0 } else { self.grace };
        self.lease_end.saturating_add(grace).clamp(0, NEVER)
    }

    /// When it ends without a word from its worker.
    pub fn ends_at(&self) -> i64 {
        self.lapses_at().min(self.run_end).min(self.cancel_end)
    }
}

/// How a claim ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum End {
    /// The lease ended; its holder may still come late.
    Lapsed = 0,
    /// The run took too long.
    TimedOut = 1,
    /// The worker failed it.
    Failed = 2,
    /// The worker gave it back.
    Abandoned = 3,
    /// The worker trashed it.
    Trashed = 4,
    /// The worker completed it.
    Consumed = 5,
    /// An operator took it away.
    Taken = 6,
    /// The worker sent it on to another queue.
    Advanced = 7,
}

numbered!(End, "end": Lapsed, TimedOut, Failed, Abandoned, Trashed, Consumed, Taken, Advanced);

written! {
    /// The last claim of a job that nobody holds.
    #[derive(Debug, Clone, PartialEq)]
    pub struct LastClaim {
        /// Name of the worker.
        1 pub worker: ByteString,
        /// Token of the claim.
        2 pub token: u64,
        /// How it ended.
        3 pub end: End,
        /// When it began.
        4 pub claimed: i64,
        /// The lease that it had, ms.
        5 pub lease: i64,
        /// When the run would have timed out.
        6 pub run_end: i64,
    }
}
