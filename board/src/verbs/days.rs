//! Dropping days of statistics, by time.

use crate::board::Board;
use crate::effect::{ApplyError, Effect, Validate};
use crate::env::Env;
use crate::settings::Setting;
use crate::statistics::days::day_of;

written! {
    /// Up to `n` records of days before this one were dropped.
    #[derive(Debug, Clone, PartialEq)]
    pub struct DaysDropped {
        1 before: i32,
        2 n: u32,
    }
}

impl Validate for DaysDropped {}

impl DaysDropped {
    pub(crate) fn apply(&self, board: &mut Board, _now: i64) -> Result<(), ApplyError> {
        board.days.drop_before(self.before, self.n);
        Ok(())
    }
}

impl Board {
    /// At most `n` records whose time is over; `None` when there are none. O(1).
    pub(crate) fn drop_days(&self, env: &Env<'_>, n: u32) -> Option<Effect<'static>> {
        if self.next_day_ends() > env.now {
            return None;
        }
        let before = match self.own(Setting::StatsDays) {
            0 => i32::MAX,
            days => day_of(env.now).saturating_sub(days as i32 - 1),
        };
        Some(DaysDropped { before, n }.into())
    }
}
