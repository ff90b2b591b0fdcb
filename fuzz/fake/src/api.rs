//! By which name the module finds which function.

use redis_module::raw;
use std::ffi::CStr;
use std::os::raw::{c_char, c_int, c_ulonglong, c_void};

use crate::{clients, commands, ctx, io, keys, memory, reply, strings, time};

extern "C" {
    fn fake_log(ctx: *mut raw::RedisModuleCtx, level: *const c_char, format: *const c_char, ...);
    fn fake_replicate(
        ctx: *mut raw::RedisModuleCtx,
        command: *const c_char,
        format: *const c_char,
        ...
    ) -> c_int;
    fn fake_emit_aof(io: *mut raw::RedisModuleIO, command: *const c_char, format: *const c_char, ...);
    fn fake_call(
        ctx: *mut raw::RedisModuleCtx,
        command: *const c_char,
        format: *const c_char,
        ...
    ) -> *mut raw::RedisModuleCallReply;
}

/// Names and functions; the compiler checks each against the type that the module calls it by.
macro_rules! table {
    ($($name:ident: $function:expr,)*) => {
        vec![$((stringify!($name), {
            // SAFETY: only its type is wanted.
            #[allow(unused_assignments)]
            let mut typed = unsafe { raw::$name };
            typed = Some($function);
            // SAFETY: a function's address, or null.
            unsafe { std::mem::transmute::<_, *const c_void>(typed) }
        }),)*]
    };
}

/// Writes the address of a function: as every server does, by its name.
pub unsafe extern "C" fn get(name: *const c_char, to: *mut c_void) -> c_int {
    let name = CStr::from_ptr(name).to_str().unwrap_or_default();
    let table = table();
    let found = table.iter().find(|(known, _)| *known == name);
    *to.cast::<*const c_void>() = found.map_or(std::ptr::null(), |(_, function)| *function);
    c_int::from(found.is_none())
}

#[rustfmt::skip]
fn table() -> Vec<(&'static str, *const c_void)> {
    table! {
        RedisModule_Alloc: memory::alloc,
        RedisModule_Calloc: memory::calloc,
        RedisModule_Realloc: memory::realloc,
        RedisModule_Free: memory::free,
        RedisModule_DefragAlloc: memory::moved,
        RedisModule_DefragCursorGet: io::get_cursor,
        RedisModule_DefragCursorSet: io::set_cursor,
        RedisModule_DefragShouldStop: io::should_stop,
        RedisModule_MonotonicMicroseconds: time::monotonic,
        RedisModule_Log: fake_log,
        RedisModule_Replicate: fake_replicate,
        RedisModule_EmitAOF: fake_emit_aof,
        RedisModule_Call: fake_call,
        RedisModule_CallReplyType: reply_type,
        RedisModule_FreeCallReply: free_reply,
        RedisModule_SetModuleAttribs: attributes,
        RedisModule_SetModuleOptions: options,
        RedisModule_GetModuleOptionsAll: no_options,
        RedisModule_AvoidReplicaTraffic: avoid_traffic,
        RedisModule_GetNotifyKeyspaceEvents: notified,
        RedisModule_GetRandomBytes: io::random,
        RedisModule_Milliseconds: time::milliseconds,
        RedisModule_CreateTimer: time::create,
        RedisModule_StopTimer: time::stop,
        RedisModule_CreateCommand: commands::create,
        RedisModule_CreateSubcommand: commands::create_sub,
        RedisModule_GetCommand: commands::get,
        RedisModule_SetCommandInfo: commands::describe,
        RedisModule_AddACLCategory: category,
        RedisModule_SetCommandACLCategories: categories,
        RedisModule_CreateDataType: commands::create_type,
        RedisModule_RegisterNumericConfig: commands::number_setting,
        RedisModule_RegisterBoolConfig: commands::switch_setting,
        RedisModule_LoadConfigs: commands::load_settings,
        RedisModule_SubscribeToServerEvent: commands::on_event,
        RedisModule_SubscribeToKeyspaceEvents: commands::on_key_event,
        RedisModule_RegisterInfoFunc: commands::on_info,
        RedisModule_InfoAddSection: commands::info_section,
        RedisModule_InfoAddFieldLongLong: commands::info_field,
        RedisModule_InfoAddFieldCString: commands::info_text,
        RedisModule_IsModuleNameBusy: name_is_free,
        RedisModule_GetUsedMemoryRatio: no_maxmemory,
        RedisModule_GetServerInfo: server_info,
        RedisModule_ServerInfoGetFieldSigned: server_number,
        RedisModule_FreeServerInfo: free_server_info,
        RedisModule_CreateString: strings::create,
        RedisModule_FreeString: strings::free,
        RedisModule_StringPtrLen: strings::start,
        RedisModule_GetContextFlags: ctx::flags,
        RedisModule_GetClientId: ctx::client,
        RedisModule_GetSelectedDb: ctx::db,
        RedisModule_SelectDb: ctx::select,
        RedisModule_GetBlockedClientPrivateData: ctx::private,
        RedisModule_GetClientInfoById: clients::info,
        RedisModule_GetClientUserNameById: clients::no_user,
        RedisModule_IsKeysPositionRequest: no_keys,
        RedisModule_BlockClientOnKeys: clients::park,
        RedisModule_UnblockClient: clients::unpark,
        RedisModule_OpenKey: keys::open,
        RedisModule_CloseKey: keys::close,
        RedisModule_DeleteKey: keys::delete,
        RedisModule_KeyType: keys::kind,
        RedisModule_ModuleTypeGetType: keys::get_type,
        RedisModule_ModuleTypeGetValue: keys::get_value,
        RedisModule_ModuleTypeSetValue: keys::set_value,
        RedisModule_SignalModifiedKey: keys::signal_modified,
        RedisModule_GetKeyNameFromOptCtx: keys::leaving_key,
        RedisModule_GetDbIdFromOptCtx: keys::leaving_db,
        RedisModule_NotifyKeyspaceEvent: keys::notify,
        RedisModule_PublishMessage: keys::publish,
        RedisModule_ReplicateVerbatim: verbatim,
        RedisModule_SaveStringBuffer: io::save,
        RedisModule_LoadStringBuffer: io::load,
        RedisModule_IsIOError: io::failed,
        RedisModule_GetContextFromIO: io::context,
        RedisModule_GetKeyNameFromIO: io::key,
        RedisModule_GetDbIdFromIO: io::db,
        RedisModule_DigestAddStringBuffer: io::digest_add,
        RedisModule_DigestEndSequence: io::digest_end,
        RedisModule_ReplyWithStringBuffer: reply::string,
        RedisModule_ReplyWithSimpleString: reply::simple,
        RedisModule_ReplyWithError: reply::error,
        RedisModule_ReplyWithLongLong: reply::int,
        RedisModule_ReplyWithDouble: reply::double,
        RedisModule_ReplyWithNull: reply::null,
        RedisModule_ReplyWithNullArray: reply::null_array,
        RedisModule_ReplyWithArray: reply::array,
        RedisModule_ReplyWithMap: reply::map,
    }
}

