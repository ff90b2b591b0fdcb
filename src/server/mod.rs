//! What touches the server. The only unsafe code of the project is in this folder.

pub mod alloc;
pub mod blocked;
pub mod board_type;
pub mod call;
pub mod cell;
pub mod clock;
pub mod command_docs;
pub mod config;
pub mod ctx;
pub mod defrag;
pub mod durability;
pub mod ends;
pub mod events;
pub mod hint;
pub mod info;
pub mod keyspace;
pub mod load;
pub mod park;
pub mod publish;
pub mod register;
pub mod reply;
pub mod sessions;
pub mod timer;
pub mod watched;

use redis_module::raw;

/// The result codes of the server's functions.
pub const OK: std::os::raw::c_int = raw::REDISMODULE_OK as std::os::raw::c_int;
/// See [`OK`].
pub const ERR: std::os::raw::c_int = raw::REDISMODULE_ERR as std::os::raw::c_int;

/// Calls a function of the server's that every supported server has. Unsafe as the function
/// itself is.
macro_rules! api {
    ($name:ident($($arg:expr),* $(,)?)) => {
        match redis_module::raw::$name {
            Some(function) => function($($arg),*),
            // Cannot happen on a supported server: the module would not have loaded.
            None => $crate::server::missing(stringify!($name)),
        }
    };
}
pub(crate) use api;

/// The server lacks what it must have.
pub fn missing(name: &str) -> ! {
    eprintln!("jobboard: the server lacks {name}");
    std::process::abort()
}
