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
