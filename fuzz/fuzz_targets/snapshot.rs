//! A snapshot of any bytes is refused, or gives a whole board that goes on working: as a board by
//! itself, and in a server that sends on what is done to it.
#![no_main]

use board_fuzz::input::{mutate, Input};
use board_fuzz::play::Play;
use board_fuzz::whole;
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_target!(|bytes: &[u8]| {
    let Input { choices, parts } = Input::read(bytes);
    let Ok(board) = whole::load(parts.iter().copied()) else { return };
    let broken = board.broken();
    whole::live_on(board);
    if !broken {
        let mut play = Play::new(choices);
        play.restore(&parts);
        play.run();
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| { mutate(data, size, most, seed) });
