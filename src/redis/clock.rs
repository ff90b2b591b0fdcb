//! The clock of boards: that of the machine, except that it never goes back.
//!
//! When the machine's clock steps ahead, this one follows at once: a machine that slept has missed
//! that time. When the machine's clock steps back, this one continues, an eighth slower than time,
//! until the machine's has caught up. So durations stay right, and no deadline moves away. A
//! monotonic clock tells steps from time that simply passed.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use crate::redis::api;
use crate::redis::cell::MainCell;
use crate::redis::ctx::{system_now, Ctx, Level};

/// The time of this clock at one moment.
#[derive(Clone, Copy)]
struct Sample {
    /// Unix microseconds.
    now: i64,
    /// That moment, in microseconds of [`elapsed_us`].
    at: i64,
}

static LAST: MainCell<Option<Sample>> = MainCell::new(None);
/// The latest time that this clock has given, Unix ms.
static LATEST: AtomicI64 = AtomicI64::new(0);
/// How far this clock is ahead of the machine's, ms.
static LEAD: AtomicI64 = AtomicI64::new(0);
/// The machine's time at the last look, less [`elapsed_ms`] at that moment, ms.
static OFFSET: AtomicI64 = AtomicI64::new(0);

/// Steps of at least this many ms are logged.
const WORTH_TELLING: i64 = 1_000;
/// By how many ms the machine's clock and the monotonic one may differ before that counts as a
/// step.
const PLAY: i64 = 5;

/// Microseconds that have passed, whatever happens to the machine's clock.
fn elapsed_us() -> i64 {
    // SAFETY: takes nothing.
    unsafe { api!(RedisModule_MonotonicMicroseconds()) as i64 }
}

/// Starts the clock at the machine's time, Unix ms, and returns that.
pub fn start() -> i64 {
    LAST.with(|last| *last = None);
    LATEST.store(0, Relaxed);
    LEAD.store(0, Relaxed);
    look()
}

/// Milliseconds that have passed, whatever happens to the machine's clock.
pub fn elapsed_ms() -> i64 {
    elapsed_us() / 1_000
}

/// The time, Unix ms.
pub fn now() -> i64 {
    let wall = system_now();
    if LEAD.load(Relaxed) != 0 || wall < LATEST.load(Relaxed) {
        return look();
    }
    LATEST.store(wall, Relaxed);
    wall
}

/// Compares the machine's clock with the monotonic one, and returns the time, Unix ms. The server's
/// cron calls this several times a second, so that a step is seen even when nobody asks for the
/// time.
pub fn look() -> i64 {
    // In this order: a pause between the two makes the time passed look shorter.
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

/// Logs a step: the machine's time, what it would be without the step, and how far this clock was
/// ahead of it.
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

/// A number by which [`has_stepped`] finds later whether the machine's clock has made a step.
pub fn offset() -> i64 {
    OFFSET.load(Relaxed)
}

/// Whether the machine's clock has made a step since its [`offset`] was `since`.
pub fn has_stepped(since: i64) -> bool {
    (offset() - since).abs() > PLAY
}
