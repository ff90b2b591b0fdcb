//! Whether anybody listens to effects: replicas, the backlog that is kept for them, or an append-only
//! file.
//!
//! The server drops what nobody listens to (`shouldPropagate` in its source), but encoding effects
//! and handing them over costs a quarter of a plain command. So the module asks the server once
//! after each event that can change the answer, and sends nothing when the answer is nobody.
//!
//! Nothing is lost when somebody begins to listen between two questions: who begins, begins with a
//! copy of all data, which a forked process writes. Replicas get it in a full resync, an append-only
//! file by its first rewrite, and neither reads what was sent before the fork. The server reports
//! each fork in the call that makes it. All else that makes listeners is an event too: a change of
//! role or of the configuration, and the end of loading.

use std::sync::atomic::{AtomicU32, AtomicU8, Ordering::Relaxed};

use crate::redis::ctx::Ctx;

/// Something has happened since the server was asked.
const UNKNOWN: u8 = 0;
/// The server is a primary outside of a cluster, and would drop what it is sent.
const NOBODY: u8 = 1;
const SOMEBODY: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);
static TICKS: AtomicU32 = AtomicU32::new(0);

/// After how many ticks of the server's cron it is asked again while somebody listens: no event
/// reports that the server has given up its backlog.
const ASK_AGAIN: u32 = 100;

/// Something has happened after which somebody may listen, or nobody any more.
pub fn changed() {
    STATE.store(UNKNOWN, Relaxed);
}

/// The server's cron calls this several times a second.
pub fn tick() {
    if STATE.load(Relaxed) == SOMEBODY && TICKS.fetch_add(1, Relaxed) >= ASK_AGAIN {
        TICKS.store(0, Relaxed);
        changed();
    }
}

/// Whether effects need not be sent: nobody listens, and the server is a primary outside of a
/// cluster. A node of a cluster may have to hand over a slot at any time.
#[inline]
pub fn is_nobody(ctx: Ctx) -> bool {
    match STATE.load(Relaxed) {
        UNKNOWN => ask(ctx),
        state => state == NOBODY,
    }
}

#[cold]
fn ask(ctx: Ctx) -> bool {
    if ctx.is_loading() {
        return false;
    }
    let nobody = ctx.is_primary() && !ctx.is_cluster() && !ctx.appends() && !ctx.feeds_replicas();
    STATE.store(if nobody { NOBODY } else { SOMEBODY }, Relaxed);
    nobody
}

/// What is known, in a word, for `INFO`.
pub fn word() -> &'static std::ffi::CStr {
    match STATE.load(Relaxed) {
        NOBODY => c"nobody",
        SOMEBODY => c"somebody",
        _ => c"unknown",
    }
}
