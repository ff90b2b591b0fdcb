//! Commands of several clients, time, and what else happens to a server, against a server in
//! memory. After each of them the boards are whole and their copies equal; a reply is one
//! reply, whole; who is refused or only reads has changed nothing.
#![no_main]

use fake_server::{server, Command};
use jobboard::{server::load::RedisModule_OnLoad, world};
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

mod choices;
mod judge;
mod play;
mod seen;
mod words;

/// When the clock begins.
const BEGIN: i64 = 1_700_000_000_000;

fuzz_target!(|bytes: &[u8]| {
    static COMMANDS: OnceLock<Vec<Command>> = OnceLock::new();
    let commands = COMMANDS.get_or_init(|| {
        server().now.set(BEGIN);
        server().load(RedisModule_OnLoad);
        server().commands().into_iter().filter(|command| !command.is_parent()).collect()
    });
    server().reset(BEGIN);
    world::seed(1);
    world::hold_claims(0);
    play::Play::new(bytes, commands).run();
});
