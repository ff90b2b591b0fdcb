//! A server in memory, for one module in the same program: the functions that the module calls
//! are these, and what a server does to a module is done by calling methods of [`Server`].
//!
//! It is strict where a server is patient: a reply that is not one, a key left open, a string
//! never freed, a function called while a key is open that may delete it, and the program ends.
//! Each write is also made on a copy, as on a replica: what the module sends on is applied there.
//! The copy of database n is n + [`REPLICA`], which the module cannot select.

mod api;
mod clients;
mod commands;
mod ctx;
mod io;
mod keys;
mod memory;
mod reply;
mod server;
mod strings;
mod time;

pub use commands::{Arg, ArgKind, Command, Setting};
pub use reply::Value;
pub use server::{server, Place, Server, DATABASES, REPLICA};
