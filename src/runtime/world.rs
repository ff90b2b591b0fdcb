//! What the module knows beside its boards: the time, the last token, randomness, and until
//! when claims are held after a restart.

use board::{mix, token_at, Env, DAY, GIVERS};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};

use crate::config::Config;
use crate::redis::clock;

static MANUAL: AtomicBool = AtomicBool::new(false);
static MANUAL_NOW: AtomicI64 = AtomicI64::new(0);
static TOKEN: AtomicU64 = AtomicU64::new(0);
static GIVER: AtomicU64 = AtomicU64::new(0);
static SEED: AtomicU64 = AtomicU64::new(0);
static HOLD: AtomicI64 = AtomicI64::new(0);
static STARTED: AtomicI64 = AtomicI64::new(0);
static TURN: AtomicU64 = AtomicU64::new(0);

/// The latest time of the manual clock, Unix ms: later ones would leave no fencing tokens that fit
/// into the numbers of all clients.
pub const LATEST: i64 = (1 << 42) - (1 << 32);
/// A board's tokens raise those of other boards only up to this far ahead of the clock, ms: a token
/// from another server may have any value.
const AHEAD: i64 = DAY;
/// The most tokens that one command gives out.
const OWN: u64 = GIVERS << 15;
/// How far ahead of all tokens that it has seen a new primary begins, ms: for so long its tokens
/// are above those of a former primary that still gives some out.
const LEAD: i64 = 60_000;

/// The time, Unix ms, of the clock of boards or the manual one.
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

/// Makes the manual clock the source of time, starting at the machine's time.
pub fn use_manual_clock() {
    MANUAL_NOW.store(clock::now(), Relaxed);
    MANUAL.store(true, Relaxed);
}

/// Records when the module was loaded.
pub fn start() {
    STARTED.store(clock::start(), Relaxed);
}

/// When the module was loaded, Unix ms.
pub fn started() -> i64 {
    STARTED.load(Relaxed)
}

/// Sets the manual clock.
pub fn set_clock(now: i64) {
    MANUAL_NOW.store(now, Relaxed);
}

/// Records the last token of a board, whoever gave it out.
pub fn saw_token(token: u64, now: i64) {
    let seen = TOKEN.load(Relaxed);
    if token <= seen {
        return;
    }
    // A token that follows closely is this server's own, also when its clock was set back by more
    // than that.
    let counts = match token - seen <= OWN {
        true => token,
        false => token.min(token_at(now.saturating_add(AHEAD))),
    };
    TOKEN.fetch_max(counts, Relaxed);
}

/// This server has become a primary, and the former one may not know that yet.
pub fn promoted() {
    let seen = TOKEN.load(Relaxed);
    let others = mix(random()) % (GIVERS - 1);
    GIVER.store((seen + 1 + others) % GIVERS, Relaxed);
    TOKEN.store(seen.max(token_at(now())).saturating_add(token_at(LEAD)), Relaxed);
}

/// Seeds the random numbers, and with them the tokens.
pub fn seed(entropy: u64) {
    SEED.store(entropy, Relaxed);
    GIVER.store(random() % GIVERS, Relaxed);
}

fn random() -> u64 {
    mix(SEED.fetch_add(0x9e37_79b9_7f4a_7c15, Relaxed))
}

/// Holds all claims until this time, Unix ms.
pub fn hold_claims(until: i64) {
    HOLD.store(until, Relaxed);
}

/// The number of the next claim in rotation.
pub fn next_rotation() -> u64 {
    TURN.fetch_add(1, Relaxed)
}

/// The world at this moment.
pub fn env(config: &Config) -> Env<'_> {
    Env {
        now: now(),
        random: random(),
        token: TOKEN.load(Relaxed),
        giver: GIVER.load(Relaxed),
        hold: HOLD.load(Relaxed),
        recovery: config.recovery_grace,
        rotation: TURN.load(Relaxed),
        rules: &config.rules,
    }
}
