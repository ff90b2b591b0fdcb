//! Session claims and registrations: they end with the connection that carries them.

use crate::board::Board;
use crate::effect::{is_grace, ApplyError, Validate};
use crate::env::Env;
use crate::job::{Session, NEVER};
use crate::policy::Policy;
use crate::settings::Setting;
use crate::structures::byte_string::ByteString;

written! {
    /// A claim was bound to the connection that carries it.
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
    /// The connection of these claims, or of these workers' registrations, has closed: they end at
    /// once or after the grace.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Disconnected {
        1 slots: Vec<u32>,
        /// How long the worker has to come back, ms.
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
    /// The registration of a worker has lost its connection.
    fn loses(&mut self, worker: &ByteString, grace: i64, end: i64) -> Result<(), ApplyError> {
        let mut entry = self.workers.registrations.get(worker).cloned().ok_or(ApplyError)?;
        let registration = entry.registration.as_mut().filter(|r| r.session).ok_or(ApplyError)?;
        // It needs an end: one without would wait for a connection for ever.
        registration.until = registration.until.min(end).clamp(1, NEVER - 1);
        match grace {
            0 => self.depart(worker, true),
            _ => self.set_entry(worker, entry),
        }
    }

    /// Whether a job's claim ends when a connection closes. O(1).
    #[inline]
    pub fn is_session(&self, slot: u32) -> bool {
        let claim = self.store.jobs.get(slot).and_then(|job| self.claim_of(job));
        claim.is_some_and(|claim| claim.session != Session::None)
    }

    /// At most `n` claims or registrations whose connection has closed; `None` when there are none.
    /// A registration that has no connection, from a snapshot or another server, lasts as long as
    /// after a recovery. O(n).
    pub fn disconnects(&self, env: &Env<'_>, n: u32) -> Option<Disconnected> {
        let slots = self.local.sessions.of_closed(n as usize);
        let mut workers = Vec::new();
        let mut grace = self.rule(Setting::SessionGrace, env.rules);
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
