//! A naive board: a list of jobs with plain fields, and linear scans. Written from the
//! description of the life of a job, to be compared with the real one.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use board::{Chunk, Gate, Late, OnFailure, Options, Rules, Setting, Spend, State, Tally};

use crate::children::{unsuccessful, Batch};
use crate::family::{Gone, Tie};
use crate::limits::{Held, Unique};
use crate::rates::Buckets;
use crate::rounds::Rounds;
use crate::schedules::Schedule;
use crate::signals::{Arrived, Wait};
use crate::stats::Day;
use crate::workers::Workers;

pub type Bytes = Vec<u8>;

pub const NEVER: i64 = board::NEVER;

/// How a claim ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Lapsed,
    TimedOut,
    Failed,
    Abandoned,
    Trashed,
    Consumed,
    Taken,
    Advanced,
    Awaiting,
}

#[derive(Debug, Clone)]
pub struct Hold {
    pub worker: Bytes,
    pub token: u64,
    pub cancel: bool,
    pub claimed: i64,
    pub lease: i64,
    pub lease_end: i64,
    pub run_end: i64,
    pub grace: i64,
    pub cancel_end: i64,
    /// Its lease has ended, and its grace has begun.
    pub in_grace: bool,
    /// Ends with a connection: 1; its connection has closed: 2.
    pub session: u8,
    pub connection: Option<u64>,
}

impl Hold {
    pub fn lapses_at(&self) -> i64 {
        self.lease_end + if self.session == 2 { 0 } else { self.grace }
    }
}

#[derive(Debug, Clone)]
pub struct Past {
    pub hold: Hold,
    pub way: Way,
}

#[derive(Debug, Clone)]
pub struct Job {
    pub id: Bytes,
    pub order: u64,
    pub state: State,
    pub queue: Bytes,
    pub name: Bytes,
    pub payload: Bytes,
    pub priority: i32,
    pub options: Options,
    pub meta: Vec<(Bytes, Bytes)>,
    pub posted: i64,
    /// When it first could run.
    pub since: Option<i64>,
    pub due: i64,
    /// Time in back-off so far, and since when it is in back-off now.
    pub idle: i64,
    pub idle_from: Option<i64>,
    pub attempt: u32,
    pub fails: i64,
    pub lapses: i64,
    pub hold: Option<Hold>,
    pub past: Option<Past>,
    /// Workers that lost a lease before the last claim.
    pub ghosts: Vec<Bytes>,
    pub kind: Option<Bytes>,
    pub message: Option<Bytes>,
    pub stage: Option<Bytes>,
    pub reason: Option<Bytes>,
    pub result: Option<Bytes>,
    pub progress: Option<u16>,
    pub ended: i64,
    pub drop_at: i64,
    /// What it waits for.
    pub after: Vec<(Bytes, OnFailure)>,
    /// It has ended and something keeps its record: it is not dropped.
    pub pinned: bool,
    pub intended: Option<i64>,
    /// Who sent it on last, under which token.
    pub sent_on: Option<(Bytes, u64)>,
    pub group: Option<Bytes>,
    pub user: Option<Bytes>,
    pub tags: Vec<Bytes>,
    pub tracked: bool,
    /// That of its queue when it was posted, requeued or moved there.
    pub ageing: i64,
    /// When it last became ready.
    pub ready: i64,
    /// Never that of another job, and kept over a replacing post.
    pub number: u64,
    pub tie: Option<Tie>,
    pub gone: Gone,
    /// How many generations have been below it, at most.
    pub height: u8,
    pub unique: Option<Unique>,
    /// Name, value and time of each step.
    pub steps: Vec<(Bytes, Bytes, i64)>,
    pub output: Option<Output>,
    pub signals: Vec<Arrived>,
    /// The names of waits whose time was over.
    pub timeouts: Vec<Bytes>,
    /// What must have arrived before it runs.
    pub gate: Option<Gate>,
    pub wait: Option<Wait>,
    /// What a claim of it takes of single limits.
    pub costs: BTreeMap<Bytes, i64>,
    /// What its claim, or the last one, has cost: under which token, and of single limits.
    pub spent: Option<(u64, i64, BTreeMap<Bytes, i64>)>,
    /// It waits for its children.
    pub batch: Option<Batch>,
    /// An operator has decided that it does so no more.
    pub waived: bool,
    /// Where a dead job was, how often it had been claimed, and when it moved.
    pub origin: Option<(Bytes, u32, i64)>,
}

