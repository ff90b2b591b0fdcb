//! Posts that wait for room on a board: parking them, and posting them when there is room.
//!
//! The end of each command and of each turn of the timer posts what has room by then, in the order
//! of arrival, with its other effects. Everything about the post is decided then, as if it had just
//! come. The client gets its reply when the turn of the event loop ends; if it has disconnected
//! meanwhile, the job stays, as after a reply that was lost.
//!
//! Changes from outside of commands (a key is deleted or created, databases are swapped), and posts
//! that ended their wait before others, are looked at when the turn ends.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use board::{Board, Lack, Refusal};

use crate::config::config;
use crate::redis::cell::MainCell;
use crate::redis::ctx::Ctx;
use crate::redis::park::{self, Chosen, Client, Handle, Parked};
use crate::redis::strings::Key;
use crate::replies::errors::CommandError;
use crate::replies::posted::KeptIds;
use crate::runtime::board_value::OpenKey;
use crate::runtime::claim_queue::BoardKey;
use crate::runtime::commit::Commit;
use crate::runtime::post_queue::{Waiter, WaitingPosts};
use crate::runtime::timer;

/// A post that waits.
pub trait Post {
    /// Posts, and writes the reply; or says what it lacks.
    fn post(&self, commit: &mut Commit<'_>, ids: &mut KeptIds) -> Result<Option<Lack>, CommandError>;

    /// How many bytes it keeps.
    fn bytes(&self) -> usize;
}

#[derive(Clone)]
struct Work {
    handle: Handle,
    post: Rc<dyn Post>,
}

/// The reply that a client gets.
type Answer = Result<KeptIds, String>;

static WAITING: MainCell<Option<WaitingPosts<Work>>> = MainCell::new(None);
/// Whether any post waits: each command asks.
static ANY: AtomicBool = AtomicBool::new(false);
/// Clients that are to get their reply.
static CHOSEN: MainCell<Chosen<Answer>> = MainCell::new(Chosen::NONE);
/// Boards that are looked at when the turn of the event loop ends.
static TOUCHED: MainCell<BTreeSet<BoardKey>> = MainCell::new(BTreeSet::new());

/// The most posts that one command or turn of the timer looks at; the end of the turn does the rest.
const LOOKS: usize = 64;
/// After how many dependencies that its posts looked at it posts no more.
const DEPENDENCIES: usize = 20_000;
/// How long the end of a turn posts at most, but for the last board.
const BUDGET: Duration = Duration::from_micros(900);

fn with<R>(work: impl FnOnce(&mut WaitingPosts<Work>) -> R) -> R {
    WAITING.with(|posts| {
        let posts = posts.get_or_insert_with(WaitingPosts::default);
        let done = work(posts);
        ANY.store(posts.len() > 0, Relaxed);
        done
    })
}

/// How many posts wait, and how many bytes are kept for them.
pub fn waiting() -> (usize, usize) {
    with(|posts| (posts.len(), posts.bytes()))
}

/// The same for one board.
pub fn waiting_at(ctx: Ctx, key: &Key) -> (usize, usize) {
    with(|posts| posts.at(&(ctx.db(), key.bytes().to_vec())))
}

/// Makes a board note where room becomes free, before it changes, if any post waits.
#[inline]
pub fn listen(board: &mut Board) {
    board.watch_room(ANY.load(Relaxed));
}

/// What keeps back a new post to a queue and a group although there may be room: others wait.
pub fn ahead_of(commit: &Commit<'_>, queue: &[u8], group: Option<&[u8]>) -> Option<Lack> {
    let place = (commit.ctx.db(), commit.key.bytes().to_vec());
    with(|posts| posts.ahead_of(&place, queue, group).cloned())
}

/// Parks a client until there is room for its post, for `timeout` ms; 0 for ever. Refuses what would
/// be too many, or too large together.
pub fn park(client: &Client, timeout: i64, lack: Lack, post: Rc<dyn Post>) -> Result<(), CommandError> {
    let (count, bytes) = waiting();
    let adds = post.bytes();
    if count as i64 >= config().max_blocked_posts {
        return Err(Refusal::Limit("max-blocked-posts").into());
    }
    if (bytes + adds) as i64 > config().max_blocked_bytes {
        return Err(Refusal::Limit("max-blocked-bytes").into());
    }
    let number = park::next_number();
    let place = (client.ctx.db(), client.board.bytes().to_vec());
    let Some(handle) = park::park::<BlockedPost>(client, timeout, number) else { return Ok(()) };
    let work = Work { handle, post };
    with(|posts| posts.add(number, Waiter { place: place.clone(), lack, bytes: adds, work }));
    // The end of its own command may have made room after the refusal.
    TOUCHED.with(|touched| touched.insert(place));
    Ok(())
}

/// A client that waits in a post.
struct BlockedPost;

impl Parked for BlockedPost {
    const WHAT: &'static str = "a blocked post";

    fn over(ctx: Ctx, number: u64) {
        let waiter = leave(number);
        match (CHOSEN.with(|chosen| chosen.remove(number)), waiter) {
            (Some(Ok(ids)), _) => ids.write(ctx.reply()),
            (Some(Err(error)), _) => ctx.reply().error(&error),
            (None, Some(waiter)) => ctx.reply().error(&Refusal::Limit(waiter.lack.bound).to_string()),
            (None, None) => ctx.reply().null(),
        }
    }

