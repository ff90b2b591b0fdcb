//! Jobs by label: listings by label need no walk over the board.
//!
//! A label is a sort and some bytes. Each label has a [`SortedSlots`] of the jobs that bear it, in
//! the order of their posts, at four bytes a job. The length of that line is the number of its
//! jobs, so no counter can drift.
//!
//! | sort | kept in | bytes |
//! |---|---|---|
//! | name | the job's [`Class`](crate::job::Class), which knows the label's number | the name |
//! | tag | [`Marks`], by number | the tag |
//! | kind | `Extras::kind` | the kind of the last failure, whatever the state |
//! | tracked | [`Marks`] | none |
//! | user | `Extras::user` | on whose behalf it was posted |
//!
//! A job is indexed under all its labels ([`Board::index_labels`]), or under none
//! ([`Board::unindex_labels`]) while one of them or its place in the order of posts changes. A job
//! without labels costs nothing here, and a job with only a name needs no look-up.

use crate::item::{damaged, SnapshotError};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use crate::board::Board;
use crate::effect::{is_name, ApplyError};
use crate::job::Job;
use crate::structures::byte_string::ByteString;
use crate::structures::interner::Interner;
use crate::structures::lazy::Part;
use crate::structures::slab::Slab;
use crate::structures::sorted::SortedSlots;

/// The most tags that a job has.
pub const TAGS_MOST: usize = 64;

/// About how many bytes a label takes beside its own bytes and its jobs.
const LABEL: usize = 160;

/// The sorts of labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sort {
    Name = 0,
    Tag = 1,
    Kind = 2,
    Tracked = 3,
    User = 4,
}

impl Sort {
    pub const ALL: [Sort; 5] = [Sort::Name, Sort::Tag, Sort::Kind, Sort::Tracked, Sort::User];
}

/// What users have marked a job with.
#[derive(Default)]
struct Marks {
    /// Numbers of its tags, in the order in which users gave them.
    tags: Box<[u32]>,
    /// Whether it is tracked.
    tracked: bool,
}

/// The labels of one sort, by their bytes. Whoever keeps a number holds a reference to the label;
/// so does each job in its line.
type Lines = Interner<Arc<[u8]>, SortedSlots<i64>>;

#[derive(Default)]
struct Index {
    sorts: [Option<Box<Lines>>; Sort::ALL.len()],
    /// The tags in use: those with most jobs first, then by their bytes.
    top: BTreeSet<(Reverse<usize>, Arc<[u8]>)>,
    /// How many entries all lines have.
    entries: usize,
    /// About how many bytes the labels in use take.
    heap: usize,
}

/// All labels of a board. See the module's comment.
#[derive(Default)]
pub(crate) struct Labels {
    index: Index,
    marks: Slab<Marks>,
    /// How many tags all jobs have together.
    tags: usize,
}

fn seq_of(jobs: &Slab<Job>, slot: u32) -> i64 {
    jobs.get(slot).map_or(0, |job| job.seq.get())
}

impl Index {
    fn lines(&self, sort: Sort) -> Option<&Lines> {
        self.sorts.get(sort as usize)?.as_deref()
    }

    fn lines_mut(&mut self, sort: Sort) -> Option<&mut Lines> {
        self.sorts.get_mut(sort as usize)?.as_deref_mut()
    }

    /// The number of a label, which is added if it is new; holds a reference to it.
    fn hold(&mut self, sort: Sort, bytes: &[u8]) -> Option<u32> {
        let lines = self.sorts.get_mut(sort as usize)?.get_or_insert_default();
        let number = lines.find(bytes).unwrap_or_else(|| lines.add(bytes.into()).0);
        lines.hold(number);
        Some(number)
    }

    fn release(&mut self, sort: Sort, number: u32) {
        if let Some(lines) = self.lines_mut(sort) {
            lines.release(number);
        }
    }

    fn insert(&mut self, sort: Sort, number: u32, jobs: &Slab<Job>, slot: u32) -> Result<(), ApplyError> {
        let lines = self.lines_mut(sort).ok_or(ApplyError)?;
        let line = lines.get_mut(number).ok_or(ApplyError)?;
        line.insert(seq_of(jobs, slot), slot, |other| seq_of(jobs, other));
        let borne = line.len();
        lines.hold(number);
        self.entries += 1;
        self.weigh(sort, number, borne - 1, borne)
    }

