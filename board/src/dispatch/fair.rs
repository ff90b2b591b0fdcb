//! The groups of a queue, and the rounds in which they take their turns.
//!
//! A queue that has groups keeps beside its line of ready jobs without a group (which are one
//! group of their own, [`PLAIN`]) a line for each group. Of the groups that have ready jobs
//! those of the highest level, the priority of the job that they would give, go first. Within
//! a level they go round: each has a *tag*, the lowest is next, and with its turn it grows by
//! [`STEP`] divided by the group's weight (self-clocked fair queueing). A group that comes gets
//! a tag one such step above that of the last turn, as if it had just had its turn: so it waits
//! for one turn of each of the others at most, and gains nothing by going away. Nothing has to
//! be remembered of a group that is not there. Equal tags go in the order in which they were
//! given, wherever the group stood meanwhile.
//!
//! | what | invariant |
//! |---|---|
//! | [`Seat::top`] | the level of the job that the group would give, and its tag there |
//! | [`Seat::parked`] | its tags at other levels, where it stood before a better job came |
//! | [`Seat::place`] | where it stands in [`Fair::turns`] or [`Fair::apart`]: at `top`, if nothing holds it ([`Hold`]) |
//! | [`Fair::rounds`] | the levels at which any group has a tag, how many, and the last turn's |
//!
//! Tags do not wrap within 2^44 turns of one level that never runs empty; then weights would
//! count no more.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::dispatch::buckets::Refill;
use crate::dispatch::groups::{Group, Hold};
use crate::dispatch::limits::{List, Share};
use crate::job::order::ReadyKey;
use crate::job::{Job, State};
use crate::settings::{Overrides, Setting};
use crate::structures::ids::Ids;
use crate::structures::slab::Slab;
use crate::structures::sorted::SortedSlots;

/// The number of the jobs without a group.
pub(crate) const PLAIN: u32 = u32::MAX;
/// What a turn adds to the tag of a group of weight 1.
const STEP: u64 = 1 << 20;

/// Level, tag, the order in which equal tags were given, group: the lowest is next.
pub(crate) type Turn = (Reverse<i32>, u64, u64, u32);

/// A tag, and the order in which it was given.
pub(crate) type Tag = (u64, u64);

/// Where a group stands in the rounds. See the module's comment.
#[derive(Default)]
pub(crate) struct Seat {
    pub top: Option<(i32, Tag)>,
    pub parked: BTreeMap<i32, Tag>,
    pub place: Option<Turn>,
}

/// A level at which groups have tags.
#[derive(Default, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Round {
    /// The tag of the last turn.
    pub time: u64,
    /// How many groups have a tag here.
    pub groups: u32,
}

/// The groups of one queue.
#[derive(Default)]
pub(crate) struct Fair {
    pub groups: Slab<Box<Group>>,
    pub names: Ids,
    /// The ready jobs of all groups, in the order of their keys: for listings.
    pub all: SortedSlots<ReadyKey>,
    /// The groups that count against the limits of all groups.
    pub turns: BTreeSet<Turn>,
    /// The groups with limits of their own, and the jobs without a group.
    pub apart: BTreeSet<Turn>,
    pub rounds: BTreeMap<i32, Round>,
    pub plain: Seat,
    /// What counts for groups without their own.
    pub settings: Overrides,
    /// The limits that all groups without their own name.
    pub limits: List,
    /// The claimed jobs of these groups. Follows from the jobs.
    pub runs: u64,
    /// What groups have to do with each limit that any of them names.
    pub shares: BTreeMap<u32, Share>,
    /// How many of its groups, and all as one, have a limit of live jobs. Follows from settings.
    pub bounds: u32,
    /// The groups from this number on are to be looked at: what counts for all has changed.
    pub review: Option<u32>,
}

/// So many groups at most are passed over by a claim while a review is under way.
const PASSED: usize = 64;

/// The tag of a turn after the last one.
fn tag(round: &Round, weight: u64, given: &mut u64) -> Tag {
    *given += 1;
    (round.time.saturating_add(STEP / weight), *given)
}

