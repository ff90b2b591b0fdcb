//! Registered workers, and workers whose registration has ended while their claims are still being
//! ended.
//!
//! The [`Worker`](crate::workers::Worker) that claims jobs knows until when it is registered and
//! which of its claims ended with the last registration, so that a claim need not look here.

use crate::item::{damaged, need, Item, Loading, SnapshotError};
use std::collections::{BTreeMap, BTreeSet};

use crate::board::Board;
use crate::effect::{is_name, ApplyError};
use crate::job::{is_time, META_MOST, NEVER};
use crate::settings::LONGEST;
use crate::structures::byte_string::ByteString;
use crate::structures::lazy::Part;

/// The most registered workers of a board.
pub const REGISTERED_MOST: usize = 10_000;

written! {
    /// A worker's registration.
    #[derive(Debug, Clone, Default, PartialEq)]
    pub struct Registration {
        /// Its role, in its own words.
        1 pub role: Option<ByteString>,
        /// Fields of its own.
        2 pub meta: Vec<(ByteString, ByteString)>,
        /// When it first registered, Unix ms.
        3 pub registered: i64,
        /// How long each registration lasts, ms, or -1 without end.
        4 pub time: i64,
        /// When the registration lapses, Unix ms, or [`NEVER`].
        5 pub until: i64,
        /// Whether it gets no jobs.
        6 pub quiet: bool,
        /// How many leases it has lost.
        7 pub lapsed: u64,
        /// Whether it lasts as long as the connection that carries it.
        8 pub session: bool,
    }
}

written! {
    /// A registration has ended: the server ends the worker's claims one by one, up to a token.
    #[derive(Debug, Clone, PartialEq)]
    pub(crate) struct Departure {
        /// The last token of these claims.
        1 pub token: u64,
        /// Whether they lapse; otherwise they end as if the worker had abandoned them.
        2 pub lapses: bool,
    }
}

written! {
    /// A worker's registration, the end of a former one, or both.
    #[derive(Debug, Clone, Default, PartialEq)]
    pub(crate) struct Entry {
        1 pub registration: Option<Registration>,
        2 pub departure: Option<Departure>,
    }
}

impl Entry {
    fn is_empty(&self) -> bool {
        self.registration.is_none() && self.departure.is_none()
    }

    fn until(&self) -> i64 {
        self.registration.as_ref().map_or(NEVER, |r| r.until)
    }

    /// Whether it is a registration that a connection must carry.
    fn is_carried(&self) -> bool {
        self.registration.as_ref().is_some_and(|r| r.session && r.until == NEVER)
    }

    fn quiet(&self) -> bool {
        self.registration.as_ref().is_some_and(|r| r.quiet)
    }

    fn heap(&self) -> usize {
        let meta = |r: &Registration| r.meta.iter().map(|(f, v)| f.len() + v.len() + 32).sum::<usize>();
        256 + self.registration.as_ref().map_or(0, |r| meta(r) + r.role.as_ref().map_or(0, |r| r.len()))
    }

    /// Whether effects could have made it on a board whose last token is `token`.
    pub fn is_valid(&self, token: u64) -> bool {
        let registration = self.registration.as_ref().is_none_or(|r| {
            r.role.as_ref().is_none_or(|role| is_name(role))
                && r.meta.len() <= META_MOST
                && r.meta.iter().all(|(field, _)| is_name(field))
                && (r.time == -1 || (!r.session && (1..=LONGEST).contains(&r.time)))
                && is_time(r.registered)
                && (1..=NEVER).contains(&r.until)
        });
        let departure = self.departure.as_ref().is_none_or(|d| (1..=token).contains(&d.token));
        !self.is_empty() && registration && departure
    }
}

/// All entries. See the module's comment.
#[derive(Default)]
pub(crate) struct Registrations {
    all: BTreeMap<ByteString, Entry>,
    /// The registrations that lapse, by when.
    ends: BTreeSet<(i64, ByteString)>,
    /// The workers whose claims are being ended.
    departing: BTreeSet<ByteString>,
    registered: usize,
    quiet: usize,
    heap: usize,
}