    fn remove(&mut self, sort: Sort, number: u32, jobs: &Slab<Job>, slot: u32) -> Result<(), ApplyError> {
        let line = self.lines_mut(sort).and_then(|lines| lines.get_mut(number)).ok_or(ApplyError)?;
        if !line.remove(seq_of(jobs, slot), slot) {
            return Err(ApplyError);
        }
        let borne = line.len();
        self.entries -= 1;
        self.weigh(sort, number, borne + 1, borne)?;
        self.release(sort, number);
        Ok(())
    }

    /// Accounts for a change of a label's jobs from `before` to `now`.
    fn weigh(&mut self, sort: Sort, number: u32, before: usize, now: usize) -> Result<(), ApplyError> {
        if sort != Sort::Tag && before > 0 && now > 0 {
            return Ok(());
        }
        let bytes = self.lines(sort).and_then(|lines| lines.key(number)).ok_or(ApplyError)?;
        let heap = LABEL + bytes.len();
        let tag = (sort == Sort::Tag).then(|| bytes.clone());
        match (before, now) {
            (0, _) => self.heap += heap,
            (_, 0) => self.heap -= heap,
            _ => {}
        }
        if let Some(tag) = tag {
            self.top.remove(&(Reverse(before), tag.clone()));
            if now > 0 {
                self.top.insert((Reverse(now), tag));
            }
        }
        Ok(())
    }

    fn insert_text(
        &mut self,
        sort: Sort,
        bytes: &[u8],
        jobs: &Slab<Job>,
        slot: u32,
    ) -> Result<(), ApplyError> {
        let number = self.hold(sort, bytes).ok_or(ApplyError)?;
        let done = self.insert(sort, number, jobs, slot);
        self.release(sort, number);
        done
    }

    fn remove_text(
        &mut self,
        sort: Sort,
        bytes: &[u8],
        jobs: &Slab<Job>,
        slot: u32,
    ) -> Result<(), ApplyError> {
        let number = self.lines(sort).and_then(|lines| lines.find(bytes)).ok_or(ApplyError)?;
        self.remove(sort, number, jobs, slot)
    }
}

/// The labels of a job whose numbers no record keeps.
fn texts<'a>(job: &'a Job, marks: Option<&Marks>) -> impl Iterator<Item = (Sort, &'a [u8])> {
    let kind =
        job.extras.as_ref().and_then(|extras| extras.reports.kind.as_deref()).map(|kind| (Sort::Kind, kind));
    let tracked = marks.filter(|marks| marks.tracked).map(|_| (Sort::Tracked, &[][..]));
    let user = job.extras.as_ref().and_then(|extras| extras.user.as_deref()).map(|user| (Sort::User, user));
    kind.into_iter().chain(tracked).chain(user)
}

impl Part for Labels {
    const BLANK: &'static Self = &Labels {
        index: Index { sorts: [const { None }; Sort::ALL.len()], top: BTreeSet::new(), entries: 0, heap: 0 },
        marks: Slab::new(),
        tags: 0,
    };
}

impl Labels {
    /// The number of the label of a job's name, which is not empty; holds a reference to it.
    pub fn hold_name(&mut self, name: &[u8]) -> Option<u32> {
        self.index.hold(Sort::Name, name)
    }

    pub fn release_name(&mut self, name: &[u8]) {
        if let Some(number) = self.index.lines(Sort::Name).and_then(|lines| lines.find(name)) {
            self.index.release(Sort::Name, number);
        }
    }

    /// The jobs with this label, in the order of their posts.
    pub fn of(&self, sort: Sort, bytes: &[u8]) -> Option<&SortedSlots<i64>> {
        let lines = self.index.lines(sort)?;
        lines.get(lines.find(bytes)?)
    }

