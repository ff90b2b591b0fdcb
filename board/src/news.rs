//! What a board tells those who follow it. All of it is local: in no snapshot, no digest, and
//! nothing is noted when nobody listens.

use crate::bin::Bin;
use crate::board::Board;
use crate::effect::Unfit;
use crate::id::Id;
use crate::job::U48;

/// What has happened since it was asked for, as far as somebody wants to know.
#[derive(Default)]
pub(crate) struct News {
    /// Whether anybody wants to know which records change.
    watched: bool,
    /// Ids of records that changed or went.
    changed: Vec<Id<Bin>>,
}

impl Board {
    /// Whether it is noted from now on which records change or go; see [`Board::changed`].
    pub fn watch(&mut self, on: bool) {
        self.news.watched = on;
        self.news.changed.clear();
    }

    /// The ids of the records that have changed or gone since the last call, some more than
    /// once.
    pub fn changed(&mut self, mut each: impl FnMut(&Board, &[u8])) {
        for id in std::mem::take(&mut self.news.changed) {
            id.borrowed().text(|id| each(self, id));
        }
    }

    /// A record has got a new version.
    #[inline]
    pub(crate) fn note_change(&mut self, slot: u32) {
        if self.news.watched {
            self.note_id(slot);
        }
    }

    #[cold]
    fn note_id(&mut self, slot: u32) {
        let Some(job) = self.jobs.get(slot) else { return };
        if self.news.changed.last().is_none_or(|last| last.borrowed() != job.id()) {
            self.news.changed.push(job.id().owned());
        }
    }

    /// Gives a record the version of the effect that is applied.
    pub(crate) fn touch(&mut self, slot: u32) -> Result<(), Unfit> {
        let revision = self.revision() as i64;
        self.job_mut(slot)?.version = U48::new(revision);
        self.note_change(slot);
        Ok(())
    }
}
