//! Parking clients on their board's key, so that whatever happens to the key, the slot or the
//! server's role ends the wait as for the server's own commands.

use redis_module::raw;
use std::collections::BTreeMap;
use std::ffi::c_void;

use crate::server::api;
use crate::server::cell::MainCell;
use crate::server::ctx::{Ctx, Key};

/// The server's handle of a parked client.
#[derive(Clone, Copy)]
pub struct Handle(*mut raw::RedisModuleBlockedClient);

/// What the server calls for a parked client.
pub struct Callbacks {
    /// The key has come, or come back.
    pub ready: raw::RedisModuleCmdFunc,
    /// The wait is over: by [`Handle::unblock`], or because it has lasted long enough.
    pub over: raw::RedisModuleCmdFunc,
    /// The server is done with the client, however the wait ended. Gets the number.
    pub gone: Option<unsafe extern "C" fn(*mut raw::RedisModuleCtx, *mut c_void)>,
}

static LAST: MainCell<u64> = MainCell::new(0);

/// The number that the next to arrive gets.
pub fn next_number() -> u64 {
    LAST.with(|last| {
        *last += 1;
        *last
    })
}

/// Parks the client of a call for `timeout` ms; 0 for ever. `None` when the server refuses.
pub fn park(ctx: Ctx, key: &Key, timeout: i64, number: u64, callbacks: &Callbacks) -> Option<Handle> {
    let mut keys = [key.0];
    // SAFETY: one key of the call's own; the private data is a number, not a pointer.
    let handle = unsafe {
        api!(RedisModule_BlockClientOnKeys(
            ctx.0,
            callbacks.ready,
            callbacks.over,
            callbacks.gone,
            timeout,
            keys.as_mut_ptr(),
            1,
            number as usize as *mut c_void,
        ))
    };
    (!handle.is_null()).then_some(Handle(handle))
}

/// The number of the client that a callback is called for.
///
/// # Safety
/// The context is that of a callback of a parked client.
pub unsafe fn number(ctx: *mut raw::RedisModuleCtx) -> u64 {
    api!(RedisModule_GetBlockedClientPrivateData(ctx)) as usize as u64
}

/// Clients that have got what they waited for, by number, until they are told.
pub struct Chosen<C> {
    fresh: BTreeMap<u64, (Handle, C)>,
    /// The server has been asked to unblock these.
    asked: BTreeMap<u64, C>,
}

impl<C> Chosen<C> {
    /// Nobody.
    pub const NONE: Self = Chosen { fresh: BTreeMap::new(), asked: BTreeMap::new() };

    /// Whether all have been told.
    pub fn is_empty(&self) -> bool {
        self.fresh.is_empty() && self.asked.is_empty()
    }

    /// One more.
    pub fn insert(&mut self, number: u64, handle: Handle, client: C) {
        self.fresh.insert(number, (handle, client));
    }

    /// One that is told now, or has gone.
    pub fn remove(&mut self, number: u64) -> Option<C> {
        self.asked.remove(&number).or_else(|| self.fresh.remove(&number).map(|(_, client)| client))
    }

    /// Takes out those whom the server has not been asked to unblock.
    pub fn take_fresh(&mut self) -> BTreeMap<u64, (Handle, C)> {
        std::mem::take(&mut self.fresh)
    }

    fn ask(&mut self) -> Vec<Handle> {
        let fresh = self.take_fresh().into_iter();
        let asked = fresh.map(|(number, (handle, client))| {
            self.asked.insert(number, client);
            handle
        });
        asked.collect()
    }
}

/// Unblocks all that were chosen. At the end of the event loop's turn.
pub fn unblock_chosen<C>(chosen: &MainCell<Chosen<C>>) {
    let handles = chosen.with(Chosen::ask);
    // No state of ours is borrowed while their callbacks run.
    handles.into_iter().for_each(Handle::unblock);
}

impl Handle {
    /// Ends the wait of a client that the server has not taken from us.
    pub fn unblock(self) {
        // SAFETY: `gone` has not been called for it.
        unsafe { api!(RedisModule_UnblockClient(self.0, std::ptr::null_mut())) };
    }
}
