//! The rounds of groups: not whose turn it is, but that nobody has one too many while another
//! waits.

use std::collections::BTreeMap;

use board::{Setting, State};

use crate::naive::{Bytes, Job, Model};

/// A group, or the jobs without one.
pub type Group = Option<Bytes>;

/// What a group that waits at a level has seen since its last turn, or since it came.
#[derive(Debug, Clone, Default)]
pub struct Wait {
    /// Its ready jobs there, and when each last changed.
    jobs: Vec<(Bytes, i64)>,
    /// How many turns each other has had.
    turns: BTreeMap<Group, u32>,
    /// Its tag was given by other weights: how many turns others have first is not told.
    outdated: bool,
}

/// A queue, a level and a group.
pub type Place = (Bytes, i32, Group);

#[derive(Debug, Clone, Default)]
pub struct Rounds {
    pub waits: BTreeMap<Place, Wait>,
    /// When each job last changed, as the board tells.
    pub versions: BTreeMap<Bytes, i64>,
}

impl Rounds {
    /// What these have seen is not counted. A tag that is outdated stays so.
    pub fn forget_turns(&mut self, of: impl Fn(&Place) -> bool) {
        let waits = self.waits.iter_mut().filter(|(place, _)| of(place));
        waits.for_each(|(_, wait)| wait.turns.clear());
    }
}

impl Model {
    fn place(&self, at: usize) -> Place {
        let job = &self.jobs[at];
        (job.queue.clone(), job.level(), job.group.clone())
    }

    fn waiting(&self, place: &Place) -> Vec<(Bytes, i64)> {
        let here = (0..self.jobs.len())
            .filter(|at| self.jobs[*at].state == State::Ready && self.place(*at) == *place);
        let ids = here.map(|at| self.jobs[at].id.clone());
        ids.map(|id| (id.clone(), self.rounds.versions.get(&id).copied().unwrap_or(-1))).collect()
    }

    /// The turns that others had while a group waited without a break.
    fn seen(&self, place: &Place) -> Option<&Wait> {
        let wait = self.rounds.waits.get(place)?;
        let waiting = self.waiting(place);
        wait.jobs.iter().any(|job| waiting.contains(job)).then_some(wait)
    }

    pub fn group_rule(&self, queue: &[u8], group: &[u8], setting: Setting) -> i64 {
        let own = |group: &[u8]| self.group_own.get(&(queue.to_vec(), group.to_vec(), setting)).copied();
        own(group).or_else(|| own(b"*")).unwrap_or(setting.spec().default)
    }

    fn weight(&self, job: &Job) -> u32 {
        let group = job.group.as_ref();
        group.map_or(1, |group| self.group_rule(&job.queue, group, Setting::Weight) as u32)
    }

    /// How many turns a group has at most while another waits for one.
    fn turns_of(&self, job: &Job, other: &Job) -> u32 {
        match (self.weight(job), self.weight(other)) {
            (a, b) if a == b => 1,
            (a, b) => a.div_ceil(b) + 1,
        }
    }

