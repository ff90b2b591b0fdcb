//! Resolving: the edges to a job that has ended are met, or end the waiting job.

use crate::board::Board;
use crate::effect::{ApplyError, Validate};
use crate::env::Env;
use crate::policy::Policy;

written! {
    /// The next `n` steps of resolving edges to ended jobs: most resolve one edge, or find that a job
    /// has none left.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Resolved {
        1 n: u32,
        2 policy: Policy,
    }
}

impl Validate for Resolved {
    fn is_valid(&self, _board: &Board) -> bool {
        self.policy.is_valid()
    }
}

impl Resolved {
    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        board.resolve(self.n, now, &self.policy.rules())
    }
}

impl Board {
    /// Whether any edge is to be resolved. O(1).
    pub fn is_resolving(&self) -> bool {
        !self.relations.waits.resolutions.is_empty()
    }

    /// The next `n` steps of resolving, if there are any. O(1).
    pub fn to_resolve(&self, env: &Env<'_>, n: u32) -> Option<Resolved> {
        self.is_resolving().then(|| Resolved { n, policy: Policy::of_ends(env.rules) })
    }
}
