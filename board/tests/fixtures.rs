//! Logs and snapshots of every version, as they are kept in `tests/fixtures`, load for ever:
//! each to the state that it had when it was made.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

#[path = "fixtures/scenario.rs"]
mod scenario;
#[path = "life/site.rs"]
mod site;
#[path = "hostile/whole.rs"]
mod whole;
mod world;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use board::*;

use whole::{live_on, load, parts};
use world::Bytes;

/// The folders of all versions.
fn versions() -> Vec<PathBuf> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures");
    let folders = fs::read_dir(all).unwrap().map(|entry| entry.unwrap().path());
    let mut folders: Vec<PathBuf> = folders.filter(|path| path.join("facts").exists()).collect();
    folders.sort();
    folders
}

/// What is known of a fixture: lines of a name and a value.
fn facts(folder: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(folder.join("facts")).unwrap();
    text.lines().filter_map(|line| line.split_once(' ')).map(|(a, b)| (a.into(), b.into())).collect()
}

fn digest(board: &Board) -> String {
    format!("{:032x}", board.digest())
}

/// The last words of the commands of a log.
fn commands(folder: &Path, file: &str, command: &str) -> Vec<Bytes> {
    let log = fs::read(folder.join(file)).unwrap();
    let mut rest = &log[..];
    let line = |rest: &mut &[u8]| -> usize {
        let end = rest.windows(2).position(|two| two == b"\r\n").unwrap();
        let number = std::str::from_utf8(&rest[1..end]).unwrap().parse().unwrap();
        *rest = &rest[end + 2..];
        number
    };
    let mut found = Vec::new();
    while !rest.is_empty() {
        let words = (0..line(&mut rest)).map(|_| {
            let length = line(&mut rest);
            let word = rest[..length].to_vec();
            rest = &rest[length + 2..];
            word
        });
        let words: Vec<Bytes> = words.collect();
        if words[0].eq_ignore_ascii_case(command.as_bytes()) {
            found.push(words[2].clone());
        }
    }
    found
}

#[test]
fn a_log_of_every_version_gives_the_state_that_it_gave() {
    for folder in versions() {
        let mut board = Board::default();
        for batch in commands(&folder, "effects.aof", "JOB.APPLY") {
            assert_eq!(board.replay(&batch), Applied::Done, "{folder:?}");
            assert_eq!(board.check(), Ok(()), "{folder:?}");
        }
        assert_eq!(digest(&board), facts(&folder)["digest"], "{folder:?}");
        live_on(board);
    }
}

#[test]
fn a_snapshot_of_every_version_gives_the_state_that_it_gave() {
    for folder in versions() {
        let all = commands(&folder, "snapshot.aof", "JOB.LOAD");
        let board = load(all.iter().map(|part| &part[..])).unwrap();
        assert_eq!(digest(&board), facts(&folder)["digest"], "{folder:?}");
        live_on(board);
    }
}

/// Of the version that is being written: a change of the format needs a fixture of its own.
#[test]
fn the_fixture_of_this_version_holds_every_effect() {
    let folder = versions().into_iter().find(|folder| folder.ends_with(env!("CARGO_PKG_VERSION")));
    let facts = facts(&folder.expect("make fixtures"));
    let tags: Vec<u8> = facts["effects"].split(' ').map(|tag| tag.parse().unwrap()).collect();
    assert_eq!(tags, Effect::TAGS);
}

#[test]
fn the_board_of_the_fixtures_holds_something_of_everything() {
    let w = scenario::made();
    let missing: Vec<&u8> = Effect::TAGS.iter().filter(|tag| !w.tags.contains(tag)).collect();
    assert!(missing.is_empty(), "no effect of these: {missing:?}");
    let (mut fields, mut events) = (Fields::empty(), Vec::new());
    let every = Page { count: 10_000, ..Page::default() };
    for slot in w.board.list(&every).0 {
        let record = w.board.record_of(slot).unwrap();
        fields |= record.present();
        events.extend(record.history().iter().map(|entry| entry.event.name()));
    }
    assert_eq!(fields, Fields::all());
    events.sort_unstable();
    events.dedup();
    assert_eq!(events.len(), 25, "{events:?}");
    let absent: Vec<State> = State::ALL.into_iter().filter(|state| w.board.count(*state) == 0).collect();
    assert_eq!(absent, [], "states");
    assert!(parts(&w.board).concat().len() < 64 << 10, "small");
}
