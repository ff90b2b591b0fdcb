//! The server's allocator, so that its memory accounting and limits include boards. Unlike the
//! crate's allocator it reallocates in place and takes zeroed memory where the server can.

#![cfg_attr(test, allow(dead_code))]

use redis_module::raw;
use std::alloc::{GlobalAlloc, Layout};
use std::ptr::null_mut;

/// The allocator. See the module's comment. It refuses alignments above 16; nothing here needs one.
pub struct ServerAlloc;

/// The alignment of the server's allocator, for sizes that are multiples of it.
const ALIGNMENT: usize = 16;

/// A size whose memory has the requested alignment; `None` when there is none. Redis builds its
/// jemalloc with steps of 8 bytes, where only sizes that are multiples of 16 are aligned to 16.
fn padded(size: usize, align: usize) -> Option<usize> {
    (align <= ALIGNMENT).then(|| size.next_multiple_of(align))
}

// Tests of this package run without a server.
#[cfg_attr(not(test), global_allocator)]
static ALLOCATOR: ServerAlloc = ServerAlloc;

// SAFETY: the server's functions are those of a malloc: each returns memory of at least the
// asked size, aligned as `padded` says, or aborts the process. They can be called on any
// thread, and do not unwind.
unsafe impl GlobalAlloc for ServerAlloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(size) = padded(layout.size(), layout.align()) else { return null_mut() };
        // SAFETY: written once, before the module allocates anything.
        match unsafe { raw::RedisModule_Alloc } {
            // SAFETY: a size that is not 0, as callers have to see to.
            Some(alloc) => unsafe { alloc(size) }.cast(),
            None => std::process::abort(),
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let Some(size) = padded(layout.size(), layout.align()) else { return null_mut() };
        // SAFETY: as for `alloc`.
        match unsafe { raw::RedisModule_Calloc } {
            // SAFETY: as for `alloc`.
            Some(calloc) => unsafe { calloc(1, size) }.cast(),
            None => std::process::abort(),
        }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let Some(size) = padded(size, layout.align()) else { return null_mut() };
        // SAFETY: as for `alloc`.
        match unsafe { raw::RedisModule_Realloc } {
            // SAFETY: callers give what one of these functions gave them, so it is the server's.
            Some(realloc) => unsafe { realloc(ptr.cast(), size) }.cast(),
            None => std::process::abort(),
        }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, _layout: Layout) {
        // SAFETY: as for `alloc`.
        if let Some(free) = unsafe { raw::RedisModule_Free } {
            // SAFETY: as for `realloc`; it is not used again.
            unsafe { free(ptr.cast()) };
        }
    }
}
