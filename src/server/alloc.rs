//! The server's allocator, so that its memory accounting and limits see what boards take.
//! Unlike the crate's it reallocates in place and takes zeroed memory where the server can.

use redis_module::raw;
use std::alloc::{GlobalAlloc, Layout};

/// See the module's comment. Alignments above 16 are not honoured; nothing here needs one.
pub struct ServerAlloc;

/// A size whose memory is aligned as asked. Redis builds its jemalloc with steps of 8 bytes,
/// where only sizes that are multiples of 16 are aligned to 16.
fn padded(size: usize, align: usize) -> usize {
    size.next_multiple_of(align)
}

#[global_allocator]
static ALLOCATOR: ServerAlloc = ServerAlloc;

// SAFETY: the server's functions are those of a malloc: each returns memory of at least the
// asked size, aligned as `padded` says, or aborts the process.
unsafe impl GlobalAlloc for ServerAlloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match raw::RedisModule_Alloc {
            Some(alloc) => alloc(padded(layout.size(), layout.align())).cast(),
            None => std::process::abort(),
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match raw::RedisModule_Calloc {
            Some(calloc) => calloc(1, padded(layout.size(), layout.align())).cast(),
            None => std::process::abort(),
        }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        match raw::RedisModule_Realloc {
            Some(realloc) => realloc(ptr.cast(), padded(size, layout.align())).cast(),
            None => std::process::abort(),
        }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, _layout: Layout) {
        if let Some(free) = raw::RedisModule_Free {
            free(ptr.cast());
        }
    }
}
