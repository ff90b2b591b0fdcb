//! What keeps the record of an ended job: jobs that wait for it, its live children, its live
//! parent. Retention passes over the record as long as one of these does.

use crate::board::Board;
use crate::effect::ApplyError;
use crate::job::{Extras, NEVER};

/// What keeps the record of an ended job.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Pins {
    /// How many jobs wait for it.
    pub awaited: u32,
    /// How many children have not ended.
    pub children: u32,
    /// Whether it is kept for its parent.
    pub parent: bool,
}

impl Pins {
    pub fn any(self) -> bool {
        self.awaited > 0 || self.children > 0 || self.parent
    }
}

impl Extras {
    pub(crate) fn pins(&self) -> Pins {
        let family = self.family.as_deref();
        Pins {
            awaited: self.awaited,
            children: family.and_then(|f| f.children).map_or(0, |children| children.live),
            parent: family.and_then(|f| f.parent).is_some_and(|tie| tie.kept),
        }
    }

    fn set_pins(&mut self, pins: Pins) {
        self.awaited = pins.awaited;
        let Some(family) = self.family.as_deref_mut() else { return };
        if let Some(children) = &mut family.children {
            children.live = pins.children;
        }
        if let Some(tie) = &mut family.parent {
            tie.kept = pins.parent;
        }
    }
}

impl Board {
    /// Whether anything keeps the record of a job, ended or not. O(1).
    pub(crate) fn pinned(&self, slot: u32) -> bool {
        self.extras(slot).is_some_and(|extras| extras.pins().any())
    }

    /// Changes what keeps a record. The first pin of an ended job takes its record from retention;
    /// the last one returns it, and the record is removed if its time is over.
    pub(crate) fn repin(
        &mut self,
        slot: u32,
        now: i64,
        change: impl FnOnce(&mut Pins) -> Option<()>,
    ) -> Result<(), ApplyError> {
        let job = self.job(slot)?;
        let (state, at) = (job.state, job.at.get());
        let old = job.extras.as_ref().map(|extras| extras.pins()).unwrap_or_default();
        let mut new = old;
        change(&mut new).ok_or(ApplyError)?;
        let moves = state.ended() && old.any() != new.any();
        if moves {
            self.leave(slot)?;
        }
        let mut drop_at = 0;
        self.edit(slot, |job| {
            let extras = job.extras_mut();
            extras.set_pins(new);
            match moves {
                true if new.any() => extras.drop_at = at,
                true => drop_at = std::mem::take(&mut extras.drop_at),
                false => {}
            }
            Ok(())
        })?;
        match moves {
            false => Ok(()),
            true if new.any() => self.enter(slot, state, NEVER),
            true if drop_at <= now => self.drop_ended(slot, now),
            true => self.enter(slot, state, drop_at),
        }
    }
}
