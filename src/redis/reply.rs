//! Replies, written straight to the client.

use redis_module::raw;
use std::ffi::CString;
use std::marker::PhantomData;
use std::os::raw::{c_char, c_long};

use crate::redis::api;
use crate::redis::cell::MainCell;
use crate::redis::ctx::Ctx;

/// Writes a reply to the client of a call. Maps and doubles are those of RESP3; the server sends a
/// RESP2 client flat arrays and strings. A reply without a context only counts bytes.
#[derive(Clone, Copy)]
pub struct Reply<'c>(*mut raw::RedisModuleCtx, PhantomData<Ctx<'c>>);

/// About how many bytes an element has beside its own: its length, ends of lines.
const HEAD: usize = 16;

/// The bytes of the current measurement.
static MEASURED: MainCell<usize> = MainCell::new(0);

/// About how many bytes the output of `write` takes in a reply.
pub fn measure(write: impl FnOnce(Reply<'_>)) -> usize {
    MEASURED.with(|bytes| *bytes = 0);
    write(Reply(std::ptr::null_mut(), PhantomData));
    MEASURED.with(|bytes| *bytes)
}

impl<'c> Ctx<'c> {
    /// The reply of this call.
    pub fn reply(self) -> Reply<'c> {
        Reply(self.0, PhantomData)
    }
}

// In all functions here the context is that of a command, or of a callback of a parked client, and
// valid, since it is used during that call alone; and the server copies what it is given.
impl Reply<'_> {
    /// Whether this only counts; it then has counted the head of an element and these bytes.
    fn counts(self, bytes: usize) -> bool {
        let counts = self.0.is_null();
        if counts {
            MEASURED.with(|sum| *sum = sum.saturating_add(HEAD + bytes));
        }
        counts
    }

    /// Bytes.
    pub fn bytes(self, bytes: &[u8]) {
        if self.counts(bytes.len()) {
            return;
        }
        // SAFETY: as above; pointer and length are those of one slice.
        unsafe {
            api!(RedisModule_ReplyWithStringBuffer(self.0, bytes.as_ptr().cast::<c_char>(), bytes.len()))
        };
    }

    /// A fixed word.
    pub fn text(self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// `OK`.
    pub fn ok(self) {
        if self.counts(0) {
            return;
        }
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplyWithSimpleString(self.0, c"OK".as_ptr())) };
    }

    /// A status line.
    pub fn status(self, line: &str) {
        let line = CString::new(line).unwrap_or_default();
        // SAFETY: as above; a C string.
        unsafe { api!(RedisModule_ReplyWithSimpleString(self.0, line.as_ptr())) };
    }

    /// A whole number.
    pub fn int(self, n: i64) {
        if self.counts(0) {
            return;
        }
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplyWithLongLong(self.0, n)) };
    }

    /// A number; a RESP2 client gets its shortest text, which the server would not send.
    pub fn double(self, n: f64) {
        if self.counts(0) {
            return;
        }
        // SAFETY: the context is valid.
        let resp3 = unsafe { api!(RedisModule_GetContextFlags(self.0)) } as u32
            & raw::REDISMODULE_CTX_FLAGS_RESP3
            != 0;
        match resp3 {
            // SAFETY: as above.
            true => unsafe {
                api!(RedisModule_ReplyWithDouble(self.0, n));
            },
            false => self.text(&n.to_string()),
        }
    }

    /// Nothing.
    pub fn null(self) {
        if self.counts(0) {
            return;
        }
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplyWithNull(self.0)) };
    }

    /// No list.
    pub fn null_array(self) {
        if self.counts(0) {
            return;
        }
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplyWithNullArray(self.0)) };
    }

    /// The head of a list; `n` elements must follow.
    pub fn array(self, n: usize) {
        if self.counts(0) {
            return;
        }
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplyWithArray(self.0, n as c_long)) };
    }

    /// The head of a map; `n` pairs must follow.
    pub fn map(self, n: usize) {
        if self.counts(0) {
            return;
        }
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplyWithMap(self.0, n as c_long)) };
    }

    /// An error: one line that begins with its code.
    pub fn error(self, line: &str) {
        if self.counts(line.len()) {
            return;
        }
        let clean = line.bytes().map(|b| if b < b' ' || b == 0x7f { b'?' } else { b });
        let line: Vec<u8> = clean.chain([0]).collect();
        // SAFETY: as above; `line` ends with its only NUL.
        unsafe { api!(RedisModule_ReplyWithError(self.0, line.as_ptr().cast::<c_char>())) };
    }
}
