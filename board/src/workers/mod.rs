//! Workers that have registered, and the connections that carry claims.
//!
//! | file | what it keeps | invariant |
//! |---|---|---|
//! | `registrations` | workers that registered, or whose registration ends | a worker knows until when it stands |
//! | `sessions` | which connection carries which claim | local: in no snapshot |
//!
//! Uses `job` and `structures`.

pub(crate) mod registrations;
pub(crate) mod sessions;

use crate::job::NEVER;
use crate::local::WorkerLocal;
use crate::structures::byte_string::ByteString;
use crate::structures::interner::Interner;
use crate::structures::sorted::SortedSlots;
use registrations::Registrations;

/// Who works on the jobs of a board.
#[derive(Default)]
pub(crate) struct Workers {
    pub(crate) names: Interner<ByteString, Worker>,
    pub(crate) registrations: Registrations,
}

/// A claimer.
pub struct Worker {
    pub(crate) claims: SortedSlots<u64>,
    pub(crate) local: WorkerLocal,
    /// When its registration lapses, and its claims end, or [`NEVER`].
    pub(crate) until: i64,
    /// It has gone: its claims under tokens up to this one have ended.
    pub(crate) gone: u64,
}

impl Default for Worker {
    fn default() -> Self {
        Worker { claims: SortedSlots::default(), local: WorkerLocal::default(), until: NEVER, gone: 0 }
    }
}
