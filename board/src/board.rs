//! The board's indexes, and the moves of a job between them.
//!
//! Each job stands in exactly one place, which follows from its state:
//!
//! | state | place | order |
//! |---|---|---|
//! | scheduled | `due` | when it is due |
//! | blocked | `blocked` | when it is due |
//! | ready | its queue's `ready`; also `expiries` if it can expire | priority, `since`, `seq`; when it expires |
//! | claimed | `leases`, its worker's `claims`, [`Claim`] | when the claim ends by itself; token |
//! | ended | `ended` of its state; also `drops` if its record is dropped by age | when it ended; when it is dropped |
//! | ended, others wait for it | `kept` of its state | when it ended |
//!
//! A job is taken out of its place ([`Board::leave`]) before any field that the place is
//! ordered by changes, and put into the next ([`Board::enter`]) after.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::bin::Bin;
use crate::effect::{Effect, Unfit};
use crate::env::Env;
use crate::history::{Entry, Event};
use crate::id::{self, Id};
use crate::ids::Ids;
use crate::job::{Claim, Class, End, Job, Last, Options, Rare, State, NEVER, U48};
use crate::line::Line;
use crate::pauses::Pauses;
use crate::pool::Pool;
use crate::schedule::Schedules;
use crate::settings::{Overrides, Rules, Setting};
use crate::slab::Slab;
use crate::tombstones::{Tombstone, Tombstones};
use crate::waits::Waits;

/// Best first: higher priority, then longer known to be ready, then posted earlier.
pub(crate) type ReadyKey = (Reverse<i32>, i64, i64);
/// Earliest first, then posted earlier.
pub(crate) type TimeKey = (i64, i64);

/// A named lane.
#[derive(Default)]
pub struct Queue {
    pub(crate) ready: Line<ReadyKey>,
    pub(crate) counts: [u64; 8],
    pub(crate) settings: Overrides,
    /// Nothing is claimed from it until then, Unix ms; 0 when it is not paused itself.
    pub(crate) paused: i64,
    /// Its place among the queues that have ready jobs.
    busy_at: Option<u32>,
    /// Noted in [`Board::woken`].
    woken: bool,
}

impl Queue {
    /// How many of its jobs are in that state.
    pub(crate) fn count(&self, state: State) -> u64 {
        self.counts.get(state as usize).copied().unwrap_or(0)
    }
}

/// A claimer.
#[derive(Default)]
pub struct Worker {
    pub(crate) claims: Line<u64>,
    /// When it last spoke, as far as this copy knows. Local.
    pub(crate) seen: i64,
}

/// A time that is never by default.
struct Wake(i64);

impl Default for Wake {
    fn default() -> Self {
        Wake(NEVER)
    }
}

impl Wake {
    fn lower(&mut self, time: i64) {
        self.0 = self.0.min(time);
    }
}

/// The state machine. See the crate's comment.
#[derive(Default)]
pub struct Board {
    pub(crate) revision: u64,
    pub(crate) token: u64,
    pub(crate) jobs: Slab<Job>,
    pub(crate) claims: Slab<Claim>,
    pub(crate) ids: Ids,
    pub(crate) queues: Pool<Bin, Queue>,
    pub(crate) workers: Pool<Bin, Worker>,
    pub(crate) classes: Pool<Class, ()>,
    pub(crate) due: Line<TimeKey>,
    pub(crate) blocked: Line<TimeKey>,
    pub(crate) leases: Line<TimeKey>,
    pub(crate) expiries: Line<TimeKey>,
    pub(crate) drops: Line<TimeKey>,
    pub(crate) ended: [Line<TimeKey>; 4],
    pub(crate) kept: [Line<TimeKey>; 4],
    pub(crate) waits: Waits,
    pub(crate) counts: [u64; 8],
    pub(crate) kinds: BTreeMap<Bin, u64>,
    pub(crate) tombstones: Tombstones,
    pub(crate) settings: Overrides,
    pub(crate) pauses: Pauses,
    pub(crate) schedules: Schedules,
    broken: bool,
    pub(crate) heap: usize,
    // What follows is local: in no snapshot, no digest.
    last_class: u32,
    busy: Vec<u32>,
    woken: Vec<u32>,
    /// No time event before this: a lower bound, exact after [`Board::reckon`].
    wake: Wake,
    /// Somebody other than its worker has ended a claim since [`Board::taken`] was asked.
    taken: bool,
    /// A record of an ended job has come since [`Board::overfull`] looked.
    grown: bool,
}

