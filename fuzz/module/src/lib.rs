//! The module's sources, file by file as `src/lib.rs` names them, with everything that a target
//! looks into made public.

#[path = "../../../src/commands/mod.rs"]
pub mod commands;
#[path = "../../../src/config.rs"]
pub mod config;
#[path = "../../../src/integers.rs"]
pub mod integers;
#[path = "../../../src/module/mod.rs"]
pub mod module;
#[path = "../../../src/redis/mod.rs"]
pub mod redis;
#[path = "../../../src/replies/mod.rs"]
pub mod replies;
#[path = "../../../src/runtime/mod.rs"]
pub mod runtime;
