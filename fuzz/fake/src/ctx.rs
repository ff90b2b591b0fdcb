//! The context of a call to the module.

use redis_module::raw;
use std::cell::{Cell, RefCell};
use std::os::raw::{c_int, c_ulonglong, c_void};

use crate::api;
use crate::reply::{Builder, Value};
use crate::server::{server, DATABASES, REPLICA};

/// Its first word is where the module finds the server's functions.
#[repr(C)]
pub struct Ctx {
    get_api: *const c_void,
    pub db: Cell<i32>,
    pub client: u64,
    flags: u32,
    /// The number of a parked client.
    pub private: *mut c_void,
    reply: Option<RefCell<Builder>>,
}

impl Ctx {
    /// A context that nobody can be answered in: a timer's or an event's.
    pub fn silent(db: i32) -> Ctx {
        let flags = raw::REDISMODULE_CTX_FLAGS_MASTER;
        let get_api = api::get as *const c_void;
        Ctx { get_api, db: Cell::new(db), client: 0, flags, private: std::ptr::null_mut(), reply: None }
    }

    /// The context of a call for a client.
    pub fn of_client(client: u64, db: i32, resp3: bool) -> Ctx {
        let mut flags = raw::REDISMODULE_CTX_FLAGS_MASTER;
        if resp3 {
            flags |= raw::REDISMODULE_CTX_FLAGS_RESP3;
        }
        if server().in_transaction.get() {
            flags |= raw::REDISMODULE_CTX_FLAGS_MULTI | raw::REDISMODULE_CTX_FLAGS_DENY_BLOCKING;
        }
        Ctx { client, flags, reply: Some(RefCell::default()), ..Ctx::silent(db) }
    }

    /// The context of a command that a replica gets from its primary, or a loading server from
    /// its file.
    pub fn of_replay(db: i32, loading: bool) -> Ctx {
        let flags = match loading {
            true => raw::REDISMODULE_CTX_FLAGS_MASTER | raw::REDISMODULE_CTX_FLAGS_LOADING,
            false => raw::REDISMODULE_CTX_FLAGS_SLAVE | raw::REDISMODULE_CTX_FLAGS_REPLICATED,
        };
        Ctx { flags, reply: Some(RefCell::default()), ..Ctx::silent(db) }
    }

    pub fn raw(&self) -> *mut raw::RedisModuleCtx {
        std::ptr::from_ref(self).cast_mut().cast()
    }

    pub fn reply(&self, work: impl FnOnce(&mut Builder)) {
        match &self.reply {
            Some(builder) => work(&mut builder.borrow_mut()),
            None => panic!("a reply where nobody is to be answered"),
        }
    }

    /// What was replied.
    pub fn into_reply(self) -> Option<Value> {
        self.reply.and_then(|builder| builder.into_inner().finish())
    }
}

/// The context that the module passes back.
pub unsafe fn of<'a>(ctx: *mut raw::RedisModuleCtx) -> &'a Ctx {
    assert!(!ctx.is_null(), "a context is needed");
    &*ctx.cast::<Ctx>()
}

pub unsafe extern "C" fn flags(ctx: *mut raw::RedisModuleCtx) -> c_int {
    match ctx.is_null() {
        true => raw::REDISMODULE_CTX_FLAGS_MASTER as c_int,
        false => of(ctx).flags as c_int,
    }
}

pub unsafe extern "C" fn client(ctx: *mut raw::RedisModuleCtx) -> c_ulonglong {
    of(ctx).client
}

pub unsafe extern "C" fn db(ctx: *mut raw::RedisModuleCtx) -> c_int {
    of(ctx).db.get()
}

/// Databases of the copy are out of reach.
pub unsafe extern "C" fn select(ctx: *mut raw::RedisModuleCtx, db: c_int) -> c_int {
    let ctx = of(ctx);
    let copy = ctx.db.get() >= REPLICA;
    assert!(!copy, "the copy selects a database");
    match (0..DATABASES).contains(&db) {
        true => {
            ctx.db.set(db);
            0
        }
        false => 1,
    }
}

pub unsafe extern "C" fn private(ctx: *mut raw::RedisModuleCtx) -> *mut c_void {
    of(ctx).private
}
