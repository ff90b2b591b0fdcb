//! jobboard: native job boards for Redis and Valkey.
//!
//! The rules of a board are in the crate `board`; here is what makes them commands of a
//! server. Each folder is a room. Its `mod.rs` says what is in it and which rooms it uses; they
//! stand above it here:
//!
//! | room | holds |
//! |---|---|
//! | `redis` | the server's functions, made safe to call |
//! | `replies` | how replies and messages are written |
//! | `runtime` | what lives between commands: time, clients that wait, replication |
//! | `commands` | a file for each family of commands |
//! | `module` | what the server calls: load, commands, events, the data type |
//!
//! All of them use `config`, the module's configuration, and `integers`.

mod commands;
mod config;
mod integers;
#[allow(unsafe_code)]
mod module;
#[allow(unsafe_code)]
mod redis;
mod replies;
mod runtime;
