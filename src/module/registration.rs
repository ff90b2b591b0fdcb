//! Registers the commands with the server: flags, arity, key specs, documents, categories.

use redis_module::raw;
use std::ffi::CString;
use std::os::raw::c_int;

use crate::commands::call::Call;
use crate::commands::hint::options_at;
use crate::commands::{self, Command, Family, Help, KeyUse, Registers, Spec};
use crate::redis::command_docs::Arguments;
use crate::redis::ctx::{Ctx, Level};
use crate::redis::guard::guard;
use crate::redis::words::Words;
use crate::redis::{api, ERR, OK};
use crate::runtime::world;

type Handler =
    unsafe extern "C" fn(*mut raw::RedisModuleCtx, *mut *mut raw::RedisModuleString, c_int) -> c_int;

/// The function that the server calls for a command.
unsafe extern "C" fn handle<C: Command>(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
) -> c_int {
    const { assert!(C::SPEC.key_is_there(), "the server lets calls without the key through") };
    // SAFETY: the context of this call, and `argc` strings that live as long; nothing keeps them.
    let (ctx, words) = unsafe { (Ctx::of_call(ctx), Words::new(argv, argc)) };
    guard(C::SPEC.name, || {
        let key_at = C::SPEC.key_at();
        let mut call = Call::new(ctx, words, key_at, key_at + usize::from(C::SPEC.key.is_some()));
        if matches!(C::SPEC.key, Some(KeyUse::Delete)) && ctx.asks_for_keys() {
            ctx.name_key(key_at, delete_flags(C::reads(&mut call.args)));
            return OK;
        }
        if let Err(fault) = C::run(&mut call) {
            let meant = fault
                .hint(|| options_at(C::SPEC.syntax, &call.args))
                .map(|word| format!(": did you mean {word}?"));
            ctx.reply().error(&format!("{fault}{}", meant.unwrap_or_default()));
        }
        OK
    })
}

/// Collects commands and registers them.
pub struct Registrar<'c> {
    ctx: Ctx<'c>,
    own_category: bool,
    failed: Option<String>,
    specs: Vec<Spec>,
}

/// Registers all commands.
pub fn all(ctx: Ctx) -> Result<(), String> {
    // SAFETY: the context is that of the load. Redis 7.0 and 7.2 have no such function.
    let own_category =
        unsafe { raw::RedisModule_AddACLCategory.is_some_and(|add| add(ctx.0, c"jobs".as_ptr()) == OK) };
    let mut registrar = Registrar { ctx, own_category, failed: None, specs: Vec::new() };
    commands::register(&mut registrar, world::clock_is_manual());
    commands::set_registered(registrar.specs);
    registrar.failed.map_or(Ok(()), |name| Err(format!("the command {name} cannot be registered")))
}

fn c(text: &str) -> CString {
    CString::new(text).unwrap_or_default()
}

impl Registers for Registrar<'_> {
    fn add<C: Command>(&mut self) {
        self.named(&C::SPEC, Some(handle::<C>));
        self.specs.push(C::SPEC);
    }

    fn family<F: Family>(&mut self) {
        self.named(&F::SPEC, None);
        self.add::<Help<F>>();
    }
}

