//! Why a job is not running, and what would change that.
//!
//! Each cause is a [`Reason`]: a code and details for programs, a sentence for people. What keeps a
//! ready job from being handed out is in `obstacles`; a new cause is a new function here or there,
//! which [`Board::explain`] calls.

use crate::board::Board;
use crate::env::Env;
use crate::error::clean;
use crate::job::awaited::{Edge, OnFailure};
use crate::job::gate::{named_first, OnTimeout};
use crate::job::id::Id;
use crate::job::kin::Children;
use crate::job::{End, Job, State, NEVER};
use crate::places::tombstones::Tombstone;
use crate::queue::Queue;
use crate::relations::dependencies::Outcome;
use crate::structures::byte_string::ByteString;

/// The most jobs that a reason names of those that a job waits for.
const DEPENDENCIES: usize = 100;
/// The most children that are looked at for those that a reason names.
const CHILDREN: usize = 1_000;

/// A value for programs.
#[derive(Debug, Clone, PartialEq)]
pub enum Detail {
    /// A number, or a time in Unix ms; -1 for never.
    Number(i64),
    /// A fixed word.
    Word(&'static str),
    /// Bytes from a client.
    Bytes(Vec<u8>),
    /// Rows of details.
    Rows(Vec<Details>),
}

/// Details by name.
pub type Details = Vec<(&'static str, Detail)>;

/// One cause why a job does not run, or will soon stop.
#[derive(Debug, Clone, PartialEq)]
pub struct Reason {
    /// Which cause it is.
    pub code: &'static str,
    /// Its details.
    pub details: Details,
    /// The same as a sentence, with what would change it.
    pub text: String,
}

/// Why a job does not run.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// Whether a claim by its id would take it now, for any worker that is not quiet.
    pub claimable: bool,
    /// Why it does not run: the first thing that must change comes first.
    pub reasons: Vec<Reason>,
}

/// A time as replies give it.
pub(crate) fn time(at: i64) -> Detail {
    Detail::Number(if at >= NEVER { -1 } else { at })
}

/// A number as replies give it.
pub(crate) fn count(n: usize) -> Detail {
    Detail::Number(n as i64)
}

/// When something ends, as words to append; empty when it never does.
pub(crate) fn up_to(until: i64) -> String {
    match until >= NEVER {
        true => String::new(),
        false => format!(" until {until}"),
    }
}

/// An id as texts show it.
pub(crate) fn shown(id: Id<&[u8]>) -> String {
    id.text(clean)
}

impl OnFailure {
    /// Its name in replies.
    pub fn name(self) -> &'static str {
        match self {
            OnFailure::Hold => "hold",
            OnFailure::Cancel => "cancel",
            OnFailure::Fail => "fail",
            OnFailure::Run => "run",
        }
    }
}

impl Board {
    /// Why a job is not running now; time events that are due but not settled yet are reported as
    /// such. O(log n + the size of the reply); for a ready job some more steps, see
    /// [`SortedSlots::before`](crate::structures::sorted::SortedSlots::before) and `obstacles`, but
    /// never O(n).
    pub fn explain(&self, slot: u32, env: &Env<'_>) -> Option<Explanation> {
        let job = self.store.jobs.get(slot)?;
        let mut reasons = Vec::new();
        let mut claimable = false;
        match job.state {
            State::Claimed => {
                reasons.extend(self.runs_at(slot, job, env));
                reasons.extend(self.asked_to_stop(job));
            }
            State::Blocked => {
                let due = job.at.get();
                reasons.extend((!self.edges(slot).is_empty()).then(|| self.waits_for(slot)));
                reasons.extend(self.waits_for_signals(slot, env));
                reasons.extend(self.waits_for_children(slot));
                reasons.extend((due > env.now).then(|| self.due_later(job, slot, env)));
                reasons.extend(self.pauses_of(job, due.max(env.now)));
            }
            State::Scheduled => {
                reasons.push(self.due_later(job, slot, env));
                reasons.extend(self.pauses_of(job, job.at.get().max(env.now)));
            }
            State::Ready => {
                let queue = self.queue_of(job)?;
                reasons = self.obstacles(job, slot, queue, env.now);
                reasons.extend(expiry(job, env.now));
                claimable = reasons.is_empty();
                reasons.extend(self.stands(job, slot, queue, claimable, env.now));
                reasons.extend(due_expiry(job, env.now));
            }
            _ => reasons.push(over(job)),
        }
        reasons.extend(self.died(job));
        Some(Explanation { claimable, reasons })
    }

