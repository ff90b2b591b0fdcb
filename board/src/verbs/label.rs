//! Labelling: an operator tags or untags a job, tracks it or stops tracking it.

use crate::board::Board;
use crate::effect::{ApplyError, Validate};
use crate::error::Refusal;
use crate::places::happened::Happened;
use crate::places::labels::{are_tags, TAGS_MOST};
use crate::structures::byte_string::ByteString;

/// A change of a job's labels, in any state.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Label<'a> {
    /// Tags to remove.
    pub untag: Vec<&'a [u8]>,
    /// Tags to add after that, behind those that the job has.
    pub tag: Vec<&'a [u8]>,
    /// Whether the job is tracked from now on.
    pub track: Option<bool>,
}

impl Label<'_> {
    /// Bytes of the tags that it adds.
    pub(crate) fn weight(&self) -> usize {
        self.tag.iter().map(|tag| tag.len()).sum()
    }
}

written! {
    /// The labels of a job changed.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Labelled {
        1 slot: u32,
        2 tags: Vec<ByteString>,
        3 tracked: bool,
    }
}

impl Validate for Labelled {
    fn is_valid(&self, _board: &Board) -> bool {
        are_tags(self.tags.iter().map(|tag| &**tag))
    }
}

impl Labelled {
    pub(crate) fn apply(&self, board: &mut Board, now: i64) -> Result<(), ApplyError> {
        let labels = &board.places.labels;
        let (was, had) = (labels.tracked(self.slot), labels.tags(self.slot));
        let tags = !had.eq(self.tags.iter().map(|tag| &**tag));
        let track = (was != self.tracked).then_some(if self.tracked { "track" } else { "untrack" });
        let changed = || tags.then_some("tags").into_iter().chain(track).collect();
        // Who follows tracked jobs learns that one is tracked no longer.
        if was {
            board.happened(self.slot, &Happened::Labelled(&changed))?;
        }
        board.unindex_labels(self.slot)?;
        board.mark(self.slot, self.tags.iter().map(|tag| &**tag), self.tracked)?;
        board.index_labels(self.slot)?;
        board.edit(self.slot, |job| {
            job.extras_mut().modified = now;
            Ok(())
        })?;
        if !was {
            board.happened(self.slot, &Happened::Labelled(&changed))?;
        }
        board.touch(self.slot)
    }
}

impl Board {
    /// Decides a change of one job's labels: its tags, and whether it is tracked. `None` when
    /// nothing would change. O(t) for the tags of the job and those named.
    pub fn label(&self, slot: u32, label: &Label<'_>) -> Result<Option<Labelled>, Refusal> {
        self.job(slot).map_err(|_| Refusal::NoJob)?;
        let (had, was) = (self.places.labels.tags(slot), self.places.labels.tracked(slot));
        let kept = had.clone().filter(|tag| !label.untag.contains(tag));
        let fresh = label.tag.iter().copied().filter(|tag| kept.clone().all(|old| old != *tag));
        let tags: Vec<ByteString> = kept.clone().chain(fresh).map(ByteString::from).collect();
        let tracked = label.track.unwrap_or(was);
        if tags.len() > TAGS_MOST {
            return Err(Refusal::Limit("tags"));
        }
        let same = tracked == was && had.eq(tags.iter().map(|tag| &**tag));
        Ok((!same).then_some(Labelled { slot, tags, tracked }))
    }
}
