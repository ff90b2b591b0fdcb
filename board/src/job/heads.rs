//! What few jobs have beside their id and payload, in the same allocation and before both: a job
//! without one of these pays no byte for it.

use super::costs::PackedCosts;
use super::id::Id;

/// It belongs to a group: 4 bytes of the group's number in its queue.
pub(super) const GROUPED: u8 = 2;
/// It has an ageing: 4 bytes, ms.
pub(super) const AGES: u8 = 4;
/// It has a cost of its own: 4 bytes.
pub(super) const PRICED: u8 = 8;
/// It has costs for single limits: 2 bytes of length, then these.
pub(super) const LISTED: u8 = 16;
/// All of them.
pub(super) const HEADS: u8 = GROUPED | AGES | PRICED | LISTED;

/// See the module's comment.
#[derive(Debug, Clone, Copy, Default)]
pub struct Heads<'a> {
    /// The number of its group in its queue.
    pub group: Option<u32>,
    /// After how many ms of waiting its priority rises by one, again and again; 0: never.
    pub ageing: i64,
    /// The permits that a claim of it takes.
    pub cost: Option<i64>,
    /// The permits that a claim of it takes from single limits.
    pub costs: PackedCosts<'a>,
}

impl<'a> Heads<'a> {
    /// Reads what these flags say is there.
    pub(super) fn read(flags: u8, mut from: &'a [u8]) -> Self {
        let mut heads = Heads::default();
        let mut number = |flag| {
            let (number, rest) = from.split_first_chunk().filter(|_| flags & flag != 0)?;
            from = rest;
            Some(u32::from_le_bytes(*number))
        };
        heads.group = number(GROUPED);
        heads.ageing = number(AGES).map_or(0, i64::from);
        heads.cost = number(PRICED).map(i64::from);
        if let Some((len, rest)) = from.split_first_chunk().filter(|_| flags & LISTED != 0) {
            heads.costs = PackedCosts::of(rest.get(..u16::from_le_bytes(*len).into()).unwrap_or_default());
        }
        heads
    }

    /// Which of them there are.
    pub(super) fn flags(&self) -> u8 {
        let some = |has: bool, flag| if has { flag } else { 0 };
        some(self.group.is_some(), GROUPED)
            | some(self.ageing > 0, AGES)
            | some(self.cost.is_some(), PRICED)
            | some(!self.costs.bytes().is_empty(), LISTED)
    }

    /// The bytes that they take.
    pub(crate) fn len(&self) -> usize {
        let list = self.costs.bytes().len();
        let numbers = (self.flags() & (GROUPED | AGES | PRICED)).count_ones() as usize;
        4 * numbers + if list > 0 { 2 + list } else { 0 }
    }

    fn write(&self, to: &mut Vec<u8>) {
        let mut number = |n: Option<i64>| {
            if let Some(n) = n {
                to.extend_from_slice(&u32::try_from(n).unwrap_or(u32::MAX).to_le_bytes());
            }
        };
        number(self.group.map(i64::from));
        number(Some(self.ageing).filter(|ms| *ms > 0));
        number(self.cost);
        let list = self.costs.bytes();
        if !list.is_empty() {
            to.extend_from_slice(&(list.len() as u16).to_le_bytes());
            to.extend_from_slice(list);
        }
    }
}

/// The allocation of a job.
pub(super) fn blob(heads: &Heads<'_>, id: Option<Id<&[u8]>>, payload: &[u8]) -> Box<[u8]> {
    let (id_bytes, more) = (id.as_ref().map_or(&[][..], Id::bytes), heads.flags() != 0);
    let len = if more { heads.len() } else { 0 } + usize::from(matches!(id, Some(Id::Named(_))));
    let mut blob = Vec::with_capacity(len + id_bytes.len() + payload.len());
    if more {
        heads.write(&mut blob);
    }
    if let Some(Id::Named(name)) = id {
        blob.push(name.len().min(255) as u8);
    }
    blob.extend_from_slice(id_bytes);
    blob.extend_from_slice(payload);
    blob.into_boxed_slice()
}
