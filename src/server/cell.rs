//! State of the module, reached from the server's main thread alone.

use std::cell::RefCell;

/// A value that only the server's main thread (or whoever holds its lock) touches.
pub struct MainCell<T>(RefCell<T>);

// SAFETY: the server calls commands, timers and events under its global lock, one at a time;
// the callbacks that it runs on other threads (freeing a board) use no `MainCell`.
unsafe impl<T> Sync for MainCell<T> {}

impl<T> MainCell<T> {
    /// A cell with that value.
    pub const fn new(value: T) -> Self {
        MainCell(RefCell::new(value))
    }

    /// Works on the value. `work` must not come back to the same cell: it calls no server
    /// function that calls us.
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut self.0.borrow_mut())
    }
}
