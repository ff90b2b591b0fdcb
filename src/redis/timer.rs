//! The server's timer.

use redis_module::raw;
use std::ffi::c_void;

use crate::redis::api;
use crate::redis::ctx::Ctx;
use crate::redis::guard::guard;

/// A timer that is set and has not fired.
pub struct Armed(raw::RedisModuleTimerID);

/// What a timer does when it fires.
pub trait Fires {
    /// Runs in the main thread between two commands.
    fn fire(ctx: Ctx);
}

impl Ctx<'_> {
    /// Sets a timer: `F` fires after this many ms.
    pub fn set_timer<F: Fires>(self, ms: i64) -> Armed {
        // SAFETY: the context is that of a callback or command; the callback takes no data.
        Armed(unsafe { api!(RedisModule_CreateTimer(self.0, ms, Some(fire::<F>), std::ptr::null_mut())) })
    }

    /// Stops a timer that has not fired.
    pub fn stop_timer(self, timer: Armed) {
        // SAFETY: the context is that of a callback or command. A timer that is not there any more
        // is none for the server: its number is not given twice. Its data is null.
        unsafe { api!(RedisModule_StopTimer(self.0, timer.0, std::ptr::null_mut())) };
    }
}

unsafe extern "C" fn fire<F: Fires>(ctx: *mut raw::RedisModuleCtx, _data: *mut c_void) {
    // SAFETY: the context of this callback; nothing keeps it.
    let ctx = unsafe { Ctx::of_call(ctx) };
    guard("the timer", || F::fire(ctx));
}
