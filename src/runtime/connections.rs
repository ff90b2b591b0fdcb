//! Connections that carry session claims and registrations.
//!
//! The server tells that a client has gone in the midst of whatever it does; that is only
//! noted. At the end of the event loop's turn the boards learn of it, and the timer's next
//! turn, which is taken at once, ends the claims.

use std::collections::{BTreeMap, BTreeSet};

use crate::redis::cell::MainCell;
use crate::redis::ctx::Ctx;
use crate::runtime::claim_queue::BoardKey;
use crate::runtime::timer;

type Places = BTreeSet<BoardKey>;

/// Where each connection carries claims, or did.
static CONNECTIONS: MainCell<BTreeMap<u64, Places>> = MainCell::new(BTreeMap::new());
/// Connections that have closed since the last turn.
static CLOSED: MainCell<BTreeMap<u64, Places>> = MainCell::new(BTreeMap::new());
/// Keys under which a board has come, maybe with claims that connections carry.
static ARRIVED: MainCell<Places> = MainCell::new(BTreeSet::new());
/// Boards that connections carried something of when this server was a primary.
static LEFT: MainCell<Places> = MainCell::new(BTreeSet::new());

/// Workers whose registrations ended in the last turn with their connections, and where.
static DEPARTED: MainCell<BTreeSet<(BoardKey, Vec<u8>)>> = MainCell::new(BTreeSet::new());

/// Whether the connection of a worker's registration has just closed. Those on which it waits
/// for jobs are closing too, it may be, though the server has not noticed yet.
pub fn has_departed(place: &BoardKey, worker: &[u8]) -> bool {
    DEPARTED.with(|all| !all.is_empty() && all.contains(&(place.clone(), worker.to_vec())))
}

/// A connection carries a claim or a registration of that board.
pub fn note(connection: u64, db: i32, key: &[u8]) {
    CONNECTIONS.with(|all| all.entry(connection).or_default().insert((db, key.to_vec())));
}

/// Something has come under a key by another way than a command of ours.
pub fn arrived(place: BoardKey) {
    if CONNECTIONS.with(|all| !all.is_empty()) || CLOSED.with(|all| !all.is_empty()) {
        ARRIVED.with(|all| all.insert(place));
    }
}

/// Two databases have changed places.
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

/// The server is no primary any more: its connections end nothing.
pub fn forget() {
    for all in [&CONNECTIONS, &CLOSED] {
        let places = all.with(std::mem::take).into_values().flatten();
        LEFT.with(|left| left.extend(places));
    }
}

/// A connection has closed.
pub fn closed(connection: u64) {
    if let Some(places) = CONNECTIONS.with(|all| all.remove(&connection)) {
        CLOSED.with(|all| all.insert(connection, places));
    }
}

/// Tells boards of the connections that have closed, and lets the timer see to them. At the
/// end of the event loop's turn.
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