/// What the last run with output has written.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    pub token: u64,
    pub attempt: u32,
    /// How many chunks there were before.
    pub before: u64,
    /// All of the run.
    pub chunks: Vec<Bytes>,
    /// How many of them are kept no longer.
    pub dropped: usize,
}

impl Output {
    fn kept(&self) -> usize {
        self.chunks[self.dropped..].iter().map(Vec::len).sum()
    }
}

impl Job {
    /// Token and attempt of its run, or of the last one.
    pub fn run(&self) -> (u64, u32) {
        let hold = self.hold.as_ref().or(self.past.as_ref().map(|past| &past.hold));
        (hold.map_or(0, |hold| hold.token), self.attempt)
    }

    pub fn deadline(&self) -> i64 {
        self.hold.as_ref().map_or(NEVER, |h| h.lease_end.min(h.run_end).min(h.cancel_end))
    }

    /// When its claim ends, the grace after the lease counted.
    pub fn claim_end(&self) -> i64 {
        self.hold.as_ref().map_or(NEVER, |h| h.lapses_at().min(h.run_end).min(h.cancel_end))
    }

    /// When its grace begins or its claim ends.
    pub fn claim_next(&self) -> i64 {
        match &self.hold {
            Some(hold) if !hold.in_grace => self.deadline(),
            _ => self.claim_end(),
        }
    }

    pub fn expires(&self) -> i64 {
        match (self.options.expire, self.since) {
            (Some(ms), Some(since)) if ms > 0 && self.origin.is_none() => since + self.idle + ms,
            _ => NEVER,
        }
    }

    /// When time next does something with it.
    pub fn next(&self) -> i64 {
        match self.state {
            State::Scheduled => self.due,
            State::Ready => self.expires(),
            State::Claimed => self.claim_next(),
            State::Blocked => self.wait.as_ref().map_or(NEVER, Wait::until),
            _ if self.pinned => NEVER,
            _ => self.drop_at,
        }
    }

    pub fn is_held_up(&self) -> bool {
        self.waits_for_others() || self.batch.is_some()
    }

    pub fn waits_for_others(&self) -> bool {
        !self.after.is_empty() || self.wait.is_some()
    }

    /// Its place among the ready jobs of its queue.
    pub fn rank(&self) -> (i64, Option<i64>, u64) {
        match self.ageing {
            0 => self.plain_rank(),
            ageing => (0, self.since.map(|since| since - i64::from(self.priority) * ageing), self.order),
        }
    }

    /// Its place among the jobs that several queues would give.
    pub fn plain_rank(&self) -> (i64, Option<i64>, u64) {
        (-i64::from(self.priority), self.since, self.order)
    }

    /// Whose rounds it takes part in.
    pub fn level(&self) -> i32 {
        if self.ageing > 0 {
            0
        } else {
            self.priority
        }
    }
}

#[derive(Debug, Clone)]
pub struct Tomb {
    pub id: Option<Bytes>,
    pub token: u64,
    pub state: State,
    pub ended: i64,
}

/// Until when, and where in the order of the ends of claims the next to be taken back is.
#[derive(Debug, Clone)]
pub struct Pause {
    pub until: i64,
    pub release: Option<(i64, u64)>,
}

pub type Place = Option<(Bytes, Option<Bytes>)>;

#[derive(Clone, Default)]
pub struct Model {
    /// The dead queue of each queue that has one.
    pub dead: BTreeMap<Bytes, Bytes>,
    pub jobs: Vec<Job>,
    pub tombs: VecDeque<Tomb>,
    /// Ended jobs that others are to be told of: id, order, and the order of who is next; `None` for
    /// a job whose children are to be looked at.
    pub resolutions: VecDeque<(Bytes, u64, Option<u64>)>,
    /// Families whose children are to be let go: number, and the order of who is next.
    pub partings: VecDeque<(u64, u64)>,
    pub own: BTreeMap<(Option<Bytes>, Setting), i64>,
    /// Of a queue, a group or `*`.
    pub group_own: BTreeMap<(Bytes, Bytes, Setting), i64>,
    /// Of named limits.
    pub limits: BTreeMap<(Bytes, Setting), i64>,
    /// Which limits a queue, a group or `*` names.
    pub lists: BTreeMap<(Bytes, Option<Bytes>), Vec<Bytes>>,
    /// The whole board's, a queue's or a group's.
    pub pauses: BTreeMap<Place, Pause>,
    pub rules: Rules,
    pub token: u64,
    /// The last one when it was loaded.
    pub foreign: u64,
    pub posts: u64,
    pub now: i64,
    /// The latest that it has ever been.
    pub latest: i64,
    pub hold: i64,
    pub schedules: Vec<Schedule>,
    pub rounds: Rounds,
    pub workers: Workers,
    /// Statistics by day and queue.
    pub days: BTreeMap<(i64, Bytes), Day>,
    pub buckets: Buckets,
    /// Connections that have closed.
    pub closed: BTreeSet<u64>,
    /// Keys that are taken.
    pub keys: BTreeMap<Bytes, Held>,
    /// Until when a limit is paused.
    pub limit_pauses: BTreeMap<Bytes, i64>,
    /// What workers say of their claims beside their verbs.
    pub spend: Spend<'static>,
    /// A child that was let pass is posted.
    pub unbounded: bool,
    /// A node of a flow is posted.
    pub in_flow: bool,
}