    fn due_later(&self, job: &Job, slot: u32, env: &Env<'_>) -> Reason {
        let due = job.at.get();
        let when = match due <= env.now {
            true => format!("It was due at {due}: the next turn of the timer makes it ready."),
            false => format!("It is due at {due}. JOB.UPDATE board 1 id SET DELAY 0 makes it due now."),
        };
        let last = job.extras.as_deref().and_then(|extras| Some((extras, extras.last_claim.as_deref()?)));
        let (extras, last) = match last {
            Some((extras, last)) if matches!(last.end, End::Failed | End::TimedOut) => (extras, last),
            Some((extras, last)) if last.end == End::Lapsed => {
                let details = vec![
                    ("due", time(due)),
                    ("lapses", Detail::Number(extras.lapses.into())),
                    ("worker", Detail::Bytes(last.worker.to_vec())),
                ];
                let text = format!("Its worker lost the lease, and it waits for its next try. {when}");
                return Reason { code: "lapse", details, text };
            }
            _ => return Reason { code: "delayed", details: vec![("due", time(due))], text: when },
        };
        let kind = extras.reports.kind.as_deref().unwrap_or_default();
        let mut details = vec![
            ("due", time(due)),
            ("failures", Detail::Number(extras.fails.into())),
            ("left", Detail::Number(self.retries_left(slot, env.rules))),
            ("worker", Detail::Bytes(last.worker.to_vec())),
            ("kind", Detail::Bytes(kind.to_vec())),
        ];
        details.extend(extras.reports.message.as_ref().map(|text| ("message", Detail::Bytes(text.to_vec()))));
        let text = format!("It failed with {} and is tried again. {when}", clean(kind));
        Reason { code: "retry", details, text }
    }

    fn waits_for(&self, slot: u32) -> Reason {
        let edges = self.by_seq(self.edges(slot));
        let jobs = || edges.iter().filter_map(|edge| Some((edge, self.store.jobs.get(edge.slot)?)));
        let row = |(edge, job): (&Edge, &Job)| {
            vec![
                ("id", Detail::Bytes(self.store.id(edge.slot, job).to_vec())),
                ("state", Detail::Word(job.state.name())),
                ("onfailure", Detail::Word(edge.on_failure.name())),
            ]
        };
        let failed = |edge: &Edge| self.verdict(edge.slot).is_some();
        let held = jobs().find(|(edge, _)| failed(edge) && self.outcome(edge) == Outcome::Waits);
        let ended = jobs().any(|(edge, _)| self.outcome(edge) != Outcome::Waits);
        let change = match held {
            _ if ended => "One of them has ended: the next turn of the timer handles that.".into(),
            Some((edge, job)) if self.is_dead(edge.slot) && !job.state.ended() => format!(
                "{} is in the dead queue '{}': end it there, send it back with JOB.REQUEUE … ORIGIN, or remove it with JOB.DEPEND REMOVE.",
                shown(self.store.id(edge.slot, job)),
                clean(self.queue_name(job))
            ),
            Some((edge, job)) => format!(
                "{} is {}: requeue it, or remove it with JOB.DEPEND REMOVE.",
                shown(self.store.id(edge.slot, job)),
                job.state.name()
            ),
            None if edges.len() == 1 => {
                "It continues when that job is complete, or JOB.DEPEND REMOVE removes it.".into()
            }
            None => "It continues when all are complete, or JOB.DEPEND REMOVE removes them.".into(),
        };
        let details = vec![
            ("count", count(edges.len())),
            ("jobs", Detail::Rows(jobs().take(DEPENDENCIES).map(row).collect())),
        ];
        let text = format!("It waits for {}. {change}", jobs_of(edges.len()));
        Reason { code: "dependencies", details, text }
    }

