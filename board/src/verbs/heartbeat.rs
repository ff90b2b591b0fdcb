//! Heartbeats: a worker is alive, keeps its job, and may report how far it is.

use crate::board::Board;
use crate::effect::{is_grace, is_lease, ApplyError, Meta, Validate};
use crate::env::Env;
use crate::error::Refusal;
use crate::job::kin::counted;
use crate::job::{self, End, State, META_MOST, NEVER};
use crate::places::happened::Happened;
use crate::settings::Setting;
use crate::verbs::holder::{Speaker, Standing};
use crate::verbs::output::Chunk;
use crate::verbs::protocol::{KeepVerb, Kept};

/// A worker's sign of life.
#[derive(Debug, Clone, Default)]
pub struct Heartbeat<'a> {
    /// The lease from now on, ms; without it the claim's own.
    pub lease: Option<i64>,
    /// A report with the heartbeat.
    pub report: Option<Report<'a>>,
    /// Output with the heartbeat.
    pub output: Option<Chunk<'a>>,
}

written! {
    /// What a worker or an operator reports on a job.
    #[derive(Debug, Clone, Default, PartialEq)]
    pub struct Report<'a> {
        /// Progress, in hundredths of a per cent.
        1 pub progress: Option<u16>,
        /// Free text on how far the job is.
        2 pub stage: Option<&'a [u8]>,
        /// A new payload.
        3 pub payload: Option<&'a [u8]>,
        /// Fields to set.
        4 pub meta: Meta<'a>,
        /// A line for the history.
        5 pub log: Option<&'a [u8]>,
    }
}

impl Board {
    /// Refuses a job that is in another queue than this one.
    pub(crate) fn check_is_in(&self, slot: u32, queue: Option<&[u8]>) -> Result<(), Refusal> {
        let Some(queue) = queue else { return Ok(()) };
        match self.job(slot).map(|job| self.queue_name(job)) {
            Ok(other) if other != queue => Err(Refusal::WrongQueue(other.into())),
            _ => Ok(()),
        }
    }

    /// Refuses more fields than a job may have.
    pub(crate) fn check_meta(&self, slot: u32, meta: &Meta<'_>) -> Result<(), Refusal> {
        if meta.is_empty() {
            return Ok(());
        }
        let fields = meta.iter().map(|(field, _)| &**field);
        match self.extras(slot).map_or(meta.len(), |extras| extras.meta_with(fields)) > META_MOST {
            true => Err(Refusal::Limit("meta fields")),
            false => Ok(()),
        }
    }
}

impl<'a> Report<'a> {
    /// A report that sets these fields.
    pub fn of(meta: Meta<'a>) -> Self {
        Report { meta, ..Report::default() }
    }

    /// Whether it says nothing.
    pub(crate) fn is_empty(&self) -> bool {
        let Report { progress, stage, payload, meta, log } = self;
        (progress, stage, payload, log) == (&None, &None, &None, &None) && meta.is_empty()
    }

    /// Writes what the last holder of a job reports with the end of its claim; `taken` as in
    /// [`Standing::Late`].
    pub(crate) fn conclude(
        &self,
        board: &mut Board,
        slot: u32,
        taken: bool,
        now: i64,
    ) -> Result<(), ApplyError> {
        if self.is_empty() {
            return Ok(());
        }
        let last = board.extras(slot).and_then(|r| r.last_claim.as_ref()).filter(|_| !taken);
        let worker = last.map(|last| last.worker.clone());
        self.apply(board, slot, worker.as_deref(), false, now)
    }

    pub(crate) fn is_valid(&self) -> bool {
        self.progress.is_none_or(|p| p <= 10_000)
    }

