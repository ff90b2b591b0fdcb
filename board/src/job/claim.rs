//! A worker's hold on a job, while it lasts and after it has ended.

use super::NEVER;
use crate::structures::byte_string::ByteString;

/// Whether a claim ends when a connection closes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Session {
    /// It does not.
    #[default]
    None = 0,
    /// It does, and the connection is open.
    Carried = 1,
    /// It does, and the connection has closed: the worker may still come back.
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
    /// Whether the job's history has its begin.
    pub in_history: bool,
    /// Whether the lease has ended and the grace after it has begun.
    pub in_grace: bool,
    /// Whether it ends when a connection closes.
    pub session: Session,
    /// When the run began, Unix ms.
    pub claimed: i64,
    /// How long a heartbeat extends the claim, ms.
    pub lease: i64,
    /// When the lease ends, Unix ms.
    pub lease_end: i64,
    /// When the run times out, Unix ms, or [`NEVER`].
    pub run_end: i64,
    /// How long its holder keeps the job after the lease has ended, ms.
    pub grace: i64,
    /// When it ends because somebody asked to cancel the job, Unix ms, or [`NEVER`].
    pub cancel_end: i64,
}

impl Claim {
    /// By when its worker must send a heartbeat, as replies say it, Unix ms.
    pub fn deadline(&self) -> i64 {
        self.lease_end.min(self.run_end).min(self.cancel_end)
    }

    /// When its worker last began its lease, by the claim or a heartbeat, Unix ms.
    pub fn beaten(&self) -> i64 {
        self.claimed.max(self.lease_end - self.lease)
    }

    /// When the lease has ended and the grace after it has passed, Unix ms.
    pub fn lapses_at(&self) -> i64 {
        let grace = if self.session == Session::Lost { 0 } else { self.grace };
        self.lease_end.saturating_add(grace).clamp(0, NEVER)
    }

    /// When time next does something with it: its grace begins, or it ends. Unix ms.
    pub fn next_at(&self) -> i64 {
        let lease = if self.in_grace { self.lapses_at() } else { self.lease_end };
        lease.min(self.run_end).min(self.cancel_end)
    }

    /// When it ends if its worker stays silent, Unix ms.
    pub fn ends_at(&self) -> i64 {
        self.lapses_at().min(self.run_end).min(self.cancel_end)
    }
}

/// How a claim ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum End {
    /// The lease ended; its holder may still report late.
    Lapsed = 0,
    /// The run took too long.
    TimedOut = 1,
    /// The worker failed it.
    Failed = 2,
    /// The worker abandoned it.
    Abandoned = 3,
    /// The worker trashed it.
    Trashed = 4,
    /// The worker completed it.
    Consumed = 5,
    /// An operator took it away.
    Taken = 6,
    /// The worker advanced it to another queue.
    Advanced = 7,
    /// The worker gave it up until signals arrive.
    Awaiting = 8,
}

numbered!(End, "end": Lapsed, TimedOut, Failed, Abandoned, Trashed, Consumed, Taken, Advanced, Awaiting);

written! {
    /// The last claim of a job that nobody holds.
    #[derive(Debug, Clone, PartialEq)]
    pub struct LastClaim {
        /// Name of the worker.
        1 pub worker: ByteString,
        /// Fencing token of the claim.
        2 pub token: u64,
        /// How it ended.
        3 pub end: End,
        /// When it began, Unix ms.
        4 pub claimed: i64,
        /// Its lease, ms.
        5 pub lease: i64,
        /// When the run would have timed out, Unix ms.
        6 pub run_end: i64,
    }
}
