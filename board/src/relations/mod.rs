//! Jobs that know of each other.
//!
//! | file | what it keeps | invariant |
//! |---|---|---|
//! | `dependencies` | who waits for whom | no cycles; an awaited record stays |
//! | `family` | parents and children | a parent stands higher than its children |
//! | `progress` | how far a parent is by its children | |
//!
//! Uses `job` and `places`.

pub(crate) mod dependencies;
pub(crate) mod family;
pub(crate) mod progress;

use dependencies::Waits;
use family::Families;

/// Which jobs know of which.
#[derive(Default)]
pub(crate) struct Relations {
    pub(crate) waits: Waits,
    pub(crate) families: Families,
}
