//! The groups of a queue, and the rounds in which they take turns.
//!
//! A queue with groups keeps, beside its line of ready jobs without a group (which form one group
//! of their own, [`PLAIN`]), a line for each group. The level of a group is the priority of its
//! next job; among groups with ready jobs, those of the highest level are first. Within a level
//! they take turns: each group has a *tag*, the lowest tag is next, and each turn raises the tag by
//! [`STEP`] divided by the group's weight (self-clocked fair queueing). A group that joins gets a
//! tag one such step above that of the last turn, as if it had just had its turn: it waits for at
//! most one turn of each other group, and gains nothing by leaving and joining again. So an absent
//! group needs no memory. Equal tags are served in the order in which they were given, wherever the
//! groups were meanwhile.
//!
//! | what | invariant |
//! |---|---|
//! | [`Seat::top`] | the level of the group's next job, and its tag there |
//! | [`Seat::parked`] | its tags at other levels, from before a better job came |
//! | [`Seat::place`] | its place in [`Fair::turns`] or [`Fair::own_limits`]: at `top`, unless something holds it ([`Hold`]) |
//! | [`Fair::rounds`] | the levels at which any group has a tag: how many groups, and the tag of the last turn |
//!
//! Tags do not wrap within 2^44 turns of one level that never runs empty; after that, weights would
//! no longer count.

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

/// The number that stands for the jobs without a group.
pub(crate) const PLAIN: u32 = u32::MAX;
/// What a turn adds to the tag of a group of weight 1.
const STEP: u64 = 1 << 20;

/// Level, tag, the order in which equal tags were given, group: the lowest is next.
pub(crate) type Turn = (Reverse<i32>, u64, u64, u32);

/// A tag, and the order in which it was given.
pub(crate) type Tag = (u64, u64);

/// The place of a group in the rounds. See the module's comment.
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
    /// The groups with limits of their own, and the jobs without a group: limits of all groups do
    /// not hold them.
    pub own_limits: BTreeSet<Turn>,
    pub rounds: BTreeMap<i32, Round>,
    pub plain: Seat,
    /// The settings of groups that have none of their own.
    pub settings: Overrides,
    /// The shared limits of all groups without a list of their own.
    pub limits: List,
    /// How many jobs of these groups are claimed. Follows from the jobs.
    pub runs: u64,
    /// What the groups have to do with each shared limit that any of them names.
    pub shares: BTreeMap<u32, Share>,
    /// How many of the groups, and of "all groups" as one, limit their live jobs. Follows from
    /// settings.
    pub bounds: u32,
    /// The groups from this number on are still to be reviewed: a value for all groups has changed.
    pub review: Option<u32>,
}

/// While a review is under way, a claim passes over at most this many groups.
const PASSED: usize = 64;

/// A tag one turn after the last.
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

/// The key of a slot in a line of ready jobs. O(1).
pub(crate) fn ready_key_of(jobs: &Slab<Job>, slot: u32) -> ReadyKey {
    jobs.get(slot).map_or((Reverse(0), 0, 0), Job::ready_key)
}

/// The place in the rounds of a group with this tag at this level.
pub(crate) fn place((level, tag): (i32, Tag), at: u32) -> Turn {
    (Reverse(level), tag.0, tag.1, at)
}

/// Whether a line holds any job of this level. O(log n).
pub(crate) fn has_level(line: &SortedSlots<ReadyKey>, jobs: &Slab<Job>, wanted: i32) -> bool {
    let from = (Reverse(wanted), i64::MIN, i64::MIN);
    let key_of = |slot| ready_key_of(jobs, slot);
    line.iter_from(Some(from), key_of).next().is_some_and(|slot| level(key_of(slot)) == wanted)
}

impl Fair {
    /// The number of a group; `None` when there is none of this name. O(1).
    pub fn find(&self, name: &[u8]) -> Option<u32> {
        self.names.get(name, |at| self.groups.get(at).map_or(&[], |group| &group.name))
    }

    /// Adds a group of a new name and returns its number.
    pub fn add(&mut self, name: &[u8]) -> u32 {
        let at = self.groups.insert(Box::new(Group { name: name.into(), ..Group::default() }));
        self.names.insert(name, at);
        at
    }

    /// Removes a group that nothing needs any more.
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

    /// Whether nothing needs these rounds.
    pub fn is_unused(&self) -> bool {
        self.groups.len() == 0 && self.settings.is_empty() && self.limits.is_empty()
    }

