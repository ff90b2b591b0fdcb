//! What a claim of a job takes from limits, as its post says, and what the claim has cost, as its
//! worker says.

use crate::effect::is_name;
use crate::job::TOKENS;
use crate::settings::MOST;
use crate::structures::byte_string::ByteString;

/// The most limits of which a post, or a worker, says the costs.
pub const COSTS_MOST: usize = 16;
/// The most limits that count for a job: those that its queue names, and those that its group does.
pub(crate) const COUNTING_MOST: usize = 32;

/// Limits and what each costs, by name.
pub type Costs<'a> = Vec<(&'a [u8], i64)>;

/// Whether these are costs of a valid size, each limit once, by name.
pub(crate) fn are_costs<'c>(costs: impl IntoIterator<Item = (&'c [u8], i64)>, most: usize) -> bool {
    let (mut last, mut count): (&[u8], usize) = (&[], 0);
    costs.into_iter().all(|(name, cost)| {
        let rises = last < name;
        (last, count) = (name, count + 1);
        rises && is_name(name) && (0..=MOST).contains(&cost) && count <= most
    })
}

/// Costs as a record keeps them, one after the other: a length byte and a name, 4 bytes of the cost.
#[derive(Debug, Clone, Copy, Default)]
pub struct PackedCosts<'a>(&'a [u8]);

/// Packs costs.
pub(crate) fn pack(costs: &[(&[u8], i64)]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(costs.iter().map(|(name, _)| name.len() + 5).sum());
    for (name, cost) in costs {
        packed.push(name.len() as u8);
        packed.extend_from_slice(name);
        packed.extend_from_slice(&u32::try_from(*cost).unwrap_or(u32::MAX).to_le_bytes());
    }
    packed
}

impl<'a> PackedCosts<'a> {
    /// Reads what [`pack`] wrote.
    pub(crate) fn of(packed: &'a [u8]) -> Self {
        PackedCosts(packed)
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.0
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are. O(n).
    pub fn len(&self) -> usize {
        self.count()
    }
}

impl<'a> Iterator for PackedCosts<'a> {
    type Item = (&'a [u8], i64);

    fn next(&mut self) -> Option<Self::Item> {
        let (len, rest) = self.0.split_first()?;
        let (name, rest) = rest.split_at_checked(usize::from(*len))?;
        let (cost, rest) = rest.split_first_chunk()?;
        self.0 = rest;
        Some((name, u32::from_le_bytes(*cost).into()))
    }
}

written! {
    /// What a claim has cost so far, as its worker last said it: part of
    /// [`super::remembered::Remembered`].
    #[derive(Debug, Clone, Default, PartialEq)]
    pub struct Spending {
        /// The token of the claim.
        1 pub token: u64,
        /// The permits that it took of all that is not named.
        2 pub cost: i64,
        /// What it took of single limits, by name.
        3 pub costs: Vec<(ByteString, i64)>,
    }
}

impl Spending {
    /// Whether a board could have come to every number and name in it.
    pub(crate) fn is_valid(&self) -> bool {
        self.token < TOKENS
            && (0..=MOST).contains(&self.cost)
            && are_costs(self.costs.iter().map(|(name, cost)| (&**name, *cost)), COUNTING_MOST)
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        std::mem::size_of::<Self>() + self.costs.iter().map(|(name, _)| name.len() + 32).sum::<usize>()
    }
}