/// A duration setting: -1 and 0 mean none.
fn duration(ms: i64) -> Option<i64> {
    (ms > 0).then_some(ms)
}

/// When something of that age ends; -1 means never.
pub(crate) fn after(now: i64, ms: i64) -> i64 {
    if ms < 0 {
        return NEVER;
    }
    now.saturating_add(ms).clamp(0, NEVER)
}

/// Which of the lines of ended jobs is that state's.
pub(crate) fn ended_line(state: State) -> usize {
    (state as usize).saturating_sub(State::Complete as usize)
}

impl Board {
    /// Counts the effects that made this board what it is.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The last token that was given out.
    pub fn token(&self) -> u64 {
        self.token
    }

    /// Whether this copy missed something and can no longer be trusted.
    pub fn broken(&self) -> bool {
        self.broken
    }

    /// Marks this copy as one that cannot be trusted.
    pub fn set_broken(&mut self) {
        self.broken = true;
    }

    /// How many jobs are in that state.
    pub fn count(&self, state: State) -> u64 {
        self.counts.get(state as usize).copied().unwrap_or(0)
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.jobs.len() == 0
    }

    /// Bytes that the board takes, about. O(queues + workers), not O(jobs).
    pub fn bytes(&self) -> usize {
        let lines = [&self.due, &self.blocked, &self.leases, &self.expiries, &self.drops];
        std::mem::size_of::<Self>()
            + self.jobs.bytes()
            + self.claims.bytes()
            + self.heap
            + self.ids.bytes()
            + lines.into_iter().chain(&self.ended).chain(&self.kept).map(Line::bytes).sum::<usize>()
            + self.queues.iter().map(|(_, name, q)| 256 + name.len() + q.ready.bytes()).sum::<usize>()
            + self.workers.iter().map(|(_, n, w)| 128 + n.len() + w.claims.bytes()).sum::<usize>()
            + self.classes.iter().count() * 200
            + self.tombstones.len() * 96
            + self.waits.bytes()
            + self.pauses.iter().len() * 192
            + self.schedules.bytes()
    }

    /// Applies one effect: the only thing that changes a board. `Err` when the effect names
    /// what is not there; then the board may be half changed and is to be marked broken.
    pub fn apply(&mut self, effect: &Effect<'_>, now: i64) -> Result<(), Unfit> {
        self.revision += 1;
        effect.apply(self, now)
    }

    // --- finding ---

    /// The slot of the job of that id. O(1).
    pub fn find(&self, id: &[u8]) -> Option<u32> {
        if let Some((made, slot)) = id::read_made(id) {
            if self.jobs.get(slot).is_some_and(|job| job.id() == Id::Made(made)) {
                return Some(slot);
            }
        }
        self.ids.get(id, |slot| self.jobs.get(slot).map_or(&[], Job::chosen_id))
    }

    /// The tombstone of the job of that id.
    pub fn tombstone(&self, id: &[u8], now: i64) -> Option<&Tombstone> {
        let ttl = self.own(Setting::TombstoneTtl);
        let found = self.tombstones.get(Id::Named(id), now, ttl);
        found.or_else(|| {
            let (made, _) = id::read_made(id)?;
            self.tombstones.get(Id::Made(made), now, ttl)
        })
    }

    /// Remembers a job that had gone no longer.
    pub(crate) fn forget(&mut self, id: &[u8]) {
        self.tombstones.forget(Id::Named(id));
        if let Some((made, _)) = id::read_made(id) {
            self.tombstones.forget(Id::Made(made));
        }
    }

    pub(crate) fn job(&self, slot: u32) -> Result<&Job, Unfit> {
        self.jobs.get(slot).ok_or(Unfit)
    }

    pub(crate) fn job_mut(&mut self, slot: u32) -> Result<&mut Job, Unfit> {
        self.jobs.get_mut(slot).ok_or(Unfit)
    }

