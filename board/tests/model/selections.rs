//! An operator's verb on a selection by filters: which jobs it is for, and that slices until
//! the end do it to each of them once.

use board::{Filters, Label, Operation, Requeue, Selection, SelectionCursor, State, To, Update};

use crate::commands::{Act, Command, More};
use crate::compare::{filters, passes, same};
use crate::drive::{report, signal, steps, tags, to, QUEUES};
use crate::naive::{Bytes, Job, Model};
use crate::operators::of_any_state;
use crate::world::World;

impl Model {
    /// Whether the verb is for a job, leaving aside who waits for it.
    fn is_for(&self, deed: &Operation<'_>, job: &Job) -> bool {
        let asked = job.hold.as_ref().is_some_and(|hold| hold.cancel);
        match deed {
            Operation::Cancel { force } => !job.state.ended() && (*force || !asked),
            Operation::Release => job.hold.is_some(),
            Operation::Requeue(requeue) => match job.state {
                State::Complete | State::Claimed => false,
                state => state.ended() || requeue.to == To::Origin && job.origin.is_some(),
            },
            Operation::Delete => true,
            Operation::Signal(signal) => {
                !job.state.ended() && !job.signals.iter().any(|other| other.name == signal.name)
            }
            Operation::Label(_, None) => true,
            Operation::Update(update) | Operation::Label(_, Some(update)) => {
                of_any_state(update) || !job.state.ended() && (update.due.is_none() || job.hold.is_none())
            }
        }
    }

    /// Those the verb is for, and of these the ones that are held back by who waits for them.
    fn selected(&self, deed: &Operation<'_>, filters: &Filters<'_>) -> (Vec<Bytes>, Vec<Bytes>) {
        let inside = |job: &&Job| self.is_for(deed, job) && passes(self, job, filters);
        let all: Vec<Bytes> = self.jobs.iter().filter(inside).map(|job| job.id.clone()).collect();
        let takes_away = matches!(deed, Operation::Cancel { .. } | Operation::Delete);
        let stays = |id: &Bytes| takes_away && !self.with_waiters(id).iter().all(|w| all.contains(w));
        let (go, stay): (Vec<Bytes>, Vec<Bytes>) = all.iter().cloned().partition(|id| !stays(id));
        // What is kept past its time for others alone goes with them, not by itself.
        let own = |id: &Bytes| {
            let job = &self.jobs[self.at(id).unwrap()];
            !takes_away || !job.pinned || job.drop_at > self.now || self.in_family(job)
        };
        (go.into_iter().filter(own).collect(), stay)
    }

    /// Whether its parent or its children keep its record.
    fn in_family(&self, job: &Job) -> bool {
        job.tie.as_ref().is_some_and(|tie| tie.kept) || !self.live_children(&job.id).is_empty()
    }

    fn act(&mut self, deed: &Operation<'_>, id: &[u8]) -> Result<(), String> {
        match deed {
            Operation::Cancel { force } => self.cancel(id, *force, None).map(|done| done.map(|_| ())),
            Operation::Release => self.release(id),
            Operation::Requeue(requeue) => self.requeue(id, requeue),
            Operation::Delete => Some(self.delete(&[id]).map(|_| ())),
            Operation::Signal(signal) => self.signal(id, signal).map(|done| done.map(|_| ())),
            Operation::Update(update) => self.update(id, update),
            Operation::Label(label, None) => self.label(id, label),
            Operation::Label(label, Some(update)) => match self.update(id, update) {
                Some(Ok(())) => self.label(id, label),
                refused => refused,
            },
        }
        .unwrap_or_else(|| Err("not there".into()))
    }
}

