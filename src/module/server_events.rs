//! The server's events: keys that move, databases that are swapped, roles, loading, the end of a
//! turn of the event loop. Callbacks only record them; the work is done at the end of the turn,
//! where writing is allowed.

use redis_module::raw;
use std::ffi::{c_void, CStr};
use std::os::raw::{c_char, c_int};

use crate::config::config;
use crate::redis::ctx::Ctx;
use crate::redis::guard::guard;
use crate::redis::strings::bytes_of;
use crate::redis::{api, ERR};
use crate::runtime::arrivals;
use crate::runtime::blocked_claims;
use crate::runtime::blocked_posts;
use crate::runtime::blocked_waits;
use crate::runtime::connections;
use crate::runtime::durability;
use crate::runtime::listeners;
use crate::runtime::timer;
use crate::runtime::world;

/// The events that the module subscribes to; all supported servers have them.
const EVENTS: [(u64, raw::RedisModuleEventCallback); 10] = [
    (raw::REDISMODULE_EVENT_EVENTLOOP, Some(event_loop)),
    (raw::REDISMODULE_EVENT_CRON_LOOP, Some(cron)),
    (raw::REDISMODULE_EVENT_CONFIG, Some(configured)),
    (raw::REDISMODULE_EVENT_FLUSHDB, Some(flushed)),
    (raw::REDISMODULE_EVENT_SWAPDB, Some(databases_swapped)),
    (raw::REDISMODULE_EVENT_REPLICATION_ROLE_CHANGED, Some(role_changed)),
    (raw::REDISMODULE_EVENT_LOADING, Some(loading)),
    (raw::REDISMODULE_EVENT_FORK_CHILD, Some(listeners_changed)),
    (raw::REDISMODULE_EVENT_REPLICA_CHANGE, Some(listeners_changed)),
    (raw::REDISMODULE_EVENT_CLIENT_CHANGE, Some(client_changed)),
];

/// Subscribes to all of them.
pub fn subscribe(ctx: Ctx) -> Result<(), String> {
    for (id, callback) in EVENTS {
        let event = raw::RedisModuleEvent { id, dataver: 1 };
        // SAFETY: the context is that of the load, the event exists, the callback has its type.
        let subscribed = unsafe { api!(RedisModule_SubscribeToServerEvent(ctx.0, event, callback)) };
        if subscribed == ERR {
            return Err(format!("the server does not tell of event {id}"));
        }
    }
    // SAFETY: the context is that of the load, the callback has the type of keyspace events.
    let subscribed = unsafe {
        api!(RedisModule_SubscribeToKeyspaceEvents(ctx.0, raw::REDISMODULE_NOTIFY_GENERIC, Some(key_event)))
    };
    match subscribed == ERR {
        true => Err("the server does not tell of keys".into()),
        false => Ok(()),
    }
}

unsafe extern "C" fn event_loop(
    ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    sub: u64,
    _data: *mut c_void,
) {
    if sub == raw::REDISMODULE_SUBEVENT_EVENTLOOP_BEFORE_SLEEP {
        guard("the event loop", || {
            // SAFETY: the context of this callback; nothing keeps it.
            let ctx = unsafe { Ctx::of_call(ctx) };
            timer::end_waits();
            arrivals::settle(ctx);
            blocked_claims::recall_chosen(ctx);
            blocked_claims::serve_touched(ctx);
            blocked_posts::serve_touched(ctx);
            connections::settle(ctx);
            durability::check(ctx);
            timer::arm(ctx);
            timer::sweep(ctx);
            blocked_waits::look_at_touched(ctx);
            blocked_claims::unblock_chosen();
            blocked_posts::unblock_chosen();
            blocked_waits::unblock_chosen();
        });
    }
}

/// Runs several times a second, as `hz` says.
extern "C" fn cron(
    _ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    _sub: u64,
    _data: *mut c_void,
) {
    guard("the server's cron", || {
        timer::tick();
        listeners::tick();
        blocked_waits::look_again();
    });
}

/// `CONFIG SET` has changed something.
extern "C" fn configured(
    _ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    _sub: u64,
    _data: *mut c_void,
) {
    durability::changed();
    listeners::changed();
}