    pub(crate) fn claim_of(&self, job: &Job) -> Option<&Claim> {
        match job.state {
            State::Claimed => self.claims.get(job.at.get() as u32),
            _ => None,
        }
    }

    pub(crate) fn claim_mut(&mut self, slot: u32) -> Result<&mut Claim, Unfit> {
        let job = self.jobs.get(slot).ok_or(Unfit)?;
        if job.state != State::Claimed {
            return Err(Unfit);
        }
        self.claims.get_mut(job.at.get() as u32).ok_or(Unfit)
    }

    pub(crate) fn worker_name(&self, claim: &Claim) -> &[u8] {
        self.workers.key(claim.worker).map_or(&[], |name| name)
    }

    pub(crate) fn class_of(&self, job: &Job) -> Option<&Class> {
        self.classes.key(job.class)
    }

    pub(crate) fn queue_number(&self, job: &Job) -> u32 {
        self.class_of(job).map_or(u32::MAX, |c| c.queue)
    }

    pub(crate) fn queue_name(&self, job: &Job) -> &[u8] {
        self.queues.key(self.queue_number(job)).map_or(&[], |name| name)
    }

    /// The queues that have ready jobs, by number.
    pub(crate) fn busy(&self) -> &[u32] {
        &self.busy
    }

    // --- settings ---

    /// A value that only boards have.
    pub(crate) fn own(&self, setting: Setting) -> i64 {
        self.settings.get(setting).unwrap_or(setting.spec().default)
    }

    /// A value for the jobs of a queue: the queue's own, the board's, the server's.
    pub(crate) fn rule(&self, setting: Setting, queue: u32, rules: &Rules) -> i64 {
        let own = self.queues.get(queue).and_then(|q| q.settings.get(setting));
        own.or_else(|| self.settings.get(setting)).unwrap_or_else(|| rules.get(setting))
    }

    pub(crate) fn job_rule(&self, job: &Job, setting: Setting, rules: &Rules) -> i64 {
        let options = self.class_of(job).map(|c| c.options).unwrap_or_default();
        let own = match setting {
            Setting::Lease => options.lease,
            Setting::Retries => options.retries,
            Setting::Lapses => options.lapses,
            Setting::BackoffBase => options.backoff.map(|(base, _)| base),
            Setting::BackoffMax => options.backoff.map(|(_, max)| max),
            Setting::Jitter => options.jitter,
            Setting::Timeout => options.timeout,
            Setting::Expire => options.expire,
            Setting::RetainComplete | Setting::RetainResult => options.retain,
            _ => None,
        };
        own.unwrap_or_else(|| self.rule(setting, self.queue_number(job), rules))
    }

    /// How long the record of a job that ends in that state stays, ms.
    pub(crate) fn retention(&self, state: State, rules: &Rules) -> i64 {
        let setting = match state {
            State::Failed => Setting::RetainFailed,
            State::Trashed => Setting::RetainTrashed,
            State::Cancelled => Setting::RetainCancelled,
            _ => Setting::RetainComplete,
        };
        self.rule(setting, u32::MAX, rules)
    }

    // --- names and classes ---

    /// The number of a queue, known or new.
    pub(crate) fn queue(&mut self, name: &[u8]) -> u32 {
        match self.queues.find(name) {
            Some(number) => number,
            None => self.queues.add(name.into()).0,
        }
    }

    /// The class of a job in that queue; holds one reference to it.
    pub(crate) fn hold_class(&mut self, queue: &[u8], name: &[u8], options: Options) -> u32 {
        let same = self.classes.key(self.last_class).is_some_and(|class| {
            *class.name == *name
                && class.options == options
                && self.queues.key(class.queue).is_some_and(|q| **q == *queue)
        });
        if !same {
            let queue = self.queue(queue);
            let class = Class { queue, name: name.into(), options };
            self.last_class = match self.classes.find(&class) {
                Some(number) => number,
                None => {
                    self.queues.hold(queue);
                    let (number, gone) = self.classes.add(class);
                    self.forget_class(gone);
                    number
                }
            };
        }
        self.classes.hold(self.last_class);
        self.last_class
    }

