//! Waiting for children on the naive board, which looks at all of them each time.

use board::{OnFailure, State, Tally};

use crate::naive::{Bytes, Job, Model, Way};
use crate::waits::Outcome;

/// What a job asks of its children.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    pub on_failure: OnFailure,
    /// When the wait began.
    pub from: Option<i64>,
    /// A run asks for it.
    pub run: bool,
    /// The flow of the job is not complete.
    pub open: bool,
}

impl Batch {
    pub fn new(on_failure: OnFailure) -> Batch {
        Batch { on_failure, from: None, run: false, open: false }
    }
}

/// Whether it ended without success.
pub fn unsuccessful(job: &Job) -> bool {
    job.state.ended() && job.state != State::Complete
}

impl Model {
    pub fn failed_children(&self, id: &[u8]) -> u64 {
        let failed = |child: &Bytes| unsuccessful(&self.jobs[self.at(child).unwrap()]);
        let here = self.children(id).into_iter().filter(failed).count() as u64;
        self.at(id).map_or(0, |at| self.jobs[at].gone.unsuccessful) + here
    }

    pub fn of_children(&self, id: &[u8], on_failure: OnFailure) -> Outcome {
        match (self.failed_children(id), on_failure) {
            (1.., OnFailure::Hold) => Outcome::Waits,
            (1.., OnFailure::Cancel) => Outcome::Ends(State::Cancelled),
            (1.., OnFailure::Fail) => Outcome::Ends(State::Failed),
            _ if !self.live_children(id).is_empty() => Outcome::Waits,
            _ => Outcome::Met,
        }
    }

    pub fn children_due(&self, job: &Job) -> bool {
        job.batch.as_ref().is_some_and(|batch| match self.of_children(&job.id, batch.on_failure) {
            Outcome::Ends(_) => true,
            Outcome::Met => batch.open || !job.waits_for_others(),
            Outcome::Waits => batch.open,
        })
    }

    pub fn child_left(&mut self, parent: &[u8]) {
        let Some(at) = self.at(parent) else { return };
        let job = &self.jobs[at];
        if job.state == State::Blocked && self.children_due(job) {
            self.look_at_children(at);
        }
    }

    fn look_at_children(&mut self, at: usize) {
        let job = &self.jobs[at];
        self.resolutions.push_back((job.id.clone(), job.order, None));
    }

    pub fn asks_for_children(&mut self, at: usize, batch: Batch) {
        let open = batch.open;
        self.jobs[at].batch = Some(batch);
        self.jobs[at].waived = false;
        if open {
            self.look_at_children(at);
        }
    }

    pub fn ends_batch(&mut self, at: usize) {
        if let Some(from) = self.jobs[at].batch.take().and_then(|batch| batch.from) {
            self.count_await(at, from);
        }
    }

    /// Whether a job that is about to go on has to wait.
    pub fn still_waits(&mut self, at: usize) -> bool {
        let job = &self.jobs[at];
        let Some(batch) = job.batch.clone() else { return job.waits_for_others() };
        if batch.open {
            return true;
        }
        let outcome = self.of_children(&job.id, batch.on_failure);
        if outcome == Outcome::Met && !job.waits_for_others() {
            self.ends_batch(at);
            return false;
        }
        self.begins_batch(at);
        if let Outcome::Ends(_) = outcome {
            self.look_at_children(at);
        }
        true
    }

    fn begins_batch(&mut self, at: usize) {
        let now = self.now;
        let batch = self.jobs[at].batch.as_mut().unwrap();
        batch.open = false;
        if batch.from.replace(batch.from.unwrap_or(now)).is_none() {
            self.note_at(at, Tally::Awaited);
        }
    }

    pub fn resolve_children(&mut self, id: &[u8]) {
        let at = self.at(id).unwrap();
        let job = &self.jobs[at];
        if job.state != State::Blocked {
            return;
        }
        let Some(batch) = job.batch.clone() else { return self.unblock(id) };
        match self.of_children(id, batch.on_failure) {
            Outcome::Ends(state) => return self.end_for_children(id, state),
            outcome if batch.open => {
                if outcome == Outcome::Waits || job.waits_for_others() {
                    return self.begins_batch(at);
                }
                self.jobs[at].batch = None;
            }
            _ => {}
        }
        self.unblock(id);
    }

    pub fn end_for_children(&mut self, id: &[u8], state: State) {
        let text = format!("{} of {} children unsuccessful", self.failed_children(id), self.sums(id).count);
        let (at, text) = (self.at(id).unwrap(), text.into_bytes());
        if state == State::Cancelled {
            return self.call_off(at, Way::Taken, Some(&text));
        }
        self.jobs[at].kind = Some(b"dependency".to_vec());
        self.jobs[at].message = Some(text);
        self.end(at, State::Failed, self.retention(State::Failed));
    }

    /// A job and all that can not run before it has ended; `parent` is that which it is to have.
    pub fn behind(&self, id: &[u8], parent: Option<&[u8]>) -> Vec<Bytes> {
        let mut all = vec![id.to_vec()];
        let mut at = 0;
        while let Some(next) = all.get(at).cloned() {
            let own = self.parent(&next).map(|at| self.jobs[at].id.clone());
            let parent = parent.filter(|_| at == 0).map(<[u8]>::to_vec).or(own);
            let parent = parent.filter(|id| self.at(id).is_some_and(|at| self.jobs[at].batch.is_some()));
            for other in self.waiters(&next).into_iter().chain(parent) {
                if !all.contains(&other) {
                    all.push(other);
                }
            }
            at += 1;
        }
        all
    }

    /// Refuses what a job is to wait for, its children too, when these wait for the job.
    pub fn no_circle<'e>(
        &self,
        id: &[u8],
        mut edges: impl Iterator<Item = &'e Bytes>,
        children: bool,
        parent: Option<&[u8]>,
    ) -> Result<(), String> {
        let behind = self.behind(id, parent.filter(|id| self.at(id).is_some()));
        let family = if children { self.children(id) } else { Vec::new() };
        match edges.any(|edge| behind.contains(edge)) || family.iter().any(|child| behind.contains(child)) {
            true => Err("CYCLE a job would wait for itself".into()),
            false => Ok(()),
        }
    }
}
