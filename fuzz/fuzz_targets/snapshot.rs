//! A snapshot of any bytes is refused, or gives a whole board that goes on working.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../board/tests/life/site.rs"]
mod site;
#[path = "../../board/tests/hostile/whole.rs"]
mod whole;
#[path = "../../board/tests/world/mod.rs"]
mod world;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(board) = whole::load([bytes]) {
        whole::live_on(board);
    }
});
