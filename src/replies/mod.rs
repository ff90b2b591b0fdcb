//! How replies and messages are written.
//!
//! | file | what it writes |
//! |---|---|
//! | `records`, `packing`, `fitting` | records of jobs, element by element or packed, as many as fit into one reply |
//! | `endings` | the replies of verbs that end work |
//! | `output` | what the worker of a job writes |
//! | `posted` | the ids of posted jobs, at once or later |
//! | `errors` | why a command failed |
//! | `json`, `openmetrics`, `date` | other formats |
//!
//! Uses `redis`.

pub mod date;
pub mod endings;
pub mod errors;
pub mod fitting;
pub mod json;
pub mod openmetrics;
pub mod output;
pub mod packing;
pub mod posted;
pub mod records;
