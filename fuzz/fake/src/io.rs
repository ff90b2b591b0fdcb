//! Saving and loading what is under a key, digests, and moving memory.

use redis_module::raw;
use std::ffi::CStr;
use std::os::raw::{c_char, c_int, c_uchar, c_ulong, c_void};

use crate::ctx::Ctx;
use crate::keys::Entry;
use crate::memory;
use crate::server::{Place, Server, REPLICA};
use crate::strings::{bytes, passed, Owned};

/// What a value is saved to, or loaded from.
#[derive(Default)]
struct Io {
    strings: Vec<Vec<u8>>,
    at: usize,
    place: Option<(i32, Owned)>,
    ctx: Option<Ctx>,
    failed: bool,
}

impl Io {
    fn raw(&mut self) -> *mut raw::RedisModuleIO {
        std::ptr::from_mut(self).cast()
    }
}

unsafe fn of<'a>(io: *mut raw::RedisModuleIO) -> &'a mut Io {
    &mut *io.cast::<Io>()
}

/// One walk through a value whose memory is moved.
struct Moving {
    cursor: c_ulong,
    /// So many questions whether to stop are answered with no.
    patience: u32,
}

impl Server {
    fn saved(&self, value: *mut c_void) -> Vec<Vec<u8>> {
        let mut io = Io::default();
        // SAFETY: what is saved to lives during the call.
        unsafe { self.methods().rdb_save.expect("a callback")(io.raw(), value) };
        io.strings
    }

    fn try_load(&self, strings: Vec<Vec<u8>>, place: Option<&Place>) -> Option<*mut c_void> {
        let place = place.map(|(db, key)| (*db, Owned::new(key)));
        let mut io = Io { strings, place, ctx: Some(Ctx::silent(0)), ..Io::default() };
        // SAFETY: what is loaded from lives during the call.
        let value = unsafe { self.methods().rdb_load.expect("a callback")(io.raw(), 1) };
        let whole = value.is_null() || io.at == io.strings.len();
        assert!(whole, "something was saved that is not read");
        (!value.is_null()).then_some(value)
    }

    fn loaded(&self, strings: Vec<Vec<u8>>, place: Option<&Place>) -> *mut c_void {
        self.try_load(strings, place).expect("what was saved cannot be loaded")
    }

    /// `DUMP`: what is under a key as the strings that the module saves it to.
    pub fn dump(&self, place: &Place) -> Option<Vec<Vec<u8>>> {
        self.value(place).map(|value| self.saved(value))
    }

    /// `RESTORE` with `REPLACE`: puts what the module makes of these strings under a key, or
    /// changes nothing. Only what `fits`.
    pub fn restore(
        &self,
        (db, key): &Place,
        strings: &[Vec<u8>],
        fits: impl Fn(*mut c_void) -> bool,
    ) -> bool {
        for at in [*db, db + REPLICA] {
            // Of what is refused the log tells.
            assert_eq!(self.warnings(), Vec::<String>::new());
            let value = self.try_load(strings.to_vec(), None);
            self.warnings();
            match value {
                None => return false,
                Some(value) if !fits(value) => {
                    self.free(value);
                    return false;
                }
                Some(value) => self.put((at, key.clone()), value),
            }
        }
        self.came(&(*db, key.clone()), c"restore");
        true
    }

    fn put(&self, place: Place, value: *mut c_void) {
        self.delete_one(&place);
        self.keys.borrow_mut().insert(place, Entry::Board(value));
    }

    /// Saves what is under a key to a file and loads it again.
    pub fn reload(&self, (db, key): &Place) {
        for at in [*db, db + REPLICA] {
            let place = (at, key.clone());
            let Some(strings) = self.dump(&place) else { return };
            let value = self.loaded(strings, Some(&place).filter(|_| at < REPLICA));
            self.put(place, value);
        }
        self.turn();
    }

    /// The copy is made anew, as by a replica that has fallen behind.
    pub fn resync(&self, (db, key): &Place) {
        if let Some(strings) = self.dump(&(*db, key.clone())) {
            let value = self.loaded(strings, None);
            self.put((db + REPLICA, key.clone()), value);
        }
    }

    /// Effects come to a key and its copy, as to replicas of another primary.
    pub fn follow(&self, (db, key): &Place, batch: &[u8]) {
        for at in [*db, db + REPLICA] {
            self.replay(at, &[b"JOB.APPLY".to_vec(), key.clone(), batch.to_vec()], false);
        }
    }

