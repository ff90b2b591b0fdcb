//! Bytes from elsewhere: snapshots and batches that are cut, changed or made up. Nothing
//! panics, nothing takes memory on the word of a length, and what loads is a whole board.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

#[path = "hostile/numbers.rs"]
mod numbers;
#[path = "life/site.rs"]
mod site;
#[path = "hostile/whole.rs"]
mod whole;
mod world;

use board::*;
use proptest::collection::vec;
use proptest::prelude::*;

use numbers::{revision_in, token_in, with_number};
use site::*;
use whole::{full, live_on, load, parts};
use world::{Bytes, World};

/// The most memory that this process has had, in bytes; 0 where nobody tells.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap_or("0");
    line.split_whitespace().next().and_then(|n| n.parse::<usize>().ok()).unwrap_or(0) * 1024
}

#[test]
fn a_snapshot_cut_at_any_byte_is_refused() {
    let w = full();
    let parts = parts(&w.board);
    let bytes: Bytes = parts.concat();
    assert_eq!(load([&bytes[..]]).unwrap().digest(), w.board.digest());
    for at in 0..bytes.len() {
        assert!(load([&bytes[..at]]).is_err(), "cut at {at}");
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(load([&longer[..]]).is_err());
}

#[test]
fn the_parts_of_a_snapshot_may_come_in_other_pieces_but_not_in_another_order() {
    let w = full();
    let mut all = parts(&w.board);
    let whole = load(all.iter().map(|p| &p[..])).unwrap();
    assert_eq!(whole.digest(), w.board.digest());
    let two = [all.clone(), all.clone()].concat();
    assert!(load(two.iter().map(|p| &p[..])).is_err());
    assert!(load([]).is_err() && load([&b""[..]]).is_err());
    all.reverse();
    assert!(all.len() == 1 || load(all.iter().map(|p| &p[..])).is_err());
}

#[test]
fn a_board_whose_counters_are_near_their_ends_loads_and_goes_on_until_it_refuses() {
    let w = full();
    let bytes = parts(&w.board).concat();
    let (revision, token) = (revision_in(&bytes, &w.board), token_in(&bytes, &w.board));
    for (place, end) in [(&revision, NEVER), (&token, (1 << 53) - 1)] {
        let with = |n| with_number(&bytes, place.clone(), n);
        assert!(load([&with(end + 1)[..]]).is_err());
        for less in [0, 1, 100, 1 << 40, (1 << 40) + 1, 1 << 42] {
            let board = load([&with(end - less)[..]]).unwrap();
            if *place == revision {
                assert_eq!(board.check_headroom().is_err(), less <= 1 << 40, "{less}");
            }
            live_on(board);
        }
    }
}

/// Every place with `JOBBOARD_STEPS`, as in `make ci`; otherwise one in three, which the seed of the commit chooses.
fn places(length: usize) -> impl Iterator<Item = usize> {
    let step = if std::env::var_os("JOBBOARD_STEPS").is_some() { 1 } else { 3 };
    let seed = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|seed| seed.parse::<usize>().ok());
    (seed.unwrap_or(0) % step..length).step_by(step)
}

#[test]
fn every_byte_of_a_snapshot_may_be_another() {
    let w = full();
    let bytes: Bytes = parts(&w.board).concat();
    let mut loaded = 0;
    for at in places(bytes.len()) {
        for change in [0x01, 0xff, bytes[at] ^ 0xc0] {
            let mut changed = bytes.clone();
            changed[at] ^= change;
            if let Ok(board) = load([&changed[..]]) {
                loaded += 1;
                live_on(board);
            }
        }
    }
    assert!(loaded > 0);
}

/// Big numbers put where the format has numbers, lengths and nothing of the sort.
fn mutated(bytes: &[u8], changes: &[(usize, u8, u8)]) -> Bytes {
    let mut bytes = bytes.to_vec();
    for (at, how, with) in changes {
        if bytes.is_empty() {
            break;
        }
        let at = at % bytes.len();
        match how % 5 {
            0 => bytes[at] = *with,
            1 => bytes.insert(at, *with),
            2 => drop(bytes.remove(at)),
            3 => bytes.truncate(at.max(1)),
            _ => {
                let wide = [0xcf, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, *with];
                bytes.splice(at..at + 1, wide);
            }
        }
    }
    bytes
}

/// Applies a batch to a whole board; what it then is must be broken or whole.
fn replayed(w: &World, batch: &[u8]) {
    let mut board = w.board.copy().unwrap();
    match board.replay(batch) {
        Applied::Malformed | Applied::Skipped => assert_eq!(board.digest(), w.board.digest()),
        Applied::Broken(_) => assert!(board.broken()),
        Applied::Done => live_on(board),
    }
}

