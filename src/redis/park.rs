//! Parking clients, so that changes of the slot or the server's role end the wait as they do for
//! the server's own commands.
//!
//! When a key is created, the server wakes every client parked on it, one after the other (Valkey
//! 9.1 searches its list for each). So clients are parked on a name beside their board's, in the
//! same slot, under which no key is ever created: our own lines choose who is served.

use redis_module::raw;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::os::raw::c_int;

use crate::redis::cell::MainCell;
use crate::redis::ctx::Ctx;
use crate::redis::ends;
use crate::redis::guard::guard;
use crate::redis::strings::Key;
use crate::redis::{api, ERR, OK};

/// The server's handle of a parked client.
#[derive(Clone, Copy)]
pub struct Handle(*mut raw::RedisModuleBlockedClient);

/// The client of a call, ready to be parked: on which board, and by which command.
pub struct Client<'a> {
    /// The context of the call.
    pub ctx: Ctx<'a>,
    /// The board's key.
    pub board: Key<'a>,
    /// The command, as the client named it.
    pub command: &'a [u8],
}

/// A kind of parked clients.
pub trait Parked {
    /// What these clients wait for, for the log.
    const WHAT: &'static str;

    /// The wait is over, by [`Handle::unblock`] or by its timeout: replies to the client.
    fn over(ctx: Ctx, number: u64);

    /// The client's time is over. Returns whether the wait ends at once; otherwise whoever parked the
    /// client ends it when the turn of the event loop does.
    fn ends(_number: u64) -> bool {
        true
    }

    /// The server is done with the client, however the wait ended, and with its handle.
    fn gone(number: u64);
}

static LAST: MainCell<u64> = MainCell::new(0);

/// Who parked a client, and with which command.
struct Caller {
    connection: u64,
    /// `None` for no user. Connections of a deleted user belong to another user until they are
    /// closed.
    user: Option<Vec<u8>>,
    command: Vec<u8>,
}

/// The callers of the parked clients, by number.
static CALLERS: MainCell<BTreeMap<u64, Caller>> = MainCell::new(BTreeMap::new());

/// The error for a client whose rights were taken away while it waited.
pub const REVOKED: &str = "NOPERM the right to this command or board was taken away while the client waited";

/// The number of the next client. It is never 0: the server calls [`Parked::gone`] only for private
/// data that is not null.
pub fn next_number() -> u64 {
    LAST.with(|last| {
        *last += 1;
        *last
    })
}

/// The name beside that of a board, in the same slot of a cluster. A board whose name allows none
/// is parked on itself.
fn beside(board: &[u8]) -> Vec<u8> {
    let open = board.iter().position(|byte| *byte == b'{');
    let inner = open.and_then(|at| board.get(at + 1..)).unwrap_or_default();
    let tagged = open.is_some() && inner.iter().position(|byte| *byte == b'}').is_some_and(|len| len > 0);
    match tagged {
        true => [board, b":\0waiting"].concat(),
        // The slot depends on the whole name, and the name can be used as a hash tag.
        false if !board.is_empty() && !board.contains(&b'}') => [b"{", board, b"}:\0waiting"].concat(),
        false => board.to_vec(),
    }
}

/// Parks a client for `timeout` ms; 0 for ever. `None` when the server refuses.
pub fn park<P: Parked>(client: &Client, timeout: i64, number: u64) -> Option<Handle> {
    let ctx = client.ctx;
    let beside = ctx.key(&beside(client.board.bytes()));
    let mut keys = [beside.raw()];
    // SAFETY: the context is that of a command; the server copies the one key. The private data
    // is a number and no pointer, so that nobody has to free it.
    let handle = unsafe {
        api!(RedisModule_BlockClientOnKeys(
            ctx.0,
            Some(ready),
            Some(over::<P>),
            Some(gone::<P>),
            0,
            keys.as_mut_ptr(),
            1,
            number as usize as *mut c_void,
        ))
    };
    if handle.is_null() {
        return None;
    }
    let connection = ctx.caller();
    let caller = Caller { connection, user: ctx.user_of(connection), command: client.command.to_vec() };
    CALLERS.with(|callers| callers.insert(number, caller));
    let handle = Handle(handle);
    if timeout > 0 {
        ends::add(number, timeout, handle, P::ends);
    }
    Some(handle)
}

