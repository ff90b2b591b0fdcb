//! The entry of the module.

use redis_module::raw;
use std::os::raw::{c_char, c_int, c_void};

use crate::config;
use crate::module::board_type;
use crate::module::config as server_config;
use crate::module::info;
use crate::module::registration;
use crate::module::server_events;
use crate::redis::ctx::{Ctx, Level};
use crate::redis::words::Words;
use crate::redis::{api, ERR, OK};
use crate::runtime::world;

/// Version 0.2.3, two digits for each number.
const VERSION: c_int = 203;

/// Logs the text of a panic, which otherwise only standard error would get.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        Ctx::nowhere().log(Level::Warning, &format!("jobboard: {panic}"));
    }));
}

/// Called by the server when it loads the module.
///
/// # Safety
/// Only the server calls this, with a valid context and `argc` valid strings.
#[no_mangle]
#[allow(non_snake_case)]
pub unsafe extern "C" fn RedisModule_OnLoad(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
) -> c_int {
    let name = c"jobboard".as_ptr();
    // SAFETY: first of all, with the context of the load: it looks up all functions of the server's
    // that are used later, those that allocate among them.
    if unsafe { raw::Export_RedisModule_Init(ctx, name, VERSION, raw::REDISMODULE_APIVER_1 as c_int) } == ERR
    {
        // SAFETY: as above; what the context lacks then is the name of the module.
        say_if_loaded(unsafe { Ctx::of_call(ctx) }, name);
        return ERR;
    }
    // SAFETY: as the caller promises, and neither is kept.
    let (ctx, words) = unsafe { (Ctx::of_call(ctx), Words::new(argv, argc)) };
    log_panics();
    let words: Vec<&[u8]> = (0..words.len()).filter_map(|at| words.get(at)).collect();
    match load(ctx, &words) {
        Ok(()) => OK,
        Err(what) => {
            ctx.log(Level::Warning, &what);
            ERR
        }
    }
}

/// The server itself says only that it aborts. A second `loadmodule` is mostly one that CONFIG REWRITE has
/// added to the main file, because the first is in an included one.
fn say_if_loaded(ctx: Ctx, name: *const c_char) {
    // SAFETY: looks a name up; the server sets the function before it looks whether the name is free.
    if unsafe { raw::RedisModule_IsModuleNameBusy.is_some_and(|busy| busy(name) != 0) } {
        ctx.log(
            Level::Warning,
            "the module is loaded already: keep one loadmodule line for it, in the main configuration file",
        );
    }
}

fn load(ctx: Ctx, words: &[&[u8]]) -> Result<(), String> {
    world::seed(ctx.entropy());
    world::start();
    set_options(ctx);
    if !board_type::register(ctx) {
        return Err("the data type cannot be registered".into());
    }
    server_config::register(ctx)?;
    // After the configuration, so that arguments win; the registration has set the values of the
    // configuration file.
    if config::load_arguments(words)? {
        world::use_manual_clock();
        ctx.log(Level::Warning, "the clock is manual: JOB.CLOCK is the only source of time");
    }
    registration::all(ctx)?;
    server_events::subscribe(ctx)?;
    info::register(ctx);
    Ok(())
}

fn set_options(ctx: Ctx) {
    let mut options = raw::REDISMODULE_OPTIONS_HANDLE_IO_ERRORS as c_int
        | raw::REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED as c_int;
    if moves_slots() {
        options |= 1 << 5;
    }
    // SAFETY: the context is that of the load.
    unsafe { api!(RedisModule_SetModuleOptions(ctx.0, options)) };
}

/// Whether the server is a Valkey that migrates slots with boards if the module allows it: in a
/// future Redis the same bit may mean something else.
fn moves_slots() -> bool {
    let mut function: *mut c_void = std::ptr::null_mut();
    // SAFETY: asks for a function by name and writes its address into `function`.
    let valkey = unsafe {
        match raw::RedisModule_GetApi {
            Some(get) => {
                let name = c"ValkeyModule_SetModuleOptions".as_ptr();
                get(name, std::ptr::addr_of_mut!(function).cast()) == OK
            }
            None => false,
        }
    };
    // SAFETY: takes nothing.
    let known = unsafe { raw::RedisModule_GetModuleOptionsAll.map_or(0, |all| all()) };
    valkey && known & (1 << 5) != 0
}
