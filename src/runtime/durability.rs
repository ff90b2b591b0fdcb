//! Whether the server's configuration keeps the promise of `appendfsync always`: no reply before
//! its effects are on disk. With more than one I/O thread servers send replies while the file is
//! still being written.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::redis::ctx::{Ctx, Level};

static CHANGED: AtomicBool = AtomicBool::new(true);
static BEFORE_SYNC: AtomicBool = AtomicBool::new(false);

/// Something in the server's configuration has changed.
pub fn changed() {
    CHANGED.store(true, Relaxed);
}

/// Whether replies may be sent before their effects are on disk, although `appendfsync` is
/// `always`.
pub fn replies_before_sync() -> bool {
    BEFORE_SYNC.load(Relaxed)
}

/// Checks the server's configuration when it has changed, and warns. At the end of a turn of the
/// event loop.
pub fn check(ctx: Ctx) {
    if !CHANGED.load(Relaxed) || ctx.is_loading() {
        return;
    }
    CHANGED.store(false, Relaxed);
    let is = |name, value: &[u8]| ctx.config(name).is_some_and(|found| found == value);
    let alone = ctx.config(c"io-threads").is_none_or(|threads| threads == b"1");
    let risk = is(c"appendonly", b"yes") && is(c"appendfsync", b"always") && !alone;
    if risk && !BEFORE_SYNC.swap(risk, Relaxed) {
        ctx.log(
            Level::Warning,
            "appendfsync is always and io-threads is above 1: the server may answer before it has synced. \
             Set io-threads 1 to keep what always promises",
        );
    }
    BEFORE_SYNC.store(risk, Relaxed);
}
