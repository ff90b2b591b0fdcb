//! Pausing: nothing is claimed from a board, a queue or a group, or under a shared limit, until it is
//! resumed. Running jobs go on, unless the pause takes them back.
//!
//! A pause only gets longer: the later of two ends counts, whoever asked for them, until an operator
//! resumes.

use crate::board::{after, Board};
use crate::dispatch::pauses::{Pause, Place};
use crate::effect::{is_name, ApplyError, Effect, Validate};
use crate::env::Env;
use crate::error::{clean, Refusal};
use crate::job::{End, State, NEVER};
use crate::structures::byte_string::ByteString;
use crate::verbs::release::Released;

/// How many claims are looked at for each one that may be taken back.
const LOOKS: usize = 16;

/// An operator's request to pause a board, a queue, a group or a shared limit.
#[derive(Debug, Clone, Default)]
pub struct PauseRequest<'a> {
    /// The queue, or the whole board.
    pub queue: Option<&'a [u8]>,
    /// A group of that queue alone.
    pub group: Option<&'a [u8]>,
    /// A shared limit, in place of a queue.
    pub limit: Option<&'a [u8]>,
    /// For how long, ms; otherwise until it is resumed.
    pub time: Option<i64>,
    /// Whether running jobs are taken back.
    pub release: bool,
}

written! {
    /// The place is paused until then.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Paused<'a> {
        1 queue: Option<&'a [u8]>,
        2 until: i64,
        3 release: bool,
        4 group: Option<&'a [u8]>,
        5 limit: Option<&'a [u8]>,
    }
}

fn place(queue: Option<&[u8]>, group: Option<&[u8]>, limit: Option<&[u8]>) -> Place {
    match (queue, limit) {
        (Some(queue), _) => Place::Queue(queue.into(), group.map(ByteString::from)),
        (None, Some(limit)) => Place::Limit(limit.into()),
        (None, None) => Place::Board,
    }
}

fn is_place(queue: Option<&[u8]>, group: Option<&[u8]>, limit: Option<&[u8]>) -> bool {
    [queue, group, limit].into_iter().flatten().all(is_name)
        && (queue.is_some() || group.is_none())
        && (queue.is_none() || limit.is_none())
}

impl Validate for Paused<'_> {
    fn is_valid(&self, board: &Board) -> bool {
        is_place(self.queue, self.group, self.limit)
            && (1..=NEVER).contains(&self.until)
            && self.limit.is_none_or(|limit| !self.release && board.limit(limit).is_some())
    }
}

impl Paused<'_> {
    pub(crate) fn apply(&self, board: &mut Board, _now: i64) -> Result<(), ApplyError> {
        let place = place(self.queue, self.group, self.limit);
        board.emit_pause(&place, self.until);
        // If a former pause has begun to take jobs back, that continues.
        let before = board.dispatch.pauses.get(&place).and_then(|p| p.release);
        let release = before.or(self.release.then_some((0, 0)));
        board.set_pause(&place, Some(Pause { until: self.until, release }))
    }
}

written! {
    /// An operator ended a pause.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Resumed<'a> {
        1 queue: Option<&'a [u8]>,
        2 group: Option<&'a [u8]>,
        3 limit: Option<&'a [u8]>,
    }
}

impl Validate for Resumed<'_> {
    fn is_valid(&self, _board: &Board) -> bool {
        is_place(self.queue, self.group, self.limit)
    }
}

impl Resumed<'_> {
    pub(crate) fn apply(&self, board: &mut Board, _now: i64) -> Result<(), ApplyError> {
        let place = place(self.queue, self.group, self.limit);
        board.emit_pause(&place, 0);
        board.set_pause(&place, None)
    }
}

written! {
    /// Time ended the first `n` pauses, as far as they were due by `until`.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Lifted {
        1 until: i64,
        2 n: u32,
    }
}

impl Validate for Lifted {}

impl Lifted {
    pub(crate) fn apply(&self, board: &mut Board, _now: i64) -> Result<(), ApplyError> {
        for _ in 0..self.n {
            let Some(place) = board.ended_pause(self.until).cloned() else { return Ok(()) };
            board.emit_pause(&place, 0);
            board.set_pause(&place, None)?;
        }
        Ok(())
    }
}

written! {
    /// A pause took up to `n` running jobs from their workers.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Reclaimed {
        1 n: u32,
        /// How long the records of those with a requested cancel are retained, ms.
        2 retain: i64,
    }
}

impl Validate for Reclaimed {}

impl Reclaimed {
    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        let Some(place) = board.dispatch.pauses.next_release().cloned() else { return Ok(()) };
        let Some(mut pause) = board.dispatch.pauses.get(&place).cloned() else { return Err(ApplyError) };
        let (queue, group) = match &place {
            Place::Queue(queue, group) => (Some(queue), group.as_deref()),
            Place::Board | Place::Limit(_) => (None, None),
        };
        let queue = queue.map(|name| board.queues.find(&**name).ok_or(ApplyError)).transpose()?;
        let group = group.map(|name| board.group_at(queue.ok_or(ApplyError)?, name)).transpose()?;
        let most = self.n as usize;
        let key_of = |s| board.store.lease_key(s);
        let looks = most.saturating_mul(LOOKS);
        let mut some: Vec<u32> =
            board.places.leases.iter_from(pause.release, key_of).take(looks.saturating_add(1)).collect();
        let within = |slot: &u32| match (queue, board.store.jobs.get(*slot)) {
            (Some(queue), Some(job)) => {
                board.queue_number(job) == queue && (group.is_none() || job.group() == group)
            }
            (None, Some(_)) => true,
            (_, None) => false,
        };
        let last = some.iter().enumerate().filter(|(_, s)| within(s)).nth(most).map_or(looks, |(at, _)| at);
        pause.release = Some(some.get(last).map_or((0, 0), |slot| key_of(*slot)));
        some.truncate(last);
        some.retain(|slot| within(slot));
        for slot in some {
            board.take_back(slot, self.retain, now)?;
        }
        if board.running(queue, group) == 0 {
            pause.release = None;
        }
        board.set_pause(&place, Some(pause))
    }
}

