//! The server's context of a call.

use redis_module::raw;
use std::ffi::CStr;
use std::marker::PhantomData;
use std::os::raw::{c_char, c_int};

use crate::redis::strings::{Key, ServerString};
use crate::redis::{api, OK};

/// The context of one call from the server. Valid during that call only.
#[derive(Clone, Copy)]
pub struct Ctx<'c>(pub(crate) *mut raw::RedisModuleCtx, PhantomData<&'c ()>);

impl<'c> Ctx<'c> {
    /// The context of a callback. Replies go to its client, if it has one.
    ///
    /// # Safety
    /// The server passed it to the callback that runs now, and the value is not used after that.
    pub(crate) unsafe fn of_call(ctx: *mut raw::RedisModuleCtx) -> Ctx<'c> {
        Ctx(ctx, PhantomData)
    }
}

/// The level of a log line.
#[derive(Clone, Copy)]
pub enum Level {
    /// Operators should know of it.
    Notice,
    /// Operators should do something about it.
    Warning,
}

/// Where a call comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A client of a primary, a script or a transaction of one.
    Client,
    /// A client of a replica that lets clients write.
    ClientOfReplica,
    /// A primary, an append-only file or a slot that is being imported.
    Replay,
}

impl Ctx<'_> {
    /// No context: usable for the log alone.
    pub(crate) fn nowhere() -> Ctx<'static> {
        Ctx(std::ptr::null_mut(), PhantomData)
    }

    /// Writes a line to the server's log.
    pub fn log(self, level: Level, text: &str) {
        let level = match level {
            Level::Notice => c"notice",
            Level::Warning => c"warning",
        };
        let line: Vec<u8> = board::one_line(text).into_bytes().into_iter().chain([0]).collect();
        // SAFETY: the format takes one C string, and `line` ends with its only NUL.
        unsafe {
            if let Some(log) = raw::RedisModule_Log {
                log(self.0, level.as_ptr(), c"%s".as_ptr(), line.as_ptr().cast::<c_char>());
            }
        }
    }

    fn flags(self) -> u32 {
        // SAFETY: the context is valid, or null, which the server allows here.
        unsafe { api!(RedisModule_GetContextFlags(self.0)) as u32 }
    }

    /// Whether the server is a primary.
    pub fn is_primary(self) -> bool {
        self.flags() & raw::REDISMODULE_CTX_FLAGS_MASTER != 0
    }

    /// Whether the call is part of a transaction or a script: other clients get their replies after
    /// it.
    pub fn in_transaction(self) -> bool {
        self.flags() & (raw::REDISMODULE_CTX_FLAGS_MULTI | raw::REDISMODULE_CTX_FLAGS_LUA) != 0
    }

    /// Whether the call must not block.
    pub fn denies_blocking(self) -> bool {
        let deny = raw::REDISMODULE_CTX_FLAGS_DENY_BLOCKING
            | raw::REDISMODULE_CTX_FLAGS_MULTI
            | raw::REDISMODULE_CTX_FLAGS_LUA;
        self.flags() & deny != 0
    }

    /// See [`Origin::Replay`].
    pub fn is_replay(self) -> bool {
        self.origin() == Origin::Replay
    }

    /// Where the call comes from.
    pub fn origin(self) -> Origin {
        let flags = self.flags();
        if flags & (raw::REDISMODULE_CTX_FLAGS_REPLICATED | raw::REDISMODULE_CTX_FLAGS_LOADING) != 0 {
            return Origin::Replay;
        }
        match flags & raw::REDISMODULE_CTX_FLAGS_MASTER != 0 {
            true => Origin::Client,
            false => Origin::ClientOfReplica,
        }
    }

    /// Whether the server has reached `maxmemory`.
    pub fn is_full(self) -> bool {
        self.flags() & raw::REDISMODULE_CTX_FLAGS_OOM != 0
    }

    /// The share of `maxmemory` that is used; `None` where the server has no `maxmemory`.
    pub fn used_memory(self) -> Option<f64> {
        // SAFETY: takes nothing.
        let share = unsafe { api!(RedisModule_GetUsedMemoryRatio()) };
        (share > 0.0).then_some(f64::from(share))
    }

    /// Whether the server is a node of a cluster.
    pub fn is_cluster(self) -> bool {
        self.flags() & raw::REDISMODULE_CTX_FLAGS_CLUSTER != 0
    }

    /// Whether the server has an append-only file, or is about to have one.
    pub fn appends(self) -> bool {
        self.flags() & raw::REDISMODULE_CTX_FLAGS_AOF != 0
    }

    /// Whether the server has replicas, or keeps a backlog for some that may return. True also when
    /// it does not say.
    pub fn feeds_replicas(self) -> bool {
        // SAFETY: the context is valid, or null, which the server allows here; the section and the
        // fields are C strings, and the section's values are freed after the last use.
        unsafe {
            let info = api!(RedisModule_GetServerInfo(self.0, c"replication".as_ptr()));
            let says_none = |field: &CStr| {
                let mut failed = OK;
                let n = api!(RedisModule_ServerInfoGetFieldSigned(info, field.as_ptr(), &mut failed));
                failed == OK && n == 0
            };
            let none = says_none(c"connected_slaves") && says_none(c"repl_backlog_active");
            api!(RedisModule_FreeServerInfo(self.0, info));
            !none
        }
    }

    /// Whether the server is loading a file.
    pub fn is_loading(self) -> bool {
        self.flags() & raw::REDISMODULE_CTX_FLAGS_LOADING != 0
    }

    /// Whether the server may write outside of a command now: it is a primary, is not loading, and
    /// no client or failover has paused the traffic to replicas.
    pub fn may_write(self) -> bool {
        // SAFETY: takes nothing.
        let stopped = unsafe { api!(RedisModule_AvoidReplicaTraffic()) } != 0;
        let flags = self.flags();
        !stopped
            && flags & raw::REDISMODULE_CTX_FLAGS_MASTER != 0
            && flags & raw::REDISMODULE_CTX_FLAGS_LOADING == 0
    }

    /// The connection of the call's client; `None` in a script, or in a call by another module.
    pub fn connection(self) -> Option<u64> {
        if self.flags() & raw::REDISMODULE_CTX_FLAGS_LUA != 0 {
            return None;
        }
        // SAFETY: the context is that of a call; without a place for it no info is written.
        unsafe {
            let id = api!(RedisModule_GetClientId(self.0));
            let known = api!(RedisModule_GetClientInfoById(std::ptr::null_mut(), id)) == OK;
            known.then_some(id)
        }
    }

    /// Whether the server only asks for the keys of a call, and does not make it.
    pub(crate) fn asks_for_keys(self) -> bool {
        // SAFETY: the context is that of a command's function.
        unsafe { api!(RedisModule_IsKeysPositionRequest(self.0)) != 0 }
    }

    /// Answers that question: which word is the key, and what the call does with it.
    pub(crate) fn name_key(self, at: usize, flags: u32) {
        // SAFETY: likewise, and the server has asked.
        unsafe { api!(RedisModule_KeyAtPosWithFlags(self.0, at as c_int, flags as c_int)) };
    }

    /// The number of the calling client, of whatever kind.
    pub(crate) fn caller(self) -> u64 {
        // SAFETY: the context is that of a call.
        unsafe { api!(RedisModule_GetClientId(self.0)) }
    }

    /// The user of a connection; `None`, for example for another module, may do everything.
    pub(crate) fn user_of(self, connection: u64) -> Option<Vec<u8>> {
        // SAFETY: the context is valid.
        let name = unsafe { api!(RedisModule_GetClientUserNameById(self.0, connection)) };
        (!name.is_null()).then(|| ServerString::owned(name).bytes().to_vec())
    }

    /// Whether a user may run a command on a key now.
    pub(crate) fn permits(self, user: &[u8], command: &[u8], key: &[u8]) -> bool {
        let (user, command, key) = (self.string(user), self.string(command), self.key(key));
        let mut words = [command.raw(), key.raw()];
        // SAFETY: the strings live during the calls; the user is ours to free.
        unsafe {
            let user = api!(RedisModule_GetModuleUserFromUserName(user.raw()));
            if user.is_null() {
                return false;
            }
            let (argv, argc) = (words.as_mut_ptr(), words.len() as c_int);
            let permitted = api!(RedisModule_ACLCheckCommandPermissions(user, argv, argc)) == OK;
            api!(RedisModule_FreeModuleUser(user));
            permitted
        }
    }

    /// The database that the call works on.
    pub fn db(self) -> i32 {
        // SAFETY: the context is valid and has a client.
        unsafe { api!(RedisModule_GetSelectedDb(self.0)) }
    }

    /// Switches to another database.
    pub fn select(self, db: i32) -> bool {
        // SAFETY: the context is valid.
        unsafe { api!(RedisModule_SelectDb(self.0, db)) == OK }
    }

    /// Sends one batch of effects to replicas and the append-only file.
    pub fn replicate(self, key: &Key, batch: &[u8]) {
        // SAFETY: the format names a server string, and bytes with their length.
        unsafe {
            if let Some(replicate) = raw::RedisModule_Replicate {
                let (bytes, len) = (batch.as_ptr().cast::<c_char>(), batch.len());
                replicate(self.0, c"JOB.APPLY".as_ptr(), c"sb".as_ptr(), key.raw(), bytes, len);
            }
        }
    }

    /// Replicates the command of this call as it is: one that came from the primary, or one that
    /// nobody listens to. The server counts it for its save points either way.
    pub fn replicate_verbatim(self) {
        // SAFETY: the context is that of a command.
        unsafe { api!(RedisModule_ReplicateVerbatim(self.0)) };
    }

    /// Asks the server whether a command could write to the key now: it refuses when it does not
    /// own the slot, has too few replicas, or its disk fails.
    pub fn allows_write_to(self, key: &Key) -> bool {
        self.allows(c"JOB.PROBE", key)
    }

    /// Asks a primary of a cluster whether it serves an absent key: it refuses when another node
    /// owns the key's slot, or the slot is being migrated.
    pub fn serves(self, key: &Key) -> bool {
        self.allows(c"EXISTS", key)
    }

    /// Whether the server would run a command on a key.
    fn allows(self, command: &CStr, key: &Key) -> bool {
        // SAFETY: the format asks for checks as in a script and for errors as replies, and
        // names one server string; the reply is freed.
        unsafe {
            let Some(call) = raw::RedisModule_Call else { return false };
            let reply = call(self.0, command.as_ptr(), c"SEs".as_ptr(), key.raw());
            if reply.is_null() {
                return false;
            }
            let kind = api!(RedisModule_CallReplyType(reply));
            api!(RedisModule_FreeCallReply(reply));
            kind != raw::REDISMODULE_REPLY_ERROR as c_int
        }
    }

    /// A value of the server's configuration; `None` when the server does not say.
    pub fn config(self, name: &CStr) -> Option<Vec<u8>> {
        // SAFETY: the format asks for errors as replies, and names two C strings; the reply is
        // freed after its bytes were copied.
        unsafe {
            let call = raw::RedisModule_Call?;
            let reply = call(self.0, c"CONFIG".as_ptr(), c"Ecc".as_ptr(), c"GET".as_ptr(), name.as_ptr());
            if reply.is_null() {
                return None;
            }
            let value = match api!(RedisModule_CallReplyType(reply)) == raw::REDISMODULE_REPLY_ARRAY as c_int
            {
                true => api!(RedisModule_CallReplyArrayElement(reply, 1)),
                false => std::ptr::null_mut(),
            };
            let mut len = 0;
            let bytes = match value.is_null() {
                true => std::ptr::null(),
                false => api!(RedisModule_CallReplyStringPtr(value, &mut len)),
            };
            let found =
                (!bytes.is_null()).then(|| std::slice::from_raw_parts(bytes.cast::<u8>(), len).to_vec());
            api!(RedisModule_FreeCallReply(reply));
            found
        }
    }

    /// The name of a key.
    pub fn key(self, name: &[u8]) -> Key<'static> {
        Key(self.string(name))
    }

    /// A string of the server's with these bytes.
    pub fn string(self, text: &[u8]) -> ServerString<'static> {
        // SAFETY: creates a string from bytes with their length; it belongs to the returned value.
        ServerString::owned(unsafe {
            api!(RedisModule_CreateString(std::ptr::null_mut(), text.as_ptr().cast::<c_char>(), text.len()))
        })
    }

    /// Random bits to seed a generator with.
    pub fn entropy(self) -> u64 {
        let mut bytes = [0u8; 8];
        // SAFETY: writes 8 bytes into an array of 8.
        unsafe { api!(RedisModule_GetRandomBytes(bytes.as_mut_ptr(), bytes.len())) };
        u64::from_le_bytes(bytes)
    }
}

/// The time of the machine's clock, Unix ms. Boards use [`super::clock`].
pub fn system_now() -> i64 {
    // SAFETY: takes nothing.
    unsafe { api!(RedisModule_Milliseconds()) }
}