    fn waits_for_signals(&self, slot: u32, env: &Env<'_>) -> Option<Reason> {
        let waiting = self.waiting(slot)?;
        let (gate, until) = (&waiting.gate, waiting.until());
        let missing: Vec<&ByteString> = self.missing_signals(slot).collect();
        let row = |name: &ByteString| {
            let arrived = !missing.contains(&name);
            vec![("name", Detail::Bytes(name.to_vec())), ("arrived", Detail::Number(arrived.into()))]
        };
        let details = vec![
            ("signals", Detail::Rows(gate.names.iter().map(row).collect())),
            ("any", Detail::Number(gate.any.into())),
            ("since", time(waiting.from)),
            ("until", time(until)),
            ("ontimeout", Detail::Word(gate.on_timeout.name())),
        ];
        let names = clean(&named_first(missing.iter().map(|name| &***name)));
        let what = match (missing.len(), gate.any) {
            (1, _) => format!("the signal {names}"),
            (_, true) => format!("one of the signals {names}"),
            _ => format!("the signals {names}"),
        };
        let then = match gate.on_timeout {
            OnTimeout::Run => "its handler runs, and learns that nobody answered",
            OnTimeout::Fail => "it fails",
            OnTimeout::Cancel => "it is cancelled",
        };
        let time = match until {
            NEVER => String::new(),
            until if until.max(env.hold) <= env.now => {
                " The time for it is over: the next turn of the timer handles that.".into()
            }
            until => format!(" At {until} {then}."),
        };
        let text = format!(
            "It waits for {what}.{time} JOB.SIGNAL sends one, JOB.DEPEND REMOVE with SIGNALS ends the wait without one."
        );
        Some(Reason { code: "signals", details, text })
    }

    fn waits_for_children(&self, slot: u32) -> Option<Reason> {
        let wait = self.child_wait(slot)?;
        let Children { count: all, live, unsuccessful, .. } =
            self.children(slot).copied().unwrap_or_default();
        let jobs = self.children_from(slot, 0).take(CHILDREN);
        let jobs = jobs.filter_map(|(_, child)| Some((child, self.store.jobs.get(child)?)));
        let jobs = jobs.filter(|(_, child)| child.state != State::Complete).take(DEPENDENCIES);
        let row = |(slot, job): (u32, &Job)| {
            let id = self.store.id(slot, job).to_vec();
            vec![("id", Detail::Bytes(id)), ("state", Detail::Word(job.state.name()))]
        };
        let details = vec![
            ("children", Detail::Number(all as i64)),
            ("pending", Detail::Number(live.into())),
            ("unsuccessful", Detail::Number(unsuccessful as i64)),
            ("jobs", Detail::Rows(jobs.map(row).collect())),
            ("since", time(wait.from)),
            ("onfailure", Detail::Word(wait.on_failure.name())),
        ];
        let what = match live {
            0 => "its children".into(),
            1 => format!("1 of its {all} children"),
            n => format!("{n} of its {all} children"),
        };
        let change = match self.outcome_of_children(slot, wait.on_failure) {
            _ if self.children_due(slot) => "The next turn of the timer handles that.".to_string(),
            Outcome::Waits if unsuccessful > 0 && wait.on_failure == OnFailure::Hold => format!(
                "{unsuccessful} ended without success: requeue or delete them, or let it run with JOB.DEPEND REMOVE and CHILDREN."
            ),
            Outcome::Met => "None is left, but later ones count while it waits for something else.".into(),
            _ => "It continues when they have ended, or JOB.DEPEND REMOVE with CHILDREN lets it run.".into(),
        };
        Some(Reason { code: "children", details, text: format!("It waits for {what}. {change}") })
    }

    fn runs_at(&self, slot: u32, job: &Job, env: &Env<'_>) -> Option<Reason> {
        let claim = self.claim_of(job)?;
        // The claim of a worker whose registration has ended is over, even while claims are held.
        let until = match self.time_of(slot)? {
            0 => env.now,
            _ => self.record_of(slot)?.until()?.max(env.hold),
        };
        let details = vec![
            ("worker", Detail::Bytes(self.worker_name(claim).to_vec())),
            ("attempt", Detail::Number(claim.attempt.into())),
            ("claimed", time(claim.claimed)),
            ("deadline", time(claim.deadline())),
            ("until", time(until)),
            ("session", Detail::Number(self.is_session(slot).into())),
            ("grace", Detail::Number(claim.in_grace.into())),
        ];
        let worker = clean(self.worker_name(claim));
        let text = match until <= env.now {
            true => {
                format!("{worker} held it: its claim has ended. The next turn of the timer handles that.")
            }
            false if claim.in_grace => format!(
                "It runs: the lease of {worker} has ended, and the grace after it lasts{} unless a heartbeat comes. JOB.RELEASE takes it back.",
                up_to(until)
            ),
            false => format!(
                "It runs: {worker} holds it{} unless a heartbeat comes. JOB.RELEASE takes it back.",
                up_to(until)
            ),
        };
        Some(Reason { code: "claimed", details, text })
    }

