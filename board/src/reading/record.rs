//! A job as clients see it.

use crate::board::Board;
use crate::job::costs::{PackedCosts, Spending};
use crate::job::gate::Waiting;
use crate::job::history::{Entry, History, HistoryKind};
use crate::job::id::Id;
use crate::job::kin::ChildWait;
use crate::job::remembered::{Memo, Remembered};
use crate::job::{Claim, Extras, Job, LastClaim, Origin, Session, State, NEVER};
use crate::reading::fields::Fields;
use crate::settings::{Rules, Setting};
use crate::structures::lazy::Part;

/// One job, to read.
pub struct Record<'a> {
    board: &'a Board,
    job: &'a Job,
    slot: u32,
    claim: Option<&'a Claim>,
    extras: Option<&'a Extras>,
}

impl Board {
    /// The record in a slot.
    #[inline]
    pub fn record_of(&self, slot: u32) -> Option<Record<'_>> {
        let job = self.store.jobs.get(slot)?;
        let claim = self.claim_of(job);
        Some(Record { board: self, job, slot, claim, extras: job.extras.as_deref() })
    }
}

#[allow(missing_docs)]
impl<'a> Record<'a> {
    pub fn id(&self) -> Id<&'a [u8]> {
        self.board.store.id(self.slot, self.job)
    }
    pub fn seq(&self) -> i64 {
        self.job.seq.get()
    }
    pub fn state(&self) -> State {
        self.job.state
    }
    pub fn queue(&self) -> &'a [u8] {
        self.board.queue_name(self.job)
    }
    pub fn name(&self) -> Option<&'a [u8]> {
        let name: &[u8] = &self.board.class_of(self.job)?.name;
        (!name.is_empty()).then_some(name)
    }
    pub fn group(&self) -> Option<&'a [u8]> {
        self.board.group_name(self.job)
    }
    /// Permits that a claim of it takes, if its post named a number.
    pub fn cost(&self) -> Option<i64> {
        self.job.cost()
    }
    /// Permits that a claim of it takes of single limits, by name.
    pub fn costs(&self) -> PackedCosts<'a> {
        self.job.costs()
    }
    /// What its claim, or the last one, has cost so far, as far as its worker has said it.
    pub fn spent(&self) -> Option<&'a Spending> {
        self.board.spent(self.slot, self.board.run_of(self.slot).0)
    }
    pub fn payload(&self) -> &'a [u8] {
        self.job.payload()
    }
    pub fn priority(&self) -> i32 {
        self.job.priority
    }
    /// How many times it has been claimed.
    pub fn attempt(&self) -> u32 {
        let before = self.extras.map_or(0, |r| r.attempt);
        self.claim.map_or(before, |c| c.attempt)
    }
    pub fn left(&self, rules: &Rules) -> i64 {
        self.board.retries_left(self.slot, rules)
    }
    /// How many failures are followed by another try, -1 without end.
    pub fn retries(&self, rules: &Rules) -> i64 {
        self.board.job_rule(self.job, Setting::Retries, rules)
    }
    fn last(&self) -> Option<&'a LastClaim> {
        self.extras?.last_claim.as_deref()
    }
    /// The fencing token of its current claim.
    pub fn token(&self) -> Option<u64> {
        self.claim.map(|c| c.token)
    }
    pub fn worker(&self) -> Option<&'a [u8]> {
        self.claim.map(|c| self.board.worker_name(c))
    }
    /// When the claim ends by itself, Unix ms.
    pub fn deadline(&self) -> Option<i64> {
        self.claim.map(|c| c.deadline())
    }
    /// Until when its worker keeps it if no heartbeat comes, Unix ms: the grace after the lease and the
    /// worker's registration count.
    pub fn until(&self) -> Option<i64> {
        let claim = self.claim?;
        let worker = self.board.workers.names.get(claim.worker)?;
        Some(claim.ends_at().min(worker.until))
    }
    /// Whether its claim ends when a connection closes.
    pub fn session(&self) -> bool {
        self.claim.is_some_and(|c| c.session != Session::None)
    }
    pub fn cancel(&self) -> bool {
        self.claim.is_some_and(|c| c.cancel)
    }
    pub fn kind(&self) -> Option<&'a [u8]> {
        self.extras?.reports.kind.as_deref()
    }
    pub fn message(&self) -> Option<&'a [u8]> {
        self.extras?.reports.message.as_deref()
    }
    pub fn stage(&self) -> Option<&'a [u8]> {
        self.extras?.reports.stage.as_deref()
    }
    /// Per cent: 100 when it is complete, whatever was last reported.
    pub fn progress(&self) -> Option<f64> {
        let said = f64::from(self.extras?.progress?) / 100.0;
        Some(if self.job.state == State::Complete { 100.0 } else { said })
    }
    pub fn posted(&self) -> i64 {
        self.job.posted.get()
    }
    /// When a delayed job becomes ready at the earliest, Unix ms.
    pub fn due(&self) -> Option<i64> {
        let at = self.job.at.get();
        let delayed = self.job.state == State::Scheduled || self.job.state == State::Blocked && at > 0;
        delayed.then_some(at)
    }
    /// When its last claim began, Unix ms.
    pub fn claimed(&self) -> Option<i64> {
        self.claim.map(|c| c.claimed).or_else(|| self.last().map(|l| l.claimed))
    }
    pub fn ended(&self) -> Option<i64> {
        self.extras.filter(|_| self.job.state.ended()).map(|r| r.ended)
    }
    /// When it last changed, Unix ms.
    pub fn modified(&self) -> i64 {
        let when = |time| if time == NEVER { 0 } else { time };
        let ready = when(self.job.since.get());
        let claimed = self.claim.map_or(0, Claim::beaten);
        let extras = self.extras.map_or(0, |r| r.modified.max(when(r.retrying.ready)));
        self.posted().max(ready).max(claimed).max(extras)
    }
    /// The board's revision when it last changed.
    pub fn version(&self) -> i64 {
        self.job.version.get()
    }
    pub fn result(&self) -> Option<&'a [u8]> {
        self.extras?.reports.result.as_deref()
    }
    pub fn meta(&self) -> impl ExactSizeIterator<Item = (&'a [u8], &'a [u8])> {
        self.extras.map_or(&[][..], |r| &r.meta).iter().map(|(f, v)| (&**f, &**v))
    }
    /// The worker that held it last, while nobody holds it.
    pub fn previous(&self) -> Option<&'a [u8]> {
        self.last().map(|l| &*l.worker)
    }
    pub fn reason(&self) -> Option<&'a [u8]> {
        self.extras?.reports.reason.as_deref()
    }
    /// The ids of the jobs that it waits for, in the order of their posts.
    pub fn after(&self) -> Vec<Id<&'a [u8]>> {
        let edges = self.extras.map_or(&[][..], |r| &r.after);
        let store = &self.board.store;
        let mut jobs: Vec<(u32, &Job)> =
            edges.iter().filter_map(|edge| Some((edge.slot, store.jobs.get(edge.slot)?))).collect();
        jobs.sort_unstable_by_key(|(_, job)| job.seq.get());
        jobs.into_iter().map(|(slot, job)| store.id(slot, job)).collect()
    }
    /// The time of its schedule for which it was posted, Unix ms.
    pub fn intended(&self) -> Option<i64> {
        self.extras?.intended
    }
    /// Its tags, in the order in which users gave them.
    pub fn tags(&self) -> impl ExactSizeIterator<Item = &'a [u8]> {
        self.board.places.labels.tags(self.slot)
    }
    pub fn tracked(&self) -> bool {
        self.board.places.labels.tracked(self.slot)
    }
    /// About how many bytes its payload and its other own data take.
    pub fn weight(&self) -> usize {
        self.job.heap()
    }
    /// On whose behalf it was posted.
    pub fn user(&self) -> Option<&'a [u8]> {
        self.extras?.user.as_deref()
    }
    /// The id of its parent, if the parent has a record.
    pub fn parent(&self) -> Option<Id<&'a [u8]>> {
        self.board.id(self.board.parent_of(self.slot)?)
    }
    /// Whether this is the id of its parent.
    pub fn is_child_of(&self, id: &[u8]) -> bool {
        self.board.parent_of(self.slot).is_some_and(|parent| self.board.find(id) == Some(parent))
    }
    /// Whether it waits for the job of this id.
    pub fn waits_for(&self, id: &[u8]) -> bool {
        let edges = self.board.edges(self.slot);
        let awaited = if edges.is_empty() { None } else { self.board.find(id) };
        awaited.is_some_and(|slot| edges.binary_search_by_key(&slot, |edge| edge.slot).is_ok())
    }
    /// The signals that have arrived, in the order in which they did.
    pub fn signals(&self) -> std::slice::Iter<'a, Memo> {
        self.extras.map_or(&Remembered::BLANK.signals, |extras| &extras.remembered.signals).iter()
    }
    /// What it waits for from outside.
    pub fn waiting(&self) -> Option<&'a Waiting> {
        self.extras?.remembered.waiting.as_deref()
    }
    /// Whether it waits for this signal, which has not arrived.
    pub fn awaits(&self, name: &[u8]) -> bool {
        self.waiting().is_some_and(|waiting| waiting.gate.names(name))
            && self.board.signal(self.slot, name).is_none()
    }
    /// Its weight among the children of its parent.
    pub fn share(&self) -> Option<u32> {
        self.board.parent_of(self.slot).and(self.board.tie(self.slot)).map(|tie| tie.share)
    }
    /// How many children count in its progress, with or without a record.
    pub fn children(&self) -> Option<u64> {
        self.board.children(self.slot).map(|children| children.count).filter(|n| *n > 0)
    }
    /// How many of its children have not ended.
    pub fn pending(&self) -> u32 {
        self.board.children(self.slot).map_or(0, |children| children.live)
    }
    /// How many of its children ended without success, with or without a record.
    pub fn unsuccessful(&self) -> u64 {
        self.board.children(self.slot).map_or(0, |children| children.unsuccessful)
    }
    /// Its wait for its children.
    pub fn child_wait(&self) -> Option<&'a ChildWait> {
        self.board.child_wait(self.slot)
    }
    /// Where it was before it moved to the dead queue.
    pub fn origin(&self) -> Option<&'a Origin> {
        self.extras?.origin.as_deref()
    }
    /// Its unique key.
    pub fn unique(&self) -> Option<&'a [u8]> {
        Some(&self.extras?.unique.as_ref()?.key)
    }
    /// What the steps of its work came to, in the order in which they were stored: name, value, and
    /// when, Unix ms.
    pub fn steps(&self) -> impl ExactSizeIterator<Item = (&'a [u8], &'a [u8], i64)> {
        let steps = self.extras.map_or(&Remembered::BLANK.steps, |extras| &extras.remembered.steps);
        steps.iter().map(|step| (&*step.name, &*step.value, step.at))
    }
    /// How many leases it has lost.
    pub fn lapses(&self) -> u32 {
        self.extras.map_or(0, |r| r.lapses)
    }

    /// The fields that it has.
    pub fn present(&self) -> Fields {
        let some = |has: bool, field: Fields| if has { field } else { Fields::empty() };
        let always = Fields::ID
            | Fields::SEQ
            | Fields::STATE
            | Fields::QUEUE
            | Fields::PAYLOAD
            | Fields::PRIORITY
            | Fields::ATTEMPT
            | Fields::LEFT
            | Fields::RETRIES
            | Fields::LAPSES
            | Fields::HISTORY
            | Fields::POSTED
            | Fields::MODIFIED
            | Fields::VERSION;
        let mut present =
            always | some(self.name().is_some(), Fields::NAME) | some(self.due().is_some(), Fields::DUE);
        present |= some(self.job.group().is_some(), Fields::GROUP);
        present |= some(self.tags().len() > 0, Fields::TAGS) | some(self.tracked(), Fields::TRACKED);
        if self.job.is_priced() {
            present |=
                some(self.cost().is_some(), Fields::COST) | some(!self.costs().is_empty(), Fields::COSTS);
        }
        if self.claim.is_some() {
            present |= Fields::TOKEN | Fields::WORKER | Fields::DEADLINE | Fields::CLAIMED | Fields::UNTIL;
            present |= some(self.session(), Fields::SESSION);
        }
        if let Some(extras) = self.extras {
            let last = extras.last_claim.is_some();
            present |= some(last, Fields::CLAIMED | Fields::PREVIOUS)
                | some(extras.reports.kind.is_some(), Fields::KIND)
                | some(extras.reports.message.is_some(), Fields::MESSAGE)
                | some(extras.reports.stage.is_some(), Fields::STAGE)
                | some(extras.progress.is_some(), Fields::PROGRESS)
                | some(self.job.state.ended(), Fields::ENDED)
                | some(extras.reports.result.is_some(), Fields::RESULT)
                | some(!extras.meta.is_empty(), Fields::META)
                | some(extras.reports.reason.is_some(), Fields::REASON)
                | some(extras.intended.is_some(), Fields::INTENDED)
                | some(!extras.after.is_empty(), Fields::AFTER)
                | some(extras.user.is_some(), Fields::USER)
                | some(extras.unique.is_some(), Fields::UNIQUE)
                | some(extras.remembered.steps.len() > 0, Fields::STEPS)
                | some(extras.remembered.signals.len() > 0, Fields::SIGNALS)
                | some(extras.remembered.waiting.is_some() || extras.child_wait().is_some(), Fields::AWAITS)
                | some(extras.origin.is_some(), Fields::ORIGIN)
                | some(extras.remembered.spending.is_some() && self.spent().is_some(), Fields::SPENT);
            if extras.family.is_some() {
                present |= some(self.parent().is_some(), Fields::PARENT | Fields::SHARE)
                    | some(
                        self.children().is_some(),
                        Fields::CHILDREN | Fields::PENDING | Fields::UNSUCCESSFUL,
                    );
            }
        }
        present
    }

    /// Its history, oldest first: the kept entries, with the post before them and the current claim
    /// after them.
    pub fn history(&self) -> Vec<Entry> {
        let kept = self.extras.map_or(&[][..], |r| r.history.entries());
        let begin = self.posted().min(kept.first().map_or(i64::MAX, |entry| entry.at));
        let posted = Entry { at: begin, ..Entry::of(HistoryKind::Posted, None, None) };
        let run = self.claim.filter(|claim| !claim.in_history).map(|claim| self.board.begin_of(claim));
        let mut all = History::default();
        let (first, last) = self.board.history_bounds();
        for entry in std::iter::once(posted).chain(kept.iter().cloned()).chain(run) {
            all.push(entry, first, last);
        }
        all.entries().to_vec()
    }
}
