//! Listing and counting by labels: walks the smallest set of jobs that the filters name, in the
//! order of posts.

use crate::board::Board;
use crate::places::labels::Sort;
use crate::reading::filters::{Filter, Filters, Page, Start};
use crate::reading::list::LOOK;
use crate::structures::merge::{merged, Slots};
use crate::structures::sorted::SortedSlots;

impl<'a> Filter<'a> {
    /// The label that the filter asks for, if it asks for one.
    fn label(&self) -> Option<(Sort, &'a [u8])> {
        match self {
            Filter::Name(name) => Some((Sort::Name, name)),
            Filter::Tag(tag) => Some((Sort::Tag, tag)),
            Filter::Kind(kind) => Some((Sort::Kind, kind)),
            Filter::Tracked => Some((Sort::Tracked, &[])),
            Filter::User(user) => Some((Sort::User, user)),
            _ => None,
        }
    }
}

impl<'a> Filters<'a> {
    /// Whether a listing follows the order of posts, which it does when a filter asks for a label.
    pub fn by_posting(&self) -> bool {
        self.any.iter().any(|filter| filter.label().is_some())
    }

    /// The labels of one sort that the filters ask for, each once.
    fn labels(&self, sort: Sort) -> Vec<&'a [u8]> {
        self.named(|filter| filter.label().filter(|label| label.0 == sort).map(|label| label.1))
    }
}

/// The lines of several labels of one sort.
pub(crate) struct Bearers<'a> {
    lines: Vec<&'a SortedSlots<i64>>,
    /// Whether a job may be in several of the lines.
    overlap: bool,
}

impl Bearers<'_> {
    /// A bound of the number of jobs in the lines.
    pub fn most(&self) -> usize {
        self.lines.iter().map(|line| line.len()).sum()
    }
}

impl Board {
    fn bearers(&self, filters: &Filters<'_>, sort: Sort) -> Option<Bearers<'_>> {
        let labels = filters.labels(sort);
        let lines: Vec<&SortedSlots<i64>> =
            labels.iter().filter_map(|bytes| self.places.labels.of(sort, bytes)).collect();
        let overlap = sort == Sort::Tag && lines.len() > 1;
        (!labels.is_empty()).then_some(Bearers { lines, overlap })
    }

    /// The smallest set of jobs that the filters name by labels; `None` when they name no label.
    /// O(f) for f filters.
    pub(crate) fn fewest_bearers(&self, filters: &Filters<'_>) -> Option<Bearers<'_>> {
        Sort::ALL.iter().filter_map(|sort| self.bearers(filters, *sort)).min_by_key(Bearers::most)
    }

    /// The jobs with at least one of the labels, in the order of their posts, each once.
    pub(crate) fn walk_bearers<'a>(
        &'a self,
        bearers: &Bearers<'a>,
        from: Option<i64>,
        reverse: bool,
    ) -> Slots<'a> {
        let key_of = |slot: u32| self.seq(slot);
        let slots = merged(bearers.lines.iter().copied(), from, reverse, key_of);
        let mut last = None;
        Box::new(slots.filter(move |slot| last.replace(*slot) != Some(*slot)))
    }

    /// One page of a listing by labels. O(log n + jobs looked at).
    pub(crate) fn list_bearers(&self, page: &Page<'_>, bearers: &Bearers<'_>) -> (Vec<u32>, Option<Start>) {
        let mut found = Vec::new();
        let mut looks = page.count.saturating_mul(10).max(LOOK);
        let from = match page.from {
            Some(Start::Posted(seq)) => Some(seq),
            _ => None,
        };
        for slot in self.walk_bearers(bearers, from, page.reverse) {
            if found.len() >= page.count || looks == 0 {
                return (found, Some(Start::Posted(self.seq(slot))));
            }
            looks -= 1;
            if self.record_of(slot).is_some_and(|record| page.filters.holds(&record)) {
                found.push(slot);
            }
        }
        (found, None)
    }

    /// How many jobs pass filters that name labels of one sort and nothing else, if the lengths of
    /// the lines are enough to know. O(f) for f filters.
    pub(crate) fn count_bearers(&self, filters: &Filters<'_>) -> Option<u64> {
        let (sort, _) = filters.any.first()?.label()?;
        let alike = filters.any.iter().all(|f| f.label().is_some_and(|label| label.0 == sort));
        let bearers = self.bearers(filters, sort).filter(|b| alike && !b.overlap)?;
        filters.none.is_empty().then_some(bearers.most() as u64)
    }
}
