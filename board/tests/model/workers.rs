//! Registered workers of the naive board, and those that go.

use std::collections::BTreeMap;

use board::Register;

use crate::naive::*;

/// What a worker said of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    pub role: Option<Bytes>,
    pub meta: Vec<(Bytes, Bytes)>,
    pub registered: i64,
    pub time: i64,
    pub until: i64,
    pub quiet: bool,
    pub lapsed: u64,
    pub session: bool,
}

#[derive(Clone, Default)]
pub struct Workers {
    pub known: BTreeMap<Bytes, Known>,
    /// Claims up to that token are being ended, as lapses or not.
    pub gone: BTreeMap<Bytes, (u64, bool)>,
    /// Which connection carries a registration.
    pub lines: BTreeMap<Bytes, u64>,
}

impl Workers {
    pub fn until(&self, worker: &[u8]) -> i64 {
        self.known.get(worker).map_or(NEVER, |w| w.until)
    }

    pub fn quiet(&self, worker: &[u8]) -> bool {
        self.known.get(worker).is_some_and(|w| w.quiet)
    }
}

impl Model {
    pub fn register(&mut self, register: &Register<'_>) {
        let now = self.now;
        let fresh = Known {
            role: None,
            meta: Vec::new(),
            registered: now,
            time: -1,
            until: NEVER,
            quiet: false,
            lapsed: 0,
            session: false,
        };
        let known = self.workers.known.entry(register.worker.to_vec()).or_insert(fresh);
        known.role = register.role.map(<[u8]>::to_vec).or(known.role.take());
        for (field, value) in &register.meta {
            match known.meta.iter_mut().find(|(f, _)| f[..] == field[..]) {
                Some(found) => found.1 = value.to_vec(),
                None => known.meta.push((field.to_vec(), value.to_vec())),
            }
        }
        known.session = register.session || (known.session && register.time.is_none());
        known.time = if known.session { -1 } else { register.time.unwrap_or(known.time) };
        known.until = later(now, known.time).min(NEVER);
        if !known.session {
            self.workers.lines.remove(register.worker);
        }
        if register.anew {
            self.leave_claims(register.worker, true);
        }
    }

    /// Whether a worker's registration is to be carried by a connection.
    fn is_carried(known: &Known) -> bool {
        known.session && known.until == NEVER
    }

    pub fn attend_session(&mut self, worker: &[u8], connection: u64) -> bool {
        let some = self.workers.known.get(worker).is_some_and(Self::is_carried);
        if some {
            self.workers.lines.insert(worker.to_vec(), connection);
        }
        some
    }

    /// Workers whose registrations no connection carries.
    pub fn alone(&self) -> Vec<Bytes> {
        let carried = self.workers.known.iter().filter(|(_, known)| Self::is_carried(known));
        carried.map(|(name, _)| name.clone()).filter(|name| !self.workers.lines.contains_key(name)).collect()
    }

    /// A registration has lost its connection.
    pub fn loses(&mut self, worker: &[u8], grace: i64) {
        self.workers.lines.remove(worker);
        match grace {
            0 => self.depart(worker, true),
            _ => self.workers.known.get_mut(worker).unwrap().until = (self.now + grace).min(NEVER - 1),
        }
    }

    pub fn deregister(&mut self, worker: &[u8], slice: u32, draw: Draw) -> bool {
        let known = self.workers.known.contains_key(worker);
        if known {
            self.depart(worker, false);
            let now = if self.hold > self.now { 0 } else { self.now };
            self.step_workers(now, slice, draw);
        }
        known
    }

    pub fn quiet(&mut self, worker: &[u8], quiet: bool) -> bool {
        self.workers.known.get_mut(worker).map(|known| known.quiet = quiet).is_some()
    }

    fn depart(&mut self, worker: &[u8], lapses: bool) {
        self.workers.known.remove(worker);
        self.workers.lines.remove(worker);
        self.leave_claims(worker, lapses);
    }

    /// All claims of a worker end from now on.
    fn leave_claims(&mut self, worker: &[u8], lapses: bool) {
        let (token, before) = self.workers.gone.get(worker).copied().unwrap_or((0, true));
        let held = self.jobs.iter().filter_map(|job| job.hold.as_ref());
        if held.filter(|hold| hold.worker == worker).any(|hold| hold.token > token) {
            self.workers.gone.insert(worker.to_vec(), (self.token, lapses && before));
        }
    }

    fn first_claim(&self, worker: &[u8], most: u64) -> Option<usize> {
        let held = (0..self.jobs.len()).filter_map(|at| Some((at, self.jobs[at].hold.as_ref()?)));
        let held = held.filter(|(_, hold)| hold.worker == worker && hold.token <= most);
        held.min_by_key(|(_, hold)| hold.token).map(|(at, _)| at)
    }

    fn lapsing(&self, until: i64) -> Option<Bytes> {
        let ended = self.workers.known.iter().filter(|(_, known)| known.until <= until);
        ended.min_by_key(|(name, known)| (known.until, name.to_vec())).map(|(name, _)| name.clone())
    }

    /// Ends registrations, and claims of workers that have gone.
    pub fn depart_some(&mut self, n: u32, draw: Draw) -> bool {
        let until = if self.hold > self.now { 0 } else { self.now };
        let some = self.lapsing(until).is_some() || !self.workers.gone.is_empty();
        self.step_workers(until, n, draw);
        some
    }

    fn step_workers(&mut self, until: i64, n: u32, draw: Draw) {
        for _ in 0..n {
            if let Some(name) = self.lapsing(until) {
                self.depart(&name, true);
                continue;
            }
            let Some((name, (token, _))) = self.workers.gone.first_key_value() else { return };
            match self.first_claim(name, *token) {
                Some(at) => self.claim_ends(at, draw),
                None => {
                    let name = name.clone();
                    self.workers.gone.remove(&name);
                }
            }
        }
    }

    /// How the claim of a worker that has gone ends: as a lapse or not.
    pub fn goes(&self, hold: &Hold, end: i64) -> Option<bool> {
        match self.workers.gone.get(&hold.worker) {
            Some((token, lapses)) if hold.token <= *token => Some(*lapses),
            _ => (self.workers.until(&hold.worker) <= self.now.min(end)).then_some(true),
        }
    }

    /// When a claimed job's grace begins or its claim ends, with its worker if that goes first; 0 when it has gone.
    pub fn claim_end_of(&self, job: &Job) -> i64 {
        let Some(hold) = &job.hold else { return NEVER };
        match self.workers.gone.get(&hold.worker) {
            Some((token, _)) if hold.token <= *token => 0,
            _ => job.claim_next().min(self.workers.until(&hold.worker)),
        }
    }
}
