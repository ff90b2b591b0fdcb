//! What one who follows a board knows of it, step by step.

use std::collections::{BTreeMap, BTreeSet};

use board::{Board, State};

use crate::compare::same;
use crate::naive::{Bytes, Job, Model};

/// What of a job can be seen to change.
type Seen = (State, Bytes, i32, Option<u64>, Option<i64>, Option<u16>, Vec<(Bytes, Bytes)>, usize);

fn seen(job: &Job, model: &Model) -> Seen {
    let deadline = job.hold.as_ref().map(|_| job.deadline());
    let token = job.hold.as_ref().map(|hold| hold.token);
    let edges = model.edges(job).len();
    (job.state, job.queue.clone(), job.priority, token, deadline, job.progress, job.meta.clone(), edges)
}

#[derive(Default)]
pub struct Mirror {
    jobs: BTreeMap<Bytes, (Seen, i64)>,
}

impl Mirror {
    /// Every job that has come, gone or changed since the last step is told, and each that
    /// changed has a higher version.
    pub fn follow(&mut self, board: &mut Board, model: &Model) -> Result<(), String> {
        let mut told = BTreeSet::new();
        board.changed(|_, id| {
            told.insert(id.to_vec());
        });
        let mut jobs = BTreeMap::new();
        for job in &model.jobs {
            let version =
                board.find(&job.id).and_then(|slot| board.record_of(slot)).map_or(0, |r| r.version());
            jobs.insert(job.id.clone(), (seen(job, model), version));
        }
        for id in self.jobs.keys().chain(jobs.keys()) {
            let (before, after) = (self.jobs.get(id), jobs.get(id));
            if before == after {
                continue;
            }
            same("a change is told", told.contains(id), true)?;
            if let (Some((_, old)), Some((_, new))) = (before, after) {
                same("a change has a new version", new > old, true)?;
            }
        }
        self.jobs = jobs;
        Ok(())
    }
}
