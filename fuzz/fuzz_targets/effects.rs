//! Batches of any bytes, one after another on one copy, break it or leave it whole. Each is
//! preceded by its length, two bytes, the lower first.
#![no_main]

use board::{Applied, Board};
use libfuzzer_sys::fuzz_target;

#[path = "../../board/tests/life/site.rs"]
mod site;
#[path = "../../board/tests/hostile/whole.rs"]
mod whole;
#[path = "../../board/tests/world/mod.rs"]
mod world;

fuzz_target!(|bytes: &[u8]| {
    let mut board = Board::default();
    let mut rest = bytes;
    while let Some((head, more)) = rest.split_first_chunk::<2>() {
        let len = usize::from(u16::from_le_bytes(*head)).min(more.len());
        let (batch, after) = more.split_at(len);
        rest = after;
        match board.replay(batch) {
            Applied::Broken(_) => return assert!(board.broken()),
            Applied::Done | Applied::Skipped | Applied::Malformed => {}
        }
    }
    whole::live_on(board);
});