    /// The tags of a job, in the order in which users gave them.
    pub fn tags(&self, slot: u32) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        let numbers = self.marks.get(slot).map_or(&[][..], |marks| &marks.tags);
        let tag = |n: &u32| self.index.lines(Sort::Tag)?.key(*n);
        numbers.iter().map(move |n| tag(n).map_or(&[][..], |tag| tag))
    }

    /// Bytes of a job's tags.
    pub fn tag_bytes(&self, slot: u32) -> usize {
        self.tags(slot).map(<[u8]>::len).sum()
    }

    pub fn tracked(&self, slot: u32) -> bool {
        self.marks.get(slot).is_some_and(|marks| marks.tracked)
    }

    /// About how many bytes the labels take. O(1).
    pub fn bytes(&self) -> usize {
        self.index.heap
            + self.index.entries * 5
            + self.index.top.len() * 40
            + self.marks.bytes()
            + self.tags * 4
    }

    /// Replaces the marks of a job that is not indexed.
    fn mark<'t>(
        &mut self,
        slot: u32,
        tags: impl Iterator<Item = &'t [u8]>,
        tracked: bool,
    ) -> Result<(), ApplyError> {
        let numbers = tags.map(|tag| self.index.hold(Sort::Tag, tag).ok_or(ApplyError));
        let tags = numbers.collect::<Result<Box<[u32]>, ApplyError>>()?;
        self.unmark(slot);
        self.tags += tags.len();
        let bare = tags.is_empty() && !tracked;
        match bare || self.marks.insert_at(slot, Marks { tags, tracked }) {
            true => Ok(()),
            false => Err(ApplyError),
        }
    }

    fn unmark(&mut self, slot: u32) {
        if let Some(marks) = self.marks.remove(slot) {
            self.tags -= marks.tags.len();
            marks.tags.iter().for_each(|tag| self.index.release(Sort::Tag, *tag));
        }
    }
}

impl Board {
    /// Whether a job has any label. O(1).
    pub(crate) fn bears_labels(&self, slot: u32) -> bool {
        let Some(job) = self.store.jobs.get(slot) else { return false };
        let marks = self.places.labels.marks.get(slot);
        let named = self.store.classes.get(job.class).is_some_and(Option::is_some);
        named || marks.is_some() || texts(job, marks).next().is_some()
    }

    /// Indexes a job under its labels. O(1) without labels.
    pub(crate) fn index_labels(&mut self, slot: u32) -> Result<(), ApplyError> {
        let jobs = &self.store.jobs;
        let job = jobs.get(slot).ok_or(ApplyError)?;
        let name = self.store.classes.get(job.class).and_then(Option::as_ref);
        if name.is_none() && job.extras.is_none() && self.places.labels.there().is_none() {
            return Ok(());
        }
        let Labels { index, marks, .. } = &mut *self.places.labels;
        if let Some(name) = name {
            index.insert(Sort::Name, *name, jobs, slot)?;
        }
        let marks = marks.get(slot);
        for tag in marks.map_or(&[][..], |marks| &marks.tags) {
            index.insert(Sort::Tag, *tag, jobs, slot)?;
        }
        match marks.is_none() && job.extras.is_none() {
            true => Ok(()),
            false => texts(job, marks).try_for_each(|(sort, text)| index.insert_text(sort, text, jobs, slot)),
        }
    }

    /// Removes a job from the lines of its labels. O(1) without labels.
    pub(crate) fn unindex_labels(&mut self, slot: u32) -> Result<(), ApplyError> {
        let jobs = &self.store.jobs;
        let job = jobs.get(slot).ok_or(ApplyError)?;
        let name = self.store.classes.get(job.class).and_then(Option::as_ref);
        if name.is_none() && job.extras.is_none() && self.places.labels.there().is_none() {
            return Ok(());
        }
        let Labels { index, marks, .. } = &mut *self.places.labels;
        if let Some(name) = name {
            index.remove(Sort::Name, *name, jobs, slot)?;
        }
        let marks = marks.get(slot);
        for tag in marks.map_or(&[][..], |marks| &marks.tags) {
            index.remove(Sort::Tag, *tag, jobs, slot)?;
        }
        match marks.is_none() && job.extras.is_none() {
            true => Ok(()),
            false => texts(job, marks).try_for_each(|(sort, text)| index.remove_text(sort, text, jobs, slot)),
        }
    }

    /// Removes a job whose record is being removed from the lines of its labels, with its marks.
    pub(crate) fn unindex_for_good(&mut self, slot: u32) -> Result<(), ApplyError> {
        self.unindex_labels(slot)?;
        if let Some(labels) = self.places.labels.there() {
            labels.unmark(slot);
        }
        Ok(())
    }