/// Reads when the board lets a job try again: drawn at random, so the model only knows a
/// range. `None` when it may at once.
pub type Draw<'a> = &'a dyn Fn(&[u8]) -> Option<i64>;

pub fn later(now: i64, ms: i64) -> i64 {
    if ms < 0 {
        NEVER
    } else {
        now + ms
    }
}

impl Model {
    pub fn at(&self, id: &[u8]) -> Option<usize> {
        self.jobs.iter().position(|job| job.id == id)
    }

    pub fn board_rule(&self, setting: Setting) -> i64 {
        self.own.get(&(None, setting)).copied().unwrap_or_else(|| self.rules.get(setting))
    }

    pub fn queue_rule(&self, queue: &[u8], setting: Setting) -> i64 {
        let own = self.own.get(&(Some(queue.to_vec()), setting)).copied();
        let above = || match setting.spec().inherited {
            true => self.board_rule(setting),
            false => setting.spec().default,
        };
        own.unwrap_or_else(above)
    }

    pub fn job_rule(&self, job: &Job, named: Option<i64>, setting: Setting) -> i64 {
        named.unwrap_or_else(|| self.queue_rule(&job.queue, setting))
    }

    pub fn running(&self, queue: &[u8]) -> usize {
        self.jobs.iter().filter(|j| j.state == State::Claimed && j.queue == queue).count()
    }

    /// Whether no more jobs of that queue may run.
    pub fn full_itself(&self, queue: &[u8]) -> bool {
        let most = self.queue_rule(queue, Setting::Concurrency);
        most >= 0 && self.running(queue) as i64 >= most
    }

    /// The same, or a limit that the queue names is full.
    pub fn full(&self, queue: &[u8]) -> bool {
        self.full_itself(queue)
            || self.list(queue, None).into_iter().flatten().any(|limit| self.limit_full(limit))
    }

    pub fn left(&self, job: &Job) -> i64 {
        match self.job_rule(job, job.options.retries, Setting::Retries) {
            n if n < 0 => -1,
            n => (n - job.fails).max(0),
        }
    }

    pub fn retention(&self, state: State) -> i64 {
        self.board_rule(match state {
            State::Failed => Setting::RetainFailed,
            State::Trashed => Setting::RetainTrashed,
            State::Cancelled => Setting::RetainCancelled,
            _ => Setting::RetainComplete,
        })
    }

    // --- moves ---

    pub fn ready(&mut self, at: usize, now: i64) {
        if self.jobs[at].is_held_up() && self.still_waits(at) {
            return self.block(at, 0);
        }
        let job = &mut self.jobs[at];
        if job.state != State::Ready || job.since.is_none() {
            job.ready = now;
        }
        job.state = State::Ready;
        job.since.get_or_insert(now);
        if let Some(from) = job.idle_from.take() {
            job.idle += (now - from).max(0);
        }
    }

    /// It waits until then; waiting after it could run once is back-off.
    pub fn wait(&mut self, at: usize, due: i64) {
        let now = self.now;
        if due <= now {
            return self.ready(at, now);
        }
        if self.jobs[at].is_held_up() && self.still_waits(at) {
            return self.block(at, due);
        }
        let job = &mut self.jobs[at];
        job.state = State::Scheduled;
        job.due = due;
        if job.since.is_some() {
            job.idle_from.get_or_insert(now);
        }
    }

