//! The board: its indexes, and finding things in them. Moves between them are in `places`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::dispatch::buckets::{Bucket, Refill};
use crate::dispatch::fair::Fair;
use crate::dispatch::limits::{Limits, List};
use crate::dispatch::pauses::Pauses;
use crate::effect::{Happening, Unfit};
use crate::error::Refusal;
use crate::events::changes::Departed;
use crate::events::News;
use crate::job::id::{self, Id};
use crate::job::{Claim, Class, Job, State, NEVER};
use crate::places::by_queue::Asides;
use crate::places::labels::Labels;
use crate::places::tombstones::{Tombstone, Tombstones};
use crate::quotas::unique::Keys;
use crate::relations::dependencies::Waits;
use crate::relations::family::Families;
use crate::schedules::Schedules;
use crate::settings::{Overrides, Setting};
use crate::snapshot::Held;
use crate::statistics::days::{Days, Today};
use crate::statistics::pace::Flow;
use crate::structures::byte_string::ByteString;
use crate::structures::histogram::Histogram;
use crate::structures::ids::Ids;
use crate::structures::interner::Interner;
use crate::structures::slab::Slab;
use crate::structures::sorted::SortedSlots;
use crate::workers::registrations::Registrations;
use crate::workers::sessions::Sessions;

/// Revisions stay below this: they fit into a [`crate::job::U48`].
pub(crate) const REVISIONS: u64 = NEVER as u64;
/// Tags of turns stay below this.
pub(crate) const TURNS: u64 = u64::MAX >> 1;
/// No command and no turn of the timer counts further than this.
const HEADROOM: u64 = 1 << 40;

/// Best first: higher priority, then longer known to be ready, then posted earlier.
pub(crate) type ReadyKey = (Reverse<i32>, i64, i64);
/// Earliest first, then posted earlier.
pub(crate) type TimeKey = (i64, i64);

/// A named lane.
#[derive(Default)]
pub struct Queue {
    /// Ready jobs without a group.
    pub(crate) ready: SortedSlots<ReadyKey>,
    /// Its groups, while it has any.
    pub(crate) fair: Option<Box<Fair>>,
    /// Its jobs that are scheduled, blocked or have ended.
    pub(crate) asides: Asides,
    pub(crate) counts: [u64; 8],
    pub(crate) settings: Overrides,
    /// Bytes of the records of its jobs.
    pub(crate) bytes: usize,
    /// Nothing is claimed from it until then, Unix ms; 0 when it is not paused itself.
    pub(crate) paused: i64,
    /// How fast jobs may be claimed from it, by its settings.
    pub(crate) refill: Option<Refill>,
    /// The tokens for that.
    pub(crate) bucket: Option<Bucket>,
    /// The limits that it names.
    pub(crate) limits: List,
    /// Its place among the queues that have ready jobs.
    pub(crate) busy_at: Option<u32>,
    /// Noted in [`Board::woken`].
    pub(crate) woken: bool,
    /// Where today's statistics of it stand.
    pub(crate) today: Today,
    /// How fast its jobs come and end. Local.
    pub(crate) flow: Flow,
}

impl Queue {
    /// How many of its jobs are in that state.
    pub(crate) fn count(&self, state: State) -> u64 {
        self.counts.get(state as usize).copied().unwrap_or(0)
    }
}

/// A claimer.
pub struct Worker {
    pub(crate) claims: SortedSlots<u64>,
    /// When it last spoke, as far as this copy knows. Local.
    pub(crate) seen: i64,
    /// When its registration lapses, and its claims end, or [`NEVER`].
    pub(crate) until: i64,
    /// It has gone: its claims under tokens up to this one have ended.
    pub(crate) gone: u64,
}

impl Default for Worker {
    fn default() -> Self {
        Worker { claims: SortedSlots::default(), seen: 0, until: NEVER, gone: 0 }
    }
}

/// A time that is never by default.
pub(crate) struct Wake(pub(crate) i64);

impl Default for Wake {
    fn default() -> Self {
        Wake(NEVER)
    }
}

