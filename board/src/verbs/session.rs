//! Session claims and registrations: they end with the connection that carries them.

use crate::board::Board;
use crate::effect::{is_grace, ApplyError, Validate};
use crate::env::Env;
use crate::job::{Session, NEVER};
use crate::policy::Policy;
use crate::settings::Setting;
use crate::structures::byte_string::ByteString;

written! {
    /// A claim ends with the connection that carries it.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Bound {
        /// The job.
        1 pub slot: u32,
    }
}

impl Validate for Bound {}

impl Bound {
    pub(crate) fn apply(&self, board: &mut Board, _now: i64) -> Result<(), ApplyError> {
        let before = std::mem::replace(&mut board.claim_mut(self.slot)?.session, Session::Carried);
        match before {
            Session::None => board.touch(self.slot),
            _ => Ok(()),
        }
    }
}

written! {
    /// The connection that carried the claims of these jobs, or the registrations of these
    /// workers, has closed: they end, or will when the grace has passed.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Disconnected {
        1 slots: Vec<u32>,
        /// So many ms their worker has to come back.
        2 grace: i64,
        3 seed: u64,
        4 policy: Policy,
        5 workers: Vec<ByteString>,
    }
}

impl Validate for Disconnected {
    fn is_valid(&self, _board: &Board) -> bool {
        is_grace(self.grace) && self.policy.is_valid()
    }
}

impl Disconnected {
    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        let end = now.saturating_add(self.grace).clamp(0, NEVER);
        let rules = self.policy.rules();
        for slot in self.slots.iter().copied() {
            let token = board.retime(slot, |claim| {
                claim.session = Session::Lost;
                claim.lease_end = claim.lease_end.min(end);
                claim.token
            })?;
            board.local.sessions.drop(token, slot);
            if self.grace == 0 {
                board.claim_ends(slot, now, self.seed, &rules)?;
            }
        }
        self.workers.iter().try_for_each(|worker| board.loses(worker, self.grace, end))
    }
}

impl Board {
    /// The registration of a worker has no connection any more.
    fn loses(&mut self, worker: &ByteString, grace: i64, end: i64) -> Result<(), ApplyError> {
        let mut entry = self.workers.registrations.get(worker).cloned().ok_or(ApplyError)?;
        let registration = entry.registration.as_mut().filter(|r| r.session).ok_or(ApplyError)?;
        // A time: one that never ends would wait for a connection for ever.
        registration.until = registration.until.min(end).clamp(1, NEVER - 1);
        match grace {
            0 => self.depart(worker, true),
            _ => self.set_entry(worker, entry),
        }
    }

    /// Whether a job's claim ends with a connection. O(1).
    #[inline]
    pub fn is_session(&self, slot: u32) -> bool {
        let claim = self.store.jobs.get(slot).and_then(|job| self.claim_of(job));
        claim.is_some_and(|claim| claim.session != Session::None)
    }

    /// The next `n` claims or registrations, at most, whose connection has closed; `None` when
    /// there are none. A registration that comes without one, from a snapshot or another
    /// server, stands as long as after a recovery. O(n).
    pub fn disconnects(&self, env: &Env<'_>, n: u32) -> Option<Disconnected> {
        let slots = self.local.sessions.of_closed(n as usize);
        let mut workers = Vec::new();
        let mut grace = self.rule(Setting::SessionGrace, u32::MAX, env.rules);
        if slots.is_empty() {
            workers = self.local.sessions.workers_of_closed(n as usize);
        }
        if slots.is_empty() && workers.is_empty() {
            workers = self.local.sessions.alone(n as usize);
            grace = grace.max(env.recovery);
        }
        let some = !slots.is_empty() || !workers.is_empty();
        let policy = Policy::of_claims(env.rules);
        some.then_some(Disconnected { slots, grace, seed: env.random, policy, workers })
    }
}
