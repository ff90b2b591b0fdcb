pub(crate) mod days;
pub(crate) mod pace;
pub(crate) mod stats;
