//! Named limits of the naive board: who names which, counted job by job.

use board::{Setting, State};

use crate::compare::same;
use crate::naive::{Bytes, Job, Model};
use crate::world::World;

impl Model {
    pub fn configure_limit(&mut self, limit: &[u8], setting: Setting, value: Option<i64>) {
        let key = (limit.to_vec(), setting);
        match value {
            Some(value) => self.limits.insert(key, value),
            None => self.limits.remove(&key),
        };
        self.rounds.forget_turns(|_| true);
        self.tidy_limits();
    }

    /// Gives a queue, a group or all groups (`*`) a list.
    pub fn name_limits(&mut self, queue: &[u8], group: Option<&[u8]>, limits: Option<Vec<Bytes>>) {
        let key = (queue.to_vec(), group.map(<[u8]>::to_vec));
        let own = group.is_some_and(|group| group != b"*");
        match limits.filter(|limits| own || !limits.is_empty()) {
            Some(limits) => self.lists.insert(key, limits),
            None => self.lists.remove(&key),
        };
        self.rounds.forget_turns(|_| true);
        self.tidy_limits();
    }

    pub fn is_limit(&self, limit: &[u8]) -> bool {
        self.limits.keys().any(|(name, _)| name == limit)
            || self.lists.values().flatten().any(|name| name == limit)
            || self.limit_pauses.contains_key(limit)
    }

    /// The bucket of a limit goes with it.
    pub fn tidy_limits(&mut self) {
        let gone = |limit: &Bytes| !self.is_limit(limit);
        let places =
            self.buckets.keys().filter(|(queue, limit)| queue.is_none() && limit.as_ref().is_some_and(gone));
        let places: Vec<_> = places.cloned().collect();
        places.iter().for_each(|place| _ = self.buckets.remove(place));
    }

    pub fn list(&self, queue: &[u8], group: Option<&[u8]>) -> Option<&Vec<Bytes>> {
        self.lists.get(&(queue.to_vec(), group.map(<[u8]>::to_vec)))
    }

    /// Whether a job's group counts against the limits of all groups.
    pub fn shares(&self, job: &Job) -> bool {
        job.group.as_ref().is_some_and(|group| self.list(&job.queue, Some(group)).is_none())
    }

    pub fn limits_in(&self, queue: &[u8], group: Option<&[u8]>) -> Vec<Bytes> {
        let own =
            group.and_then(|group| self.list(queue, Some(group)).or_else(|| self.list(queue, Some(b"*"))));
        let mut all: Vec<Bytes> = self.list(queue, None).into_iter().chain(own).flatten().cloned().collect();
        all.sort();
        all.dedup();
        all
    }

    pub fn limits_of(&self, job: &Job) -> Vec<Bytes> {
        self.limits_in(&job.queue, job.group.as_deref())
    }

    fn runs_under(&self, limit: &Bytes) -> i64 {
        let counts = |j: &&Job| j.state == State::Claimed && self.limits_of(j).contains(limit);
        self.jobs.iter().filter(counts).count() as i64
    }

    pub fn limit_full(&self, limit: &Bytes) -> bool {
        let most = self.limits.get(&(limit.clone(), Setting::Concurrency)).copied().unwrap_or(-1);
        most >= 0 && self.runs_under(limit) >= most
    }

    /// Whether a running job may not go to that queue.
    pub fn limits_bar(&self, job: &Job, queue: &[u8]) -> bool {
        let before = self.limits_of(job);
        let there = self.limits_in(queue, job.group.as_deref());
        there.iter().any(|limit| !before.contains(limit) && self.limit_full(limit))
    }

    /// When a list lets a job go.
    pub fn list_opens_at(&self, list: Option<&Vec<Bytes>>, job: &Job) -> i64 {
        let places = list.into_iter().flatten().map(|limit| (None, Some(limit.clone())));
        places.map(|place| self.place_opens_at(&place, job)).max().unwrap_or(0)
    }

    /// Whether the limits of all groups lack tokens for a job.
    pub fn shared_lacks(&self, job: &Job) -> bool {
        let list = self.list(&job.queue, Some(b"*"));
        self.shares(job) && self.list_opens_at(list, job) > self.now
    }

    pub fn same_limits(&self, world: &World) -> Result<(), String> {
        let board = &world.board;
        let mut names: Vec<&Bytes> =
            self.limits.keys().map(|(name, _)| name).chain(self.lists.values().flatten()).collect();
        names.extend(self.limit_pauses.keys());
        names.sort();
        names.dedup();
        let got: Vec<Bytes> = board.limits_after(None).map(|limit| limit.name().to_vec()).collect();
        same("limits", got.iter().collect::<Vec<_>>(), names.clone())?;
        for name in names {
            let limit = board.limit(name).ok_or("a limit is lost")?;
            same("jobs under a limit", limit.claimed() as i64, self.runs_under(name))?;
            same("a full limit", limit.is_full(), self.limit_full(name))?;
            let dry = limit.dry_until(1, world.now);
            let at = self.holds_at(&(None, Some(name.clone())), Some(1));
            same("a dry limit", dry, Some(at).filter(|at| *at > world.now))?;
            same("the debt of a limit", limit.debt(world.now), self.debt(name))?;
            let paused = self.limit_pauses.get(name).copied().filter(|until| *until > world.now);
            same("a paused limit", limit.paused(world.now), paused)?;
        }
        for ((queue, group), list) in &self.lists {
            let mut want: Vec<&[u8]> = list.iter().map(|name| &name[..]).collect();
            want.sort();
            same("a list", board.limits_named(queue, group.as_deref()), Some(want))?;
        }
        Ok(())
    }
}