    fn asked_to_stop(&self, job: &Job) -> Option<Reason> {
        let claim = self.claim_of(job).filter(|claim| claim.cancel)?;
        let text = "Its worker was asked to stop: however the claim ends, the job is cancelled, unless \
                    by JOB.CONSUME with FORCE."
            .into();
        Some(Reason { code: "cancel", details: vec![("until", time(claim.cancel_end))], text })
    }

    /// Where a job failed that is in a dead queue.
    fn died(&self, job: &Job) -> Option<Reason> {
        let extras = job.extras.as_deref()?;
        let origin = extras.origin.as_deref()?;
        let kind = extras.reports.kind.as_deref().unwrap_or_default();
        let mut details = vec![
            ("origin", Detail::Bytes(origin.queue.to_vec())),
            ("at", time(origin.at)),
            ("attempts", Detail::Number(origin.attempts.into())),
            ("kind", Detail::Bytes(kind.to_vec())),
        ];
        details.extend(extras.reports.message.as_ref().map(|text| ("message", Detail::Bytes(text.to_vec()))));
        let text = format!(
            "It failed with {} in the queue '{}' and moved to a dead queue. {} with ORIGIN sends it back.",
            clean(kind),
            clean(&origin.queue),
            if job.state == State::Claimed { "Once nobody holds it, JOB.REQUEUE" } else { "JOB.REQUEUE" },
        );
        Some(Reason { code: "dead", details, text })
    }

    /// What is in line before a ready job, and who would take it.
    fn stands(&self, job: &Job, slot: u32, queue: &Queue, claimable: bool, now: i64) -> Vec<Reason> {
        let next = claimable && self.next_of(queue, now) == Some(slot);
        let place = self.in_line(job, slot, queue);
        let nobody = claimable.then(|| self.nobody_claims(job, queue, next));
        match next {
            true => nobody.into_iter().chain([place]).collect(),
            false => [place].into_iter().chain(nobody).collect(),
        }
    }
}

fn jobs_of(n: usize) -> String {
    match n {
        1 => "another job".into(),
        n => format!("{n} other jobs"),
    }
}

/// The reason for a ready job that has waited too long.
fn expiry(job: &Job, now: i64) -> Option<Reason> {
    let at = Some(job.at.get()).filter(|at| *at <= now)?;
    let text =
        format!("Nobody had claimed it by {at}: the next turn of the timer fails it with kind expired.");
    Some(Reason { code: "expires", details: vec![("at", time(at))], text })
}

/// The reason for a ready job that is going to expire.
fn due_expiry(job: &Job, now: i64) -> Option<Reason> {
    let at = Some(job.at.get()).filter(|at| *at > now && *at != NEVER)?;
    let text = format!("It fails with kind expired if nobody has claimed it by {at}.");
    Some(Reason { code: "expires", details: vec![("at", time(at))], text })
}

fn over(job: &Job) -> Reason {
    let extras = job.extras.as_deref();
    let mut details = vec![("ended", time(extras.map_or(0, |extras| extras.ended)))];
    // Not called `reason`, which is the name of its code.
    let texts = extras
        .map(|r| [("kind", &r.reports.kind), ("message", &r.reports.message), ("why", &r.reports.reason)]);
    for (name, text) in texts.into_iter().flatten() {
        details.extend(text.as_ref().map(|text| (name, Detail::Bytes(text.to_vec()))));
    }
    details.push(("kept", time(job.at.get())));
    let change = match job.state {
        State::Complete => "JOB.POST with REPLACE runs it again.",
        _ => "JOB.REQUEUE makes it ready again.",
    };
    let kind = extras.and_then(|extras| extras.reports.kind.as_deref());
    let what = match kind.filter(|_| job.state == State::Failed) {
        Some(kind) => format!("It failed with {}.", clean(kind)),
        None => format!("It is {}.", job.state.name()),
    };
    Reason { code: "ended", details, text: format!("{what} {change}") }
}

impl Tombstone {
    /// Why a job that has been removed does not run.
    pub fn explain(&self) -> Reason {
        let text = format!("It was {}, and its record was dropped. Post it again.", self.state.name());
        Reason { code: "gone", details: vec![("ended", time(self.ended))], text }
    }
}