    fn release_class(&mut self, class: u32) {
        let gone = self.classes.release(class);
        self.forget_class(gone);
    }

    fn forget_class(&mut self, class: Option<Class>) {
        if let Some(class) = class {
            self.queues.release(class.queue);
        }
    }

    /// Gives a job another class. Its queue may change only while it stands nowhere.
    pub(crate) fn reclass(
        &mut self,
        slot: u32,
        queue: Option<&[u8]>,
        name: Option<&[u8]>,
        options: Options,
    ) -> Result<(), Unfit> {
        let job = self.job(slot)?;
        let class = self.class_of(job).ok_or(Unfit)?;
        let options = options.or(class.options);
        let name = name.map_or_else(|| class.name.clone(), Bin::from);
        let queue = queue.map_or_else(|| Bin::from(self.queue_name(job)), Bin::from);
        let old = job.class;
        let fresh = self.hold_class(&queue, &name, options);
        self.job_mut(slot)?.class = fresh;
        self.release_class(old);
        Ok(())
    }

    // --- moves ---

    pub(crate) fn ready_key(job: &Job) -> ReadyKey {
        (Reverse(job.priority), job.since.get(), job.seq.get())
    }

    pub(crate) fn at_key(job: &Job) -> TimeKey {
        (job.at.get(), job.seq.get())
    }

    pub(crate) fn ended_key(job: &Job) -> TimeKey {
        (job.rare.as_ref().map_or(0, |r| r.ended), job.seq.get())
    }

    fn lease_key(job: &Job, claim: &Claim) -> TimeKey {
        (claim.ends_at(), job.seq.get())
    }

    /// The key of a slot in `leases`.
    pub(crate) fn lease_key_of(jobs: &Slab<Job>, claims: &Slab<Claim>, slot: u32) -> TimeKey {
        jobs.get(slot)
            .and_then(|job| Some(Self::lease_key(job, claims.get(job.at.get() as u32)?)))
            .unwrap_or_default()
    }

    /// The key of a slot in its worker's `claims`.
    pub(crate) fn token_of(jobs: &Slab<Job>, claims: &Slab<Claim>, slot: u32) -> u64 {
        jobs.get(slot).and_then(|job| claims.get(job.at.get() as u32)).map_or(0, |c| c.token)
    }

    /// Takes a job out of its place. Gives its claim, if it had one.
    pub(crate) fn leave(&mut self, slot: u32) -> Result<Option<Claim>, Unfit> {
        let job = self.jobs.get(slot).ok_or(Unfit)?;
        let state = job.state;
        let queue = self.classes.key(job.class).map_or(u32::MAX, |c| c.queue);
        let mut held = None;
        let stood = match state {
            State::Scheduled => self.due.remove(Self::at_key(job), slot),
            State::Blocked => self.blocked.remove(Self::at_key(job), slot),
            State::Ready => {
                let expires = job.at.get() == NEVER || self.expiries.remove(Self::at_key(job), slot);
                let lane = self.queues.get_mut(queue).ok_or(Unfit)?;
                let stood = lane.ready.remove(Self::ready_key(job), slot);
                if lane.ready.is_empty() {
                    self.idle_queue(queue);
                }
                stood && expires
            }
            State::Claimed => {
                let claim = self.claims.remove(job.at.get() as u32).ok_or(Unfit)?;
                let stood = self.leases.remove(Self::lease_key(job, &claim), slot);
                let worker = self.workers.get_mut(claim.worker).ok_or(Unfit)?;
                let known = worker.claims.remove(claim.token, slot);
                self.workers.release(claim.worker);
                held = Some(claim);
                stood && known
            }
            State::Complete | State::Failed | State::Cancelled | State::Trashed => {
                let dropped = job.at.get() == NEVER || self.drops.remove(Self::at_key(job), slot);
                let kind = job.rare.as_ref().and_then(|r| r.kind.as_ref());
                if let (State::Failed, Some(kind)) = (state, kind) {
                    if let Some(n) = self.kinds.get_mut(kind) {
                        *n -= 1;
                        if *n == 0 {
                            self.kinds.remove(kind);
                        }
                    }
                }
                let awaited = job.rare.as_ref().is_some_and(|r| r.awaited > 0);
                let lines = if awaited { &mut self.kept } else { &mut self.ended };
                let line = lines.get_mut(ended_line(state)).ok_or(Unfit)?;
                line.remove(Self::ended_key(job), slot) && dropped
            }
        };
        self.tally(queue, state, -1);
        if state == State::Claimed {
            self.slot_freed(queue);
        }
        stood.then_some(held).ok_or(Unfit)
    }

