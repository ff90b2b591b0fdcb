//! jobboard: native job boards for Redis and Valkey.
//!
//! The rules of a board are in the crate `board`; here is what makes them commands of a
//! server. `commands/` has one file for each family, all of the same flow: read the
//! arguments, decide, apply, reply; [`turn`] replicates, serves those who wait and tells the
//! timer. `server/` is what touches the server, and the only place with unsafe code.

mod args;
mod commands;
mod config;
mod date;
mod fault;
mod json;
mod latency;
mod openmetrics;
#[allow(unsafe_code)]
mod server;
mod turn;
mod waiters;
mod watchers;
mod world;
