//! What a later version may write: effects and snapshots with more in them than this version
//! knows. It refuses them, never misreads them, and keeps a snapshot that it cannot read.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

#[path = "next/maps.rs"]
mod maps;
#[path = "fixtures/scenario.rs"]
mod scenario;
#[path = "life/site.rs"]
mod site;
#[path = "hostile/whole.rs"]
mod whole;
mod world;

use std::collections::BTreeSet;

use board::*;

use maps::{less, more, value, Map};
use whole::{live_on, load, parts};
use world::Bytes;

/// The tag of the end of a snapshot.
const END: u8 = 4;

/// The tags of what stands in `bytes` from `at` on, each with where it begins and its maps.
fn tagged(bytes: &[u8], mut at: usize) -> Vec<(u8, usize, Vec<Map>)> {
    let mut all = Vec::new();
    while at < bytes.len() {
        let mut maps = Vec::new();
        let end = value(bytes, at + 1, &mut maps);
        all.push((bytes[at], at, maps));
        at = end;
    }
    all
}

fn effects(batch: &[u8]) -> Vec<(u8, usize, Vec<Map>)> {
    let head = (0..3).fold(1, |at, _| value(batch, at, &mut Vec::new()));
    tagged(batch, head)
}

#[test]
fn an_effect_with_a_field_more_breaks_a_copy_and_one_with_a_field_less_does_not_harm_it() {
    let sent = scenario::made().sent;
    let mut seen = BTreeSet::new();
    let mut board = Board::default();
    for batch in &sent {
        for (tag, _, maps) in effects(batch) {
            let anew = seen.insert(tag);
            for map in &maps {
                let mut copy = board.copy().unwrap();
                assert_eq!(
                    copy.replay(&more(batch, map)),
                    Applied::Broken(ReplayError::ApplyError(tag)),
                    "effect {tag}"
                );
                // As an older version may have written it, that did not know the field.
                for field in 0..if anew { map.entries.len() } else { 0 } {
                    let mut copy = board.copy().unwrap();
                    match copy.replay(&less(batch, map, field)) {
                        Applied::Broken(_) => assert!(copy.broken()),
                        done => assert_eq!((done, copy.check()), (Applied::Done, Ok(())), "effect {tag}"),
                    }
                }
            }
        }
        assert_eq!(board.replay(batch), Applied::Done);
    }
    assert!(seen.iter().eq(Effect::TAGS), "every effect has been tried");
}

#[test]
fn an_effect_of_a_later_version_breaks_a_copy() {
    let sent = scenario::made().sent;
    let unknown = (1..=127).filter(|tag| !Effect::TAGS.contains(tag));
    for tag in unknown {
        let mut batch = sent[0].clone();
        let at = effects(&batch)[0].1;
        batch[at] = tag;
        assert_eq!(Board::default().replay(&batch), Applied::Broken(ReplayError::Unknown(tag)));
    }
}

/// The board that a server has which meets these bytes in its files, and that it writes them
/// again as they are: in the parts that they came in, and in one.
fn held(bytes: &[u8], cuts: &[usize]) -> Board {
    let mut loader = Loader::holding();
    let mut from = 0;
    for at in cuts.iter().copied().chain([bytes.len()]).filter(|at| *at > 0) {
        loader.part(&bytes[from..at]).unwrap();
        from = at;
    }
    let board = loader.finish().unwrap();
    assert!(board.broken() && board.why_held().is_some());
    assert_eq!(parts(&board).concat(), bytes, "it is written as it came");
    assert_eq!(parts(&board.copy().unwrap()).concat(), bytes);
    board
}

#[test]
fn a_snapshot_with_a_field_more_is_refused_or_held_as_it_is() {
    let w = scenario::made();
    let bytes: Bytes = parts(&w.board).concat();
    assert_eq!(load([&bytes[..]]).unwrap().digest(), w.board.digest());
    for (n, (tag, at, maps)) in tagged(&bytes, 0).into_iter().enumerate() {
        for map in &maps {
            let next = more(&bytes, map);
            assert!(load([&next[..]]).is_err(), "item {tag}");
            // Items may come in parts of any size.
            let board = held(&next, if n % 2 == 0 { &[] } else { std::slice::from_ref(&at) });
            let head = (w.board.revision(), w.board.token());
            assert_eq!((board.revision(), board.token()), if n == 0 { (0, 0) } else { head });
        }
    }
}

