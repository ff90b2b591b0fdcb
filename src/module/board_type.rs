//! The data type: how the server saves, loads, copies, measures and frees boards.

use board::{Board, Loader};
use redis_module::raw;
use std::os::raw::{c_char, c_int, c_void};

use crate::redis::api;
use crate::redis::ctx::{Ctx, Level};
use crate::redis::keyspace;
use crate::redis::strings::bytes_of;
use crate::runtime::blocked_posts;
use crate::runtime::blocked_waits;
use crate::runtime::board_value::{BoardValue, BOARD_TYPE};
use crate::runtime::timer;

/// The version of what [`rdb_save`] writes. It must not change: a server does not start with a file
/// of another version. Boards grow inside of their snapshots instead.
const ENCODING: c_int = 1;

/// Registers the type with the server.
pub fn register(ctx: Ctx) -> bool {
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
    // SAFETY: the context is that of the load, the name has nine characters, and the methods
    // have the types of their places; the server copies them.
    let handle =
        unsafe { api!(RedisModule_CreateDataType(ctx.0, c"jobboard1".as_ptr(), ENCODING, &mut methods)) };
    BOARD_TYPE.set(handle);
    !handle.is_null()
}

/// What is under a key of this type.
pub type Kept = keyspace::Kept<BoardValue>;

/// The board in a value that the server passes.
///
/// # Safety
/// The pointer is null, or one that we put under a key and that has not been freed. While the
/// reference is in use nothing changes the value.
pub unsafe fn board_of<'a>(value: *const c_void) -> Option<&'a BoardValue> {
    // SAFETY: what is put under keys of the type are `Kept`s alone, and nobody has it open.
    unsafe { Some(&*value.cast::<Kept>().as_ref()?.value()) }
}

/// A file or a stream that the server lets us write or read during a callback.
struct Io(*mut raw::RedisModuleIO);

impl Io {
    fn save(&self, bytes: &[u8]) {
        // SAFETY: during a callback that saves; the bytes are written or copied in the call.
        unsafe { api!(RedisModule_SaveStringBuffer(self.0, bytes.as_ptr().cast::<c_char>(), bytes.len())) };
    }

    fn emit(&self, key: *mut raw::RedisModuleString, part: &[u8]) {
        // SAFETY: during a callback that rewrites a log. The format names a server string, which
        // is the key that the callback was given, and bytes with their length.
        unsafe {
            if let Some(emit) = raw::RedisModule_EmitAOF {
                let (bytes, len) = (part.as_ptr().cast::<c_char>(), part.len());
                emit(self.0, c"JOB.LOAD".as_ptr(), c"sb".as_ptr(), key, bytes, len);
            }
        }
    }

    /// Calls `read` with the next bytes; `None` when they are cut. The server may serve clients
    /// before it has read them all.
    fn load<R>(&self, read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let mut len = 0;
        // SAFETY: during a callback that loads; the length is written into `len`.
        let bytes = unsafe { api!(RedisModule_LoadStringBuffer(self.0, &mut len)) };
        if bytes.is_null() {
            return None;
        }
        // SAFETY: a buffer of so many bytes, ours until it is freed below.
        let read = read(unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), len) });
        // SAFETY: `read` takes any lifetime, so that its outcome does not refer to the buffer.
        unsafe { api!(RedisModule_Free(bytes.cast::<c_void>())) };
        Some(read)
    }

    /// Gives the timer a hint for a loaded board, if its key is known: in files and full resyncs.
    /// After RESTORE the event of the key does so.
    fn announce(&self, ctx: Ctx, value: &mut BoardValue) {
        // SAFETY: during a callback that loads, for which the name lives, if there is one.
        let (db, name) = unsafe {
            let name = api!(RedisModule_GetKeyNameFromIO(self.0));
            if name.is_null() {
                return;
            }
            (api!(RedisModule_GetDbIdFromIO(self.0)), bytes_of(name))
        };
        if let Some(why) = value.board.why_held() {
            let name = board::clean(name);
            ctx.log(Level::Warning, &format!("board {name} is broken, and kept as it is: {why}"));
        }
        timer::loaded(db, name, value);
    }
}

unsafe extern "C" fn rdb_save(io: *mut raw::RedisModuleIO, value: *mut c_void) {
    // SAFETY: a value of ours, in the main thread between two commands or in a process of its own.
    let Some(value) = (unsafe { board_of(value) }) else { return };
    let io = Io(io);
    value.snapshot(|part| io.save(part));
    io.save(b"");
}