/// Whether the server would let a parked client make its call now, on the board of this name. The
/// server checks this for its own blocked clients before it serves them.
pub fn is_permitted(ctx: Ctx, number: u64, board: &[u8]) -> bool {
    let permits = |caller: &Caller| {
        let user = ctx.user_of(caller.connection);
        user == caller.user && user.is_none_or(|user| ctx.permits(&user, &caller.command, board))
    };
    CALLERS.with(|callers| callers.get(&number).is_none_or(permits))
}

/// The number of the client for which a callback runs.
///
/// # Safety
/// The context is that of the callback of a parked client that runs now.
unsafe fn number(ctx: *mut raw::RedisModuleCtx) -> u64 {
    // SAFETY: such a context has the private data that the client was parked with.
    let data = unsafe { api!(RedisModule_GetBlockedClientPrivateData(ctx)) };
    data as usize as u64
}

/// A key was created under the name. The client stays parked: the server does not choose who is
/// served, and events report what happens to a board.
extern "C" fn ready(
    _ctx: *mut raw::RedisModuleCtx,
    _argv: *mut *mut raw::RedisModuleString,
    _argc: c_int,
) -> c_int {
    ERR
}

unsafe extern "C" fn over<P: Parked>(
    ctx: *mut raw::RedisModuleCtx,
    _argv: *mut *mut raw::RedisModuleString,
    _argc: c_int,
) -> c_int {
    // SAFETY: called by the server for a client that was parked with it.
    let (ctx, number) = unsafe { (Ctx::of_call(ctx), number(ctx)) };
    guard(P::WHAT, || P::over(ctx, number));
    OK
}

extern "C" fn gone<P: Parked>(_ctx: *mut raw::RedisModuleCtx, number: *mut c_void) {
    let number = number as usize as u64;
    guard(P::WHAT, || {
        ends::remove(number);
        P::gone(number);
        CALLERS.with(|callers| callers.remove(&number));
    });
}

/// Clients that have got what they waited for, by number, until they get their reply.
pub struct Chosen<C> {
    fresh: BTreeMap<u64, (Handle, C)>,
    /// Clients that the server has been asked to unblock.
    asked: BTreeMap<u64, C>,
}

impl<C> Chosen<C> {
    /// No clients.
    pub const NONE: Self = Chosen { fresh: BTreeMap::new(), asked: BTreeMap::new() };

    /// Whether all have got their reply.
    pub fn is_empty(&self) -> bool {
        self.fresh.is_empty() && self.asked.is_empty()
    }

    /// Adds a client.
    pub fn insert(&mut self, number: u64, handle: Handle, client: C) {
        self.fresh.insert(number, (handle, client));
    }

    /// Removes a client that gets its reply now, or has disconnected.
    pub fn remove(&mut self, number: u64) -> Option<C> {
        self.asked.remove(&number).or_else(|| self.fresh.remove(&number).map(|(_, client)| client))
    }

    /// Removes and returns the clients that the server has not been asked to unblock.
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

/// Unblocks all chosen clients. At the end of a turn of the event loop.
pub fn unblock_chosen<C>(chosen: &MainCell<Chosen<C>>) {
    let handles = chosen.with(Chosen::ask);
    // No state of ours is borrowed while their callbacks run.
    handles.into_iter().for_each(Handle::unblock);
}

impl Handle {
    /// Ends the wait of a client whose handle the server has not freed.
    pub(crate) fn unblock(self) {
        // SAFETY: the server frees a handle after [`Parked::gone`] alone, when it is taken out of
        // wherever it is kept. That the client has been killed, or unblocked already, does not
        // matter: the server sees that by the handle.
        unsafe { api!(RedisModule_UnblockClient(self.0, std::ptr::null_mut())) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The part of a name that determines its slot.
    fn tag(name: &[u8]) -> &[u8] {
        let Some(open) = name.iter().position(|byte| *byte == b'{') else { return name };
        let inner = &name[open + 1..];
        match inner.iter().position(|byte| *byte == b'}') {
            None | Some(0) => name,
            Some(len) => &inner[..len],
        }
    }

    #[test]
    fn the_name_beside_a_board_is_in_its_slot() {
        let names: [&[u8]; 12] = [
            b"b",
            b"{a}b",
            b"a{b}c",
            b"a{b",
            b"a}b",
            b"{}b",
            b"}{a",
            b"",
            b"{",
            b"}",
            b"a{}{b}",
            b"a{b{c}d}",
        ];
        for name in names {
            assert_eq!(tag(&beside(name)), tag(name), "{}", name.escape_ascii());
        }
        assert_ne!(beside(b"b"), b"b");
        assert_ne!(beside(b"{a}b"), b"{a}b");
    }
}