    /// How many of the groups, and of "all groups" as one, limit their live jobs. O(groups).
    pub fn count_bounds(&self) -> u32 {
        let own = self.groups.iter().map(|(_, group)| &group.settings);
        own.chain([&self.settings]).filter(|own| own.bounds_jobs()).count() as u32
    }

    /// The value in force for a group.
    pub fn value(&self, group: &Group, setting: Setting) -> i64 {
        group.value(&self.settings, setting)
    }

    /// What keeps a group from giving a job; `None` when nothing does.
    pub fn hold(&self, group: &Group) -> Option<Hold> {
        group.hold(&group.terms(&self.settings))
    }

    /// How many more jobs of a group may run; `None` without a limit. An ordered group runs one.
    pub fn room(&self, group: &Group) -> Option<u64> {
        let terms = group.terms(&self.settings);
        let most = if terms.ordered { Some(terms.most.unwrap_or(1).min(1)) } else { terms.most };
        most.map(|most| most.saturating_sub(group.count(State::Claimed)))
    }

    /// How fast jobs of a group may be claimed; `None` without a limit.
    pub fn refill(&self, group: &Group) -> Option<Refill> {
        group.terms(&self.settings).refill
    }

    /// Whether a group gives its jobs one after the other.
    pub fn is_ordered(&self, group: &Group) -> bool {
        group.terms(&self.settings).ordered
    }

    /// The slot of the job that a group gives next once nothing holds it.
    pub fn candidate(&self, group: &Group) -> Option<u32> {
        group.candidate(&group.terms(&self.settings))
    }

    /// The next job and its turn, once of the groups with limits of their own, and once of the groups that count
    /// against the limits of all groups. O(log n).
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
        [&self.own_limits, &self.turns].map(|turns| turns.iter().take(looks).find_map(gives))
    }

    /// The shared limits of the jobs of a group, by number.
    pub fn limits_of(&self, at: u32) -> &[u32] {
        match self.groups.get(at).and_then(|group| group.limits.as_ref()) {
            Some(own) => own,
            None => &self.limits,
        }
    }

    /// Adds `by` to the claimed jobs of groups that name these shared limits.
    pub fn share_runs(&mut self, list: &[u32], by: i64) {
        for number in list {
            if let Some(share) = self.shares.get_mut(number) {
                share.runs = share.runs.saturating_add_signed(by);
            }
        }
    }

    /// Gives a group outside the rounds a list of shared limits, or removes its list.
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

    /// Takes a group out of the rounds until [`Fair::reseat`] returns it.
    pub fn unseat(&mut self, at: u32) {
        let place = self.groups.get_mut(at).and_then(|group| group.seat.place.take());
        if let Some(place) = place {
            self.turns.remove(&place);
            self.own_limits.remove(&place);
        }
    }

    /// The place of a group in the rounds.
    pub fn seat(&self, at: u32) -> Option<&Seat> {
        match at {
            PLAIN => Some(&self.plain),
            at => self.groups.get(at).map(|group| &group.seat),
        }
    }

    /// A job of a group has left its line: drops the group's tag at that level if it was the last
    /// one there.
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

    /// Records that a group has had its turn at this level.
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

    /// How many turns a group has in each round.
    fn weight(&self, at: u32) -> u64 {
        self.groups.get(at).map_or(1, |group| group.terms(&self.settings).weight)
    }

    /// Puts a group in the place that its jobs and its state demand. Returns whether it has joined
    /// the rounds. O(log n).
    pub fn reseat(
        &mut self,
        at: u32,
        plain: &SortedSlots<ReadyKey>,
        jobs: &Slab<Job>,
        given: &mut u64,
    ) -> bool {
        let Fair { groups, plain: plain_seat, rounds, turns, own_limits, settings, .. } = self;
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
        let turns = if alone { own_limits } else { turns };
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

    /// Whether a group is in the place where it belongs.
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
        let turns = if alone { &self.own_limits } else { &self.turns };
        match known && stands.is_none_or(|turn| turns.contains(&turn)) {
            true => Ok(()),
            false => Err("a group is not known to its round"),
        }
    }

    /// About how many bytes it takes. O(1) but for the names of its groups.
    pub fn bytes(&self) -> usize {
        self.groups.len() * 480 + self.names.bytes() + self.all.bytes() + self.all.len() * 4
    }
}
