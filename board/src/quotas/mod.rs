//! Limits on posts: how many live jobs a board, a queue and a group may have, and how many bytes of
//! records a board and a queue; how many live jobs of one name a user may have; and how many
//! records there can be at all.
//!
//! The value of each level bounds the total of that level; the value of all groups of a queue
//! bounds each group. [`Growth`] sums up what a command would add, so that a command is refused as
//! a whole; a command that adds nothing is never refused. Verbs of workers are not checked: a board
//! over its limits drains.
//!
//! | file | what it bounds |
//! |---|---|
//! | `bounds` | how many queues, groups, schedules and keys a board may have |
//! | `users` | live jobs of each user and name |
//! | `unique` | unique keys: one holder each |
//! | `room` | what keeps a post back that waits for room, and where room becomes free |
//!
//! Uses `dispatch`, `job` and `structures`.

pub(crate) mod bounds;
pub(crate) mod room;
pub(crate) mod unique;
pub(crate) mod users;

use crate::queue::Queue;
use std::collections::BTreeMap;

use crate::board::Board;
use crate::dispatch::fair::Fair;
use crate::error::Refusal;
use crate::job::{Extras, Job, State};
use crate::settings::{Overrides, Setting};
use crate::structures::byte_string::ByteString;
use crate::structures::interner::Interner;
use crate::structures::lazy::Lazy;
use unique::Keys;

/// What posts have taken of these limits.
#[derive(Default)]
pub(crate) struct Quotas {
    /// Live jobs by user and name.
    pub(crate) owners: Option<Box<Interner<ByteString, ()>>>,
    pub(crate) keys: Lazy<Keys>,
}

/// Bytes of a record without its id, its payload and what few jobs have.
pub(crate) const RECORD: usize = std::mem::size_of::<Option<Job>>();

/// The most records that posts make: their slots have room for as many. A test reaches fewer.
const MOST_RECORDS: usize = if cfg!(test) { 1_000 } else { 1_000_000_000 };
/// From this many records on posts check their number: no command adds as many as are missing then.
const NEARLY_FULL: usize = MOST_RECORDS / 500 * 499;

#[derive(Debug, Clone, Copy, Default)]
struct Load {
    jobs: i64,
    bytes: i64,
}

impl Load {
    fn add(&mut self, live: bool, bytes: i64) {
        self.jobs += i64::from(live);
        self.bytes += bytes;
    }

    fn take(&mut self, live: bool, bytes: i64) {
        self.jobs -= i64::from(live);
        self.bytes -= bytes;
    }
}

/// What a command would add to a board. See the module's comment.
#[derive(Debug, Default)]
pub struct Growth {
    all: Load,
    queues: BTreeMap<ByteString, Load>,
    /// Live jobs by queue and group, in queues whose groups are bounded.
    groups: BTreeMap<(ByteString, ByteString), i64>,
    /// Live jobs of the posting user, by name; and whether any is posted with that name.
    names: BTreeMap<ByteString, (i64, bool)>,
}

/// A job that is to be live, as far as limits are concerned.
pub(crate) struct Coming<'a> {
    /// The job that it replaces.
    pub old: Option<u32>,
    pub queue: &'a [u8],
    pub group: Option<&'a [u8]>,
    /// Of its id, its payload, and what few jobs have.
    pub bytes: usize,
    /// Its user and its name, when these are bounded.
    pub owner: Option<(&'a [u8], &'a [u8])>,
}

/// Bytes that `bytes` of what few jobs have take in a record.
pub(crate) fn rare_bytes(bytes: usize) -> usize {
    match bytes {
        0 => 0,
        bytes => std::mem::size_of::<Extras>() + bytes,
    }
}

impl Growth {
    pub(crate) fn adds(&mut self, board: &Board, coming: &Coming<'_>) {
        if let Some(slot) = coming.old {
            self.goes(board, slot, coming.owner.map(|(user, _)| user));
        }
        let bytes = coming.bytes as i64;
        self.all.add(true, bytes);
        self.queues.entry(coming.queue.into()).or_default().add(true, bytes);
        self.shifts(board, coming.queue, coming.group, 1);
        if let Some((_, name)) = coming.owner {
            let (by, posted) = self.names.entry(name.into()).or_default();
            (*by, *posted) = (*by + 1, true);
        }
    }

    /// Adds `by` live jobs to a group.
    fn shifts(&mut self, board: &Board, queue: &[u8], group: Option<&[u8]>, by: i64) {
        let fair = board.fair_named(queue).filter(|fair| fair.bounds > 0);
        if let Some((_, group)) = fair.zip(group) {
            *self.groups.entry((queue.into(), group.into())).or_default() += by;
        }
    }