fn batch(w: &World, effects: &[Effect<'_>]) -> Bytes {
    let mut batch = Batch::default();
    batch.begin(w.board.revision(), w.now);
    effects.iter().for_each(|effect| batch.push(effect));
    batch.finish().to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_are_no_snapshot_and_no_batch(bytes in vec(any::<u8>(), 0..300), cut in any::<bool>()) {
        let mut loader = Loader::default();
        prop_assert!(loader.part(&bytes).is_err());
        let mut board = Board::default();
        let batch = if cut { bytes } else { [&[0x93, 0, 0, 1][..], &bytes].concat() };
        let _ = board.replay(&batch);
        prop_assert!(board.broken() || board.check().is_ok());
    }

    #[test]
    fn changed_snapshots_load_whole_or_not_at_all(
        changes in vec((any::<usize>(), any::<u8>(), any::<u8>()), 1..6),
    ) {
        let w = full();
        let bytes = mutated(&parts(&w.board).concat(), &changes);
        if let Ok(board) = load([&bytes[..]]) {
            live_on(board);
        }
    }
}

#[test]
fn changed_batches_break_a_copy_or_leave_it_whole() {
    let sent = full().sent;
    // A copy that is just about to get each batch.
    let mut w = World::default();
    for bytes in &sent {
        for at in places(bytes.len()) {
            replayed(&w, &bytes[..at]);
            for with in [0x00, 0x7f, 0xc0, 0xcf, 0xff] {
                replayed(&w, &mutated(bytes, &[(at, 0, with)]));
            }
            replayed(&w, &mutated(bytes, &[(at, 4, 0xff)]));
        }
        assert_eq!(w.board.replay(bytes), Applied::Done);
    }
}

#[test]
fn a_batch_cut_at_any_byte_breaks_the_copy() {
    let w = World::default();
    let effects = [
        Configured { scope: Scope::Board, setting: Setting::Lease, value: Some(9) }.into(),
        Configured { scope: Scope::Queue(b"mail"), setting: Setting::Jitter, value: Some(3) }.into(),
    ];
    let bytes = batch(&w, &effects);
    for at in 0..bytes.len() {
        let mut board = Board::default();
        let done = board.replay(&bytes[..at]);
        assert!(matches!(done, Applied::Broken(_) | Applied::Malformed), "cut at {at}: {done:?}");
    }
}

#[test]
fn effects_that_do_not_fit_break_the_copy() {
    let w = full();
    let slot = |id: &str| w.board.find(id.as_bytes()).unwrap();
    let claimed =
        |slot, token| Effect::from(Claimed { slot, worker: b"eve", token, lease: 9, timeout: -1, grace: 0 });
    let fresh = w.board.token() + 1;
    let cases: Vec<Effect<'_>> = vec![
        claimed(999, fresh),
        claimed(slot("ready"), fresh),
        claimed(slot("scheduled"), fresh),
        claimed(slot("complete"), fresh),
        claimed(slot("failed"), w.board.token()),
        claimed(slot("failed"), 1 << 53),
        claimed(slot("failed"), u64::MAX),
        Claimed { slot: slot("failed"), worker: b"", token: fresh, lease: 9, timeout: -1, grace: 0 }.into(),
        Claimed { slot: slot("failed"), worker: b"eve", token: fresh, lease: 9, timeout: -1, grace: -1 }
            .into(),
        Claimed { slot: slot("failed"), worker: b"eve", token: fresh, lease: 0, timeout: -1, grace: 0 }
            .into(),
        Claimed {
            slot: slot("failed"),
            worker: b"eve",
            token: fresh,
            lease: i64::MIN,
            timeout: -1,
            grace: 0,
        }
        .into(),
        Deleted { slot: 999 }.into(),
        Deleted { slot: u32::MAX }.into(),
        Configured { scope: Scope::Board, setting: Setting::Lease, value: Some(0) }.into(),
        Configured { scope: Scope::Queue(b"mail"), setting: Setting::KeepFailed, value: Some(1) }.into(),
        Configured { scope: Scope::Queue(b""), setting: Setting::Lease, value: Some(1) }.into(),
    ];
    for effect in cases {
        let mut board = w.board.copy().unwrap();
        let unfit = Applied::Broken(ReplayError::ApplyError(effect.tag()));
        assert_eq!(board.replay(&batch(&w, std::slice::from_ref(&effect))), unfit, "{effect:?}");
        assert!(board.broken());
        let mut next = Batch::default();
        next.begin(board.revision(), w.now);
        assert_eq!(board.replay(next.finish()), Applied::Broken(ReplayError::Before));
    }
}