impl Part for Registrations {
    const BLANK: &'static Self = &Registrations {
        all: BTreeMap::new(),
        ends: BTreeSet::new(),
        departing: BTreeSet::new(),
        registered: 0,
        quiet: 0,
        heap: 0,
    };
}

impl Registrations {
    /// How many workers are registered. O(1).
    pub fn len(&self) -> usize {
        self.registered
    }

    /// Whether there is no registration and no worker whose claims are being ended. O(1).
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// How many workers are quiet. O(1).
    pub fn quiet(&self) -> usize {
        self.quiet
    }

    /// About how many bytes they take. O(1).
    pub fn bytes(&self) -> usize {
        self.heap
    }

    /// The entry of a worker. O(log workers).
    pub fn get(&self, worker: &[u8]) -> Option<&Entry> {
        self.all.get(worker)
    }

    /// A worker's registration. O(log workers).
    pub fn of(&self, worker: &[u8]) -> Option<&Registration> {
        self.get(worker)?.registration.as_ref()
    }

    /// All entries, by name.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&ByteString, &Entry)> {
        self.all.iter()
    }

    /// The registrations behind this name, by name.
    pub fn after<'a>(
        &'a self,
        name: Option<&[u8]>,
    ) -> impl Iterator<Item = (&'a ByteString, &'a Registration)> + use<'a> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = name.map_or(Unbounded, |name| Excluded(ByteString::from(name)));
        let behind = self.all.range((from, Unbounded));
        behind.filter_map(|(name, entry)| Some((name, entry.registration.as_ref()?)))
    }

    /// Whether a worker is quiet. O(1) while none is.
    pub fn is_quiet(&self, worker: &[u8]) -> bool {
        self.quiet > 0 && self.get(worker).is_some_and(Entry::quiet)
    }

    /// The registration that lapses next, and when, Unix ms. O(log workers).
    pub fn next_end(&self) -> Option<&(i64, ByteString)> {
        self.ends.first()
    }

    /// A worker whose claims are being ended. O(log workers).
    pub fn next_departure(&self) -> Option<&ByteString> {
        self.departing.first()
    }

    /// Counts a lost lease of this worker. O(log workers).
    pub fn lost(&mut self, worker: &[u8]) {
        if let Some(registration) = self.all.get_mut(worker).and_then(|e| e.registration.as_mut()) {
            registration.lapsed = registration.lapsed.saturating_add(1).min(NEVER as u64);
        }
    }

    /// Sets the entry of a worker; an empty entry removes it. Returns whether there was one.
    fn set(&mut self, worker: &ByteString, entry: Entry) -> bool {
        let old = self.all.remove(worker);
        if let Some(old) = &old {
            self.ends.remove(&(old.until(), worker.clone()));
            self.departing.remove(worker);
            self.registered -= usize::from(old.registration.is_some());
            self.quiet -= usize::from(old.quiet());
            self.heap = self.heap.saturating_sub(old.heap() + worker.len());
        }
        if !entry.is_empty() {
            if entry.until() != NEVER {
                self.ends.insert((entry.until(), worker.clone()));
            }
            if entry.departure.is_some() {
                self.departing.insert(worker.clone());
            }
            self.registered += usize::from(entry.registration.is_some());
            self.quiet += usize::from(entry.quiet());
            self.heap += entry.heap() + worker.len();
            self.all.insert(worker.clone(), entry);
        }
        old.is_some()
    }

    /// Checks that the indexes follow from the entries.
    fn is_valid(&self) -> bool {
        let ends = self.all.iter().filter(|(_, e)| e.until() != NEVER).map(|(w, e)| (e.until(), w.clone()));
        let departing = self.all.iter().filter(|(_, e)| e.departure.is_some()).map(|(w, _)| w);
        ends.collect::<BTreeSet<_>>() == self.ends
            && departing.eq(self.departing.iter())
            && self.registered == self.all.values().filter(|e| e.registration.is_some()).count()
            && self.quiet == self.all.values().filter(|e| e.quiet()).count()
            && self.heap == self.all.iter().map(|(w, e)| e.heap() + w.len()).sum::<usize>()
    }
}