fn join(rounds: &mut BTreeMap<i32, Round>, level: i32, weight: u64, given: &mut u64) -> Tag {
    let round = rounds.entry(level).or_default();
    round.groups += 1;
    tag(round, weight, given)
}

fn quit(rounds: &mut BTreeMap<i32, Round>, level: i32) {
    if let Some(round) = rounds.get_mut(&level) {
        round.groups = round.groups.saturating_sub(1);
        if round.groups == 0 {
            rounds.remove(&level);
        }
    }
}

/// The level of a key.
pub(crate) fn level(key: ReadyKey) -> i32 {
    key.0 .0
}

/// The key of a slot in a line of ready jobs.
pub(crate) fn ready_key_of(jobs: &Slab<Job>, slot: u32) -> ReadyKey {
    jobs.get(slot).map_or((Reverse(0), 0, 0), Job::ready_key)
}

/// The place in the rounds of a group with that tag at that level.
pub(crate) fn place((level, tag): (i32, Tag), at: u32) -> Turn {
    (Reverse(level), tag.0, tag.1, at)
}

/// Whether any job of that level stands in a line. O(log n).
pub(crate) fn has_level(line: &SortedSlots<ReadyKey>, jobs: &Slab<Job>, wanted: i32) -> bool {
    let from = (Reverse(wanted), i64::MIN, i64::MIN);
    let key_of = |slot| ready_key_of(jobs, slot);
    line.iter_from(Some(from), key_of).next().is_some_and(|slot| level(key_of(slot)) == wanted)
}

impl Fair {
    /// The number of a group. O(1).
    pub fn find(&self, name: &[u8]) -> Option<u32> {
        self.names.get(name, |at| self.groups.get(at).map_or(&[], |group| &group.name))
    }

    /// Adds a group that is not there. Gives its number.
    pub fn add(&mut self, name: &[u8]) -> u32 {
        let at = self.groups.insert(Box::new(Group { name: name.into(), ..Group::default() }));
        self.names.insert(name, at);
        at
    }

    /// Takes a group away if nothing needs it any more.
    pub fn tidy(&mut self, at: u32) {
        if self.groups.get(at).is_some_and(|group| group.is_unused()) {
            if let Some(group) = self.groups.remove(at) {
                self.names.remove(&group.name, at);
            }
        }
    }

    /// Whether any group, or all of them, have jobs, settings or a pause.
    pub fn is_known(&self) -> bool {
        !self.settings.is_empty()
            || !self.limits.is_empty()
            || self.groups.iter().any(|(_, group)| group.is_known())
    }

    /// Whether nothing needs it.
    pub fn is_unused(&self) -> bool {
        self.groups.len() == 0 && self.settings.is_empty() && self.limits.is_empty()
    }

    /// How many of its groups, and all as one, have a limit of live jobs. O(groups).
    pub fn count_bounds(&self) -> u32 {
        let own = self.groups.iter().map(|(_, group)| &group.settings);
        own.chain([&self.settings]).filter(|own| own.bounds_jobs()).count() as u32
    }

    /// A value in force for a group.
    pub fn value(&self, group: &Group, setting: Setting) -> i64 {
        group.value(&self.settings, setting)
    }

    /// What keeps a group from giving a job.
    pub fn hold(&self, group: &Group) -> Option<Hold> {
        group.hold(&group.terms(&self.settings))
    }

    /// How many more jobs of a group may run, if not any number; one that gives one job after
    /// the other runs one.
    pub fn room(&self, group: &Group) -> Option<u64> {
        let terms = group.terms(&self.settings);
        let most = if terms.ordered { Some(terms.most.unwrap_or(1).min(1)) } else { terms.most };
        most.map(|most| most.saturating_sub(group.count(State::Claimed)))
    }

    /// How fast jobs of a group may be claimed.
    pub fn refill(&self, group: &Group) -> Option<Refill> {
        group.terms(&self.settings).refill
    }

    /// Whether a group gives one job after the other.
    pub fn is_ordered(&self, group: &Group) -> bool {
        group.terms(&self.settings).ordered
    }

