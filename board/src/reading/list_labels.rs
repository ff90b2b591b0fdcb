//! Listing and counting in the order of posts: walks the smallest set of jobs that the filters name
//! by a label, a parent, or a job that they wait for.

use crate::board::Board;
use crate::places::labels::Sort;
use crate::reading::filters::{Filter, Filters, Page, Start};
use crate::structures::merge::{as_one, directed, Slots};
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
    /// Whether a listing follows the order of posts: when a filter asks for a label or for relatives,
    /// and none for a time of end.
    pub fn by_posting(&self) -> bool {
        let named = |f: &Filter<'_>| f.label().is_some() || matches!(f, Filter::Parent(_) | Filter::After(_));
        self.asked().any(named) && self.ended().is_none()
    }

    /// The labels of one sort that the filters ask for, each once.
    fn labels(&self, sort: Sort) -> Vec<&'a [u8]> {
        self.named(|filter| filter.label().filter(|label| label.0 == sort).map(|label| label.1))
    }

    fn parents(&self) -> Vec<&'a [u8]> {
        self.named(|f| if let Filter::Parent(id) = f { Some(*id) } else { None })
    }

    fn awaited(&self) -> Vec<&'a [u8]> {
        self.named(|f| if let Filter::After(id) = f { Some(*id) } else { None })
    }
}

/// Jobs that have something in common, in the order of their posts.
enum Line<'a> {
    Label(&'a SortedSlots<i64>),
    /// The children of the job in this slot.
    Children(u32),
    /// The jobs that wait for the one in this slot.
    Waiting(u32),
}

/// What the filters of one kind name.
pub(crate) struct Named<'a> {
    lines: Vec<Line<'a>>,
    /// Whether a job may be in several of the lines.
    overlap: bool,
    /// A bound of the number of jobs in the lines.
    pub most: usize,
}

impl Board {
    fn named<'a>(&'a self, lines: Vec<Line<'a>>, overlap: bool) -> Named<'a> {
        let len = |line: &Line<'_>| match line {
            Line::Label(line) => line.len(),
            Line::Children(slot) => self.children(*slot).map_or(0, |children| children.count as usize),
            Line::Waiting(slot) => self.extras(*slot).map_or(0, |extras| extras.awaited as usize),
        };
        let most = lines.iter().map(len).sum();
        Named { overlap: overlap && lines.len() > 1, lines, most }
    }

    fn bearers(&self, filters: &Filters<'_>, sort: Sort) -> Option<Named<'_>> {
        let labels = filters.labels(sort);
        let line = |label: &&[u8]| self.places.labels.of(sort, label).map(Line::Label);
        let lines = labels.iter().filter_map(line).collect();
        (!labels.is_empty()).then(|| self.named(lines, sort == Sort::Tag))
    }

    fn relatives(&self, ids: Vec<&[u8]>, line: fn(u32) -> Line<'static>, overlap: bool) -> Option<Named<'_>> {
        let lines = ids.iter().filter_map(|id| self.find(id)).map(line).collect();
        (!ids.is_empty()).then(|| self.named(lines, overlap))
    }

    /// The smallest set of jobs that the filters name; `None` when they name none. O(f) for f
    /// filters.
    pub(crate) fn fewest_named(&self, filters: &Filters<'_>) -> Option<Named<'_>> {
        let labels = Sort::ALL.iter().filter_map(|sort| self.bearers(filters, *sort));
        let children = self.relatives(filters.parents(), Line::Children, false);
        let waiting = self.relatives(filters.awaited(), Line::Waiting, true);
        labels.chain(children).chain(waiting).min_by_key(|named| named.most)
    }

    /// The jobs of these lines, in the order of their posts, each once.
    pub(crate) fn walk_named<'a>(&'a self, named: &Named<'a>, from: Option<i64>, reverse: bool) -> Slots<'a> {
        let key_of = |slot: u32| self.seq(slot);
        let walk = |line: &Line<'a>| match line {
            Line::Label(line) => directed(line, from, reverse, key_of),
            Line::Children(slot) => {
                let number = self.children(*slot).map_or(0, |children| children.number);
                self.relations.families.walk(number, from, reverse)
            }
            Line::Waiting(slot) => self.relations.waits.walk(*slot, from, reverse),
        };
        let slots = as_one(named.lines.iter().map(walk).collect(), reverse, key_of);
        let mut last = None;
        Box::new(slots.filter(move |slot| last.replace(*slot) != Some(*slot)))
    }

    /// One page of a listing in the order of posts. O(log n + jobs looked at).
    pub(crate) fn list_named(&self, page: &Page<'_>, named: &Named<'_>) -> (Vec<u32>, Option<Start>) {
        let mut found = Vec::new();
        let mut looks = page.filters.most_looks(page.count);
        let from = match page.from {
            Some(Start::Posted(seq)) => Some(seq),
            _ => None,
        };
        let slots = self.walk_named(named, from, page.reverse);
        let next = self.fill(page, slots, &mut looks, &mut found);
        (found, next.map(|slot| Start::Posted(self.seq(slot))))
    }

    /// How many jobs pass filters that name labels of one sort and nothing else, if the lengths of
    /// the lines are enough to know. O(f) for f filters.
    pub(crate) fn count_bearers(&self, filters: &Filters<'_>) -> Option<u64> {
        let (sort, _) = filters.asked().next()?.label()?;
        let alike = filters.asked().all(|f| f.label().is_some_and(|label| label.0 == sort));
        let bearers = self.bearers(filters, sort).filter(|named| alike && !named.overlap)?;
        filters.excluded().next().is_none().then_some(bearers.most as u64)
    }
}
