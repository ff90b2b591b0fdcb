//! jobboard: native job boards for Redis and Valkey.
//!
//! The rules of a board are in the crate `board`; this crate turns them into commands of a server.
//! Each folder is a room. The comment of its `mod.rs` lists its files and the rooms that it uses:
//! these are above it in this table:
//!
//! | room | holds |
//! |---|---|
//! | `redis` | the server's functions, made safe to call |
//! | `replies` | how replies and messages are written |
//! | `runtime` | what lives between commands: time, waiting clients, replication |
//! | `commands` | a file for each family of commands |
//! | `module` | what the server calls: load, commands, events, the data type |
//!
//! All rooms use `config`, the module's configuration, and `integers`.

mod commands;
mod config;
mod integers;
#[allow(unsafe_code)]
mod module;
#[allow(unsafe_code)]
mod redis;
mod replies;
mod runtime;