    /// Replaces the marks of a job that is not indexed.
    pub(crate) fn mark<'t>(
        &mut self,
        slot: u32,
        tags: impl Iterator<Item = &'t [u8]>,
        tracked: bool,
    ) -> Result<(), ApplyError> {
        self.places.labels.mark(slot, tags, tracked)
    }

    /// Sets the kind of a job's last failure.
    pub(crate) fn set_kind(&mut self, slot: u32, kind: &[u8]) -> Result<(), ApplyError> {
        let old = self.extras(slot).and_then(|extras| extras.reports.kind.clone());
        if old.as_deref() == Some(kind) {
            return Ok(());
        }
        if let Some(old) = old {
            self.places.labels.index.remove_text(Sort::Kind, &old, &self.store.jobs, slot)?;
        }
        self.edit(slot, |job| {
            job.extras_mut().reports.kind = Some(ByteString::from(kind));
            Ok(())
        })?;
        self.places.labels.index.insert_text(Sort::Kind, kind, &self.store.jobs, slot)
    }

    /// Tags with the number of their jobs, most first, equal ones by their bytes, starting behind
    /// `after`. O(log T) to begin, for T tags.
    pub fn top_tags<'a>(
        &'a self,
        behind: Option<(usize, &[u8])>,
    ) -> impl Iterator<Item = (&'a [u8], usize)> + 'a {
        let from = behind.map(|(n, tag)| (Reverse(n), Arc::from(tag)));
        let range = (from.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded);
        self.places.labels.index.top.range(range).map(|(Reverse(n), tag)| (&**tag, *n))
    }

    /// Checks that labels and jobs agree; returns the first fault. O(n log n).
    pub(crate) fn check_labels(&self) -> Result<(), String> {
        let index = &self.places.labels.index;
        let mut want: Vec<(Sort, u32, i64, u32)> = Vec::new();
        let mut tags = 0;
        for (slot, job) in self.store.jobs.iter() {
            let marks = self.places.labels.marks.get(slot);
            let numbers = marks.map_or(&[][..], |marks| &marks.tags);
            tags += numbers.len();
            let name = self.store.classes.get(job.class).copied().flatten().map(|n| (Sort::Name, n));
            let known = texts(job, marks).map(|(sort, bytes)| {
                let number = index.lines(sort).and_then(|lines| lines.find(bytes));
                (sort, number.unwrap_or(u32::MAX))
            });
            let all = name.into_iter().chain(known).chain(numbers.iter().map(|n| (Sort::Tag, *n)));
            want.extend(all.map(|(sort, number)| (sort, number, job.seq.get(), slot)));
        }
        want.sort_unstable();
        let mut have = Vec::with_capacity(want.len());
        let (mut top, mut heap) = (BTreeSet::new(), 0);
        for sort in Sort::ALL {
            for (number, bytes, line) in index.lines(sort).into_iter().flat_map(Interner::iter) {
                let slots = line.iter_from(None, |slot| seq_of(&self.store.jobs, slot));
                have.extend(slots.map(|slot| (sort, number, seq_of(&self.store.jobs, slot), slot)));
                if sort == Sort::Tag {
                    top.insert((Reverse(line.len()), bytes.clone()));
                }
                heap += if line.is_empty() { 0 } else { LABEL + bytes.len() };
                if sort != Sort::Name && line.is_empty() {
                    return Err("a label is held that no job bears".into());
                }
            }
        }
        // Lines are sorted; the numbers of their labels need not be.
        if !have.is_sorted_by_key(|(sort, number, seq, _)| (*sort, *number, *seq)) {
            return Err("a line of a label is out of order".into());
        }
        for (_, class, label) in self.store.classes.iter() {
            let known = label.and_then(|n| index.lines(Sort::Name)?.key(n));
            if known.map_or(&[][..], |name| name) != &*class.name {
                return Err("a class does not know the label of its name".into());
            }
        }
        let marked = self.places.labels.marks.iter().all(|(slot, marks)| {
            self.store.jobs.get(slot).is_some() && (marks.tracked || !marks.tags.is_empty())
        });
        let sums = tags == self.places.labels.tags && want.len() == index.entries && heap == index.heap;
        match want == have && top == index.top && marked && sums {
            true => Ok(()),
            false => Err("lines of labels do not hold the jobs that bear them".into()),
        }
    }
}

/// Whether a job may have these tags: not too many, and each once.
pub(crate) fn are_tags<'t>(mut tags: impl ExactSizeIterator<Item = &'t [u8]>) -> bool {
    let mut seen = BTreeSet::new();
    tags.len() <= TAGS_MOST && tags.all(|tag| is_name(tag) && seen.insert(tag))
}

impl Board {
    /// Indexes all jobs under their labels, in the order of their posts.
    pub(crate) fn index_all_labels(&mut self) -> Result<(), SnapshotError> {
        let labelled = self.store.jobs.iter().filter(|(slot, _)| self.bears_labels(*slot));
        let mut order: Vec<(i64, u32)> = labelled.map(|(slot, job)| (job.seq.get(), slot)).collect();
        order.sort_unstable();
        order.into_iter().try_for_each(|(_, slot)| self.index_labels(slot).or(damaged("label")))
    }
}
