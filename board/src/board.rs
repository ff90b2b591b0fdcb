//! The board, made of what its rooms keep.

use crate::dispatch::Dispatch;
use crate::effect::{Apply, ApplyError};
use crate::error::Refusal;
use crate::events::changes::Removed;
use crate::job::store::Store;
use crate::job::{State, NEVER};
use crate::local::Local;
use crate::places::Places;
use crate::queue::Queue;
use crate::quotas::Quotas;
use crate::relations::Relations;
use crate::schedules::Schedules;
use crate::settings::Overrides;
use crate::snapshot::Held;
use crate::statistics::days::Days;
use crate::structures::allotted::allotted;
use crate::structures::byte_string::ByteString;
use crate::structures::interner::Interner;
use crate::structures::lazy::Lazy;
use crate::workers::Workers;

/// Revisions stay below this, so that they fit into a [`crate::job::U48`].
pub(crate) const REVISIONS: u64 = NEVER as u64;
/// Tags of turns stay below this.
pub(crate) const TURNS: u64 = u64::MAX >> 1;
/// No command and no tick of the timer counts further than this.
const HEADROOM: u64 = 1 << 40;

/// Bytes that a server's module adds to a board to keep it under a key.
const AROUND: usize = 32;
/// Bytes that a server takes for a key with a value of a module, beside the name of the key.
const BESIDE: usize = 64;

/// The state machine, made of what its rooms keep. See the crate's comment.
#[derive(Default)]
pub struct Board {
    pub(crate) revision: u64,
    /// When its first effect was applied, Unix ms.
    pub(crate) created: i64,
    pub(crate) token: u64,
    pub(crate) settings: Overrides,
    /// Whether this copy missed something and can no longer be trusted.
    pub(crate) broken: bool,
    /// The snapshot that this version cannot read: the board is then broken, and holds nothing
    /// else.
    pub(crate) held: Option<Box<Held>>,
    pub(crate) store: Store,
    pub(crate) places: Places,
    pub(crate) queues: Interner<ByteString, Queue>,
    pub(crate) dispatch: Dispatch,
    pub(crate) quotas: Quotas,
    pub(crate) relations: Relations,
    pub(crate) schedules: Lazy<Schedules>,
    pub(crate) workers: Workers,
    pub(crate) days: Days,
    pub(crate) removed: Removed,
    pub(crate) local: Local,
}

/// The value of a duration setting, ms; -1 and 0 mean none.
pub(crate) fn duration(ms: i64) -> Option<i64> {
    (ms > 0).then_some(ms)
}

/// When something that begins now and lasts `ms` ends, Unix ms; -1 means never.
pub(crate) fn after(now: i64, ms: i64) -> i64 {
    if ms < 0 {
        return NEVER;
    }
    now.saturating_add(ms).clamp(0, NEVER)
}

impl Board {
    /// How many effects have made this board what it is.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// When the board was created, Unix ms, by which followers of a key notice another board there;
    /// 0 when it has no effects, and when they came from a version that did not keep it.
    pub fn created(&self) -> i64 {
        self.created
    }

    /// The last fencing token that was given out.
    pub fn token(&self) -> u64 {
        self.token
    }

    /// Whether this copy missed something and can no longer be trusted.
    pub fn broken(&self) -> bool {
        self.broken
    }

