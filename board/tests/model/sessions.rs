//! Session claims of the naive board.

use board::Setting;

use crate::naive::*;
use crate::world::RECOVERY;

impl Model {
    pub fn bind(&mut self, id: &[u8], connection: u64) {
        let at = self.at(id);
        if let Some(hold) = at.and_then(|at| self.jobs[at].hold.as_mut()) {
            hold.session = hold.session.max(1);
            hold.connection = Some(connection);
        }
    }

    fn carries(&self, connection: u64) -> bool {
        self.workers.lines.values().any(|c| *c == connection)
            || self.jobs.iter().any(|j| j.hold.as_ref().is_some_and(|h| h.connection == Some(connection)))
    }

    pub fn close(&mut self, connection: u64) -> bool {
        let some = self.carries(connection);
        if some {
            self.closed.insert(connection);
        }
        some
    }

    /// Connections whose claims have all ended are forgotten.
    pub fn tidy(&mut self) {
        let closed = std::mem::take(&mut self.closed);
        self.closed = closed.into_iter().filter(|c| self.carries(*c)).collect();
    }

    /// No connection is known after a load.
    pub fn forget_connections(&mut self) {
        self.closed.clear();
        self.workers.lines.clear();
        self.jobs.iter_mut().filter_map(|j| j.hold.as_mut()).for_each(|h| h.connection = None);
    }

    pub fn disconnect(&mut self, n: u32, draw: Draw) -> bool {
        let grace = self.board_rule(Setting::SessionGrace);
        let Some(connection) = self.closed.first().copied() else {
            let alone = self.alone();
            alone.iter().take(n as usize).for_each(|w| self.loses(w, grace.max(RECOVERY)));
            return !alone.is_empty();
        };
        let now = self.now;
        let held = self.jobs.iter().filter_map(|j| Some((j.hold.as_ref()?, j.id.clone())));
        let mut held: Vec<_> = held
            .filter(|(hold, _)| hold.connection == Some(connection))
            .map(|(hold, id)| (hold.token, id))
            .collect();
        held.sort();
        if held.is_empty() {
            let lines = self.workers.lines.iter().filter(|(_, c)| **c == connection);
            let names: Vec<_> = lines.map(|(name, _)| name.clone()).take(n as usize).collect();
            names.iter().for_each(|name| self.loses(name, grace));
        }
        for (_, id) in held.into_iter().take(n as usize) {
            let at = self.at(&id).unwrap();
            let hold = self.jobs[at].hold.as_mut().unwrap();
            (hold.session, hold.connection) = (2, None);
            hold.lease_end = hold.lease_end.min((now + grace).min(NEVER));
            if grace == 0 {
                self.claim_ends(at, draw);
            }
        }
        self.tidy();
        true
    }
}
