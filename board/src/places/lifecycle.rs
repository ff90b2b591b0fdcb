//! The moves of a job's life: how a run ends, where the job goes next, and what follows from it.

use crate::board::{after, duration, Board};
use crate::effect::ApplyError;
use crate::job::history::HistoryKind;
use crate::job::{Claim, End, LastClaim, State, NEVER, U48};
use crate::places::happened::Happened;
use crate::retry::Next;
use crate::settings::Rules;
use crate::structures::byte_string::ByteString;

/// The kind of a failure that the server itself notes.
pub(crate) fn own_kind(event: HistoryKind) -> &'static [u8] {
    match event {
        HistoryKind::AwaitTimeout => b"signal",
        event => event.name().as_bytes(),
    }
}

impl Board {
    /// Takes a live job out of its place, and closes its run: that of its claim, or, when its worker
    /// reports the end, the last one. `taken` says why the claim was taken, if it was.
    pub(crate) fn close_run(
        &mut self,
        slot: u32,
        end: End,
        taken: &'static str,
        reported: bool,
        now: i64,
    ) -> Result<(), ApplyError> {
        if self.job(slot)?.state.ended() {
            return Err(ApplyError);
        }
        let claim = self.leave(slot)?;
        if reported {
            self.count_run(slot, claim.as_ref(), now);
        }
        match claim {
            Some(claim) => self.settle_claim(slot, &claim, end, taken, now),
            None if reported => self.edit(slot, |job| {
                if let Some(last) = job.extras_mut().last_claim.as_mut() {
                    last.end = end;
                }
                Ok(())
            }),
            None => Ok(()),
        }
    }

    /// A claim has ended: its worker is alive, or has lost the job; `taken` says why it was taken.
    pub(crate) fn claim_ended(
        &mut self,
        slot: u32,
        claim: &Claim,
        end: End,
        taken: &'static str,
        now: i64,
    ) -> Result<(), ApplyError> {
        match end {
            End::Lapsed => self.happened(slot, &Happened::Lost(claim, end, "lapsed"))?,
            End::TimedOut => self.happened(slot, &Happened::Lost(claim, end, "timeout"))?,
            End::Taken => {
                self.happened(slot, &Happened::Lost(claim, end, taken))?;
                self.local.taken = true;
            }
            _ => self.saw_worker(claim.worker, now),
        }
        Ok(())
    }

    /// The same, and writes it into the job's record.
    pub(crate) fn settle_claim(
        &mut self,
        slot: u32,
        claim: &Claim,
        end: End,
        taken: &'static str,
        now: i64,
    ) -> Result<(), ApplyError> {
        self.claim_ended(slot, claim, end, taken, now)?;
        let worker = ByteString::from(self.worker_name(claim));
        if !claim.in_history {
            self.push_history(slot, self.begin_of(claim))?;
        }
        self.edit(slot, |job| {
            let extras = job.extras_mut();
            extras.attempt = claim.attempt;
            extras.modified = now;
            extras.last_claim = Some(Box::new(LastClaim {
                worker,
                token: claim.token,
                end,
                claimed: claim.claimed,
                lease: claim.lease,
                run_end: claim.run_end,
            }));
            Ok(())
        })
    }

    /// Makes a job that is in no place ready, in its former order; blocked while it waits for
    /// others, for signals or for its children.
    pub(crate) fn make_ready(&mut self, slot: u32, now: i64) -> Result<(), ApplyError> {
        let job = self.store.jobs.get(slot).ok_or(ApplyError)?;
        if job.extras.as_ref().is_some_and(|extras| extras.waits()) {
            return match self.still_waits(slot, now)? {
                true => self.make_waiting(slot, State::Blocked, 0, now),
                false => self.make_ready(slot, now),
            };
        }
        let expires = job.extras.as_ref().is_none_or(|extras| extras.origin.is_none());
        let expire =
            self.class_of(job).filter(|_| expires).and_then(|c| c.options().expire).and_then(duration);
        let job = self.store.jobs.get_mut(slot).ok_or(ApplyError)?;
        let first = job.since.get() == NEVER;
        if first {
            job.since = U48::new(now);
        }
        let mut at = expire.map_or(NEVER, |ms| after(job.since.get(), ms));
        if job.extras.is_some() {
            self.edit(slot, |job| {
                let back = !first && job.state != State::Ready;
                let (since, extras) = (job.since.get(), job.extras_mut());
                if back {
                    extras.retrying.ready = now;
                }
                extras.end_idle(now);
                at = expire.map_or(NEVER, |ms| after(since.saturating_add(extras.retrying.idle), ms));
                Ok(())
            })?;
        }
        self.enter(slot, State::Ready, at)?;
        self.happened(slot, &Happened::Ready)
    }

    /// Schedules a job that is in no place until it is due, or makes it ready at once; blocked while
    /// it waits for others.
    pub(crate) fn make_due(&mut self, slot: u32, due: i64, now: i64) -> Result<(), ApplyError> {
        match due > now {
            true => self.make_scheduled(slot, due, now),
            false => self.make_ready(slot, now),
        }
    }

    /// Schedules a job that is in no place until it is due; blocked while it waits for others.
    pub(crate) fn make_scheduled(&mut self, slot: u32, due: i64, now: i64) -> Result<(), ApplyError> {
        let state = match self.waits(slot) && self.still_waits(slot, now)? {
            true => State::Blocked,
            false => State::Scheduled,
        };
        self.make_waiting(slot, state, due, now)
    }

