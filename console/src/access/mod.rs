//! Who may ask, from where, how often, and who is signed in.

pub mod guard;
pub mod recheck;
pub mod serving;
pub mod sessions;
pub mod stalled;
pub mod turns;
pub mod visitors;
