//! Strings of the server's.

use redis_module::raw;
use std::marker::PhantomData;
use std::ops::Deref;

use crate::redis::api;

/// A string of the server's: one of a call's words, or one of our own.
pub struct ServerString<'s> {
    string: *mut raw::RedisModuleString,
    /// Whether it is freed with this value.
    owned: bool,
    _lives: PhantomData<&'s ()>,
}

/// The name of a key.
pub struct Key<'k>(pub(super) ServerString<'k>);

impl ServerString<'static> {
    /// A string that the server has made for this value alone.
    pub(crate) fn owned(string: *mut raw::RedisModuleString) -> Self {
        ServerString { string, owned: true, _lives: PhantomData }
    }
}

impl<'s> ServerString<'s> {
    /// A string that somebody else owns.
    ///
    /// # Safety
    /// The string is valid, and lives longer than this value.
    pub(crate) unsafe fn borrowed(string: *mut raw::RedisModuleString) -> ServerString<'s> {
        ServerString { string, owned: false, _lives: PhantomData }
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the string lives as long as `self`.
        unsafe { bytes_of(self.string) }
    }

    /// The string for a call of the server.
    pub(crate) fn raw(&self) -> *mut raw::RedisModuleString {
        self.string
    }
}

impl<'k> Deref for Key<'k> {
    type Target = ServerString<'k>;

    fn deref(&self) -> &ServerString<'k> {
        &self.0
    }
}

impl Drop for ServerString<'_> {
    fn drop(&mut self) {
        if self.owned {
            // SAFETY: the string was created without a context for this value alone.
            unsafe { api!(RedisModule_FreeString(std::ptr::null_mut(), self.string)) };
        }
    }
}

/// The bytes of a server's string.
///
/// # Safety
/// The string is valid and lives for `'a`.
pub(crate) unsafe fn bytes_of<'a>(string: *const raw::RedisModuleString) -> &'a [u8] {
    if string.is_null() {
        return &[];
    }
    let mut len = 0;
    // SAFETY: the string is valid; its length is written into `len`.
    let start = unsafe { api!(RedisModule_StringPtrLen(string, &mut len)) };
    if start.is_null() {
        return &[];
    }
    // SAFETY: the server's strings do not change while somebody holds them, and this one is
    // held for `'a`.
    unsafe { std::slice::from_raw_parts(start.cast::<u8>(), len) }
}
