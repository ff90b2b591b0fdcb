//! What time does to a board, in this order: unique keys become free, workers' registrations lapse,
//! leases end and their grace begins, claims and runs end, waits for signals time out, delayed jobs become ready, schedules fire, unclaimed jobs expire, records
//! are removed after their retention, pauses end, days of statistics are dropped.

use crate::board::{after, Board};
use crate::effect::{ApplyError, Effect, Validate};
use crate::env::{mix, Env};
use crate::job::history::HistoryKind;
use crate::job::{End, State};
use crate::places::happened::Happened;
use crate::policy::Policy;
use crate::retry::{self, Next};
use crate::settings::{Rules, Setting};
use crate::statistics::stats::Late;
use crate::structures::sorted::SortedSlots;

/// One of the lines of jobs that are ordered by a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ClockLine {
    /// Delayed jobs, by when they are due.
    Due = 0,
    /// Claims, by when they end.
    Leases = 1,
    /// Ready jobs that expire, by when.
    Expiries = 2,
    /// Records of ended jobs, by when they are removed.
    Drops = 3,
    /// Blocked jobs whose wait for signals can time out, by when.
    Waits = 4,
}

impl ClockLine {
    const ALL: [ClockLine; 5] =
        [ClockLine::Leases, ClockLine::Waits, ClockLine::Due, ClockLine::Expiries, ClockLine::Drops];

    /// Whether nothing of it happens while claims are held: whoever could act in time has no server.
    fn is_held(self, env: &Env<'_>) -> bool {
        matches!(self, ClockLine::Leases | ClockLine::Waits) && env.hold > env.now
    }
}

numbered!(ClockLine, "line": Due, Leases, Expiries, Drops, Waits);

written! {
    /// Time did to one job what was due.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Settled {
        1 slot: u32,
        2 seed: u64,
        3 policy: Policy,
    }
}

impl Validate for Settled {
    fn is_valid(&self, _board: &Board) -> bool {
        self.policy.is_valid()
    }
}

impl Settled {
    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        board.time_passes(self.slot, now, self.seed, &self.policy.rules())
    }
}

written! {
    /// Time did to the first jobs of a line what was due by `until`, in up to `n` steps: most jobs
    /// take one.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Elapsed {
        1 line: ClockLine,
        2 until: i64,
        3 n: u32,
        4 seed: u64,
        5 policy: Policy,
    }
}

impl Validate for Elapsed {
    fn is_valid(&self, _board: &Board) -> bool {
        self.policy.is_valid()
    }
}

impl Elapsed {
    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        let rules = self.policy.rules();
        let mut left = self.n;
        while left > 0 {
            let Some(slot) = board.overdue_head(self.line, self.until) else { return Ok(()) };
            left = left.saturating_sub(1 + board.steps_for_edges(slot));
            board.time_passes(slot, now, self.seed, &rules)?;
        }
        Ok(())
    }
}

written! {
    /// The server removed the oldest records in an ended state: there were more than its limit.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Trimmed {
        1 state: State,
        2 n: u32,
    }
}

impl Validate for Trimmed {}

impl Trimmed {
    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        if !self.state.ended() {
            return Err(ApplyError);
        }
        for _ in 0..self.n {
            match board.places.ended.line(self.state, false).and_then(SortedSlots::first) {
                Some(slot) => board.retire(slot, now)?,
                None => return Ok(()),
            }
        }
        Ok(())
    }
}

written! {
    /// Time freed the first `n` keys, as far as their time was over at `until`.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Freed {
        1 until: i64,
        2 n: u32,
    }
}

impl Validate for Freed {}

impl Freed {
    pub(crate) fn apply(&self, board: &mut Board, _now: i64) -> Result<(), ApplyError> {
        board.free_keys(self.until, self.n);
        Ok(())
    }
}

impl Board {
    fn overdue_head(&self, line: ClockLine, until: i64) -> Option<u32> {
        let slot = match line {
            ClockLine::Due => self.places.due.first(),
            ClockLine::Leases => self.places.leases.first(),
            ClockLine::Expiries => self.places.seldom.expiries.first(),
            ClockLine::Drops => self.places.seldom.drops.first(),
            ClockLine::Waits => self.places.seldom.waits.first(),
        }?;
        (self.time_of(slot)? <= until).then_some(slot)
    }