impl Board {
    /// Takes a running job from its worker at no cost; one with a requested cancel ends.
    fn take_back(&mut self, slot: u32, retain: i64, now: i64) -> Result<(), ApplyError> {
        match self.claim_of(self.job(slot)?).ok_or(ApplyError)?.cancel {
            true => self.end_job(slot, State::Cancelled, End::Taken, None, retain, now),
            false => Released { slot, front: None }.apply(self, now),
        }
    }

    /// How many jobs run in a queue, a group of it, or on the whole board.
    fn running(&self, queue: Option<u32>, group: Option<u32>) -> u64 {
        let queue = queue.and_then(|number| self.queues.get(number));
        match (queue, group) {
            (None, _) => self.count(State::Claimed),
            (Some(queue), None) => queue.count(State::Claimed),
            (Some(queue), Some(at)) => queue.group(at).map_or(0, |group| group.count(State::Claimed)),
        }
    }

    /// The pause that time ends first, if that is by `until`.
    fn ended_pause(&self, until: i64) -> Option<&Place> {
        self.dispatch.pauses.next_end().filter(|(end, _)| *end <= until).map(|(_, place)| place)
    }

    /// Decides a pause; `None` when one is there that lasts as long. O(log pauses).
    pub fn pause<'a>(
        &self,
        env: &Env<'_>,
        request: &PauseRequest<'a>,
    ) -> Result<Option<Paused<'a>>, Refusal> {
        let PauseRequest { queue, group, limit, time, release } = *request;
        limit.map_or(Ok(()), |limit| self.check_limit(limit))?;
        let until = time.map_or(NEVER, |ms| after(env.now, ms));
        let before = self.dispatch.pauses.get(&place(queue, group, limit)).map(|pause| pause.until);
        let longer = before.is_none_or(|before| before < until);
        let until = before.map_or(until, |before| before.max(until));
        Ok((longer || release).then_some(Paused { queue, until, release, group, limit }))
    }

    /// Decides the end of a pause; `None` when there is none. O(log pauses).
    pub fn resume<'a>(&self, request: &PauseRequest<'a>) -> Result<Option<Resumed<'a>>, Refusal> {
        let PauseRequest { queue, group, limit, .. } = *request;
        limit.map_or(Ok(()), |limit| self.check_limit(limit))?;
        let pause = self.dispatch.pauses.get(&place(queue, group, limit));
        Ok(pause.map(|_| Resumed { queue, group, limit }))
    }

    /// Decides that a worker pauses a limit that counts for its job; `None` when the limit is paused
    /// for as long. O(k).
    pub(crate) fn pause_limit_of<'a>(
        &self,
        env: &Env<'_>,
        slot: u32,
        (limit, ms): (&'a [u8], i64),
    ) -> Result<Option<Paused<'a>>, Refusal> {
        let job = self.job(slot).map_err(|_| Refusal::NoJob)?;
        let mut numbers = self.limits_of(self.queue_number(job), job.group()).into_iter();
        let number = self.dispatch.limits.find(limit);
        if !numbers.any(|of_job| Some(of_job) == number) {
            return Err(Refusal::Argument(format!(
                "PAUSE names '{}', which is no limit of this job: JOB.EXPLAIN and JOB.QUEUES say which are",
                clean(limit)
            )));
        }
        self.pause(env, &PauseRequest { limit: Some(limit), time: Some(ms), ..PauseRequest::default() })
    }

    fn check_limit(&self, limit: &[u8]) -> Result<(), Refusal> {
        match self.limit(limit) {
            Some(_) => Ok(()),
            None => Err(Refusal::Argument(format!(
                "LIMIT names '{}', and there is no such limit: JOB.LIMITS lists those of a board",
                clean(limit)
            ))),
        }
    }

    /// At most `n` pauses that time should have ended by now. O(log pauses).
    pub(crate) fn lift(&self, env: &Env<'_>, n: u32) -> Option<Effect<'static>> {
        self.ended_pause(env.now).map(|_| Lifted { until: env.now, n }.into())
    }

    /// Decides that pauses take back at most `n` jobs; `None` when none are left. O(1).
    pub fn reclaim(&self, env: &Env<'_>, n: u32) -> Option<Effect<'static>> {
        let retain = self.retention(State::Cancelled, env.rules);
        self.dispatch.pauses.next_release().map(|_| Reclaimed { n, retain }.into())
    }

    /// Whether the whole board is paused. O(1).
    pub(crate) fn is_paused(&self, now: i64) -> bool {
        self.dispatch.pauses.whole() > now
    }

    /// Until when a queue is paused, by itself or with the whole board: Unix ms, [`NEVER`] without
    /// end, `None` when it is not paused. Without a queue, the whole board. O(1).
    pub fn paused(&self, queue: Option<&[u8]>, now: i64) -> Option<i64> {
        let queue = queue.and_then(|name| self.queues.get(self.queues.find(name)?));
        let until = self.dispatch.pauses.whole().max(queue.map_or(0, |queue| queue.paused));
        (until > now).then_some(until)
    }
}
