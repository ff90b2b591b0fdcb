//! What jobs hold is moved in memory, and nothing else changes.

use board::*;

use crate::site::*;
use crate::world::World;

const TEXT: &[u8] = b"text";

/// A job of every state, with everything that few jobs have.
fn rich() -> World {
    let mut w = World::default();
    w.put_with("parent", |p| p.payload = b"payload");
    w.put_with("child", |p| p.parent = Some(b"parent"));
    w.put_with("meta", |p| {
        p.user = Some(TEXT);
        p.meta = vec![pair(b"field", TEXT)];
    });
    for state in State::ALL {
        w.put_in(state.name(), state);
    }
    let report = Some(Report { stage: Some(TEXT), log: Some(TEXT), ..Report::default() });
    w.heartbeat(&(
        Speaker { worker: ANN, id: b"claimed", token: None },
        Heartbeat { report, output: Some(Chunk { number: 1, text: b"written" }), ..Heartbeat::default() },
    ))
    .unwrap();
    w
}

#[test]
fn everything_is_there_when_all_of_it_has_moved() {
    let mut w = rich();
    let (jobs, bytes) = (w.board.len(), w.board.bytes());
    let moves = w.relocate(u32::MAX);
    assert_eq!(moves.slices, 1);
    assert!(moves.moved > 2 * jobs && moves.bytes > 7, "{} moved, {} bytes", moves.moved, moves.bytes);
    assert_eq!((w.board.len(), w.board.bytes()), (jobs, bytes));
    assert_eq!(w.job("parent").payload(), b"payload");
    assert_eq!(w.job("meta").user(), Some(TEXT));
    w.is_valid();
    w.reload();
    w.is_valid();
}

#[test]
fn it_can_be_done_in_slices_while_jobs_come_and_go() {
    let mut w = World::default();
    for n in 0..1000 {
        w.put(&format!("job {n}"));
    }
    let whole = w.relocate(u32::MAX);
    let sliced = w.relocate(0);
    assert_eq!((sliced.slices, sliced.moved), (1000_usize.div_ceil(64), whole.moved));
    for n in (0..1000).filter(|n| n % 7 != 0) {
        assert!(w.delete(format!("job {n}").as_bytes()));
        if n % 100 == 1 {
            w.relocate(1);
        }
    }
    assert_eq!(w.take_all(b"w").len(), w.board.len());
    w.relocate(0);
    w.is_valid();
}

#[test]
fn an_empty_board_has_nothing_to_move() {
    let moves = World::default().relocate(0);
    assert_eq!((moves.slices, moves.moved), (1, 0));
}
