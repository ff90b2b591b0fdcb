//! Telling: jobs learn that what they wait for has ended.

use serde::{Deserialize, Serialize};

use crate::board::Board;
use crate::effect::{Sound, Unfit};
use crate::env::Env;
use crate::settings::Rules;

/// The next `n` steps of telling those who wait that a job has ended: one job each, or that
/// all have been told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Told {
    n: u32,
    rules: Rules,
}

impl Sound for Told {}

impl Told {
    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), Unfit> {
        board.tell(self.n, now, &self.rules)
    }
}

impl Board {
    /// Whether anybody is to be told. O(1).
    pub fn is_telling(&self) -> bool {
        !self.waits.tells.is_empty()
    }

    /// The next `n` steps of telling, if anybody is to be told. O(1).
    pub fn to_tell(&self, env: &Env<'_>, n: u32) -> Option<Told> {
        self.is_telling().then(|| Told { n, rules: env.rules.clone() })
    }
}
