//! Boards for which clients wait, and that are looked at when the turn of the event loop ends.

use std::collections::{BTreeMap, BTreeSet};

use crate::runtime::claim_queue::BoardKey;

/// What there may be on a board for clients that wait.
pub enum Touch {
    /// Jobs in any of its queues.
    All,
    /// Jobs in these queues.
    Queues(BTreeSet<Vec<u8>>),
}

/// See the module's comment.
#[derive(Default)]
pub struct Touched(BTreeMap<BoardKey, Touch>);

impl Touched {
    /// No board.
    pub const NONE: Touched = Touched(BTreeMap::new());

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a board, beside what is known of it.
    pub fn add(&mut self, place: BoardKey, touch: Touch) {
        let known = self.0.entry(place).or_insert_with(|| Touch::Queues(BTreeSet::new()));
        match (known, touch) {
            (Touch::Queues(known), Touch::Queues(queues)) => known.extend(queues),
            (known, Touch::All) => *known = Touch::All,
            (Touch::All, _) => {}
        }
    }
}

impl IntoIterator for Touched {
    type Item = (BoardKey, Touch);
    type IntoIter = std::collections::btree_map::IntoIter<BoardKey, Touch>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
