//! The server's functions, made safe to call.
//!
//! | file | what of the server |
//! |---|---|
//! | `alloc`, `cell` | its allocator; state that only its main thread touches |
//! | `ctx`, `words`, `reply` | the context of a call, its words, its reply |
//! | `strings` | its strings; names of keys |
//! | `keyspace` | values under keys |
//! | `park`, `ends` | clients that wait, and their timeouts |
//! | `clock`, `timer` | the machine's clock, made never to go back; the server's timer |
//! | `notify` | messages and keyspace notifications |
//! | `command_docs` | the arguments of commands, as COMMAND DOCS shows them |
//! | `guard` | stops panics before they reach the server |
//!
//! Unsafe code is allowed only here and in the callbacks of `module`. A value of this room is valid
//! during the call that it came from, and its lifetime says so.
//!
//! Uses no other room.

pub mod alloc;
pub mod cell;
pub mod clock;
pub mod command_docs;
pub mod ctx;
pub mod ends;
pub mod guard;
pub mod keyspace;
pub mod notify;
pub mod park;
pub mod reply;
pub mod strings;
pub mod timer;
pub mod words;

use redis_module::raw;

/// The result codes of the server's functions.
pub const OK: std::os::raw::c_int = raw::REDISMODULE_OK as std::os::raw::c_int;
/// See [`OK`].
pub const ERR: std::os::raw::c_int = raw::REDISMODULE_ERR as std::os::raw::c_int;

/// Calls a server function that every supported server has. As unsafe as the function itself.
macro_rules! api {
    ($name:ident($($arg:expr),* $(,)?)) => {
        match redis_module::raw::$name {
            Some(function) => function($($arg),*),
            // Cannot happen on a supported server: the module would not have loaded.
            None => $crate::redis::missing(stringify!($name)),
        }
    };
}
pub(crate) use api;

/// Ends the process: the server lacks a function that it must have.
pub fn missing(name: &str) -> ! {
    eprintln!("jobboard: the server lacks {name}");
    std::process::abort()
}
