//! Clients that wait for something to happen on a board, without taking work: `JOB.WAIT`.
//!
//! Each command, each batch from a primary and each tick of the timer reports at its end what has
//! changed; clients that have got what they waited for are chosen then, and get their reply when
//! the turn of the event loop ends. Changes from outside (a key is deleted or created, databases
//! are swapped, a file is loaded) are looked at when the turn ends. All of this works on replicas
//! too.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use board::{Board, Claim, Refusal};

use crate::redis::cell::MainCell;
use crate::redis::clock;
use crate::redis::ctx::Ctx;
use crate::redis::park::{self, Chosen, Client, Handle, Parked};
use crate::redis::strings::Key;
use crate::replies::output::write_output;
use crate::replies::records::write_found;
use crate::runtime::claim_queue::BoardKey;
use crate::runtime::timer;
use crate::runtime::wait_index::{Seen, Sight, Want, Watcher, Watchers};
use crate::runtime::world;

static WATCHERS: MainCell<Option<Watchers<Handle>>> = MainCell::new(None);
/// Whether anybody waits: each command asks.
static ANY: AtomicBool = AtomicBool::new(false);
/// Clients that are to get their reply.
static CHOSEN: MainCell<Chosen<Watcher<Handle>>> = MainCell::new(Chosen::NONE);
/// Boards that something outside a command has touched.
static TOUCHED: MainCell<BTreeSet<BoardKey>> = MainCell::new(BTreeSet::new());
/// Boards that are absent, and may have moved to another node with their slot: since when, in ms of
/// [`clock::elapsed_ms`].
static AWAY: MainCell<BTreeMap<BoardKey, i64>> = MainCell::new(BTreeMap::new());
/// A replica gets the deletion of a board before it knows that the slot has moved. For this many ms
/// it waits for the server to redirect its clients.
const REPLICA_PATIENCE: i64 = 5_000;
/// Boards that a transaction has changed, with the queues that got work there.
static LATER: MainCell<BTreeMap<BoardKey, BTreeSet<Vec<u8>>>> = MainCell::new(BTreeMap::new());

fn with<R>(work: impl FnOnce(&mut Watchers<Handle>) -> R) -> R {
    WATCHERS.with(|watchers| {
        let watchers = watchers.get_or_insert_with(Watchers::default);
        let done = work(watchers);
        ANY.store(watchers.len() > 0, Relaxed);
        done
    })
}

/// How many clients wait.
pub fn waiting() -> usize {
    with(|watchers| watchers.len())
}

/// Whether any client waits without taking work.
pub fn anybody_waits() -> bool {
    ANY.load(Relaxed)
}

/// What is known of a job.
pub fn sight(board: &Board, id: &[u8]) -> Sight {
    let slot = board.find(id)?;
    let record = board.record_of(slot)?;
    let written = board.output_end(slot);
    Some(Seen { ended: record.state().ended(), version: record.version(), written })
}

/// Whether a reader that has read so many chunks of a job's output need not wait.
pub fn is_unread(board: &Board, id: &[u8], since: u64) -> bool {
    sight(board, id).is_none_or(|seen| seen.ended || seen.written != since)
}

/// Whether a claim over these queues, empty for every queue, would get a job.
pub fn claimable(board: &Board, queues: &[&[u8]]) -> bool {
    board.claimable(&Claim { queues, ..Claim::default() }, world::now())
}

/// Parks a client whose condition is not met, for `timeout` ms; 0 for ever.
pub fn wait(client: &Client, timeout: i64, want: Want) {
    let (ctx, key) = (client.ctx, &client.board);
    let number = park::next_number();
    let Some(handle) = park::park::<Waiting>(client, timeout, number) else { return };
    let place = (ctx.db(), key.bytes().to_vec());
    let mut open = ctx.open(key).ok();
    let mut value = open.as_mut().and_then(|open| open.value());
    if let (Some(value), Want::Claimable(queues)) = (&mut value, &want) {
        let queues: Vec<&[u8]> = queues.iter().map(|queue| &queue[..]).collect();
        value.board.wait_for_permits(&queues, world::now());
        timer::bring_forward(ctx, key, value);
    }
    let board = value.map(|value| &value.board);
    // Something outside a command may have changed the jobs in this turn: who waits for them already sees it first.
    let mut met = BTreeSet::new();
    for id in want.ids() {
        with(|w| w.saw_job(&place, id, board.and_then(|board| sight(board, id)), &mut met));
    }
    choose(met);
    with(|w| w.add(number, handle, place, want, |id| board.and_then(|board| sight(board, id))));
}

