//! Workers that have registered, and the connections that carry claims.
//!
//! | file | what it keeps | invariant |
//! |---|---|---|
//! | `registrations` | registered workers, and ended registrations | a worker knows until when it is registered |
//! | `sessions` | which connection carries which claim | local: in no snapshot |
//!
//! Uses `job` and `structures`.

pub(crate) mod registrations;
pub(crate) mod sessions;

use crate::job::NEVER;
use crate::local::WorkerLocal;
use crate::structures::byte_string::ByteString;
use crate::structures::interner::Interner;
use crate::structures::lazy::Lazy;
use crate::structures::sorted::SortedSlots;
use registrations::Registrations;

/// The workers of a board.
#[derive(Default)]
pub(crate) struct Workers {
    pub(crate) names: Interner<ByteString, Worker>,
    pub(crate) registrations: Lazy<Registrations>,
}

/// A worker that claims jobs.
pub struct Worker {
    /// The numbers of its claims, in the order of their tokens.
    pub(crate) claims: SortedSlots<u64>,
    pub(crate) local: WorkerLocal,
    /// When its registration lapses and its claims end, Unix ms, or [`NEVER`].
    pub(crate) until: i64,
    /// Its claims with tokens up to this one have ended with a registration.
    pub(crate) gone: u64,
}

impl Default for Worker {
    fn default() -> Self {
        Worker { claims: SortedSlots::default(), local: WorkerLocal::default(), until: NEVER, gone: 0 }
    }
}