#[test]
fn a_snapshot_with_a_field_less_is_refused_or_whole() {
    let bytes: Bytes = parts(&scenario::made().board).concat();
    let mut seen = BTreeSet::new();
    for (tag, _, maps) in tagged(&bytes, 0) {
        if !seen.insert(tag) {
            continue;
        }
        for map in &maps {
            for field in 0..map.entries.len() {
                if let Ok(board) = load([&less(&bytes, map, field)[..]]) {
                    live_on(board);
                }
            }
        }
    }
    assert!(seen.len() > 15, "items of {seen:?} alone");
}

#[test]
fn a_snapshot_with_an_item_more_is_refused_or_held_as_it_is() {
    let bytes: Bytes = parts(&scenario::made().board).concat();
    for (_, at, _) in tagged(&bytes, 0) {
        let mut next = bytes.clone();
        next.splice(at..at, [100, 0x81, 1, 5]);
        assert!(load([&next[..]]).is_err());
        held(&next, &[at]);
    }
}

#[test]
fn a_held_board_takes_parts_that_follow_and_is_forgotten_when_something_is_applied() {
    let w = scenario::made();
    let mut all = parts(&w.board);
    let maps = &tagged(&all[0], 0)[1].2;
    all[0] = more(&all[0], &maps[0]);
    let mut loader = Loader::holding();
    loader.part(&all[0]).unwrap();
    assert!(loader.is_whole(), "nothing else is read");
    let mut board = loader.finish().unwrap();
    all[1..].iter().for_each(|part| board.hold(part));
    assert_eq!(parts(&board).concat(), all.concat());
    let mut batch = Batch::default();
    batch.begin(board.revision(), w.now);
    batch.push(&Deleted { slot: 1 });
    assert_eq!(board.replay(batch.finish()), Applied::Broken(ReplayError::Before));
    assert!(board.broken() && board.why_held().is_none());
    let left = load(parts(&board).iter().map(|part| &part[..])).unwrap();
    assert!(left.broken() && left.is_empty() && left.revision() == board.revision());
}

#[test]
fn a_snapshot_that_is_saved_between_two_parts_goes_on_with_the_others() {
    let w = scenario::made();
    let bytes: Bytes = parts(&w.board).concat();
    for (tag, at, _) in tagged(&bytes, 0).into_iter().skip(1) {
        let mut loader = Loader::default();
        loader.part(&bytes[..at]).unwrap();
        let mut saved = Loader::holding();
        loader.snapshot(|part| saved.part(part).unwrap());
        let board = saved.finish().unwrap();
        assert!(board.broken() && board.why_held().is_some());
        let mut resumed = board.resumed(Loader::holding()).unwrap();
        resumed.part(&bytes[at..]).unwrap();
        assert_eq!(resumed.finish().unwrap().digest(), w.board.digest(), "item {tag}");
    }
    assert!(w.board.resumed(Loader::holding()).is_none());
}

/// Nothing that a file may hold keeps a server from starting.
#[test]
fn whatever_cannot_be_read_is_held() {
    let bytes: Bytes = parts(&whole::full().board).concat();
    for at in (1..bytes.len()).step_by(7) {
        held(&bytes[..at], &[]);
        let mut changed = bytes.clone();
        changed[at] ^= 0xc0;
        let mut loader = Loader::holding();
        loader.part(&changed).unwrap();
        let board = loader.finish().unwrap();
        assert!(board.broken() || board.check().is_ok());
    }
    let end = tagged(&bytes, 0).into_iter().find(|(tag, ..)| *tag == END).unwrap().1;
    held(&bytes[..end], &[]);
    let nothing = Loader::holding().finish().unwrap();
    assert!(nothing.broken() && nothing.is_empty());
}
