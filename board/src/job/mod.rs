//! What is kept of a job.
//!
//! [`Job`] is what every job has, 64 bytes beside its payload and a chosen id: a board may hold millions
//! that wait. What few jobs have is out of line: [`Claim`] while a worker holds it, [`Extras`] once
//! something out of the ordinary has happened to it (a failure, a lapse, a progress report, a
//! retained end), [`Class`] shared by all of the same queue, name and options.
//!
//! Times are Unix milliseconds:
//!
//! | field | set | meaning |
//! |---|---|---|
//! | `posted` | at post, replace | when the client posted it |
//! | `since` | when it first becomes ready, [`NEVER`] before; at requeue, replace | orders it among equals; kept when it comes back |
//! | `at` | with the state | scheduled: due; blocked: not before this; ready: expires (or never); claimed: number of its claim; ended: when its record is removed |
//! | `Claim::claimed` | at claim | begin of this run |
//! | `Claim::lease_end` | at claim, heartbeat | the lease ends, unless a heartbeat extends it |
//! | `Claim::grace` | at claim | how long its holder keeps the job after the lease has ended |
//! | `Claim::in_grace` | at the end of the lease; no more at a heartbeat | whether that time has begun |
//! | `Claim::cancel_end` | when its worker is asked to stop | the claim ends then at the latest |
//! | `Claim::run_end` | at claim | the run's timeout, which no heartbeat moves |
//! | `Retrying::ready` | when it becomes ready again | its wait counts from then; before, from `since` |
//! | `Extras::ended` | at the end | when it completed, failed, was cancelled or trashed |
//!
//! | file | what it holds |
//! |---|---|
//! | `claim` | what is kept while a worker holds the job |
//! | `class`, `classes` | what jobs of the same queue, name and options share |
//! | `costs` | what a claim takes from limits, and what it has cost |
//! | `extras` | what few jobs have |
//! | `awaited`, `kin`, `unique_key` | what a record keeps of dependencies, of parent and children, of its unique key |
//! | `gate` | which signals a job waits for, and until when |
//! | `heads` | what few jobs have beside their id and payload: group, ageing, costs |
//! | `history` | the entries of its history |
//! | `id` | ids: a made id contains its slot |
//! | `order` | the keys that order jobs |
//! | `remembered` | what a job remembers between its runs: steps, signals, its wait |
//! | `output` | what its worker writes while it runs |
//! | `seeds` | what the random bits of made ids follow from |
//! | `store` | the records of a board, and finding them |
//!
//! Uses `structures`.

pub(crate) mod awaited;
pub(crate) mod classes;
pub(crate) mod costs;
pub(crate) mod gate;
pub(crate) mod history;
pub(crate) mod id;
pub(crate) mod kin;
pub(crate) mod order;
pub(crate) mod output;
pub(crate) mod remembered;
pub(crate) mod seeds;
pub(crate) mod store;
pub(crate) mod unique_key;

mod claim;
mod class;
mod extras;
mod heads;

use crate::job::costs::PackedCosts;
use crate::job::heads::{blob, AGES, GROUPED, HEADS, LISTED, PRICED};
use crate::job::id::Id;
use crate::structures::allotted::allotted;

pub use claim::{Claim, End, LastClaim, Session};
pub use class::{Class, Number, Options};
pub use costs::{Costs, COSTS_MOST};
pub use extras::{Extras, Origin, Reports, META_MOST, STALE_MOST};
pub use heads::Heads;

/// Fencing tokens stay below this, so that the numbers of every client can hold them.
pub(crate) const TOKENS: u64 = 1 << 53;

/// The queue of jobs that name no queue.
pub const DEFAULT_QUEUE: &[u8] = b"default";

/// "Never", as a time.
pub const NEVER: i64 = (1 << 48) - 1;

/// Whether a number is a valid time; [`NEVER`] is one.
pub(crate) fn is_time(time: i64) -> bool {
    (0..=NEVER).contains(&time)
}

/// An unsigned number of 48 bits: enough for a time in ms, a revision, a claim's number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct U48([u16; 3]);

impl U48 {
    /// The nearest number that fits.
    pub fn new(n: i64) -> Self {
        let n = n.clamp(0, NEVER) as u64;
        U48([n as u16, (n >> 16) as u16, (n >> 32) as u16])
    }

    /// As a plain number.
    pub fn get(self) -> i64 {
        let [low, mid, high] = self.0;
        low as i64 | (mid as i64) << 16 | (high as i64) << 32
    }
}

