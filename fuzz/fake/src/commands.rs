//! What a module makes known when it is loaded: commands, settings, events, a type.

use redis_module::raw;
use std::ffi::CStr;
use std::os::raw::{c_char, c_int, c_longlong, c_uint, c_void};

use crate::server::{server, Server};

/// One command.
#[derive(Clone)]
pub struct Command {
    /// With its parent's: `job.settings|get`.
    pub name: String,
    pub flags: String,
    pub args: Vec<Arg>,
    arity: i32,
    handler: raw::RedisModuleCmdFunc,
}

/// How an argument is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ArgKind {
    Word,
    Number,
    Key,
    Token,
    OneOf,
    Block,
}

/// One argument, as `COMMAND DOCS` tells it.
#[derive(Clone)]
pub struct Arg {
    pub name: String,
    pub kind: ArgKind,
    pub token: Option<String>,
    pub optional: bool,
    pub multiple: bool,
    pub inside: Vec<Arg>,
}

impl Command {
    /// The words that it begins with.
    pub fn words(&self) -> Vec<Vec<u8>> {
        self.name.split('|').map(|word| word.to_uppercase().into_bytes()).collect()
    }

    /// Whether it stands for others only.
    pub fn is_parent(&self) -> bool {
        self.handler.is_none()
    }
}

/// One setting of the module.
#[derive(Clone)]
pub struct Setting {
    pub name: String,
    pub default: i64,
    pub min: i64,
    pub max: i64,
    data: *mut c_void,
    setter: Setter,
}

#[derive(Clone, Copy)]
enum Setter {
    Number(raw::RedisModuleConfigSetNumericFunc, raw::RedisModuleConfigGetNumericFunc),
    Switch(raw::RedisModuleConfigSetBoolFunc, raw::RedisModuleConfigGetBoolFunc),
}

impl Setting {
    /// Its value in force.
    pub fn value(&self) -> i64 {
        let name = c"name".as_ptr();
        // SAFETY: the module's own functions, with the data that it gave.
        unsafe {
            match self.setter {
                Setter::Number(_, get) => get.expect("a getter")(name, self.data),
                Setter::Switch(_, get) => get.expect("a getter")(name, self.data).into(),
            }
        }
    }

    /// Sets it, to a value within its range.
    pub fn set(&self, value: i64) {
        let (name, mut error) = (c"name".as_ptr(), std::ptr::null_mut());
        // SAFETY: as above.
        let done = unsafe {
            match self.setter {
                Setter::Number(set, _) => set.expect("a setter")(name, value, self.data, &mut error),
                Setter::Switch(set, _) => set.expect("a setter")(name, value as c_int, self.data, &mut error),
            }
        };
        assert!(done == 0 && self.value() == value, "{} is not {value}", self.name);
    }

    /// Sets it to its default, if it is another.
    pub fn reset(&self) {
        if self.value() != self.default {
            self.set(self.default);
        }
    }
}

impl Server {
    /// All that the module has made known.
    pub fn commands(&self) -> Vec<Command> {
        self.commands.borrow().clone()
    }

    /// All settings of the module.
    pub fn settings(&self) -> Vec<Setting> {
        self.settings.borrow().clone()
    }

    /// The handler of a command, or what the server says itself.
    pub(crate) fn find(&self, words: &[Vec<u8>]) -> Result<raw::RedisModuleCmdFunc, String> {
        let word = |n: usize| words.get(n).map(|w| String::from_utf8_lossy(w).to_lowercase());
        let name = word(0).unwrap_or_default();
        let commands = self.commands.borrow();
        let known = |name: &str| commands.iter().find(|command| command.name == *name);
        let mut command = known(&name).ok_or("ERR unknown command")?;
        if command.is_parent() {
            let full = format!("{name}|{}", word(1).unwrap_or_default());
            command = known(&full).ok_or("ERR unknown subcommand")?;
        }
        let len = words.len() as i32;
        let fits = if command.arity < 0 { len >= -command.arity } else { len == command.arity };
        match fits {
            true => Ok(command.handler),
            false => Err("ERR wrong number of arguments".into()),
        }
    }
}

unsafe fn text(text: *const c_char) -> String {
    CStr::from_ptr(text).to_str().expect("UTF-8").to_string()
}

fn add(name: String, handler: raw::RedisModuleCmdFunc, flags: String) -> c_int {
    let mut commands = server().commands.borrow_mut();
    assert!(commands.iter().all(|command| command.name != name), "{name} is there twice");
    commands.push(Command { name, flags, args: Vec::new(), arity: -1, handler });
    0
}

pub unsafe extern "C" fn create(
    _ctx: *mut raw::RedisModuleCtx,
    name: *const c_char,
    handler: raw::RedisModuleCmdFunc,
    flags: *const c_char,
    _first: c_int,
    _last: c_int,
    _step: c_int,
) -> c_int {
    add(text(name), handler, text(flags))
}

pub unsafe extern "C" fn create_sub(
    parent: *mut raw::RedisModuleCommand,
    name: *const c_char,
    handler: raw::RedisModuleCmdFunc,
    flags: *const c_char,
    _first: c_int,
    _last: c_int,
    _step: c_int,
) -> c_int {
    let parent = server().commands.borrow()[parent as usize - 1].name.clone();
    add(format!("{parent}|{}", text(name)), handler, text(flags))
}

