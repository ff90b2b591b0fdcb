//! What the server calls: the load of the module, its commands, its events, its data type.
//!
//! Each callback is unsafe, and only the server calls it. It says why it may trust its arguments,
//! and calls the rooms below.
//!
//! Uses `commands`, `redis` and `runtime`.

pub mod board_type;
pub mod config;
pub mod defrag;
pub mod info;
pub mod load;
pub mod registration;
pub mod server_events;
