//! Registering: a worker reports that it is there, what it is, and for how long. Its claims end
//! with its registration.

use crate::board::{after, Board};
use crate::effect::{is_name, ApplyError, Meta, Validate};
use crate::env::Env;
use crate::error::Refusal;
use crate::job::{End, State, META_MOST, NEVER};
use crate::policy::Policy;
use crate::settings::{Rules, LONGEST};
use crate::structures::byte_string::ByteString;
use crate::verbs::abandon::Abandoned;
use crate::verbs::holder::ANYBODY;
use crate::workers::registrations::{Departure, Entry, Registration, REGISTERED_MOST};

/// Why the jobs of a deregistered worker were given back.
const DEREGISTERED: &[u8] = b"deregistered";

/// A worker's request to register, or to change its registration.
#[derive(Debug, Clone, Default)]
pub struct Register<'a> {
    /// Its name.
    pub worker: &'a [u8],
    /// Its role, in its own words.
    pub role: Option<&'a [u8]>,
    /// Fields to set.
    pub meta: Meta<'a>,
    /// For how long, ms; if not named, as before, and for a new registration until it is
    /// deregistered.
    pub time: Option<i64>,
    /// Whether it lasts as long as the connection that carries it.
    pub session: bool,
    /// Whether the worker has started anew: the claims that it has lapse.
    pub anew: bool,
}

written! {
    /// A worker is registered until then.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Registered<'a> {
        1 worker: &'a [u8],
        2 role: Option<&'a [u8]>,
        3 meta: Meta<'a>,
        4 time: i64,
        /// When it lapses, Unix ms, or [`crate::NEVER`].
        5 pub until: i64,
        6 session: bool,
        /// Whether the claims of its worker end now, as lapses.
        7 anew: bool,
    }
}

impl Validate for Registered<'_> {
    fn is_valid(&self, _board: &Board) -> bool {
        is_name(self.worker)
            && self.worker != ANYBODY
            && self.role.is_none_or(is_name)
            && self.meta.iter().all(|(field, _)| is_name(field))
            && (self.time == -1 || (!self.session && (1..=LONGEST).contains(&self.time)))
            && (!self.session || self.until == NEVER)
            && (1..=NEVER).contains(&self.until)
    }
}

impl Registered<'_> {
    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        let name = ByteString::from(self.worker);
        let mut entry = board.workers.registrations.get(&name).cloned().unwrap_or_default();
        let known = Registration { registered: now, ..Registration::default() };
        let registration = entry.registration.get_or_insert(known);
        registration.role = self.role.map(ByteString::from).or(registration.role.take());
        for (field, value) in &self.meta {
            match registration.meta.iter_mut().find(|(f, _)| **f == **field) {
                Some((_, old)) => *old = (&**value).into(),
                None => registration.meta.push(((&**field).into(), (&**value).into())),
            }
        }
        if registration.meta.len() > META_MOST {
            return Err(ApplyError);
        }
        (registration.time, registration.until) = (self.time, self.until);
        registration.session = self.session;
        if self.anew {
            entry.departure = board.departure(&name, true, entry.departure.take());
        }
        board.set_entry(&name, entry)?;
        if let Some(number) = board.workers.names.find(&*name) {
            board.saw_worker(number, now);
        }
        Ok(())
    }
}

written! {
    /// A worker was deregistered: its jobs are given back.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Deregistered<'a> {
        1 worker: &'a [u8],
    }
}

impl Validate for Deregistered<'_> {}

impl Deregistered<'_> {
    pub(crate) fn apply(&self, board: &mut Board, _now: i64) -> Result<(), ApplyError> {
        board.depart(&self.worker.into(), false)
    }
}

written! {
    /// A worker became quiet, or stopped being quiet.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Quieted<'a> {
        1 worker: &'a [u8],
        2 quiet: bool,
    }
}

impl Validate for Quieted<'_> {}

impl Quieted<'_> {
    pub(crate) fn apply(&self, board: &mut Board, _now: i64) -> Result<(), ApplyError> {
        let name = ByteString::from(self.worker);
        let mut entry = board.workers.registrations.get(&name).cloned().ok_or(ApplyError)?;
        entry.registration.as_mut().ok_or(ApplyError)?.quiet = self.quiet;
        board.set_entry(&name, entry)
    }
}

written! {
    /// The next `n` steps of ending registrations: each lapses one that was due by `until`, or ends
    /// one claim of a worker whose registration has ended.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Departed {
        1 until: i64,
        2 n: u32,
        3 seed: u64,
        4 policy: Policy,
    }
}

impl Validate for Departed {
    fn is_valid(&self, _board: &Board) -> bool {
        self.policy.is_valid()
    }
}

impl Departed {
    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        let rules = self.policy.rules();
        for _ in 0..self.n {
            if let Some(name) = board.lapsing(self.until).cloned() {
                board.depart(&name, true)?;
            } else if let Some(name) = board.workers.registrations.next_departure().cloned() {
                board.end_one(&name, now, self.seed, &rules)?;
            } else {
                return Ok(());
            }
        }
        Ok(())
    }
}

impl Board {
    /// The registration that lapses first, if that is by `until`.
    fn lapsing(&self, until: i64) -> Option<&ByteString> {
        self.workers.registrations.next_end().filter(|(end, _)| *end <= until).map(|(_, name)| name)
    }

    /// Ends a registration; the claims of its worker are ended from now on.
    pub(crate) fn depart(&mut self, name: &ByteString, lapses: bool) -> Result<(), ApplyError> {
        let entry = self.workers.registrations.get(name).ok_or(ApplyError)?;
        entry.registration.as_ref().ok_or(ApplyError)?;
        let departure = self.departure(name, lapses, entry.departure.clone());
        self.set_entry(name, Entry { registration: None, departure })
    }

