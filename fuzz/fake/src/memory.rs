//! Memory. It is that of the C library, so that a sanitizer sees each allocation of the module.

use redis_module::raw;
use std::os::raw::c_void;

pub unsafe extern "C" fn alloc(bytes: usize) -> *mut c_void {
    libc::malloc(bytes)
}

pub unsafe extern "C" fn calloc(count: usize, bytes: usize) -> *mut c_void {
    libc::calloc(count, bytes)
}

pub unsafe extern "C" fn realloc(from: *mut c_void, bytes: usize) -> *mut c_void {
    libc::realloc(from, bytes)
}

pub unsafe extern "C" fn free(from: *mut c_void) {
    libc::free(from);
}

/// A module that is linked in allocates before it is loaded: its allocator is the program's.
unsafe extern "C" fn early() {
    raw::RedisModule_Alloc = Some(alloc);
    raw::RedisModule_Calloc = Some(calloc);
    raw::RedisModule_Realloc = Some(realloc);
    raw::RedisModule_Free = Some(free);
}

#[used]
#[link_section = ".init_array"]
static EARLY: unsafe extern "C" fn() = early;

/// Moves what a board holds, as a server does that defragments: always, so that whoever keeps
/// the old place is found out.
pub unsafe extern "C" fn moved(_ctx: *mut raw::RedisModuleDefragCtx, from: *mut c_void) -> *mut c_void {
    let size = libc::malloc_usable_size(from);
    let to = libc::malloc(size);
    libc::memcpy(to, from, size);
    libc::free(from);
    to
}
