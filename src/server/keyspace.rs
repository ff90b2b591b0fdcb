//! Opening boards.

use redis_module::raw;
use std::marker::PhantomData;
use std::os::raw::{c_int, c_void};

use crate::server::board_type::{BoardValue, Kept, BOARD_TYPE};
use crate::server::ctx::{Ctx, Key};
use crate::server::{api, OK};

/// A key that holds something other than a board, or a board that somebody works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrongType;

/// An open key.
pub struct OpenKey<'c> {
    handle: *mut raw::RedisModuleKey,
    /// Open, or null.
    kept: *mut Kept,
    /// A value that is not in the keyspace yet.
    fresh: Option<Box<Kept>>,
    _ctx: PhantomData<Ctx<'c>>,
}

fn open<'c>(ctx: Ctx<'c>, key: &Key, mode: c_int) -> Result<OpenKey<'c>, WrongType> {
    // SAFETY: the context is that of a callback or command, and the string is valid; the handle is
    // closed when the value is dropped. What is under a key of our type was put there by us.
    unsafe {
        let handle = api!(RedisModule_OpenKey(ctx.0, key.0, mode));
        let mut open = OpenKey { handle, kept: std::ptr::null_mut(), fresh: None, _ctx: PhantomData };
        if handle.is_null() || api!(RedisModule_KeyType(handle)) == raw::REDISMODULE_KEYTYPE_EMPTY as c_int {
            return Ok(open);
        }
        if api!(RedisModule_ModuleTypeGetType(handle)) != BOARD_TYPE.get() {
            return Err(WrongType);
        }
        let kept = api!(RedisModule_ModuleTypeGetValue(handle)).cast::<Kept>();
        match (*kept).enter() {
            true => open.kept = kept,
            false => return Err(WrongType),
        }
        Ok(open)
    }
}

impl<'c> Ctx<'c> {
    /// Opens a key to read the board in it.
    pub fn open(self, key: &Key) -> Result<OpenKey<'c>, WrongType> {
        open(self, key, raw::REDISMODULE_READ as c_int)
    }

    /// Opens a key to change the board in it.
    pub fn open_writable(self, key: &Key) -> Result<OpenKey<'c>, WrongType> {
        open(self, key, (raw::REDISMODULE_READ | raw::REDISMODULE_WRITE) as c_int)
    }

    /// Whether there is a board under a key.
    pub fn holds_board(self, key: &Key) -> bool {
        self.open(key).is_ok_and(|mut open| open.value().is_some())
    }

    /// Tells those who watch or cache the key that it has changed.
    pub fn signal_modified(self, key: &Key) {
        // SAFETY: context and string are valid.
        unsafe { api!(RedisModule_SignalModifiedKey(self.0, key.0)) };
    }
}

impl OpenKey<'_> {
    /// The board, if there is one.
    pub fn value(&mut self) -> Option<&mut BoardValue> {
        if let Some(fresh) = &mut self.fresh {
            return Some(fresh.value_mut());
        }
        // SAFETY: null, or a value that is open: it lives until it is closed, whatever becomes of
        // its key, and nobody opens it again. `&mut self` makes this the only reference.
        unsafe { Some(&mut *self.kept.as_ref()?.value()) }
    }

    /// The board; a new one, not in the keyspace yet, if there is none.
    #[inline]
    pub fn value_or_new(&mut self) -> &mut BoardValue {
        if self.kept.is_null() {
            return self.new_value();
        }
        // SAFETY: as above, and it is not null.
        unsafe { &mut *(*self.kept).value() }
    }

    #[cold]
    fn new_value(&mut self) -> &mut BoardValue {
        self.fresh.get_or_insert_with(|| Kept::new(BoardValue::default())).value_mut()
    }

    /// Puts a new board into the keyspace.
    pub fn keep(&mut self) {
        if let Some(fresh) = self.fresh.take() {
            let kept = Box::into_raw(fresh);
            // SAFETY: the key is open for writing (who only reads keeps nothing) and empty; the
            // server owns the value from now on, and gives it back to our `free`.
            unsafe {
                // Before it is there: whoever is told of it may open it, or delete it.
                (*kept).enter();
                self.kept = kept;
                if api!(RedisModule_ModuleTypeSetValue(self.handle, BOARD_TYPE.get(), kept.cast::<c_void>()))
                    != OK
                {
                    self.kept = std::ptr::null_mut();
                    Kept::leave(kept);
                    self.fresh = Some(Box::from_raw(kept));
                }
            }
        }
    }

    /// Whether the board went while it was open.
    pub fn is_gone(&self) -> bool {
        // SAFETY: what is not null is open.
        unsafe { self.kept.as_ref() }.is_some_and(Kept::is_gone)
    }
}

impl Drop for OpenKey<'_> {
    fn drop(&mut self) {
        if !self.kept.is_null() {
            // SAFETY: it is open, and this the last use of it.
            unsafe { Kept::leave(self.kept) };
        }
        if !self.handle.is_null() {
            // SAFETY: the handle is open, and closed here alone, before the end of the callback that
            // its context belongs to.
            unsafe { api!(RedisModule_CloseKey(self.handle)) };
        }
    }
}