impl Registrar<'_> {
    fn named(&mut self, spec: &Spec, handler: Option<Handler>) {
        let full = spec.sub.map_or(spec.name.to_string(), |sub| format!("{}|{sub}", spec.name));
        let key_at = if spec.key.is_some() { spec.key_at() as c_int } else { 0 };
        let (name, flags) = (c(spec.name), c(spec.flags));
        let step = c_int::from(key_at > 0);
        let last = if spec.many_keys { -1 } else { key_at };
        let flags = flags.as_ptr();
        let made = match spec.sub {
            // SAFETY: the context is that of the load, the handler has the type of a command; the
            // server copies name and flags.
            None => unsafe {
                let name = name.as_ptr();
                api!(RedisModule_CreateCommand(self.ctx.0, name, handler, flags, key_at, last, step)) == OK
            },
            Some(sub) => self.command(spec.name).is_some_and(|parent| {
                let sub = c(sub);
                // SAFETY: likewise, and the parent is a command of ours.
                unsafe {
                    let sub = sub.as_ptr();
                    api!(RedisModule_CreateSubcommand(parent, sub, handler, flags, key_at, last, step)) == OK
                }
            }),
        };
        match self.command(&full).filter(|command| made && describe(*command, spec, key_at)) {
            Some(command) => self.categorise(command, spec),
            None => {
                self.failed.get_or_insert(full);
            }
        }
    }

    /// A command of ours. `None` when there is none of this name, or it is another module's.
    fn command(&self, name: &str) -> Option<*mut raw::RedisModuleCommand> {
        let name = c(name);
        // SAFETY: the context is that of the load, and the name a C string.
        let command = unsafe { api!(RedisModule_GetCommand(self.ctx.0, name.as_ptr())) };
        (!command.is_null()).then_some(command)
    }

    /// Sets the categories of a command. They are optional: a server without them just lacks ours.
    fn categorise(&self, command: *mut raw::RedisModuleCommand, spec: &Spec) {
        // SAFETY: written once, when the module was loaded. Redis 7.0 has no such function.
        let Some(set) = (unsafe { raw::RedisModule_SetCommandACLCategories }) else { return };
        if spec.internal {
            return;
        }
        let known = ["write", "readonly", "fast", "blocking"];
        let mut words: Vec<&str> = spec
            .flags
            .split(' ')
            .filter(|flag| known.contains(flag))
            .map(|flag| if flag == "readonly" { "read" } else { flag })
            .collect();
        if !words.contains(&"fast") {
            words.push("slow");
        }
        if self.own_category {
            words.push("jobs");
        }
        // SAFETY: a command of ours, during the load; the server reads the words in the call.
        if unsafe { set(command, c(&words.join(" ")).as_ptr()) } == ERR {
            self.ctx.log(Level::Notice, &format!("{} has no ACL categories", spec.name));
        }
    }
}

fn describe(command: *mut raw::RedisModuleCommand, spec: &Spec, key_at: c_int) -> bool {
    static VERSION: raw::RedisModuleCommandInfoVersion = raw::RedisModuleCommandInfoVersion {
        version: 1,
        sizeof_historyentry: std::mem::size_of::<raw::RedisModuleCommandHistoryEntry>(),
        sizeof_keyspec: std::mem::size_of::<raw::RedisModuleCommandKeySpec>(),
        sizeof_arg: std::mem::size_of::<raw::RedisModuleCommandArg>(),
    };
    let (summary, complexity, since) = (c(spec.summary), c(spec.complexity), c(spec.since));
    let mut arguments = Arguments::parse(spec.syntax, spec.key.is_some());
    // SAFETY: these structs are made of pointers and numbers; zeroes say nothing, and end a list.
    let (mut keys, mut info) = unsafe {
        let keys: [raw::RedisModuleCommandKeySpec; 2] = std::mem::zeroed();
        (keys, std::mem::zeroed::<raw::RedisModuleCommandInfo>())
    };
    if let (Some(usage), [key, _]) = (spec.key, &mut keys) {
        key.flags = flags_of(usage);
        key.begin_search_type = raw::RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_INDEX;
        key.bs.index = raw::RedisModuleCommandKeySpec__bindgen_ty_1__bindgen_ty_1 { pos: key_at };
        key.find_keys_type = raw::RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_RANGE;
        key.fk.range = raw::RedisModuleCommandKeySpec__bindgen_ty_2__bindgen_ty_1 {
            lastkey: if spec.many_keys { -1 } else { 0 },
            keystep: 1,
            limit: 0,
        };
        info.key_specs = keys.as_mut_ptr();
    }
    info.version = &VERSION;
    info.summary = summary.as_ptr();
    info.complexity = complexity.as_ptr();
    info.since = since.as_ptr();
    info.arity = spec.arity;
    if !spec.syntax.is_empty() {
        info.args = arguments.as_mut_ptr();
    }
    // SAFETY: a command of ours, during the load. All that `info` points to lives until the end of
    // this function, lists end with a zeroed element, and the server copies what it reads.
    unsafe { api!(RedisModule_SetCommandInfo(command, &info)) == OK }
}

fn flags_of(usage: KeyUse) -> u64 {
    let flags = match usage {
        KeyUse::Read => raw::REDISMODULE_CMD_KEY_RO | raw::REDISMODULE_CMD_KEY_ACCESS,
        KeyUse::Insert => raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_INSERT,
        KeyUse::Update => {
            raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_ACCESS | raw::REDISMODULE_CMD_KEY_UPDATE
        }
        KeyUse::Delete => delete_flags(true) | raw::REDISMODULE_CMD_KEY_VARIABLE_FLAGS,
    };
    u64::from(flags)
}

/// The key flags of one call of a command that deletes.
fn delete_flags(reads: bool) -> u32 {
    let access = if reads { raw::REDISMODULE_CMD_KEY_ACCESS } else { 0 };
    raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_DELETE | access
}
