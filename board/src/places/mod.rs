//! The places of jobs, and the moves between them.
//!
//! Each job has exactly one place, which follows from its state:
//!
//! | state | place | order |
//! |---|---|---|
//! | scheduled | `due` | when it is due |
//! | blocked | `blocked`; also `waits` if its wait for signals can time out | when it is due; when it times out |
//! | ready | its queue's `ready`, or its group's and the queue's `all`; also `expiries` if it can expire | priority, `since`, `seq`; when it expires |
//! | claimed | `leases`, its worker's `claims`, [`Claim`] | when the claim ends by itself; fencing token |
//! | ended | its line in `ended`; also `drops` if its record is removed by age | when it ended; when it is removed |
//! | ended, something keeps its record ([`Pins`](crate::places::pins::Pins)) | its line in `ended` for such ones | when it ended |
//!
//! [`Board::leave`] takes a job out of its place before any field that orders the place changes;
//! [`Board::enter`] puts it into the next place after that.
//!
//! | file | what it keeps | invariant |
//! |---|---|---|
//! | `by_queue` | jobs of a queue that are scheduled, blocked or ended | as many as the queue counts |
//! | `ended` | ended jobs by state and time, those that others need apart | |
//! | `labels` | jobs by name, tag, kind of failure, user, and tracked ones | a job in the line of each label that it has |
//! | `happened` | what happens to jobs, and what it means for statistics, history and events | one description for all three |
//! | `lifecycle` | how a run ends, and where its job goes next | a run ends once |
//! | `records` | adding, changing and removing records | the sum of their sizes |
//! | `pins` | what keeps records of ended jobs | |
//! | `tombstones` | jobs whose records have been removed | bounded in number and age |
//! | `next_event` | when the clock next has work | a lower bound |
//! | `ready_queues` | which queues have ready jobs, and which have just got some | each once |
//! | `relocate` | moves of records in memory | the state stays |
//!
//! Uses `dispatch`, `events`, `job`, `statistics` and `structures`.

pub(crate) mod by_queue;
pub(crate) mod ended;
pub(crate) mod happened;
pub(crate) mod items;
pub(crate) mod labels;
pub(crate) mod lifecycle;
pub(crate) mod next_event;
pub(crate) mod pins;
pub(crate) mod ready_queues;
pub(crate) mod records;
pub(crate) mod relocate;
pub(crate) mod tombstones;

use crate::job::order::TimeKey;
use std::collections::BTreeMap;

use crate::board::Board;
use crate::dispatch::fair::{ready_key_of, Fair};
use crate::effect::ApplyError;
use crate::job::{Claim, Job, Session, State, NEVER, U48};
use crate::structures::allotted::allotted;
use crate::structures::byte_string::ByteString;
use crate::structures::lazy::{Lazy, Part};
use crate::structures::sorted::SortedSlots;
use ended::Ended;
use labels::Labels;
use tombstones::Tombstones;

/// The places of all jobs but the ready ones, which their queues hold.
#[derive(Default)]
pub(crate) struct Places {
    pub(crate) due: SortedSlots<TimeKey>,
    pub(crate) leases: SortedSlots<TimeKey>,
    pub(crate) seldom: Lazy<Seldom>,
    pub(crate) ended: Ended,
    /// How many jobs are in each state.
    pub(crate) counts: [u64; 8],
    /// How many failed jobs of each kind there are.
    pub(crate) kinds: BTreeMap<ByteString, u64>,
    pub(crate) labels: Lazy<Labels>,
    pub(crate) tombstones: Tombstones,
}

/// The lines that many boards never use.
#[derive(Default)]
pub(crate) struct Seldom {
    pub(crate) blocked: SortedSlots<TimeKey>,
    pub(crate) waits: SortedSlots<TimeKey>,
    pub(crate) expiries: SortedSlots<TimeKey>,
    pub(crate) drops: SortedSlots<TimeKey>,
}

impl Places {
    /// About how many bytes it takes beside its own struct. O(kinds).
    pub(crate) fn bytes(&self) -> usize {
        let seldom = &self.seldom;
        let lines =
            [&self.due, &self.leases, &seldom.blocked, &seldom.waits, &seldom.expiries, &seldom.drops];
        seldom.allocated()
            + lines.into_iter().map(SortedSlots::bytes).sum::<usize>()
            + self.ended.bytes()
            + self.kinds.keys().map(|kind| allotted(kind.len()) + 40).sum::<usize>()
            + self.labels.allocated()
            + self.labels.bytes()
            + self.tombstones.bytes()
    }
}

impl Part for Seldom {
    const BLANK: &'static Self = &Seldom {
        blocked: SortedSlots::new(),
        waits: SortedSlots::new(),
        expiries: SortedSlots::new(),
        drops: SortedSlots::new(),
    };
}

impl Board {
    /// Gives a job that is in no place the ageing of its queue.
    pub(crate) fn renew_ageing(&mut self, slot: u32) -> Result<(), ApplyError> {
        let job = self.job(slot)?;
        let ageing = self.ageing(self.queue_number(job));
        match job.ageing() == ageing {
            true => Ok(()),
            false => self.edit(slot, |job| {
                job.set_ageing(ageing);
                Ok(())
            }),
        }
    }