impl Wake {
    pub(crate) fn lower(&mut self, time: i64) {
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
    pub(crate) queues: Interner<ByteString, Queue>,
    pub(crate) workers: Interner<ByteString, Worker>,
    /// With the label of its name.
    pub(crate) classes: Interner<Class, Option<u32>>,
    pub(crate) due: SortedSlots<TimeKey>,
    pub(crate) blocked: SortedSlots<TimeKey>,
    pub(crate) leases: SortedSlots<TimeKey>,
    pub(crate) expiries: SortedSlots<TimeKey>,
    pub(crate) drops: SortedSlots<TimeKey>,
    pub(crate) ended: [SortedSlots<TimeKey>; 4],
    pub(crate) kept: [SortedSlots<TimeKey>; 4],
    pub(crate) waits: Waits,
    pub(crate) labels: Labels,
    pub(crate) families: Families,
    pub(crate) counts: [u64; 8],
    pub(crate) kinds: BTreeMap<ByteString, u64>,
    /// By user and name.
    pub(crate) owners: Interner<ByteString, ()>,
    pub(crate) keys: Keys,
    pub(crate) tombstones: Tombstones,
    pub(crate) gone: Departed,
    pub(crate) settings: Overrides,
    pub(crate) pauses: Pauses,
    pub(crate) schedules: Schedules,
    pub(crate) registrations: Registrations,
    pub(crate) days: Days,
    pub(crate) broken: bool,
    /// What this version cannot read: then the board is broken, and holds nothing else.
    pub(crate) held: Option<Box<Held>>,
    pub(crate) heap: usize,
    /// Counts the tags that groups were given in the rounds of their queues.
    pub(crate) turns: u64,
    /// How fast jobs may be claimed from the whole board, by its settings.
    pub(crate) refill: Option<Refill>,
    /// The tokens for that.
    pub(crate) bucket: Option<Bucket>,
    /// Limits that queues and groups share.
    pub(crate) limits: Limits,
    /// Groups that have to wait for tokens, or are kept for their bucket alone: until when,
    /// which queue, which group.
    pub(crate) rests: BTreeSet<(i64, ByteString, u32)>,
    /// Queues whose groups are to be looked at, see [`Fair::review`].
    pub(crate) reviews: BTreeSet<ByteString>,
    // What follows is local: in no snapshot, no digest.
    /// The board or a queue has a limit of jobs or bytes.
    pub(crate) bounded: bool,
    /// The last token that came from elsewhere, with a load or a batch.
    pub(crate) foreign: u64,
    pub(crate) last_class: u32,
    pub(crate) busy: Vec<u32>,
    /// When the last effect happened.
    pub(crate) moment: i64,
    /// Queues that somebody waits for and that lack tokens, by when these are there.
    pub(crate) thirst: BTreeSet<(i64, u32)>,
    pub(crate) woken: Vec<u32>,
    /// No time event before this: a lower bound, exact after [`Board::reckon`].
    pub(crate) wake: Wake,
    /// Somebody other than its worker has ended a claim since [`Board::taken`] was asked.
    pub(crate) taken: bool,
    /// Which connection carries which session claim.
    pub(crate) sessions: Sessions,
    /// A worker is quiet no longer since [`Board::roused`] was asked.
    pub(crate) roused: bool,
    /// What those who follow the board are to be told.
    pub(crate) news: News,
    /// A record of an ended job has come since [`Board::overfull`] looked.
    pub(crate) grown: bool,
    /// How late time was since [`Board::pour_lateness`], as in [`crate::statistics::stats::Late`].
    pub(crate) late: [Histogram; 3],
}

/// A duration setting: -1 and 0 mean none.
pub(crate) fn duration(ms: i64) -> Option<i64> {
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

    /// Why it keeps a snapshot that this version cannot read, if it does.
    pub fn why_held(&self) -> Option<&'static str> {
        self.held.as_ref().map(|held| held.why)
    }

    /// Keeps one more part behind those that this version cannot read.
    pub fn hold(&mut self, part: &[u8]) {
        if let Some(held) = &mut self.held {
            held.parts.push(part.into());
        }
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

    /// How many things of their own are freed with the board: jobs and what outlives them, about. O(1).
    pub fn pieces(&self) -> usize {
        self.jobs.len()
            + self.tombstones.len()
            + self.gone.ring.len()
            + self.days.len()
            + self.schedules.len()
            + self.registrations.len()
            + self.held.as_ref().map_or(0, |held| held.parts.len())
    }

    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.jobs.len() == 0
    }

    /// Bytes that the board takes, about. O(queues + workers + users + records of statistics), not
    /// O(jobs).
    pub fn bytes(&self) -> usize {
        let lines = [&self.due, &self.blocked, &self.leases, &self.expiries, &self.drops];
        std::mem::size_of::<Self>()
            + self.jobs.bytes()
            + self.claims.bytes()
            + self.heap
            + self.ids.bytes()
            + self.queues.iter().map(|(_, _, lane)| lane.asides.bytes()).sum::<usize>()
            + lines.into_iter().chain(&self.ended).chain(&self.kept).map(SortedSlots::bytes).sum::<usize>()
            + self
                .queues
                .iter()
                .map(|(_, name, q)| {
                    256 + name.len() + q.ready.bytes() + q.fair.as_ref().map_or(0, |f| f.bytes())
                })
                .sum::<usize>()
            + self.workers.iter().map(|(_, n, w)| 128 + n.len() + w.claims.bytes()).sum::<usize>()
            + self.classes.iter().count() * 200
            + self.tombstones.len() * 96
            + self.gone.ring.len() * 48
            + self.news.bytes()
            + self.waits.bytes()
            + self.labels.bytes()
            + self.families.bytes()
            + self.pauses.iter().len() * 192
            + self.schedules.bytes()
            + self.registrations.bytes()
            + self.days.bytes()
            + self.keys.bytes()
            + self.limits.bytes()
            + self.held.as_ref().map_or(0, |held| held.bytes())
            + self.owners.iter().map(|(_, key, _)| 64 + key.len()).sum::<usize>()
    }

    /// Refuses to begin anything on a board whose counters have come near their ends: within one
    /// command, or one turn of the timer, none of them gets there. O(1).
    pub fn check_headroom(&self) -> Result<(), Refusal> {
        match (self.revision < REVISIONS - HEADROOM, self.turns < TURNS - HEADROOM) {
            (false, _) => Err(Refusal::Limit("revisions")),
            (_, false) => Err(Refusal::Limit("turns")),
            _ => Ok(()),
        }
    }

    /// Whether a copy of this board would take an effect.
    pub(crate) fn takes(&self, effect: &impl Happening) -> bool {
        self.revision < REVISIONS && self.turns < TURNS && effect.fits(self)
    }

    /// Applies one effect: the only thing that changes a board. `Err` when the effect names
    /// what is not there; then the board may be half changed and is to be marked broken.
    pub fn apply(&mut self, effect: &impl Happening, now: i64) -> Result<(), Unfit> {
        debug_assert!(self.takes(effect), "no copy would take it: {effect:?}");
        self.revision += 1;
        self.moment = now;
        effect.happen(self, now)
    }

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
}