/// Where in its life a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum State {
    /// It waits for its time.
    Scheduled = 0,
    /// It waits for other jobs.
    Blocked = 1,
    /// It waits for a worker.
    Ready = 2,
    /// A worker holds it.
    Claimed = 3,
    /// It succeeded.
    Complete = 4,
    /// It failed after its last attempt.
    Failed = 5,
    /// It was cancelled.
    Cancelled = 6,
    /// A worker trashed it.
    Trashed = 7,
}

impl State {
    /// All states, in the order of their numbers.
    pub const ALL: [State; 8] = [
        State::Scheduled,
        State::Blocked,
        State::Ready,
        State::Claimed,
        State::Complete,
        State::Failed,
        State::Cancelled,
        State::Trashed,
    ];

    /// Its name in commands and replies.
    pub fn name(self) -> &'static str {
        match self {
            State::Scheduled => "scheduled",
            State::Blocked => "blocked",
            State::Ready => "ready",
            State::Claimed => "claimed",
            State::Complete => "complete",
            State::Failed => "failed",
            State::Cancelled => "cancelled",
            State::Trashed => "trashed",
        }
    }

    /// The state of this name, in upper or lower case.
    pub fn named(word: &[u8]) -> Option<State> {
        State::ALL.into_iter().find(|s| word.eq_ignore_ascii_case(s.name().as_bytes()))
    }

    /// Whether the job's life is over.
    pub fn ended(self) -> bool {
        self >= State::Complete
    }

    /// Whether [`crate::places::by_queue`] keeps a line of such jobs for each queue.
    pub(crate) fn is_aside(self) -> bool {
        !matches!(self, State::Ready | State::Claimed)
    }
}

numbered!(State, "state": Scheduled, Blocked, Ready, Claimed, Complete, Failed, Cancelled, Trashed);

/// What every job has. See the module's comment.
pub struct Job {
    /// What few jobs have ([`Heads`]), id and payload in one allocation: 16 bytes of a made id that does
    /// not follow from the record ([`Store::id`]), or a length byte and a chosen one; then the payload.
    blob: Box<[u8]>,
    /// What few jobs have.
    pub extras: Option<Box<Extras>>,
    /// Number of its [`Class`].
    pub class: u32,
    /// Jobs of higher priority are claimed first.
    pub priority: i32,
    /// See the table in the module's comment.
    pub since: U48,
    /// See the table in the module's comment.
    pub posted: U48,
    /// See the table in the module's comment.
    pub at: U48,
    /// Orders jobs by their posts: the board's revision at that time.
    pub seq: U48,
    /// The board's revision when it last changed.
    pub version: U48,
    /// Where in its life it is.
    pub state: State,
    /// [`MADE`], [`FOLLOWS`], the number of a seed, and which [`Heads`] it has.
    flags: u8,
}

/// The server made its id.
const MADE: u8 = 1;
/// Its id follows from the record, and is not in its allocation.
const FOLLOWS: u8 = 32;
/// From this bit on stands the number of the seed from which it follows.
const SEED: u32 = 6;
/// Bytes of a made id.
const MADE_BYTES: usize = 16;

/// What a record keeps of its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptId<'i> {
    /// All of it.
    Whole(Id<&'i [u8]>),
    /// The number of the seed from which it follows.
    Follows(u8),
}

impl Job {
    /// A record of a job that is in no place yet.
    pub fn new(id: KeptId<'_>, payload: &[u8], class: u32, priority: i32, heads: &Heads<'_>) -> Self {
        let zero = U48::new(0);
        let (id, made) = match id {
            KeptId::Follows(seed) => (None, MADE | FOLLOWS | seed << SEED),
            KeptId::Whole(id @ Id::Made(_)) => (Some(id), MADE),
            KeptId::Whole(id @ Id::Named(_)) => (Some(id), 0),
        };
        Job {
            blob: blob(heads, id, payload),
            extras: None,
            class,
            priority,
            since: U48::new(NEVER),
            posted: zero,
            at: zero,
            seq: zero,
            version: zero,
            state: State::Ready,
            flags: made | heads.flags(),
        }
    }

    pub(crate) fn blob_mut(&mut self) -> &mut Box<[u8]> {
        &mut self.blob
    }

    fn made(&self) -> bool {
        self.flags & MADE != 0
    }