    /// Takes a job out of its place. Returns its claim, if it had one.
    pub(crate) fn leave(&mut self, slot: u32) -> Result<Option<Claim>, ApplyError> {
        let job = self.store.jobs.get(slot).ok_or(ApplyError)?;
        let (state, group) = (job.state, job.group());
        let open = group.is_some() && (state == State::Claimed || job.has_begun());
        let queue_number = self.store.classes.key(job.class).ok_or(ApplyError)?.queue;
        if !state.ended() && job.extras.as_ref().is_some_and(|extras| extras.user.is_some()) {
            self.owner_loses(slot);
        }
        let job = self.store.jobs.get(slot).ok_or(ApplyError)?;
        let mut held = None;
        let stood = match state {
            State::Scheduled => self.places.due.remove(job.at_key(), slot),
            State::Blocked => {
                let timed = job.wait_until() != NEVER;
                let known = !timed || self.places.seldom.waits.remove(job.wait_key(), slot);
                self.places.seldom.blocked.remove(job.at_key(), slot) && known
            }
            State::Ready => {
                let expires = job.at.get() == NEVER || self.places.seldom.expiries.remove(job.at_key(), slot);
                let queue = self.queues.get_mut(queue_number).ok_or(ApplyError)?;
                let (stood, idle) = match (&queue.fair, group) {
                    (None, None) => {
                        let stood = queue.ready.remove(job.ready_key(), slot);
                        (stood, queue.ready.is_empty())
                    }
                    _ => (self.quit_ready(queue_number, slot)?, self.is_idle(queue_number)),
                };
                if idle {
                    self.idle_queue(queue_number);
                } else if !self.local.waiting_for_permits.is_empty() {
                    // The next job may cost less than the one for whose permits a client waits.
                    self.mark_busy(queue_number);
                } else {
                    self.review_candidates(queue_number);
                }
                stood && expires
            }
            State::Claimed => {
                let number = job.at.get() as u32;
                let claim = self.store.claims.remove(number).ok_or(ApplyError)?;
                let stood = self.places.leases.remove(job.lease_key(&claim), slot);
                let worker = self.workers.names.get_mut(claim.worker).ok_or(ApplyError)?;
                let known = worker.claims.remove(claim.token, number);
                self.workers.names.release(claim.worker);
                if claim.session != Session::None {
                    self.local.sessions.drop(claim.token, slot);
                }
                held = Some(claim);
                stood && known
            }
            State::Complete | State::Failed | State::Cancelled | State::Trashed => {
                let dropped = job.at.get() == NEVER || self.places.seldom.drops.remove(job.at_key(), slot);
                let kind = job.extras.as_ref().and_then(|r| r.reports.kind.as_ref());
                if let (State::Failed, Some(kind)) = (state, kind) {
                    if let Some(n) = self.places.kinds.get_mut(kind) {
                        *n -= 1;
                        if *n == 0 {
                            self.places.kinds.remove(kind);
                        }
                    }
                }
                let pinned = job.extras.as_ref().is_some_and(|r| r.pins().any());
                let line = self.places.ended.line_mut(state, pinned).ok_or(ApplyError)?;
                line.remove(job.ended_key(), slot) && dropped
            }
        };
        let stood = stood && (!state.is_aside() || self.quit_aside(queue_number, slot));
        self.tally(queue_number, group, state, -1);
        if open {
            self.tally_open(queue_number, group, -1);
        }
        if state == State::Claimed {
            self.run_ended(queue_number, group);
        }
        stood.then_some(held).ok_or(ApplyError)
    }

    pub(crate) fn tally(&mut self, number: u32, group: Option<u32>, state: State, by: i64) {
        let mut queue = self.queues.get_mut(number);
        if let (Some(queue), Some(at)) = (queue.as_deref_mut(), group) {
            if let Some(Fair { groups, runs, .. }) = queue.fair.as_deref_mut() {
                let Some(group) = groups.get_mut(at) else { return };
                if let Some(n) = group.counts.get_mut(state as usize) {
                    *n = n.saturating_add_signed(by as i32);
                }
                if state == State::Claimed && group.limits.is_none() {
                    *runs = runs.saturating_add_signed(by);
                }
            }
        }
        for counts in [Some(&mut self.places.counts), queue.map(|q| &mut q.counts)].into_iter().flatten() {
            if let Some(n) = counts.get_mut(state as usize) {
                *n = n.saturating_add_signed(by);
            }
        }
        if state == State::Claimed && !self.dispatch.limits.is_empty() {
            self.tally_limits(number, group, by);
        }
    }

    /// Adds `by` to the number of jobs of a group that have been claimed and have not ended.
    pub(crate) fn tally_open(&mut self, queue: u32, group: Option<u32>, by: i32) {
        let fair = self.queues.get_mut(queue).and_then(|queue| queue.fair.as_deref_mut());
        if let Some(group) = fair.zip(group).and_then(|(fair, at)| fair.groups.get_mut(at)) {
            group.open = group.open.saturating_add_signed(by);
        }
    }

