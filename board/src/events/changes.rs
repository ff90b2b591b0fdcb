//! What has changed since a revision, for clients that follow a board by asking now and then.
//!
//! Records carry their version. A removed record is reported as long as the board remembers it: by
//! a tombstone or, when its id is free again, in a ring with the same bounds. Forgetting one raises
//! the revision up to which the board no longer knows.
//!
//! One ring cannot serve for both. The setting `tombstones` promises so many repeated reports and
//! posts an answer: deleting as many jobs must not push those tombstones out. And a tombstone ages
//! from the end of its job, a removed record from its removal, which may be days later: in one ring
//! the oldest would not be the first to drop.

use crate::item::{need, Item, Loading, SnapshotError};
use crate::job::is_time;
use std::collections::VecDeque;

use crate::board::Board;
use crate::job::id::Id;
use crate::settings::Setting;
use crate::structures::allotted::allotted;
use crate::structures::byte_string::ByteString;

written! {
    /// A removed record whose id is free.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Gone {
        /// Its id.
        1 pub id: Id<ByteString>,
        /// The board's revision when it was removed.
        2 pub version: u64,
        /// When it was removed, Unix ms.
        3 pub at: i64,
    }
}

/// The latest removed records whose ids are free, oldest first.
#[derive(Default)]
pub(crate) struct Removed {
    pub ring: VecDeque<Gone>,
    /// Bytes on the heap that the ids take.
    pub heap: usize,
    /// What was removed at this revision or before may be forgotten.
    pub unknown: u64,
}

impl Removed {
    fn push(&mut self, gone: Gone) {
        self.heap += gone.id.allotted();
        self.ring.push_back(gone);
    }

    fn pop(&mut self) {
        if let Some(gone) = self.ring.pop_front() {
            self.heap -= gone.id.allotted();
        }
        if self.ring.is_empty() {
            self.ring = VecDeque::new();
        }
    }

    /// Bytes that they take.
    pub fn bytes(&self) -> usize {
        allotted(self.ring.capacity() * size_of::<Gone>()) + self.heap
    }
}

/// The most changes of records that are remembered.
const RECENT: usize = 16_384;
/// After this many changes without a question the board stops remembering them.
const UNASKED: usize = 64 * RECENT;

/// The latest changes of records, oldest first: revision and slot. Local, and kept only while
/// somebody asks for them.
#[derive(Default)]
pub(crate) struct Recent {
    ring: VecDeque<(u64, u32)>,
    /// All changes after this revision are kept here.
    from: u64,
    /// How many changes came since somebody asked.
    unasked: usize,
}

impl Recent {
    /// Adds a change. Returns false when nobody has asked for too long.
    pub fn push(&mut self, revision: u64, slot: u32) -> bool {
        if self.ring.len() >= RECENT {
            self.from = self.ring.pop_front().map_or(revision, |(revision, _)| revision);
        }
        self.ring.push_back((revision, slot));
        self.unasked += 1;
        self.unasked < UNASKED
    }

    /// About how many bytes it takes.
    pub fn bytes(&self) -> usize {
        self.ring.capacity() * size_of::<(u64, u32)>()
    }
}

impl Board {
    /// Remembers a removed record whose id is free from now on.
    pub(crate) fn remember_gone(&mut self, id: Id<ByteString>, now: i64) {
        let (most, ttl) = (self.own(Setting::Tombstones).max(0) as usize, self.own(Setting::TombstoneTtl));
        self.removed.push(Gone { id, version: self.revision, at: now });
        // Forgets at most two at once, so that no command pays for many; all of them when none may
        // be kept.
        for _ in 0..if most == 0 { usize::MAX } else { 2 } {
            let over = self.removed.ring.len() > most;
            let Some(first) = self.removed.ring.front() else { return };
            if !over && first.at.saturating_add(ttl) > now {
                return;
            }
            let version = first.version;
            self.removed.pop();
            self.forget_until(version);
        }
    }

    /// Records that what was removed at this revision or before may be forgotten.
    pub(crate) fn forget_until(&mut self, version: u64) {
        self.removed.unknown = self.removed.unknown.max(version);
    }

    /// The ids, as clients see them, of records that have been removed since a revision and not
    /// posted again, in the order of their removal; `None` when the board no longer knows. O(n log
    /// n) for n of them.
    pub fn gone_since(&self, version: u64) -> Option<Vec<Vec<u8>>> {
        if version < self.removed.unknown || version > self.revision {
            return None;
        }
        let after = |gone: &u64| *gone > version;
        let buried = self.places.tombstones.iter().rev().map(|t| (&t.id, t.version));
        let departed = self.removed.ring.iter().rev().map(|gone| (&gone.id, gone.version));
        let buried = buried.take_while(|(_, at)| after(at)).filter(|(id, _)| !id.is_blank());
        let ids = buried.chain(departed.take_while(|(_, at)| after(at)));
        let texts = ids.map(|(id, at)| (id.borrowed().to_vec(), at));
        let mut gone: Vec<(Vec<u8>, u64)> = texts.filter(|(id, _)| self.find(id).is_none()).collect();
        // Of several removals of one id the last counts.
        gone.sort_unstable_by(|a, b| b.cmp(a));
        gone.dedup_by(|(id, _), (last, _)| id == last);
        gone.sort_unstable_by_key(|(_, at)| *at);
        Some(gone.into_iter().map(|(id, _)| id).collect())
    }

    /// Remembers from now on which records change, so that the next listing of changes since now
    /// needs no walk. Local.
    pub fn follow_changes(&mut self) {
        let revision = self.revision;
        let recent = self
            .local
            .events
            .recent
            .get_or_insert_with(|| Box::new(Recent { from: revision, ..Recent::default() }));
        recent.unasked = 0;
    }

    /// The slots of the records that have changed since a revision, in no order; `None` when only a
    /// walk over all records could find out, or when there are more than `most`. O(n log n) for n
    /// changes.
    pub(crate) fn changed_since(&self, version: u64, most: usize) -> Option<Vec<u32>> {
        let recent = self.local.events.recent.as_ref().filter(|recent| recent.from <= version)?;
        let changes = recent.ring.iter().rev().take_while(|(revision, _)| *revision > version);
        let is_last = |(revision, slot): &(u64, u32)| {
            self.store.jobs.get(*slot).is_some_and(|job| job.version.get() as u64 == *revision)
        };
        let mut slots: Vec<u32> = changes.filter(|c| is_last(c)).map(|(_, slot)| *slot).collect();
        slots.sort_unstable();
        slots.dedup();
        (slots.len() <= most).then_some(slots)
    }
}

impl<'a> Item<'a> for Gone {
    fn each(board: &'a Board, put: impl FnMut(&Self)) {
        board.removed.ring.iter().for_each(put);
    }

    fn load(self, board: &mut Board, _loading: &mut Loading) -> Result<(), SnapshotError> {
        let before = board.removed.ring.back().map_or(0, |gone| gone.version);
        need((1..=255).contains(&self.id.borrowed().bytes().len()) && is_time(self.at), "gone")?;
        need((before..=board.revision).contains(&self.version), "gone")?;
        board.removed.push(self);
        Ok(())
    }
}