    /// When time next changes a job, Unix ms, or [`NEVER`]; 0 for at once.
    pub(crate) fn time_of(&self, slot: u32) -> Option<i64> {
        let job = self.store.jobs.get(slot)?;
        Some(match job.state {
            State::Blocked => job.wait_until(),
            State::Claimed => {
                let claim = self.claim_of(job)?;
                let worker = self.workers.names.get(claim.worker)?;
                match claim.token <= worker.gone {
                    true => 0,
                    false => claim.next_at().min(worker.until),
                }
            }
            _ => job.at.get(),
        })
    }

    /// Does to one job what is due by now.
    fn time_passes(&mut self, slot: u32, now: i64, seed: u64, rules: &Rules) -> Result<(), ApplyError> {
        let job = self.job(slot)?;
        match job.state {
            State::Blocked if !self.untold(slot) && job.wait_until() <= now => {
                self.wait_times_out(slot, now, rules)
            }
            State::Blocked => self.resolve_one(slot, now, rules),
            State::Scheduled => {
                let (due, queue) = (job.at.get(), self.queue_number(job));
                self.count_lateness(queue, Late::Due, due, now);
                self.leave(slot)?;
                self.make_ready(slot, due)
            }
            State::Ready => self.give_up(slot, State::Failed, HistoryKind::Expired, b"", rules),
            State::Claimed => self.claim_ends(slot, now, seed, rules),
            _ => self.retire(slot, now),
        }
    }

    /// Ends a claim that is over by now: by itself, or with its worker's registration.
    pub(crate) fn claim_ends(
        &mut self,
        slot: u32,
        now: i64,
        seed: u64,
        rules: &Rules,
    ) -> Result<(), ApplyError> {
        let goes = self.goes(slot, now);
        if goes == Some(false) {
            return self.give_back(slot, now, rules);
        }
        if goes.is_none() && self.begins_grace(slot, now) {
            return self.begin_grace(slot);
        }
        let claim = self.leave(slot)?.ok_or(ApplyError)?;
        let timed_out = goes.is_none() && claim.run_end <= claim.lapses_at();
        let called_off = goes.is_none() && claim.cancel_end <= claim.run_end.min(claim.lapses_at());
        let cancel = claim.cancel;
        let queue = self.queue_number(self.job(slot)?);
        if goes.is_none() {
            self.count_lateness(queue, Late::Lease, claim.ends_at(), now);
        }
        let end = match (called_off, timed_out) {
            (true, _) => End::Taken,
            (false, true) => End::TimedOut,
            (false, false) => End::Lapsed,
        };
        if end == End::Lapsed && !self.workers.registrations.is_empty() {
            let name = self.workers.names.key(claim.worker).cloned().unwrap_or_default();
            self.workers.registrations.lost(&name);
        }
        self.settle_claim(slot, &claim, end, "cancelled", now)?;
        if cancel {
            let retain = self.retention(State::Cancelled, rules);
            return self.conclude(slot, State::Cancelled, None, true, retain, now);
        }
        if timed_out {
            let seq = self.job(slot)?.seq.get() as u64;
            let next = self.next_try(slot, rules, mix(seed ^ seq), now)?;
            return self.fail_job(slot, HistoryKind::Timeout, b"timeout", b"", next, now);
        }
        let job = self.job(slot)?;
        let most = self.job_rule(job, Setting::Lapses, rules);
        let lapses = job.extras.as_ref().map_or(0, |r| r.lapses);
        self.edit(slot, |job| {
            let extras = job.extras_mut();
            extras.lapses = extras.lapses.saturating_add(1);
            Ok(())
        })?;
        if most >= 0 && i64::from(lapses) >= most {
            let next = Next::End { retain: self.retention(State::Failed, rules) };
            return self.fail_job(slot, HistoryKind::Lapsed, b"lapsed", b"", next, now);
        }
        self.happened(slot, &Happened::Lapsed)?;
        let due = self.after_lapse(slot, rules, seed, now)?;
        self.make_due(slot, due, now)
    }

    /// When a job that has lost a lease may be claimed again, Unix ms.
    fn after_lapse(&self, slot: u32, rules: &Rules, seed: u64, now: i64) -> Result<i64, ApplyError> {
        let job = self.job(slot)?;
        let base = self.job_rule(job, Setting::LapseDelay, rules);
        if base <= 0 {
            return Ok(now);
        }
        let lapses = job.extras.as_ref().map_or(1, |r| r.lapses);
        let max = self.job_rule(job, Setting::BackoffMax, rules).max(base);
        let jitter = self.job_rule(job, Setting::Jitter, rules);
        Ok(after(now, retry::pause(lapses, base, max, jitter, mix(seed ^ job.seq.get() as u64))))
    }

