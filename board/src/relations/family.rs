//! Parents and children, and the progress of a parent.
//!
//! The record of a child keeps its parent ([`Tie`]); a parent keeps sums over its children
//! ([`Children`]), so that a report of one child changes them in O(1); the board keeps the children
//! with a record, in the order of posting. What the sums count:
//!
//! | a child that | counts |
//! |---|---|
//! | has not ended | the highest progress that it or its own children have reported |
//! | is complete | 100 per cent, also when its record has been removed |
//! | failed, was cancelled or trashed | its progress at that time; it continues from there when it is requeued |
//! | got another parent, or was deleted unless it was complete | nothing |
//!
//! The children that ended without success are counted apart from their records, so that a parent that
//! waits for its children ([`crate::relations::children`]) knows of them when these are removed.
//!
//! A parent's progress is the mean of its children by their shares. What a child reports never lets it
//! fall. It falls when an operator sets a progress, and when a child is added, removed or moved: then
//! the parents above show the mean as it is.
//!
//! A parent's record is kept while a child has not ended. The record of an ended child, if it is
//! retained at all, is kept until its parent ends: the children are then released in bounded
//! slices. A child names its parent by slot and number of the family, which a board gives out once:
//! the record of a parent may be removed without a look at its children.
//!
//! The height of a parent is above that of each of its children ([`Children::height`]), so that no
//! job is its own ancestor, and no walk upwards is longer than [`GENERATIONS`].

use crate::item::{need, Item, Loading, SnapshotError};
use crate::job::is_time;
use std::collections::{BTreeMap, VecDeque};

use crate::board::Board;
use crate::effect::ApplyError;
use crate::error::Refusal;
use crate::job::kin::*;
use crate::job::State;
use crate::places::pins::Pins;
use crate::structures::lazy::Part;
use crate::structures::merge::{along, Slots};

written! {
    /// A family whose parent has ended or been removed: the children from an order of posting on
    /// are still to be released.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) struct Parting {
        1 pub number: u64,
        2 pub parent: u32,
        3 pub from: i64,
    }
}

/// How many children a refusal to remove their parent looks at, from each end, for one to name.
const NAMING_LOOKS: usize = 1_000;

/// The families of a board. See the module's comment.
#[derive(Default)]
pub(crate) struct Families {
    /// Slots of children, by number of the family and order of posting.
    children: BTreeMap<(u64, i64), u32>,
    /// Families whose children are still to be released, first ended first.
    pub partings: VecDeque<Parting>,
}

impl Part for Families {
    const BLANK: &'static Self = &Families { children: BTreeMap::new(), partings: VecDeque::new() };
}

impl Families {
    /// About how many bytes it takes.
    pub fn bytes(&self) -> usize {
        self.children.len() * 36 + self.partings.len() * std::mem::size_of::<Parting>()
    }

    /// How many children have a record.
    pub fn len(&self) -> usize {
        self.children.len()
    }

    /// The children of a family, from an order of posting on: order and slot.
    pub fn of(&self, number: u64, from: i64) -> impl Iterator<Item = (i64, u32)> + '_ {
        self.children.range((number, from)..=(number, i64::MAX)).map(|((_, seq), child)| (*seq, *child))
    }

    /// The children of a family, in the order of their posts.
    pub fn walk(&self, number: u64, from: Option<i64>, reverse: bool) -> Slots<'_> {
        along(&self.children, number, from, reverse)
    }

    /// Adds a child from a snapshot; false when it exists already.
    pub fn restore(&mut self, number: u64, seq: i64, child: u32) -> bool {
        self.children.insert((number, seq), child).is_none()
    }

    /// Removes a child whose record is being removed, or that gets another parent.
    pub fn remove(&mut self, number: u64, seq: i64) {
        self.children.remove(&(number, seq));
    }
}

impl Board {
    /// The tie of a job to the parent it was posted with, which may have been removed.
    pub(crate) fn tie(&self, slot: u32) -> Option<&Tie> {
        self.extras(slot)?.family.as_ref()?.parent.as_ref()
    }

    /// The sums of a job that is, or was, a parent.
    pub(crate) fn children(&self, slot: u32) -> Option<&Children> {
        self.extras(slot)?.family.as_ref()?.children.as_ref()
    }

    pub(crate) fn tie_mut(&mut self, slot: u32) -> Result<&mut Tie, ApplyError> {
        let family = self.job_mut(slot)?.extras.as_mut().and_then(|extras| extras.family.as_mut());
        family.and_then(|family| family.parent.as_mut()).ok_or(ApplyError)
    }

    pub(crate) fn children_mut(&mut self, slot: u32) -> Result<&mut Children, ApplyError> {
        let family = self.job_mut(slot)?.extras.as_mut().and_then(|extras| extras.family.as_mut());
        family.and_then(|family| family.children.as_mut()).ok_or(ApplyError)
    }

