//! The server's allocator, so that its memory accounting and limits see what boards take.
//! Unlike the crate's it reallocates in place and takes zeroed memory where the server can.

use redis_module::raw;
use std::alloc::{GlobalAlloc, Layout};

/// See the module's comment. Alignments above 16 are not honoured; nothing here needs one.
pub struct ServerAlloc;

#[global_allocator]
static ALLOCATOR: ServerAlloc = ServerAlloc;

// SAFETY: the server's functions are those of a malloc: each returns memory of at least the
// asked size, aligned to 16, or aborts the process.
unsafe impl GlobalAlloc for ServerAlloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match raw::RedisModule_Alloc {
            Some(alloc) => alloc(layout.size()).cast(),
            None => std::process::abort(),
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match raw::RedisModule_Calloc {
            Some(calloc) => calloc(1, layout.size()).cast(),
            None => std::process::abort(),
        }
    }

    unsafe fn realloc(&self, ptr: *mut u8, _layout: Layout, size: usize) -> *mut u8 {
        match raw::RedisModule_Realloc {
            Some(realloc) => realloc(ptr.cast(), size).cast(),
            None => std::process::abort(),
        }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, _layout: Layout) {
        if let Some(free) = raw::RedisModule_Free {
            free(ptr.cast());
        }
    }
}
