//! Clients: connections, and those that are parked on a key.

use redis_module::raw;
use std::os::raw::{c_int, c_longlong, c_void};

use crate::ctx::{of, Ctx};
use crate::reply::Value;
use crate::server::{server, Place, Server};
use crate::strings::bytes;

/// A connection.
#[derive(Clone, Copy)]
pub struct Client {
    db: i32,
    resp3: bool,
}

type Gone = Option<unsafe extern "C" fn(*mut raw::RedisModuleCtx, *mut c_void)>;

/// A client that is parked; its number is its handle.
#[derive(Clone)]
pub struct Parked {
    /// `None`: it has gone, or was told.
    client: Option<u64>,
    place: Place,
    deadline: Option<i64>,
    ready: raw::RedisModuleCmdFunc,
    over: raw::RedisModuleCmdFunc,
    gone: Gone,
    data: *mut c_void,
    /// Nothing but its last callback, and maybe the answer before it, is to come.
    done: bool,
}

impl Server {
    /// A connection, made now if it is new.
    pub fn connect(&self, number: u64, db: i32, resp3: bool) {
        self.clients.borrow_mut().entry(number).or_insert(Client { db, resp3 });
    }

    /// Database and protocol of a client that waits for nothing.
    pub fn client(&self, number: u64) -> Option<(i32, bool)> {
        let client = *self.clients.borrow().get(&number)?;
        self.parked_of(number).is_none().then_some((client.db, client.resp3))
    }

    pub(crate) fn parked_of(&self, client: u64) -> Option<u64> {
        let parked = self.parked.borrow();
        parked.iter().find(|(_, parked)| parked.client == Some(client)).map(|(number, _)| *number)
    }

    /// A connection closes, in the midst of whatever it waits for.
    pub fn disconnect(&self, number: u64) {
        let Some(client) = self.clients.borrow_mut().remove(&number) else { return };
        let mut info = raw::RedisModuleClientInfo {
            version: 1,
            flags: 0,
            id: number,
            addr: [0; 46],
            port: 1,
            db: client.db as u16,
        };
        let sub = raw::REDISMODULE_SUBEVENT_CLIENT_CHANGE_DISCONNECTED;
        self.event(raw::REDISMODULE_EVENT_CLIENT_CHANGE, sub, std::ptr::from_mut(&mut info).cast());
        if let Some(parked) = self.parked_of(number) {
            self.let_go(parked);
        }
        self.turn();
    }

    /// `CLIENT UNBLOCK … ERROR`, or what ends all waits when a server is no primary any more.
    pub fn unblock_with_error(&self, client: u64) {
        if let Some(parked) = self.parked_of(client) {
            self.let_go(parked);
            self.turn();
        }
    }

    /// `CLIENT UNBLOCK … TIMEOUT`.
    pub fn unblock(&self, client: u64) {
        if let Some(parked) = self.parked_of(client) {
            self.answer(parked);
            self.turn();
        }
    }

    fn let_go(&self, number: u64) {
        let mut parked = self.parked.borrow_mut();
        let Some(parked) = parked.get_mut(&number) else { return };
        parked.client = None;
        if !parked.done {
            parked.done = true;
            self.done.borrow_mut().push_back(number);
        }
    }

    /// Lets the module answer a client whose wait is over.
    fn answer(&self, number: u64) {
        let parked = self.parked.borrow().get(&number).cloned();
        let Some(parked) = parked else { return };
        let Some(client) = parked.client else { return self.let_go(number) };
        let reply = self.callback(client, &parked, parked.over);
        let reply = reply.expect("a client whose wait is over is told");
        self.told.borrow_mut().push((client, reply));
        self.let_go(number);
    }

    fn callback(&self, client: u64, parked: &Parked, callback: raw::RedisModuleCmdFunc) -> Option<Value> {
        let Client { db, resp3 } = self.clients.borrow()[&client];
        let mut ctx = Ctx::of_client(client, db, resp3);
        ctx.private = parked.data;
        let before = self.strings.0.get();
        // SAFETY: the context lives during the call.
        unsafe { callback.expect("a callback")(ctx.raw(), std::ptr::null_mut(), 0) };
        assert_eq!(self.strings.0.get(), before, "strings were made and not freed");
        self.nothing_open("a callback's end");
        ctx.into_reply()
    }

