//! What one who follows a board knows of it, step by step.

use std::collections::{BTreeMap, BTreeSet};

use board::{Board, Fact, Message, State, Topic, ALL_TOPICS};

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

/// A job as one knows it who hears messages alone.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Heard {
    Waits,
    Ready,
    Claimed(u64),
    Ended(State),
}

#[derive(Default)]
pub struct Mirror {
    jobs: BTreeMap<Bytes, (Seen, i64)>,
    heard: BTreeMap<Bytes, Heard>,
    version: u64,
}

fn number(message: &Message, name: &str) -> Option<i64> {
    message.facts.iter().find_map(|fact| match fact {
        Fact::Number(n, value) if *n == name => Some(*value),
        _ => None,
    })
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
        self.hear(board, model)
    }

    /// Messages say of each job whether it is there, is ready, who holds it and how it ended.
    fn hear(&mut self, board: &mut Board, model: &Model) -> Result<(), String> {
        let mut topics = 0;
        for message in board.messages() {
            same("versions rise", message.version >= self.version, true)?;
            self.version = message.version;
            topics |= message.topic.bit();
            self.take(&message).map_err(|what| format!("{what}: {message:?}"))?;
        }
        same("names of what happened", board.happened(), topics & ALL_TOPICS)?;
        same("jobs heard of", self.heard.len(), model.jobs.len())?;
        for job in &model.jobs {
            let heard = self.heard.get(&job.id).copied();
            let right = match (job.state, heard) {
                (State::Ready, heard) => heard == Some(Heard::Ready),
                (State::Claimed, heard) => heard == job.hold.as_ref().map(|hold| Heard::Claimed(hold.token)),
                (state, heard) if state.ended() => heard == Some(Heard::Ended(state)),
                (_, heard) => matches!(heard, Some(Heard::Waits | Heard::Ready)),
            };
            if !right {
                return Err(format!("{:?} is {:?}, but heard {heard:?}", job.id, job.state));
            }
        }
        Ok(())
    }

    fn take(&mut self, message: &Message) -> Result<(), String> {
        let Some(id) = message.id.as_ref().map(|id| id.borrowed().to_vec()) else { return Ok(()) };
        let before = self.heard.get(&id).copied();
        let token = number(message, "token").map(|token| token as u64);
        let held = match before {
            Some(Heard::Claimed(token)) => Some(token),
            _ => None,
        };
        same("only a post is of what was not there", before.is_some(), message.topic != Topic::Posted)
            .or_else(|e| if message.topic == Topic::Posted { Ok(()) } else { Err(e) })?;
        let kept = !message.facts.contains(&Fact::Flag("kept", false));
        let now = match message.topic {
            Topic::Posted => Heard::Waits,
            Topic::Ready => Heard::Ready,
            Topic::Claimed => Heard::Claimed(token.ok_or("no token")?),
            Topic::Lost => {
                same("who loses holds", held, token)?;
                Heard::Waits
            }
            Topic::Cancel => return same("who is asked to stop holds", held, token),
            Topic::Progress => return Ok(()),
            Topic::Retried | Topic::Abandoned | Topic::Advanced => Heard::Waits,
            Topic::Completed => Heard::Ended(State::Complete),
            Topic::Failed => Heard::Ended(State::Failed),
            Topic::Cancelled => Heard::Ended(State::Cancelled),
            Topic::Trashed => Heard::Ended(State::Trashed),
            Topic::Deleted => {
                self.heard.remove(&id);
                return Ok(());
            }
            Topic::Settings => return Err("not a job's".into()),
        };
        match kept {
            true => self.heard.insert(id, now),
            false => self.heard.remove(&id),
        };
        Ok(())
    }
}
