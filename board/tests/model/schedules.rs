//! The schedules of the naive board: times found by stepping from one second to the next.

use board::{Backlog, Overlap, SetSchedule, State, When, LATE};

use crate::limits::Unique;
use crate::naive::{Bytes, Job, Model, Way, NEVER};

pub const IDS: [&[u8]; 3] = [b"s", b"t\0\xff", b"u@1"];

/// Expressions, and whether a second of the day is one of their times.
pub type Cron = (&'static [u8], fn(i64) -> bool);
pub const CRONS: [Cron; 3] = [
    (b"*/5 * * * * *", |s| s % 5 == 0),
    (b"*/10 * * * *", |s| s % 600 == 0),
    (b"30 15 3 * * *", |s| s == 3 * 3600 + 15 * 60 + 30),
];

#[derive(Debug, Clone, Default)]
pub struct Schedule {
    pub id: Bytes,
    pub every: i64,
    pub cron: usize,
    pub anchor: i64,
    pub start: Option<i64>,
    pub end: Option<i64>,
    pub max: Option<u64>,
    pub backlog: Backlog,
    pub overlap: Overlap,
    pub jitter: i64,
    pub paused: bool,
    pub fired: u64,
    pub last: u64,
    pub intended: Option<i64>,
    pub next: i64,
    pub at: i64,
    pub payload: Bytes,
    pub queue: Option<Bytes>,
    pub group: Option<Bytes>,
    pub delay: i64,
    pub tags: Vec<Bytes>,
    pub user: Option<Bytes>,
    pub most_live: Option<i64>,
    pub unique: Option<Unique>,
    pub gate: Option<board::Gate>,
    pub costs: std::collections::BTreeMap<Bytes, i64>,
    pub refused: u64,
    /// Of missed times only the last so many; 0 for each.
    pub most_missed: usize,
    /// Missed times up to this one have been counted.
    pub counted: i64,
}

impl Schedule {
    fn is_time(&self, t: i64) -> bool {
        match self.every {
            0 => t % 1000 == 0 && CRONS[self.cron].1(t / 1000 % 86_400),
            every => t >= self.anchor && (t - self.anchor) % every == 0,
        }
    }

    fn first(&self, from: i64) -> i64 {
        let mut t = from.max(self.start.unwrap_or(0));
        let step = match self.every {
            0 => {
                t += (1000 - t % 1000) % 1000;
                1000
            }
            every => {
                t = if t <= self.anchor {
                    self.anchor
                } else {
                    t + (every - (t - self.anchor) % every) % every
                };
                every
            }
        };
        while !self.is_time(t) {
            t += step;
        }
        if self.end.is_some_and(|end| t > end) {
            NEVER
        } else {
            t
        }
    }

    fn full(&self) -> bool {
        self.max.is_some_and(|max| self.fired >= max)
    }

    fn set_next(&mut self, next: i64) {
        self.next = if self.paused || self.full() { NEVER } else { next };
        self.at = self.next;
    }

    fn fresh(&mut self, now: i64) {
        self.set_next(self.first(now.max(self.intended.map_or(0, |t| t + 1))));
    }
}

impl Model {
    fn schedule(&mut self, id: &[u8]) -> Option<&mut Schedule> {
        self.schedules.iter_mut().find(|s| s.id == id)
    }

    pub fn set_schedule(&mut self, set: &SetSchedule<'_>) -> bool {
        let now = self.now;
        let old = self.schedules.iter().find(|s| s.id == set.id).cloned();
        if old.is_none() && set.when.is_none() {
            return false;
        }
        if self.check_schedule(set.id).is_err() {
            return false;
        }
        let fresh = old.is_none();
        let before = old.unwrap_or_default();
        let mut s = before.clone();
        s.id = set.id.to_vec();
        match set.when {
            Some(When::Every(ms)) => (s.every, s.cron) = (ms, 0),
            Some(When::Cron(text)) => {
                (s.every, s.cron) = (0, CRONS.iter().position(|(c, _)| *c == text).unwrap());
            }
            None => {}
        }
        s.start = set.start.or(s.start);
        s.end = set.end.unwrap_or(s.end);
        if s.start.zip(s.end).is_some_and(|(start, end)| start > end) {
            return false;
        }
        s.max = set.max.unwrap_or(s.max);
        if let Some(backlog) = set.backlog {
            (s.backlog, s.most_missed) = (backlog, set.most_missed as usize);
        }
        s.overlap = set.overlap.unwrap_or(s.overlap);
        s.jitter = set.jitter.unwrap_or(s.jitter);
        let child = &set.child;
        s.payload = child.payload.to_vec();
        s.queue = child.queue.map(<[u8]>::to_vec).or(s.queue);
        s.group = child.group.map(<[u8]>::to_vec).or(s.group);
        s.delay = set.delay.unwrap_or(s.delay);
        if let Some(tags) = &child.tags {
            s.tags = tags.iter().map(|tag| tag.to_vec()).collect();
        }
        s.user = child.user.map(<[u8]>::to_vec).or(s.user);
        s.most_live = child.most_live.or(s.most_live);
        s.unique = child.unique.as_ref().map(Unique::of).or(s.unique);
        if let Some(costs) = &child.costs {
            s.costs = costs.iter().map(|(limit, cost)| (limit.to_vec(), *cost)).collect();
        }
        s.gate = child.gate.as_deref().cloned().or(s.gate);
        let moved = (s.every, s.cron, s.start) != (before.every, before.cron, before.start);
        if fresh || moved {
            s.anchor = s.start.unwrap_or(now + s.every);
        }
        let past_end = s.next != NEVER && s.end.is_some_and(|end| s.next > end);
        if fresh || moved || s.next == NEVER || s.full() || past_end {
            s.fresh(now);
        }
        self.schedules.retain(|old| old.id != s.id);
        self.schedules.push(s);
        true
    }

    pub fn pause_schedule(&mut self, id: &[u8], paused: bool) -> bool {
        let now = self.now;
        let Some(schedule) = self.schedule(id) else { return false };
        if schedule.paused != paused {
            schedule.paused = paused;
            schedule.fresh(now);
        }
        true
    }

    fn live(&self, s: &Schedule) -> Option<usize> {
        self.at(&child(&s.id, s.last)).filter(|at| !self.jobs[*at].state.ended())
    }

    pub fn run_schedule(&mut self, id: &[u8]) -> Option<Option<Bytes>> {
        let s = self.schedule(id)?.clone();
        if s.overlap == Overlap::Skip && self.live(&s).is_some() {
            return Some(None);
        }
        if self.is_refused(&s) {
            return None;
        }
        Some(Some(self.child_of(id, self.now)))
    }

    /// The schedule that is due first does its next thing; false when none is due.
    pub fn fire(&mut self) -> bool {
        let now = self.now;
        let due = self.schedules.iter().filter(|s| s.at <= now).min_by_key(|s| (s.at, s.id.clone()));
        let Some(s) = due.cloned() else { return false };
        let until = (now - s.jitter).max(s.next);
        let mut intended = s.next;
        while s.backlog != Backlog::All && s.first(intended + 1) <= until {
            intended = s.first(intended + 1);
        }
        let mut counted = s.counted;
        if s.most_missed > 0 && s.next > s.counted {
            let mut times = vec![s.next];
            while s.first(times[times.len() - 1] + 1) <= until {
                times.push(s.first(times[times.len() - 1] + 1));
            }
            intended = times[times.len().saturating_sub(s.most_missed)];
            counted = if times.len() > 1 { times[times.len() - 1] } else { counted };
        }
        let missed = s.backlog == Backlog::Skip && until - intended > LATE;
        let overlaps = s.overlap == Overlap::Skip && self.live(&s).is_some();
        let refused = !missed && !overlaps && self.is_refused(&s);
        let passes = missed || overlaps || refused;
        if !passes {
            let child = self.child_of(&s.id, intended);
            let queue = self.jobs[self.at(&child).unwrap()].queue.clone();
            self.count_lateness(&queue, board::Late::Fire, s.at);
        }
        let next = s.first(if passes { until.max(intended) } else { intended } + 1);
        let s = self.schedule(&s.id).unwrap();
        s.counted = if passes { s.counted } else { counted };
        s.refused += u64::from(refused);
        s.set_next(next);
        true
    }

    /// Whether a child would be refused, the one that it replaces gone.
    fn is_refused(&self, s: &Schedule) -> bool {
        let gone = self.live(s).filter(|_| s.overlap == Overlap::Replace);
        let frees = |at: &usize| {
            self.jobs[*at].unique.as_ref().is_some_and(|u| u.until.is_some() || u.time.is_none())
        };
        let taken = |unique: &Unique| {
            self.key_is_free(&unique.key, gone.filter(frees)).is_err()
                || self.check_new_key(&unique.key).is_err()
        };
        let many = |(user, most): (&Bytes, i64)| self.live_of(user, b"", gone) >= most;
        s.unique.as_ref().is_some_and(taken)
            || s.user.as_ref().zip(s.most_live).is_some_and(many)
            || self.check_queues(&[s.queue.as_deref().unwrap_or(b"default")]).is_err()
            || self.has_room(s.queue.as_deref().unwrap_or(b"default"), s.group.as_deref(), gone).is_err()
    }

    fn child_of(&mut self, id: &[u8], intended: i64) -> Bytes {
        let s = self.schedule(id).unwrap().clone();
        let free = |n: &u64| self.at(&child(id, *n)).is_none() && self.tomb(&child(id, *n)).is_none();
        let n = (0..20).map(|power| s.last + (1 << power)).find(free).unwrap();
        let post = board::Post {
            id: Some(&[]),
            payload: &s.payload,
            queue: s.queue.as_deref(),
            group: s.group.as_deref(),
            due: Some(intended + s.delay),
            tags: Some(s.tags.iter().map(|tag| &tag[..]).collect()),
            user: s.user.as_deref(),
            gate: s.gate.clone().map(Box::new),
            costs: Some(s.costs.iter().map(|(limit, cost)| (&limit[..], *cost)).collect())
                .filter(|costs: &board::Costs<'_>| !costs.is_empty()),
            unique: s.unique.as_ref().map(|u| board::TakeKey {
                key: &u.key,
                until: u.until,
                time: u.time,
                on_conflict: board::OnConflict::Reject,
            }),
            ..board::Post::default()
        };
        if let (Overlap::Replace, Some(at)) = (s.overlap, self.live(&s)) {
            self.end_claim_if_held(at);
            self.jobs[at].reason = Some(b"replaced".to_vec());
            self.end(at, State::Cancelled, self.retention(State::Cancelled));
        }
        let id = child(id, n);
        self.unbounded = true;
        self.post(&board::Post { id: Some(&id), exists: board::Exists::Replace, ..post }, &id).unwrap();
        self.unbounded = false;
        let at = self.at(&id).unwrap();
        self.jobs[at].intended = Some(intended);
        self.note_at(at, board::Tally::Fired);
        let s = self.schedule(&s.id.clone()).unwrap();
        (s.fired, s.last, s.intended) = (s.fired + 1, n, Some(intended));
        if s.full() {
            (s.next, s.at) = (NEVER, NEVER);
        }
        id
    }

    fn end_claim_if_held(&mut self, at: usize) {
        let job: &Job = &self.jobs[at];
        if job.hold.is_some() {
            self.end_claim(at, Way::Taken);
        }
    }
}

fn child(id: &[u8], n: u64) -> Bytes {
    [b"@", id, b"@", n.to_string().as_bytes()].concat()
}
