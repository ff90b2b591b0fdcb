//! Relations between jobs.
//!
//! | file | what it keeps | invariant |
//! |---|---|---|
//! | `dependencies` | which jobs wait for which | no cycles; an awaited record is kept |
//! | `family` | parents and children | a parent is higher than its children |
//! | `progress` | the progress of a parent, by its children | |
//!
//! Uses `job`, `places` and `structures`.

pub(crate) mod dependencies;
pub(crate) mod family;
pub(crate) mod progress;

use dependencies::Waits;
use family::Families;

/// The relations between jobs.
#[derive(Default)]
pub(crate) struct Relations {
    pub(crate) waits: Waits,
    pub(crate) families: Families,
}