impl Board {
    /// Sets the entry of a worker, here and beside its claims. O(log workers).
    pub(crate) fn set_entry(&mut self, worker: &ByteString, entry: Entry) -> Result<(), ApplyError> {
        let number = match self.workers.names.find(&**worker) {
            Some(number) => number,
            None => self.workers.names.add(worker.clone()).0,
        };
        let (until, gone) = (entry.until(), entry.departure.as_ref().map_or(0, |d| d.token));
        let (kept, carried) = (!entry.is_empty(), entry.is_carried());
        if self.workers.registrations.is_quiet(worker) && !entry.quiet() {
            self.local.roused = true;
        }
        let known = self.workers.registrations.set(worker, entry);
        let place = self.workers.names.get_mut(number).ok_or(ApplyError)?;
        (place.until, place.gone) = (until, gone);
        let alone = self.local.sessions.stands(worker, carried);
        self.wake_at(if gone > 0 || alone { 0 } else { until });
        match (known, kept) {
            (false, true) => self.workers.names.hold(number),
            (true, false) => {
                self.workers.names.release(number);
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether a worker is quiet. O(1) while none is.
    pub fn is_quiet(&self, worker: &[u8]) -> bool {
        self.workers.registrations.is_quiet(worker)
    }

    /// How many workers are registered. O(1).
    pub fn registered(&self) -> usize {
        self.workers.registrations.len()
    }

    /// A worker's registration. O(log workers).
    pub fn registration(&self, worker: &[u8]) -> Option<&Registration> {
        self.workers.registrations.of(worker)
    }

    /// The registrations behind this name, by name.
    pub fn registrations_after<'a>(
        &'a self,
        name: Option<&[u8]>,
    ) -> impl Iterator<Item = (&'a ByteString, &'a Registration)> + use<'a> {
        self.workers.registrations.after(name)
    }

    /// How many jobs a worker holds, and when it last spoke (Unix ms) as far as this copy knows.
    /// O(1).
    pub fn activity(&self, worker: &[u8]) -> (usize, i64) {
        let known = self.workers.names.find(worker).and_then(|number| self.workers.names.get(number));
        known.map_or((0, 0), |worker| (worker.claims.len(), worker.local.seen))
    }

    pub(crate) fn check_registrations(&self) -> Result<(), String> {
        let agrees = |(name, entry): (&ByteString, &Entry)| {
            let worker = self.workers.names.find(&**name).and_then(|number| self.workers.names.get(number));
            let gone = entry.departure.as_ref().map_or(0, |d| d.token);
            is_name(name) && worker.is_some_and(|w| (w.until, w.gone) == (entry.until(), gone))
        };
        let known = self.workers.registrations.iter().count();
        let marked = self.workers.names.iter().filter(|(_, name, w)| {
            (w.until != NEVER || w.gone > 0) && self.workers.registrations.get(name).is_none()
        });
        let stray = marked.count();
        let carried = self.workers.registrations.iter().filter(|(_, e)| e.is_carried()).map(|(name, _)| name);
        let is_valid = self.workers.registrations.is_valid() && self.local.sessions.are(carried);
        match is_valid && stray == 0 && self.workers.registrations.iter().all(agrees) {
            true => Ok(()),
            false => {
                Err(format!("one of {known} registrations that its worker does not know, or the reverse"))
            }
        }
    }
}

written! {
    /// A worker's registration, the end of a former one, or both.
    pub(crate) struct WorkerImage {
        1 name: ByteString,
        2 entry: Entry,
    }
}

impl<'a> Item<'a> for WorkerImage {
    fn each(board: &'a Board, mut put: impl FnMut(&Self)) {
        for (name, entry) in board.workers.registrations.iter() {
            put(&WorkerImage { name: name.clone(), entry: entry.clone() });
        }
    }

    fn load(self, board: &mut Board, _loading: &mut Loading) -> Result<(), SnapshotError> {
        need(is_name(&self.name) && self.entry.is_valid(board.token), "worker")?;
        need(board.workers.registrations.iter().next_back().is_none_or(|(n, _)| *n < self.name), "order")?;
        board.set_entry(&self.name, self.entry).or(damaged("worker"))
    }
}
