//! What happens to jobs, and what each of it means: for the statistics, the history and the events.

use crate::board::Board;
use crate::effect::ApplyError;
use crate::events::{flag, number, text, word, EventField, EventFields, EventKind as Event};
use crate::job::gate::Waiting;
use crate::job::history::{Entry, HistoryKind as Kind};
use crate::job::{Claim, End, Job, State, NEVER};
use crate::settings::Setting;
use crate::statistics::stats::{Late, Tally};
use crate::structures::byte_string::ByteString;

/// Something that happened to a job.
pub(crate) enum Happened<'a> {
    /// It was posted, or replaced the one with its id.
    Posted { due: Option<i64>, replaces: bool, fired: Option<Firing> },
    /// It can be claimed.
    Ready,
    /// A worker holds it.
    Claimed,
    /// A late worker holds it again.
    Revived,
    /// The lease of its claim has ended, and its worker keeps it for the grace.
    Grace,
    /// Its worker lost this claim: how the claim ended, and the reason in a word.
    Lost(&'a Claim, End, &'static str),
    /// It is claimable again after a lapse.
    Lapsed,
    /// An operator took it from its worker.
    Released,
    /// Its worker gave it back.
    Abandoned { reason: Option<&'a [u8]>, due: Option<i64> },
    /// It moved on to another queue.
    Advanced { to: &'a [u8], due: Option<i64> },
    /// An attempt or a wait failed; what follows is one of the next three.
    Failure { event: Kind, kind: &'a [u8], message: &'a [u8], last: bool },
    /// It will be tried again.
    Retried(Cause<'a>, i64),
    /// It moves to this dead queue.
    Dead(Cause<'a>, &'a [u8]),
    /// It has failed for good. Whether its record is kept.
    Failed(Cause<'a>, bool),
    /// It is complete: the claim that has just ended, the token to show, whether its record is kept.
    Completed { claim: Option<&'a Claim>, token: u64, kept: bool },
    /// It was cancelled, or trashed. Why, whether its record is kept, and whether that ended the
    /// claim of a worker.
    Ended { state: State, reason: Option<&'a [u8]>, kept: bool, held: bool },
    /// Its worker is asked to stop.
    CancelRequested,
    /// An operator sent it back, perhaps to another queue.
    Requeued(Option<&'a [u8]>),
    /// An operator changed what these words name, perhaps its queue; the history has a line of log
    /// in place of it when there is one.
    Updated { changed: Words<'a>, to: Option<&'a [u8]>, logged: bool },
    /// An operator changed its labels.
    Labelled(Words<'a>),
    /// An operator changed what it waits for.
    Depends,
    /// It waits for signals, as its record says.
    Awaiting(&'a Waiting),
    /// It waits for so many children, perhaps in the middle of its work.
    AwaitingChildren { live: u32, run: bool },
    /// The time of its wait for these signals was over.
    AwaitTimeout(&'a [ByteString]),
    /// A signal arrived: its name, and who sent it.
    Signalled(&'a [u8], Option<&'a [u8]>),
    /// Its worker or an operator reported how far it is.
    Progress(Option<&'a [u8]>),
    /// Its worker or an operator wrote a line.
    Log(Option<&'a [u8]>, &'a [u8]),
    /// An operator deleted it.
    Deleted,
    /// Its record is removed by age or number.
    Retired,
}

/// Kind and message of a failure.
type Cause<'a> = (&'a [u8], &'a [u8]);
/// Words that are needed only when somebody follows.
type Words<'a> = &'a dyn Fn() -> Vec<&'static str>;
/// The time for which a schedule posts a job, and when time should have done it, Unix ms; `None`
/// when an operator did it.
pub(crate) type Firing = (i64, Option<i64>);

impl Happened<'_> {
    /// What counts in the statistics, and the event.
    #[inline(always)]
    fn projections(&self) -> (Option<Tally>, Option<Event>) {
        use Happened::*;
        match self {
            Posted { replaces: false, .. } => (Some(Tally::Posted), Some(Event::Posted)),
            Posted { .. } => (Some(Tally::Replaced), Some(Event::Posted)),
            Ready => (None, Some(Event::Ready)),
            Claimed => (None, Some(Event::Claimed)),
            Revived => (Some(Tally::Revived), Some(Event::Claimed)),
            Grace => (None, Some(Event::Grace)),
            Lost(_, End::Lapsed, _) => (Some(Tally::Lapsed), Some(Event::Lost)),
            Lost(_, End::TimedOut, _) => (Some(Tally::Timeouts), Some(Event::Lost)),
            Lost(..) => (None, Some(Event::Lost)),
            Released => (Some(Tally::Released), None),
            Abandoned { .. } => (Some(Tally::Abandoned), Some(Event::Abandoned)),
            Advanced { .. } => (None, Some(Event::Advanced)),
            Failure { event: Kind::Expired, .. } => (Some(Tally::Expired), None),
            Failure { event: Kind::AwaitTimeout, .. } => (Some(Tally::AwaitTimeouts), None),
            Retried(..) => (Some(Tally::Retried), Some(Event::Retried)),
            Dead(..) => (Some(Tally::Failed), Some(Event::Dead)),
            Failed(..) => (Some(Tally::Failed), Some(Event::Failed)),
            Completed { .. } => (Some(Tally::Completed), Some(Event::Completed)),
            Ended { state: State::Trashed, .. } => (Some(Tally::Trashed), Some(Event::Trashed)),
            Ended { .. } => (Some(Tally::Cancelled), Some(Event::Cancelled)),
            CancelRequested => (None, Some(Event::Cancel)),
            Requeued(_) => (Some(Tally::Requeued), Some(Event::Retried)),
            Updated { .. } | Labelled(_) => (None, Some(Event::Updated)),
            Awaiting(_) | AwaitingChildren { .. } => (Some(Tally::Awaited), Some(Event::Awaiting)),
            AwaitTimeout(_) => (Some(Tally::AwaitTimeouts), None),
            Signalled(..) => (Some(Tally::Signalled), Some(Event::Signalled)),
            Progress(_) => (None, Some(Event::Progress)),
            Deleted => (Some(Tally::Deleted), Some(Event::Deleted)),
            Retired => (None, Some(Event::Deleted)),
            Failure { .. } | Lapsed | Depends | Log(..) => (None, None),
        }
    }
}

impl Board {
    /// Something happened to a job: it counts in the statistics, stands in the history, and is an
    /// event for those who follow.
    // Each caller gets what its own case means, and jobs without trouble pay for no other.
    #[inline(always)]
    pub(crate) fn happened(&mut self, slot: u32, what: &Happened<'_>) -> Result<(), ApplyError> {
        let now = self.local.moment;
        let (tally, event) = what.projections();
        if let Some(tally) = tally {
            self.count_stat(slot, tally, now);
        }
        match *what {
            Happened::Claimed => self.count_claim(slot, now),
            Happened::Posted { replaces: false, fired: None, .. }
            | Happened::Completed { kept: false, .. }
            | Happened::Lost(..)
            | Happened::Ready => {}
            Happened::Posted { fired: Some((_, turn)), .. } => self.count_firing(slot, turn, now),
            _ => self.write_down(slot, what, now)?,
        }
        if let Some(event) = event {
            self.emit_of(event, slot, |board, job| board.event_of(job, what));
        }
        Ok(())
    }

    /// Writes the entry of what happened into the history. The first one during a claim is preceded
    /// by the claim's begin.
    fn write_down(&mut self, slot: u32, what: &Happened<'_>, now: i64) -> Result<(), ApplyError> {
        let Some(entry) = self.entry_of(self.job(slot)?, what) else { return Ok(()) };
        let unwritten = self.claim_of(self.job(slot)?).filter(|claim| !claim.in_history);
        if let Some(begin) = unwritten.map(|claim| self.begin_of(claim)) {
            self.claim_mut(slot)?.in_history = true;
            self.push_history(slot, begin)?;
        }
        self.push_history(slot, Entry { at: now, ..entry })
    }

    /// The entry in the history, but for its time. It names the worker that took part.
    fn entry_of(&self, job: &Job, what: &Happened<'_>) -> Option<Entry> {
        use Happened::*;
        let last = || job.extras.as_ref()?.last_claim.as_ref();
        let by = || Some(last()?.worker.clone());
        let own = || Some(last().filter(|last| last.end != End::Taken)?.worker.clone());
        let holder = || Some(self.worker_name(self.claim_of(job)?).into());
        Some(match *what {
            Posted { replaces: true, .. } => Entry::of(Kind::Replaced, None, None),
            Revived => Entry::of(Kind::Revived, holder(), None),
            Grace => Entry::of(Kind::Grace, holder(), None),
            Lapsed => Entry::of(Kind::Lapsed, by(), None),
            Released => Entry::of(Kind::Released, by(), None),
            Abandoned { reason, .. } => Entry::of(Kind::Abandoned, own(), reason),
            Advanced { to, .. } => Entry::of(Kind::Advanced, by(), Some(to)),
            Failure { event, kind, message, last } => {
                Entry { last, ..Entry::failure(event, own(), kind, message) }
            }
            Dead(_, to) => Entry::of(Kind::Dead, None, Some(to)),
            Completed { kept: true, .. } => Entry::of(Kind::Complete, own(), None),
            Ended { state: State::Trashed, reason, .. } => Entry::of(Kind::Trashed, own(), reason),
            Ended { reason, held, .. } => Entry::of(Kind::Cancelled, if held { by() } else { None }, reason),
            CancelRequested => Entry::of(Kind::CancelRequested, None, None),
            Requeued(to) => Entry::of(Kind::Requeued, None, to),
            Updated { to, logged: false, .. } => Entry::of(Kind::Updated, None, to),
            Depends => Entry::of(Kind::Depends, None, None),
            Awaiting(waiting) => {
                let worker = if waiting.step.is_empty() { None } else { own() };
                Entry::signals(Kind::Awaiting, worker, &waiting.gate.names)
            }
            AwaitingChildren { live, run } => {
                let entry = Entry::of(Kind::Awaiting, if run { own() } else { None }, None);
                Entry { children: live, ..entry }
            }
            AwaitTimeout(missing) => Entry::signals(Kind::AwaitTimeout, None, missing),
            Signalled(name, sender) => Entry::of(Kind::Signalled, sender.map(ByteString::from), Some(name)),
            Log(worker, line) => Entry::of(Kind::Log, worker.map(ByteString::from), Some(line)),
            _ => return None,
        })
    }

    /// The worker that an event concerns, and its fields: token, queue, and what is its own.
    fn event_of(&self, job: &Job, what: &Happened<'_>) -> (Option<ByteString>, EventFields) {
        use Happened::*;
        let of_claim = |claim: &Claim| (claim.token, self.worker_name(claim).into());
        let (claim, extras) = (self.claim_of(job), job.extras.as_ref());
        let (holder, nobody) = (|| claim.map(of_claim).unzip(), (None, None));
        let last = || extras.and_then(|extras| extras.last_claim.as_ref());
        let last = || last().map(|last| (last.token, last.worker.clone())).unzip();
        let failure = |(kind, message): Cause, next| vec![text("kind", kind), text("message", message), next];
        let ((token, worker), own): ((Option<u64>, Option<ByteString>), _) = match *what {
            Posted { due, replaces, fired } => {
                let name = text("name", self.class_of(job).map(|class| &*class.name));
                let replaced = flag("replaced", true).filter(|_| replaces);
                let intended = number("intended", fired.map(|(intended, _)| intended));
                let priority = number("priority", i64::from(job.priority));
                (nobody, vec![name, priority, number("due", due), replaced, intended])
            }
            Claimed | Revived => {
                let attempt = number("attempt", claim.map(|claim| claim.attempt.into()));
                (holder(), vec![attempt, number("deadline", claim.map(Claim::deadline))])
            }
            Grace => (holder(), vec![number("until", claim.map(Claim::ends_at))]),
            CancelRequested => (holder(), vec![number("deadline", claim.map(Claim::deadline))]),
            Lost(claim, _, reason) => (Some(of_claim(claim)).unzip(), vec![word("reason", reason)]),
            Abandoned { reason, due } => (last(), vec![text("reason", reason), number("due", due)]),
            Advanced { to, due } => (last(), vec![text("next", to), number("due", due)]),
            Retried(cause, due) => (last(), failure(cause, number("due", due))),
            Dead(cause, to) => (last(), failure(cause, text("next", to))),
            Failed(cause, kept) => (last(), failure(cause, flag("kept", kept))),
            Completed { claim, token, kept } => {
                let (_, worker) = claim.map_or_else(last, |claim| Some(of_claim(claim)).unzip());
                ((Some(token), worker), vec![flag("kept", kept)])
            }
            Ended { reason, kept, held, .. } => {
                (if held { last() } else { nobody }, vec![text("reason", reason), flag("kept", kept)])
            }
            Requeued(_) => (nobody, vec![flag("requeued", true)]),
            Updated { changed, .. } | Labelled(changed) => {
                (nobody, vec![text("changed", changed().join(",").as_bytes())])
            }
            Awaiting(waiting) => {
                let gate = &waiting.gate;
                let first = text("signal", gate.names.first().map(|name| &**name));
                let until = number("until", Some(waiting.until()).filter(|until| *until != NEVER));
                (last(), vec![first, number("signals", gate.names.len() as i64), until])
            }
            AwaitingChildren { live, .. } => (last(), vec![number("children", i64::from(live))]),
            Signalled(name, sender) => (nobody, vec![text("signal", name), text("sender", sender)]),
            Progress(worker) => {
                let progress = extras.and_then(|extras| extras.progress);
                let progress = progress.map(|progress| EventField::Percent("progress", progress));
                let stage = text("stage", extras.and_then(|extras| extras.reports.stage.as_deref()));
                ((None, worker.map(ByteString::from)), vec![progress, stage])
            }
            Deleted => (nobody, vec![word("state", job.state.name()), word("by", "delete")]),
            Retired => (nobody, vec![word("state", job.state.name()), word("by", "retention")]),
            _ => (nobody, vec![]),
        };
        let queue = Some(self.queue_name(job)).filter(|_| !matches!(what, CancelRequested));
        let token = number("token", token.map(|token| token as i64));
        (worker, [token, text("queue", queue)].into_iter().chain(own).flatten().collect())
    }

    fn count_firing(&mut self, slot: u32, turn: Option<i64>, now: i64) {
        let Ok(queue) = self.job(slot).map(|job| self.queue_number(job)) else { return };
        self.note(queue, Tally::Fired, now);
        if let Some(at) = turn {
            self.count_lateness(queue, Late::Fire, at, now);
        }
    }

    /// The history entry for the begin of a claim.
    pub(crate) fn begin_of(&self, claim: &Claim) -> Entry {
        let worker = Some(self.worker_name(claim).into());
        Entry { at: claim.claimed, ..Entry::of(Kind::Claimed, worker, None) }
    }

    /// How many entries of a history are kept: of the first, and of the last.
    pub(crate) fn history_bounds(&self) -> (usize, usize) {
        let bound = |setting| self.own(setting).max(0) as usize;
        (bound(Setting::HistoryFirst), bound(Setting::HistoryLast))
    }

    /// Writes an entry into the history of a job.
    pub(crate) fn push_history(&mut self, slot: u32, entry: Entry) -> Result<(), ApplyError> {
        let (first, last) = self.history_bounds();
        self.edit(slot, |job| {
            let extras = job.extras_mut();
            extras.modified = entry.at;
            extras.history.push(entry, first, last);
            Ok(())
        })
    }
}
