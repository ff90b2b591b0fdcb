//! The only timer of the module, for boards and for clients whose wait has a timeout.
//!
//! It keeps a hint for each board with a time event to come: when to look at it next. A hint may be
//! early or out of date (the board has moved, or was deleted): then looking costs little and does
//! nothing. The server's timer is set at the end of the turn of the event loop, so that hints can
//! be given from anywhere. It is set there alone: the server reads the clock once for all timers that
//! are due, and one that is set while it runs them is due again at once if the clock stepped back in
//! between, until the clock is there again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crate::redis::cell::MainCell;
use crate::redis::clock;
use crate::redis::ctx::Ctx;
use crate::redis::ends;
use crate::redis::strings::Key;
use crate::redis::timer::{self, Fires};
use crate::runtime::board_value::{BoardValue, BOARDS};
use crate::runtime::commit::Commit;
use crate::runtime::world;

/// How long one tick of the timer takes at most, but for the last of its slices.
const BUDGET: Duration = Duration::from_micros(900);
/// How many jobs are done between two looks at the time.
const SLICE: u32 = 64;
/// How many slices are done at once after the manual clock was moved; later turns of the event loop
/// do the rest.
const JUMP: u64 = 100_000;
/// After how many ms the server is asked again whether it may write.
const ASK_AGAIN: i64 = 100;
/// The server's timer is set at most this many ms ahead, and then looks again. Redis 7.0 counts the
/// wait for its next timer as µs in an `int`: a wait of 36 minutes overflows, and its loop never
/// sleeps again. Later servers do so with ms, after 24 days.
const FURTHEST: i64 = 1_800_000;

/// When to look at a board, and which: Unix ms, database, key. 0: as soon as possible.
type Hint = (i64, i32, Vec<u8>);

#[derive(Default)]
struct Timer {
    hints: BTreeSet<Hint>,
    /// The boards on which something is due that the server does not allow to be done, such as for
    /// want of replicas, by database and key, with when it was due. What is due at once has been so
    /// since it was first refused. Their hints are later.
    refused: BTreeMap<(i32, Vec<u8>), i64>,
    /// Since when the deadlines are this server's, Unix ms: it has started, loaded, or become a primary.
    since: i64,
    /// Whether this server was a replica at the last look: its primary handles the deadlines.
    is_replica: bool,
    armed: Option<Armed>,
    /// The server may not write: it is asked again then, Unix ms.
    asks_at: i64,
    /// Whether the server has asked for a look at what is overdue.
    look: bool,
    /// Where the last sweep ended.
    swept: Hint,
    stats: Stats,
    /// How many slices have been done.
    steps: u64,
}

/// What the server's timer is set for.
struct Armed {
    timer: timer::Armed,
    /// The hint, Unix ms.
    at: i64,
    /// The end of a wait, as in [`ends::first`].
    end: i64,
    /// The machine's clock at that time: the server uses it to note when the timer is due.
    offset: i64,
}

/// What the timer has done since the server was started.
#[derive(Default, Clone, Copy)]
pub struct Stats {
    /// How many ticks it has made.
    pub turns: u64,
    /// The longest tick, microseconds.
    pub longest_us: u64,
    /// How many boards have a hint.
    pub hints: usize,
    /// How late the earliest deadline is, ms; 0 on a replica, whose primary handles them.
    pub overdue_ms: i64,
}

static TIMER: MainCell<Option<Timer>> = MainCell::new(None);

fn with<R>(work: impl FnOnce(&mut Timer) -> R) -> R {
    TIMER.with(|timer| work(timer.get_or_insert_with(Timer::default)))
}

impl Timer {
    /// How late the earliest deadline is, ms, of the time in which this server was to meet it. Hints to
    /// look as soon as possible are of no deadline.
    fn overdue(&self, now: i64) -> i64 {
        let hinted = self.hints.range((1, i32::MIN, Vec::new())..).next().map(|(at, _, _)| *at);
        let first = hinted.into_iter().chain(self.refused.values().copied()).min();
        match first {
            Some(first) if !self.is_replica => (now - first.max(self.since)).max(0),
            _ => 0,
        }
    }
}

/// The deadlines are this server's from now on.
pub fn begin() {
    with(|timer| timer.since = world::now());
}

/// Gives a hint: look at this board at that time.
pub fn hint(db: i32, key: &[u8], at: i64, value: &mut BoardValue) {
    value.hint = at;
    with(|timer| timer.hints.insert((at, db, key.to_vec())));
}

