//! Keys: opening them, and what the server does to them by commands of its own. All of that is
//! done on the copy as well.

use redis_module::raw;
use std::ffi::CStr;
use std::os::raw::{c_char, c_int, c_void};

use crate::commands::the_type;
use crate::ctx::{of, Ctx};
use crate::server::{server, Place, Server, DATABASES, REPLICA};
use crate::strings::{bytes, Owned};

/// What stands under a key.
#[derive(Clone, Copy)]
pub enum Entry {
    /// A value of the module's type.
    Board(*mut c_void),
    /// Something else.
    Text,
}

/// A key that is open; its number is its handle.
pub struct Open {
    number: u64,
    place: Place,
    writable: bool,
}

/// What is told when a key goes.
struct Leaving {
    db: i32,
    key: Owned,
}

impl Server {
    /// The module's value under a key.
    pub fn value(&self, place: &Place) -> Option<*mut c_void> {
        match self.keys.borrow().get(place) {
            Some(Entry::Board(value)) => Some(*value),
            _ => None,
        }
    }

    /// All keys that hold a value of the module's type, those of the copy too.
    pub fn places(&self) -> Vec<Place> {
        let keys = self.keys.borrow();
        let boards = keys.iter().filter(|(_, entry)| matches!(entry, Entry::Board(_)));
        boards.map(|(place, _)| place.clone()).collect()
    }

    pub(crate) fn nothing_open(&self, when: &str) {
        let open = self.open.borrow();
        assert!(open.is_empty(), "{:?} is open at {when}", open[0].place);
    }

    /// `SET`.
    pub fn set_text(&self, (db, key): &Place) {
        for db in [*db, db + REPLICA] {
            self.delete_one(&(db, key.clone()));
            self.keys.borrow_mut().insert((db, key.clone()), Entry::Text);
        }
        self.turn();
    }

    /// `DEL`.
    pub fn delete(&self, (db, key): &Place) {
        [*db, db + REPLICA].into_iter().for_each(|db| self.delete_one(&(db, key.clone())));
        self.turn();
    }

    /// Takes what is under a key away.
    pub(crate) fn delete_one(&self, place: &Place) {
        self.leave(place);
        if let Some(Entry::Board(value)) = self.keys.borrow_mut().remove(place) {
            self.free(value);
        }
    }

    fn leave(&self, place: &Place) {
        let (Some(value), true) = (self.value(place), place.0 < DATABASES) else { return };
        let mut leaving = Leaving { db: place.0, key: Owned::new(&place.1) };
        let ctx = std::ptr::from_mut(&mut leaving).cast();
        // SAFETY: what is told lives during the call.
        unsafe { self.methods().unlink2.expect("a callback")(ctx, value) };
    }

    pub(crate) fn free(&self, value: *mut c_void) {
        // SAFETY: a value of the module's, freed once.
        unsafe {
            self.methods().free_effort.expect("a callback")(std::ptr::null_mut(), value);
            self.methods().free.expect("a callback")(value);
        }
    }

    pub(crate) fn methods(&self) -> raw::RedisModuleTypeMethods {
        self.methods.get().expect("a type")
    }

    /// `FLUSHDB`.
    pub fn flush(&self, db: i32) {
        let mut info = raw::RedisModuleFlushInfo { version: 1, sync: 1, dbnum: db };
        self.event(raw::REDISMODULE_EVENT_FLUSHDB, 0, std::ptr::from_mut(&mut info).cast());
        let all: Vec<Place> =
            self.keys.borrow().keys().filter(|(of, _)| *of % REPLICA == db).cloned().collect();
        // A flush tells of no key by itself.
        for place in all {
            if let Some(Entry::Board(value)) = self.keys.borrow_mut().remove(&place) {
                self.free(value);
            }
        }
        self.event(raw::REDISMODULE_EVENT_FLUSHDB, 1, std::ptr::from_mut(&mut info).cast());
        self.turn();
    }

    /// `SWAPDB` of both databases.
    pub fn swap(&self) {
        let swapped = |(db, key): Place| match db % REPLICA {
            0 => (db + 1, key),
            _ => (db - 1, key),
        };
        let keys = self.keys.take().into_iter().map(|(place, entry)| (swapped(place), entry)).collect();
        self.keys.replace(keys);
        let mut info = raw::RedisModuleSwapDbInfo { version: 1, dbnum_first: 0, dbnum_second: 1 };
        self.event(raw::REDISMODULE_EVENT_SWAPDB, 0, std::ptr::from_mut(&mut info).cast());
        let all: Vec<Place> = self.keys.borrow().keys().filter(|(db, _)| *db < DATABASES).cloned().collect();
        self.arrived.borrow_mut().extend(all);
        self.after_call();
    }

    /// `RENAME`.
    pub fn rename(&self, db: i32, from: &[u8], to: &[u8]) {
        if from == to || !self.keys.borrow().contains_key(&(db, from.to_vec())) {
            return;
        }
        for db in [db, db + REPLICA] {
            let (from, to) = ((db, from.to_vec()), (db, to.to_vec()));
            self.leave(&from);
            self.delete_one(&to);
            let mut keys = self.keys.borrow_mut();
            if let Some(entry) = keys.remove(&from) {
                keys.insert(to, entry);
            }
        }
        self.came(&(db, to.to_vec()), c"rename_to");
    }

