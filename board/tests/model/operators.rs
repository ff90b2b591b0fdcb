//! The verbs of operators on the naive board.

use board::{Depend, Label, Report, Requeue, Setting, State, Tally, To, Update};

use crate::children::Batch;
use crate::naive::*;
use crate::verbs::shown;

/// Whether the update also changes jobs that have ended: it has fields, a line and steps at most.
pub fn of_any_state(update: &Update<'_>) -> bool {
    let report = update.report.clone().unwrap_or_default();
    let kept = Report { meta: report.meta.clone(), log: report.log, ..Report::default() };
    let plain = Update { report: None, unstep: Vec::new(), ..update.clone() };
    report == kept && plain == Update::default()
}

impl Model {
    pub fn cancel(
        &mut self,
        id: &[u8],
        force: bool,
        by: Option<&[u8]>,
    ) -> Option<Result<&'static str, String>> {
        let at = self.at(id)?;
        let owner = self.jobs[at].user.as_deref();
        if by.is_some() && owner != by {
            return Some(Err(format!("NOTOWNER {}", shown(owner.unwrap_or(b"-")))));
        }
        let grace = self.queue_rule(&self.jobs[at].queue, Setting::CancelGrace);
        let cancel_end = later(self.now, grace);
        let job = &self.jobs[at];
        let asked = job.hold.as_ref().is_some_and(|h| h.cancel && !force);
        if let (false, false, Err(refusal)) = (job.state.ended(), asked, self.depended(&[id])) {
            return Some(Err(refusal));
        }
        let job = &mut self.jobs[at];
        Some(match (job.state, job.hold.as_mut()) {
            (State::Cancelled, _) => Ok("already"),
            (state, _) if state.ended() => Err(format!("ENDED {}", state.name())),
            (_, Some(hold)) if !force => match std::mem::replace(&mut hold.cancel, true) {
                true => Ok("already"),
                false => {
                    hold.cancel_end = cancel_end;
                    Ok("requested")
                }
            },
            _ => {
                self.call_off(at, Way::Taken, None);
                Ok("cancelled")
            }
        })
    }

    pub fn release(&mut self, id: &[u8]) -> Option<Result<(), String>> {
        self.release_to(id, false)
    }

    /// Takes a job back; with `front` it comes before all ready jobs of its queue and group with its priority.
    pub fn release_to(&mut self, id: &[u8], front: bool) -> Option<Result<(), String>> {
        let at = self.at(id)?;
        if self.jobs[at].hold.is_none() {
            return Some(Err(format!("NOTCLAIMED {}", self.jobs[at].state.name())));
        }
        if !self.cancelled(at, Way::Taken, None, &board::Report::default()) {
            self.note_at(at, Tally::Released);
            self.end_claim(at, Way::Taken);
            if front {
                self.goes_first(at);
            }
            self.ready(at, self.now);
        }
        Some(Ok(()))
    }

    fn goes_first(&mut self, at: usize) {
        let job = &self.jobs[at];
        let beside = |other: &&Job| {
            other.state == State::Ready
                && (&other.queue, &other.group) == (&job.queue, &job.group)
                && other.level() == job.level()
        };
        let Some(first) = self.jobs.iter().filter(beside).map(Job::rank).min() else { return };
        if first > job.rank() {
            return;
        }
        let earlier = job.rank().1.unwrap() - first.1.unwrap() + 1;
        let job = &mut self.jobs[at];
        let since = job.since.unwrap();
        job.since = Some((since - earlier).max(0));
        job.idle += since - (since - earlier).max(0);
    }

    pub fn requeue(&mut self, id: &[u8], requeue: &Requeue<'_>) -> Option<Result<(), String>> {
        let Requeue { to, fresh, payload } = *requeue;
        let at = self.at(id)?;
        let now = self.now;
        let job = &self.jobs[at];
        match job.state {
            State::Complete => return Some(Err("ENDED complete".into())),
            State::Claimed => return Some(Err("NOTENDED claimed".into())),
            _ if to == To::Origin && job.origin.is_some() => {}
            state if !state.ended() => return Some(Err(format!("NOTENDED {}", state.name()))),
            _ => {}
        }
        let (ended, stays) = (job.state.ended(), to == To::Same && job.origin.is_some());
        let origin = job.origin.as_ref().map(|(queue, ..)| queue.clone());
        let queue = match to {
            To::Same => None,
            To::Queue(queue) => Some(queue),
            To::Origin => origin.as_deref(),
        };
        let free = job.unique.as_ref().filter(|_| !stays).map_or(Ok(()), |unique| {
            self.key_is_free(&unique.key, Some(at))?;
            self.check_new_key(&unique.key)
        });
        let free = free.and_then(|()| queue.map_or(Ok(()), |queue| self.check_queues(&[queue])));
        let room =
            free.and_then(|()| self.has_room(queue.unwrap_or(&job.queue), job.group.as_deref(), Some(at)));
        if room.is_err() {
            return Some(room);
        }
        if !stays {
            self.take_key(at);
            self.jobs[at].origin = None;
        }
        let job = &mut self.jobs[at];
        if let Some(queue) = queue {
            job.queue = queue.to_vec();
        }
        if let Some(payload) = payload {
            job.payload = payload.to_vec();
        }
        let queue = job.queue.clone();
        let ageing = self.queue_rule(&queue, Setting::Ageing);
        let job = &mut self.jobs[at];
        job.ageing = ageing;
        (job.attempt, job.fails, job.lapses, job.idle, job.idle_from) = (0, 0, 0, 0, None);
        (job.progress, job.stage) = (None, None);
        job.ghosts.clear();
        job.sent_on = None;
        if fresh {
            job.steps.clear();
            job.timeouts.clear();
            job.waived = false;
        }
        (job.since, job.ready) = (Some(now), now);
        job.pinned = false;
        if let Some(past) = job.past.as_mut() {
            past.way = Way::Taken;
        }
        self.note_at(at, Tally::Requeued);
        if !stays {
            self.arm(at);
        }
        self.ready(at, now);
        self.begin_in_family(id, ended);
        Some(Ok(()))
    }

    pub fn delete(&mut self, ids: &[&[u8]]) -> Result<usize, String> {
        self.depended(ids)?;
        self.childless(ids)?;
        let ids: Vec<&[u8]> = ids.iter().copied().filter(|id| self.at(id).is_some()).collect();
        for id in &ids {
            // The end of one may be all that kept the record of another.
            if self.at(id).is_none() {
                self.forget(id);
                continue;
            }
            let at = self.at(id).unwrap();
            self.note_at(at, Tally::Deleted);
            self.ends_wait(at);
            self.ends_batch(at);
            self.detach_all(id);
            for waiter in self.waiters(id) {
                let at = self.at(&waiter).unwrap();
                self.jobs[at].after.retain(|edge| edge.0 != *id);
                self.unblock(&waiter);
            }
            if self.jobs[self.at(id).unwrap()].state != State::Complete {
                self.leave_parent(id);
            }
            self.part(id);
            self.free_key(self.at(id).unwrap());
            let job = self.jobs.remove(self.at(id).unwrap());
            self.gone(&job);
            self.forget(id);
        }
        Ok(ids.len())
    }

    pub fn depend(&mut self, id: &[u8], depend: &Depend<'_>) -> Option<Result<(), String>> {
        let at = self.at(id)?;
        let job = &self.jobs[at];
        if let Some(hold) = &job.hold {
            return Some(Err(format!("CLAIMED {}", shown(&hold.worker))));
        }
        if job.state.ended() {
            return Some(Err(format!("ENDED {}", job.state.name())));
        }
        if let (1.., Some(past), true) = (job.attempt, &job.past, job.state != State::Blocked) {
            return Some(Err(format!("CLAIMED {}", shown(&past.hold.worker))));
        }
        let due = if job.state == State::Ready { 0 } else { job.due };
        match depend {
            Depend::Clear => {
                self.gives_up_waiting(at);
                self.jobs[at].gate = None;
                self.detach_all(id);
                let at = self.at(id).unwrap();
                if self.jobs[at].batch.is_some() {
                    self.ends_batch(at);
                    self.jobs[at].waived = true;
                }
            }
            Depend::RemoveChildren => {
                self.ends_batch(at);
                self.jobs[at].waived = true;
            }
            Depend::RemoveSignals => {
                self.gives_up_waiting(at);
                self.jobs[at].gate = None;
            }
            Depend::Remove(ids) => {
                let mut ids = ids.clone();
                ids.sort_by_key(|id| self.at(id).map(|at| self.jobs[at].order));
                ids.into_iter().for_each(|other| self.detach(id, other));
            }
            Depend::Add(after) => match self.decide(id, None, after, None) {
                Ok(edges) => {
                    if let Some(on_failure) = after.children {
                        self.ends_batch(at);
                        self.asks_for_children(at, Batch::new(on_failure));
                    }
                    edges.into_iter().for_each(|edge| self.attach(id, edge));
                }
                Err(refusal) => return Some(Err(refusal)),
            },
        }
        self.wait(self.at(id).unwrap(), due);
        Some(Ok(()))
    }

    pub fn label(&mut self, id: &[u8], label: &Label<'_>) -> Option<Result<(), String>> {
        let at = self.at(id)?;
        let job = &mut self.jobs[at];
        job.tags.retain(|tag| !label.untag.contains(&&tag[..]));
        for tag in &label.tag {
            if !job.tags.iter().any(|old| old == tag) {
                job.tags.push(tag.to_vec());
            }
        }
        job.tracked = label.track.unwrap_or(job.tracked);
        Some(Ok(()))
    }

    pub fn update(&mut self, id: &[u8], update: &Update<'_>) -> Option<Result<(), String>> {
        let at = self.at(id)?;
        let job = &mut self.jobs[at];
        if job.state.ended() && !of_any_state(update) {
            return Some(Err(format!("ENDED {}", job.state.name())));
        }
        if let (Some(hold), Some(_)) = (&job.hold, update.due) {
            return Some(Err(format!("CLAIMED {}", shown(&hold.worker))));
        }
        let moves = update.queue.filter(|q| *q != job.queue && job.hold.is_some());
        let group = job.group.clone();
        let group_full = |queue: &[u8]| group.as_ref().is_some_and(|group| self.group_full(queue, group));
        let full = |queue: &[u8]| self.full_itself(queue) || self.limits_bar(&self.jobs[at], queue);
        if moves.is_some_and(|queue| full(queue) || group_full(queue)) {
            return Some(Err("LIMIT concurrency".into()));
        }
        let room = |queue: &[u8]| self.has_room(queue, group.as_deref(), Some(at));
        if let Some(Err(refusal)) = update.queue.map(room) {
            return Some(Err(refusal));
        }
        if let Some(queue) = update.queue.filter(|queue| **queue != self.jobs[at].queue) {
            self.jobs[at].ageing = self.queue_rule(queue, Setting::Ageing);
        }
        let job = &mut self.jobs[at];
        job.priority = update.priority.unwrap_or(job.priority);
        job.queue = update.queue.map_or(job.queue.clone(), <[u8]>::to_vec);
        job.options.retries = update.retries.or(job.options.retries);
        job.options.lease = update.lease.or(job.options.lease);
        job.steps.retain(|(name, ..)| !update.unstep.contains(&&name[..]));
        job.timeouts.retain(|name| !update.unstep.contains(&&name[..]));
        if let Some(report) = &update.report {
            self.report(id, report, true);
        }
        let at = self.at(id).unwrap();
        if let Some(due) = update.due {
            self.wait(at, due);
        }
        Some(Ok(()))
    }
}