    /// Writes the report into a job's record; progress falls only when `back` allows it.
    pub(crate) fn apply(
        &self,
        board: &mut Board,
        slot: u32,
        worker: Option<&[u8]>,
        back: bool,
        now: i64,
    ) -> Result<(), ApplyError> {
        // A worker's progress of a parent counts until the parent has children.
        let progress = self.progress.filter(|_| back || !board.is_mean(slot));
        board.edit(slot, |job| {
            if let Some(payload) = self.payload {
                job.set_payload(payload);
            }
            let extras = job.extras_mut();
            extras.modified = now;
            if let Some(progress) = progress {
                let old = extras.progress.filter(|_| !back).unwrap_or(0);
                extras.progress = Some(progress.max(old));
            }
            if let Some(stage) = self.stage {
                extras.reports.stage = Some(stage.into());
            }
            extras.set_meta(self.meta.iter().map(|(f, v)| (&**f, &**v)));
            Ok(())
        })?;
        if self.progress.is_some() || self.stage.is_some() {
            board.happened(slot, &Happened::Progress(worker))?;
        }
        if let Some(progress) = progress {
            board.count_progress(slot, counted(progress), back)?;
        }
        if let Some(line) = self.log {
            board.happened(slot, &Happened::Log(worker, line))?;
        }
        Ok(())
    }
}

written! {
    /// A worker sent a heartbeat.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Beaten<'a> {
        /// The job.
        1 pub slot: u32,
        /// The lease, from now, ms.
        2 pub lease: i64 = 30_000,
        3 report: Option<Report<'a>>,
        /// A chunk of output.
        4 output: Option<&'a [u8]>,
    }
}

impl Validate for Beaten<'_> {
    fn is_valid(&self, _board: &Board) -> bool {
        is_lease(self.lease) && self.report.as_ref().is_none_or(Report::is_valid)
    }
}

impl<'a> Beaten<'a> {
    /// The same with a chunk of output.
    pub(crate) fn writing(self, output: Option<&'a [u8]>) -> Self {
        Beaten { output, ..self }
    }

    /// A heartbeat without a report.
    pub(crate) fn of(slot: u32, lease: i64) -> Self {
        Beaten::with(slot, lease, None)
    }

    /// A heartbeat, perhaps with a report.
    pub(crate) fn with(slot: u32, lease: i64, report: Option<Report<'_>>) -> Beaten<'_> {
        Beaten { slot, lease, report, output: None }
    }

    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        let line_end = now.saturating_add(self.lease).clamp(0, NEVER);
        board.extend(self.slot, self.lease, line_end, now)?;
        if let Some(output) = self.output {
            board.write_output(self.slot, output)?;
        }
        let Some(report) = &self.report else { return Ok(()) };
        let worker = board.claim_mut(self.slot)?.worker;
        let name = board.workers.names.key(worker).cloned().unwrap_or_default();
        report.apply(board, self.slot, Some(&name), false, now)
    }
}

written! {
    /// A worker whose lease had lapsed holds its job again, under the same token.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Revived {
        1 slot: u32,
        /// The grace after the lease, ms.
        2 grace: i64,
    }
}

impl Validate for Revived {
    fn is_valid(&self, _board: &Board) -> bool {
        is_grace(self.grace)
    }
}

impl Revived {
    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        let extras = board.extras(self.slot).ok_or(ApplyError)?;
        let last = extras.last_claim.clone().filter(|l| l.end == End::Lapsed).ok_or(ApplyError)?;
        let attempt = extras.attempt;
        if board.job(self.slot)?.state.ended() || extras.waits() {
            return Err(ApplyError);
        }
        board.leave(self.slot)?;
        board.edit(self.slot, |job| {
            let extras = job.extras_mut();
            extras.last_claim = None;
            extras.end_idle(now);
            Ok(())
        })?;
        let claim = job::Claim {
            slot: self.slot,
            worker: 0,
            token: last.token,
            attempt,
            cancel: false,
            in_history: true,
            in_grace: false,
            session: job::Session::None,
            claimed: last.claimed,
            lease: last.lease,
            lease_end: now.saturating_add(last.lease).clamp(0, NEVER),
            run_end: last.run_end,
            grace: self.grace,
            cancel_end: NEVER,
        };
        board.hand_over(self.slot, claim, &last.worker)?;
        board.happened(self.slot, &Happened::Revived)
    }
}

