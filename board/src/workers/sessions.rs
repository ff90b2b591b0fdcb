//! Which connection carries which session claim, and which registration: only this server knows. It
//! is in no snapshot and no digest, and is lost when the board's key is renamed.

use std::collections::{BTreeMap, BTreeSet};

use crate::board::Board;
use crate::job::NEVER;
use crate::structures::byte_string::ByteString;
use crate::structures::lazy::{Lazy, Part};

/// What connections carry on a board. See the module's comment.
#[derive(Default)]
pub(crate) struct Sessions {
    /// The connection that carries the claim of each token.
    carriers: BTreeMap<u64, u64>,
    /// Connection, token, slot.
    claims: BTreeSet<(u64, u64, u32)>,
    /// The connection that carries the registration of each worker.
    registrars: BTreeMap<ByteString, u64>,
    /// Connection, worker.
    workers: BTreeSet<(u64, ByteString)>,
    /// Workers whose registration needs a connection and has none on this server.
    alone: BTreeSet<ByteString>,
    /// Closed connections whose claims are still to be ended.
    closed: BTreeSet<u64>,
}

impl Part for Sessions {
    const BLANK: &'static Self = &Sessions {
        carriers: BTreeMap::new(),
        claims: BTreeSet::new(),
        registrars: BTreeMap::new(),
        workers: BTreeSet::new(),
        alone: BTreeSet::new(),
        closed: BTreeSet::new(),
    };
}

impl Sessions {
    fn has(&self, connection: u64) -> bool {
        let mut claims = self.claims.range((connection, 0, 0)..=(connection, u64::MAX, u32::MAX));
        claims.next().is_some() || self.workers_of(connection).next().is_some()
    }

    fn workers_of(&self, connection: u64) -> impl Iterator<Item = &ByteString> {
        let from = (connection, ByteString::from(&b""[..]));
        self.workers.range(from..).take_while(move |(of, _)| *of == connection).map(|(_, worker)| worker)
    }

    fn tidy(&mut self, connection: u64) {
        if !self.closed.is_empty() && !self.has(connection) {
            self.closed.remove(&connection);
        }
    }

    /// Records that the connection carries the claim. O(log claims).
    fn carry_session(&mut self, connection: u64, token: u64, slot: u32) {
        if self.carriers.get(&token) == Some(&connection) {
            return;
        }
        self.drop(token, slot);
        self.carriers.insert(token, connection);
        self.claims.insert((connection, token, slot));
    }

    /// Records that no connection carries the claim any more. O(log claims).
    pub fn drop(&mut self, token: u64, slot: u32) {
        if let Some(connection) = self.carriers.remove(&token) {
            self.claims.remove(&(connection, token, slot));
            self.tidy(connection);
        }
    }

    /// Records that no connection carries the registration any more. O(log workers).
    fn part(&mut self, worker: &ByteString) {
        if let Some(connection) = self.registrars.remove(worker) {
            self.workers.remove(&(connection, worker.clone()));
            self.tidy(connection);
        }
    }

    /// Records whether a connection must carry the registration of a worker. Returns whether one
    /// must and none does. O(log workers).
    pub fn stands(&mut self, worker: &ByteString, carried: bool) -> bool {
        let alone = carried && !self.registrars.contains_key(worker);
        if alone {
            self.alone.insert(worker.clone());
        } else if !carried {
            self.alone.remove(worker);
            self.part(worker);
        }
        alone
    }

