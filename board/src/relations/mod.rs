//! Relations between jobs.
//!
//! | file | what it keeps | invariant |
//! |---|---|---|
//! | `bounds` | what one command and one slice may do to dependencies | |
//! | `children` | waiting for children | a wait ends when each child has ended |
//! | `cycles` | jobs that would wait for each other | |
//! | `dependencies` | which jobs wait for which | no cycles; an awaited record is kept |
//! | `family` | parents and children | a parent is higher than its children |
//! | `progress` | the progress of a parent, by its children | |
//! | `resolutions` | what an end means for those who wait for it | each edge is resolved once |
//! | `signals` | waiting for signals | a wait ends when what it names has arrived |
//!
//! Uses `job`, `places` and `structures`.

pub(crate) mod bounds;
pub(crate) mod children;
pub(crate) mod cycles;
pub(crate) mod dependencies;
pub(crate) mod family;
pub(crate) mod progress;
pub(crate) mod resolutions;
pub(crate) mod signals;

use crate::structures::lazy::Lazy;
use dependencies::Waits;
use family::Families;

/// The relations between jobs.
#[derive(Default)]
pub(crate) struct Relations {
    pub(crate) waits: Lazy<Waits>,
    pub(crate) families: Lazy<Families>,
}