    pub(crate) fn tally(&mut self, queue: u32, state: State, by: i64) {
        let lane = self.queues.get_mut(queue).map(|q| &mut q.counts);
        for counts in [Some(&mut self.counts), lane].into_iter().flatten() {
            if let Some(n) = counts.get_mut(state as usize) {
                *n = n.saturating_add_signed(by);
            }
        }
    }

    /// Puts a job that stands nowhere into the place of that state. `at` as in [`Job::at`].
    pub(crate) fn enter(&mut self, slot: u32, state: State, at: i64) -> Result<(), Unfit> {
        let revision = self.revision as i64;
        let job = self.jobs.get_mut(slot).ok_or(Unfit)?;
        job.state = state;
        job.at = U48::new(at);
        job.version = U48::new(revision);
        let job = self.jobs.get(slot).ok_or(Unfit)?;
        let queue = self.classes.key(job.class).map_or(u32::MAX, |c| c.queue);
        let jobs = &self.jobs;
        let at_key = |s| jobs.get(s).map(Self::at_key).unwrap_or_default();
        match state {
            State::Scheduled => {
                self.due.insert(Self::at_key(job), slot, at_key);
                self.wake.lower(job.at.get());
            }
            State::Blocked => self.blocked.insert(Self::at_key(job), slot, at_key),
            State::Ready => {
                let lane = self.queues.get_mut(queue).ok_or(Unfit)?;
                lane.ready.insert(Self::ready_key(job), slot, |s| {
                    jobs.get(s).map_or((Reverse(0), 0, 0), Self::ready_key)
                });
                if job.at.get() != NEVER {
                    self.expiries.insert(Self::at_key(job), slot, at_key);
                    self.wake.lower(job.at.get());
                }
                self.note_busy(queue);
            }
            State::Claimed => {
                let claims = &self.claims;
                let claim = claims.get(job.at.get() as u32).ok_or(Unfit)?;
                let key = Self::lease_key(job, claim);
                self.leases.insert(key, slot, |s| Self::lease_key_of(jobs, claims, s));
                self.wake.lower(key.0);
                let worker = self.workers.get_mut(claim.worker).ok_or(Unfit)?;
                worker.claims.insert(claim.token, slot, |s| Self::token_of(jobs, claims, s));
                self.workers.hold(claim.worker);
            }
            State::Complete | State::Failed | State::Cancelled | State::Trashed => {
                let ended = |s| jobs.get(s).map(Self::ended_key).unwrap_or_default();
                self.grown = true;
                let awaited = job.rare.as_ref().is_some_and(|r| r.awaited > 0);
                let lines = if awaited { &mut self.kept } else { &mut self.ended };
                let line = lines.get_mut(ended_line(state)).ok_or(Unfit)?;
                line.insert(Self::ended_key(job), slot, ended);
                if job.at.get() != NEVER {
                    self.drops.insert(Self::at_key(job), slot, at_key);
                    self.wake.lower(job.at.get());
                }
                let kind = job.rare.as_ref().and_then(|r| r.kind.as_ref());
                if let (State::Failed, Some(kind)) = (state, kind) {
                    *self.kinds.entry(kind.clone()).or_default() += 1;
                }
            }
        }
        self.tally(queue, state, 1);
        Ok(())
    }

    /// Notes that a queue has ready jobs.
    pub(crate) fn note_busy(&mut self, queue: u32) {
        let Some(lane) = self.queues.get_mut(queue) else { return };
        if lane.busy_at.is_none() {
            lane.busy_at = Some(self.busy.len() as u32);
            self.busy.push(queue);
        }
        if !lane.woken {
            lane.woken = true;
            self.woken.push(queue);
        }
    }