/// Every effect that a verb decides on one board, applied to another on which the same slots
/// hold jobs in every other state.
#[test]
fn effects_of_another_board_break_or_fit_and_never_panic() {
    let sent = full().sent;
    for shift in 0..STATES.len() {
        let mut other = World::default();
        for n in 0..STATES.len() {
            let state = STATES[(n + shift) % STATES.len()];
            other.put_in(state.name(), state);
        }
        for bytes in &sent {
            // The same effects under this board's revision.
            let mut bytes = bytes.clone();
            bytes[2..10].copy_from_slice(&other.board.revision().to_be_bytes());
            replayed(&other, &bytes);
        }
    }
}

#[test]
fn a_broken_copy_says_so_in_its_snapshot() {
    let w = full();
    let mut board = w.board.copy().unwrap();
    assert!(matches!(board.replay(&batch(&w, &[Deleted { slot: 999 }.into()])), Applied::Broken(_)));
    let loaded = load(parts(&board).iter().map(|p| &p[..])).unwrap();
    assert!(loaded.broken());
    assert_eq!((loaded.revision(), loaded.token()), (board.revision(), board.token()));
}

/// A server that was left with a board which cannot be must be able to start again.
#[test]
fn a_broken_board_loads_whatever_is_left_of_it() {
    let mut board = full().board;
    board.set_broken();
    let bytes: Bytes = parts(&board).concat();
    let whole = load([&bytes[..]]).unwrap();
    assert!(whole.broken() && whole.len() == board.len());
    let mut least = usize::MAX;
    for at in 0..bytes.len() {
        match load([&bytes[..at], &bytes[at..]]) {
            Ok(loaded) => {
                assert!(loaded.broken());
                assert_eq!((loaded.revision(), loaded.token()), (board.revision(), board.token()));
                assert_eq!(load(parts(&loaded).iter().map(|p| &p[..])).unwrap().digest(), loaded.digest());
                least = least.min(at);
            }
            Err(_) => assert!(at < least, "cut at {at}"),
        }
    }
    assert!(least < bytes.len() / 2, "only the head is needed");
}

#[test]
fn clocks_out_of_range_are_no_batch() {
    for now in [-1, i64::MIN, NEVER, NEVER + 1, i64::MAX] {
        let mut batch = Batch::default();
        batch.begin(0, now);
        batch.push(&Configured { scope: Scope::Board, setting: Setting::Lease, value: Some(9) });
        assert_eq!(Board::default().replay(batch.finish()), Applied::Malformed);
    }
}

#[test]
fn lengths_and_slots_that_promise_much_cost_little() {
    let before = peak();
    let w = full();
    let bytes: Bytes = parts(&w.board).concat();
    let promises: [&[u8]; 6] = [
        &[0xdd, 0xff, 0xff, 0xff, 0xff],
        &[0xdf, 0xff, 0xff, 0xff, 0xff],
        &[0xc6, 0xff, 0xff, 0xff, 0xff],
        &[0xdb, 0xff, 0xff, 0xff, 0xff],
        &[0xce, 0x3f, 0xff, 0xff, 0xff],
        &[0xc9, 0xff, 0xff, 0xff, 0xff, 0x01],
    ];
    for at in 0..bytes.len() {
        for promise in promises {
            let mut changed = bytes.clone();
            changed.splice(at..at + 1, promise.iter().copied());
            if let Ok(board) = load([&changed[..]]) {
                board.check().unwrap();
            }
        }
    }
    for bytes in [
        &[0x93, 0, 0, 0xce, 0xff, 0xff, 0xff, 0xff][..],
        &[0x93, 0, 0, 0xce, 0xff, 0xff, 0xff, 0xff, 1, 0xdd],
    ] {
        assert!(matches!(Board::default().replay(bytes), Applied::Broken(_)));
    }
    assert!(peak().saturating_sub(before) < 200 << 20, "{} MB", (peak() - before) >> 20);
}

#[test]
fn deep_nesting_is_refused() {
    for marker in [0x91u8, 0x81, 0xc7] {
        let deep = vec![marker; 1 << 20];
        assert!(load([&[&[1][..], &deep].concat()[..]]).is_err());
        let _ = Board::default().replay(&[&[0x93, 0, 0, 1, 1][..], &deep].concat());
    }
}
