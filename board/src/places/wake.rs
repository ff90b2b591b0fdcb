//! When time next does something with a board, and which queues have got work.

use crate::board::{Board, TimeKey};
use crate::env::Env;
use crate::job::NEVER;
use crate::settings::Rules;
use crate::structures::sorted::SortedSlots;

impl Board {
    /// No time event happens before this, Unix ms. A lower bound. O(1).
    pub fn wake(&self) -> i64 {
        self.wake.0
    }

    /// Something has to be looked at by then.
    pub(crate) fn wake_at(&mut self, time: i64) {
        self.wake.lower(time);
    }

    /// Finds out when the clock next has something to do. O(1).
    pub fn reckon(&mut self, env: &Env<'_>) -> i64 {
        self.quench(env.now);
        self.wake.0 = if self.sessions.has_alone() { 0 } else { self.soonest(env) };
        self.wake.0
    }

    /// When the next time event is, claims held until `hold`. Registrations without a connection
    /// are none: on a replica they stay so. O(1).
    pub fn soonest(&self, env: &Env<'_>) -> i64 {
        self.next_event(env).min(self.next_day_ends())
    }

    /// The same, but for days of statistics that go. O(1).
    pub fn next_event(&self, env: &Env<'_>) -> i64 {
        let at = |line: &SortedSlots<TimeKey>| {
            line.first().and_then(|s| self.jobs.get(s)).map_or(NEVER, |job| job.at.get())
        };
        let lease = self
            .leases
            .first()
            .map_or(NEVER, |s| Self::lease_key_of(&self.jobs, &self.claims, s).0.max(env.hold));
        let soonest = at(&self.due).min(at(&self.expiries)).min(at(&self.drops)).min(lease);
        let lift = self.pauses.next_end().map_or(NEVER, |(end, _)| *end);
        let departs = self.registrations.next_end().map_or(NEVER, |(end, _)| (*end).max(env.hold));
        let soonest = soonest.min(self.schedules.soonest()).min(self.keys.soonest()).min(departs);
        let rest = self.rests.first().map_or(NEVER, |(until, ..)| *until);
        let thirst = self.thirst.first().map_or(NEVER, |(at, _)| *at);
        let soonest = soonest.min(rest).min(thirst);
        let at_once = self.pauses.next_release().is_some()
            || self.registrations.next_departure().is_some()
            || !self.reviews.is_empty()
            || !self.families.partings.is_empty()
            || self.sessions.has_closed()
            || !self.waits.tells.is_empty();
        if at_once || self.surplus(env.rules).is_some() {
            0
        } else {
            soonest.min(lift)
        }
    }

    /// Whether more ended jobs are kept than shall be since the last call: then time has
    /// something to do at once. O(1).
    pub fn overfull(&mut self, rules: &Rules) -> bool {
        if !std::mem::take(&mut self.grown) || self.surplus(rules).is_none() {
            return false;
        }
        self.wake.0 = 0;
        true
    }

    /// The queues that have got ready jobs since the last call, by number; cleared by it.
    pub fn woken(&mut self, mut each: impl FnMut(&mut Board, u32)) {
        while let Some(queue) = self.woken.pop() {
            if let Some(lane) = self.queues.get_mut(queue) {
                lane.woken = false;
            }
            each(self, queue);
        }
    }

    /// Whether an operator has ended a claim since the last call.
    pub fn taken(&mut self) -> bool {
        std::mem::take(&mut self.taken)
    }

    /// Whether a worker is quiet no longer since the last call: it may wait for work.
    pub fn roused(&mut self) -> bool {
        std::mem::take(&mut self.roused)
    }

    /// Takes a queue for one that has just got ready jobs, if it has any. O(1).
    pub(crate) fn wake_queue(&mut self, queue: u32) {
        if self.queues.get(queue).is_some_and(|lane| !lane.is_idle()) {
            self.note_busy(queue);
        }
    }

    /// Takes every queue that has ready jobs for one that has just got them.
    pub fn wake_all(&mut self) {
        for queue in self.busy.clone() {
            self.note_busy(queue);
        }
    }

    /// Nobody waits for work: what has been noted for those who do is dropped.
    pub fn nobody_waits(&mut self) {
        self.roused = false;
        self.woken(|_, _| ());
    }

    /// Whether any queue has got ready jobs since [`Board::woken`], or any worker is quiet no
    /// longer since [`Board::roused`].
    pub fn has_woken(&self) -> bool {
        self.roused || !self.woken.is_empty()
    }

    /// The names of the queues that have got ready jobs since [`Board::woken`].
    pub fn woken_names(&self) -> impl Iterator<Item = &[u8]> {
        self.woken.iter().map(|queue| self.queue_named(*queue))
    }

    /// The names of the queues that have ready jobs.
    pub fn busy_names(&self) -> impl Iterator<Item = &[u8]> {
        self.busy.iter().map(|queue| self.queue_named(*queue))
    }

    /// The name of a queue.
    pub fn queue_named(&self, number: u32) -> &[u8] {
        self.queues.key(number).map_or(&[], |name| name)
    }
}
