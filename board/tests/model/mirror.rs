//! What one who follows a board knows of it, step by step.

use std::collections::{BTreeMap, BTreeSet};

use board::{Board, Event, EventField, EventKind, Filter, Filters, Page, Record, Start, State, ALL_EVENTS};

use crate::compare::{passes, same};
use crate::drive::{NAMES, QUEUES, TAGS};
use crate::naive::{Bytes, Model};

/// What one sees of a record, but for its version, what settings give, and the parent: that
/// goes without a change of its children.
fn seen(record: &Record<'_>) -> String {
    let claim = (record.worker(), record.token(), record.deadline(), record.session(), record.cancel());
    let options = (record.queue(), record.name(), record.group(), record.cost(), record.priority());
    let times = (record.posted(), record.due(), record.claimed(), record.ended(), record.modified());
    let end = (record.previous(), record.reason(), record.result(), record.kind(), record.message());
    let labels = (record.tags().collect::<Vec<_>>(), record.tracked(), record.user(), record.intended());
    let mut after = record.after();
    after.sort_unstable();
    let children = (record.children(), record.pending(), record.unsuccessful(), record.child_wait());
    let family = (children, after, record.unique());
    let work = (record.attempt(), record.lapses(), record.stage(), record.progress(), record.payload());
    let meta: Vec<_> = record.meta().collect();
    let state = (record.seq(), record.state(), record.waiting(), record.signals().len());
    format!("{state:?} {claim:?} {options:?} {times:?} {end:?} {labels:?} {family:?} {work:?} {meta:?}")
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
    jobs: BTreeMap<Bytes, (String, i64)>,
    heard: BTreeMap<Bytes, Heard>,
    version: u64,
    /// What was there at some revisions of before.
    past: Vec<(u64, BTreeSet<Bytes>)>,
    steps: usize,
}

fn number(message: &Event, name: &str) -> Option<i64> {
    message.fields.iter().find_map(|fact| match fact {
        EventField::Number(n, value) if *n == name => Some(*value),
        _ => None,
    })
}

