//! The module's entries in the server's configuration.

use redis_module::raw;
use std::ffi::CString;
use std::os::raw::{c_char, c_int, c_longlong, c_void};

use crate::config::Entry;
use crate::redis::ctx::Ctx;
use crate::redis::{api, ERR, OK};

/// The private data of an entry is its number.
fn entry_of(number: *mut c_void) -> Option<Entry> {
    Entry::all().nth(number as usize)
}

extern "C" fn get_number(_name: *const c_char, number: *mut c_void) -> c_longlong {
    entry_of(number).map_or(0, Entry::get)
}

extern "C" fn set_number(
    _name: *const c_char,
    value: c_longlong,
    number: *mut c_void,
    _error: *mut *mut raw::RedisModuleString,
) -> c_int {
    if let Some(entry) = entry_of(number) {
        entry.set(value);
    }
    OK
}

extern "C" fn get_switch(name: *const c_char, number: *mut c_void) -> c_int {
    get_number(name, number) as c_int
}

extern "C" fn set_switch(
    name: *const c_char,
    value: c_int,
    number: *mut c_void,
    error: *mut *mut raw::RedisModuleString,
) -> c_int {
    set_number(name, c_longlong::from(value), number, error)
}

/// Registers all entries, and loads their values from the configuration file.
pub fn register(ctx: Ctx) -> Result<(), String> {
    let flags = raw::REDISMODULE_CONFIG_DEFAULT;
    for (number, entry) in Entry::all().enumerate() {
        let shape = entry.shape();
        let name = CString::new(shape.name).map_err(|_| "a name with NUL")?;
        let data = number as *mut c_void;
        // SAFETY: the context is that of the load, the server copies the name, and the callbacks have
        // the types of their entries. They take the private data for a number.
        let registered = unsafe {
            match shape.switch {
                true => api!(RedisModule_RegisterBoolConfig(
                    ctx.0,
                    name.as_ptr(),
                    shape.default as c_int,
                    flags,
                    Some(get_switch),
                    Some(set_switch),
                    None,
                    data
                )),
                false => api!(RedisModule_RegisterNumericConfig(
                    ctx.0,
                    name.as_ptr(),
                    shape.default,
                    flags,
                    shape.min,
                    shape.max,
                    Some(get_number),
                    Some(set_number),
                    None,
                    data
                )),
            }
        };
        if registered == ERR {
            return Err(format!("the setting {} cannot be registered", shape.name));
        }
    }
    // SAFETY: the context is that of the load.
    match unsafe { api!(RedisModule_LoadConfigs(ctx.0)) } == ERR {
        true => Err("the configuration file cannot be taken over".into()),
        false => Ok(()),
    }
}
