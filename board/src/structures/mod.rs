#[macro_use]
mod numbered;
pub(crate) mod byte_string;
pub(crate) mod histogram;
pub(crate) mod ids;
pub(crate) mod interner;
pub(crate) mod lazy;
pub(crate) mod merge;
pub(crate) mod relocate;
pub(crate) mod slab;
pub(crate) mod sorted;
