//! The clock that boards live by: the machine's, which never goes back.
//!
//! Where the machine's clock goes ahead, this one goes with it at once: a machine that slept
//! has missed that time. Where it goes back, this one goes on, an eighth slower than time
//! does, until the machine's has caught up. So durations stay what they are, and nothing that
//! lies ahead moves away. A monotonic clock tells the two cases from time that simply passed.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use crate::redis::api;
use crate::redis::cell::MainCell;
use crate::redis::ctx::{system_now, Ctx, Level};

/// The time of this clock at some moment.
#[derive(Clone, Copy)]
struct Sample {
    /// Unix microseconds.
    now: i64,
    /// The moment, in microseconds of [`elapsed_us`].
    at: i64,
}

static LAST: MainCell<Option<Sample>> = MainCell::new(None);
/// The latest time that was told, Unix ms.
static LATEST: AtomicI64 = AtomicI64::new(0);
/// How far this clock is ahead of the machine's, ms.
static LEAD: AtomicI64 = AtomicI64::new(0);
/// The machine's time at the last look, less [`elapsed_ms`] then.
static OFFSET: AtomicI64 = AtomicI64::new(0);

/// Steps of so many ms are told in the log.
const WORTH_TELLING: i64 = 1_000;
/// The machine's clock and the monotonic one may part by so many ms before that counts.
const PLAY: i64 = 5;

/// Microseconds that have passed, whatever is done to the machine's clock.
fn elapsed_us() -> i64 {
    // SAFETY: takes nothing.
    unsafe { api!(RedisModule_MonotonicMicroseconds()) as i64 }
}

/// Begins at the machine's time, whatever was told before; Unix ms.
pub fn start() -> i64 {
    LAST.with(|last| *last = None);
    LATEST.store(0, Relaxed);
    LEAD.store(0, Relaxed);
    look()
}

/// Milliseconds that have passed, whatever is done to the machine's clock.
pub fn elapsed_ms() -> i64 {
    elapsed_us() / 1_000
}

/// Unix ms.
pub fn now() -> i64 {
    let wall = system_now();
    if LEAD.load(Relaxed) != 0 || wall < LATEST.load(Relaxed) {
        return look();
    }
    LATEST.store(wall, Relaxed);
    wall
}

/// Compares the machine's clock with the monotonic one; Unix ms. The server calls for it some
/// times a second, so that a step is seen whether anybody asks for the time or not.
pub fn look() -> i64 {
    // In this order: a pause between the two makes the time that has passed look shorter.
    let wall = system_now();
    let at = elapsed_us();
    let (now, even) = LAST.with(|last| {
        let before = last.unwrap_or(Sample { now: wall * 1_000, at });
        let passed = at - before.at;
        let now = (wall.max(LATEST.load(Relaxed)) * 1_000).max(before.now + passed - passed / 8);
        *last = Some(Sample { now, at });
        (now / 1_000, (before.now + passed) / 1_000)
    });
    LATEST.store(now, Relaxed);
    let before = LEAD.swap(now - wall, Relaxed);
    OFFSET.store(wall - at / 1_000, Relaxed);
    tell(wall, even, before);
    now
}

/// Tells the log of a step: the machine's time, what it would be without a step, and how far
/// ahead of it this clock was.
fn tell(wall: i64, even: i64, lead: i64) {
    let step = wall - (even - lead);
    let now_ahead = LEAD.load(Relaxed);
    if step.abs() >= WORTH_TELLING {
        let way = if step < 0 { "back" } else { "ahead" };
        let line = format!(
            "the machine's clock has gone {way} by {} ms: boards are now {now_ahead} ms ahead of it",
            step.abs()
        );
        Ctx::nowhere().log(Level::Warning, &line);
    }
}

/// How far this clock is ahead of the machine's, ms.
pub fn lead() -> i64 {
    LEAD.load(Relaxed)
}

/// What tells whether the machine's clock makes a step from now on: see [`has_stepped`].
pub fn offset() -> i64 {
    OFFSET.load(Relaxed)
}

/// Whether the machine's clock has made a step since this was its [`offset`].
pub fn has_stepped(since: i64) -> bool {
    (offset() - since).abs() > PLAY
}
