//! Blocked claims: parking them, and handing them work.
//!
//! The server parks a client beside its board's key (see `park`), so that changes of the slot or
//! the server's role end the wait as they do for the server's own commands. A line of our own
//! chooses who is served: the server would ask every client, for each job.
//!
//! A command or the timer chooses clients at its end: it claims the jobs for them then. The client
//! gets its reply when the turn of the event loop ends: unblocking it makes the server run its
//! timeout callback, at once or (Redis 8) a little later, and that writes the jobs. Whatever ends
//! the wait in between finds the client blocked as before: when it has disconnected, or was
//! unblocked with an error, the jobs are given back; when it loses its jobs again in the same turn,
//! it keeps waiting at its old position.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use board::{Board, Protocol, Refusal};

use crate::redis::cell::MainCell;
use crate::redis::ctx::Ctx;
use crate::redis::park::{self, Chosen, Client, Handle, Parked};
use crate::redis::strings::Key;
use crate::replies::endings::begin;
use crate::replies::errors::CommandError;
use crate::replies::records::write_records;
use crate::runtime::batch_queue::Batches;
use crate::runtime::blocked_batches;
use crate::runtime::blocked_waits;
use crate::runtime::board_value::OpenKey;
use crate::runtime::choosing::{choose, InLine};
use crate::runtime::claim_queue::{BoardKey, Wait, Waiter, Waiters};
use crate::runtime::commit::Commit;
use crate::runtime::offers::offer;
use crate::runtime::timer;
use crate::runtime::touched::{Touch, Touched};

/// What a client was chosen for, until it gets its reply.
struct Served {
    waiter: Waiter<Handle>,
    /// The slots and tokens of its claims.
    claims: Vec<(u32, u64)>,
    /// Whether the reply is that it has lost the right to them; then nothing was claimed for it.
    revoked: bool,
}

impl Served {
    /// Its jobs, as far as it still holds them.
    fn held(&self, board: &Board) -> Vec<u32> {
        let holds = |slot: u32, token: u64| board.record_of(slot).is_some_and(|r| r.token() == Some(token));
        self.claims.iter().filter(|(slot, token)| holds(*slot, *token)).map(|(slot, _)| *slot).collect()
    }
}

static WAITERS: MainCell<Option<Waiters<Handle>>> = MainCell::new(None);
/// Whether anybody waits: each command asks.
static ANY: AtomicBool = AtomicBool::new(false);
/// Clients that were chosen and have no reply yet.
static SERVED: MainCell<Chosen<Served>> = MainCell::new(Chosen::NONE);
/// What was meant for clients that have disconnected.
static RETURNED: MainCell<Vec<Served>> = MainCell::new(Vec::new());
/// Clients that wait for several jobs at once, and whose time is over.
static OVER: MainCell<Vec<u64>> = MainCell::new(Vec::new());
/// Boards for which clients wait, that something outside a plain command has touched, or where a commit
/// has left something to do.
static TOUCHED: MainCell<Touched> = MainCell::new(Touched::NONE);

pub(super) fn with<R>(work: impl FnOnce(&mut Waiters<Handle>) -> R) -> R {
    WAITERS.with(|waiters| {
        let waiters = waiters.get_or_insert_with(Waiters::default);
        let done = work(waiters);
        ANY.store(waiters.len() > 0, Relaxed);
        done
    })
}

/// How many clients wait for work.
pub fn waiting() -> usize {
    with(|waiters| waiters.len())
}

/// How many clients wait for a job of this queue.
pub fn waiting_for(ctx: Ctx, key: &Key, queue: &[u8]) -> usize {
    with(|waiters| waiters.count_for(&(ctx.db(), key.bytes().to_vec()), queue))
}

/// Parks a client until there is work, for `timeout` ms; 0 for ever.
pub fn park(client: &Client, timeout: i64, wait: Wait) {
    let number = park::next_number();
    let place = (client.ctx.db(), client.board.bytes().to_vec());
    let Some(handle) = park::park::<BlockedClaim>(client, timeout, number) else { return };
    let batch = wait.batch;
    with(|waiters| {
        waiters.add(number, Waiter { handle, place: place.clone(), wait });
        if let (Some(batch), Some(all)) = (batch, waiters.batches(&place)) {
            all.came(number, &batch);
        }
    });
}

/// A client that waits in a claim.
struct BlockedClaim;

impl Parked for BlockedClaim {
    const WHAT: &'static str = "a blocked claim";

    fn ends(number: u64) -> bool {
        let takes_what_there_is = with(|waiters| waiters.end_batch(number)).is_some();
        if takes_what_there_is {
            OVER.with(|over| over.push(number));
        }
        !takes_what_there_is
    }

    fn over(ctx: Ctx, number: u64) {
        let waiter = with(|waiters| waiters.remove(number));
        match SERVED.with(|served| served.remove(number)) {
            None => {
                begin(ctx.reply(), waiter.as_ref().and_then(|waiter| waiter.wait.ending.as_ref()));
                ctx.reply().null_array();
            }
            Some(served) => tell(ctx, &served),
        }
    }