unsafe extern "C" fn attributes(
    ctx: *mut raw::RedisModuleCtx,
    _name: *const c_char,
    _version: c_int,
    _api: c_int,
) {
    ctx::of(ctx);
}

unsafe extern "C" fn options(_ctx: *mut raw::RedisModuleCtx, _options: c_int) {}

unsafe extern "C" fn no_options() -> c_int {
    0
}

/// Calls are made, and never asked for their keys.
unsafe extern "C" fn no_keys(ctx: *mut raw::RedisModuleCtx) -> c_int {
    ctx::of(ctx);
    0
}

unsafe extern "C" fn name_is_free(name: *const c_char) -> c_int {
    assert!(!name.is_null());
    0
}

unsafe extern "C" fn no_maxmemory() -> f32 {
    0.0
}

/// What the server says of its replication: the handle is any address.
unsafe extern "C" fn server_info(
    ctx: *mut raw::RedisModuleCtx,
    section: *const c_char,
) -> *mut raw::RedisModuleServerInfoData {
    ctx::of(ctx);
    assert_eq!(CStr::from_ptr(section), c"replication");
    std::ptr::from_ref(crate::server()).cast_mut().cast()
}

unsafe extern "C" fn server_number(
    _info: *mut raw::RedisModuleServerInfoData,
    field: *const c_char,
    failed: *mut c_int,
) -> i64 {
    assert!([c"connected_slaves", c"repl_backlog_active"].contains(&CStr::from_ptr(field)));
    *failed = 0;
    i64::from(!crate::server().is_unheard.get())
}

unsafe extern "C" fn free_server_info(
    _ctx: *mut raw::RedisModuleCtx,
    info: *mut raw::RedisModuleServerInfoData,
) {
    assert!(!info.is_null());
}

unsafe extern "C" fn avoid_traffic() -> c_int {
    c_int::from(crate::server().is_stopped.get())
}

/// All of them.
unsafe extern "C" fn notified() -> c_int {
    c_int::MAX
}

unsafe extern "C" fn category(_ctx: *mut raw::RedisModuleCtx, _name: *const c_char) -> c_int {
    0
}

unsafe extern "C" fn categories(_command: *mut raw::RedisModuleCommand, _names: *const c_char) -> c_int {
    0
}

unsafe extern "C" fn verbatim(ctx: *mut raw::RedisModuleCtx) -> c_int {
    ctx::of(ctx);
    0
}

/// `JOB.PROBE`, the one command that the module calls: a server that takes writes says OK.
///
/// # Safety
/// Called by the module, with what [`raw::RedisModule_Call`] takes.
#[no_mangle]
unsafe extern "C" fn fake_called(
    ctx: *mut raw::RedisModuleCtx,
    command: *const c_char,
    key: *mut raw::RedisModuleString,
) -> *mut raw::RedisModuleCallReply {
    ctx::of(ctx);
    strings::bytes(key);
    assert_eq!(CStr::from_ptr(command), c"JOB.PROBE");
    crate::server().nothing_open("a call");
    Box::into_raw(Box::new(raw::REDISMODULE_REPLY_STRING as c_ulonglong)).cast()
}

unsafe extern "C" fn reply_type(reply: *mut raw::RedisModuleCallReply) -> c_int {
    *reply.cast::<c_ulonglong>() as c_int
}

unsafe extern "C" fn free_reply(reply: *mut raw::RedisModuleCallReply) {
    drop(Box::from_raw(reply.cast::<c_ulonglong>()));
}
