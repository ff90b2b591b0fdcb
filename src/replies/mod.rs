//! How things are written.

pub mod date;
pub mod json;
pub mod openmetrics;
