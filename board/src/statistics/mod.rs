//! Counts and durations: by queue and day, and of the last minute.
//!
//! | file | what it keeps | invariant |
//! |---|---|---|
//! | `stats` | counts and durations of one board, queue or day | |
//! | `days` | those of each queue and day | a record only where something happened |
//! | `pace` | how fast jobs are posted and end | local: in no snapshot |
//!
//! Uses `job` and `structures`.

pub(crate) mod days;
pub(crate) mod pace;
pub(crate) mod stats;
