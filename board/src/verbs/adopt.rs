//! Adopting: a job becomes the child of another. Parting: the children of an ended parent are
//! released.

use crate::board::Board;
use crate::effect::{ApplyError, Validate};
use crate::error::Refusal;
use crate::job::kin::SHARE_MOST;
use crate::verbs::post::Post;
use crate::verbs::posted::Posted;

written! {
    /// A job became the child of another.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Adopted {
        1 slot: u32,
        2 parent: u32,
        3 share: u32,
    }
}

impl Validate for Adopted {
    fn is_valid(&self, board: &Board) -> bool {
        let live = board.job(self.slot).is_ok_and(|job| !job.state.ended());
        let share = (1..=SHARE_MOST).contains(&i64::from(self.share));
        live && share && board.check_parent(self.slot, self.parent).is_ok()
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
    /// Decides whose child the posted job becomes; `None` when the post names no parent. The caller
    /// must decide this before it applies the post, and apply it after. O(generations).
    pub fn adopt(&self, post: &Post<'_>, posted: &Posted<'_>) -> Result<Option<Adopted>, Refusal> {
        post.parent.map(|parent| self.adopt_by(posted.slot(), parent, post.share)).transpose()
    }

    /// Decides that a job becomes the child of the job with this id. O(generations).
    pub(crate) fn adopt_by(&self, slot: u32, id: &[u8], share: Option<u32>) -> Result<Adopted, Refusal> {
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
