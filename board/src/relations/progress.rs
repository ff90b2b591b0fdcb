//! The progress of parents: each report of a child moves up to its ancestors, with sums in whole
//! numbers at each step. See [`crate::relations::family`] for what counts.

use crate::board::Board;
use crate::effect::ApplyError;
use crate::job::kin::{counted, shown, Children};
use crate::places::happened::Happened;

impl Board {
    /// Whether a parent's progress follows from its children.
    pub(crate) fn is_mean(&self, slot: u32) -> bool {
        self.children(slot).is_some_and(|children| children.shares > 0)
    }

    /// A child's progress is `far`, in parts; it falls only when `back` allows it. Updates the
    /// parents. O(generations).
    pub(crate) fn count_progress(&mut self, slot: u32, far: u32, back: bool) -> Result<(), ApplyError> {
        match self.count_anew(slot, far, back)? {
            Some(parent) => self.show_mean(parent, back),
            None => Ok(()),
        }
    }

    /// Updates what a child counts; returns its parent when that changed the sums.
    fn count_anew(&mut self, slot: u32, far: u32, back: bool) -> Result<Option<u32>, ApplyError> {
        let Some(tie) = self.tie(slot).copied() else { return Ok(None) };
        let counts = if back { far } else { far.max(tie.counts) };
        if counts == tie.counts {
            return Ok(None);
        }
        let Some(parent) = self.parent_of(slot) else { return Ok(None) };
        self.tie_mut(slot)?.counts = counts;
        let (share, old, new) = (u64::from(tie.share), u64::from(tie.counts), u64::from(counts));
        let children = self.children_mut(parent)?;
        children.done = (children.done + share * new).checked_sub(share * old).ok_or(ApplyError)?;
        Ok(Some(parent))
    }

    /// Writes the mean of its children into a live parent, and then into the parents above.
    pub(crate) fn show_mean(&mut self, slot: u32, back: bool) -> Result<(), ApplyError> {
        let mut next = Some(slot);
        while let Some(slot) = next {
            let mean = self.children(slot).and_then(Children::mean);
            let job = self.job_mut(slot)?;
            let (Some(mean), false) = (mean, job.state.ended()) else { return Ok(()) };
            let extras = job.extras_mut();
            let far = if back { mean } else { mean.max(counted(extras.progress.unwrap_or(0))) };
            if extras.progress != Some(shown(far)) {
                extras.progress = Some(shown(far));
                self.touch(slot)?;
                self.happened(slot, &Happened::Progress(None))?;
            }
            next = self.count_anew(slot, far, back)?;
        }
        Ok(())
    }
}