    /// `COPY`, with `REPLACE`.
    pub fn copy(&self, db: i32, from: &[u8], to: &[u8]) {
        if from == to {
            return;
        }
        for db in [db, db + REPLICA] {
            let Some(value) = self.value(&(db, from.to_vec())) else { return };
            let (old, new) = (Owned::new(from), Owned::new(to));
            // SAFETY: the strings live during the call.
            let copy = unsafe { self.methods().copy.expect("a callback")(old.raw(), new.raw(), value) };
            assert!(!copy.is_null(), "a board is not copied");
            let to = (db, to.to_vec());
            self.delete_one(&to);
            self.keys.borrow_mut().insert(to, Entry::Board(copy));
        }
        self.came(&(db, to.to_vec()), c"copy_to");
    }

    /// A key has come, by whatever way but the module's commands.
    pub(crate) fn came(&self, place: &Place, event: &CStr) {
        self.arrived.borrow_mut().push(place.clone());
        let ctx = Ctx::silent(place.0);
        let key = Owned::new(&place.1);
        if let Some(callback) = self.key_event.get() {
            let kind = raw::REDISMODULE_NOTIFY_GENERIC;
            // SAFETY: context and string live during the call.
            unsafe { callback(ctx.raw(), kind, event.as_ptr(), key.raw()) };
        }
        drop(key);
        self.after_call();
    }
}

/// A key open for reading that is not there is no key.
pub unsafe extern "C" fn open(
    ctx: *mut raw::RedisModuleCtx,
    key: *mut raw::RedisModuleString,
    mode: c_int,
) -> *mut raw::RedisModuleKey {
    let server = server();
    let place = (of(ctx).db.get(), bytes(key).to_vec());
    let writable = mode as u32 & raw::REDISMODULE_WRITE != 0;
    let alone = server.open.borrow().iter().all(|open| open.place != place);
    assert!(alone, "{place:?} is open already");
    if !writable && !server.keys.borrow().contains_key(&place) {
        return std::ptr::null_mut();
    }
    let number = server.next_number();
    server.open.borrow_mut().push(Open { number, place, writable });
    number as *mut raw::RedisModuleKey
}

fn place_of(handle: *mut raw::RedisModuleKey) -> (Place, bool) {
    let open = server().open.borrow();
    let found = open.iter().find(|open| open.number == handle as u64);
    let found = found.expect("a key that is not open");
    (found.place.clone(), found.writable)
}

pub unsafe extern "C" fn close(handle: *mut raw::RedisModuleKey) {
    place_of(handle);
    server().open.borrow_mut().retain(|open| open.number != handle as u64);
}

pub unsafe extern "C" fn delete(handle: *mut raw::RedisModuleKey) -> c_int {
    let (place, writable) = place_of(handle);
    assert!(writable);
    server().delete_one(&place);
    0
}

pub unsafe extern "C" fn kind(handle: *mut raw::RedisModuleKey) -> c_int {
    let kind = match server().keys.borrow().get(&place_of(handle).0) {
        None => raw::REDISMODULE_KEYTYPE_EMPTY,
        Some(Entry::Text) => raw::REDISMODULE_KEYTYPE_STRING,
        Some(Entry::Board(_)) => raw::REDISMODULE_KEYTYPE_MODULE,
    };
    kind as c_int
}

/// No key has no type.
pub unsafe extern "C" fn get_type(handle: *mut raw::RedisModuleKey) -> *mut raw::RedisModuleType {
    if handle.is_null() {
        return std::ptr::null_mut();
    }
    match server().value(&place_of(handle).0) {
        Some(_) => the_type(),
        None => std::ptr::null_mut(),
    }
}

pub unsafe extern "C" fn get_value(handle: *mut raw::RedisModuleKey) -> *mut c_void {
    server().value(&place_of(handle).0).unwrap_or(std::ptr::null_mut())
}

pub unsafe extern "C" fn set_value(
    handle: *mut raw::RedisModuleKey,
    kind: *mut raw::RedisModuleType,
    value: *mut c_void,
) -> c_int {
    let (place, writable) = place_of(handle);
    assert!(writable && kind == the_type());
    let before = server().keys.borrow_mut().insert(place.clone(), Entry::Board(value));
    assert!(before.is_none(), "a board takes the place of another");
    server().arrived.borrow_mut().push(place);
    0
}

pub unsafe extern "C" fn signal_modified(
    ctx: *mut raw::RedisModuleCtx,
    key: *mut raw::RedisModuleString,
) -> c_int {
    of(ctx);
    bytes(key);
    0
}

pub unsafe extern "C" fn leaving_key(ctx: *mut raw::RedisModuleKeyOptCtx) -> *const raw::RedisModuleString {
    (*ctx.cast::<Leaving>()).key.raw()
}

pub unsafe extern "C" fn leaving_db(ctx: *mut raw::RedisModuleKeyOptCtx) -> c_int {
    (*ctx.cast::<Leaving>()).db
}

pub unsafe extern "C" fn notify(
    ctx: *mut raw::RedisModuleCtx,
    _class: c_int,
    event: *const c_char,
    key: *mut raw::RedisModuleString,
) -> c_int {
    of(ctx);
    bytes(key);
    assert!(CStr::from_ptr(event).to_bytes().starts_with(b"job."));
    server().nothing_open("a notification");
    0
}

pub unsafe extern "C" fn publish(
    ctx: *mut raw::RedisModuleCtx,
    channel: *mut raw::RedisModuleString,
    message: *mut raw::RedisModuleString,
) -> c_int {
    of(ctx);
    assert!(bytes(channel).starts_with(b"job.") && !bytes(message).is_empty());
    server().nothing_open("a message");
    0
}
