//! What one command, and one slice of the clock, may do to dependencies. A job waits for up to 10,000
//! others, so a few jobs can have more of them than a command or a slice may look at.

use std::cell::Cell;

use crate::board::Board;
use crate::error::Refusal;

/// Jobs that one command removes have no more dependencies together than this, both ways: some
/// tens of milliseconds.
const TIES_MOST: usize = 100_000;
/// How many edges of a job that ends take as long as one step of the clock, which does 64 at a time.
const EDGES_IN_STEP: usize = 16;
/// The most edges that one command on several jobs looks at, moves and removes: some tens of
/// milliseconds.
const LOOKS_MOST: usize = 100_000;

/// How many edges commands have looked at, and how many they may.
pub(crate) struct Looks {
    taken: Cell<usize>,
    most: Cell<usize>,
}

impl Default for Looks {
    fn default() -> Self {
        Looks { taken: Cell::new(0), most: Cell::new(usize::MAX) }
    }
}

impl Looks {
    pub(crate) fn take(&self, more: usize) {
        self.taken.set(self.taken.get().wrapping_add(more));
    }

    /// Whether the command may take so many more.
    pub(crate) fn allows(&self, more: usize) -> bool {
        self.taken.get().checked_add(more).is_some_and(|taken| taken <= self.most.get())
    }
}

impl Board {
    /// The next decisions are those of one command on several jobs: together they look at no more
    /// edges than [`LOOKS_MOST`], and are refused beyond.
    pub fn bound_looks(&self) {
        let looks = &self.local.looks;
        looks.most.set(looks.taken.get().saturating_add(LOOKS_MOST));
    }

    /// Ends that bound: for decisions that were made before and are made again.
    pub fn unbound_looks(&self) {
        self.local.looks.most.set(usize::MAX);
    }

    /// How many edges all decisions have looked at. O(1).
    pub fn looks(&self) -> usize {
        self.local.looks.taken.get()
    }

    /// Counts the edges of a job that a decision of one command on several jobs moves or removes.
    pub(crate) fn count_edges(&self, slot: u32) -> Result<(), Refusal> {
        let edges = self.edges(slot).len();
        if edges > 0 && !self.local.looks.allows(edges) {
            return Err(Refusal::Limit("named dependencies"));
        }
        self.local.looks.take(edges);
        Ok(())
    }

    /// Refuses to remove several jobs at once that have too many dependencies together. O(n).
    pub fn check_ties(&self, slots: &[u32]) -> Result<(), Refusal> {
        let ties =
            |slot: &u32| self.extras(*slot).map_or(0, |extras| extras.after.len() + extras.awaited as usize);
        match slots.len() > 1 && slots.iter().map(ties).sum::<usize>() > TIES_MOST {
            true => Err(Refusal::Limit("named dependencies")),
            false => Ok(()),
        }
    }

    /// How many steps more than one it takes to end a job because of all that it waits for. O(1).
    pub(crate) fn steps_for_edges(&self, slot: u32) -> u32 {
        (self.edges(slot).len() / EDGES_IN_STEP) as u32
    }
}