    /// A job is removed, or makes room for another.
    pub(crate) fn goes(&mut self, board: &Board, slot: u32, user: Option<&[u8]>) {
        let Some(job) = board.store.jobs.get(slot) else { return };
        let (live, bytes) = (!job.state.ended(), board.weight(job) as i64);
        self.all.take(live, bytes);
        self.queues.entry(board.queue_name(job).into()).or_default().take(live, bytes);
        if live {
            self.shifts(board, board.queue_name(job), board.group_name(job), -1);
        }
        let owner = job.extras.as_ref().and_then(|extras| extras.user.as_deref());
        if let (true, Some(class), true) = (live && user.is_some(), board.class_of(job), owner == user) {
            self.names.entry(class.name.clone()).or_default().0 -= 1;
        }
    }

    /// A live job ends; its record may be retained.
    pub(crate) fn ends(&mut self, board: &Board, slot: u32, user: Option<&[u8]>) {
        self.goes(board, slot, user);
        if let Some(job) = board.store.jobs.get(slot) {
            let bytes = board.weight(job) as i64;
            self.all.add(false, bytes);
            self.queues.entry(board.queue_name(job).into()).or_default().add(false, bytes);
        }
    }

    /// A job becomes or stays live in this queue.
    pub(crate) fn moves(&mut self, board: &Board, slot: u32, queue: Option<&[u8]>) {
        let Some(job) = board.store.jobs.get(slot).filter(|_| board.local.bounded) else { return };
        let queue = queue.unwrap_or(board.queue_name(job));
        let (group, bytes) = (board.group_name(job), board.weight(job));
        self.adds(board, &Coming { old: Some(slot), queue, group, bytes, owner: None });
    }
}

impl Growth {
    /// Whether one more job may become or stay live in this queue. O(log queues).
    pub(crate) fn fits(&self, board: &Board, slot: u32, queue: &[u8]) -> bool {
        let Some(job) = board.store.jobs.get(slot).filter(|_| board.local.bounded) else { return true };
        let (live, bytes) = (!job.state.ended(), board.weight(job) as i64);
        let (mut all, mut there) = (self.all, self.queues.get(queue).copied().unwrap_or_default());
        all.add(!live, 0);
        match board.queue_name(job) == queue {
            true => there.add(!live, 0),
            false => there.add(true, bytes),
        }
        let joins = |group| {
            let moves = !live || board.queue_name(job) != queue;
            let by = self.groups.get(&(queue.into(), ByteString::from(group))).copied().unwrap_or(0);
            board.group_has_room(queue, group, by + i64::from(moves))
        };
        within(&board.settings, all, board.live(), board.record_bytes()).is_ok()
            && board.group_name(job).is_none_or(joins)
            && board
                .queues
                .find(queue)
                .and_then(|number| board.queues.get(number))
                .is_none_or(|queue| within(&queue.settings, there, queue.live(), queue.bytes as u64).is_ok())
    }
}

impl Board {
    /// About how many bytes a record takes: `max-bytes` bounds their sum.
    pub(crate) fn weight(&self, job: &Job) -> usize {
        RECORD + job.heap()
    }

    /// How many jobs have not ended.
    pub fn live(&self) -> u64 {
        live(|state| self.count(state))
    }

    /// About how many bytes all records take. O(1).
    pub fn record_bytes(&self) -> u64 {
        (self.store.heap + RECORD * self.store.jobs.len()) as u64
    }

    /// About how many bytes the records of a queue take. O(1).
    pub fn record_bytes_in(&self, queue: &[u8]) -> u64 {
        self.queues.find(queue).and_then(|q| self.queues.get(q)).map_or(0, |queue| queue.bytes as u64)
    }

    /// A record was added to a queue, or grew.
    pub(crate) fn queue_gains(&mut self, class: u32, bytes: usize) {
        if let Some(queue) = self.store.classes.key(class).and_then(|c| self.queues.get_mut(c.queue)) {
            queue.bytes += bytes;
        }
    }

    /// A record was removed from a queue, or shrank.
    pub(crate) fn queue_loses(&mut self, class: u32, bytes: usize) {
        let Some(queue) = self.store.classes.key(class).map(|c| c.queue) else { return };
        if let Some(queue) = self.queues.get_mut(queue) {
            queue.bytes = queue.bytes.saturating_sub(bytes);
        }
        self.frees(queue, None);
    }

    /// Whether a post must check limits: some are set, or the board is nearly full.
    pub(crate) fn is_limited(&self) -> bool {
        self.local.bounded || self.store.jobs.len() >= NEARLY_FULL
    }

    /// Derives whether any limit is set. O(queues).
    pub(crate) fn find_bounds(&mut self) {
        let has = |own: &Overrides| {
            [Setting::MaxJobs, Setting::MaxBytes]
                .into_iter()
                .any(|s| own.get(s).is_some_and(|most| most >= 0))
        };
        let bounds = |queue: &Queue| queue.fair.as_ref().is_some_and(|fair| fair.bounds > 0);
        self.local.bounded = has(&self.settings)
            || self.queues.iter().any(|(_, _, queue)| has(&queue.settings) || bounds(queue));
    }

    /// The groups of a queue.
    fn fair_named(&self, queue: &[u8]) -> Option<&Fair> {
        self.queues.get(self.queues.find(queue)?)?.fair.as_deref()
    }

