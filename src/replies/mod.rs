//! How replies and messages are written.
//!
//! | file | what it writes |
//! |---|---|
//! | `records`, `fitting` | records of jobs, as many as fit into one reply |
//! | `endings` | how work ended |
//! | `errors` | why a command did nothing |
//! | `json`, `openmetrics`, `date` | other forms |
//!
//! Uses `redis`.

pub mod date;
pub mod endings;
pub mod errors;
pub mod fitting;
pub mod json;
pub mod openmetrics;
pub mod records;