    /// Asks those who are parked on keys that have come. They wait on.
    pub(crate) fn tell_arrivals(&self) {
        for place in self.arrived.take() {
            let there = self.value(&place).is_some();
            let waiting: Vec<Parked> =
                self.parked.borrow().values().filter(|p| p.place == place && there).cloned().collect();
            for parked in waiting {
                if let Some(client) = parked.client {
                    let reply = self.callback(client, &parked, parked.ready);
                    assert_eq!(reply, None, "one that waits on is answered");
                }
            }
        }
    }

    /// Calls the last callbacks. False when there were none.
    pub(crate) fn finish_parked(&self) -> bool {
        let mut some = false;
        loop {
            let Some(number) = self.done.borrow_mut().pop_front() else { return some };
            some = true;
            // Told now, if the server tells later.
            if self.parked.borrow().get(&number).is_some_and(|parked| parked.client.is_some()) {
                self.answer(number);
            }
            let parked = self.parked.borrow_mut().remove(&number);
            if let Some(Parked { gone: Some(gone), data, .. }) = parked {
                let ctx = Ctx::silent(0);
                // SAFETY: the context lives during the call.
                unsafe { gone(ctx.raw(), data) };
            }
        }
    }

    pub(crate) fn next_wait(&self) -> Option<i64> {
        self.parked.borrow().values().filter(|p| !p.done).filter_map(|p| p.deadline).min()
    }

    /// Ends waits that have lasted long enough.
    pub(crate) fn end_waits(&self) {
        let now = self.now.get();
        let over = |parked: &Parked| !parked.done && parked.deadline.is_some_and(|at| at <= now);
        let all: Vec<u64> =
            self.parked.borrow().iter().filter(|(_, p)| over(p)).map(|(number, _)| *number).collect();
        all.into_iter().for_each(|number| self.answer(number));
    }
}

pub unsafe extern "C" fn park(
    ctx: *mut raw::RedisModuleCtx,
    ready: raw::RedisModuleCmdFunc,
    over: raw::RedisModuleCmdFunc,
    gone: Gone,
    timeout: c_longlong,
    keys: *mut *mut raw::RedisModuleString,
    count: c_int,
    data: *mut c_void,
) -> *mut raw::RedisModuleBlockedClient {
    let (server, ctx) = (server(), of(ctx));
    assert!(count == 1 && timeout >= 0 && !server.in_transaction.get());
    assert!(server.parked_of(ctx.client).is_none(), "a client is parked twice");
    let number = server.next_number();
    let place = (ctx.db.get(), bytes(*keys).to_vec());
    let deadline = (timeout > 0).then(|| server.now.get().saturating_add(timeout));
    let parked = Parked { client: Some(ctx.client), place, deadline, ready, over, gone, data, done: false };
    server.parked.borrow_mut().insert(number, parked);
    number as *mut raw::RedisModuleBlockedClient
}

pub unsafe extern "C" fn unpark(handle: *mut raw::RedisModuleBlockedClient, _data: *mut c_void) -> c_int {
    let (server, number) = (server(), handle as u64);
    server.nothing_open("the end of a wait");
    let known = server.parked.borrow().contains_key(&number);
    assert!(known, "a client is unblocked that the server has done with");
    match server.tells_later.get() {
        true => {
            if let Some(parked) = server.parked.borrow_mut().get_mut(&number).filter(|p| !p.done) {
                parked.done = true;
                server.done.borrow_mut().push_back(number);
            }
        }
        false => server.answer(number),
    }
    0
}

/// Nobody has a user, so everybody may do everything.
pub unsafe extern "C" fn no_user(ctx: *mut raw::RedisModuleCtx, _client: u64) -> *mut raw::RedisModuleString {
    of(ctx);
    std::ptr::null_mut()
}

pub unsafe extern "C" fn info(into: *mut c_void, client: u64) -> c_int {
    assert!(into.is_null());
    c_int::from(!server().clients.borrow().contains_key(&client))
}
