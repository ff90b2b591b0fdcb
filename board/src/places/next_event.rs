//! When the clock next has work on a board.

use crate::board::Board;
use crate::env::Env;
use crate::job::order::TimeKey;
use crate::job::NEVER;
use crate::settings::Rules;
use crate::structures::sorted::SortedSlots;

/// A lower bound of the next time event, Unix ms; [`NEVER`] by default.
pub(crate) struct NextEvent(pub(crate) i64);

impl Default for NextEvent {
    fn default() -> Self {
        NextEvent(NEVER)
    }
}

impl NextEvent {
    pub(crate) fn lower(&mut self, time: i64) {
        self.0 = self.0.min(time);
    }
}

impl Board {
    /// No time event is due before this, Unix ms: a lower bound. O(1).
    pub fn wake(&self) -> i64 {
        self.local.next_event.0
    }

    /// Lowers the bound to this time.
    pub(crate) fn wake_at(&mut self, time: i64) {
        self.local.next_event.lower(time);
    }

    /// A client that waits for a batch takes what there is at this time, Unix ms.
    pub fn linger_until(&mut self, time: i64) {
        self.local.linger_end.lower(time);
        self.wake_at(time);
    }

    /// Wakes the clients for whom time alone has brought work: permits have arrived, or one has
    /// lingered long enough.
    pub fn wake_clients(&mut self, now: i64) {
        if self.local.linger_end.0 <= now {
            self.local.linger_end = NextEvent::default();
            self.local.lingered = true;
        }
        self.wake_with_permits(now);
    }

    /// Computes when the clock next has work, Unix ms, and keeps it as the bound. O(1).
    pub fn reckon(&mut self, env: &Env<'_>) -> i64 {
        self.wake_clients(env.now);
        self.local.next_event.0 = if self.local.sessions.has_alone() { 0 } else { self.soonest(env) };
        self.local.next_event.0
    }

    /// When the next time event is due, Unix ms; claims are held until `hold`. Registrations
    /// without a connection do not count: only a primary ends them. O(1).
    pub fn soonest(&self, env: &Env<'_>) -> i64 {
        self.next_event(env).min(self.next_day_ends())
    }

    /// The same as [`Board::soonest`] without the days of statistics that expire. O(1).
    pub fn next_event(&self, env: &Env<'_>) -> i64 {
        let at = |line: &SortedSlots<TimeKey>| {
            line.first().and_then(|s| self.store.jobs.get(s)).map_or(NEVER, |job| job.at.get())
        };
        let lease = self.places.leases.first().map_or(NEVER, |s| self.store.lease_key(s).0.max(env.hold));
        let waits = self.places.seldom.waits.first().and_then(|s| self.store.jobs.get(s));
        let waits = waits.map_or(NEVER, |job| job.wait_until().max(env.hold));
        let soonest = at(&self.places.due)
            .min(at(&self.places.seldom.expiries))
            .min(at(&self.places.seldom.drops))
            .min(lease)
            .min(waits);
        let lift = self.dispatch.pauses.next_end().map_or(NEVER, |(end, _)| *end);
        let departs = self.workers.registrations.next_end().map_or(NEVER, |(end, _)| (*end).max(env.hold));
        let soonest = soonest.min(self.schedules.soonest()).min(self.quotas.keys.soonest()).min(departs);
        let rest = self.dispatch.rests.first().map_or(NEVER, |(until, ..)| *until);
        let permits_at = self.local.waiting_for_permits.next_at().unwrap_or(NEVER);
        let soonest = soonest.min(rest).min(permits_at).min(self.local.linger_end.0);
        let at_once = self.dispatch.pauses.next_release().is_some()
            || self.workers.registrations.next_departure().is_some()
            || !self.dispatch.reviews.is_empty()
            || !self.relations.families.partings.is_empty()
            || self.local.sessions.has_closed()
            || !self.relations.waits.resolutions.is_empty();
        if at_once || self.surplus(env.rules).is_some() {
            0
        } else {
            soonest.min(lift)
        }
    }

    /// Whether the number of ended jobs has grown beyond its limit since the last call: then the
    /// clock has work at once. O(1).
    pub fn overfull(&mut self, rules: &Rules) -> bool {
        if !std::mem::take(&mut self.local.grown) || self.surplus(rules).is_none() {
            return false;
        }
        self.local.next_event.0 = 0;
        true
    }
}
