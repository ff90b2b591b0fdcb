//! Parking clients, so that whatever happens to the slot or the server's role ends the wait as
//! for the server's own commands.
//!
//! The server wakes every client parked on a key that comes, one after the other (Valkey 9.1
//! searches its list for each). So they are parked on a name beside their board's, in the same
//! slot, under which nothing comes: who is served is chosen from lines of our own.

use redis_module::raw;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::os::raw::c_int;

use crate::redis::cell::MainCell;
use crate::redis::ctx::{Ctx, Key};
use crate::redis::ends;
use crate::redis::guard::guard;
use crate::redis::{api, ERR, OK};

/// The server's handle of a parked client.
#[derive(Clone, Copy)]
pub struct Handle(*mut raw::RedisModuleBlockedClient);

/// The client of a call, which may be parked: on which board, and by which command.
pub struct Client<'a> {
    /// The context of the call.
    pub ctx: Ctx<'a>,
    /// The board's key.
    pub board: Key<'a>,
    /// The command, as the client named it.
    pub command: &'a [u8],
}

/// What becomes of a parked client.
pub trait Parked {
    /// What they wait for, for the log.
    const WHAT: &'static str;

    /// The wait is over, by [`Handle::unblock`] or because it has lasted long enough: answers.
    fn over(ctx: Ctx, number: u64);

    /// The server is done with the client, however the wait ended, and with its handle.
    fn gone(number: u64);
}

static LAST: MainCell<u64> = MainCell::new(0);

/// Whose call parked a client, and of which command.
struct Caller {
    connection: u64,
    /// `None`: nobody's. Connections of a user who is deleted are another's until they are closed.
    user: Option<Vec<u8>>,
    command: Vec<u8>,
}

/// Those of the parked clients, by number.
static CALLERS: MainCell<BTreeMap<u64, Caller>> = MainCell::new(BTreeMap::new());

/// The error for a client whose rights were taken away while it waited.
pub const REVOKED: &str = "NOPERM the right to this command or board was taken away while the client waited";

/// The number that the next to arrive gets. None is 0: the server calls [`Parked::gone`] for private
/// data alone that is not null.
pub fn next_number() -> u64 {
    LAST.with(|last| {
        *last += 1;
        *last
    })
}

/// The name beside that of a board, in the same slot of a cluster. A board whose name gives
/// none is parked on itself.
fn beside(board: &[u8]) -> Vec<u8> {
    let open = board.iter().position(|byte| *byte == b'{');
    let inner = open.and_then(|at| board.get(at + 1..)).unwrap_or_default();
    let tagged = open.is_some() && inner.iter().position(|byte| *byte == b'}').is_some_and(|len| len > 0);
    match tagged {
        true => [board, b":\0waiting"].concat(),
        // The whole name is what counts for the slot, and it can stand as a tag.
        false if !board.is_empty() && !board.contains(&b'}') => [b"{", board, b"}:\0waiting"].concat(),
        false => board.to_vec(),
    }
}

/// Parks a client for `timeout` ms; 0 for ever. `None` when the server refuses.
pub fn park<P: Parked>(client: &Client, timeout: i64, number: u64) -> Option<Handle> {
    let ctx = client.ctx;
    let beside = ctx.key(&beside(client.board.bytes()));
    let mut keys = [beside.0];
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
        ends::add(number, timeout, handle);
    }
    Some(handle)
}

/// Whether the server would let a parked client make its call now, on the board of this name. A
/// server asks that of its own blocked clients before it serves them.
pub fn is_permitted(ctx: Ctx, number: u64, board: &[u8]) -> bool {
    let permits = |caller: &Caller| {
        let user = ctx.user_of(caller.connection);
        user == caller.user && user.is_none_or(|user| ctx.permits(&user, &caller.command, board))
    };
    CALLERS.with(|callers| callers.get(&number).is_none_or(permits))
}

/// The number of the client that a callback is called for.
///
/// # Safety
/// The context is that of the callback of a parked client that runs now.
unsafe fn number(ctx: *mut raw::RedisModuleCtx) -> u64 {
    // SAFETY: such a context has the private data that the client was parked with.
    let data = unsafe { api!(RedisModule_GetBlockedClientPrivateData(ctx)) };
    data as usize as u64
}

/// Something has come under the name. The client stays parked: who is served is not the server's
/// to choose, and what comes to a board is told by events.
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
    /// Ends the wait of a client that has not gone.
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

    /// What the slot of a name is made from.
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
