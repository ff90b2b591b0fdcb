//! The verbs, one file each: request, decision, effect, application. `protocol` runs them: it has what
//! time does before a decision, and the order of the effects. `holder` has the check with which all
//! verbs of a worker begin.
//!
//! Uses `dispatch`, `events`, `job`, `places`, `quotas`, `reading`, `relations`, `schedules`,
//! `statistics`, `structures` and `workers`.

mod abandon;
mod adopt;
mod advance;
mod awaiting;
mod cancel;
mod claim;
mod clock;
mod configure;
mod consume;
mod days;
mod dead;
mod delete;
mod depend;
mod fail;
mod fire;
mod flow;
mod groups;
mod heartbeat;
mod holder;
mod label;
mod limit;
mod output;
mod pause;
mod post;
mod posted;
mod protocol;
mod register;
mod release;
mod requeue;
mod resolve;
mod schedule;
pub(crate) mod selection;
mod selection_slice;
mod selection_walk;
mod session;
mod signal;
mod spend;
mod step;
mod trash;
mod update;

pub use abandon::{Abandon, Abandoned};
pub use adopt::{Adopted, Parted};
pub use advance::{Advance, Advanced};
pub use awaiting::{Await, AwaitAnswer, Awaiting};
pub use cancel::{CancelAnswer, CancelRequested, Cancelled};
pub use claim::{token_at, Claim, Claimed, Order};
pub use clock::{ClockLine, Elapsed, Freed, Settled, Trimmed};
pub use configure::{Configured, Source};
pub use consume::{Consume, Consumed};
pub use days::DaysDropped;
pub use dead::DeadQueueNamed;
pub use delete::{Deleted, Forgotten};
pub use depend::{After, Depend, Depended};
pub use fail::{Fail, FailAnswer, Failed, Retry, OWN_KINDS};
pub use fire::{Fired, LATE};
pub use flow::{Flow, Node};
pub use groups::Reviewed;
pub use heartbeat::{Beaten, Heartbeat, Report, Revived};
pub use holder::{Answer, AtCancel, Speaker, WorkerVerb, ANYBODY};
pub use label::{Label, Labelled};
pub use limit::LimitsNamed;
pub use output::Chunk;
pub use pause::{Lifted, PauseRequest, Paused, Reclaimed, Resumed};
pub use post::{pair, Exists, OnConflict, Post, PostAnswer, TakeKey};
pub use posted::{KeyTaken, More, Posted};
pub use protocol::{KeepVerb, Kept, Protocol, Subject, SETTLES};
pub use register::{Departed, Deregistered, Quieted, Register, Registered};
pub use release::Released;
pub use requeue::{Requeue, Requeued, To};
pub use resolve::Resolved;
pub use schedule::{is_schedule_id, ScheduleDeleted, ScheduleMoved, ScheduleSet, SetSchedule, When};
pub use session::{Bound, Disconnected};
pub use signal::{Signal, SignalAnswer, Signalled};
pub use spend::{Spend, Spends, Spent};
pub use step::{Step, Stepped};
pub use trash::{Trash, Trashed};
pub use update::{Update, Updated, UpdatedAll};
