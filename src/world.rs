//! What the module knows beside its boards: the time, the last token, randomness, and until
//! when claims are held after a restart.

use board::{mix, Env, Rules};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};

use crate::server::clock;

static MANUAL: AtomicBool = AtomicBool::new(false);
static MANUAL_NOW: AtomicI64 = AtomicI64::new(0);
static TOKEN: AtomicU64 = AtomicU64::new(0);
static SEED: AtomicU64 = AtomicU64::new(0);
static HOLD: AtomicI64 = AtomicI64::new(0);
static STARTED: AtomicI64 = AtomicI64::new(0);
static TURN: AtomicU64 = AtomicU64::new(0);

/// The latest time that the manual clock takes: tokens made of later ones would not fit into
/// the numbers of all clients.
pub const LATEST: i64 = (1 << 42) - 1;

/// Unix ms, by the clock of boards or the manual one.
pub fn now() -> i64 {
    match MANUAL.load(Relaxed) {
        true => MANUAL_NOW.load(Relaxed),
        false => clock::now(),
    }
}

/// Whether `JOB.CLOCK` is the only source of time.
pub fn clock_is_manual() -> bool {
    MANUAL.load(Relaxed)
}

/// Makes the manual clock the source of time, standing at the machine's.
pub fn use_manual_clock() {
    MANUAL_NOW.store(clock::now(), Relaxed);
    MANUAL.store(true, Relaxed);
}

/// Remembers when the module was loaded.
pub fn start() {
    STARTED.store(clock::look(), Relaxed);
}

/// When the module was loaded, Unix ms.
pub fn started() -> i64 {
    STARTED.load(Relaxed)
}

/// Sets the manual clock.
pub fn set_clock(now: i64) {
    MANUAL_NOW.store(now, Relaxed);
}

/// Remembers a token that was given out anywhere.
pub fn saw_token(token: u64) {
    TOKEN.fetch_max(token, Relaxed);
}

/// Begins the random numbers.
pub fn seed(entropy: u64) {
    SEED.store(entropy, Relaxed);
}

fn random() -> u64 {
    mix(SEED.fetch_add(0x9e37_79b9_7f4a_7c15, Relaxed))
}

/// Ends no claim before that time.
pub fn hold_claims(until: i64) {
    HOLD.store(until, Relaxed);
}

/// The turn of the next claim in rotation.
pub fn next_turn() -> u64 {
    TURN.fetch_add(1, Relaxed)
}

/// The world at this moment.
pub fn env(rules: &Rules) -> Env<'_> {
    Env {
        now: now(),
        random: random(),
        token: TOKEN.load(Relaxed),
        hold: HOLD.load(Relaxed),
        recovery: crate::config::config().recovery_grace,
        turn: TURN.load(Relaxed),
        rules,
    }
}