pub fn select(
    world: &mut World,
    model: &mut Model,
    act: &Act,
    list: &Command,
    count: usize,
    bytes: usize,
) -> Result<(), String> {
    let (mut update, mut label) = (Update::default(), Label::default());
    let sent;
    let deed = match act {
        Act::Cancel(force) => Operation::Cancel { force: *force },
        Act::Release => Operation::Release,
        Act::Requeue(queue, fresh) => {
            Operation::Requeue(Requeue { to: to(*queue), fresh: *fresh, payload: None })
        }
        Act::Delete => Operation::Delete,
        Act::Signal(name, value, sender) => {
            sent = signal(*name, *value, *sender);
            Operation::Signal(&sent)
        }
        Act::Label(tag, untag, track) => {
            label = Label { tag: tags(tag), untag: tags(untag), track: *track };
            Operation::Label(&label, None)
        }
        Act::Update { priority, queue, delay, talk, tag, unstep } => {
            update.priority = *priority;
            update.queue = queue.map(|q| QUEUES[q as usize]);
            update.due = delay.map(|ms| world.now + ms);
            update.report = talk.as_ref().map(report);
            update.unstep = steps(unstep);
            label.tag = tag.as_deref().map(tags).unwrap_or_default();
            match tag {
                Some(_) => Operation::Label(&label, Some(&update)),
                None => Operation::Update(&update),
            }
        }
    };
    // What others do to the relatives of a job changes whether it passes: one job is looked at after
    // another here.
    let mut list = list.clone();
    if let Command::List { more, .. } = &mut list {
        more.retain(|(more, _)| !matches!(more, More::Parent | More::After));
    }
    let filters = filters(&list, model.now);
    let (want, mut kept) = model.selected(&deed, &filters);
    // Whether a parent is held back depends on the slices in which its children go.
    let families = matches!(deed, Operation::Delete) && model.jobs.iter().any(|job| model.in_family(job));
    // A parent is held back while a child lives, which slices before may have deleted.
    let related = matches!(deed, Operation::Delete) && model.jobs.iter().any(|job| job.tie.is_some());
    let mut once = |dry: bool| -> Result<(Vec<Bytes>, Vec<Bytes>), String> {
        let mut slice = Selection { deed, filters: filters.clone(), from: None, count, bytes, dry };
        let (mut ids, mut held) = (Vec::new(), Vec::new());
        loop {
            let got = world.select(&slice);
            same("a slice is not too long", got.ids.len() + got.held.len() <= count, true)?;
            for id in got.ids.iter().filter(|_| !dry) {
                // A record that was kept for one that goes may have gone with it.
                let gone = matches!(deed, Operation::Delete) && model.at(id).is_none();
                same("refused", if gone { Ok(()) } else { model.act(&deed, id) }, Ok(()))?;
            }
            ids.extend(got.ids);
            held.extend(got.held);
            match got.next {
                Some(next) => slice.from = SelectionCursor::read(next.text().as_bytes()),
                None => return Ok((ids, held)),
            }
        }
    };
    let (dry, _) = once(true)?;
    let (mut ids, mut held) = once(false)?;
    if families {
        return Ok(());
    }
    if related {
        return Ok(());
    }
    // A dry run does not know how full a queue would be, or which keys are taken, after earlier
    // slices.
    let limited = update.queue.is_some() || matches!(deed, Operation::Requeue(_) | Operation::Signal(_));
    if !limited || held.is_empty() {
        same("of a dry run", dry.len(), ids.len())?;
    }
    // Who does not fit into its queue, or whose key is taken, is held back, and would be now.
    for id in held.iter().filter(|_| limited) {
        let refusal = model.act(&deed, id).err().unwrap_or_default();
        same("held", refusal.starts_with("LIMIT ") || refusal.starts_with("EXISTS "), true)?;
    }
    if limited {
        kept = held.clone();
        ids.extend(held.clone());
    }
    ids.sort();
    held.sort();
    let sorted = |mut ids: Vec<Bytes>| {
        ids.sort();
        ids
    };
    same("selected", ids, sorted(want))?;
    same("held back", held, sorted(kept))
}