impl<'a> KeepVerb<'a> for Heartbeat<'a> {
    /// A late one takes the job back. O(log n).
    fn decide(&self, board: &Board, env: &Env<'_>, speaker: &Speaker<'_>) -> Result<Kept<'a>, Refusal> {
        let (slot, late) = match board.standing(env, speaker, None)? {
            Standing::Holds { slot, .. } => (slot, false),
            Standing::Late { slot, .. } => {
                board.check_concurrency(slot, false, env.now)?;
                (slot, true)
            }
            Standing::Again(state) => return Err(Refusal::NotClaimed(state)),
        };
        if let Some(report) = &self.report {
            board.check_meta(slot, &report.meta)?;
        }
        let output = board.to_write(slot, self.output)?;
        let lease = self.lease.or_else(|| board.lease_of(slot)).ok_or(Refusal::NoJob)?;
        let beaten = Beaten { slot, lease, report: self.report.clone(), output };
        let revived = late.then(|| board.revive(env, slot));
        Ok(Kept { slot, revived, stepped: None, beaten: Some(beaten) })
    }
}

impl Board {
    /// Moves the end of a lease.
    pub(super) fn extend(
        &mut self,
        slot: u32,
        lease: i64,
        lease_end: i64,
        now: i64,
    ) -> Result<(), ApplyError> {
        let worker = self.reclock(slot, |claim| {
            claim.lease = lease;
            if claim.session == job::Session::Lost {
                claim.session = job::Session::Carried;
            }
            claim.lease_end = lease_end;
            claim.in_grace = false;
            claim.worker
        })?;
        // The claim says when: what few jobs have is not looked at, which may be far off in memory.
        self.renew(slot)?;
        self.saw_worker(worker, now);
        Ok(())
    }

    /// Changes the times of a claim, and with them its place.
    pub(crate) fn retime<R>(
        &mut self,
        slot: u32,
        change: impl FnOnce(&mut job::Claim) -> R,
    ) -> Result<R, ApplyError> {
        let done = self.reclock(slot, change)?;
        self.touch(slot)?;
        Ok(done)
    }

    /// The same, and leaves the record as it is.
    fn reclock<R>(&mut self, slot: u32, change: impl FnOnce(&mut job::Claim) -> R) -> Result<R, ApplyError> {
        let (jobs, claims) = (&self.store.jobs, &mut self.store.claims);
        let job = jobs.get(slot).filter(|j| j.state == State::Claimed).ok_or(ApplyError)?;
        let number = job.at.get() as u32;
        let claim = claims.get_mut(number).ok_or(ApplyError)?;
        let key = job.lease_key(claim);
        if !self.places.leases.remove(key, slot) {
            return Err(ApplyError);
        }
        let done = change(claim);
        let key = job.lease_key(claim);
        let store = &self.store;
        self.places.leases.insert(key, slot, |s| store.lease_key(s));
        self.wake_at(key.0);
        Ok(done)
    }

    /// A late worker gets its job back.
    pub(super) fn revive(&self, env: &Env<'_>, slot: u32) -> Revived {
        let grace = self.store.jobs.get(slot).map_or(0, |job| self.job_rule(job, Setting::Grace, env.rules));
        Revived { slot, grace }
    }

    /// The lease of a claim, or of the last one, ms.
    pub(super) fn lease_of(&self, slot: u32) -> Option<i64> {
        let job = self.store.jobs.get(slot)?;
        match self.claim_of(job) {
            Some(claim) => Some(claim.lease),
            None => Some(job.extras.as_ref()?.last_claim.as_ref()?.lease),
        }
    }

    /// Decides that a worker keeps a job that it holds.
    pub fn keep(&self, slot: u32, lease: Option<i64>) -> Option<Beaten<'static>> {
        let claim = self.claim_of(self.store.jobs.get(slot)?)?;
        Some(Beaten::of(slot, lease.unwrap_or(claim.lease)))
    }

    /// When the claim of a job ends by itself, Unix ms, and whether its holder is asked to stop.
    pub fn hold_on(&self, slot: u32) -> Option<(i64, bool)> {
        let claim = self.claim_of(self.store.jobs.get(slot)?)?;
        Some((claim.deadline(), claim.cancel))
    }
}
