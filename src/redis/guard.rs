//! The guard around every callback.

use std::panic::{catch_unwind, AssertUnwindSafe};

use crate::redis::ctx::{Ctx, Level};

/// Runs a callback. A panic must not reach the server: it is logged, and the process ends, since a
/// board may be half changed and must be neither saved nor replicated. Without this guard the
/// process would end too, because Rust aborts when a panic would leave a function that C calls; but
/// the log would not say where.
pub fn guard<R>(what: &str, work: impl FnOnce() -> R) -> R {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => done,
        Err(_) => {
            Ctx::nowhere().log(Level::Warning, &format!("jobboard: a fault in {what}, this server ends"));
            std::process::abort()
        }
    }
}
