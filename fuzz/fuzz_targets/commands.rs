//! Commands of several clients, time, and what else happens to a server, against a server in
//! memory. After each of them the boards are whole and their copies equal; a reply is one
//! reply, whole; who is refused or only reads has changed nothing.
#![no_main]

use board_fuzz::choices::Choices;
use board_fuzz::play::Play;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| Play::new(Choices(bytes)).run());
