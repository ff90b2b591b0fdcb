//! The module's sources, file by file as `src/lib.rs` names them, with everything that a target
//! looks into made public.

#[path = "../../../src/args.rs"]
pub mod args;
#[path = "../../../src/commands/mod.rs"]
pub mod commands;
#[path = "../../../src/config.rs"]
pub mod config;
#[path = "../../../src/date.rs"]
pub mod date;
#[path = "../../../src/fault.rs"]
pub mod fault;
#[path = "../../../src/json.rs"]
pub mod json;
#[path = "../../../src/latency.rs"]
pub mod latency;
#[path = "../../../src/openmetrics.rs"]
pub mod openmetrics;
#[path = "../../../src/server/mod.rs"]
pub mod server;
#[path = "../../../src/turn.rs"]
pub mod turn;
#[path = "../../../src/waiters.rs"]
pub mod waiters;
#[path = "../../../src/watchers.rs"]
pub mod watchers;
#[path = "../../../src/world.rs"]
pub mod world;
