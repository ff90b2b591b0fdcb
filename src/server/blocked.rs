//! Blocked claims: parking them, and handing them work.
//!
//! The server parks a client on its board's key, so that whatever happens to the key, the
//! slot or the server's role ends the wait as for the server's own commands. Who is served is
//! chosen from a line of our own: the server would ask every client parked on the key, for
//! each job. A chosen client is unblocked by hand; the server then runs its timeout callback
//! at once, inside that call, and there the jobs are written straight from the board.

use redis_module::raw;
use std::collections::BTreeSet;
use std::ffi::c_void;
use std::os::raw::c_int;

use board::Board;

use crate::commands::write_records;
use crate::fault::Fault;
use crate::server::cell::MainCell;
use crate::server::ctx::{Ctx, Key};
use crate::server::load::guard;
use crate::server::{api, ERR, OK};
use crate::turn::Turn;
use crate::waiters::{Place, Waiter, Waiters};

#[derive(Clone, Copy)]
struct Handle(*mut raw::RedisModuleBlockedClient);

/// The client that is being served now.
struct Serving {
    number: u64,
    board: *const Board,
    slots: Vec<u32>,
    fields: board::FieldList,
    replied: bool,
}

static WAITERS: MainCell<Option<Waiters<Handle>>> = MainCell::new(None);
static SERVING: MainCell<Option<Serving>> = MainCell::new(None);
/// Boards that somebody waits for and that something outside a plain command has touched.
static TOUCHED: MainCell<BTreeSet<Place>> = MainCell::new(BTreeSet::new());

fn with<R>(work: impl FnOnce(&mut Waiters<Handle>) -> R) -> R {
    WAITERS.with(|waiters| work(waiters.get_or_insert_with(Waiters::default)))
}

/// How many clients wait for work.
pub fn waiting() -> usize {
    with(|waiters| waiters.len())
}

/// A claim that found nothing and wants to wait.
pub struct Wait {
    /// The claimer's name.
    pub worker: Vec<u8>,
    /// Queues, none for every queue.
    pub queues: Vec<Vec<u8>>,
    /// In which order they are asked.
    pub order: board::Order,
    /// How many jobs at most.
    pub count: usize,
    /// The lease, ms.
    pub lease: Option<i64>,
    /// What to tell of each job.
    pub fields: board::FieldList,
}

/// Parks the client of a call until there is work, for `timeout` ms; 0 for ever.
pub fn park(ctx: Ctx, key: &Key, timeout: i64, wait: Wait) {
    let number = with(Waiters::next_number);
    let place = (ctx.db(), key.bytes().to_vec());
    let mut keys = [key.0];
    // SAFETY: one key of the call's own; the private data is a number, not a pointer.
    let handle = unsafe {
        api!(RedisModule_BlockClientOnKeys(
            ctx.0,
            Some(key_ready),
            Some(unblocked),
            Some(gone),
            timeout,
            keys.as_mut_ptr(),
            1,
            number as usize as *mut c_void,
        ))
    };
    if handle.is_null() {
        return;
    }
    let Wait { worker, queues, order, count, lease, fields } = wait;
    let handle = Handle(handle);
    let waiter = Waiter { handle, place, worker, queues, order, count, lease, fields };
    with(|waiters| waiters.add(number, waiter));
}

/// The key has come, or come back: looked at when the event loop's turn ends.
unsafe extern "C" fn key_ready(
    ctx: *mut raw::RedisModuleCtx,
    _argv: *mut *mut raw::RedisModuleString,
    _argc: c_int,
) -> c_int {
    let number = api!(RedisModule_GetBlockedClientPrivateData(ctx)) as usize as u64;
    if let Some(place) = with(|w| w.get(number).map(|waiter| waiter.place.clone())) {
        touch(place);
    }
    ERR
}

/// The wait is over: because there is work, or because it has lasted long enough.
unsafe extern "C" fn unblocked(
    ctx: *mut raw::RedisModuleCtx,
    _argv: *mut *mut raw::RedisModuleString,
    _argc: c_int,
) -> c_int {
    let number = api!(RedisModule_GetBlockedClientPrivateData(ctx)) as usize as u64;
    let reply = Ctx(ctx).reply();
    let serving = SERVING.with(|serving| serving.take_if(|s| s.number == number));
    let Some(mut serving) = serving else {
        with(|waiters| waiters.remove(number));
        reply.null_array();
        return OK;
    };
    guard("a reply to a blocked claim", || {
        // SAFETY: the board is borrowed by the very call that unblocks the client.
        if let Some(board) = unsafe { serving.board.as_ref() } {
            write_records(reply, board, &serving.slots, &serving.fields);
        }
    });
    serving.replied = true;
    SERVING.with(|place| *place = Some(serving));
    OK
}

