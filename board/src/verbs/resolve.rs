//! Telling: jobs learn that what they wait for has ended.

use crate::board::Board;
use crate::effect::{ApplyError, Validate};
use crate::env::Env;
use crate::policy::Policy;

written! {
    /// The next `n` steps of telling those who wait that a job has ended: one job each, or that
    /// all have been told.
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
    /// Whether anybody is to be told. O(1).
    pub fn is_resolving(&self) -> bool {
        !self.relations.waits.resolutions.is_empty()
    }

    /// The next `n` steps of telling, if anybody is to be told. O(1).
    pub fn to_resolve(&self, env: &Env<'_>, n: u32) -> Option<Resolved> {
        self.is_resolving().then(|| Resolved { n, policy: Policy::of_ends(env.rules) })
    }
}
