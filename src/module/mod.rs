//! What the server calls.

pub mod board_type;
pub mod config;
pub mod defrag;
pub mod info;
pub mod load;
pub mod registration;
pub mod server_events;