    fn block(&mut self, at: usize, due: i64) {
        let now = self.now;
        let job = &mut self.jobs[at];
        job.state = State::Blocked;
        job.due = due;
        if job.since.is_some() {
            job.idle_from.get_or_insert(now);
        }
    }

    pub fn end_claim(&mut self, at: usize, way: Way) {
        let job = &mut self.jobs[at];
        if let Some(hold) = job.hold.take() {
            job.past = Some(Past { hold, way });
        } else if let Some(past) = job.past.as_mut() {
            past.way = way;
        }
    }

    /// How many chunks the run of a job has written.
    pub fn written(&self, at: usize) -> u64 {
        let job = &self.jobs[at];
        let own = job.output.as_ref().filter(|output| output.token == job.run().0);
        own.map_or(0, |output| output.chunks.len() as u64)
    }

    /// What is to be written of a chunk.
    pub fn to_write(&self, at: usize, chunk: &Option<Chunk<'_>>) -> Result<Option<Bytes>, String> {
        let Some(chunk) = chunk else { return Ok(None) };
        if chunk.text.len() as i64 > self.board_rule(Setting::OutputBytes) {
            return Err("LIMIT output-bytes".into());
        }
        let next = self.written(at) + 1;
        match chunk.number.cmp(&next) {
            Ordering::Less => Ok(None),
            Ordering::Equal => Ok(Some(chunk.text.to_vec())),
            Ordering::Greater => Err(format!("GAP the next chunk of this run is {next}")),
        }
    }

    pub fn write(&mut self, at: usize, text: Option<Bytes>) {
        let Some(text) = text else { return };
        let most = self.board_rule(Setting::OutputBytes) as usize;
        let job = &mut self.jobs[at];
        let (token, attempt) = job.run();
        let before = job.output.as_ref().map_or(0, |old| old.before + old.chunks.len() as u64);
        let mut output = job.output.take().filter(|old| old.token == token).unwrap_or(Output {
            token,
            attempt,
            before,
            chunks: Vec::new(),
            dropped: 0,
        });
        output.chunks.push(text);
        while output.kept() > most {
            output.dropped += 1;
        }
        job.output = Some(output);
    }

    pub fn end(&mut self, at: usize, state: State, retain: i64) {
        let now = self.now;
        let retain = match self.jobs[at].output {
            Some(_) if retain >= 0 => retain.max(self.board_rule(Setting::RetainOutput)),
            _ => retain,
        };
        self.settle_claim(at, state);
        self.ends_wait(at);
        self.ends_batch(at);
        let job = &mut self.jobs[at];
        job.state = state;
        job.ended = now;
        job.drop_at = later(now, retain);
        job.idle_from = None;
        let (id, order) = (job.id.clone(), job.order);
        self.frees_at_end(at);
        let awaited = !self.waiters(&id).is_empty();
        self.detach_all(&id);
        self.end_in_family(&id, retain != 0);
        if awaited {
            self.resolutions.push_back((id.clone(), order, Some(0)));
        }
        self.repin(&id);
        let at = self.at(&id).unwrap();
        if !self.jobs[at].pinned && retain == 0 {
            self.drop_with_tombstone(at);
        }
    }

    pub fn drop_with_tombstone(&mut self, at: usize) {
        self.leaves_key(at);
        let job = self.jobs.remove(at);
        self.gone(&job);
        let (most, ttl) = (self.board_rule(Setting::Tombstones), self.board_rule(Setting::TombstoneTtl));
        if job.ended + ttl <= self.now {
            return;
        }
        if most == 0 {
            self.tombs.clear();
            return;
        }
        self.forget(&job.id);
        let token = job.past.filter(|p| p.way != Way::Taken).map_or(0, |p| p.hold.token);
        self.tombs.push_back(Tomb { id: Some(job.id), token, state: job.state, ended: job.ended });
        for _ in 0..2 {
            let stale = self.tombs.front().is_some_and(|t| t.ended + ttl <= self.now);
            if stale || self.tombs.len() as i64 > most {
                self.tombs.pop_front();
            }
        }
    }

    /// A record goes whose job counts in its parent's progress from now on without one.
    pub fn gone(&mut self, job: &Job) {
        let Some(tie) = &job.tie else { return };
        if let Some(parent) = self.numbered(tie.parent) {
            let gone = &mut self.jobs[parent].gone;
            gone.count += 1;
            gone.shares += u64::from(tie.share);
            gone.done += u64::from(tie.share) * u64::from(tie.counts);
            gone.unsuccessful += u64::from(unsuccessful(job));
        }
    }

