//! Data structures that know nothing of boards.
//!
//! | file | what it is | invariant |
//! |---|---|---|
//! | `allotted` | what an allocator takes for a number of bytes | |
//! | `bitmap` | a set of numbers | the lowest number outside it is found quickly |
//! | `slab` | values by slot | the lowest free slot is next |
//! | `sorted` | sorted sequences of slots | the records hold the keys, which must not change while in line |
//! | `ids` | chosen ids to slots | no insert pays for a rehash of the whole |
//! | `interner` | shared values by number | a value lives as long as it is referenced, and a little longer |
//! | `byte_string` | small immutable bytes | never assumed to be UTF-8 |
//! | `lazy` | a part that few records have | a pointer where it is absent |
//! | `histogram` | durations in bins | sums exact, percentiles within 5 % |
//! | `merge` | several sorted sequences as one | |
//! | `numbered` | enumerations as numbers | a number is never reused |
//! | `mover` | moving values in memory | |
//! | `texts` | several texts sought in another | |
//!
//! Uses no other room.

#[macro_use]
mod numbered;
pub(crate) mod allotted;
pub(crate) mod bitmap;
pub(crate) mod byte_string;
pub(crate) mod histogram;
pub(crate) mod ids;
pub(crate) mod interner;
pub(crate) mod lazy;
pub(crate) mod merge;
pub(crate) mod mover;
pub(crate) mod slab;
pub(crate) mod sorted;
pub(crate) mod texts;