unsafe extern "C" fn rdb_load(io: *mut raw::RedisModuleIO, encoding: c_int) -> *mut c_void {
    // SAFETY: the context is that of the callback.
    let ctx = unsafe { Ctx::of_call(api!(RedisModule_GetContextFromIO(io))) };
    let io = Io(io);
    // A replica takes what its primary has restored.
    match load_board(&io, encoding, ctx.is_loading() || !ctx.is_primary()) {
        Ok(board) => {
            let mut kept = Kept::new(BoardValue::new(board));
            io.announce(ctx, kept.value_mut());
            Box::into_raw(kept).cast::<c_void>()
        }
        Err(what) => {
            ctx.log(Level::Warning, &format!("a board cannot be loaded: {what}"));
            std::ptr::null_mut()
        }
    }
}

/// Loads a board. A server must start: what it cannot read in its own files is held. RESTORE is
/// refused.
fn load_board(io: &Io, encoding: c_int, own: bool) -> Result<Board, &'static str> {
    if encoding != ENCODING {
        return Err("written by a later version");
    }
    let mut loader = if own { Loader::holding() } else { Loader::default() };
    loop {
        let more = io.load(|part| match part {
            [] => Ok(false),
            part => loader.part(part).map(|()| true),
        });
        match more {
            Some(Ok(true)) => {}
            Some(Ok(false)) => return loader.finish().map_err(|damage| damage.0),
            Some(Err(damage)) => return Err(damage.0),
            None => return Err("it is cut"),
        }
    }
}

unsafe extern "C" fn aof_rewrite(
    io: *mut raw::RedisModuleIO,
    key: *mut raw::RedisModuleString,
    value: *mut c_void,
) {
    // SAFETY: as for `rdb_save`.
    let Some(value) = (unsafe { board_of(value) }) else { return };
    let io = Io(io);
    value.snapshot(|part| io.emit(key, part));
}

unsafe extern "C" fn mem_usage(value: *const c_void) -> usize {
    // SAFETY: a value of ours, in a command of the server's: none of ours runs.
    unsafe { board_of(value) }.map_or(0, |value| value.arrived().bytes())
}

unsafe extern "C" fn digest(md: *mut raw::RedisModuleDigest, value: *mut c_void) {
    // SAFETY: as for `mem_usage`.
    let Some(value) = (unsafe { board_of(value) }) else { return };
    let digest = value.board.digest().to_be_bytes();
    // SAFETY: the digest is that of the callback, and takes the bytes in during the call.
    unsafe {
        api!(RedisModule_DigestAddStringBuffer(md, digest.as_ptr().cast::<c_char>(), digest.len()));
        api!(RedisModule_DigestEndSequence(md));
    }
}

/// The key is about to be deleted, or its value to move to another. Runs on the main thread, and
/// also when the lookup of an expired key deletes it: so no state of ours may be borrowed while a
/// key is opened.
unsafe extern "C" fn unlinked(ctx: *mut raw::RedisModuleKeyOptCtx, _value: *const c_void) {
    if blocked_waits::waiting() > 0 || blocked_posts::waiting().0 > 0 {
        // SAFETY: the context is that of the callback, and the name lives as long.
        let (db, name) = unsafe {
            let key = api!(RedisModule_GetKeyNameFromOptCtx(ctx));
            (api!(RedisModule_GetDbIdFromOptCtx(ctx)), bytes_of(key))
        };
        blocked_waits::touch((db, name.to_vec()));
        blocked_posts::touch((db, name.to_vec()));
    }
}

/// The server frees values with more than 64 pieces on a background thread: `free` may touch
/// nothing but the value.
unsafe extern "C" fn free_effort(_key: *mut raw::RedisModuleString, value: *const c_void) -> usize {
    // SAFETY: as for `mem_usage`; it is asked before the value is given away.
    unsafe { board_of(value) }.map_or(1, |value| value.arrived().pieces().max(1))
}

unsafe extern "C" fn free(value: *mut c_void) {
    if !value.is_null() {
        let kept = value.cast::<Kept>();
        // SAFETY: a value that came from a `Box`, given back once, when it is under no key any
        // more. It is `Send`, and counts itself in atomics alone. Where it is open whoever opened
        // it frees it: another module deleted the key in the notification of its coming, say.
        unsafe { Kept::give_back(kept) }
    }
}

unsafe extern "C" fn copy(
    _from: *mut raw::RedisModuleString,
    _to: *mut raw::RedisModuleString,
    value: *const c_void,
) -> *mut c_void {
    // SAFETY: as for `mem_usage`.
    match unsafe { board_of(value) }.map(|value| value.board.copy()) {
        Some(Ok(board)) => Box::into_raw(Kept::new(BoardValue::new(board))).cast::<c_void>(),
        _ => std::ptr::null_mut(),
    }
}