    /// Puts a job that is in no place into the place of this state. `at` as in [`Job::at`].
    pub(crate) fn enter(&mut self, slot: u32, state: State, at: i64) -> Result<(), ApplyError> {
        let revision = self.revision as i64;
        let job = self.store.jobs.get_mut(slot).ok_or(ApplyError)?;
        job.state = state;
        job.at = U48::new(at);
        job.version = U48::new(revision);
        self.mark_changed(slot);
        let job = self.store.jobs.get(slot).ok_or(ApplyError)?;
        let group = job.group();
        let queue_number = self.store.classes.key(job.class).ok_or(ApplyError)?.queue;
        let owned = job.extras.as_ref().is_some_and(|extras| extras.user.is_some());
        let jobs = &self.store.jobs;
        let at_key = |s| jobs.get(s).map(Job::at_key).unwrap_or_default();
        match state {
            State::Scheduled => {
                self.places.due.insert(job.at_key(), slot, at_key);
                self.local.next_event.lower(job.at.get());
            }
            State::Blocked => {
                self.places.seldom.blocked.insert(job.at_key(), slot, at_key);
                let until = job.wait_until();
                if until != NEVER {
                    let wait_key = |s| jobs.get(s).map(Job::wait_key).unwrap_or_default();
                    self.places.seldom.waits.insert(job.wait_key(), slot, wait_key);
                    self.local.next_event.lower(until);
                }
            }
            State::Ready => {
                let queue = self.queues.get_mut(queue_number).ok_or(ApplyError)?;
                let plain = queue.fair.is_none() && group.is_none();
                if plain {
                    queue.ready.insert(job.ready_key(), slot, |s| ready_key_of(jobs, s));
                }
                if job.at.get() != NEVER {
                    self.places.seldom.expiries.insert(job.at_key(), slot, at_key);
                    self.local.next_event.lower(job.at.get());
                }
                if !plain {
                    self.join_ready(queue_number, slot)?;
                }
                self.mark_busy(queue_number);
            }
            State::Claimed => {
                let store = &self.store;
                let number = job.at.get() as u32;
                let claim = store.claims.get(number).ok_or(ApplyError)?;
                let key = job.lease_key(claim);
                self.places.leases.insert(key, slot, |s| store.lease_key(s));
                self.local.next_event.lower(key.0);
                let worker = self.workers.names.get_mut(claim.worker).ok_or(ApplyError)?;
                worker.claims.insert(claim.token, number, |n| store.token(n));
                self.workers.names.hold(claim.worker);
            }
            State::Complete | State::Failed | State::Cancelled | State::Trashed => {
                let ended = |s| jobs.get(s).map(Job::ended_key).unwrap_or_default();
                self.local.grown = true;
                let pinned = job.extras.as_ref().is_some_and(|r| r.pins().any());
                let line = self.places.ended.line_mut(state, pinned).ok_or(ApplyError)?;
                line.insert(job.ended_key(), slot, ended);
                if job.at.get() != NEVER {
                    self.places.seldom.drops.insert(job.at_key(), slot, at_key);
                    self.local.next_event.lower(job.at.get());
                }
                let kind = job.extras.as_ref().and_then(|r| r.reports.kind.as_ref());
                if let (State::Failed, Some(kind)) = (state, kind) {
                    *self.places.kinds.entry(kind.clone()).or_default() += 1;
                }
                self.frees(queue_number, group);
            }
        }
        if state.is_aside() {
            self.join_aside(queue_number, slot)?;
        }
        self.tally(queue_number, group, state, 1);
        if state == State::Claimed && !self.dispatch.limits.is_empty() {
            self.limits_filled(queue_number, group);
        }
        if owned && !state.ended() {
            self.owner_gains(slot);
        }
        if let Some(at) = group {
            let open =
                self.store.jobs.get(slot).is_some_and(|job| state == State::Claimed || job.has_begun());
            if open {
                self.tally_open(queue_number, group, 1);
            }
            self.reseat(queue_number, at);
        }
        Ok(())
    }

    /// Records that a worker is alive.
    pub(crate) fn saw_worker(&mut self, worker: u32, now: i64) {
        if let Some(worker) = self.workers.names.get_mut(worker) {
            worker.local.seen = worker.local.seen.max(now);
        }
    }

    /// Gives a job that is in no place to a worker.
    pub(crate) fn hand_over(&mut self, slot: u32, mut claim: Claim, worker: &[u8]) -> Result<(), ApplyError> {
        claim.slot = slot;
        claim.worker = match self.workers.names.find(worker) {
            Some(number) => number,
            None => self.workers.names.add(worker.into()).0,
        };
        self.saw_worker(claim.worker, claim.claimed);
        self.token = self.token.max(claim.token);
        let number = self.store.claims.insert(claim);
        self.enter(slot, State::Claimed, i64::from(number))
    }
}
