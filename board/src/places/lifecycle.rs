//! The moves of a job's life: how a run ends, where the job goes next, and what follows from it.

use crate::board::{after, duration, Board};
use crate::effect::ApplyError;
use crate::events::{text_field, EventField, EventFields, EventKind};
use crate::job::history::{Entry, HistoryKind};
use crate::job::{Claim, End, LastClaim, State, NEVER, U48};
use crate::retry::Next;
use crate::settings::Setting;
use crate::statistics::stats::Tally;
use crate::structures::byte_string::ByteString;

/// What follows from an entry of the history: what counts in the statistics, and the event.
fn projections(kind: HistoryKind) -> (Option<Tally>, Option<EventKind>) {
    match kind {
        HistoryKind::Abandoned => (Some(Tally::Abandoned), Some(EventKind::Abandoned)),
        HistoryKind::Released => (Some(Tally::Released), None),
        HistoryKind::Revived => (Some(Tally::Revived), None),
        HistoryKind::Requeued => (Some(Tally::Requeued), None),
        HistoryKind::Replaced => (Some(Tally::Replaced), None),
        HistoryKind::Expired => (Some(Tally::Expired), None),
        HistoryKind::Advanced => (None, Some(EventKind::Advanced)),
        HistoryKind::Awaiting => (Some(Tally::Awaited), Some(EventKind::Awaiting)),
        HistoryKind::Signalled => (Some(Tally::Signalled), None),
        HistoryKind::AwaitTimeout => (Some(Tally::AwaitTimeouts), None),
        HistoryKind::Cancelled => (None, Some(EventKind::Cancelled)),
        HistoryKind::Trashed => (None, Some(EventKind::Trashed)),
        _ => (None, None),
    }
}

impl Board {
    /// Something happened to a job: it counts in the statistics, stands in the history, and may be
    /// an event. The first entry during a claim is preceded by the claim's begin.
    pub(crate) fn happened(
        &mut self,
        slot: u32,
        kind: HistoryKind,
        worker: Option<ByteString>,
        text: Option<&[u8]>,
    ) -> Result<(), ApplyError> {
        self.happened_with(slot, Entry::of(kind, worker, text), |_| {})
    }

    /// The same; `more` adds fields to the event.
    pub(crate) fn happened_with(
        &mut self,
        slot: u32,
        entry: Entry,
        more: impl FnOnce(&mut EventFields),
    ) -> Result<(), ApplyError> {
        let now = self.local.moment;
        let (tally, event) = projections(entry.event);
        if let Some(tally) = tally {
            self.count_stat(slot, tally, now);
        }
        let unwritten = self.claim_of(self.job(slot)?).filter(|claim| !claim.in_history);
        if let Some(begin) = unwritten.map(|claim| self.begin_of(claim)) {
            self.claim_mut(slot)?.in_history = true;
            self.push_history(slot, begin)?;
        }
        self.push_history(slot, Entry { at: now, ..entry })?;
        if let Some(event) = event {
            self.emit_end(event, slot, more);
        }
        Ok(())
    }

    /// Takes a job out of its place and closes its run: that of its claim, or the last one when the
    /// worker is late.
    pub(crate) fn close_run(&mut self, slot: u32, end: End, now: i64) -> Result<(), ApplyError> {
        if self.job(slot)?.state.ended() {
            return Err(ApplyError);
        }
        let claim = self.leave(slot)?;
        self.count_run(slot, claim.as_ref(), now);
        match claim {
            Some(claim) => self.settle_claim(slot, claim, end, now),
            None => self.edit(slot, |job| {
                if let Some(last) = job.extras_mut().last_claim.as_mut() {
                    last.end = end;
                }
                Ok(())
            }),
        }
    }

    /// Writes into a job's record that a claim of it has ended, and emits an event to its worker if
    /// the worker did not end it.
    pub(crate) fn settle_claim(
        &mut self,
        slot: u32,
        claim: Claim,
        end: End,
        now: i64,
    ) -> Result<(), ApplyError> {
        if let Some(reason) = end.loss() {
            self.emit_lost(slot, &claim, reason);
        }
        self.write_end(slot, claim, end, now)
    }

