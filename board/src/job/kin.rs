//! What a record keeps of its job's parent and children.

use super::awaited::OnFailure;
use super::is_time;

/// The most generations of ancestors above a job, and of children below it.
pub const GENERATIONS: u8 = 32;
/// The highest weight of a child.
pub const SHARE_MOST: i64 = 1_000_000;
/// The most that all children of a parent weigh together: their sums fit into 64 bits.
pub(crate) const SHARES_MOST: u64 = 1_000_000_000_000;
/// The progress of children is counted more finely than it is shown, so that the rounding of each
/// generation stays invisible: this many parts to a hundredth of a per cent.
const PARTS: u32 = 1_000;
/// What a complete child counts, in parts.
pub(crate) const WHOLE: u32 = 10_000 * PARTS;

/// A job's progress, given in hundredths of a per cent, in parts as its parent counts it.
pub(crate) fn counted(progress: u16) -> u32 {
    u32::from(progress) * PARTS
}

/// The hundredths of a per cent to show for these parts: the full number only when nothing is
/// missing.
pub(crate) fn shown(counts: u32) -> u16 {
    // Each generation may have rounded by half a part.
    let hundredths = (counts + u32::from(GENERATIONS)) / PARTS;
    let most = if counts < WHOLE { 9_999 } else { 10_000 };
    hundredths.min(most) as u16
}

written! {
    /// A job's relations to its parent and its children.
    #[derive(Debug, Clone, Default, PartialEq)]
    pub struct Family {
        /// Its part as a child.
        1 pub parent: Option<Tie>,
        /// Its part as a parent.
        2 pub children: Option<Children>,
        /// Its wait for its children, while it is blocked.
        3 pub wait: Option<ChildWait>,
        /// Whether an operator has decided that it waits for its children no more.
        4 pub waived: bool,
    }
}

written! {
    /// The wait of a blocked job for its children.
    #[derive(Debug, Clone, Copy, Default, PartialEq)]
    pub struct ChildWait {
        /// What happens if one of them does not succeed.
        1 pub on_failure: OnFailure,
        /// When it began, Unix ms; 0 before.
        2 pub from: i64,
        /// Whether a run asked for it, and not the post.
        3 pub run: bool,
        /// Whether a flow may still add children: it begins, if at all, when the flow is complete.
        4 pub open: bool,
    }
}

written! {
    /// A child's tie to its parent.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct Tie {
        /// The parent's slot, while the parent still has this family.
        1 pub slot: u32,
        /// Number of the family.
        2 pub number: u64,
        /// Its weight among the children.
        3 pub share: u32,
        /// How much of it counts, in parts of [`WHOLE`].
        4 pub counts: u32,
        /// Whether it has ended and its record is kept for its parent.
        5 pub kept: bool,
    }
}

written! {
    /// A parent's sums.
    #[derive(Debug, Clone, Copy, Default, PartialEq)]
    pub struct Children {
        /// Number of the family: the board's revision when the first child was added.
        1 pub number: u64,
        /// How many children count, with or without a record.
        2 pub count: u64,
        /// How many children have not ended.
        3 pub live: u32,
        /// Sum of the children's weights.
        4 pub shares: u64,
        /// Sum of weight times progress in parts.
        5 pub done: u64,
        /// A bound for the generations below it; it never falls.
        6 pub height: u8,
        /// How many of the children that count ended without success, with or without a record.
        7 pub unsuccessful: u64,
    }
}

impl Children {
    /// The weighted mean of the children's progress, in parts; [`WHOLE`] only when all are
    /// complete. `None` without children.
    pub(crate) fn mean(&self) -> Option<u32> {
        let mean = (self.done + self.shares / 2).checked_div(self.shares)?;
        let whole = self.done >= self.shares.saturating_mul(u64::from(WHOLE));
        Some(mean.min(u64::from(WHOLE) - u64::from(!whole)) as u32)
    }

    fn is_valid(&self) -> bool {
        self.number > 0
            && self.height <= GENERATIONS
            && self.shares <= SHARES_MOST + SHARE_MOST as u64
            && self.count <= self.shares
            && self.unsuccessful.checked_add(self.live.into()).is_some_and(|n| n <= self.count)
            && self.done <= self.shares.saturating_mul(u64::from(WHOLE))
    }
}

impl Family {
    /// Whether a board could have come to every number.
    pub fn is_valid(&self) -> bool {
        let share = |tie: &Tie| (1..=SHARE_MOST).contains(&i64::from(tie.share));
        self.parent.is_none_or(|tie| tie.number > 0 && share(&tie) && tie.counts <= WHOLE)
            && self.children.is_none_or(|children| children.is_valid())
            && self.wait.is_none_or(|wait| is_time(wait.from) && wait.open == (wait.from == 0))
    }

    /// Whether it says nothing.
    pub(crate) fn is_blank(&self) -> bool {
        *self == Family::default()
    }
}