/// A client that waits without taking work.
struct Waiting;

impl Parked for Waiting {
    const WHAT: &'static str = "a wait";

    fn over(ctx: Ctx, number: u64) {
        let missed = with(|watchers| watchers.remove(number));
        // At the end of its time a reader learns that nothing new is there, and the state.
        let reads = |watcher: &Watcher<Handle>| matches!(watcher.want, Want::Output { .. });
        let (chosen, missed) = match CHOSEN.with(|chosen| chosen.remove(number)) {
            None if missed.as_ref().is_some_and(reads) => (missed, None),
            chosen => (chosen, missed.map(|watcher| watcher.want)),
        };
        match chosen {
            Some(watcher) if !park::is_permitted(ctx, number, &watcher.place.1) => {
                ctx.reply().error(park::REVOKED);
            }
            Some(watcher) => tell(ctx, &watcher),
            None if matches!(missed, Some(Want::Jobs { .. })) => ctx.reply().null_array(),
            None => ctx.reply().null(),
        }
    }

    fn gone(number: u64) {
        with(|watchers| watchers.remove(number));
        CHOSEN.with(|chosen| chosen.remove(number));
    }
}

fn tell(ctx: Ctx, watcher: &Watcher<Handle>) {
    let key = ctx.key(&watcher.place.1);
    let mut open = ctx.open(&key).ok();
    let board = open.as_mut().and_then(|open| open.value()).map(|value| &value.board);
    if board.is_some_and(Board::broken) {
        return ctx.reply().error(&Refusal::Broken.to_string());
    }
    if let Want::Output { id, since, count } = &watcher.want {
        return write_output(ctx.reply(), board, id, *since, *count);
    }
    let Want::Jobs { ids, shape, .. } = &watcher.want else { return ctx.reply().ok() };
    if let Err(fault) = write_found(ctx.reply(), board, ids.iter().map(|id| &id[..]), shape) {
        ctx.reply().error(&fault.to_string());
    }
}

/// Makes a board collect its changes, before it changes, if clients wait for any of its jobs.
pub fn listen(board: &mut Board) {
    board.watch(anybody_waits() && with(|watchers| watchers.any_follows()));
}

/// The queues of a board that have got work since it was last asked; they stay marked.
pub fn woken(board: &Board) -> Vec<Vec<u8>> {
    match anybody_waits() {
        true => board.woken_names().map(<[u8]>::to_vec).collect(),
        false => Vec::new(),
    }
}

/// Chooses the clients that have got what they waited for, after a change of a board. `woken` are
/// the queues that may have work.
pub fn notice(ctx: Ctx, key: &Key, board: &mut Board, woken: Vec<Vec<u8>>) {
    if !anybody_waits() {
        return;
    }
    let place = (ctx.db(), key.bytes().to_vec());
    if !with(|watchers| watchers.waits_at(&place)) {
        return;
    }
    let mut met = BTreeSet::new();
    board.changed(|board, id| with(|w| w.saw_job(&place, id, sight(board, id), &mut met)));
    choose(met);
    if ctx.in_transaction() {
        LATER.with(|later| later.entry(place).or_default().extend(woken));
    } else {
        look_at_board(board, &place, woken);
    }
}

/// Chooses the clients that wait for a condition of the whole board.
fn look_at_board(board: &mut Board, place: &BoardKey, woken: impl IntoIterator<Item = Vec<u8>>) {
    let mut met = BTreeSet::new();
    if with(|watchers| watchers.waits_for_work(place)) {
        for queue in woken {
            if board.gives(&[&queue], world::now()) {
                with(|watchers| watchers.saw_work(place, &queue, &mut met));
            }
        }
        // When one queue gives jobs again, others that were not woken may.
        if with(|watchers| watchers.waits_for_any_work(place)) && board.gives(&[], world::now()) {
            with(|watchers| watchers.saw_any_work(place, &mut met));
        }
    }
    with(|watchers| watchers.saw_jobs(place, board.live(), &mut met));
    choose(met);
}