    pub fn forget(&mut self, id: &[u8]) {
        for tomb in self.tombs.iter_mut().filter(|t| t.id.as_deref() == Some(id)) {
            tomb.id = None;
        }
    }

    pub fn tomb(&self, id: &[u8]) -> Option<&Tomb> {
        let ttl = self.board_rule(Setting::TombstoneTtl);
        self.tombs.iter().find(|t| t.id.as_deref() == Some(id) && t.ended + ttl > self.now)
    }

    /// A try failed and cost a retry; `retry` when the worker said how it goes on.
    pub fn failure(
        &mut self,
        at: usize,
        kind: &[u8],
        message: &[u8],
        retry: Option<Option<i64>>,
        retain: Option<i64>,
        draw: Draw,
    ) {
        let job = &self.jobs[at];
        let most = self.job_rule(job, job.options.retries, Setting::Retries);
        let (base, max) = job.options.backoff.unzip();
        let base = self.job_rule(job, base, Setting::BackoffBase);
        let max = self.job_rule(job, max, Setting::BackoffMax);
        let jitter = self.job_rule(job, job.options.jitter, Setting::Jitter);
        let exhausted = most >= 0 && job.fails >= most;
        let pause = (0..job.fails).fold(base, |p, _| p.saturating_mul(2).min(1 << 50)).min(max);
        let job = &mut self.jobs[at];
        job.kind = Some(kind.to_vec());
        job.message = Some(message.to_vec()).filter(|m| !m.is_empty());
        job.fails += 1;
        let due = match retry {
            _ if exhausted => None,
            Some(None) => None,
            Some(Some(ms)) => Some(later(self.now, ms)),
            None => {
                let due = draw(&self.jobs[at].id).unwrap_or(self.now);
                let span = pause * jitter / 100;
                let range = (self.now + pause - span).min(self.now + pause)..=self.now + pause + span;
                assert!(range.contains(&due), "next try at {due}, not within {range:?}");
                Some(due)
            }
        };
        match due {
            Some(due) => {
                self.note_at(at, Tally::Retried);
                self.wait(at, due);
            }
            None => self.dies(at, retain),
        }
    }

    /// It fails for good: it moves to the dead queue, or ends.
    fn dies(&mut self, at: usize, retain: Option<i64>) {
        let now = self.now;
        let job = &self.jobs[at];
        let dead = self.dead.get(&job.queue).filter(|_| job.origin.is_none()).cloned();
        let room = |dead: &Bytes| {
            self.check_queues(&[dead]).is_ok() && self.has_room(dead, job.group.as_deref(), Some(at)).is_ok()
        };
        let Some(dead) = dead.filter(room) else {
            return self.end(at, State::Failed, retain.unwrap_or(self.retention(State::Failed)));
        };
        self.note_at(at, Tally::Failed);
        self.free_key(at);
        let ageing = self.queue_rule(&dead, Setting::Ageing);
        let job = &mut self.jobs[at];
        let queue = std::mem::replace(&mut job.queue, dead);
        job.origin = Some((queue, job.attempt, now));
        job.ageing = ageing;
        (job.attempt, job.fails, job.lapses, job.idle, job.idle_from) = (0, 0, 0, 0, None);
        (job.progress, job.stage) = (None, None);
        job.ghosts.clear();
        job.sent_on = None;
        (job.since, job.ready) = (Some(now), now);
        if let Some(past) = job.past.as_mut().filter(|past| past.way != Way::Failed) {
            past.way = Way::Taken;
        }
        let (id, order) = (job.id.clone(), job.order);
        if !self.waiters(&id).is_empty() {
            self.resolutions.push_back((id.clone(), order, Some(0)));
        }
        self.ready(at, now);
        self.begin_in_family(&id, false);
    }

    // --- time ---

    pub fn overdue(&self, job: &Job) -> bool {
        if job.state == State::Blocked {
            return self.untold(job) || self.hold <= self.now && job.next() <= self.now;
        }
        if job.state == State::Claimed {
            let end = self.claim_end_of(job);
            return end == 0 || self.hold <= self.now && end <= self.now;
        }
        job.next() <= self.now
    }

    pub fn settle_once(&mut self, id: &[u8], draw: Draw) {
        self.strike(self.at(id).unwrap(), draw);
    }

