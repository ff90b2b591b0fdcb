//! The data type: how the server saves, loads, copies, measures and frees boards.

use board::{Board, Loader, NEVER};
use redis_module::raw;
use std::os::raw::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicI64, AtomicPtr, Ordering};

use crate::server::ctx::{bytes_of, Ctx, Level};
use crate::server::{api, timer, watched};
use crate::world;

/// What stands under a key: a board, and what this server alone knows of it.
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

/// The server may free a board on a thread of its own.
const _: () = {
    const fn goes_to_another_thread<T: Send>() {}
    goes_to_another_thread::<BoardValue>();
};

/// How many boards there are in this process, those that wait to be freed included.
pub static BOARDS: AtomicI64 = AtomicI64::new(0);
/// How many of them cannot be trusted.
pub static BROKEN: AtomicI64 = AtomicI64::new(0);

impl BoardValue {
    /// A value around a board.
    pub fn new(board: Board) -> Self {
        BOARDS.fetch_add(1, Ordering::Relaxed);
        world::saw_token(board.token());
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

/// The server's handle of the type.
pub struct TypeHandle(AtomicPtr<raw::RedisModuleType>);

/// The type `jobboard1`.
pub static BOARD_TYPE: TypeHandle = TypeHandle(AtomicPtr::new(std::ptr::null_mut()));

/// The version of what [`rdb_save`] writes.
const ENCODING: c_int = 1;

impl TypeHandle {
    pub(super) fn get(&self) -> *mut raw::RedisModuleType {
        self.0.load(Ordering::Relaxed)
    }

    /// Makes the type known to the server.
    pub fn register(&self, ctx: Ctx) -> bool {
        let mut methods = raw::RedisModuleTypeMethods {
            version: u64::from(raw::REDISMODULE_TYPE_METHOD_VERSION),
            rdb_load: Some(rdb_load),
            rdb_save: Some(rdb_save),
            aof_rewrite: Some(aof_rewrite),
            mem_usage: Some(mem_usage),
            digest: Some(digest),
            free: Some(free),
            aux_load: None,
            aux_save: None,
            aux_save_triggers: 0,
            free_effort: Some(free_effort),
            unlink: None,
            copy: Some(copy),
            defrag: Some(super::defrag::defrag),
            mem_usage2: None,
            free_effort2: None,
            unlink2: Some(unlinked),
            copy2: None,
            aux_save2: None,
        };
        // SAFETY: the name has nine characters; the server copies the methods.
        let handle =
            unsafe { api!(RedisModule_CreateDataType(ctx.0, c"jobboard1".as_ptr(), ENCODING, &mut methods)) };
        self.0.store(handle, Ordering::Relaxed);
        !handle.is_null()
    }
}

/// A board that the server gave us.
///
/// # Safety
/// The pointer is one that we put under a key, and nothing else refers to the value.
unsafe fn board_of<'a>(value: *const c_void) -> Option<&'a BoardValue> {
    value.cast::<BoardValue>().as_ref()
}

unsafe extern "C" fn rdb_save(io: *mut raw::RedisModuleIO, value: *mut c_void) {
    let Some(value) = board_of(value) else { return };
    value.board.snapshot(|part| {
        api!(RedisModule_SaveStringBuffer(io, part.as_ptr().cast::<c_char>(), part.len()));
    });
    api!(RedisModule_SaveStringBuffer(io, c"".as_ptr(), 0));
}

unsafe extern "C" fn rdb_load(io: *mut raw::RedisModuleIO, encoding: c_int) -> *mut c_void {
    let ctx = Ctx(api!(RedisModule_GetContextFromIO(io)));
    match load_board(io, encoding) {
        Ok(board) => {
            let mut value = Box::new(BoardValue::new(board));
            // Where it goes is known here for files and full resyncs; for RESTORE the key's
            // event tells it.
            let name = api!(RedisModule_GetKeyNameFromIO(io));
            if !name.is_null() {
                timer::loaded(api!(RedisModule_GetDbIdFromIO(io)), bytes_of(name), &mut value);
            }
            Box::into_raw(value).cast::<c_void>()
        }
        Err(what) => {
            ctx.log(Level::Warning, &format!("a board cannot be loaded: {what}"));
            std::ptr::null_mut()
        }
    }
}

unsafe fn load_board(io: *mut raw::RedisModuleIO, encoding: c_int) -> Result<Board, &'static str> {
    if encoding != ENCODING {
        return Err("written by a later version");
    }
    let mut loader = Loader::default();
    loop {
        let mut len = 0;
        let bytes = api!(RedisModule_LoadStringBuffer(io, &mut len));
        if api!(RedisModule_IsIOError(io)) != 0 || bytes.is_null() {
            return Err("it is cut");
        }
        let part = std::slice::from_raw_parts(bytes.cast::<u8>(), len);
        let taken = if len == 0 { Ok(false) } else { loader.part(part).map(|()| true) };
        api!(RedisModule_Free(bytes.cast::<c_void>()));
        match taken {
            Ok(true) => {}
            Ok(false) => return loader.finish().map_err(|damage| damage.0),
            Err(damage) => return Err(damage.0),
        }
    }
}

unsafe extern "C" fn aof_rewrite(
    io: *mut raw::RedisModuleIO,
    key: *mut raw::RedisModuleString,
    value: *mut c_void,
) {
    let (Some(value), Some(emit)) = (board_of(value), raw::RedisModule_EmitAOF) else { return };
    value.board.snapshot(|part| {
        // The format names a server string, and bytes with their length.
        let (bytes, len) = (part.as_ptr().cast::<c_char>(), part.len());
        emit(io, c"JOB.LOAD".as_ptr(), c"sb".as_ptr(), key, bytes, len);
    });
}

unsafe extern "C" fn mem_usage(value: *const c_void) -> usize {
    board_of(value).map_or(0, |value| value.board.bytes())
}

unsafe extern "C" fn digest(md: *mut raw::RedisModuleDigest, value: *mut c_void) {
    let Some(value) = board_of(value) else { return };
    let digest = value.board.digest().to_be_bytes();
    api!(RedisModule_DigestAddStringBuffer(md, digest.as_ptr().cast::<c_char>(), digest.len()));
    api!(RedisModule_DigestEndSequence(md));
}

/// The key is about to go, or to be another's. On the main thread.
unsafe extern "C" fn unlinked(ctx: *mut raw::RedisModuleKeyOptCtx, _value: *const c_void) {
    if watched::waiting() > 0 {
        let (db, key) =
            (api!(RedisModule_GetDbIdFromOptCtx(ctx)), api!(RedisModule_GetKeyNameFromOptCtx(ctx)));
        watched::touch((db, bytes_of(key.cast_mut()).to_vec()));
    }
}

/// The server frees on a background thread what takes more than 64: nothing here may touch
/// anything but the value.
unsafe extern "C" fn free_effort(_key: *mut raw::RedisModuleString, value: *const c_void) -> usize {
    board_of(value).map_or(1, |value| value.board.pieces().max(1))
}

unsafe extern "C" fn free(value: *mut c_void) {
    if !value.is_null() {
        drop(Box::from_raw(value.cast::<BoardValue>()));
    }
}

unsafe extern "C" fn copy(
    _from: *mut raw::RedisModuleString,
    _to: *mut raw::RedisModuleString,
    value: *const c_void,
) -> *mut c_void {
    match board_of(value).map(|value| value.board.copy()) {
        Some(Ok(board)) => Box::into_raw(Box::new(BoardValue::new(board))).cast::<c_void>(),
        _ => std::ptr::null_mut(),
    }
}