    fn gone(number: u64) {
        leave(number);
        CHOSEN.with(|chosen| chosen.remove(number));
    }
}

/// A post no longer waits. Those behind it are looked at when the turn of the event loop ends.
fn leave(number: u64) -> Option<Waiter<Work>> {
    let waiter = with(|posts| posts.remove(number))?;
    TOUCHED.with(|touched| touched.insert(waiter.place.clone()));
    Some(waiter)
}

/// Something outside a plain command has touched this board.
pub fn touch(place: BoardKey) {
    if with(|posts| posts.at(&place)).0 > 0 {
        free_all(&place);
        TOUCHED.with(|touched| touched.insert(place));
    }
}

/// Touches every board of the databases that `which` names.
pub fn touch_databases(which: impl Fn(i32) -> bool) {
    let places: Vec<BoardKey> = with(|posts| posts.places().filter(|(db, _)| which(*db)).cloned().collect());
    places.into_iter().for_each(touch);
}

fn free_all(place: &BoardKey) {
    let freed = board::Freed { anywhere: true, ..Default::default() };
    with(|posts| posts.freed(place, &freed));
}

fn chosen(number: u64, waiter: Waiter<Work>, answer: Answer) {
    CHOSEN.with(|chosen| chosen.insert(number, waiter.work.handle, answer));
}

/// Posts what has room on this board by now, in the order of arrival.
#[cold]
pub fn serve(commit: &mut Commit<'_>) {
    let freed = commit.board().freed();
    if waiting().0 == 0 {
        return;
    }
    let place = (commit.ctx.db(), commit.key.bytes().to_vec());
    with(|posts| posts.freed(&place, &freed));
    if commit.new {
        free_all(&place);
    }
    let before = commit.board().looks();
    for _ in 0..LOOKS {
        let first = with(|posts| posts.first(&place).map(|(number, work)| (number, work.post.clone())));
        let Some((number, post)) = first else { return };
        // In a transaction other clients come after it; a full server takes no posts.
        if commit.ctx.in_transaction() || commit.ctx.is_full() || commit.board().broken() {
            break;
        }
        if commit.board().looks().wrapping_sub(before) > DEPENDENCIES {
            break;
        }
        commit.board().unbound_looks();
        if !park::is_permitted(commit.ctx, number, commit.key.bytes()) {
            end(number, Err(park::REVOKED.into()));
            continue;
        }
        let mut ids = KeptIds::default();
        match post.post(commit, &mut ids) {
            Ok(None) => end(number, Ok(ids)),
            Ok(Some(lack)) => {
                let is_last = lack.level == board::RoomLevel::Board;
                with(|posts| posts.lacks(number, lack));
                if is_last {
                    return;
                }
            }
            Err(error) => end(number, Err(error.to_string())),
        }
        let freed = commit.board().freed();
        with(|posts| posts.freed(&place, &freed));
    }
    TOUCHED.with(|touched| touched.insert(place));
}

fn end(number: u64, answer: Answer) {
    if let Some(waiter) = with(|posts| posts.remove(number)) {
        chosen(number, waiter, answer);
    }
}

/// Posts what has room on touched boards. At the end of a turn of the event loop.
pub fn serve_touched(ctx: Ctx) {
    if TOUCHED.with(|touched| touched.is_empty()) {
        return;
    }
    if !ctx.is_primary() {
        // The server ends the waits itself.
        return TOUCHED.with(BTreeSet::clear);
    }
    // If the server may not write now, or has reached `maxmemory`, this is tried in its next turn.
    if !ctx.may_write() || ctx.is_full() {
        return;
    }
    let begin = Instant::now();
    let mut places = TOUCHED.with(std::mem::take);
    while let Some(place) = places.pop_first() {
        if !on_board(ctx, &place) {
            TOUCHED.with(|touched| touched.insert(place));
        } else if TOUCHED.with(|touched| touched.remove(&place)) {
            // There is more to do there.
            match begin.elapsed() < BUDGET {
                true => drop(places.insert(place)),
                false => {
                    timer::look(place.0, &place.1);
                    TOUCHED.with(|touched| touched.insert(place));
                }
            }
        }
        if begin.elapsed() >= BUDGET {
            break;
        }
    }
    if !places.is_empty() {
        places.iter().take(1).for_each(|(db, name)| timer::look(*db, name));
        TOUCHED.with(|touched| touched.extend(places));
    }
}

/// Posts what has room on the board at a place, also when there is none any more: an absent board is
/// like an empty one. Returns false when the server may not write to it now.
fn on_board(ctx: Ctx, place: &BoardKey) -> bool {
    let (db, name) = place;
    if with(|posts| posts.at(place)).0 == 0 || !ctx.select(*db) {
        return true;
    }
    let key = ctx.key(name);
    if !ctx.allows_write_to(&key) {
        return false;
    }
    // The next part of the board touches it again.
    let comes = |mut open: OpenKey<'_>| open.value().is_some_and(|value| value.loader.is_some());
    if ctx.open(&key).is_ok_and(comes) {
        return true;
    }
    let done = Commit::outside(ctx, &key, |commit| {
        serve(commit);
        Ok(())
    });
    if let Err(error) = done {
        // The board is broken, or another type is under the key.
        for (number, waiter) in with(|posts| posts.all_at(place)) {
            chosen(number, waiter, Err(error.to_string()));
        }
    }
    true
}

/// Unblocks the clients that get their reply. At the end of a turn of the event loop.
pub fn unblock_chosen() {
    park::unblock_chosen(&CHOSEN);
}
