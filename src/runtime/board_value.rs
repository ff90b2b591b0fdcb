//! The value of a key: a board, and what this server alone knows of it.

use board::{Board, Loader, NEVER};
use std::sync::atomic::{AtomicI64, Ordering};

use crate::redis::ctx::Ctx;
use crate::redis::keyspace::{Opened, TypeHandle, Value, WrongType};
use crate::redis::strings::Key;
use crate::runtime::world;

/// The type `jobboard1`.
pub static BOARD_TYPE: TypeHandle = TypeHandle::unknown();

/// A board in the keyspace. See the module's comment.
pub struct BoardValue {
    /// The state.
    pub board: Board,
    /// When the timer looks at it next, Unix ms, or [`NEVER`].
    pub hint: i64,
    /// Parts of a snapshot that an append-only file brings one by one. Until all are loaded the
    /// board counts as broken.
    pub loader: Option<Box<Loader>>,
    /// Whether it is counted in [`BROKEN`].
    counted: bool,
}

/// How many boards this process has, including those that wait to be freed.
pub static BOARDS: AtomicI64 = AtomicI64::new(0);
/// How many of them are broken.
pub static BROKEN: AtomicI64 = AtomicI64::new(0);

impl BoardValue {
    /// Wraps a board.
    pub fn new(board: Board) -> Self {
        BOARDS.fetch_add(1, Ordering::Relaxed);
        if board.token() > 0 {
            world::saw_token(board.token(), world::now());
        }
        let mut value = BoardValue { board, hint: NEVER, loader: None, counted: false };
        value.count_broken();
        value
    }

    /// Whether the board is broken: it missed something, or is not whole yet.
    pub fn is_broken(&self) -> bool {
        self.board.broken()
    }

    /// Whether the board is broken for good. One whose parts are still coming is not, so who waits for it
    /// waits on.
    pub fn is_lost(&self) -> bool {
        self.is_broken() && self.loader.is_none()
    }

    /// The board, or as much of it as has come, for what counts its memory.
    pub fn arrived(&self) -> &Board {
        self.loader.as_ref().map_or(&self.board, |loader| loader.arrived())
    }

    /// Calls `each` with the parts that a file or another server gets: those that have come of a board
    /// that is not whole yet, so that the others may follow there too.
    pub fn snapshot(&self, each: impl FnMut(&[u8])) {
        match &self.loader {
            Some(loader) => loader.snapshot(each),
            None => self.board.snapshot(each),
        }
    }

    /// Updates the count of broken boards: to be called when this board may have become one, or
    /// stopped being one.
    pub fn count_broken(&mut self) {
        if self.counted != self.is_broken() {
            self.counted = !self.counted;
            BROKEN.fetch_add(if self.counted { 1 } else { -1 }, Ordering::Relaxed);
        }
    }
}

impl Default for BoardValue {
    fn default() -> Self {
        BoardValue::new(Board::default())
    }
}

impl Drop for BoardValue {
    fn drop(&mut self) {
        BOARDS.fetch_sub(1, Ordering::Relaxed);
        BROKEN.fetch_sub(i64::from(self.counted), Ordering::Relaxed);
    }
}

impl Value for BoardValue {
    const TYPE: &'static TypeHandle = &BOARD_TYPE;
}

/// An open key.
pub type OpenKey<'c> = Opened<'c, BoardValue>;

impl<'c> Ctx<'c> {
    /// Opens a key to read the board in it.
    pub fn open(self, key: &Key) -> Result<OpenKey<'c>, WrongType> {
        self.open_value(key)
    }

    /// Opens a key to change the board in it.
    pub fn open_writable(self, key: &Key) -> Result<OpenKey<'c>, WrongType> {
        self.open_value_writable(key)
    }

    /// Whether there is a board under a key.
    pub fn holds_board(self, key: &Key) -> bool {
        self.open(key).is_ok_and(|mut open| open.value().is_some())
    }
}
