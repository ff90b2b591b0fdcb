//! Boards whose counters are near their ends, each by itself, and one that is restored beside
//! others. A number is found by what a board tells with another in its place, wherever it stands.

use board::{Claimed, Refusal, GIVERS, NEVER};
use board_fuzz::choices::NUMBERS;
use board_fuzz::numbers::{number_that, numbers, revision_in, token_in, with_number};
use board_fuzz::whole::{full, parts};
use board_fuzz::world::{Bytes, World};

use crate::sessions;

/// So many revisions and turns are left when commands are refused.
const HEADROOM: i64 = 1 << 40;
const TOKENS: i64 = 1 << 53;
const LAST_SLOT: i64 = (1 << 30) - 1;
/// Among [`NUMBERS`].
const NEAR_TOKENS: i64 = TOKENS - 40;

/// A board with one counter at its end, or shortly before.
pub fn snapshots() -> Vec<(&'static str, Bytes)> {
    let board = full().board;
    let bytes = parts(&board).concat();
    let revision = revision_in(&bytes, &board);
    let turns = number_that(&bytes, i64::MAX, |b| b.check_headroom() == Err(Refusal::Limit("turns")));
    let mut all = vec![
        ("last-revision", with_number(&bytes, revision.clone(), NEVER)),
        ("late-revision", with_number(&bytes, revision, NEVER - HEADROOM - 2)),
        ("late-token", with_number(&bytes, token_in(&bytes, &board), NEAR_TOKENS)),
        ("last-turn", with_number(&bytes, turns.clone(), i64::MAX)),
        ("late-turn", with_number(&bytes, turns, i64::MAX - HEADROOM - 2)),
    ];
    let board = two();
    let bytes = parts(&board).concat();
    let last = |slot: i64| number_that(&bytes, slot, |b| b.find(b"b") == Some(slot as u32));
    all.push(("far-slot", with_number(&bytes, last(LAST_SLOT), LAST_SLOT)));
    let late = with_number(&bytes, revision_in(&bytes, &board), NEVER - HEADROOM - 2);
    let seq = NEVER - HEADROOM - 3;
    let place = number_that(&late, seq, |b| b.find(b"b").is_some_and(|slot| b.seq(slot) == seq));
    all.push(("late-seq", with_number(&late, place, seq)));
    all
}

/// Two jobs, one of them claimed.
fn two() -> board::Board {
    let mut w = World::default();
    w.put("a");
    w.put("b");
    w.take_id(b"w", "a");
    w.board
}

/// Jobs, one of which was given a token near the last.
pub fn batches() -> Vec<Bytes> {
    let mut w = World::default();
    ["a", "b", "c"].into_iter().for_each(|id| w.put(id));
    let token = (TOKENS as u64) - 3 * GIVERS;
    w.act(Claimed { slot: 0, worker: b"w", token, lease: 60_000, timeout: -1, grace: 0 });
    w.commit();
    w.sent
}

/// A board is posted to and claimed from, dumped, and restored with one counter near its end: in its place, and beside
/// it. Then there is work on both.
pub fn sessions() -> Vec<(&'static str, Bytes)> {
    let mut w = World::default();
    w.put("a");
    w.take_id(b"w", "a");
    let bytes = parts(&w.board).concat();
    let nth = |place| numbers(&bytes).into_iter().position(|other| other == place).unwrap_or(0) as u8;
    let (revision, token) = (nth(revision_in(&bytes, &w.board)), nth(token_in(&bytes, &w.board)));
    let say = |line: &str| sessions::bytes(&sessions::words(line));
    let session = |nth: u8, to: i64| {
        let number = 128 + (NUMBERS.len() + at(to) - 128 % NUMBERS.len()) % NUMBERS.len();
        let forged = |key: u8| [212, 0, 0, 0, key, 0, 0, nth, 0, number as u8];
        let mut input = [say("JOB.POST board x ID a"), say("JOB.CLAIM board w")].concat();
        for key in [1, 0] {
            input.extend(forged(key));
            for board in ["c", "board"] {
                input.extend(say(&format!("JOB.POST {board} x")));
                input.extend(say(&format!("JOB.CLAIM {board} w")));
            }
        }
        input
    };
    vec![
        ("restored-token", session(token, NEAR_TOKENS)),
        ("restored-revision", session(revision, NEVER - 1)),
        ("restored-late-revision", session(revision, NEVER - HEADROOM - 1)),
    ]
}

fn at(number: i64) -> usize {
    NUMBERS.iter().position(|other| *other == number).expect("one of the numbers")
}