/// Gives a hint for the next event of an open board if it is before the current one.
pub fn bring_forward(ctx: Ctx, key: &Key, value: &mut BoardValue) {
    let wake = value.board.wake();
    if wake < value.hint && wake < board::NEVER {
        hint(ctx.db(), key.bytes(), wake, value);
    }
}

/// A board was loaded from a file or a primary; it is not urgent.
pub fn loaded(db: i32, key: &[u8], value: &mut BoardValue) {
    hint(db, key, 0, value);
}

/// Has the timer look at whatever is under a key as soon as possible.
pub fn look(db: i32, key: &[u8]) {
    with(|timer| timer.hints.insert((0, db, key.to_vec())));
}

/// Two databases have been swapped: swaps their hints.
pub fn swap(a: i32, b: i32) {
    let now_in = |db| match db {
        _ if db == a => b,
        _ if db == b => a,
        _ => db,
    };
    with(|timer| {
        let hints = std::mem::take(&mut timer.hints);
        timer.hints = hints.into_iter().map(|(at, db, key)| (at, now_in(db), key)).collect();
        let refused = std::mem::take(&mut timer.refused);
        timer.refused = refused.into_iter().map(|((db, key), due)| ((now_in(db), key), due)).collect();
    });
}

/// The numbers of the timer.
pub fn stats() -> Stats {
    let now = world::now();
    with(|timer| Stats { hints: timer.hints.len(), overdue_ms: timer.overdue(now), ..timer.stats })
}

/// The most hints that one sweep looks at.
const SWEEP: usize = 32;

/// Drops hints of boards that were deleted or moved, a few at a time, while there are many more
/// hints than boards. At the end of a turn of the event loop.
pub fn sweep(ctx: Ctx) {
    let most = 64 + 2 * BOARDS.load(Relaxed).max(0) as usize;
    let some: Vec<Hint> = with(|timer| match timer.hints.len() > most {
        true => timer.hints.range(timer.swept.clone()..).take(SWEEP).cloned().collect(),
        false => Vec::new(),
    });
    for hint in &some {
        let (at, db, name) = hint;
        if !ctx.select(*db) || !is_current(ctx, &ctx.key(name), *at) {
            with(|timer| timer.hints.remove(hint));
        }
    }
    let last = some.last().filter(|_| some.len() == SWEEP);
    with(|timer| timer.swept = last.cloned().unwrap_or_default());
}

/// The server's cron calls this several times a second. It detects a step of the machine's clock,
/// and has the end of the turn look at whatever is overdue, whatever the server's own timers do.
pub fn tick() {
    clock::look();
    with(|timer| timer.look = true);
}

/// Ends the waits that have timed out, if the server has asked for a look. At the end of a turn of
/// the event loop, before clients are served.
pub fn end_waits() {
    if with(|timer| timer.look) {
        ends::end_overdue();
    }
}

/// Sets the server's timer for the earliest hint or end of a wait. With the manual clock this does
/// what is due on boards. At the end of a turn of the event loop.
pub fn arm(ctx: Ctx) {
    let looks = with(|timer| std::mem::take(&mut timer.look));
    if looks {
        with(|timer| timer.is_replica = !ctx.is_primary());
    }
    if world::clock_is_manual() {
        let last = with(|timer| timer.steps) + JUMP;
        while with(|timer| timer.steps < last) && is_due() && ctx.may_write() {
            turn(ctx);
        }
    } else if looks && is_due() {
        run(ctx);
    }
    let first = match world::clock_is_manual() {
        true => board::NEVER,
        false => with(|timer| timer.hints.first().map_or(board::NEVER, |(at, _, _)| *at)),
    };
    let first = if first < board::NEVER { first.max(with(|timer| timer.asks_at)) } else { first };
    let end = ends::first();
    let armed = with(|timer| timer.armed.as_ref().map(|armed| (armed.at, armed.end, armed.offset)));
    let (at, until) = armed.map_or((board::NEVER, i64::MAX), |(at, end, _)| (at, end));
    // A replica does nothing on its boards, but clients wait there too.
    let first = if first < at && !ctx.is_primary() { board::NEVER } else { first };
    let stepped = armed.is_some_and(|(.., offset)| clock::has_stepped(offset));
    if first < at || end < until || stepped {
        set(ctx, first, end);
    }
}

fn is_due() -> bool {
    with(|timer| timer.hints.first().is_some_and(|(at, _, _)| *at <= world::now()))
}

