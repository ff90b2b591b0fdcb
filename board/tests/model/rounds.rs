//! The rounds of groups: not whose turn it is, but that nobody has one too many while another
//! waits.

use std::collections::BTreeMap;

use board::State;

use crate::naive::{Bytes, Model};

/// A group, or the jobs without one.
pub type Group = Option<Bytes>;

/// What a group that waits at a level has seen since its last turn, or since it came.
#[derive(Debug, Default)]
pub struct Wait {
    /// Its ready jobs there, and when each last changed.
    jobs: Vec<(Bytes, i64)>,
    /// How many turns each other has had.
    turns: BTreeMap<Group, u32>,
}

/// A queue, a priority and a group.
type Place = (Bytes, i32, Group);

#[derive(Debug, Default)]
pub struct Rounds {
    waits: BTreeMap<Place, Wait>,
    /// When each job last changed, as the board tells.
    pub versions: BTreeMap<Bytes, i64>,
}

impl Model {
    fn place(&self, at: usize) -> Place {
        let job = &self.jobs[at];
        (job.queue.clone(), job.priority, job.group.clone())
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

    /// The jobs of which a queue may give one now: one for each group that has its turn.
    pub fn heads(&self, queue: &[u8]) -> Vec<usize> {
        if self.paused(Some(queue)).is_some() || self.full(queue) {
            return Vec::new();
        }
        let mut best: BTreeMap<Group, usize> = BTreeMap::new();
        for at in 0..self.jobs.len() {
            let job = &self.jobs[at];
            if job.state == State::Ready && job.queue == queue {
                let head = best.entry(job.group.clone()).or_insert(at);
                if job.rank() < self.jobs[*head].rank() {
                    *head = at;
                }
            }
        }
        let top = best.values().map(|at| self.jobs[*at].priority).max();
        best.retain(|_, at| Some(self.jobs[*at].priority) == top);
        let heads: Vec<usize> = best.into_values().collect();
        let owed = |other: usize, at: usize| {
            let wait = self.seen(&self.place(other));
            wait.and_then(|wait| wait.turns.get(&self.jobs[at].group)).is_some_and(|turns| *turns >= 1)
        };
        let may = |at: &usize| !heads.iter().any(|other| other != at && owed(*other, *at));
        heads.iter().copied().filter(may).collect()
    }

    /// A job of a group is being claimed: the others have seen that.
    pub fn turn(&mut self, at: usize) {
        let group = self.jobs[at].group.clone();
        let others = self.heads(&self.jobs[at].queue.clone());
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
        let place = self.place(at);
        self.rounds.waits.remove(&place);
    }

    /// What a queue gives next: what was chosen, where that may be; else the last of what may.
    pub fn next_of(&self, queue: &[u8], chosen: Option<&Bytes>) -> Option<usize> {
        let heads = self.heads(queue);
        let same = heads.iter().copied().find(|at| Some(&self.jobs[*at].id) == chosen);
        same.or_else(|| heads.into_iter().max_by_key(|at| self.jobs[*at].rank()))
    }
}
