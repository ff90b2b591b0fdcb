//! Telling: jobs learn that what they wait for has ended.

use crate::board::Board;
use crate::effect::{Sound, Unfit};
use crate::env::Env;
use crate::policy::Policy;

written! {
    /// The next `n` steps of telling those who wait that a job has ended: one job each, or that
    /// all have been told.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Told {
        1 n: u32,
        2 policy: Policy,
    }
}

impl Sound for Told {
    fn sound(&self, _board: &Board) -> bool {
        self.policy.sound()
    }
}

impl Told {
    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), Unfit> {
        board.tell(self.n, now, &self.policy.rules())
    }
}

impl Board {
    /// Whether anybody is to be told. O(1).
    pub fn is_telling(&self) -> bool {
        !self.relations.waits.tells.is_empty()
    }

    /// The next `n` steps of telling, if anybody is to be told. O(1).
    pub fn to_tell(&self, env: &Env<'_>, n: u32) -> Option<Told> {
        self.is_telling().then(|| Told { n, policy: Policy::of_ends(env.rules) })
    }
}
