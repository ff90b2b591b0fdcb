//! Failing: an attempt did not work. Another follows, or the job has failed.

use crate::board::{after, Board};
use crate::effect::{ApplyError, Meta, Validate};
use crate::env::Env;
use crate::error::Refusal;
use crate::job::history::HistoryKind;
use crate::job::{End, State};
use crate::retry::{self, Next};
use crate::settings::{Rules, Setting};
use crate::structures::byte_string::ByteString;
use crate::verbs::heartbeat::Report;
use crate::verbs::holder::{end_of, AtCancel, WorkerVerb};

/// Whether and when another attempt follows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Retry {
    /// As the job's options say.
    #[default]
    Policy,
    /// After this many ms, if any attempt is left.
    After(i64),
    /// Never.
    No,
}

/// A worker's report that its attempt failed.
#[derive(Debug, Clone, Default)]
pub struct Fail<'a> {
    /// Kind of the failure.
    pub kind: &'a [u8],
    /// Text of the failure.
    pub message: &'a [u8],
    /// What follows.
    pub retry: Retry,
    /// How long the record is retained if no other try follows, ms.
    pub retain: Option<i64>,
    /// What else the worker reports: a new payload, fields, a line for the history.
    pub report: Report<'a>,
}

/// The kinds of failures that the server gives itself: no worker may use them.
pub const OWN_KINDS: [&str; 5] = ["lapsed", "timeout", "expired", "dependency", "signal"];

impl<'a> WorkerVerb<'a> for Fail<'a> {
    const END: End = End::Failed;
    type Effect = Failed<'a>;

    fn at_cancel(&self) -> AtCancel<'a> {
        AtCancel::Cancel(Some(self.message))
    }

    fn report(&self) -> Option<&Report<'a>> {
        Some(&self.report)
    }

    fn decide(&self, board: &Board, env: &Env<'_>, slot: u32, taken: bool) -> Result<Self::Effect, Refusal> {
        let policy = board.next_try(slot, env.rules, env.draw(0), env.now).map_err(|_| Refusal::NoJob)?;
        let (due, retain) = match (policy, self.retry) {
            (Next::End { retain }, _) => (None, retain),
            (_, Retry::No) => (None, board.retention(State::Failed, env.rules)),
            (Next::Retry { .. }, Retry::After(ms)) => (Some(after(env.now, ms)), 0),
            (Next::Retry { due }, Retry::Policy) => (Some(due), 0),
        };
        let retain = if due.is_none() { self.retain.unwrap_or(retain) } else { retain };
        let Fail { kind, message, .. } = *self;
        let Report { payload, ref meta, log, .. } = self.report;
        Ok(Failed { slot, kind, message, due, retain, payload, taken, meta: meta.clone(), log })
    }
}

written! {
    /// An attempt failed: another follows at `due`, or the job has failed.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Failed<'a> {
        1 slot: u32,
        2 kind: &'a [u8],
        3 message: &'a [u8],
        4 due: Option<i64>,
        5 retain: i64,
        6 payload: Option<&'a [u8]>,
        /// Whether the speaker may not be the holder.
        7 taken: bool,
        /// Fields to set.
        8 meta: Meta<'a>,
        /// A line for the history, before the failure.
        9 log: Option<&'a [u8]>,
    }
}

/// What a failure did to a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailAnswer {
    /// Its state now: scheduled, ready, failed or cancelled.
    pub state: State,
    /// When the next attempt may begin, Unix ms.
    pub due: Option<i64>,
    /// How many retries are left, -1 without end.
    pub left: i64,
    /// The dead queue in which it is now, as long as nobody has claimed it there.
    pub dead: Option<ByteString>,
}

impl Validate for Failed<'_> {}

impl Failed<'_> {
    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        board.close_run(self.slot, end_of(End::Failed, self.taken), "released", true, now)?;
        let Failed { payload, ref meta, log, .. } = *self;
        let report = Report { payload, meta: meta.clone(), log, ..Report::default() };
        report.conclude(board, self.slot, self.taken, now)?;
        let next = self.due.map_or(Next::End { retain: self.retain }, |due| Next::Retry { due });
        board.fail_job(self.slot, HistoryKind::Failed, self.kind, self.message, next, now)
    }
}

impl Board {
    /// What follows the next failure of a job, by its options and settings.
    pub(crate) fn next_try(
        &self,
        slot: u32,
        rules: &Rules,
        random: u64,
        now: i64,
    ) -> Result<Next, ApplyError> {
        let job = self.job(slot)?;
        let fails = job.extras.as_ref().map_or(0, |r| r.fails);
        let retries = self.job_rule(job, Setting::Retries, rules);
        if retries >= 0 && i64::from(fails) >= retries {
            return Ok(Next::End { retain: self.retention(State::Failed, rules) });
        }
        let base = self.job_rule(job, Setting::BackoffBase, rules);
        let max = self.job_rule(job, Setting::BackoffMax, rules);
        let jitter = self.job_rule(job, Setting::Jitter, rules);
        let pause = retry::pause(fails.saturating_add(1), base, max, jitter, random);
        Ok(Next::Retry { due: after(now, pause) })
    }

    /// What a failure did to a job; `ended` is its state if its record has been removed.
    pub fn after_fail(&self, env: &Env<'_>, id: &[u8], ended: State) -> FailAnswer {
        let Some((slot, job)) = self.find(id).and_then(|s| Some((s, self.store.jobs.get(s)?))) else {
            return FailAnswer { state: ended, due: None, left: 0, dead: None };
        };
        let due = (job.state == State::Scheduled).then(|| job.at.get());
        let rests = self.is_dead(slot)
            && job.state == State::Ready
            && job.extras.as_ref().is_some_and(|e| e.attempt == 0);
        let dead = rests.then(|| self.queue_name(job).into());
        FailAnswer { state: job.state, due, left: self.retries_left(slot, env.rules), dead }
    }

    /// How many retries a job has left, -1 without end.
    pub(crate) fn retries_left(&self, slot: u32, rules: &Rules) -> i64 {
        let Some(job) = self.store.jobs.get(slot) else { return 0 };
        let fails = job.extras.as_ref().map_or(0, |r| i64::from(r.fails));
        match self.job_rule(job, Setting::Retries, rules) {
            retries if retries < 0 => -1,
            retries => retries.saturating_sub(fails).max(0),
        }
    }
}