    fn idle_queue(&mut self, queue: u32) {
        let Some(at) = self.queues.get_mut(queue).and_then(|q| q.busy_at.take()) else { return };
        if at as usize >= self.busy.len() {
            return;
        }
        self.busy.swap_remove(at as usize);
        if let Some(moved) = self.busy.get(at as usize).copied() {
            if let Some(lane) = self.queues.get_mut(moved) {
                lane.busy_at = Some(at);
            }
        }
    }

    /// Notes that a worker is alive.
    pub(crate) fn saw_worker(&mut self, worker: u32, now: i64) {
        if let Some(worker) = self.workers.get_mut(worker) {
            worker.seen = worker.seen.max(now);
        }
    }

    /// Gives a job that stands nowhere to a worker.
    pub(crate) fn hand_over(&mut self, slot: u32, mut claim: Claim, worker: &[u8]) -> Result<(), Unfit> {
        claim.slot = slot;
        claim.worker = match self.workers.find(worker) {
            Some(number) => number,
            None => self.workers.add(worker.into()).0,
        };
        self.saw_worker(claim.worker, claim.claimed);
        self.token = self.token.max(claim.token);
        let number = self.claims.insert(claim);
        self.enter(slot, State::Claimed, i64::from(number))
    }

    /// Makes a job that stands nowhere ready, with the place it had; blocked while it waits
    /// for others.
    pub(crate) fn make_ready(&mut self, slot: u32, now: i64) -> Result<(), Unfit> {
        let job = self.jobs.get(slot).ok_or(Unfit)?;
        if job.rare.as_ref().is_some_and(|rare| !rare.after.is_empty()) {
            return self.make_waiting(slot, State::Blocked, 0, now);
        }
        let expire = self.class_of(job).and_then(|c| c.options.expire).and_then(duration);
        let job = self.jobs.get_mut(slot).ok_or(Unfit)?;
        if job.since.get() == 0 {
            job.since = U48::new(now.max(1));
        }
        let idle = job.rare.as_mut().map_or(0, |rare| {
            rare.end_idle(now);
            rare.idle
        });
        let at = expire.map_or(NEVER, |ms| after(job.since.get().saturating_add(idle), ms));
        self.enter(slot, State::Ready, at)
    }

    /// Lets a job that stands nowhere wait until it is due; blocked while it waits for others.
    pub(crate) fn make_scheduled(&mut self, slot: u32, due: i64, now: i64) -> Result<(), Unfit> {
        let state = match self.edges(slot).is_empty() {
            true => State::Scheduled,
            false => State::Blocked,
        };
        self.make_waiting(slot, state, due, now)
    }

    fn make_waiting(&mut self, slot: u32, state: State, due: i64, now: i64) -> Result<(), Unfit> {
        if self.job(slot)?.since.get() != 0 {
            self.reweigh(slot, |job| {
                let rare = job.rare_mut();
                if rare.idle_from == 0 {
                    rare.idle_from = now.max(1);
                }
                Ok(())
            })?;
        }
        self.enter(slot, state, due)
    }

    /// Ends the life of a job that stands nowhere: its record stays for `retain` ms, or goes.
    pub(crate) fn make_ended(
        &mut self,
        slot: u32,
        state: State,
        token: u64,
        retain: i64,
        now: i64,
    ) -> Result<(), Unfit> {
        let rare = self.rare(slot);
        let waits = rare.is_some_and(|rare| !rare.after.is_empty());
        let awaited = rare.is_some_and(|rare| rare.awaited > 0);
        if waits {
            self.detach_all(slot, now)?;
        }
        if awaited {
            self.tell_from(slot, 0)?;
        } else if retain == 0 {
            return self.bury(slot, state, token, now, now);
        }
        let at = after(now, retain);
        self.reweigh(slot, |job| {
            let rare = job.rare_mut();
            rare.ended = now;
            rare.modified = now;
            rare.idle_from = 0;
            rare.drop_at = if awaited { at } else { 0 };
            Ok(())
        })?;
        self.enter(slot, state, if awaited { NEVER } else { at })
    }

