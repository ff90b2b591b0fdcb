//! Connections that carry session claims and registrations.
//!
//! The server reports a closed connection in the middle of other work; the callback only records
//! it. At the end of the turn of the event loop the boards get to know it, and the next tick of the
//! timer, which follows at once, ends the claims.

use std::collections::{BTreeMap, BTreeSet};

use crate::redis::cell::MainCell;
use crate::redis::ctx::Ctx;
use crate::runtime::claim_queue::BoardKey;
use crate::runtime::timer;

type Places = BTreeSet<BoardKey>;

/// The boards on which each connection carries claims, or did.
static CONNECTIONS: MainCell<BTreeMap<u64, Places>> = MainCell::new(BTreeMap::new());
/// Connections that have closed since the last turn.
static CLOSED: MainCell<BTreeMap<u64, Places>> = MainCell::new(BTreeMap::new());
/// Keys that have got a board, which may have claims that connections carry.
static ARRIVED: MainCell<Places> = MainCell::new(BTreeSet::new());
/// Boards of which connections carried something when this server was a primary.
static LEFT: MainCell<Places> = MainCell::new(BTreeSet::new());

/// Connections that carry something on a board since the last turn.
static NOTED: MainCell<BTreeSet<u64>> = MainCell::new(BTreeSet::new());
/// The connections with many boards, and how many of them there were when they were last looked at.
static MANY: MainCell<BTreeMap<u64, usize>> = MainCell::new(BTreeMap::new());
/// As long as a connection has no more boards than this, none of them is looked at.
const FEW: usize = 64;

/// Workers whose registrations ended with their connections in the last turn, and on which boards.
static DEPARTED: MainCell<BTreeSet<(BoardKey, Vec<u8>)>> = MainCell::new(BTreeSet::new());

/// Whether the connection of a worker's registration has just closed. The connections on which the
/// worker waits for jobs may be closing too, although the server has not noticed yet.
pub fn has_departed(place: &BoardKey, worker: &[u8]) -> bool {
    DEPARTED.with(|all| !all.is_empty() && all.contains(&(place.clone(), worker.to_vec())))
}

/// Records that a connection carries a claim or a registration of this board.
pub fn note(connection: u64, db: i32, key: &[u8]) {
    CONNECTIONS.with(|all| {
        let places = all.entry(connection).or_default();
        if places.insert((db, key.to_vec())) && places.len() > FEW {
            NOTED.with(|noted| noted.insert(connection));
        }
    });
}

/// Forgets the boards that are gone, or on which a connection carries nothing any more, each time that
/// their number has doubled: a connection may live as long as the server, and boards may not.
fn forget_boards(ctx: Ctx) {
    for connection in NOTED.with(std::mem::take) {
        let many = CONNECTIONS.with(|all| all.get(&connection).map_or(0, BTreeSet::len));
        if many <= 2 * MANY.with(|all| all.get(&connection).copied().unwrap_or(FEW)) {
            continue;
        }
        let mut places = CONNECTIONS.with(|all| all.remove(&connection)).unwrap_or_default();
        places.retain(|(db, name)| {
            on_board(ctx, *db, name, |board| board.connections().contains(&connection)).unwrap_or(false)
        });
        MANY.with(|all| match places.len() > FEW {
            true => _ = all.insert(connection, places.len()),
            false => _ = all.remove(&connection),
        });
        if !places.is_empty() {
            CONNECTIONS.with(|all| all.insert(connection, places));
        }
    }
}

/// A key has got a value by another way than our commands.
pub fn arrived(place: BoardKey) {
    if CONNECTIONS.with(|all| !all.is_empty()) || CLOSED.with(|all| !all.is_empty()) {
        ARRIVED.with(|all| all.insert(place));
    }
}

/// Two databases have been swapped.
pub fn swap(a: i32, b: i32) {
    let moved = |(db, key): BoardKey| match db {
        _ if db == a => (b, key),
        _ if db == b => (a, key),
        _ => (db, key),
    };
    for all in [&CONNECTIONS, &CLOSED] {
        all.with(|all| {
            all.values_mut()
                .for_each(|places| *places = std::mem::take(places).into_iter().map(moved).collect());
        });
    }
    for all in [&ARRIVED, &LEFT] {
        all.with(|all| *all = std::mem::take(all).into_iter().map(moved).collect());
    }
}

/// The server is no longer a primary: its connections end nothing.
pub fn forget() {
    MANY.with(BTreeMap::clear);
    for all in [&CONNECTIONS, &CLOSED] {
        let places = all.with(std::mem::take).into_values().flatten();
        LEFT.with(|left| left.extend(places));
    }
}

/// A connection has closed.
pub fn closed(connection: u64) {
    MANY.with(|all| all.remove(&connection));
    if let Some(places) = CONNECTIONS.with(|all| all.remove(&connection)) {
        CLOSED.with(|all| all.insert(connection, places));
    }
}

/// Passes closed connections to their boards, and has the timer end what they carried. At the end
/// of a turn of the event loop.
pub fn settle(ctx: Ctx) {
    for (db, name) in LEFT.with(std::mem::take) {
        on_board(ctx, db, &name, |board| board.forget_connections());
    }
    for (db, name) in ARRIVED.with(std::mem::take) {
        for connection in on_board(ctx, db, &name, |board| board.connections()).unwrap_or_default() {
            match CLOSED.with(|all| all.get_mut(&connection).map(|p| p.insert((db, name.clone())))) {
                Some(_) => {}
                None => note(connection, db, &name),
            }
        }
    }
    forget_boards(ctx);
    DEPARTED.with(BTreeSet::clear);
    let mut some = false;
    for (connection, places) in CLOSED.with(std::mem::take) {
        for (db, name) in places {
            let close = |board: &mut board::Board| (board.attended_by(connection), board.close(connection));
            if let Some((workers, true)) = on_board(ctx, db, &name, close) {
                let all = workers.into_iter().map(|worker| ((db, name.clone()), worker));
                DEPARTED.with(|departed| departed.extend(all));
                timer::look(db, &name);
                some = true;
            }
        }
    }
    if some {
        timer::run(ctx);
    }
}

/// Reads or marks the board at a place, if there still is one.
fn on_board<R>(ctx: Ctx, db: i32, name: &[u8], work: impl FnOnce(&mut board::Board) -> R) -> Option<R> {
    if !ctx.select(db) {
        return None;
    }
    let key = ctx.key(name);
    let mut open = ctx.open(&key).ok()?;
    open.value().map(|value| work(&mut value.board))
}