    fn gone(number: u64) {
        with(|waiters| waiters.remove(number));
        if let Some(untold) = SERVED.with(|served| served.remove(number)) {
            RETURNED.with(|returned| returned.push(untold));
        }
    }
}

/// Replies with the jobs that a client was chosen for, as far as it still holds them.
fn tell(ctx: Ctx, served: &Served) {
    let (_, name) = &served.waiter.place;
    let key = ctx.key(name);
    let mut open = ctx.open(&key);
    let board = open.as_mut().ok().and_then(|open| open.value()).map(|value| &value.board);
    let held = board.map(|board| served.held(board)).unwrap_or_default();
    let wait = &served.waiter.wait;
    if served.revoked && wait.ending.is_none() {
        return ctx.reply().error(park::REVOKED);
    }
    if board.is_some_and(Board::broken) && wait.ending.is_none() {
        return ctx.reply().error(&Refusal::Broken.to_string());
    }
    begin(ctx.reply(), wait.ending.as_ref());
    match board.filter(|_| !held.is_empty()) {
        Some(board) => write_records(ctx.reply(), board, &held, &wait.shape),
        None => ctx.reply().null_array(),
    }
}

/// Something outside a plain command has touched this board: it is looked at when the turn of the
/// event loop ends, if clients wait for it.
pub fn touch(place: BoardKey) {
    if with(|waiters| waiters.waits_for(&place)) {
        with(|waiters| waiters.batches(&place).map(Batches::forget));
        look_at(place, Touch::All);
    }
}

/// Has the end of the turn look at a board.
pub(super) fn look_at(place: BoardKey, touch: Touch) {
    TOUCHED.with(|touched| touched.add(place, touch));
}

/// Touches every board of these databases for which clients wait.
pub fn touch_databases(dbs: &[i32]) {
    let places: Vec<BoardKey> = with(|w| w.places().filter(|(db, _)| dbs.contains(db)).cloned().collect());
    for place in &places {
        with(|waiters| waiters.batches(place).map(Batches::forget));
    }
    places.into_iter().for_each(|place| look_at(place, Touch::All));
}

/// Returns clients that have lost all their jobs since they were chosen to their positions in line.
/// At the end of a turn of the event loop, before others are served.
pub fn recall_chosen(ctx: Ctx) {
    for place in recall(|served| !still_holds(ctx, served)) {
        touch(place);
    }
}

/// Returns the chosen clients that have no reply yet, and lost what they were chosen for, to their
/// positions in line. Returns the boards that they wait for.
fn recall(lost: impl Fn(&Served) -> bool) -> Vec<BoardKey> {
    let mut places = Vec::new();
    for (number, (handle, served)) in SERVED.with(Chosen::take_fresh) {
        if !served.revoked && !served.waiter.wait.over && lost(&served) {
            places.push(served.waiter.place.clone());
            with(|waiters| waiters.add(number, served.waiter));
        } else {
            SERVED.with(|all| all.insert(number, handle, served));
        }
    }
    places
}

fn still_holds(ctx: Ctx, served: &Served) -> bool {
    let (db, name) = &served.waiter.place;
    if !ctx.select(*db) {
        return false;
    }
    let key = ctx.key(name);
    ctx.open(&key)
        .is_ok_and(|mut open| open.value().is_some_and(|value| !served.held(&value.board).is_empty()))
}

fn is_broken(ctx: Ctx, (db, name): &BoardKey) -> bool {
    let lost = |mut open: OpenKey<'_>| open.value().is_some_and(|value| value.is_lost());
    ctx.select(*db) && ctx.open(&ctx.key(name)).is_ok_and(lost)
}

/// Serves the clients that wait for touched boards. At the end of a turn of the event loop.
pub fn serve_touched(ctx: Ctx) {
    let nothing = TOUCHED.with(|touched| touched.is_empty()) && OVER.with(|over| over.is_empty());
    if nothing && RETURNED.with(|returned| returned.is_empty()) {
        return;
    }
    end_batches(ctx);
    if !ctx.is_primary() {
        RETURNED.with(Vec::clear);
        return TOUCHED.with(|touched| *touched = Touched::NONE);
    }
    if !ctx.may_write() {
        return;
    }
    // If the server may not write now, both are tried again in its next turn.
    for untold in RETURNED.with(std::mem::take) {
        let done = on_board(ctx, &untold.waiter.place, |commit| {
            let env = commit.env;
            for (slot, token) in &untold.claims {
                if let Some(effect) = commit.board().undo_claim(&env, *slot, *token) {
                    commit.apply(effect)?;
                }
            }
            Ok(())
        });
        if !done {
            RETURNED.with(|returned| returned.push(untold));
        }
    }
    for (place, touch) in TOUCHED.with(std::mem::take) {
        if matches!(touch, Touch::All) {
            with(|waiters| waiters.rejoin(&place));
        }
        if is_broken(ctx, &place) {
            // The board gives nothing: the clients get that as an error.
            for (number, waiter) in with(|waiters| waiters.all_at(&place)) {
                chosen(number, waiter, Vec::new(), false);
            }
            continue;
        }
        let done = on_board(ctx, &place, |commit| {
            commit.settle_due()?;
            match &touch {
                Touch::All => commit.board().wake_all(),
                Touch::Queues(queues) => queues.iter().for_each(|queue| commit.board().wake_named(queue)),
            }
            Ok(())
        });
        if !done {
            look_at(place, touch);
        }
    }
}