    /// Drops a record that stands nowhere, and remembers it for a while.
    fn bury(&mut self, slot: u32, state: State, token: u64, ended: i64, now: i64) -> Result<(), Unfit> {
        let job = self.drop_record(slot)?;
        let (most, ttl) = (self.own(Setting::Tombstones), self.own(Setting::TombstoneTtl));
        if ended.saturating_add(ttl) > now {
            let tombstone = Tombstone { id: job.id().owned(), token, state, ended };
            self.tombstones.push(tombstone, most.max(0) as usize, now, ttl);
        }
        Ok(())
    }

    /// Drops a record that stands nowhere.
    pub(crate) fn drop_record(&mut self, slot: u32) -> Result<Job, Unfit> {
        let chosen = self.jobs.get(slot).ok_or(Unfit)?.chosen_id();
        if !chosen.is_empty() {
            self.ids.remove(chosen, slot);
        }
        let job = self.jobs.remove(slot).ok_or(Unfit)?;
        self.heap = self.heap.saturating_sub(job.heap());
        self.release_class(job.class);
        Ok(job)
    }

    /// Drops the record of a job that has ended, as retention does.
    pub(crate) fn retire(&mut self, slot: u32, now: i64) -> Result<(), Unfit> {
        if !self.job(slot)?.state.ended() || self.awaited(slot) {
            return Err(Unfit);
        }
        self.leave(slot)?;
        self.bury_ended(slot, now)
    }

    /// Drops the record of a job that has ended and stands nowhere.
    pub(crate) fn bury_ended(&mut self, slot: u32, now: i64) -> Result<(), Unfit> {
        let job = self.job(slot)?;
        let (state, rare) = (job.state, job.rare.as_ref());
        let token = rare.and_then(|r| r.last.as_ref()).map_or(0, |l| l.token);
        let ended = rare.map_or(0, |r| r.ended);
        self.bury(slot, state, token, ended, now)
    }

    /// Adds a record that stands nowhere yet.
    pub(crate) fn add_record(&mut self, slot: u32, job: Job) -> Result<(), Unfit> {
        self.heap += job.heap();
        let named = !job.chosen_id().is_empty();
        if !self.jobs.insert_at(slot, job) {
            return Err(Unfit);
        }
        if named {
            self.ids.insert(self.jobs.get(slot).map_or(&[][..], Job::chosen_id), slot);
        }
        Ok(())
    }

    /// Changes what a job holds on the heap, and keeps the sum right.
    pub(crate) fn reweigh(
        &mut self,
        slot: u32,
        change: impl FnOnce(&mut Job) -> Result<(), Unfit>,
    ) -> Result<(), Unfit> {
        let job = self.jobs.get_mut(slot).ok_or(Unfit)?;
        let before = job.heap();
        change(job)?;
        self.heap = (self.heap + job.heap()).saturating_sub(before);
        Ok(())
    }

    /// Writes into a job's record that a claim of it has ended.
    pub(crate) fn note_end(&mut self, slot: u32, claim: Claim, end: End, now: i64) -> Result<(), Unfit> {
        let worker = Bin::from(self.worker_name(&claim));
        if !claim.told {
            self.push_history(slot, self.begin_of(&claim))?;
        }
        match end {
            End::Lapsed | End::TimedOut => {}
            End::Taken => self.taken = true,
            _ => self.saw_worker(claim.worker, now),
        }
        self.reweigh(slot, |job| {
            let rare = job.rare_mut();
            rare.attempt = claim.attempt;
            rare.modified = now;
            rare.last = Some(Last {
                worker,
                token: claim.token,
                end,
                claimed: claim.claimed,
                lease: claim.lease,
                run_end: claim.run_end,
            });
            Ok(())
        })
    }

    /// The entry for the begin of a claim.
    pub(crate) fn begin_of(&self, claim: &Claim) -> Entry {
        let worker = Some(self.worker_name(claim).into());
        Entry { at: claim.claimed, event: Event::Claimed, worker, text: None }
    }