    pub fn of_group<'m>(&'m self, queue: &'m [u8], group: &'m [u8]) -> impl Iterator<Item = &'m Job> {
        self.jobs.iter().filter(move |j| j.queue == queue && j.group.as_deref() == Some(group))
    }

    fn runs(&self, queue: &[u8], group: &[u8]) -> i64 {
        self.of_group(queue, group).filter(|j| j.state == State::Claimed).count() as i64
    }

    fn ordered(&self, queue: &[u8], group: &[u8]) -> bool {
        self.group_rule(queue, group, Setting::Ordered) > 0
    }

    /// Why a job of a group may not run; `claimed`: it is to be claimed anew.
    pub fn kept_back(&self, job: &Job, claimed: bool) -> Option<&'static str> {
        let group = job.group.as_deref()?;
        let until = self.pauses.get(&Some((job.queue.clone(), job.group.clone()))).map(|p| p.until);
        if claimed && until.is_some_and(|until| until > self.now) {
            return Some("NOTREADY paused");
        }
        let (runs, ordered) = (self.runs(&job.queue, group), self.ordered(&job.queue, group));
        let most = self.group_rule(&job.queue, group, Setting::Concurrency);
        if most >= 0 && runs >= most {
            return Some("LIMIT concurrency");
        }
        if ordered && runs > 0 {
            return Some(if until.is_some() { "LIMIT concurrency" } else { "NOTREADY ordered" });
        }
        if claimed && ordered && !self.is_next(job) {
            return Some("NOTREADY ordered");
        }
        self.limits_of(job).iter().any(|limit| self.limit_full(limit)).then_some("LIMIT concurrency")
    }

    /// Whether it is the job that its ordered group gives next: what has begun goes first.
    pub fn is_next(&self, job: &Job) -> bool {
        let group = job.group.as_deref().unwrap_or_default();
        let begun = |j: &&Job| !j.state.ended() && j.attempt > 0;
        let any = self.of_group(&job.queue, group).any(|j| begun(&j));
        let those = self.of_group(&job.queue, group).filter(|j| j.state == State::Ready);
        let first = those.filter(|j| !any || begun(j)).min_by_key(|j| j.rank());
        first.is_some_and(|first| first.id == job.id)
    }

    /// Whether nothing keeps a ready job from being its group's next but its place in line.
    fn may_go(&self, job: &Job) -> bool {
        let Some(group) = &job.group else { return true };
        let paused = self.pauses.contains_key(&Some((job.queue.clone(), Some(group.clone()))));
        let ordered = self.ordered(&job.queue, group);
        let rests = self.group_rests(job);
        !paused && !rests && self.kept_back(job, false).is_none() && (!ordered || self.is_next(job))
    }

    /// Whether more jobs of a group would run in a queue than may.
    pub fn group_full(&self, queue: &[u8], group: &[u8]) -> bool {
        let most = self.group_rule(queue, group, Setting::Concurrency);
        let runs = self.runs(queue, group);
        most >= 0 && runs >= most || self.ordered(queue, group) && runs > 0
    }

    pub fn configure_group(&mut self, queue: &[u8], group: &[u8], setting: Setting, value: Option<i64>) {
        let key = (queue.to_vec(), group.to_vec(), setting);
        match value {
            Some(value) => self.group_own.insert(key, value),
            None => self.group_own.remove(&key),
        };
        if setting == Setting::Weight {
            // Whoever waits keeps the tag that it has until its next turn.
            for at in 0..self.jobs.len() {
                let place = self.place(at);
                if place.0 == queue {
                    self.rounds.waits.insert(place, Wait { outdated: true, ..Wait::default() });
                }
            }
        }
    }

    /// The jobs of which a queue may give one now: one for each group that has its turn.
    pub fn heads(&self, queue: &[u8]) -> Vec<usize> {
        self.heads_with(queue, true)
    }

    /// The same; or without the groups that count against the limits of all groups.
    fn heads_with(&self, queue: &[u8], shared: bool) -> Vec<usize> {
        if self.paused(Some(queue)).is_some() || self.full(queue) {
            return Vec::new();
        }
        let mut best: BTreeMap<Group, usize> = BTreeMap::new();
        for at in 0..self.jobs.len() {
            let job = &self.jobs[at];
            let counts = shared || !self.shares(job);
            if job.state == State::Ready && job.queue == queue && counts && self.may_go(job) {
                let head = best.entry(job.group.clone()).or_insert(at);
                if job.rank() < self.jobs[*head].rank() {
                    *head = at;
                }
            }
        }
        let top = best.values().map(|at| self.jobs[*at].level()).max();
        best.retain(|_, at| Some(self.jobs[*at].level()) == top);
        let heads: Vec<usize> = best.into_values().collect();
        let owed = |other: usize, at: usize| {
            let wait = self.seen(&self.place(other)).filter(|wait| !wait.outdated);
            let most = self.turns_of(&self.jobs[at], &self.jobs[other]);
            wait.and_then(|wait| wait.turns.get(&self.jobs[at].group)).is_some_and(|turns| *turns >= most)
        };
        let may = |at: &usize| !heads.iter().any(|other| other != at && owed(*other, *at));
        heads.iter().copied().filter(may).collect()
    }

    /// A job of a group is being claimed: the others have seen that.
    pub fn turn(&mut self, at: usize) {
        let (group, queue) = (self.jobs[at].group.clone(), self.jobs[at].queue.clone());
        let others = self.heads(&queue);
        if others.iter().any(|other| self.shared_lacks(&self.jobs[*other])) {
            // Whether these had their turn is told by the order of their tags alone.
            self.rounds.forget_turns(|(q, ..)| *q == queue);
            return;
        }
        for other in others.into_iter().filter(|other| self.jobs[*other].group != group) {
            let place = self.place(other);
            let jobs = self.waiting(&place);
            let unbroken = self.seen(&place).is_some();
            let wait = self.rounds.waits.entry(place).or_default();
            if !unbroken {
                wait.turns.clear();
            }
            wait.jobs = jobs;
            *wait.turns.entry(group.clone()).or_default() += 1;
        }
        self.had_turn(at);
    }

    /// Its group waits anew; a claim by id is a turn too.
    pub fn had_turn(&mut self, at: usize) {
        let place = self.place(at);
        self.rounds.waits.remove(&place);
    }

    /// A queue without groups knows nothing of turns.
    pub fn close_rounds(&mut self) {
        let Model { jobs, group_own, pauses, rounds, lists, .. } = self;
        let paused = |queue: &Bytes| pauses.keys().flatten().any(|(q, group)| q == queue && group.is_some());
        rounds.waits.retain(|(queue, ..), _| {
            jobs.iter().any(|job| job.queue == *queue && job.group.is_some())
                || group_own.keys().any(|(q, ..)| q == queue)
                || lists.keys().any(|(q, group)| q == queue && group.is_some())
                || paused(queue)
        });
    }

    fn any_rests(&self, queue: &[u8]) -> bool {
        self.jobs.iter().any(|job| job.queue == queue && job.state == State::Ready && self.group_rests(job))
    }

    /// What a queue gives next: what was chosen, where that may be; else the last of what may.
    /// It gives nothing while what it would give lacks tokens.
    pub fn next_of(&self, queue: &[u8], chosen: Option<&Bytes>) -> Option<usize> {
        let mut heads = self.heads(queue);
        let lacks = |at: &usize| self.tokens_at(&self.jobs[*at]) > self.now;
        if heads.iter().any(|at| self.shared_lacks(&self.jobs[*at])) {
            // Of the groups that share limits the one whose turn it is may be one that lacks
            // tokens, and then the others go.
            let others = self.heads_with(queue, false);
            heads.extend(&others);
            let same = heads.into_iter().find(|at| Some(&self.jobs[*at].id) == chosen && !lacks(at));
            let idle = chosen.is_none() && !others.iter().any(lacks);
            return same.or_else(|| others.first().copied().filter(|_| idle));
        }
        let same = heads.iter().copied().find(|at| Some(&self.jobs[*at].id) == chosen && !lacks(at));
        match same {
            None if heads.iter().any(lacks) => None,
            // A group that stood in its round when the clock was put back keeps others waiting.
            None if self.now < self.latest && self.any_rests(queue) => None,
            None => heads.into_iter().max_by_key(|at| self.jobs[*at].plain_rank()),
            same => same,
        }
    }
}
