//! Walks along lines of slots, several of them as one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::structures::sorted::SortedSlots;

/// A walk along slots.
pub(crate) type Slots<'a> = Box<dyn Iterator<Item = u32> + 'a>;

pub(crate) fn directed<'a, K: Ord + Copy + 'static>(
    line: &'a SortedSlots<K>,
    from: Option<K>,
    reverse: bool,
    key_of: impl Fn(u32) -> K + 'a,
) -> Slots<'a> {
    match reverse {
        true => Box::new(line.iter_back_from(from, key_of)),
        false => Box::new(line.iter_from(from, key_of)),
    }
}

/// Several lines of slots, walked as one.
pub(crate) fn merged<'a, K: Ord + Copy + 'static>(
    lines: impl IntoIterator<Item = &'a SortedSlots<K>>,
    from: Option<K>,
    reverse: bool,
    key_of: impl Fn(u32) -> K + Copy + 'a,
) -> Slots<'a> {
    let sources = lines.into_iter().map(|line| directed(line, from, reverse, key_of)).collect();
    as_one(sources, reverse, key_of)
}

/// Several walks in the same direction, as one.
pub(crate) fn as_one<'a, K: Ord + Copy + 'static>(
    sources: Vec<Slots<'a>>,
    reverse: bool,
    key_of: impl Fn(u32) -> K + 'a,
) -> Slots<'a> {
    match reverse {
        true => Box::new(Merge::new(sources, move |s| Reverse(key_of(s)))),
        false => Box::new(Merge::new(sources, key_of)),
    }
}

/// The slots of one owner, in the order of posting.
pub(crate) fn along<O: Ord + Copy>(
    slots: &BTreeMap<(O, i64), u32>,
    owner: O,
    from: Option<i64>,
    reverse: bool,
) -> Slots<'_> {
    match reverse {
        true => {
            let range = slots.range((owner, 0)..=(owner, from.unwrap_or(i64::MAX)));
            Box::new(range.rev().map(|(_, slot)| *slot))
        }
        false => {
            let range = slots.range((owner, from.unwrap_or(0))..=(owner, i64::MAX));
            Box::new(range.map(|(_, slot)| *slot))
        }
    }
}

/// Sorts slots into the order of a line.
pub(crate) fn in_order<'a, K: Ord + Copy + 'static>(
    mut slots: Vec<u32>,
    from: Option<K>,
    reverse: bool,
    key_of: impl Fn(u32) -> K + 'a,
) -> Slots<'a> {
    slots.sort_unstable_by_key(|s| key_of(*s));
    match reverse {
        true => {
            slots.reverse();
            Box::new(slots.into_iter().skip_while(move |s| from.is_some_and(|from| key_of(*s) > from)))
        }
        false => Box::new(slots.into_iter().skip_while(move |s| from.is_some_and(|from| key_of(*s) < from))),
    }
}

/// Several sorted sequences, walked as one.
pub(crate) struct Merge<'a, K, F> {
    sources: Vec<Slots<'a>>,
    heads: BinaryHeap<Reverse<(K, u32, usize)>>,
    key_of: F,
}

impl<'a, K: Ord, F: Fn(u32) -> K> Merge<'a, K, F> {
    pub(crate) fn new(mut sources: Vec<Slots<'a>>, key_of: F) -> Self {
        let firsts = sources.iter_mut().enumerate().filter_map(|(i, s)| Some((s.next()?, i)));
        let heads = firsts.map(|(slot, i)| Reverse((key_of(slot), slot, i))).collect();
        Merge { sources, heads, key_of }
    }
}

impl<K: Ord, F: Fn(u32) -> K> Iterator for Merge<'_, K, F> {
    type Item = u32;
    fn next(&mut self) -> Option<u32> {
        let Reverse((_, slot, source)) = self.heads.pop()?;
        if let Some(next) = self.sources.get_mut(source).and_then(Iterator::next) {
            self.heads.push(Reverse(((self.key_of)(next), next, source)));
        }
        Some(slot)
    }
}