    /// The job that a group gives next, if nothing holds it.
    pub fn candidate(&self, group: &Group) -> Option<u32> {
        group.candidate(&group.terms(&self.settings))
    }

    /// The jobs that its groups give next, with their turns: that of groups apart, and that of
    /// those which count against the limits of all groups. O(log n).
    pub fn firsts(&self, plain: &SortedSlots<ReadyKey>) -> [Option<(Turn, u32)>; 2] {
        let looks = if self.review.is_some() { PASSED } else { 1 };
        let gives = |turn: &Turn| match turn.3 {
            PLAIN => plain.first().map(|slot| (*turn, slot)),
            at => {
                let group = self.groups.get(at)?;
                let terms = group.terms(&self.settings);
                let slot = group.hold(&terms).is_none().then(|| group.candidate(&terms))?;
                slot.map(|slot| (*turn, slot))
            }
        };
        [&self.apart, &self.turns].map(|turns| turns.iter().take(looks).find_map(gives))
    }

    /// The limits that count for the jobs of a group.
    pub fn limits_of(&self, at: u32) -> &[u32] {
        match self.groups.get(at).and_then(|group| group.limits.as_ref()) {
            Some(own) => own,
            None => &self.limits,
        }
    }

    /// Claimed jobs of groups that name these limits come, or go.
    pub fn share_runs(&mut self, list: &[u32], by: i64) {
        for number in list {
            if let Some(share) = self.shares.get_mut(number) {
                share.runs = share.runs.saturating_add_signed(by);
            }
        }
    }

    /// Gives a group that stands in no round a list of limits, or takes it away.
    pub fn set_group_list(&mut self, at: u32, list: Option<List>) {
        let runs = self.groups.get(at).map_or(0, |group| group.count(State::Claimed)) as i64;
        let before: List = self.limits_of(at).into();
        self.share_runs(&before, -runs);
        let Some(group) = self.groups.get_mut(at) else { return };
        let moved = i64::from(group.limits.is_some()) - i64::from(list.is_some());
        group.limits = list;
        self.runs = self.runs.saturating_add_signed(moved * runs);
        let after: List = self.limits_of(at).into();
        self.share_runs(&after, runs);
    }

    /// Takes a group out of the rounds, until it is seated again.
    pub fn unseat(&mut self, at: u32) {
        let place = self.groups.get_mut(at).and_then(|group| group.seat.place.take());
        if let Some(place) = place {
            self.turns.remove(&place);
            self.apart.remove(&place);
        }
    }

    /// The place of a group in the rounds.
    pub fn seat(&self, at: u32) -> Option<&Seat> {
        match at {
            PLAIN => Some(&self.plain),
            at => self.groups.get(at).map(|group| &group.seat),
        }
    }

    /// A job of a group has left its line; that level may be without jobs of it.
    pub fn left(&mut self, at: u32, gone: i32, plain: &SortedSlots<ReadyKey>, jobs: &Slab<Job>) {
        let (seat, line) = match at {
            PLAIN => (&mut self.plain, plain),
            at => match self.groups.get_mut(at) {
                Some(group) => {
                    let Group { seat, ready, .. } = &mut **group;
                    (seat, &*ready)
                }
                None => return,
            },
        };
        if !seat.parked.is_empty() && seat.parked.contains_key(&gone) && !has_level(line, jobs, gone) {
            seat.parked.remove(&gone);
            quit(&mut self.rounds, gone);
        }
    }

    /// A group has had its turn at that level.
    pub fn charge(&mut self, at: u32, level: i32, given: &mut u64) {
        let weight = self.weight(at);
        let seat = match at {
            PLAIN => Some(&mut self.plain),
            at => self.groups.get_mut(at).map(|group| &mut group.seat),
        };
        let (Some(seat), Some(round)) = (seat, self.rounds.get_mut(&level)) else { return };
        if let Some((_, old)) = seat.top.as_mut().filter(|(top, _)| *top == level) {
            round.time = round.time.max(old.0);
            *old = tag(round, weight, given);
        }
    }