    /// Whether a group may have `by` more live jobs. O(1).
    fn group_has_room(&self, queue: &[u8], group: &[u8], by: i64) -> bool {
        let bounds = self.fair_named(queue).is_some_and(|fair| fair.bounds > 0 && by > 0);
        let most = if bounds { self.most_in_group(queue, group) } else { -1 };
        most < 0 || self.live_in_group(queue, group) as i64 + by <= most
    }

    /// Refuses what would exceed a limit; `most` is a user and how many live jobs of each name that
    /// user may have. O(queues and names that grow).
    pub(crate) fn check_growth(&self, growth: &Growth, most: Option<(&[u8], i64)>) -> Result<(), Refusal> {
        if let Some((user, most)) = most {
            let over = |(name, (by, posted)): (&ByteString, &(i64, bool))| {
                *posted && self.live_of(user, name) as i64 + by > most
            };
            if growth.names.iter().any(over) {
                return Err(Refusal::Limit("maxlive"));
            }
        }
        if !self.is_limited() {
            return Ok(());
        }
        if self.store.jobs.len() as i64 + growth.all.jobs > MOST_RECORDS as i64 {
            return Err(Refusal::Limit("records"));
        }
        within(&self.settings, growth.all, self.live(), self.record_bytes())?;
        for (name, load) in &growth.queues {
            if let Some(queue) = self.queues.find(&**name).and_then(|q| self.queues.get(q)) {
                within(&queue.settings, *load, queue.live(), queue.bytes as u64)?;
            }
        }
        match growth.groups.iter().all(|((queue, group), by)| self.group_has_room(queue, group, *by)) {
            true => Ok(()),
            false => Err(Refusal::Limit("max-jobs")),
        }
    }

    /// Refuses to make these ended jobs live again, or to move these live ones to a queue, when
    /// that would exceed a limit. O(n log n).
    pub fn check_limits(&self, slots: &[u32], queue: Option<&[u8]>) -> Result<(), Refusal> {
        self.check_moves(slots, |_| queue)
    }

    /// The same for one job, which gets another payload if one is given.
    pub(crate) fn check_return(
        &self,
        slot: u32,
        queue: Option<&[u8]>,
        payload: Option<&[u8]>,
    ) -> Result<(), Refusal> {
        let Some(job) = self.store.jobs.get(slot).filter(|_| self.local.bounded) else { return Ok(()) };
        let mut growth = Growth::default();
        growth.moves(self, slot, queue);
        if let Some(payload) = payload {
            let more = payload.len() as i64 - job.payload().len() as i64;
            growth.all.bytes += more;
            growth.queues.entry(queue.unwrap_or(self.queue_name(job)).into()).or_default().bytes += more;
        }
        self.check_growth(&growth, None)
    }

    /// The same, where each goes to a queue of its own.
    pub(crate) fn check_moves<'a>(
        &self,
        slots: &[u32],
        queue: impl Fn(u32) -> Option<&'a [u8]>,
    ) -> Result<(), Refusal> {
        if !self.local.bounded {
            return Ok(());
        }
        let mut growth = Growth::default();
        slots.iter().for_each(|slot| growth.moves(self, *slot, queue(*slot)));
        self.check_growth(&growth, None)
    }
}

/// How many jobs have not ended, given their number in each state.
fn live(count: impl Fn(State) -> u64) -> u64 {
    State::ALL.into_iter().filter(|state| !state.ended()).map(count).sum()
}

impl Queue {
    /// How many of its jobs have not ended.
    fn live(&self) -> u64 {
        live(|state| self.count(state))
    }
}

fn within(own: &Overrides, load: Load, jobs: u64, bytes: u64) -> Result<(), Refusal> {
    let over = |setting, by: i64, now: u64| {
        let most = own.get(setting).filter(|most| *most >= 0);
        by > 0 && most.is_some_and(|most| now as i64 + by > most)
    };
    match (over(Setting::MaxJobs, load.jobs, jobs), over(Setting::MaxBytes, load.bytes, bytes)) {
        (true, _) => Err(Refusal::Limit("max-jobs")),
        (_, true) => Err(Refusal::Limit("max-bytes")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Env;
    use crate::settings::Rules;
    use crate::verbs::{Post, PostAnswer};

    #[test]
    fn a_full_board_refuses_posts() {
        let rules = Rules::default();
        let mut board = Board::default();
        let env =
            Env { now: 0, random: 1, token: 0, giver: 0, hold: 0, recovery: 0, rotation: 0, rules: &rules };
        let post = Post { payload: b"x", ..Post::default() };
        for n in 0..MOST_RECORDS {
            let Ok(PostAnswer::Do(posted)) = board.post(&env, &post, n as u64) else { panic!("post {n}") };
            board.apply(&posted, 0).unwrap();
        }
        assert!(matches!(board.post(&env, &post, 0), Err(Refusal::Limit("records"))));
    }
}
