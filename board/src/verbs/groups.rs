//! Settings of groups, and the review of all groups of a queue after a value for all of them has
//! changed.

use crate::board::Board;
use crate::effect::{ApplyError, Effect, Validate};
use crate::scope::ALL_GROUPS;
use crate::settings::Setting;
use crate::structures::byte_string::ByteString;

written! {
    /// The next `n` groups were reviewed after a setting of all groups had changed.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Reviewed {
        1 n: u32,
    }
}

impl Validate for Reviewed {}

impl Reviewed {
    pub(crate) fn apply(&self, board: &mut Board, _now: i64) -> Result<(), ApplyError> {
        let Some(name) = board.dispatch.reviews.first().cloned() else { return Ok(()) };
        let queue = board.queues.find(&*name).ok_or(ApplyError)?;
        let fair = board.open_rounds(queue)?;
        let from = fair.review.ok_or(ApplyError)?;
        let most = self.n as usize;
        let mut some: Vec<u32> =
            fair.groups.iter_from(from).map(|(at, _)| at).take(most.saturating_add(1)).collect();
        fair.review = if some.len() > most { some.pop() } else { None };
        if fair.review.is_none() {
            board.dispatch.reviews.remove(&name);
        }
        for at in some {
            board.tidy_group(queue, at);
        }
        board.review_candidates(queue);
        Ok(())
    }
}

impl Board {
    pub(crate) fn configure_group(
        &mut self,
        queue: &[u8],
        group: &[u8],
        setting: Setting,
        value: Option<i64>,
    ) -> Result<(), ApplyError> {
        let queue = self.queue(queue);
        let at = match group {
            ALL_GROUPS => None,
            name => Some(self.group_at(queue, name)?),
        };
        let fair = self.open_rounds(queue)?;
        let settings = match at {
            Some(at) => &mut fair.groups.get_mut(at).ok_or(ApplyError)?.settings,
            None => &mut fair.settings,
        };
        let (before, bounds) = (settings.is_empty(), settings.bounds_jobs());
        settings.set(setting, value);
        let (after, bounded) = (settings.is_empty(), settings.bounds_jobs());
        fair.bounds = (fair.bounds + u32::from(bounded)).saturating_sub(u32::from(bounds));
        self.hold_for(queue, before, after);
        match at {
            Some(at) => self.tidy_group(queue, at),
            None => self.review_groups(queue, setting)?,
        }
        self.review_candidates(queue);
        if bounds != bounded {
            self.find_bounds();
        }
        if bounds || bounded {
            self.frees_anywhere();
        }
        Ok(())
    }

    /// Queues a review of all groups of a queue if the changed setting may change their places.
    fn review_groups(&mut self, queue: u32, setting: Setting) -> Result<(), ApplyError> {
        let seats = !matches!(setting, Setting::Weight | Setting::MaxJobs);
        let fair = self.open_rounds(queue)?;
        if seats && fair.groups.len() > 0 {
            fair.review = Some(0);
            let name: ByteString = self.queues.key(queue).cloned().ok_or(ApplyError)?;
            self.dispatch.reviews.insert(name);
            self.wake_at(0);
        }
        self.close_rounds(queue);
        Ok(())
    }

    /// Holds a queue as long as something has settings there.
    pub(crate) fn hold_for(&mut self, queue: u32, empty_before: bool, empty_after: bool) {
        match (empty_before, empty_after) {
            (true, false) => self.queues.hold(queue),
            (false, true) => {
                self.queues.release(queue);
            }
            _ => {}
        }
    }

    /// Decides that the next `n` groups are reviewed; `None` when no review is left. O(1).
    pub fn review(&self, n: u32) -> Option<Effect<'static>> {
        (!self.dispatch.reviews.is_empty()).then(|| Reviewed { n }.into())
    }
}