fn choose(met: BTreeSet<u64>) {
    for number in met {
        if let Some(watcher) = with(|watchers| watchers.remove(number)) {
            CHOSEN.with(|chosen| chosen.insert(number, watcher.handle, watcher));
        }
    }
}

/// Something outside a command has touched what is under a key.
pub fn touch(place: BoardKey) {
    if anybody_waits() && with(|watchers| watchers.waits_at(&place)) {
        TOUCHED.with(|touched| touched.insert(place));
    }
}

/// Touches every board of the databases that `which` names.
pub fn touch_databases(which: impl Fn(i32) -> bool) {
    let places: Vec<BoardKey> = with(|w| w.places().filter(|(db, _)| which(*db)).cloned().collect());
    TOUCHED.with(|touched| touched.extend(places));
}

/// Looks at touched boards. At the end of a turn of the event loop, after blocked claims have been
/// served.
pub fn look_at_touched(ctx: Ctx) {
    let nothing = TOUCHED.with(|touched| touched.is_empty()) && LATER.with(|later| later.is_empty());
    if nothing || ctx.is_loading() {
        return;
    }
    for (place, woken) in LATER.with(std::mem::take) {
        on_board(ctx, &place, |board| {
            if let Some(board) = board {
                look_at_board(board, &place, woken);
            }
        });
    }
    for place in TOUCHED.with(std::mem::take) {
        on_board(ctx, &place, |board| {
            if board.is_some() || !may_be_away(ctx, &place) {
                AWAY.with(|away| away.remove(&place));
                look_at_all(board, &place);
            }
        });
    }
}

/// Whether an absent board may be on another node: then the server redirects its clients, or it is
/// looked at again.
fn may_be_away(ctx: Ctx, place: &BoardKey) -> bool {
    if !ctx.is_cluster() || !with(|watchers| watchers.waits_at(place)) {
        return false;
    }
    let now = clock::elapsed_ms();
    let since = AWAY.with(|away| *away.entry(place.clone()).or_insert(now));
    match ctx.is_primary() {
        true => !ctx.serves(&ctx.key(&place.1)),
        false => now - since < REPLICA_PATIENCE,
    }
}

/// Looks again at boards that may have moved. Called several times a second.
pub fn look_again() {
    AWAY.with(|away| TOUCHED.with(|touched| touched.extend(away.keys().cloned())));
}

fn on_board(ctx: Ctx, place: &BoardKey, work: impl FnOnce(Option<&mut Board>)) {
    let (db, name) = place;
    if !ctx.select(*db) {
        return;
    }
    let key = ctx.key(name);
    let mut open = ctx.open(&key).ok();
    match open.as_mut().and_then(|open| open.value()) {
        Some(value) if value.is_lost() => choose(with(|watchers| watchers.all_at(place))),
        // The next part of the board touches it again.
        Some(value) if value.is_broken() => {}
        None => work(None),
        Some(value) => {
            work(Some(&mut value.board));
            timer::bring_forward(ctx, &key, value);
        }
    }
}

/// Checks all conditions at a place. An absent board counts as one whose jobs have been removed.
fn look_at_all(board: Option<&mut Board>, place: &BoardKey) {
    let mut met = BTreeSet::new();
    let there = board.as_deref();
    for id in with(|watchers| watchers.jobs_at(place)) {
        let sight = there.and_then(|board| sight(board, &id));
        with(|watchers| watchers.saw_job(place, &id, sight, &mut met));
    }
    with(|watchers| watchers.saw_jobs(place, there.map_or(0, Board::live), &mut met));
    choose(met);
    if let Some(board) = board {
        let queues = board.busy_names().map(<[u8]>::to_vec).collect::<Vec<_>>();
        look_at_board(board, place, queues);
    }
}

/// Unblocks the chosen clients. At the end of a turn of the event loop.
pub fn unblock_chosen() {
    park::unblock_chosen(&CHOSEN);
}