    pub(crate) fn make_waiting(
        &mut self,
        slot: u32,
        state: State,
        due: i64,
        now: i64,
    ) -> Result<(), ApplyError> {
        if self.job(slot)?.since.get() != NEVER {
            self.edit(slot, |job| {
                let extras = job.extras_mut();
                if extras.retrying.idle_from == NEVER {
                    extras.retrying.idle_from = now;
                }
                Ok(())
            })?;
        }
        self.enter(slot, state, due)
    }

    /// Ends the life of a job that is in no place: its record is retained for `retain` ms, or
    /// removed.
    pub(crate) fn make_ended(
        &mut self,
        slot: u32,
        state: State,
        token: u64,
        retain: i64,
        now: i64,
    ) -> Result<(), ApplyError> {
        let extras = self.extras(slot);
        let retain = self.retained(extras, retain);
        let depends = extras.is_some_and(|extras| !extras.after.is_empty());
        let awaits = extras.is_some_and(|extras| extras.remembered.waiting.is_some());
        let awaited = extras.is_some_and(|extras| extras.awaited > 0);
        let related = extras.is_some_and(|extras| extras.family.is_some());
        let frees = extras.and_then(|extras| extras.unique.as_ref()).is_some_and(|unique| unique.at_end());
        if depends {
            self.detach_all(slot, now)?;
        }
        if awaits {
            self.end_waiting(slot, now)?;
        }
        if frees {
            self.free_key(slot);
        }
        if related {
            self.end_child_wait(slot, now)?;
            self.end_in_family(slot, state, retain != 0, now)?;
        }
        if awaited {
            self.resolve_from(slot, 0)?;
        }
        let pinned = awaited || related && self.pinned(slot);
        if !pinned && retain == 0 {
            return self.drop_with_tombstone(slot, state, token, now, now);
        }
        let (at, revision) = (after(now, retain), self.revision as i64);
        self.edit(slot, |job| {
            let extras = job.extras_mut();
            extras.ended = now;
            extras.closed = revision;
            extras.modified = now;
            if let Some(tried) = extras.retrying.there() {
                tried.idle_from = NEVER;
            }
            extras.drop_at = if pinned { at } else { 0 };
            Ok(())
        })?;
        self.enter(slot, state, if pinned { NEVER } else { at })
    }

    /// Ends the life of a live job without success, whoever holds it.
    pub(crate) fn end_job(
        &mut self,
        slot: u32,
        state: State,
        end: End,
        reason: Option<&[u8]>,
        retain: i64,
        now: i64,
    ) -> Result<(), ApplyError> {
        let reported = end != End::Taken || state == State::Trashed;
        let held = reported || self.claim_of(self.job(slot)?).is_some();
        self.close_run(slot, end, "cancelled", reported, now)?;
        self.edit(slot, |job| {
            job.extras_mut().reports.set_text(|said| &mut said.reason, reason);
            Ok(())
        })?;
        self.conclude(slot, state, reason, held, retain, now)
    }

    /// Ends the life of a live job that nobody holds: cancelled for this reason, or failed.
    pub(crate) fn give_up(
        &mut self,
        slot: u32,
        state: State,
        event: HistoryKind,
        text: &[u8],
        rules: &Rules,
    ) -> Result<(), ApplyError> {
        let (now, retain) = (self.local.moment, self.retention(state, rules));
        if state == State::Cancelled {
            return self.end_job(slot, state, End::Taken, Some(text), retain, now);
        }
        self.leave(slot)?;
        self.fail_job(slot, event, own_kind(event), text, Next::End { retain }, now)
    }

    /// Ends the life of a job that is in no place: as cancelled or trashed. `held`: that ends the
    /// claim of a worker.
    pub(crate) fn conclude(
        &mut self,
        slot: u32,
        state: State,
        reason: Option<&[u8]>,
        held: bool,
        retain: i64,
        now: i64,
    ) -> Result<(), ApplyError> {
        let kept = self.keeps(slot, retain);
        self.happened(slot, &Happened::Ended { state, reason, kept, held })?;
        self.make_ended(slot, state, self.last_token(slot), retain, now)
    }

    /// Writes a failure into a job that is in no place, and puts it where it belongs.
    pub(crate) fn fail_job(
        &mut self,
        slot: u32,
        event: HistoryKind,
        kind: &[u8],
        message: &[u8],
        next: Next,
        now: i64,
    ) -> Result<(), ApplyError> {
        let last = matches!(next, Next::End { .. });
        self.happened(slot, &Happened::Failure { event, kind, message, last })?;
        self.set_kind(slot, kind)?;
        self.edit(slot, |job| {
            let extras = job.extras_mut();
            extras.reports.message = (!message.is_empty()).then(|| message.into());
            extras.modified = now;
            use HistoryKind::{AwaitTimeout, Dependency, Expired, Lapsed};
            if !matches!(event, Lapsed | Expired | Dependency | AwaitTimeout) {
                extras.fails = extras.fails.saturating_add(1);
            }
            Ok(())
        })?;
        match next {
            Next::Retry { due } => {
                self.happened(slot, &Happened::Retried((kind, message), due))?;
                self.make_due(slot, due, now)
            }
            Next::End { retain } => match self.grave(slot, event) {
                Some(dead) => {
                    self.happened(slot, &Happened::Dead((kind, message), &dead))?;
                    self.die(slot, &dead, now)
                }
                None => {
                    self.happened(slot, &Happened::Failed((kind, message), self.keeps(slot, retain)))?;
                    self.make_ended(slot, State::Failed, self.last_token(slot), retain, now)
                }
            },
        }
    }

    /// Whether the record of a job that ends now is retained.
    pub(crate) fn keeps(&self, slot: u32, retain: i64) -> bool {
        let extras = self.extras(slot);
        self.retained(extras, retain) != 0 || extras.is_some_and(|extras| extras.pins().any())
    }
}
