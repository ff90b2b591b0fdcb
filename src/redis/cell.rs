//! State of the module, which only the server's main thread touches.

use std::cell::RefCell;
use std::sync::OnceLock;
use std::thread::{self, ThreadId};

/// A value that only the server's main thread, or the thread that holds its lock, touches.
pub struct MainCell<T>(RefCell<T>);

// SAFETY: the server calls commands, timers and events under its global lock, one at a time;
// the callback that it runs on other threads (freeing a board) uses no `MainCell`.
unsafe impl<T> Sync for MainCell<T> {}

/// The thread that loaded the module.
static MAIN: OnceLock<ThreadId> = OnceLock::new();

fn on_main_thread() -> bool {
    let here = thread::current().id();
    *MAIN.get_or_init(|| here) == here
}

impl<T> MainCell<T> {
    /// A cell with this value.
    pub const fn new(value: T) -> Self {
        MainCell(RefCell::new(value))
    }

    /// Calls `work` with the value. `work` must not use the same cell again: it may call no server
    /// function that calls us.
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        // Not in a release: other modules may call our commands on threads that hold the server's
        // lock.
        debug_assert!(on_main_thread(), "state of the module is touched on another thread");
        work(&mut self.0.borrow_mut())
    }
}