/// One who hears of tracked jobs alone is told of these what all others are told, of the board
/// as well, and as a worker all that concerns it.
pub fn hear_of_tracked(all: &[Event], heard: Vec<Event>, mut tracked: BTreeSet<Bytes>) -> Result<(), String> {
    let mut want = Vec::new();
    for message in all {
        let changes = |word: &str| {
            let Some(EventField::Text(_, text)) = message.fields.get(1) else { return false };
            message.kind == EventKind::Updated
                && text.split(|byte| *byte == b',').any(|one| one == word.as_bytes())
        };
        let id = message.id.as_ref().map(|id| id.borrowed().to_vec());
        tracked.extend(id.clone().filter(|_| changes("track")));
        let followed = id.as_ref().is_none_or(|id| tracked.contains(id));
        same("it says whether it is tracked", message.tracked, followed && id.is_some())?;
        let public = followed && message.public;
        if public || message.kind.for_worker() {
            want.push(Event { public, ..message.clone() });
        }
        let gone =
            message.kind == EventKind::Deleted || message.fields.contains(&EventField::Flag("kept", false));
        if let Some(id) = id.filter(|_| gone || changes("untrack")) {
            tracked.remove(&id);
        }
    }
    same("what is heard of tracked jobs", heard, want)
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
            let record = board.find(&job.id).and_then(|slot| board.record_of(slot)).ok_or("no record")?;
            jobs.insert(job.id.clone(), (seen(&record), record.version()));
        }
        for id in self.jobs.keys().chain(jobs.keys()) {
            let (before, after) = (self.jobs.get(id), jobs.get(id));
            if before == after {
                continue;
            }
            if !told.contains(id) {
                return Err(format!("a change that is not told of {id:?}: {before:?} became {after:?}"));
            }
            if let (Some((seen, old)), Some((sees, new))) = (before, after) {
                if new <= old {
                    return Err(format!("a change without a new version of {id:?}: {seen} became {sees}"));
                }
            }
        }
        self.jobs = jobs;
        self.ask(board, model)
    }

    /// What changed and went since some revision of before makes of what was known then what
    /// is there now.
    fn ask(&mut self, board: &mut Board, model: &Model) -> Result<(), String> {
        self.steps += 1;
        if self.steps % 4 == 0 {
            self.past.push((board.revision(), self.jobs.keys().cloned().collect()));
        }
        // Now and then somebody asks who is remembered; before, all records are looked at.
        if self.steps % 32 == 20 {
            board.follow_changes();
        }
        let Some((revision, before)) = self.past.get(self.steps * 7 % self.past.len().max(1)) else {
            return Ok(());
        };
        let other = match self.steps % 6 {
            0 => Some(Filter::Queue(QUEUES[0])),
            1 => Some(Filter::Tag(TAGS[0])),
            2 => Some(Filter::Name(NAMES[1])),
            _ => None,
        };
        let others = Filters::new(other, []);
        let mut since = others.clone();
        since.ask(Filter::Since(*revision));
        let changed = |id: &Bytes| self.jobs.get(id).is_some_and(|(_, version)| *version as u64 > *revision);
        let want = model.jobs.iter().filter(|job| changed(&job.id) && passes(model, job, &others));
        let want: BTreeSet<&Bytes> = want.map(|job| &job.id).collect();
        same("changed since, counted", board.count_jobs(&since, usize::MAX).unwrap(), want.len() as u64)?;
        for reverse in [false, true] {
            let mut page = Page { filters: since.clone(), count: 3, reverse, ..Page::default() };
            let mut all = Vec::new();
            loop {
                let (slots, next) = board.list(&page);
                same("a page is not too long", slots.len() <= 3, true)?;
                all.extend(slots);
                page.from = next.and_then(|next| Start::read(next.text().as_bytes()));
                if page.from.is_none() {
                    break;
                }
            }
            let whole = Page { filters: others.clone(), count: usize::MAX, reverse, ..Page::default() };
            let mut order = board.list(&whole).0;
            order.retain(|slot| all.contains(slot));
            same("the order of a listing, each once", &all, &order)?;
            let ids = all.iter().filter_map(|slot| board.record_of(*slot)).map(|r| r.id().to_vec());
            let ids: Vec<Bytes> = ids.collect();
            same("changed since", ids.iter().collect::<BTreeSet<_>>(), want.clone())?;
        }
        if let Some(gone) = board.gone_since(*revision) {
            let once: BTreeSet<&Bytes> = gone.iter().collect();
            same("gone, each once", once.len(), gone.len())?;
            same("gone is not there", gone.iter().any(|id| self.jobs.contains_key(id)), false)?;
            let missing = before.iter().find(|id| !self.jobs.contains_key(*id) && !once.contains(id));
            same("gone", missing, None)?;
        }
        Ok(())
    }

    /// Messages say of each job whether it is there, is ready, who holds it and how it ended.
    pub fn hear(&mut self, messages: Vec<Event>, happened: u32, model: &Model) -> Result<(), String> {
        let mut kinds = 0;
        for message in messages {
            same("versions rise", message.version >= self.version, true)?;
            self.version = message.version;
            kinds |= message.kind.bit();
            self.take(&message).map_err(|what| format!("{what}: {message:?}"))?;
        }
        same("names of what happened", happened, kinds & ALL_EVENTS)?;
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

    fn take(&mut self, message: &Event) -> Result<(), String> {
        let Some(id) = message.id.as_ref().map(|id| id.borrowed().to_vec()) else { return Ok(()) };
        let before = self.heard.get(&id).copied();
        let token = number(message, "token").map(|token| token as u64);
        let held = match before {
            Some(Heard::Claimed(token)) => Some(token),
            _ => None,
        };
        same("only a post is of what was not there", before.is_some(), message.kind != EventKind::Posted)
            .or_else(|e| if message.kind == EventKind::Posted { Ok(()) } else { Err(e) })?;
        let kept = !message.fields.contains(&EventField::Flag("kept", false));
        let now = match message.kind {
            EventKind::Posted => Heard::Waits,
            EventKind::Ready => Heard::Ready,
            EventKind::Claimed => Heard::Claimed(token.ok_or("no token")?),
            EventKind::Lost => {
                same("who loses holds", held, token)?;
                Heard::Waits
            }
            EventKind::Cancel => return same("who is asked to stop holds", held, token),
            EventKind::Grace => return same("who is in the grace holds", held, token),
            EventKind::Progress | EventKind::Signalled | EventKind::Updated => return Ok(()),
            EventKind::Retried | EventKind::Abandoned | EventKind::Advanced | EventKind::Dead => Heard::Waits,
            EventKind::Awaiting => Heard::Waits,
            EventKind::Completed => Heard::Ended(State::Complete),
            EventKind::Failed => Heard::Ended(State::Failed),
            EventKind::Cancelled => Heard::Ended(State::Cancelled),
            EventKind::Trashed => Heard::Ended(State::Trashed),
            EventKind::Deleted => {
                self.heard.remove(&id);
                return Ok(());
            }
            EventKind::Settings => return Err("not a job's".into()),
        };
        match kept {
            true => self.heard.insert(id, now),
            false => self.heard.remove(&id),
        };
        Ok(())
    }
}
