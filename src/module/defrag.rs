//! Lets a server that defragments its memory (Redis built with jemalloc, `activedefrag yes`) move
//! what the jobs of a board hold. Without this the server would search for ever and find nothing to
//! move.

use board::Mover;
use redis_module::raw;
use std::mem::ManuallyDrop;
use std::os::raw::{c_int, c_ulong, c_void};

use crate::module::board_type::Kept;
use crate::redis::api;

/// The server's defragmentation of one key.
struct Defrag(*mut raw::RedisModuleDefragCtx);

impl Defrag {
    /// Moves an allocation. Returns where it is now, or `None` if it stays. The bytes are copied
    /// and the old place is freed; both are of one size class, so of one alignment.
    ///
    /// # Safety
    /// `from` is the only pointer to an allocation of [`crate::redis::alloc::ServerAlloc`]'s, and is not
    /// used again when there is a new place.
    unsafe fn moved<T>(&self, from: *mut T) -> Option<*mut T> {
        // SAFETY: the server may move it, since all who know where it was learn it from here.
        let to = unsafe { api!(RedisModule_DefragAlloc(self.0, from.cast::<c_void>())) };
        (!to.is_null()).then_some(to.cast::<T>())
    }

    /// The slot to continue from. A small board is done in one go, without a cursor.
    fn cursor(&self) -> u32 {
        let mut from: c_ulong = 0;
        // SAFETY: the context is that of the callback; the cursor, if any, is written into `from`.
        unsafe { api!(RedisModule_DefragCursorGet(self.0, &mut from)) };
        u32::try_from(from).unwrap_or(0)
    }

    fn set_cursor(&self, slot: u32) {
        // SAFETY: the context is that of the callback.
        unsafe { api!(RedisModule_DefragCursorSet(self.0, c_ulong::from(slot))) };
    }
}

impl Mover for Defrag {
    fn bytes(&mut self, bytes: Box<[u8]>) -> Box<[u8]> {
        // Without spare capacity: neither conversion allocates or frees.
        self.values(bytes.into_vec()).into_boxed_slice()
    }

    fn value<T>(&mut self, value: Box<T>) -> Box<T> {
        if size_of::<T>() == 0 {
            return value;
        }
        let from = Box::into_raw(value);
        // SAFETY: the box owned the allocation, of whose bytes the new place has a copy. It is not
        // of size 0, so there is one.
        unsafe { Box::from_raw(self.moved(from).unwrap_or(from)) }
    }

    fn values<T>(&mut self, values: Vec<T>) -> Vec<T> {
        if size_of::<T>() == 0 || values.capacity() == 0 {
            return values;
        }
        let mut values = ManuallyDrop::new(values);
        let (from, len, capacity) = (values.as_mut_ptr(), values.len(), values.capacity());
        // SAFETY: likewise; the new place is as large as the old one, and has as many values.
        unsafe { Vec::from_raw_parts(self.moved(from).unwrap_or(from), len, capacity) }
    }

    fn is_tired(&mut self) -> bool {
        // SAFETY: the context is that of the callback.
        unsafe { api!(RedisModule_DefragShouldStop(self.0)) != 0 }
    }
}

/// Moves as much as there is time for. Returns 1 when there is more, from the cursor on.
pub unsafe extern "C" fn defrag(
    ctx: *mut raw::RedisModuleDefragCtx,
    _key: *mut raw::RedisModuleString,
    value: *mut *mut c_void,
) -> c_int {
    // SAFETY: the server shows where it keeps a value of ours. It defragments between commands, so
    // that nothing else refers to the value.
    let Some(kept) = (unsafe { (*value).cast::<Kept>().as_mut() }) else { return 0 };
    let value = kept.value_mut();
    let mut defrag = Defrag(ctx);
    match value.board.relocate(defrag.cursor(), &mut defrag) {
        Some(slot) => {
            defrag.set_cursor(slot);
            1
        }
        None => 0,
    }
}