    /// The slot of a job's parent, if the parent has a record. O(1).
    pub(crate) fn parent_of(&self, slot: u32) -> Option<u32> {
        let tie = self.tie(slot)?;
        self.is_parent(tie.slot, tie.number).then_some(tie.slot)
    }

    fn is_parent(&self, slot: u32, number: u64) -> bool {
        self.children(slot).is_some_and(|children| children.number == number)
    }

    /// The children of a job that have a record, from an order of posting on: order and slot. O(log
    /// n + those taken).
    pub fn children_from(&self, slot: u32, from: i64) -> impl Iterator<Item = (i64, u32)> + '_ {
        let number = self.children(slot).map_or(0, |children| children.number);
        self.relations.families.of(number, from)
    }

    /// Refuses a parent that the job in this slot, known or new, cannot have. O(generations).
    pub(crate) fn check_parent(&self, slot: u32, parent: u32) -> Result<(), Refusal> {
        let state = self.job(parent).map_err(|_| Refusal::NoJob)?.state;
        if state.ended() {
            return Err(Refusal::Ended(state));
        }
        if self.children(parent).is_some_and(|children| children.shares > SHARES_MOST) {
            return Err(Refusal::Limit("shares"));
        }
        let mut least = self.height(slot) + 1;
        let mut above = Some(parent);
        while let Some(ancestor) = above {
            if ancestor == slot {
                return Err(Refusal::Ancestor);
            }
            if self.height(ancestor) >= least {
                break;
            }
            if least > GENERATIONS {
                return Err(Refusal::Limit("generations"));
            }
            least += 1;
            above = self.parent_of(ancestor);
        }
        Ok(())
    }

    /// Refuses `n` more children of a job when the sum of all weights could become too large. O(1).
    pub(crate) fn check_shares(&self, parent: u32, n: usize) -> Result<(), Refusal> {
        let most = SHARES_MOST.saturating_sub((n as u64).saturating_mul(SHARE_MOST as u64));
        match self.children(parent).is_some_and(|children| children.shares > most) {
            true => Err(Refusal::Limit("shares")),
            false => Ok(()),
        }
    }

    fn height(&self, slot: u32) -> u8 {
        self.children(slot).map_or(0, |children| children.height)
    }

    /// How many ancestors a job has. O(generations).
    pub(crate) fn depth(&self, slot: u32) -> usize {
        std::iter::successors(Some(slot), |slot| self.parent_of(*slot)).skip(1).count()
    }

    /// Makes a job the child of another, in place of its former parent. [`Board::check_parent`]
    /// must allow the new one.
    pub(crate) fn make_child(
        &mut self,
        slot: u32,
        parent: u32,
        share: u32,
        now: i64,
    ) -> Result<(), ApplyError> {
        let before = self.tie(slot).copied().filter(|_| self.parent_of(slot) == Some(parent));
        self.leave_parent(slot, now)?;
        let (seq, revision) = (self.job(slot)?.seq.get(), self.revision());
        let mut least = self.height(slot) + 1;
        let mut above = Some(parent);
        self.edit(parent, |job| {
            let family = job.extras_mut().family.get_or_insert_with(Box::default);
            family.children.get_or_insert(Children { number: revision, ..Children::default() });
            Ok(())
        })?;
        while let Some(ancestor) = above.filter(|ancestor| self.height(*ancestor) < least) {
            self.children_mut(ancestor)?.height = least;
            least += 1;
            above = self.parent_of(ancestor);
        }
        let progress = counted(self.extras(slot).and_then(|extras| extras.progress).unwrap_or(0));
        let mean = self.children(slot).and_then(Children::mean).unwrap_or(0);
        let counts = before.map_or(progress.max(mean), |tie| tie.counts);
        let children = self.children_mut(parent)?;
        children.count += 1;
        children.shares += u64::from(share);
        children.done += u64::from(share) * u64::from(counts);
        let number = children.number;
        self.edit(slot, |job| {
            let family = job.extras_mut().family.get_or_insert_with(Box::default);
            family.parent = Some(Tie { slot: parent, number, share, counts, kept: false });
            Ok(())
        })?;
        self.relations.families.children.insert((number, seq), slot);
        self.repin(parent, now, |pins| {
            pins.children += 1;
            Some(())
        })?;
        self.touch(parent)?;
        self.show_mean(parent, true)
    }

    /// Takes a job that is live, or about to be removed, from its parent: it counts nowhere.
    pub(crate) fn leave_parent(&mut self, slot: u32, now: i64) -> Result<(), ApplyError> {
        let Some(tie) = self.tie(slot).copied() else { return Ok(()) };
        let job = self.job(slot)?;
        let (seq, live) = (job.seq.get(), !job.state.ended());
        let unsuccessful = u64::from(is_unsuccessful(job.state));
        let parent = self.parent_of(slot);
        self.relations.families.remove(tie.number, seq);
        self.edit(slot, |job| {
            job.extras_mut().change_family(|family| family.parent = None);
            Ok(())
        })?;
        let Some(parent) = parent else { return Ok(()) };
        let children = self.children_mut(parent)?;
        let (share, counts) = (u64::from(tie.share), u64::from(tie.counts));
        children.count = children.count.checked_sub(1).ok_or(ApplyError)?;
        children.shares = children.shares.checked_sub(share).ok_or(ApplyError)?;
        children.done = children.done.checked_sub(share * counts).ok_or(ApplyError)?;
        children.unsuccessful = children.unsuccessful.checked_sub(unsuccessful).ok_or(ApplyError)?;
        self.touch(parent)?;
        self.show_mean(parent, true)?;
        if live {
            self.repin(parent, now, one_child_less)?;
        }
        self.child_left(parent)
    }

    /// A job that is in no place ends in this state; `kept` when its record is retained.
    pub(crate) fn end_in_family(
        &mut self,
        slot: u32,
        state: State,
        kept: bool,
        now: i64,
    ) -> Result<(), ApplyError> {
        if let Some(parent) = self.parent_of(slot) {
            match state {
                State::Complete => self.count_progress(slot, WHOLE, false)?,
                _ => self.children_mut(parent)?.unsuccessful += 1,
            }
            self.touch(parent)?;
            let lives = !self.job(parent)?.state.ended();
            self.tie_mut(slot)?.kept = kept && lives;
            self.repin(parent, now, one_child_less)?;
            self.child_left(parent)?;
        }
        self.part(slot);
        Ok(())
    }

    /// Queues the children that were kept for a parent to be released.
    pub(crate) fn part(&mut self, slot: u32) {
        let Some(number) = self.children(slot).map(|children| children.number) else { return };
        if self.relations.families.of(number, 0).next().is_some() {
            self.relations.families.partings.push_back(Parting { number, parent: slot, from: 0 });
            self.wake_at(0);
        }
    }

    /// A job becomes live; before it was in this state.
    pub(crate) fn begin_in_family(&mut self, slot: u32, before: State, now: i64) -> Result<(), ApplyError> {
        if self.tie(slot).is_some() && before.ended() {
            match self.parent_of(slot) {
                None => self.leave_parent(slot, now)?,
                Some(parent) => {
                    self.tie_mut(slot)?.kept = false;
                    let children = self.children_mut(parent)?;
                    let less = u64::from(is_unsuccessful(before));
                    children.unsuccessful = children.unsuccessful.checked_sub(less).ok_or(ApplyError)?;
                    self.touch(parent)?;
                    self.repin(parent, now, |pins| {
                        pins.children += 1;
                        Some(())
                    })?;
                }
            }
        }
        self.show_mean(slot, false)
    }

    /// Takes up to `n` steps: releases one child of an ended parent, or finds that all have been
    /// released.
    pub(crate) fn let_children_go(&mut self, n: u32, now: i64) -> Result<(), ApplyError> {
        for _ in 0..n {
            let Some(Parting { number, parent, from }) = self.relations.families.partings.front().copied()
            else {
                return Ok(());
            };
            let lives = self.is_parent(parent, number) && !self.job(parent)?.state.ended();
            let next = if lives { None } else { self.relations.families.of(number, from).next() };
            let Some((seq, child)) = next else {
                self.relations.families.partings.pop_front();
                continue;
            };
            if let Some(front) = self.relations.families.partings.front_mut() {
                front.from = seq.saturating_add(1);
            }
            if self.tie(child).is_some_and(|tie| tie.kept) {
                self.repin(child, now, |pins| {
                    pins.parent = false;
                    Some(())
                })?;
            }
        }
        Ok(())
    }

    /// How many children of each parent are among these jobs and have not ended. O(n log n).
    pub fn live_children_among(&self, chosen: &[u32]) -> BTreeMap<u32, u32> {
        let mut counts = BTreeMap::new();
        for slot in chosen.iter().filter(|slot| self.has_not_ended(**slot)) {
            if let Some(parent) = self.parent_of(*slot) {
                *counts.entry(parent).or_default() += 1;
            }
        }
        counts
    }

    /// Refuses to remove the record of a parent while a child outside of `chosen` (sorted) has not
    /// ended; `among` is of [`Board::live_children_among`]. The refusal names such a child, or the
    /// parent when none is among the first and the last [`NAMING_LOOKS`] children. O(log n).
    pub fn check_childless(
        &self,
        slot: u32,
        chosen: &[u32],
        among: &BTreeMap<u32, u32>,
    ) -> Result<(), Refusal> {
        let Some(Children { number, live, .. }) = self.children(slot).copied() else { return Ok(()) };
        if live <= among.get(&slot).copied().unwrap_or(0) {
            return Ok(());
        }
        let of = |reverse| self.relations.families.walk(number, None, reverse).take(NAMING_LOOKS);
        let outside = |child: &u32| self.has_not_ended(*child) && chosen.binary_search(child).is_err();
        let other = of(false).chain(of(true)).find(outside).unwrap_or(slot);
        let other = self.id(other).ok_or(Refusal::NoJob)?;
        Err(Refusal::Depended(other.to_vec()[..].into()))
    }

    fn has_not_ended(&self, slot: u32) -> bool {
        self.store.jobs.get(slot).is_some_and(|job| !job.state.ended())
    }

    /// Checks that the families follow from the records. O(n log n).
    pub(crate) fn check_families(&self) -> Result<(), String> {
        let mut sums: BTreeMap<u32, Children> = BTreeMap::new();
        let mut ties = 0;
        let mut numbers = Vec::new();
        for (slot, job) in self.store.jobs.iter() {
            let fail = |what: &str| Err(format!("slot {slot}, {}: {what}", job.state.name()));
            let Some(family) = job.extras.as_ref().and_then(|extras| extras.family.as_deref()) else {
                continue;
            };
            if let Some(children) = &family.children {
                numbers.push(children.number);
            }
            let Some(tie) = &family.parent else { continue };
            ties += 1;
            if self.relations.families.of(tie.number, job.seq.get()).next() != Some((job.seq.get(), slot)) {
                return fail("its family does not know it");
            }
            if tie.number > self.revision() || tie.kept && !job.state.ended() {
                return fail("a parent that cannot be");
            }
            let Some(parent) = self.parent_of(slot) else { continue };
            if self.height(parent) <= self.height(slot) {
                return fail("it stands as high as its parent");
            }
            let sum = sums.entry(parent).or_default();
            sum.count += 1;
            sum.live += u32::from(!job.state.ended());
            sum.unsuccessful += u64::from(is_unsuccessful(job.state));
            sum.shares += u64::from(tie.share);
            sum.done += u64::from(tie.share) * u64::from(tie.counts);
        }
        numbers.sort_unstable();
        if numbers.windows(2).any(|pair| matches!(pair, [a, b] if a == b)) {
            return Err("two families of one number".into());
        }
        if numbers.last().is_some_and(|number| *number > self.revision())
            || ties != self.relations.families.len()
        {
            return Err("a family that cannot be".into());
        }
        for (slot, job) in self.store.jobs.iter() {
            let Some(children) = self.children(slot) else { continue };
            let here = sums.get(&slot).copied().unwrap_or_default();
            let gone = |all: u64, here: u64| all.checked_sub(here);
            let fits = gone(children.shares, here.shares).zip(gone(children.done, here.done));
            let fits = fits.is_some_and(|(shares, done)| done <= shares.saturating_mul(WHOLE.into()));
            // Of those without a record, no more ended without success than there are.
            let unsuccessful = gone(children.unsuccessful, here.unsuccessful);
            let fits =
                fits && unsuccessful.zip(gone(children.count, here.count)).is_some_and(|(n, all)| n <= all);
            if !fits || children.live != here.live {
                return Err(format!("slot {slot}, {}: its children do not add up", job.state.name()));
            }
        }
        Ok(())
    }
}

fn is_unsuccessful(state: State) -> bool {
    state.ended() && state != State::Complete
}

fn one_child_less(pins: &mut Pins) -> Option<()> {
    pins.children = pins.children.checked_sub(1)?;
    Some(())
}

impl Board {
    /// Derives the children of each family from the ties of the jobs.
    pub(crate) fn load_families(&mut self) -> Result<(), SnapshotError> {
        let (jobs, families) = (&self.store.jobs, &mut self.relations.families);
        for (slot, job) in jobs.iter() {
            if let Some(tie) = job.extras.as_ref().and_then(|extras| extras.family.as_ref()?.parent) {
                need(families.restore(tie.number, job.seq.get(), slot), "an order twice")?;
            }
        }
        Ok(())
    }
}

impl<'a> Item<'a> for Parting {
    fn each(board: &'a Board, put: impl FnMut(&Self)) {
        board.relations.families.partings.iter().for_each(put);
    }

    fn load(self, board: &mut Board, _loading: &mut Loading) -> Result<(), SnapshotError> {
        need(is_time(self.from), "parting")?;
        board.relations.families.partings.push_back(self);
        Ok(())
    }
}
