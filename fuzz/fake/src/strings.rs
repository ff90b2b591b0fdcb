//! The server's strings.

use redis_module::raw;
use std::cell::Cell;
use std::os::raw::c_char;
use std::slice;

use crate::server::server;

/// One string; the server's type is opaque.
pub struct Text(Vec<u8>);

/// A string that belongs to the server and lives as long as this.
pub struct Owned(*mut raw::RedisModuleString);

impl Owned {
    pub fn new(bytes: &[u8]) -> Owned {
        Owned(make(bytes))
    }

    pub fn raw(&self) -> *mut raw::RedisModuleString {
        self.0
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        give_back(self.0);
    }
}

/// How many strings there are. All that the module makes it has to free.
#[derive(Default)]
pub struct Count(pub Cell<i64>);

fn make(bytes: &[u8]) -> *mut raw::RedisModuleString {
    let count = &server().strings.0;
    count.set(count.get() + 1);
    Box::into_raw(Box::new(Text(bytes.to_vec()))).cast()
}

fn give_back(string: *mut raw::RedisModuleString) {
    let count = &server().strings.0;
    count.set(count.get() - 1);
    // SAFETY: a string of `make`'s, given back once.
    drop(unsafe { Box::from_raw(string.cast::<Text>()) });
}

/// The bytes of a string.
pub unsafe fn bytes<'a>(string: *const raw::RedisModuleString) -> &'a [u8] {
    assert!(!string.is_null(), "a string that is none");
    &(*string.cast::<Text>()).0
}

/// Bytes that the module passes.
pub unsafe fn passed<'a>(start: *const c_char, len: usize) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    slice::from_raw_parts(start.cast::<u8>(), len)
}

pub unsafe extern "C" fn create(
    ctx: *mut raw::RedisModuleCtx,
    start: *const c_char,
    len: usize,
) -> *mut raw::RedisModuleString {
    assert!(ctx.is_null(), "strings that the server frees by itself are not made here");
    make(passed(start, len))
}

pub unsafe extern "C" fn free(_ctx: *mut raw::RedisModuleCtx, string: *mut raw::RedisModuleString) {
    give_back(string);
}

pub unsafe extern "C" fn start(string: *const raw::RedisModuleString, len: *mut usize) -> *const c_char {
    let bytes = bytes(string);
    *len = bytes.len();
    bytes.as_ptr().cast()
}