    /// Adds an entry to a job's history; before the first during a claim comes its begin.
    pub(crate) fn record(&mut self, slot: u32, entry: Entry) -> Result<(), Unfit> {
        let untold = self.claim_of(self.job(slot)?).filter(|claim| !claim.told);
        if let Some(begin) = untold.map(|claim| self.begin_of(claim)) {
            self.claim_mut(slot)?.told = true;
            self.push_history(slot, begin)?;
        }
        self.push_history(slot, entry)
    }

    /// How many entries of a history are kept: the first, and the last.
    pub(crate) fn history_bounds(&self) -> (usize, usize) {
        let bound = |setting| self.own(setting).max(0) as usize;
        (bound(Setting::HistoryFirst), bound(Setting::HistoryLast))
    }

    fn push_history(&mut self, slot: u32, entry: Entry) -> Result<(), Unfit> {
        let (first, last) = self.history_bounds();
        self.reweigh(slot, |job| {
            let rare = job.rare_mut();
            rare.modified = entry.at;
            rare.history.push(entry, first, last);
            Ok(())
        })
    }

    /// What few jobs have, of this job.
    pub(crate) fn rare(&self, slot: u32) -> Option<&Rare> {
        self.jobs.get(slot)?.rare.as_deref()
    }

    // --- time ---

    /// No time event happens before this, Unix ms. A lower bound. O(1).
    pub fn wake(&self) -> i64 {
        self.wake.0
    }

    /// Something has to be looked at by then.
    pub(crate) fn wake_at(&mut self, time: i64) {
        self.wake.lower(time);
    }

    /// Finds out when the next time event is. O(1).
    pub fn reckon(&mut self, env: &Env<'_>) -> i64 {
        self.wake.0 = self.soonest(env);
        self.wake.0
    }

    /// When the next time event is, claims held until `hold`. O(1).
    pub fn soonest(&self, env: &Env<'_>) -> i64 {
        let at = |line: &Line<TimeKey>| {
            line.first().and_then(|s| self.jobs.get(s)).map_or(NEVER, |job| job.at.get())
        };
        let lease = self
            .leases
            .first()
            .map_or(NEVER, |s| Self::lease_key_of(&self.jobs, &self.claims, s).0.max(env.hold));
        let soonest = at(&self.due).min(at(&self.expiries)).min(at(&self.drops)).min(lease);
        let lift = self.pauses.next_end().map_or(NEVER, |(end, _)| *end);
        let soonest = soonest.min(self.schedules.soonest());
        let at_once = self.pauses.next_release().is_some() || !self.waits.tells.is_empty();
        if at_once || self.surplus(env.rules).is_some() {
            0
        } else {
            soonest.min(lift)
        }
    }

    /// Whether more ended jobs are kept than shall be since the last call: then time has
    /// something to do at once. O(1).
    pub fn overfull(&mut self, rules: &Rules) -> bool {
        if !std::mem::take(&mut self.grown) || self.surplus(rules).is_none() {
            return false;
        }
        self.wake.0 = 0;
        true
    }

    /// The queues that have got ready jobs since the last call, by number; cleared by it.
    pub fn woken(&mut self, mut each: impl FnMut(&mut Board, u32)) {
        while let Some(queue) = self.woken.pop() {
            if let Some(lane) = self.queues.get_mut(queue) {
                lane.woken = false;
            }
            each(self, queue);
        }
    }

    /// Whether an operator has ended a claim since the last call.
    pub fn taken(&mut self) -> bool {
        std::mem::take(&mut self.taken)
    }

    /// Takes a queue for one that has just got ready jobs, if it has any. O(1).
    pub(crate) fn wake_queue(&mut self, queue: u32) {
        if self.queues.get(queue).is_some_and(|lane| !lane.ready.is_empty()) {
            self.note_busy(queue);
        }
    }

    /// Takes every queue that has ready jobs for one that has just got them.
    pub fn wake_all(&mut self) {
        for queue in self.busy.clone() {
            self.note_busy(queue);
        }
    }

    /// Whether any queue has got ready jobs since [`Board::woken`].
    pub fn has_woken(&self) -> bool {
        !self.woken.is_empty()
    }

    /// The name of a queue.
    pub fn queue_named(&self, number: u32) -> &[u8] {
        self.queues.key(number).map_or(&[], |name| name)
    }
}
