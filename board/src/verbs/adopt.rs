//! Adopting: a job becomes the child of another. Parting: the children of an ended parent are
//! released.

use crate::board::Board;
use crate::effect::{ApplyError, Validate};
use crate::error::Refusal;
use crate::job::kin::SHARE_MOST;

written! {
    /// A job of a flow became the child of another.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct Adopted {
        1 slot: u32,
        2 pub(super) parent: u32,
        3 pub(super) share: u32,
    }
}

impl Validate for Adopted {
    fn is_valid(&self, board: &Board) -> bool {
        let live = board.job(self.slot).is_ok_and(|job| !job.state.ended());
        live && board.is_tie(self.slot, (self.parent, self.share))
    }
}

impl Adopted {
    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        board.make_child(self.slot, self.parent, self.share, now)
    }
}

written! {
    /// The next `n` steps of releasing children that were kept for a parent: each releases one
    /// child, or finds that a family has none left.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Parted {
        1 n: u32,
    }
}

impl Validate for Parted {}

impl Parted {
    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        board.let_children_go(self.n, now)
    }
}

impl Board {
    /// Whether a job may become a child of this parent with this share.
    pub(super) fn is_tie(&self, slot: u32, (parent, share): (u32, u32)) -> bool {
        (1..=SHARE_MOST).contains(&i64::from(share)) && self.check_parent(slot, parent).is_ok()
    }

    /// Decides that a job becomes the child of the job with this id. O(generations).
    pub(crate) fn adopt(&self, slot: u32, id: &[u8], share: Option<u32>) -> Result<Adopted, Refusal> {
        let parent = self.find(id).ok_or_else(|| Refusal::NoJob.of(id))?;
        self.check_parent(slot, parent).map_err(|refusal| refusal.of(id))?;
        let share = share.or_else(|| self.tie(slot).map(|tie| tie.share)).unwrap_or(1);
        Ok(Adopted { slot, parent, share })
    }

    /// The next `n` steps of releasing children, if there are any. O(1).
    pub(crate) fn to_part(&self, n: u32) -> Option<Parted> {
        (!self.relations.families.partings.is_empty()).then_some(Parted { n })
    }
}