    fn heads(&self) -> Heads<'_> {
        Heads::read(self.flags, &self.blob)
    }

    /// The number of its group in its queue.
    pub fn group(&self) -> Option<u32> {
        match self.flags & GROUPED {
            0 => None,
            _ => self.blob.first_chunk().map(|number| u32::from_le_bytes(*number)),
        }
    }

    /// After how many ms of waiting its priority rises by one, again and again; 0: never.
    pub fn ageing(&self) -> i64 {
        match self.flags & AGES {
            0 => 0,
            _ => self.heads().ageing,
        }
    }

    /// The permits that a claim of it takes, if its post named a number.
    pub fn cost(&self) -> Option<i64> {
        match self.flags & PRICED {
            0 => None,
            _ => self.heads().cost,
        }
    }

    /// The permits that a claim of it takes from single limits.
    pub fn costs(&self) -> PackedCosts<'_> {
        match self.flags & LISTED {
            0 => PackedCosts::default(),
            _ => self.heads().costs,
        }
    }

    /// Whether its post named what a claim of it takes.
    pub fn is_priced(&self) -> bool {
        self.flags & (PRICED | LISTED) != 0
    }

    fn split(&self) -> (&[u8], &[u8]) {
        let blob = match self.flags & HEADS {
            0 => &self.blob,
            // Asked for several times by every command for a job of a group.
            GROUPED => self.blob.get(4..).unwrap_or_default(),
            _ => self.blob.get(self.heads().len()..).unwrap_or_default(),
        };
        match (self.flags & (MADE | FOLLOWS), blob.split_first()) {
            (0, Some((len, rest))) => rest.split_at_checked(*len as usize).unwrap_or_default(),
            (MADE, _) => blob.split_at_checked(MADE_BYTES).unwrap_or_default(),
            _ => (&[], blob),
        }
    }

    /// Its id; `None` when it follows from the record, see [`Store::id`].
    pub(crate) fn kept_id(&self) -> Option<Id<&[u8]>> {
        let id = self.split().0;
        match id.try_into() {
            _ if self.flags & FOLLOWS != 0 => None,
            Ok(bytes) if self.made() => Some(Id::Made(bytes)),
            _ => Some(Id::Named(id)),
        }
    }

    /// The number of the seed from which its id follows.
    pub(crate) fn seed(&self) -> Option<u8> {
        (self.flags & FOLLOWS != 0).then_some(self.flags >> SEED)
    }

    /// Keeps its id, which no longer follows from the record.
    pub(crate) fn keep_id(&mut self, id: [u8; MADE_BYTES]) {
        if self.flags & FOLLOWS != 0 {
            self.blob = blob(&self.heads(), Some(Id::Made(id)), self.payload());
            self.flags &= (1 << SEED) - 1 - FOLLOWS;
        }
    }

    /// The bytes of a chosen id; empty for a made one.
    pub fn chosen_id(&self) -> &[u8] {
        match self.made() {
            true => &[],
            false => self.split().0,
        }
    }

    /// Its payload.
    pub fn payload(&self) -> &[u8] {
        self.split().1
    }

    /// Replaces its payload.
    pub fn set_payload(&mut self, payload: &[u8]) {
        self.blob = blob(&self.heads(), self.kept_id(), payload);
    }

    fn with(&self, heads: &Heads<'_>) -> (Box<[u8]>, u8) {
        (blob(heads, self.kept_id(), self.payload()), self.flags & !HEADS | heads.flags())
    }

    /// Moves it to another group, or to none.
    pub fn set_group(&mut self, group: Option<u32>) {
        (self.blob, self.flags) = self.with(&Heads { group, ..self.heads() });
    }

    /// Sets its ageing, ms; 0 for none. Only while it is in no line.
    pub fn set_ageing(&mut self, ageing: i64) {
        (self.blob, self.flags) = self.with(&Heads { ageing, ..self.heads() });
    }

    /// Sets what a claim of it takes; `None` leaves it as it is.
    pub fn set_costs(&mut self, cost: Option<i64>, costs: Option<PackedCosts<'_>>) {
        let heads = self.heads();
        let (cost, costs) = (cost.or(heads.cost), costs.unwrap_or(heads.costs));
        (self.blob, self.flags) = self.with(&Heads { cost, costs, ..heads });
    }

    /// What few jobs have, added if it is missing.
    pub fn extras_mut(&mut self) -> &mut Extras {
        self.extras.get_or_insert_with(Box::default)
    }

    /// Whether it has been claimed and has not ended since. Valid while nobody holds it.
    pub fn has_begun(&self) -> bool {
        !self.state.ended() && self.extras.as_ref().is_some_and(|extras| extras.attempt > 0)
    }

    /// About how many bytes the allocator takes for what it has on the heap.
    pub(crate) fn allotted(&self) -> usize {
        // The parts of what few jobs have are many and small: rounded up by a twelfth on average.
        allotted(self.blob.len()) + self.extras.as_ref().map_or(0, |r| r.bytes() * 13 / 12)
    }

    /// Bytes of its id, its payload and what few jobs have, which limits count: a made id counts whether
    /// it is kept or not.
    pub fn heap(&self) -> usize {
        let follows = if self.flags & FOLLOWS != 0 { MADE_BYTES } else { 0 };
        follows + self.blob.len() + self.extras.as_ref().map_or(0, |r| r.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_64_bytes() {
        assert_eq!(std::mem::size_of::<Option<Job>>(), 64);
    }

    #[test]
    fn id_and_payload_share_one_allocation() {
        let mut job = Job::new(KeptId::Whole(Id::Named(b"a\0b")), b"payload", 0, 0, &Heads::default());
        assert_eq!((job.kept_id(), job.payload()), (Some(Id::Named(&b"a\0b"[..])), &b"payload"[..]));
        job.set_payload(b"");
        assert_eq!((job.kept_id(), job.payload()), (Some(Id::Named(&b"a\0b"[..])), &b""[..]));
        let made = [9; 16];
        let job = Job::new(KeptId::Whole(Id::Made(made)), b"x", 0, 0, &Heads::default());
        let empty = &b""[..];
        assert_eq!((job.kept_id(), job.payload(), job.chosen_id()), (Some(Id::Made(made)), &b"x"[..], empty));
        let mut job = Job::new(KeptId::Follows(3), b"x", 0, 0, &Heads { ageing: 5, ..Heads::default() });
        assert_eq!((job.kept_id(), job.payload(), job.chosen_id()), (None, &b"x"[..], empty));
        let weight = job.heap();
        assert_eq!(job.seed(), Some(3));
        job.keep_id(made);
        assert_eq!(job.seed(), None);
        job.set_payload(b"y");
        assert_eq!((job.kept_id(), job.payload(), job.ageing()), (Some(Id::Made(made)), &b"y"[..], 5));
        assert_eq!(job.heap(), weight);
    }

    #[test]
    fn group_ageing_and_costs_come_and_go_beside_id_and_payload() {
        let heads = Heads { group: Some(1 << 29), ..Heads::default() };
        let mut job = Job::new(KeptId::Whole(Id::Named(b"a")), b"x", 0, 0, &heads);
        assert_eq!(
            (job.group(), job.kept_id(), job.payload()),
            (Some(1 << 29), Some(Id::Named(&b"a"[..])), &b"x"[..])
        );
        job.set_payload(b"other");
        job.set_group(Some(7));
        assert_eq!((job.group(), job.payload()), (Some(7), &b"other"[..]));
        job.set_ageing(5);
        let packed = costs::pack(&[(b"requests", 0), (b"tokens", crate::settings::MOST)]);
        job.set_costs(Some(9), Some(PackedCosts::of(&packed)));
        assert_eq!((job.group(), job.ageing(), job.payload()), (Some(7), 5, &b"other"[..]));
        let named = [(&b"requests"[..], 0), (b"tokens", crate::settings::MOST)];
        assert_eq!((job.cost(), job.costs().collect::<Vec<_>>()), (Some(9), named.to_vec()));
        job.set_group(None);
        assert_eq!((job.group(), job.ageing(), job.cost()), (None, 5, Some(9)));
        job.set_ageing(0);
        job.set_costs(Some(4), None);
        assert_eq!((job.group(), job.ageing(), job.cost(), job.costs().len()), (None, 0, Some(4), 2));
        assert_eq!((job.kept_id(), job.payload()), (Some(Id::Named(&b"a"[..])), &b"other"[..]));
        job.set_costs(None, Some(PackedCosts::default()));
        assert_eq!((job.costs().len(), job.is_priced(), job.heap()), (0, true, 4 + 2 + 5));
    }

    #[test]
    fn a_number_of_48_bits_keeps_what_fits() {
        for n in [0, 1, 65_535, 65_536, 1_700_000_000_000, NEVER] {
            assert_eq!(U48::new(n).get(), n);
        }
        assert_eq!((U48::new(-1).get(), U48::new(i64::MAX).get()), (0, NEVER));
    }
}
