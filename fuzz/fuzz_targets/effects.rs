//! Batches of any bytes, one after another on one copy, break it or leave it whole: it goes on
//! working by itself, and in a server that took the same batches. A copy that is loaded between two
//! of them takes the rest alike.
#![no_main]

use board::{Applied, Board};
use board_fuzz::input::{mutate, Input};
use board_fuzz::play::Play;
use board_fuzz::whole;
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_target!(|bytes: &[u8]| {
    let Input { mut choices, parts } = Input::read(bytes);
    let late = choices.below(parts.len());
    let (mut board, mut taken) = (Board::default(), Vec::new());
    let mut copy = None;
    for (n, batch) in parts.into_iter().enumerate() {
        if n == late {
            copy = Some(board.copy().expect("a whole board is copied"));
        }
        let applied = board.replay(batch);
        if let Some(copy) = &mut copy {
            assert_eq!(copy.replay(batch), applied);
        }
        match applied {
            Applied::Broken(_) => return assert!(board.broken()),
            Applied::Done => taken.push(batch),
            Applied::Skipped | Applied::Malformed => {}
        }
    }
    if let Some(copy) = copy {
        assert_eq!(copy.digest(), board.digest(), "a copy that was loaded late");
    }
    whole::live_on(board);
    let mut play = Play::new(choices);
    play.follow(&taken);
    play.run();
});

fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| { mutate(data, size, most, seed) });