/// The server is done with the blocked client, however the wait ended.
unsafe extern "C" fn gone(_ctx: *mut raw::RedisModuleCtx, number: *mut c_void) {
    with(|waiters| waiters.remove(number as usize as u64));
}

/// Something outside a plain command has touched that board: looked at when the event loop's
/// turn ends, if anybody waits for it.
pub fn touch(place: Place) {
    if with(|waiters| waiters.waits_for(&place)) {
        TOUCHED.with(|touched| touched.insert(place));
    }
}

/// Touches every board of these databases that somebody waits for.
pub fn touch_databases(dbs: &[i32]) {
    let places: Vec<Place> = with(|w| w.places().filter(|(db, _)| dbs.contains(db)).cloned().collect());
    TOUCHED.with(|touched| touched.extend(places));
}

/// Serves those who wait for boards that were touched. At the end of the event loop's turn.
pub fn serve_touched(ctx: Ctx) {
    if TOUCHED.with(|touched| touched.is_empty()) {
        return;
    }
    if !ctx.is_primary() {
        return TOUCHED.with(BTreeSet::clear);
    }
    if !ctx.may_write() {
        return;
    }
    for (db, name) in TOUCHED.with(std::mem::take) {
        if !ctx.select(db) {
            continue;
        }
        let key = ctx.key(&name);
        if !ctx.holds_board(&key) || !ctx.allows_write_to(&key) {
            continue;
        }
        // A refusal is a broken board: nobody is served from it.
        let _ = Turn::run(ctx, &key, |turn| {
            turn.settle_due()?;
            turn.board().wake_all();
            Ok(())
        });
    }
}

/// Hands work to those who wait for this board, in the order in which they came.
pub fn serve(turn: &mut Turn<'_>) {
    if waiting() == 0 {
        return turn.board().woken(|_, _| ());
    }
    let place = (turn.ctx.db(), turn.key.bytes().to_vec());
    if !with(|waiters| waiters.waits_for(&place)) {
        return turn.board().woken(|_, _| ());
    }
    if turn.ctx.in_transaction() {
        turn.board().woken(|_, _| ());
        TOUCHED.with(|touched| touched.insert(place));
        return;
    }
    // What is given back to a queue by a client that has gone wakes it anew.
    while turn.board().has_woken() {
        let mut queues = Vec::new();
        turn.board().woken(|board, queue| queues.push(board.queue_named(queue).to_vec()));
        for queue in queues {
            while let Some(number) = with(|waiters| waiters.first_for(&place, &queue)) {
                match hand_over(turn, number) {
                    Ok(true) => {}
                    // Nothing left, or a board that broke under it.
                    Ok(false) | Err(_) => break,
                }
            }
        }
    }
}

/// Claims for one that waits, and replies. False when there is nothing for it.
fn hand_over(turn: &mut Turn<'_>, number: u64) -> Result<bool, Fault> {
    let Some(waiter) = with(|waiters| waiters.remove(number)) else { return Ok(true) };
    let env = turn.env;
    let mut slots = Vec::new();
    let done = waiter.with_claim(|claim| {
        while slots.len() < waiter.count {
            let Some(claimed) = turn.board().claim(&env, claim, slots.len() as u64) else { break };
            slots.push(claimed.slot);
            turn.apply(claimed)?;
        }
        Ok(())
    });
    if slots.is_empty() {
        with(|waiters| waiters.add(number, waiter));
        return done.map(|()| false);
    }
    let serving =
        Serving { number, board: turn.board(), slots, fields: waiter.fields.clone(), replied: false };
    SERVING.with(|place| *place = Some(serving));
    // SAFETY: the handle is that of a client which the server has not taken from us: `gone`
    // would have removed the waiter. The board outlives the call.
    unsafe { api!(RedisModule_UnblockClient(waiter.handle.0, std::ptr::null_mut())) };
    let served = SERVING.with(Option::take);
    if let Some(unserved) = served.filter(|s| !s.replied) {
        for slot in unserved.slots {
            if let Some(effect) = turn.board().undo_claim(slot) {
                turn.apply(effect)?;
            }
        }
    }
    done.map(|()| true)
}