    /// Writes into a job's record that a claim of it has ended.
    pub(crate) fn write_end(
        &mut self,
        slot: u32,
        claim: Claim,
        end: End,
        now: i64,
    ) -> Result<(), ApplyError> {
        let worker = ByteString::from(self.worker_name(&claim));
        if !claim.in_history {
            self.push_history(slot, self.begin_of(&claim))?;
        }
        match end {
            End::Lapsed | End::TimedOut => {}
            End::Taken => self.local.taken = true,
            _ => self.saw_worker(claim.worker, now),
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

    /// The history entry for the begin of a claim.
    pub(crate) fn begin_of(&self, claim: &Claim) -> Entry {
        let worker = Some(self.worker_name(claim).into());
        Entry { at: claim.claimed, ..Entry::of(HistoryKind::Claimed, worker, None) }
    }

    /// How many entries of a history are kept: of the first, and of the last.
    pub(crate) fn history_bounds(&self) -> (usize, usize) {
        let bound = |setting| self.own(setting).max(0) as usize;
        (bound(Setting::HistoryFirst), bound(Setting::HistoryLast))
    }

    pub(crate) fn push_history(&mut self, slot: u32, entry: Entry) -> Result<(), ApplyError> {
        let (first, last) = self.history_bounds();
        self.edit(slot, |job| {
            let extras = job.extras_mut();
            extras.modified = entry.at;
            extras.history.push(entry, first, last);
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
        let expire = self.class_of(job).filter(|_| expires).and_then(|c| c.options.expire).and_then(duration);
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
        self.emit_ready(slot);
        Ok(())
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
        let tally = match state {
            State::Complete => Tally::Completed,
            State::Failed => Tally::Failed,
            State::Cancelled => Tally::Cancelled,
            _ => Tally::Trashed,
        };
        self.count_stat(slot, tally, now);
        let retain = self.retained(slot, retain);
        let extras = self.extras(slot);
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
        if self.job(slot)?.state.ended() {
            return Err(ApplyError);
        }
        let claim = self.leave(slot)?;
        let (held, trashed) = (claim.is_some(), state == State::Trashed);
        if end != End::Taken || trashed {
            self.count_run(slot, claim.as_ref(), now);
        }
        if let Some(claim) = claim {
            if end == End::Taken {
                self.emit_lost(slot, &claim, "cancelled");
            }
            self.write_end(slot, claim, end, now)?;
        }
        self.edit(slot, |job| {
            let extras = job.extras_mut();
            extras.reports.set(|said| &mut said.reason, reason);
            if let (Some(last), true) = (extras.last_claim.as_mut(), held || end != End::Taken || trashed) {
                last.end = end;
            }
            Ok(())
        })?;
        let last = self.extras(slot).and_then(|r| r.last_claim.as_ref());
        let said = last.filter(|_| !trashed || end != End::Taken);
        let worker = said.map(|last| last.worker.clone());
        self.conclude(slot, state, worker, reason, retain, now)
    }

    /// Ends the life of a job that is in no place: as cancelled or trashed.
    pub(crate) fn conclude(
        &mut self,
        slot: u32,
        state: State,
        worker: Option<ByteString>,
        reason: Option<&[u8]>,
        retain: i64,
        now: i64,
    ) -> Result<(), ApplyError> {
        let kind = if state == State::Trashed { HistoryKind::Trashed } else { HistoryKind::Cancelled };
        let (kept, token) = (self.keeps(slot, retain), self.last_token(slot));
        self.happened_with(slot, Entry::of(kind, worker, reason), |fields| {
            text_field(fields, "reason", reason);
            fields.push(EventField::Flag("kept", kept));
        })?;
        self.make_ended(slot, state, token, retain, now)
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
        let last = self.extras(slot).and_then(|r| r.last_claim.as_ref()).filter(|l| l.end != End::Taken);
        let worker = last.map(|l| l.worker.clone());
        let last = matches!(next, Next::End { .. });
        let entry = Entry { last, ..Entry::failure(event, worker, kind, message) };
        self.happened_with(slot, entry, |_| {})?;
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
        if let Next::Retry { .. } = next {
            self.count_stat(slot, Tally::Retried, now);
        }
        let dead = match next {
            Next::End { .. } => self.grave(slot, event),
            Next::Retry { .. } => None,
        };
        let (emitted, last) = match (&next, &dead) {
            (_, Some(dead)) => (EventKind::Dead, EventField::Text("next", dead.clone())),
            (Next::End { retain }, None) => {
                (EventKind::Failed, EventField::Flag("kept", self.keeps(slot, *retain)))
            }
            (Next::Retry { due }, None) => (EventKind::Retried, EventField::Number("due", *due)),
        };
        self.emit_end(emitted, slot, |fields| {
            text_field(fields, "kind", Some(kind));
            text_field(fields, "message", Some(message));
            fields.push(last);
        });
        match (next, dead) {
            (_, Some(dead)) => self.die(slot, &dead, now),
            (Next::Retry { due }, None) => self.make_due(slot, due, now),
            (Next::End { retain }, None) => {
                let token = self.last_token(slot);
                self.make_ended(slot, State::Failed, token, retain, now)
            }
        }
    }
}
