//! Keys, live jobs of users, and limits of jobs, on the naive board.

use board::{Setting, Until};

use crate::naive::{later, Bytes, Model, NEVER};
use crate::verbs::shown;

/// The key that a job was posted with, when it frees it, and for how long it is taken.
#[derive(Debug, Clone)]
pub struct Unique {
    pub key: Bytes,
    pub until: Option<Until>,
    pub time: Option<i64>,
}

impl Unique {
    pub fn of(key: &board::TakeKey<'_>) -> Unique {
        Unique { key: key.key.to_vec(), until: key.until, time: key.time }
    }

    fn for_a_time(&self) -> bool {
        self.until.is_none() && self.time.is_some()
    }
}

#[derive(Debug, Clone)]
pub struct Held {
    pub id: Bytes,
    /// Its record has not gone.
    pub there: bool,
    pub end: i64,
}

impl Model {
    pub fn held(&self, key: &[u8]) -> Option<&Held> {
        self.keys.get(key).filter(|held| held.end > self.now)
    }

    /// Refuses a key that another job than this holds.
    pub fn key_is_free(&self, key: &[u8], at: Option<usize>) -> Result<(), String> {
        match self.held(key) {
            Some(held) if !held.there || at.is_none_or(|at| self.jobs[at].id != held.id) => {
                Err(format!("EXISTS {}", shown(&held.id)))
            }
            _ => Ok(()),
        }
    }

    pub fn take_key(&mut self, at: usize) {
        let job = &self.jobs[at];
        if let Some(unique) = &job.unique {
            let end = unique.time.map_or(NEVER, |ms| later(self.now, ms));
            self.keys.insert(unique.key.clone(), Held { id: job.id.clone(), there: true, end });
        }
    }

    fn holds(&self, at: usize) -> Option<Bytes> {
        let key = &self.jobs[at].unique.as_ref()?.key;
        self.keys.get(key).filter(|held| held.there && held.id == self.jobs[at].id).map(|_| key.clone())
    }

    pub fn free_key(&mut self, at: usize) {
        if let Some(key) = self.holds(at) {
            self.keys.remove(&key);
        }
    }

    pub fn frees_at_start(&mut self, at: usize) {
        if self.jobs[at].unique.as_ref().is_some_and(|u| u.until == Some(Until::Start)) {
            self.free_key(at);
        }
    }

    pub fn frees_at_end(&mut self, at: usize) {
        if self.jobs[at].unique.as_ref().is_some_and(|u| !u.for_a_time()) {
            self.free_key(at);
        }
    }

    /// Its record goes: a key that it took for a time stays taken.
    pub fn leaves_key(&mut self, at: usize) {
        self.frees_at_end(at);
        if let Some(key) = self.holds(at) {
            self.keys.get_mut(&key).unwrap().there = false;
        }
    }

    pub fn free_keys(&mut self, n: usize) -> bool {
        let over = self.keys.iter().filter(|(_, held)| held.end <= self.now);
        let mut over: Vec<_> = over.map(|(key, held)| (held.end, key.clone())).collect();
        over.sort();
        for (_, key) in over.iter().take(n) {
            self.keys.remove(key);
        }
        !over.is_empty()
    }

    /// How many jobs of that user and name live, this one not counted.
    pub fn live_of(&self, user: &[u8], name: &[u8], but: Option<usize>) -> i64 {
        let counts = |(at, job): &(usize, &crate::naive::Job)| {
            but != Some(*at) && !job.state.ended() && job.user.as_deref() == Some(user) && job.name == name
        };
        self.jobs.iter().enumerate().filter(counts).count() as i64
    }

    /// Refuses one live job more in that queue and group, this one gone.
    pub fn has_room(&self, queue: &[u8], group: Option<&[u8]>, gone: Option<usize>) -> Result<(), String> {
        let of_group = |group: &[u8]| {
            let here = |at: &usize| {
                let job = &self.jobs[*at];
                gone != Some(*at)
                    && !job.state.ended()
                    && job.queue == queue
                    && job.group.as_deref() == Some(group)
            };
            let most = self.group_rule(queue, group, Setting::MaxJobs);
            let grows = gone.is_none_or(|at| {
                let job = &self.jobs[at];
                job.state.ended() || job.queue != queue || job.group.as_deref() != Some(group)
            });
            grows && most >= 0 && (0..self.jobs.len()).filter(here).count() as i64 >= most
        };
        if !self.unbounded && group.is_some_and(of_group) {
            return Err("LIMIT max-jobs".into());
        }
        let live = |queue: Option<&[u8]>, at: usize| {
            !self.jobs[at].state.ended() && queue.is_none_or(|q| self.jobs[at].queue == q)
        };
        let places = if self.unbounded { vec![] } else { vec![None, Some(queue)] };
        for place in places {
            let most = self.own.get(&(place.map(<[u8]>::to_vec), Setting::MaxJobs)).copied();
            let now = (0..self.jobs.len()).filter(|at| live(place, *at)).count() as i64;
            let grows = gone.is_none_or(|at| !live(place, at));
            if grows && most.is_some_and(|most| most >= 0 && now + 1 > most) {
                return Err("LIMIT max-jobs".into());
            }
        }
        Ok(())
    }
}