    /// When time next does something, claims held for a recovery.
    pub fn soonest(&self) -> i64 {
        let released = self.pauses.values().any(|p| p.release.is_some()) || !self.workers.gone.is_empty();
        let parts = !self.partings.is_empty();
        if self.surplus().is_some()
            || released
            || parts
            || !self.closed.is_empty()
            || !self.alone().is_empty()
            || !self.resolutions.is_empty()
        {
            return 0;
        }
        let lifts = self.pauses.values().map(|p| p.until).chain(self.limit_pauses.values().copied());
        let lift = lifts.min().unwrap_or(NEVER);
        let next = |job: &Job| match job.state {
            State::Claimed | State::Blocked => job.next().max(self.hold),
            _ => job.next(),
        };
        let fires = self.schedules.iter().map(|s| s.at);
        let departs = self.workers.known.values().map(|w| w.until.max(self.hold));
        let fires = fires.chain(self.keys.values().map(|held| held.end));
        let others = fires.chain(departs).chain(self.day_goes());
        self.jobs
            .iter()
            .map(next)
            .chain(others)
            .min()
            .unwrap_or(NEVER)
            .min(lift)
            .min(self.next_rest())
            .min(NEVER)
    }

    pub fn configure(&mut self, queue: Option<&[u8]>, setting: Setting, value: Option<i64>) {
        let key = (queue.map(<[u8]>::to_vec), setting);
        match value {
            Some(value) => self.own.insert(key, value),
            None => self.own.remove(&key),
        };
        if let Some(queue) = queue {
            self.forget_permits(queue);
        }
    }

    /// One slice of a time turn: telling first, then children let go, ends of pauses, workers that go, ends of claims and of waits, then what is due, what
    /// expires, what is dropped; each the earliest first; then running jobs are taken back, and the oldest
    /// of too many records go.
    pub fn slice(&mut self, n: u32, draw: Draw) -> bool {
        if !self.resolutions.is_empty() {
            self.tell(n);
            return true;
        }
        if !self.partings.is_empty() {
            self.let_go(n);
            return true;
        }
        if self.lift(n as usize) || self.free_keys(n as usize) {
            return true;
        }
        if self.disconnect(n, draw) {
            return true;
        }
        if self.depart_some(n, draw) {
            return true;
        }
        for line in 0..5 {
            let of_line = |s: State| match line {
                0 => s == State::Claimed,
                1 => s == State::Blocked,
                2 => s == State::Scheduled,
                3 => s == State::Ready,
                _ => s.ended(),
            };
            let late = self.jobs.iter().filter(|j| of_line(j.state) && self.overdue(j));
            let mut late: Vec<_> = late.map(|j| (j.next(), j.order, j.id.clone())).collect();
            late.sort();
            if line == 1 && !late.is_empty() {
                self.strike_waits(n, draw);
                return true;
            }
            if !late.is_empty() {
                for (_, _, id) in late.into_iter().take(n as usize) {
                    self.strike(self.at(&id).unwrap(), draw);
                }
                return true;
            }
            if line == 2 && self.fire() {
                return true;
            }
        }
        self.reclaim(n as usize) || self.drop_days(n as usize) || self.trim(n)
    }

    /// Ends waits whose time is over, the earliest first. One that also waits for a job that has ended by
    /// then is told of that first, and stays the earliest.
    fn strike_waits(&mut self, n: u32, draw: Draw) {
        for _ in 0..n {
            let late = |job: &&Job| job.state == State::Blocked && job.next() <= self.now;
            let first = self.jobs.iter().filter(late).min_by_key(|job| (job.next(), job.order));
            let Some(id) = first.map(|job| job.id.clone()) else { return };
            self.strike(self.at(&id).unwrap(), draw);
        }
    }

    pub fn surplus(&self) -> Option<(State, usize)> {
        let kept = [
            (State::Complete, Setting::KeepComplete),
            (State::Failed, Setting::KeepFailed),
            (State::Cancelled, Setting::KeepCancelled),
            (State::Trashed, Setting::KeepTrashed),
        ];
        kept.into_iter().find_map(|(state, setting)| {
            let have = self.jobs.iter().filter(|j| j.state == state && !j.pinned).count();
            let most = self.board_rule(setting) as usize;
            (have > most).then(|| (state, have - most))
        })
    }