fn set(ctx: Ctx, at: i64, end: i64) {
    let board = if at < board::NEVER { at - world::now() } else { FURTHEST };
    let wait = board.min(end.saturating_sub(clock::elapsed_ms())).clamp(0, FURTHEST);
    with(|timer| {
        if let Some(armed) = timer.armed.take() {
            ctx.stop_timer(armed.timer);
        }
        let set = ctx.set_timer::<Timer>(wait);
        timer.armed = Some(Armed { timer: set, at, end, offset: clock::offset() });
    });
}

impl Fires for Timer {
    fn fire(ctx: Ctx) {
        with(|timer| timer.armed = None);
        ends::end_overdue();
        if world::clock_is_manual() || !ctx.is_primary() {
            return;
        }
        let may_write = ctx.may_write();
        with(|timer| timer.asks_at = if may_write { 0 } else { world::now() + ASK_AGAIN });
        if may_write {
            turn(ctx);
        }
    }
}

/// Does what is due at once, if the server may write now. At the end of a turn of the event loop.
pub fn run(ctx: Ctx) {
    if ctx.may_write() {
        turn(ctx);
    }
}

/// Does what is due on the boards whose hints have passed, within the budget.
fn turn(ctx: Ctx) {
    let begin = Instant::now();
    let now = world::now();
    while begin.elapsed() < BUDGET {
        let due = with(|timer| match timer.hints.first() {
            Some((at, _, _)) if *at <= now => timer.hints.pop_first(),
            _ => None,
        });
        let Some(hint) = due else { break };
        look_at(ctx, &hint, begin);
    }
    let took = begin.elapsed().as_micros() as u64;
    with(|timer| {
        timer.stats.turns += 1;
        timer.stats.longest_us = timer.stats.longest_us.max(took);
    });
}

/// Whether a hint is the current one of its board.
fn is_current(ctx: Ctx, key: &Key, at: i64) -> bool {
    let goes_by = |value: &BoardValue| at == 0 || value.hint == at;
    ctx.open(key).is_ok_and(|mut open| open.value().is_some_and(|value| goes_by(value)))
}

fn look_at(ctx: Ctx, (at, db, name): &Hint, begin: Instant) {
    let db = *db;
    if !ctx.select(db) {
        return;
    }
    let key = ctx.key(name);
    let refused = with(|timer| match timer.refused.is_empty() {
        true => None,
        false => timer.refused.remove(&(db, name.clone())),
    });
    if !is_current(ctx, &key, *at) {
        return;
    }
    if !ctx.allows_write_to(&key) {
        let (now, wake) = (world::now(), wake_of(ctx, &key));
        if wake <= now {
            let due = if wake > 0 { wake } else { refused.unwrap_or(now) };
            with(|timer| timer.refused.insert((db, name.clone()), due));
        }
        return hint_at(ctx, &key, db, now + ASK_AGAIN);
    }
    // This gives no hint while it works: the board is behind all others that are due.
    hint_at(ctx, &key, db, LOOKED_AT);
    let next = Commit::outside(ctx, &key, |commit| {
        while commit.settle_some(SLICE)? {
            with(|timer| timer.steps += 1);
            if begin.elapsed() >= BUDGET {
                return Ok(commit.env.now);
            }
        }
        let env = commit.env;
        Ok(commit.board().reckon(&env))
    });
    // Clients served at the end of the commit may have brought the next event forward.
    let next = next.map(|next| next.min(wake_of(ctx, &key)));
    match next {
        Ok(next) if next < board::NEVER => hint_at(ctx, &key, db, next),
        // Nothing is due later, or nothing can be done about it.
        _ => hint_at(ctx, &key, db, board::NEVER),
    }
}

fn wake_of(ctx: Ctx, key: &Key) -> i64 {
    let mut open = ctx.open(key).ok();
    let value = open.as_mut().and_then(|open| open.value());
    value.map_or(board::NEVER, |value| value.board.wake())
}

/// Takes the place of a hint while the timer looks at a board.
const LOOKED_AT: i64 = i64::MIN;

fn hint_at(ctx: Ctx, key: &Key, db: i32, at: i64) {
    let Ok(mut open) = ctx.open(key) else { return };
    let Some(value) = open.value() else { return };
    match at {
        LOOKED_AT | board::NEVER => value.hint = at,
        _ => hint(db, key.bytes(), at, value),
    }
}
