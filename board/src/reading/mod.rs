//! Queries, which change nothing.
//!
//! | file | what it answers |
//! |---|---|
//! | `record`, `fields` | one job, and which of its fields |
//! | `limits` | the shared limits |
//! | `filters` | which jobs a listing is for |
//! | `list`, `list_labels` | a page of jobs, found by place or by label |
//! | `scattered` | ready jobs of more queues than one call may look at |
//! | `queues` | the queues, by name or those with most of something first |
//! | `explain`, `obstacles` | why a job is not running |
//!
//! Uses `dispatch`, `job`, `places`, `relations` and `structures`.

pub(crate) mod explain;
pub(crate) mod fields;
pub(crate) mod filters;
pub(crate) mod limits;
pub(crate) mod list;
pub(crate) mod list_labels;
pub(crate) mod obstacles;
pub(crate) mod queues;
pub(crate) mod record;
pub(crate) mod scattered;