    /// Whether these are exactly the workers whose registrations a connection carries or must
    /// carry.
    pub fn are<'a>(&self, mut workers: impl Iterator<Item = &'a ByteString>) -> bool {
        let all: BTreeSet<&ByteString> = self.registrars.keys().chain(&self.alone).collect();
        all.len() == self.registrars.len() + self.alone.len()
            && self.registrars.len() == self.workers.len()
            && all.into_iter().all(|worker| workers.next() == Some(worker))
            && workers.next().is_none()
    }

    /// Whether what closed connections carried is still to be ended. O(1).
    pub fn has_closed(&self) -> bool {
        !self.closed.is_empty()
    }

    /// Whether a registration has no connection: a primary must give it a time. O(1).
    pub fn has_alone(&self) -> bool {
        !self.alone.is_empty()
    }

    /// The next claims of closed connections, at most `n`, by slot.
    pub fn of_closed(&self, n: usize) -> Vec<u32> {
        let Some(connection) = self.closed.first().copied() else { return Vec::new() };
        let claims = self.claims.range((connection, 0, 0)..=(connection, u64::MAX, u32::MAX));
        claims.take(n).map(|(_, _, slot)| *slot).collect()
    }

    /// The next workers whose registrations closed connections carried, at most `n`.
    pub fn workers_of_closed(&self, n: usize) -> Vec<ByteString> {
        let first = self.closed.first().copied();
        first.map(|connection| self.workers_of(connection).take(n).cloned().collect()).unwrap_or_default()
    }

    /// The next workers whose registrations no connection carries, at most `n`.
    pub fn alone(&self, n: usize) -> Vec<ByteString> {
        self.alone.iter().take(n).cloned().collect()
    }
}

impl Board {
    /// Records that a connection carries the session claim of a job. O(log claims).
    pub fn carry_session(&mut self, slot: u32, connection: u64) {
        let token = self.store.jobs.get(slot).and_then(|job| self.claim_of(job)).map(|claim| claim.token);
        if let Some(token) = token.filter(|_| self.is_session(slot)) {
            self.local.sessions.carry_session(connection, token, slot);
        }
    }

    /// The connection that carries the claim of a job, and whether it has closed. O(log claims).
    pub(crate) fn carrier(&self, slot: u32) -> Option<(u64, bool)> {
        let token = self.claim_of(self.store.jobs.get(slot)?)?.token;
        let connection = *self.local.sessions.carriers.get(&token)?;
        Some((connection, self.local.sessions.closed.contains(&connection)))
    }

    /// Records that the same connection carries the claim again. O(log claims).
    pub(crate) fn keep_session(&mut self, slot: u32, carrier: (u64, bool)) {
        self.carry_session(slot, carrier.0);
        if carrier.1 {
            self.local.sessions.closed.insert(carrier.0);
        }
    }

    /// Records that a connection carries the registration of a worker. Returns whether the
    /// registration needs one. O(log workers).
    pub fn attend_session(&mut self, worker: &[u8], connection: u64) -> bool {
        let some = self.registration(worker).is_some_and(|r| r.session && r.until == NEVER);
        let known = self.local.sessions.registrars.get(worker) == Some(&connection);
        if some && !known {
            let worker = ByteString::from(worker);
            self.local.sessions.part(&worker);
            self.local.sessions.alone.remove(&worker);
            self.local.sessions.registrars.insert(worker.clone(), connection);
            self.local.sessions.workers.insert((connection, worker));
        }
        some
    }

    /// Forgets all connections: this server is no longer a primary.
    pub fn forget_connections(&mut self) {
        let Some(sessions) = self.local.sessions.there().map(std::mem::take) else { return };
        let Sessions { mut alone, registrars, .. } = sessions;
        alone.extend(registrars.into_keys());
        self.local.sessions = match alone.is_empty() {
            true => Lazy::default(),
            false => Lazy::holding(Sessions { alone, ..Sessions::default() }),
        };
        if self.local.sessions.has_alone() {
            self.wake_at(0);
        }
    }

    /// Records that a connection has closed: what it carries must be ended. Returns whether that is
    /// anything. O(log claims).
    pub fn close(&mut self, connection: u64) -> bool {
        let some = self.local.sessions.has(connection);
        if some {
            self.local.sessions.closed.insert(connection);
            self.wake_at(0);
        }
        some
    }

    /// The workers whose registrations a connection carries. O(log workers + n).
    pub fn attended_by(&self, connection: u64) -> Vec<Vec<u8>> {
        self.local.sessions.workers_of(connection).map(|worker| worker.to_vec()).collect()
    }

    /// The connections that carry claims or registrations. O(connections log claims).
    pub fn connections(&self) -> Vec<u64> {
        let mut all = Vec::new();
        let mut from = 0;
        while let Some((connection, ..)) = self.local.sessions.claims.range((from, 0, 0)..).next() {
            all.push(*connection);
            from = connection.saturating_add(1);
        }
        all.extend(self.local.sessions.workers.iter().map(|(connection, _)| *connection));
        all.sort_unstable();
        all.dedup();
        all
    }
}
