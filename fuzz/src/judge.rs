//! What must hold after whatever happens.

use fake_server::{server, Place, Server, DATABASES, REPLICA};
use jobboard::module::board_type::board_of;
use jobboard::runtime::board_value::BoardValue;
use std::collections::BTreeMap;
use std::ffi::c_void;

/// What there is: the boards, by their revisions and digests.
pub type Sight = BTreeMap<Place, (u64, u128)>;

/// More jobs than this are too slow to look at after each command.
const MANY: usize = 2_000;

pub fn value(place: &Place) -> Option<&'static BoardValue> {
    // SAFETY: what stands under a key is ours, and nothing happens while it is used.
    server().value(place).and_then(|value| unsafe { board_of(value) })
}

/// Looks at all boards: each is whole, and its copy equal. One of a revision that was seen last
/// is as it was then: where that may not be so, give nothing as last seen.
pub fn look(last: &Sight) -> Sight {
    assert_eq!(server().warnings(), Vec::<String>::new());
    let mut sight = Sight::new();
    let mut copies = Sight::new();
    for place in server().places() {
        let Some(BoardValue { board, .. }) = value(&place) else { continue };
        assert!(!board.broken(), "{place:?} is broken");
        let (db, key) = place;
        let original = (db % REPLICA, key);
        let seen = last.get(&original).filter(|(revision, _)| *revision == board.revision());
        let now = seen.copied().unwrap_or_else(|| {
            assert_eq!(board.check(), Ok(()), "{original:?}");
            (board.revision(), board.digest())
        });
        match db < DATABASES {
            true => sight.insert(original, now),
            false => copies.insert(original, now),
        };
    }
    assert_eq!(sight, copies, "boards and their copies");
    sight
}

/// Whether a board has become too large to go on with.
pub fn is_large() -> bool {
    server().places().iter().filter_map(value).any(|value| value.board.pieces() > MANY)
}

/// Whether a value is a board that can be trusted.
pub fn is_whole(value: *mut c_void) -> bool {
    // SAFETY: a value of ours, under no key yet.
    unsafe { board_of(value) }.is_some_and(|value| !value.board.broken())
}

/// Whatever has come of the boards can be saved and loaded: by `DUMP` and `RESTORE`, for a replica
/// that has fallen behind, as commands of an append-only file, to and from a file.
pub fn load_again() {
    for way in [restore, Server::resync, rewrite, Server::reload] {
        look(&Sight::new()).keys().for_each(|place| way(server(), place));
    }
    look(&Sight::new());
}

/// What `DUMP` gives, `RESTORE` takes: the same board.
pub fn restore(server: &Server, place: &Place) {
    let Some(strings) = server.dump(place) else { return };
    let digest = value(place).map(|value| value.board.digest());
    // SAFETY: a value of ours, under no key yet.
    let same = |new: *mut c_void| unsafe { board_of(new) }.map(|new| new.board.digest()) == digest;
    assert!(server.restore(place, &strings, same), "what {place:?} was dumped to cannot be restored");
}

/// What a board comes to as commands of an append-only file is the same board.
pub fn rewrite(server: &Server, place: &Place) {
    let to = (2 * REPLICA, place.1.clone());
    server.rewrite(place, &to);
    let digest = |place| value(place).map(|value| value.board.digest());
    assert_eq!(digest(&to), digest(place), "{place:?} and what it was rewritten to");
    server.discard(&to);
}
