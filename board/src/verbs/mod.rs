//! The verbs, one file each: request, decision, effect, application.
//!
//! Uses `dispatch`, `events`, `job`, `places`, `quotas`, `reading`, `relations`, `schedules`,
//! `statistics`, `structures` and `workers`.

mod abandon;
mod adopt;
mod advance;
mod cancel;
mod claim;
mod clock;
mod configure;
mod consume;
mod days;
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
mod pause;
mod post;
mod posted;
mod register;
mod release;
mod requeue;
mod resolve;
mod schedule;
pub(crate) mod selection;
mod session;
mod step;
mod trash;
mod update;

pub use abandon::{Abandon, Abandoned};
pub use adopt::{Adopted, Parted};
pub use advance::{Advance, Advanced};
pub use cancel::{CancelAnswer, CancelRequested, Cancelled};
pub use claim::{token_at, Claim, Claimed, Order, GIVERS};
pub use clock::{ClockLine, Elapsed, Freed, Settled, Trimmed};
pub use configure::{Configured, Source};
pub use consume::{Consume, Consumed};
pub use days::DaysDropped;
pub use delete::{Deleted, Forgotten};
pub use depend::{After, Depend, Depended};
pub use fail::{Fail, FailAnswer, Failed, Retry};
pub use fire::{Fired, LATE};
pub use flow::{Flow, Node};
pub use groups::Reviewed;
pub use heartbeat::{Beaten, Heartbeat, Report, Revived};
pub use holder::{Answer, AtCancel, Speaker, WorkerVerb, ANYBODY};
pub use label::{Label, Labelled};
pub use limit::LimitsNamed;
pub use pause::{Lifted, PauseRequest, Paused, Reclaimed, Resumed};
pub use post::{pair, Exists, OnConflict, Post, PostAnswer, TakeKey};
pub use posted::{KeyTaken, More, Posted};
pub use register::{Departed, Deregistered, Quieted, Register, Registered};
pub use release::Released;
pub use requeue::{Requeue, Requeued};
pub use resolve::Resolved;
pub use schedule::{is_schedule_id, ScheduleDeleted, ScheduleMoved, ScheduleSet, SetSchedule, When};
pub use session::{Bound, Disconnected};
pub use step::{Step, StepAnswer, Stepped};
pub use trash::{Trash, Trashed};
pub use update::{Update, Updated, UpdatedAll};
