//! Which connection carries which session claim: what this server alone knows. It is in no
//! snapshot and no digest, and goes with the board when its key gets another name.

use std::collections::{BTreeMap, BTreeSet};

use crate::board::Board;

/// See the module's comment.
#[derive(Default)]
pub(crate) struct Sessions {
    /// The connection that carries the claim under a token.
    carriers: BTreeMap<u64, u64>,
    /// Connection, token, slot.
    claims: BTreeSet<(u64, u64, u32)>,
    /// Connections that have closed and whose claims are still to be ended.
    closed: BTreeSet<u64>,
}

impl Sessions {
    fn has(&self, connection: u64) -> bool {
        self.claims.range((connection, 0, 0)..=(connection, u64::MAX, u32::MAX)).next().is_some()
    }

    /// From now on the connection carries the claim. O(log claims).
    fn carry(&mut self, connection: u64, token: u64, slot: u32) {
        if self.carriers.get(&token) == Some(&connection) {
            return;
        }
        self.drop(token, slot);
        self.carriers.insert(token, connection);
        self.claims.insert((connection, token, slot));
    }

    /// No connection carries the claim any more. O(log claims).
    pub fn drop(&mut self, token: u64, slot: u32) {
        if let Some(connection) = self.carriers.remove(&token) {
            self.claims.remove(&(connection, token, slot));
            if !self.closed.is_empty() && !self.has(connection) {
                self.closed.remove(&connection);
            }
        }
    }

    /// Whether claims of closed connections are still to be ended. O(1).
    pub fn has_closed(&self) -> bool {
        !self.closed.is_empty()
    }

    /// The next `n` claims of closed connections, at most, by slot.
    pub fn of_closed(&self, n: usize) -> Vec<u32> {
        let Some(connection) = self.closed.first().copied() else { return Vec::new() };
        let claims = self.claims.range((connection, 0, 0)..=(connection, u64::MAX, u32::MAX));
        claims.take(n).map(|(_, _, slot)| *slot).collect()
    }
}

impl Board {
    /// Notes that a connection carries the session claim of a job. O(log claims).
    pub fn carry(&mut self, slot: u32, connection: u64) {
        let token = self.jobs.get(slot).and_then(|job| self.claim_of(job)).map(|claim| claim.token);
        if let Some(token) = token.filter(|_| self.is_session(slot)) {
            self.sessions.carry(connection, token, slot);
        }
    }

    /// The connection that carries the claim of a job, and whether it has closed. O(log claims).
    pub(crate) fn carrier(&self, slot: u32) -> Option<(u64, bool)> {
        let token = self.claim_of(self.jobs.get(slot)?)?.token;
        let connection = *self.sessions.carriers.get(&token)?;
        Some((connection, self.sessions.closed.contains(&connection)))
    }

    /// The same connection carries the claim again. O(log claims).
    pub(crate) fn carry_on(&mut self, slot: u32, carrier: (u64, bool)) {
        self.carry(slot, carrier.0);
        if carrier.1 {
            self.sessions.closed.insert(carrier.0);
        }
    }

    /// Notes that a connection has closed: the claims that it carries are ended from now on.
    /// Whether there are any. O(log claims).
    pub fn close(&mut self, connection: u64) -> bool {
        let some = self.sessions.has(connection);
        if some {
            self.sessions.closed.insert(connection);
            self.wake_at(0);
        }
        some
    }

    /// The connections that carry claims. O(connections log claims).
    pub fn connections(&self) -> Vec<u64> {
        let mut all = Vec::new();
        let mut from = 0;
        while let Some((connection, ..)) = self.sessions.claims.range((from, 0, 0)..).next() {
            all.push(*connection);
            from = connection.saturating_add(1);
        }
        all
    }
}
