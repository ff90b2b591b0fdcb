//! What is under a key: a board, and what this server alone knows of it.

use board::{Board, Loader, NEVER};
use std::sync::atomic::{AtomicI64, Ordering};

use crate::redis::ctx::{Ctx, Key};
use crate::redis::keyspace::{Opened, TypeHandle, Value, WrongType};
use crate::runtime::world;

/// The type `jobboard1`.
pub static BOARD_TYPE: TypeHandle = TypeHandle::unknown();

/// See the module's comment.
pub struct BoardValue {
    /// The state.
    pub board: Board,
    /// When the timer looks at it next, or [`NEVER`].
    pub hint: i64,
    /// Parts of a snapshot that come one by one, from an append-only file. Until all are there
    /// the board says that it is broken.
    pub loader: Option<Loader>,
    /// It is among [`BROKEN`].
    counted: bool,
}

/// How many boards there are in this process, those that wait to be freed included.
pub static BOARDS: AtomicI64 = AtomicI64::new(0);
/// How many of them cannot be trusted.
pub static BROKEN: AtomicI64 = AtomicI64::new(0);

impl BoardValue {
    /// A value around a board.
    pub fn new(board: Board) -> Self {
        BOARDS.fetch_add(1, Ordering::Relaxed);
        if board.token() > 0 {
            world::saw_token(board.token(), world::now());
        }
        let mut value = BoardValue { board, hint: NEVER, loader: None, counted: false };
        value.count_broken();
        value
    }

    /// Whether the board cannot be trusted: it missed something, or is not whole yet.
    pub fn is_broken(&self) -> bool {
        self.board.broken()
    }

    /// Counts the board among those that cannot be trusted if it is one now: to be called when
    /// that may have changed.
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

/// A key that is open.
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
