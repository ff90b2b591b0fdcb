//! The job board as a deterministic state machine: no server, no clock, no randomness, no
//! input or output, no unsafe code.
//!
//! A request is *decided* against the board and the world as it is now ([`Env`]); the decision
//! returns an [`Effect`] or a [`Refusal`]. Only applying effects ([`Board::apply`]) changes a
//! board, with the same result on every copy. One file under `verbs/` has all of one verb: request,
//! decision, effect, application.
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
//!         (other jobs, signals, its children)
//! ready too long --> failed, kind `expired`
//! failed, trashed, cancelled --requeue--> ready
//! ```
//!
//! # Map
//!
//! Each room is a folder. The comment of its `mod.rs` lists its files, its invariants, and the
//! rooms that it uses: these are above it in this table, and `tests/rooms.rs` checks that. The
//! methods of [`Board`] are where their subject is.
//!
//! | room | holds |
//! |---|---|
//! | `structures` | data structures that know nothing of boards |
//! | `job` | the record of a job, and what it keeps of other subjects |
//! | `statistics` | counts and durations |
//! | `dispatch` | who is next, and what keeps a job back: groups, limits, rates, pauses |
//! | `events` | what a board reports to those who follow it |
//! | `places` | the place of each job, and the moves between places |
//! | `quotas` | how much a post may add |
//! | `relations` | dependencies, parents and children |
//! | `workers` | registrations and sessions |
//! | `schedules` | what schedules post, and when |
//! | `reading` | queries |
//! | `verbs` | one file for each verb: request, decision, effect, application |
//! | `snapshot` | whole boards as bytes |
//!
//! All rooms use these files beside them:
//!
//! | file | holds |
//! |---|---|
//! | `board`, `queue` | a board and a queue, made of what the rooms keep |
//! | `local` | what one copy knows by itself: in no snapshot, no digest |
//! | `settings`, `scope`, `rules`, `policy` | every setting; what it counts for; which value is in force; the values that effects of time carry |
//! | `effect`, `batch`, `format` | effects; how they are sent; how they and snapshots are written |
//! | `env`, `error`, `retry` | the world of a decision; refusals; the pause after a failure |
//! | `check` | the invariants, for tests and loads |

#[macro_use]
mod format;
#[macro_use]
mod structures;

mod batch;
mod board;
mod check;
mod dispatch;
mod effect;
mod env;
mod error;
mod events;
mod item;
mod job;
mod local;
mod places;
mod policy;
mod queue;
mod quotas;
mod reading;
mod relations;
mod retry;
mod rules;
mod schedules;
mod scope;
mod settings;
mod snapshot;
mod statistics;
mod verbs;
mod workers;

pub use batch::{begins, Applied, Batch, ReplayError};
pub use board::Board;
pub use dispatch::groups::Hold;
pub use dispatch::limits::{GROUPS_MOST, LIMITS_MOST, NAMED_MOST};
pub use dispatch::rates::Rested;
pub use dispatch::rounds::GroupOf;
pub use effect::{Apply, ApplyError, Effect, Meta};
pub use env::{mix, Env, GIVERS};
pub use error::{clean, one_line, Refusal};
pub use events::{Event, EventField, EventKind, Subscribers, ALL_EVENTS};
pub use item::SnapshotError;
pub use job::awaited::{Edge, OnFailure, AFTER_MOST};
pub use job::costs::{PackedCosts, Spending};
pub use job::gate::{Gate, OnTimeout, Waiting, SIGNALS_MOST};
pub use job::history::{Entry, HistoryKind};
pub use job::id::Id;
pub use job::kin::{ChildWait, GENERATIONS, SHARE_MOST};
pub use job::output::Unread;
pub use job::remembered::Memo;
pub use job::unique_key::{Unique, Until};
pub use job::{Costs, Number, Options, State, COSTS_MOST, DEFAULT_QUEUE, NEVER};
pub use places::labels::TAGS_MOST;
pub use places::tombstones::Tombstone;
pub use quotas::room::{Freed, Lack, Level as RoomLevel};
pub use quotas::Growth;
pub use reading::explain::{Detail, Details, Explanation, Reason};
pub use reading::fields::{all_fields, FieldList, Fields, CLAIM_FIELDS};
pub use reading::filters::{Cursor, Filter, Filters, Page, Start};
pub use reading::limits::LimitOf;
pub use reading::queues::{QueueOrder, RankedQueue};
pub use reading::record::Record;
pub use schedules::cron::{check_cron, cron_times, CronFault, CRON_LONGEST, ZONE_LONGEST};
pub use schedules::{Backlog, Overlap, Schedule, Template, BACKLOG_MOST, SCHEDULE_ID_LONGEST};
pub use scope::{Scope, ALL_GROUPS};
pub use settings::{Level, Overrides, Rules, Setting, Spec, LONGEST, MOST, SPECS};
pub use snapshot::Loader;
pub use statistics::days::{day_of, DAY};
pub use statistics::pace::Pace;
pub use statistics::stats::{Late, Stats, Tally};
pub use structures::byte_string::ByteString;
pub use structures::histogram::Histogram;
pub use structures::mover::Mover;
pub use verbs::selection::{Chosen, Operation, Selection, SelectionCursor};
pub use verbs::*;
pub use workers::registrations::{Registration, REGISTERED_MOST};
