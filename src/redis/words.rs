//! The words of a call.

use redis_module::raw;
use std::marker::PhantomData;

use crate::redis::strings::{bytes_of, Key, ServerString};

/// The words of a call, the command's name first.
#[derive(Clone, Copy)]
pub struct Words<'a> {
    argv: *const *mut raw::RedisModuleString,
    argc: usize,
    _life: PhantomData<&'a ()>,
}

impl<'a> Words<'a> {
    /// Wraps the words that the server passes.
    ///
    /// # Safety
    /// `argv` points to `argc` strings that live for `'a`.
    pub unsafe fn new(argv: *mut *mut raw::RedisModuleString, argc: i32) -> Self {
        Words { argv, argc: argc.max(0) as usize, _life: PhantomData }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.argc
    }

    fn string(&self, at: usize) -> Option<*mut raw::RedisModuleString> {
        // SAFETY: within the bounds that `new` was promised.
        (at < self.argc).then(|| unsafe { *self.argv.add(at) })
    }

    /// The bytes of one word.
    pub fn get(&self, at: usize) -> Option<&'a [u8]> {
        // SAFETY: the string lives for `'a`, as `new` was promised.
        self.string(at).map(|string| unsafe { bytes_of(string) })
    }

    /// One word as a key, which must not outlive the call.
    pub fn key(&self, at: usize) -> Option<Key<'a>> {
        // SAFETY: the string lives as long as the call, beyond which no key is kept.
        self.string(at).map(|string| unsafe { Key(ServerString::borrowed(string)) })
    }
}
