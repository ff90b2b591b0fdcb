//! The job board as a deterministic state machine: no server, no clock, no randomness, no
//! input or output, no unsafe code.
//!
//! A request is *decided* against the board and the world as it is now ([`Env`]); the answer
//! is an [`Effect`] or a [`Refusal`]. Applying effects ([`Board::apply`]) is the only thing
//! that changes a board, and gives the same result on every copy. One file under `verbs/`
//! holds all of one verb: request, decision, effect, application.
//!
//! # Life of a job
//!
//! ```text
//! scheduled --due--> ready --claim--> claimed --consume--> complete
//!                      ^                 |--fail, timeout: retries left--> scheduled (back-off)
//!                      |                 |                 none left-----> failed
//!                      |<--lease ends----|--lease ends, no lapses left---> failed, kind `lapsed`
//!                      |<--abandon, release                --trash-------> trashed
//!                                        |--consume NEXT--> ready, scheduled or blocked in another queue
//! scheduled, blocked, ready --cancel--> cancelled
//! claimed --cancel--> claimed, with a request; however it then ends but by consume with FORCE:
//!                     cancelled
//! blocked --all it waits for are complete--> ready; --one failed: ONFAILURE--> cancelled, failed
//! ready too long --> failed, kind `expired`
//! failed, trashed, cancelled --requeue--> ready
//! ```
//!
//! # Map
//!
//! | file | holds | invariant |
//! |---|---|---|
//! | `board` | the indexes | |
//! | `apart` | parts of records that few jobs have | a pointer each |
//! | `asides` | jobs of a queue that are scheduled, blocked or ended | as many as the queue counts |
//! | `places` | moves of a job between them | each job in the one place that its state says |
//! | `records` | records that come, change and go | the sum of their sizes |
//! | `classes`, `rules` | shared names and options; values of settings | |
//! | `wake` | when time is next, which queues got work | a lower bound |
//! | `news`, `tell` | what those who follow the board are told | nothing when nobody does |
//! | `job` | the records | a job 64 bytes beside id and payload |
//! | `slab` | values by slot | the lowest free slot is next |
//! | `line` | sorted sequences of slots | keys in the records, unchanged while in line |
//! | `groups`, `fair`, `rounds` | groups of a queue, and whose turn it is | each stands in one round at most |
//! | `buckets`, `rates` | how fast jobs may be claimed | whole numbers, nothing rounded |
//! | `ids`, `id` | id to slot | a made id knows its slot |
//! | `numbered` | values as numbers | |
//! | `pool` | shared names and classes | counted |
//! | `labels` | jobs by name, tag, kind, and tracked ones | a job in the line of each label that it bears |
//! | `waits` | who waits for whom | no cycles; an awaited record stays |
//! | `family`, `progress` | parents, children, and how far the one is by the other | a parent stands higher than its children |
//! | `pins` | what keeps records of ended jobs | |
//! | `pauses` | what is paused | a lane knows until when it is |
//! | `schedule` | schedules, by id and by when they fire | both orders agree |
//! | `registrations` | workers that registered or go | a worker knows until when it stands |
//! | `sessions` | which connection carries which claim | local |
//! | `cron` | cron expressions and time zones | pure; only decisions ask |
//! | `tombstones` | jobs that have gone | bounded in number and age |
//! | `days` | statistics by queue and day | a record only where something happened |
//! | `flow` | how fast jobs come and end | local |
//! | `stats` | counts and durations of one record | |
//! | `dist` | durations in bins | sums exact, percentiles within 5 % |
//! | `since` | what changed and went since a revision | bounded likewise |
//! | `settings` | every setting | one table |
//! | `policy` | what effects of time carry of them | nothing else counts there |
//! | `effect` | effects and batches | once, in order |
//! | `format` | how they and snapshots are written down | a struct may get more fields |
//! | `retry` | the pause after a failure | pure |
//! | `room` | how many jobs of a queue may run | a claim looks first |
//! | `named` | limits that queues and groups share | what runs is counted where it is named |
//! | `limits` | what a board, a queue, a user may have | a command is refused whole |
//! | `bounds` | how many queues, groups, schedules and keys a board may have | what is there is never refused |
//! | `owners` | live jobs of each user and name | counted where they stand |
//! | `keys` | keys that jobs have taken | one holder each |
//! | `selection` | the jobs that an operator's verb is for | a loop ends, each job once |
//! | `record`, `filters`, `list`, `labelled`, `merge` | reading | changes nothing |
//! | `explain`, `obstacles` | why a job is not running | changes nothing |
//! | `snapshot` | whole boards as bytes | every byte hostile |
//! | `relocate` | moves in memory | the state stays |
//! | `check` | the invariants, for tests and loads | |

#[macro_use]
mod format;
#[macro_use]
mod structures;

mod board;
mod check;
mod dispatch;
mod effect;
mod env;
mod error;
mod events;
mod job;
mod places;
mod policy;
mod quotas;
mod reading;
mod relations;
mod retry;
mod rules;
mod schedules;
mod settings;
mod snapshot;
mod statistics;
mod verbs;
mod workers;

pub use board::Board;
pub use dispatch::groups::Hold;
pub use dispatch::limits::{LimitOf, GROUPS_MOST, LIMITS_MOST, NAMED_MOST};
pub use dispatch::rates::Rested;
pub use dispatch::rounds::GroupOf;
pub use effect::{Applied, Batch, Effect, Flaw, Happening, Meta, Unfit};
pub use env::{mix, Env};
pub use error::{clean, one_line, Refusal};
pub use events::{Ears, Fact, Message, Topic, ALL_TOPICS};
pub use job::history::{Entry, Event};
pub use job::id::Id;
pub use job::{Options, State, NEVER};
pub use places::tombstones::Tombstone;
pub use quotas::unique::{Unique, Until};
pub use quotas::Growth;
pub use reading::explain::{Detail, Details, Explanation, Reason};
pub use reading::filters::{Cursor, Filter, Filters, Page, Start};
pub use reading::labels::TAGS_MOST;
pub use reading::record::{all_fields, FieldList, Fields, Record, CLAIM_FIELDS};
pub use reading::selection::{Chosen, Deed, Reached, Selection};
pub use relations::dependencies::{Edge, OnFailure, AFTER_MOST};
pub use relations::family::{GENERATIONS, SHARE_MOST};
pub use schedules::cron::{check_cron, CronFault, CRON_LONGEST, ZONE_LONGEST};
pub use schedules::{Backlog, Overlap, Schedule, Template, SCHEDULE_ID_LONGEST};
pub use settings::{Level, Overrides, Rules, Setting, Spec, LONGEST, MOST, SPECS};
pub use snapshot::{Damage, Loader};
pub use statistics::days::{day_of, DAY};
pub use statistics::pace::Pace;
pub use statistics::stats::{Late, Stats, Tally};
pub use structures::byte_string::Bin;
pub use structures::histogram::Dist;
pub use structures::relocate::Mover;
pub use verbs::*;
pub use workers::registrations::{Registration, REGISTERED_MOST};
