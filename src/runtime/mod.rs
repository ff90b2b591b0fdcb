//! What runs between the commands: see the files.

pub mod blocked_claims;
pub mod blocked_waits;
pub mod claim_queue;
pub mod clock;
pub mod commit;
pub mod config;
pub mod connections;
pub mod durability;
pub mod ends;
pub mod latency;
pub mod publish;
pub mod timer;
pub mod wait_index;
pub mod world;