    /// Whether the lease of a claim has ended by now, and its grace has not begun and not passed.
    fn begins_grace(&self, slot: u32, now: i64) -> bool {
        let claim = self.store.jobs.get(slot).and_then(|job| self.claim_of(job));
        claim.is_some_and(|claim| !claim.in_grace && claim.lease_end <= now && now < claim.ends_at())
    }

    /// The lease of a claim has ended, and its holder keeps the job for the grace.
    fn begin_grace(&mut self, slot: u32) -> Result<(), ApplyError> {
        self.retime(slot, |claim| claim.in_grace = true)?;
        self.happened(slot, &Happened::Grace)
    }

    fn settled(slot: u32, env: &Env<'_>) -> Settled {
        Settled { slot, seed: env.draw(u64::from(slot)), policy: Policy::of_claims(env.rules) }
    }

    /// What time should have done to one job by now. The caller must apply it before it decides
    /// anything about that job. O(1).
    pub fn overdue(&self, slot: u32, env: &Env<'_>) -> Option<Effect<'static>> {
        let state = self.store.jobs.get(slot)?.state;
        if state == State::Blocked && self.untold(slot) {
            return Some(Self::settled(slot, env).into());
        }
        let time = self.time_of(slot)?;
        // A claim is over with its worker's registration, even while claims are held.
        let held = matches!(state, State::Claimed | State::Blocked) && env.hold > env.now && time > 0;
        (time <= env.now && !held).then(|| Self::settled(slot, env).into())
    }

    /// At most `n` things that time should have done by now; `None` when there are none. A schedule
    /// does one thing at a time. O(log n).
    pub fn backlog(&self, env: &Env<'_>, n: u32) -> Option<Effect<'static>> {
        if self.wake() > env.now {
            return None;
        }
        if let Some(resolved) = self.to_resolve(env, n) {
            return Some(resolved.into());
        }
        if let Some(parted) = self.to_part(n) {
            return Some(parted.into());
        }
        if let Some(lifted) = self.lift(env, n) {
            return Some(lifted);
        }
        if self.quotas.keys.soonest() <= env.now {
            return Some(Freed { until: env.now, n }.into());
        }
        if let Some(disconnected) = self.disconnects(env, n) {
            return Some(disconnected.into());
        }
        if let Some(departed) = self.departs(env, n) {
            return Some(departed.into());
        }
        if let Some(rested) = self.rest_over(env, n) {
            return Some(rested);
        }
        if let Some(reviewed) = self.review(n) {
            return Some(reviewed);
        }
        let lines = ClockLine::ALL.iter().filter(|line| !line.is_held(env));
        for line in lines {
            if let Some(slot) = self.overdue_head(*line, env.now) {
                return Some(match n {
                    1 => Self::settled(slot, env).into(),
                    _ => {
                        let policy = Policy::of_claims(env.rules);
                        Elapsed { line: *line, until: env.now, n, seed: env.random, policy }.into()
                    }
                });
            }
            if *line == ClockLine::Due {
                if let Some(effect) = self.due_schedule(env) {
                    return Some(effect);
                }
            }
        }
        if let Some(reclaimed) = self.reclaim(env, n) {
            return Some(reclaimed);
        }
        if let Some(dropped) = self.drop_days(env, n) {
            return Some(dropped);
        }
        let (state, over) = self.surplus(env.rules)?;
        Some(Trimmed { state, n: n.min(over) }.into())
    }

    /// A state that has more records than its limit, and how many more.
    pub(crate) fn surplus(&self, rules: &Rules) -> Option<(State, u32)> {
        let kept = [
            (State::Complete, Setting::KeepComplete),
            (State::Failed, Setting::KeepFailed),
            (State::Cancelled, Setting::KeepCancelled),
            (State::Trashed, Setting::KeepTrashed),
        ];
        kept.into_iter().find_map(|(state, setting)| {
            let most = self.rule(setting, rules).max(0) as u64;
            let kept = self.places.ended.line(state, false).map_or(0, |line| line.len() as u64);
            let over = kept.saturating_sub(most);
            (over > 0).then_some((state, over.min(u64::from(u32::MAX)) as u32))
        })
    }
}
