//! Keys that have got a value by another way than our commands: RESTORE, RENAME, MOVE, COPY.
//!
//! The server reports them in the middle of other work; what their boards have to do, and who waits
//! for them, is looked at when the turn of the event loop ends.

use std::collections::BTreeSet;

use crate::redis::cell::MainCell;
use crate::redis::ctx::Ctx;
use crate::runtime::blocked_claims;
use crate::runtime::blocked_posts;
use crate::runtime::blocked_waits;
use crate::runtime::claim_queue::BoardKey;
use crate::runtime::connections;
use crate::runtime::timer;

/// Names of keys that have arrived in a database which the server does not tell.
static SOMEWHERE: MainCell<BTreeSet<Vec<u8>>> = MainCell::new(BTreeSet::new());

/// A key has arrived in this database.
pub fn arrived(place: BoardKey) {
    timer::look(place.0, &place.1);
    blocked_claims::touch(place.clone());
    connections::arrived(place.clone());
    blocked_waits::touch(place.clone());
    blocked_posts::touch(place);
}

/// A key has arrived in one of the databases.
pub fn arrived_somewhere(name: &[u8]) {
    SOMEWHERE.with(|names| _ = names.insert(name.to_vec()));
}

/// Looks for these keys in every database. At the end of a turn of the event loop.
pub fn settle(ctx: Ctx) {
    for name in SOMEWHERE.with(std::mem::take) {
        (0..).take_while(|db| ctx.select(*db)).for_each(|db| arrived((db, name.clone())));
    }
}