/// A command's handle is its number, from 1.
pub unsafe extern "C" fn get(
    _ctx: *mut raw::RedisModuleCtx,
    name: *const c_char,
) -> *mut raw::RedisModuleCommand {
    let name = text(name);
    let at = server().commands.borrow().iter().position(|command| command.name == name);
    at.map_or(0, |at| at + 1) as *mut raw::RedisModuleCommand
}

pub unsafe extern "C" fn describe(
    command: *mut raw::RedisModuleCommand,
    info: *const raw::RedisModuleCommandInfo,
) -> c_int {
    let mut commands = server().commands.borrow_mut();
    let command = &mut commands[command as usize - 1];
    command.arity = (*info).arity;
    command.args = args((*info).args);
    0
}

unsafe fn args(mut from: *const raw::RedisModuleCommandArg) -> Vec<Arg> {
    let mut all = Vec::new();
    while !from.is_null() && !(*from).name.is_null() {
        let arg = &*from;
        let kind = match arg.type_ {
            raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_STRING => ArgKind::Word,
            raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_INTEGER => ArgKind::Number,
            raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_KEY => ArgKind::Key,
            raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_PURE_TOKEN => ArgKind::Token,
            raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_ONEOF => ArgKind::OneOf,
            raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_BLOCK => ArgKind::Block,
            other => panic!("an argument of kind {other}"),
        };
        all.push(Arg {
            name: text(arg.name),
            kind,
            token: (!arg.token.is_null()).then(|| text(arg.token)),
            optional: arg.flags as u32 & raw::REDISMODULE_CMD_ARG_OPTIONAL != 0,
            multiple: arg.flags as u32 & raw::REDISMODULE_CMD_ARG_MULTIPLE != 0,
            inside: args(arg.subargs),
        });
        from = from.add(1);
    }
    all
}

pub unsafe extern "C" fn create_type(
    _ctx: *mut raw::RedisModuleCtx,
    name: *const c_char,
    _version: c_int,
    methods: *mut raw::RedisModuleTypeMethods,
) -> *mut raw::RedisModuleType {
    assert_eq!(CStr::from_ptr(name).count_bytes(), 9);
    server().methods.set(Some(*methods));
    the_type()
}

/// The handle of the module's one type.
pub fn the_type() -> *mut raw::RedisModuleType {
    std::ptr::from_ref(server()).cast_mut().cast()
}

pub unsafe extern "C" fn number_setting(
    _ctx: *mut raw::RedisModuleCtx,
    name: *const c_char,
    default: c_longlong,
    _flags: c_uint,
    min: c_longlong,
    max: c_longlong,
    get: raw::RedisModuleConfigGetNumericFunc,
    set: raw::RedisModuleConfigSetNumericFunc,
    _apply: raw::RedisModuleConfigApplyFunc,
    data: *mut c_void,
) -> c_int {
    assert!((min..=max).contains(&default));
    let setter = Setter::Number(set, get);
    server().settings.borrow_mut().push(Setting { name: text(name), default, min, max, data, setter });
    0
}

pub unsafe extern "C" fn switch_setting(
    _ctx: *mut raw::RedisModuleCtx,
    name: *const c_char,
    default: c_int,
    _flags: c_uint,
    get: raw::RedisModuleConfigGetBoolFunc,
    set: raw::RedisModuleConfigSetBoolFunc,
    _apply: raw::RedisModuleConfigApplyFunc,
    data: *mut c_void,
) -> c_int {
    let setter = Setter::Switch(set, get);
    let (default, name) = (default.into(), text(name));
    server().settings.borrow_mut().push(Setting { name, default, min: 0, max: 1, data, setter });
    0
}

pub unsafe extern "C" fn load_settings(_ctx: *mut raw::RedisModuleCtx) -> c_int {
    server().settings().iter().for_each(|setting| setting.set(setting.default));
    0
}

pub unsafe extern "C" fn on_event(
    _ctx: *mut raw::RedisModuleCtx,
    event: raw::RedisModuleEvent,
    callback: raw::RedisModuleEventCallback,
) -> c_int {
    server().events.borrow_mut().push((event.id, callback));
    0
}

pub unsafe extern "C" fn on_key_event(
    _ctx: *mut raw::RedisModuleCtx,
    _kinds: c_int,
    callback: raw::RedisModuleNotificationFunc,
) -> c_int {
    server().key_event.set(callback);
    0
}

pub unsafe extern "C" fn on_info(_ctx: *mut raw::RedisModuleCtx, info: raw::RedisModuleInfoFunc) -> c_int {
    server().info.set(info);
    0
}

pub unsafe extern "C" fn info_section(_info: *mut raw::RedisModuleInfoCtx, _name: *const c_char) -> c_int {
    0
}

pub unsafe extern "C" fn info_field(
    _info: *mut raw::RedisModuleInfoCtx,
    name: *const c_char,
    value: c_longlong,
) -> c_int {
    server().info_fields.borrow_mut().push((text(name), value));
    0
}

pub unsafe extern "C" fn info_text(
    _info: *mut raw::RedisModuleInfoCtx,
    name: *const c_char,
    word: *const c_char,
) -> c_int {
    assert!(!text(name).is_empty() && !text(word).is_empty());
    0
}
