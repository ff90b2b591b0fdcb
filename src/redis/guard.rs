//! The guard around every callback.

use std::panic::{catch_unwind, AssertUnwindSafe};

use crate::redis::ctx::{Ctx, Level};

/// Runs what a callback does. A panic must not travel into the server: it is logged, and the
/// process ends, since a board may be half changed and must be neither saved nor replicated.
/// Without this guard the process ends too, as Rust sees to where a panic would leave a function
/// that C calls; but the log does not say in what.
pub fn guard<R>(what: &str, work: impl FnOnce() -> R) -> R {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => done,
        Err(_) => {
            Ctx::nowhere().log(Level::Warning, &format!("jobboard: a fault in {what}, this server ends"));
            std::process::abort()
        }
    }
}