/// Gives what there is to clients that wait for several jobs at once, and whose time is over.
fn end_batches(ctx: Ctx) {
    for number in OVER.with(std::mem::take) {
        let Some(place) = with(|waiters| waiters.end_batch(number)) else { continue };
        if ctx.is_primary() && ctx.may_write() {
            on_board(ctx, &place, |commit| {
                commit.serve_first()?;
                choose(commit, number).map(drop)
            });
        }
        if let Some(waiter) = with(|waiters| waiters.remove(number)) {
            chosen(number, waiter, Vec::new(), false);
        }
    }
}

/// Unblocks the chosen clients. At the end of a turn of the event loop.
pub fn unblock_chosen() {
    park::unblock_chosen(&SERVED);
}

/// Works on the board at a place, if there still is one. Returns false when the server may not
/// write to it now.
fn on_board(
    ctx: Ctx,
    (db, name): &BoardKey,
    work: impl FnOnce(&mut Commit<'_>) -> Result<(), CommandError>,
) -> bool {
    let key = ctx.key(name);
    if !ctx.select(*db) || !ctx.holds_board(&key) {
        return true;
    }
    let allowed = ctx.allows_write_to(&key);
    if allowed {
        // A refusal means a broken board: nothing is done on it.
        let _ = Commit::outside(ctx, &key, work);
    }
    allowed
}

/// Lets a client get its reply when the turn of the event loop ends.
pub(super) fn chosen(number: u64, waiter: Waiter<Handle>, claims: Vec<(u32, u64)>, revoked: bool) {
    let handle = waiter.handle;
    SERVED.with(|served| served.insert(number, handle, Served { waiter, claims, revoked }));
}

/// Gives work to the clients that wait for this board, in the order of their arrival.
pub fn serve(commit: &mut Commit<'_>) {
    let nobody_served = SERVED.with(|served| served.is_empty());
    if nobody_served && !ANY.load(Relaxed) {
        return leave(commit.board());
    }
    let place = (commit.ctx.db(), commit.key.bytes().to_vec());
    if nobody_served && !with(|waiters| waiters.waits_for(&place)) {
        return leave(commit.board());
    }
    blocked_batches::notice_emptied(commit, &place);
    if commit.ctx.in_transaction() {
        let all = commit.board().roused() | commit.board().lingered() | commit.new;
        let queues = woken(commit.board());
        commit.board().nobody_waits();
        return look_at(place, if all { Touch::All } else { Touch::Queues(queues.into_iter().collect()) });
    }
    // A worker that was quiet on a deleted board is not quiet on a new one.
    if commit.board().roused() || commit.new {
        with(|waiters| waiters.rejoin(&place));
        commit.board().wake_all();
        if commit.new {
            with(|waiters| waiters.batches(&place).map(Batches::forget));
        }
    }
    if commit.board().taken() {
        // Clients that were chosen for jobs that came back are before all others.
        let board = &*commit.board();
        recall(|served| served.waiter.place == place && served.held(board).is_empty());
    }
    commit.board().lingered();
    let queues = woken(commit.board());
    let batches_for = with(|waiters| waiters.has_batches()).then(|| queues.clone());
    let mut line = InLine { queues: queues.len(), commit, place: &place };
    let rest = offer(queues, &mut line);
    let rest: BTreeSet<Vec<u8>> = rest.into_iter().collect();
    if let Some(queues) = batches_for {
        // Those who wait for several jobs at once come after all others.
        let queues: Vec<_> = queues.into_iter().filter(|queue| !rest.contains(queue)).collect();
        blocked_batches::serve(commit, &place, &queues);
        blocked_batches::notice_emptied(commit, &place);
    }
    if !rest.is_empty() {
        timer::look(place.0, &place.1);
        look_at(place, Touch::Queues(rest));
    }
}

/// The queues that have got jobs since the last call.
fn woken(board: &mut Board) -> Vec<Vec<u8>> {
    let mut queues = Vec::new();
    board.woken(|board, queue| queues.push(board.queue_named(queue).to_vec()));
    queues
}

/// No client waits for a claim on this board.
fn leave(board: &mut Board) {
    match blocked_waits::anybody_waits() {
        true => board.nobody_waits(),
        false => board.leave_unattended(),
    }
}