    /// How many turns a group has in a round.
    fn weight(&self, at: u32) -> u64 {
        self.groups.get(at).map_or(1, |group| group.terms(&self.settings).weight)
    }

    /// Puts a group where its jobs and its state say. True when it has come into the rounds.
    /// O(log n).
    pub fn reseat(
        &mut self,
        at: u32,
        plain: &SortedSlots<ReadyKey>,
        jobs: &Slab<Job>,
        given: &mut u64,
    ) -> bool {
        let Fair { groups, plain: plain_seat, rounds, turns, apart, settings, .. } = self;
        let (seat, line, first, weight, free, alone) = match at {
            PLAIN => (plain_seat, plain, plain.first(), 1, true, true),
            at => match groups.get_mut(at) {
                Some(group) => {
                    let terms = group.terms(settings);
                    let (first, free) = (group.candidate(&terms), group.hold(&terms).is_none());
                    let Group { seat, ready, limits, .. } = &mut **group;
                    (seat, &*ready, first, terms.weight, free, limits.is_some())
                }
                None => return false,
            },
        };
        let turns = if alone { apart } else { turns };
        let wanted = first.map(|slot| level(ready_key_of(jobs, slot)));
        if seat.top.map(|(level, _)| level) != wanted {
            if let Some((level, tag)) = seat.top.take() {
                match has_level(line, jobs, level) {
                    true => _ = seat.parked.insert(level, tag),
                    false => quit(rounds, level),
                }
            }
            seat.top = wanted.map(|level| {
                let parked = seat.parked.remove(&level);
                (level, parked.unwrap_or_else(|| join(rounds, level, weight, given)))
            });
        }
        let stands = seat.place;
        let shall = seat.top.filter(|_| free).map(|top| place(top, at));
        if stands == shall {
            return false;
        }
        if let Some(old) = seat.place.take() {
            turns.remove(&old);
        }
        seat.place = shall;
        turns.extend(shall);
        stands.is_none() && shall.is_some()
    }

    /// Whether a group stands where it belongs.
    pub fn check_seat(
        &self,
        at: u32,
        line: &SortedSlots<ReadyKey>,
        jobs: &Slab<Job>,
        given: u64,
    ) -> Result<(), &'static str> {
        let seat = self.seat(at).ok_or("a group without a seat")?;
        let group = self.groups.get(at).filter(|_| at != PLAIN);
        let first = group.map_or_else(|| line.first(), |group| self.candidate(group));
        let wanted = first.map(|slot| level(ready_key_of(jobs, slot)));
        let reviewed = self.review.is_none_or(|from| at < from);
        if seat.top.map(|(level, _)| level) != wanted && reviewed {
            return Err("a group has its turn at another level than its job");
        }
        let top = seat.top.map(|(level, _)| level);
        let parked = |level: &i32| top != Some(*level) && has_level(line, jobs, *level);
        if !seat.parked.keys().all(parked) || top.is_some_and(|top| !has_level(line, jobs, top)) {
            return Err("a group keeps a tag for no job");
        }
        let free = group.is_none_or(|group| self.hold(group).is_none());
        let (stands, shall) = (seat.place, seat.top.map(|top| place(top, at)));
        if stands != shall.filter(|_| free) && reviewed || stands.is_some() && stands != shall {
            return Err("a group does not stand in its round");
        }
        let mut tags = seat.parked.values().chain(seat.top.iter().map(|(_, tag)| tag));
        let known = tags.all(|tag| (1..=given).contains(&tag.1));
        let alone = group.is_none_or(|group| group.limits.is_some());
        let turns = if alone { &self.apart } else { &self.turns };
        match known && stands.is_none_or(|turn| turns.contains(&turn)) {
            true => Ok(()),
            false => Err("a group is not known to its round"),
        }
    }

    /// Bytes that it takes, about. O(1) but for the names of its groups.
    pub fn bytes(&self) -> usize {
        self.groups.len() * 424 + self.names.bytes() + self.all.bytes() + self.all.len() * 4
    }
}
