//! Ended jobs by when they ended: those of each state that go when there are too many, and apart
//! from them those that others need.
//!
//! A board that keeps no ended jobs has no memory for them.

use crate::job::order::TimeKey;
use crate::job::State;
use crate::structures::sorted::SortedSlots;

type Lines = [[SortedSlots<TimeKey>; 2]; 4];

/// See the module's comment.
#[derive(Default)]
pub(crate) struct Ended(Option<Box<Lines>>);

fn number(state: State) -> Option<usize> {
    (state as usize).checked_sub(State::Complete as usize)
}

impl Ended {
    /// The jobs of a state that nothing pins, or those that are pinned.
    pub fn line(&self, state: State, pinned: bool) -> Option<&SortedSlots<TimeKey>> {
        self.0.as_ref()?.get(number(state)?)?.get(usize::from(pinned))
    }

    /// The same, to change; `None` when the state is not one of an ended job.
    pub fn line_mut(&mut self, state: State, pinned: bool) -> Option<&mut SortedSlots<TimeKey>> {
        self.0.get_or_insert_default().get_mut(number(state)?)?.get_mut(usize::from(pinned))
    }

    /// All of them.
    pub fn lines(&self) -> impl Iterator<Item = &SortedSlots<TimeKey>> {
        self.0.iter().flat_map(|lines| lines.iter().flatten())
    }

    /// Bytes that they take.
    pub fn bytes(&self) -> usize {
        self.0.iter().map(|_| std::mem::size_of::<Lines>()).sum::<usize>()
            + self.lines().map(SortedSlots::bytes).sum::<usize>()
    }
}