    /// Why this version cannot read the board's snapshot, if it cannot.
    pub fn why_held(&self) -> Option<&'static str> {
        self.held.as_ref().map(|held| held.why)
    }

    /// Keeps one more part of a snapshot that this version cannot read.
    pub fn hold(&mut self, part: &[u8]) {
        if let Some(held) = &mut self.held {
            held.parts.push(part.into());
        }
    }

    /// Marks this copy as broken: it cannot be trusted.
    pub fn set_broken(&mut self) {
        self.broken = true;
    }

    /// How many jobs are in this state. O(1).
    pub fn count(&self, state: State) -> u64 {
        self.places.counts.get(state as usize).copied().unwrap_or(0)
    }

    /// How many records there are. O(1).
    pub fn len(&self) -> usize {
        self.store.jobs.len()
    }

    /// About how many allocations are freed with the board: jobs and what outlives them. O(1).
    pub fn pieces(&self) -> usize {
        self.store.jobs.len()
            + self.places.tombstones.len()
            + self.removed.ring.len()
            + self.days.len()
            + self.schedules.len()
            + self.workers.registrations.len()
            + self.held.as_ref().map_or(0, |held| held.parts.len())
    }

    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.store.jobs.len() == 0
    }

    /// About how many bytes of the allocator's the board takes, with what the server keeps beside it.
    /// O(queues + workers + users + records of statistics), not O(jobs).
    pub fn bytes(&self) -> usize {
        allotted(std::mem::size_of::<Self>() + AROUND)
            + BESIDE
            + self.store.bytes()
            + self.places.bytes()
            + self.queues.bytes()
            + self.queues.all().map(|(_, name, queue)| allotted(name.len()) + queue.heap()).sum::<usize>()
            + self.workers.names.bytes()
            + self
                .workers
                .names
                .all()
                .map(|(_, name, w)| allotted(name.len()) + w.claims.bytes())
                .sum::<usize>()
            + self.removed.bytes()
            + self.local.bytes()
            + self.relations.waits.allocated()
            + self.relations.waits.bytes()
            + self.relations.families.allocated()
            + self.relations.families.bytes()
            + self.settings.bytes()
            + self.dispatch.pauses.allocated()
            + self.dispatch.pauses.iter().len() * 192
            + self.schedules.allocated()
            + self.schedules.bytes()
            + self.workers.registrations.allocated()
            + self.workers.registrations.bytes()
            + self.days.bytes()
            + self.quotas.keys.allocated()
            + self.quotas.keys.bytes()
            + self.dispatch.limits.allocated()
            + self.dispatch.limits.bytes()
            + self.held.as_ref().map_or(0, |held| held.bytes())
            + self.quotas.owners.iter().map(|owners| owners.bytes()).sum::<usize>()
            + self
                .quotas
                .owners
                .iter()
                .flat_map(|o| o.all())
                .map(|(_, key, _)| allotted(key.len()))
                .sum::<usize>()
    }

    /// Refuses to begin anything on a board whose counters are near their ends: no command and no
    /// tick of the timer can then reach them. O(1).
    pub fn check_headroom(&self) -> Result<(), Refusal> {
        match (self.revision < REVISIONS - HEADROOM, self.dispatch.turns < TURNS - HEADROOM) {
            (false, _) => Err(Refusal::Limit("revisions")),
            (_, false) => Err(Refusal::Limit("turns")),
            _ => Ok(()),
        }
    }

    /// Whether a copy of this board would take an effect.
    pub(crate) fn takes(&self, effect: &impl Apply) -> bool {
        self.revision < REVISIONS && self.dispatch.turns < TURNS && effect.fits(self)
    }

    /// Applies one effect: the only thing that changes a board. `Err` when the effect names
    /// something that does not exist; the board may then be half changed, and the caller must mark
    /// it broken.
    pub fn apply(&mut self, effect: &impl Apply, now: i64) -> Result<(), ApplyError> {
        debug_assert!(self.takes(effect), "no copy would take it: {effect:?}");
        if self.revision == 0 {
            self.created = now;
        }
        self.revision += 1;
        self.local.moment = now;
        effect.apply_to(self, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// There may be thousands. With what the server keeps beside it an empty board fits into 2,048
    /// bytes, and has nothing on the heap.
    #[test]
    fn an_empty_board_is_small() {
        let (board, size) = (Board::default(), std::mem::size_of::<Board>());
        assert!(allotted(size + AROUND) <= 1_536, "{size}");
        assert_eq!(board.bytes(), allotted(size + AROUND) + BESIDE);
    }
}
