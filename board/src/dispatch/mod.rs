//! Who is next, and what keeps a job back.
//!
//! | file | what it decides | invariant |
//! |---|---|---|
//! | `groups` | what a group of a queue is | |
//! | `fair`, `rounds` | whose turn it is | a group stands in one round at most |
//! | `concurrency` | how many jobs may run at once | a claim looks first |
//! | `limits` | limits with a name, which queues and groups share | what runs is counted where it is named |
//! | `buckets`, `rates` | how fast jobs may be claimed | whole numbers, nothing rounded |
//! | `pauses` | what is paused | a queue knows until when it is |
//!
//! Uses `job` and `structures`.

pub(crate) mod buckets;
pub(crate) mod concurrency;
pub(crate) mod fair;
pub(crate) mod groups;
pub(crate) mod limits;
pub(crate) mod pauses;
pub(crate) mod rates;
pub(crate) mod rounds;