    /// That all claims of a worker are ended from now on. `before`: earlier claims of it still are. When it
    /// has no others, they end as they would have. Otherwise all of them are given back if some are.
    fn departure(&self, name: &[u8], lapses: bool, before: Option<Departure>) -> Option<Departure> {
        let token = before.as_ref().map_or(0, |before| before.token);
        if self.held(name, token).next().is_none() {
            return before;
        }
        let lapses = lapses && before.is_none_or(|before| before.lapses);
        Some(Departure { token: self.token, lapses })
    }

    /// Ends the first claim of a worker whose registration has ended, or after the last claim its
    /// departure.
    fn end_one(&mut self, name: &ByteString, now: i64, seed: u64, rules: &Rules) -> Result<(), ApplyError> {
        let gone =
            self.workers.registrations.get(name).and_then(|e| e.departure.as_ref()).ok_or(ApplyError)?.token;
        let first = self.held(name, 0).next();
        let claim = first.and_then(|slot| self.claim_of(self.store.jobs.get(slot)?));
        match claim.filter(|claim| claim.token <= gone).map(|claim| claim.slot) {
            Some(slot) => self.claim_ends(slot, now, seed, rules),
            None => {
                let mut entry = self.workers.registrations.get(name).cloned().ok_or(ApplyError)?;
                entry.departure = None;
                self.set_entry(name, entry)
            }
        }
    }

    /// How the claim of a worker whose registration has ended must end: `true` as a lapse, `false`
    /// as if abandoned; `None` when the registration has not ended.
    pub(crate) fn goes(&self, slot: u32, now: i64) -> Option<bool> {
        let claim = self.claim_of(self.store.jobs.get(slot)?)?;
        let worker = self.workers.names.get(claim.worker)?;
        if claim.token <= worker.gone {
            let entry = self.workers.registrations.get(self.worker_name(claim));
            return entry.and_then(|e| e.departure.as_ref()).map(|d| d.lapses);
        }
        (worker.until <= now.min(claim.ends_at())).then_some(true)
    }

    /// Gives a job back in the name of its deregistered worker.
    pub(crate) fn give_back(&mut self, slot: u32, now: i64, rules: &Rules) -> Result<(), ApplyError> {
        let reason = Some(DEREGISTERED);
        match self.claim_of(self.job(slot)?).ok_or(ApplyError)?.cancel {
            true => {
                let retain = self.retention(State::Cancelled, rules);
                self.end_job(slot, State::Cancelled, End::Abandoned, reason, retain, now)
            }
            false => Abandoned::of(slot, reason).apply(self, now),
        }
    }

    /// Decides a registration. O(log workers).
    pub fn register<'a>(&self, env: &Env<'_>, register: &Register<'a>) -> Result<Registered<'a>, Refusal> {
        let known = self.workers.registrations.of(register.worker);
        if known.is_none() && self.workers.registrations.len() >= REGISTERED_MOST {
            return Err(Refusal::Limit("workers"));
        }
        let meta = known.map_or(&[][..], |r| &r.meta);
        let mut fields: Vec<&[u8]> = meta.iter().map(|(field, _)| &**field).collect();
        fields.extend(register.meta.iter().map(|(field, _)| &**field));
        fields.sort_unstable();
        fields.dedup();
        if fields.len() > META_MOST {
            return Err(Refusal::Limit("meta fields"));
        }
        let stays = register.time.is_none() && known.is_some_and(|r| r.session);
        let session = register.session || stays;
        let time = register.time.or(known.map(|r| r.time)).filter(|_| !session).unwrap_or(-1);
        let (worker, role, meta) = (register.worker, register.role, register.meta.clone());
        let (until, anew) = (after(env.now, time), register.anew);
        Ok(Registered { worker, role, meta, time, until, session, anew })
    }

    /// Whether a registration takes no more room than the one that it renews.
    pub fn is_renewal(&self, register: &Register<'_>) -> bool {
        let Some(known) = self.workers.registrations.of(register.worker) else { return false };
        let room = |field: &[u8]| known.meta.iter().find(|(f, _)| **f == *field).map(|(_, old)| old.len());
        register.role.is_none_or(|role| known.role.as_ref().is_some_and(|old| role.len() <= old.len()))
            && register.meta.iter().all(|(field, value)| room(field).is_some_and(|old| value.len() <= old))
    }

    /// Decides that a worker is deregistered; `None` when it is not registered. O(log workers).
    pub fn deregister<'a>(&self, worker: &'a [u8]) -> Option<Deregistered<'a>> {
        self.workers.registrations.of(worker).map(|_| Deregistered { worker })
    }

    /// Decides that a worker becomes quiet, or stops being quiet; `None` when nothing would change.
    /// O(log workers).
    pub fn quiet<'a>(&self, worker: &'a [u8], quiet: bool) -> Result<Option<Quieted<'a>>, Refusal> {
        let known = self.workers.registrations.of(worker).ok_or(Refusal::NoWorker)?;
        Ok((known.quiet != quiet).then_some(Quieted { worker, quiet }))
    }

    /// At most `n` steps of ending registrations; `None` when there are none. O(log workers).
    pub fn departs(&self, env: &Env<'_>, n: u32) -> Option<Departed> {
        let until = if env.hold > env.now { 0 } else { env.now };
        let some = self.lapsing(until).is_some() || self.workers.registrations.next_departure().is_some();
        some.then(|| Departed { until, n, seed: env.random, policy: Policy::of_claims(env.rules) })
    }
}