/// A process was forked, which may write the copy that a replica or a file begins with, or has
/// ended; or a replica has come or gone.
extern "C" fn listeners_changed(
    _ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    _sub: u64,
    _data: *mut c_void,
) {
    listeners::changed();
}

unsafe extern "C" fn flushed(
    _ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    _sub: u64,
    data: *mut c_void,
) {
    // SAFETY: with this event the server passes such a struct, or null.
    if let Some(flushed) = unsafe { data.cast::<raw::RedisModuleFlushInfo>().as_ref() } {
        // -1 means all databases.
        let which = flushed.dbnum;
        guard("a flush", || {
            blocked_waits::touch_databases(|db| which < 0 || db == which);
            blocked_posts::touch_databases(|db| which < 0 || db == which);
        });
    }
}

unsafe extern "C" fn databases_swapped(
    _ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    _sub: u64,
    data: *mut c_void,
) {
    // SAFETY: with this event the server passes such a struct, or null.
    if let Some(swapped) = unsafe { data.cast::<raw::RedisModuleSwapDbInfo>().as_ref() } {
        guard("a swap of databases", || {
            let (a, b) = (swapped.dbnum_first, swapped.dbnum_second);
            timer::swap(a, b);
            connections::swap(a, b);
            blocked_claims::touch_databases(&[a, b]);
            blocked_waits::touch_databases(|db| db == a || db == b);
            blocked_posts::touch_databases(|db| db == a || db == b);
        });
    }
}

unsafe extern "C" fn client_changed(
    _ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    sub: u64,
    data: *mut c_void,
) {
    if sub != raw::REDISMODULE_SUBEVENT_CLIENT_CHANGE_DISCONNECTED {
        return;
    }
    // SAFETY: with this event the server passes such a struct, or null.
    if let Some(client) = unsafe { data.cast::<raw::RedisModuleClientInfo>().as_ref() } {
        guard("the end of a connection", || connections::closed(client.id));
    }
}

/// Holds claims: live workers of this server need time to find it again.
fn hold_claims() {
    world::hold_claims(world::now() + config().recovery_grace);
}

unsafe extern "C" fn role_changed(
    ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    _sub: u64,
    _data: *mut c_void,
) {
    listeners::changed();
    guard("a change of role", || {
        // SAFETY: the context of this callback; nothing keeps it.
        match unsafe { Ctx::of_call(ctx) }.is_primary() {
            true => {
                world::promoted();
                timer::begin();
            }
            false => connections::forget(),
        }
        hold_claims();
    });
}

extern "C" fn loading(
    _ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    sub: u64,
    _data: *mut c_void,
) {
    listeners::changed();
    if sub == raw::REDISMODULE_SUBEVENT_LOADING_ENDED {
        guard("the end of loading", || {
            hold_claims();
            timer::begin();
            blocked_waits::touch_databases(|_| true);
            blocked_posts::touch_databases(|_| true);
        });
    }
}

/// The events of keys that got a value by another way than our commands.
const ARRIVALS: [&[u8]; 4] = [b"restore", b"rename_to", b"move_to", b"copy_to"];
/// Those of them that may be in another database than the command.
const TO_ANOTHER: [&[u8]; 2] = [b"move_to", b"copy_to"];

unsafe extern "C" fn key_event(
    ctx: *mut raw::RedisModuleCtx,
    _kind: c_int,
    event: *const c_char,
    key: *mut raw::RedisModuleString,
) -> c_int {
    if event.is_null() {
        return 0;
    }
    // SAFETY: the event's name is a C string, which lives during the callback.
    let event = unsafe { CStr::from_ptr(event) }.to_bytes();
    if ARRIVALS.contains(&event) {
        guard("a key's event", || {
            // SAFETY: the context of this callback, which has a client; nothing keeps it. The key's
            // name lives as long.
            let (ctx, name) = unsafe { (Ctx::of_call(ctx), bytes_of(key)) };
            // In a transaction Valkey 9 names the database of the client, not that of the key.
            match TO_ANOTHER.contains(&event) && ctx.in_transaction() {
                true => arrivals::arrived_somewhere(name),
                false => arrivals::arrived((ctx.db(), name.to_vec())),
            }
        });
    }
    0
}