    fn trim(&mut self, n: u32) -> bool {
        let Some((state, over)) = self.surplus() else { return false };
        for _ in 0..over.min(n as usize) {
            let oldest =
                (0..self.jobs.len()).filter(|at| self.jobs[*at].state == state && !self.jobs[*at].pinned);
            let oldest = oldest.min_by_key(|at| (self.jobs[*at].ended, self.jobs[*at].order));
            self.drop_with_tombstone(oldest.unwrap());
        }
        true
    }

    /// Time does with one job what is due.
    fn strike(&mut self, at: usize, draw: Draw) {
        let queue = self.jobs[at].queue.clone();
        match self.jobs[at].state {
            State::Scheduled => {
                let due = self.jobs[at].due;
                self.count_lateness(&queue, Late::Due, due);
                self.ready(at, due);
            }
            State::Ready => {
                self.note(&queue, Tally::Expired);
                let job = &mut self.jobs[at];
                job.kind = Some(b"expired".to_vec());
                job.message = None;
                self.dies(at, None);
            }
            State::Claimed => self.claim_ends(at, draw),
            State::Blocked if self.untold(&self.jobs[at]) => self.resolve_one(at),
            State::Blocked => self.times_out(at),
            _ => self.drop_with_tombstone(at),
        }
    }

    pub fn claim_ends(&mut self, at: usize, draw: Draw) {
        let hold = self.jobs[at].hold.clone().unwrap();
        let goes = self.goes(&hold, self.jobs[at].claim_end());
        if goes == Some(false) {
            let reason = Some(&b"deregistered"[..]);
            if hold.cancel {
                return self.call_off(at, Way::Abandoned, reason);
            }
            self.count_run(at);
            self.note_at(at, Tally::Abandoned);
            self.end_claim(at, Way::Abandoned);
            self.jobs[at].reason = reason.map(<[u8]>::to_vec);
            return self.ready(at, self.now);
        }
        let lease_is_over = !hold.in_grace && hold.lease_end <= self.now;
        if goes.is_none() && lease_is_over && self.jobs[at].claim_end() > self.now {
            self.jobs[at].hold.as_mut().unwrap().in_grace = true;
            return;
        }
        let timeout = goes.is_none() && hold.run_end <= hold.lapses_at();
        let called_off = goes.is_none() && hold.cancel_end <= hold.run_end.min(hold.lapses_at());
        let queue = self.jobs[at].queue.clone();
        if goes.is_none() {
            self.count_lateness(&queue, Late::Lease, self.jobs[at].claim_end());
        }
        if !called_off {
            self.note(&queue, if timeout { Tally::Timeouts } else { Tally::Lapsed });
        }
        if let (false, false, Some(known)) = (timeout, called_off, self.workers.known.get_mut(&hold.worker)) {
            known.lapsed += 1;
        }
        let way = match (called_off, timeout) {
            (true, _) => Way::Taken,
            (false, true) => Way::TimedOut,
            (false, false) => Way::Lapsed,
        };
        self.end_claim(at, way);
        if hold.cancel {
            return self.end(at, State::Cancelled, self.retention(State::Cancelled));
        }
        if timeout {
            return self.failure(at, b"timeout", b"", None, None, draw);
        }
        let job = &self.jobs[at];
        let most = self.job_rule(job, job.options.lapses, Setting::Lapses);
        let job = &mut self.jobs[at];
        job.lapses += 1;
        if most >= 0 && job.lapses > most {
            job.kind = Some(b"lapsed".to_vec());
            job.message = None;
            return self.dies(at, None);
        }
        let due = self.after_lapse(at, draw);
        self.wait(at, due);
    }

    /// When a job that lost a lease may be claimed again: drawn at random around a wait that doubles.
    fn after_lapse(&self, at: usize, draw: Draw) -> i64 {
        let job = &self.jobs[at];
        let base = self.queue_rule(&job.queue, Setting::LapseDelay);
        if base == 0 {
            return self.now;
        }
        let (_, max) = job.options.backoff.unzip();
        let max = self.job_rule(job, max, Setting::BackoffMax).max(base);
        let pause = (1..job.lapses).fold(base, |p, _| p.saturating_mul(2).min(1 << 50)).min(max);
        let span = pause * self.job_rule(job, job.options.jitter, Setting::Jitter) / 100;
        let due = draw(&job.id).unwrap_or(self.now);
        let range = self.now + pause - span..=self.now + pause + span;
        assert!(range.contains(&due), "claimed again at {due}, not within {range:?}");
        due
    }
}