    /// Rewrites what is under a key as commands, and runs these at another place, where nothing
    /// is: a database that nobody reaches.
    pub fn rewrite(&self, place: &Place, to: &Place) {
        let Some(value) = self.value(place) else { return };
        let mut io = Io::default();
        let key = Owned::new(&place.1);
        // SAFETY: what is written to and the string live during the call.
        unsafe { self.methods().aof_rewrite.expect("a callback")(io.raw(), key.raw(), value) };
        assert!(self.value(to).is_none() && to.0 >= 2 * REPLICA);
        for part in io.strings {
            self.replay(to.0, &[b"JOB.LOAD".to_vec(), to.1.clone(), part], true);
        }
    }

    /// Takes what [`Server::rewrite`] made away.
    pub fn discard(&self, place: &Place) {
        self.delete_one(place);
    }

    /// What a value says of its size.
    pub fn measure(&self, place: &Place) -> usize {
        // SAFETY: the value lives while its key does.
        self.value(place).map_or(0, |value| unsafe { self.methods().mem_usage.expect("a callback")(value) })
    }

    /// Moves the memory of what is under a key, `patience` questions at a time.
    pub fn defragment(&self, place: &Place, patience: u32) {
        let Some(mut value) = self.value(place) else { return };
        let key = Owned::new(&place.1);
        let mut moving = Moving { cursor: 0, patience };
        for _ in 0..10_000 {
            moving.patience = patience;
            let ctx = std::ptr::from_mut(&mut moving).cast();
            // SAFETY: context, string and value live during the call.
            let more = unsafe { self.methods().defrag.expect("a callback")(ctx, key.raw(), &mut value) };
            self.keys.borrow_mut().insert(place.clone(), Entry::Board(value));
            if more == 0 {
                return;
            }
        }
        panic!("moving a value has no end");
    }
}

pub unsafe extern "C" fn save(io: *mut raw::RedisModuleIO, start: *const c_char, len: usize) {
    of(io).strings.push(passed(start, len).to_vec());
}

pub unsafe extern "C" fn load(io: *mut raw::RedisModuleIO, len: *mut usize) -> *mut c_char {
    let io = of(io);
    let Some(string) = io.strings.get(io.at) else {
        io.failed = true;
        return std::ptr::null_mut();
    };
    io.at += 1;
    *len = string.len();
    let to = memory::alloc(string.len().max(1));
    std::ptr::copy_nonoverlapping(string.as_ptr(), to.cast(), string.len());
    to.cast()
}

pub unsafe extern "C" fn failed(io: *mut raw::RedisModuleIO) -> c_int {
    c_int::from(of(io).failed)
}

pub unsafe extern "C" fn context(io: *mut raw::RedisModuleIO) -> *mut raw::RedisModuleCtx {
    of(io).ctx.as_ref().map_or(std::ptr::null_mut(), Ctx::raw)
}

pub unsafe extern "C" fn key(io: *mut raw::RedisModuleIO) -> *const raw::RedisModuleString {
    of(io).place.as_ref().map_or(std::ptr::null_mut(), |(_, key)| key.raw())
}

pub unsafe extern "C" fn db(io: *mut raw::RedisModuleIO) -> c_int {
    of(io).place.as_ref().map_or(-1, |(db, _)| *db)
}

/// A part of a value as a command.
///
/// # Safety
/// Called by the module, with what [`raw::RedisModule_EmitAOF`] takes.
#[no_mangle]
unsafe extern "C" fn fake_emitted(
    io: *mut raw::RedisModuleIO,
    command: *const c_char,
    key: *mut raw::RedisModuleString,
    start: *const c_char,
    len: usize,
) {
    assert_eq!(CStr::from_ptr(command), c"JOB.LOAD");
    bytes(key);
    of(io).strings.push(passed(start, len).to_vec());
}

pub unsafe extern "C" fn digest_add(_md: *mut raw::RedisModuleDigest, _start: *const c_char, _len: usize) {}

pub unsafe extern "C" fn digest_end(_md: *mut raw::RedisModuleDigest) {}

pub unsafe extern "C" fn get_cursor(ctx: *mut raw::RedisModuleDefragCtx, to: *mut c_ulong) -> c_int {
    *to = (*ctx.cast::<Moving>()).cursor;
    0
}

pub unsafe extern "C" fn set_cursor(ctx: *mut raw::RedisModuleDefragCtx, to: c_ulong) -> c_int {
    (*ctx.cast::<Moving>()).cursor = to;
    0
}

pub unsafe extern "C" fn should_stop(ctx: *mut raw::RedisModuleDefragCtx) -> c_int {
    let moving = &mut *ctx.cast::<Moving>();
    moving.patience = moving.patience.saturating_sub(1);
    c_int::from(moving.patience == 0)
}

pub unsafe extern "C" fn random(to: *mut c_uchar, len: usize) {
    std::ptr::write_bytes(to, 7, len);
}
