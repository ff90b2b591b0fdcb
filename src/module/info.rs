//! The section `jobboard` of INFO. It has only what this server alone knows and can read cheaply:
//! it opens no key.

use redis_module::raw;
use std::os::raw::c_int;
use std::sync::atomic::Ordering::Relaxed;

use crate::redis::api;
use crate::redis::clock;
use crate::redis::ctx::Ctx;
use crate::runtime::blocked_claims;
use crate::runtime::blocked_posts;
use crate::runtime::blocked_waits;
use crate::runtime::board_value::{BOARDS, BROKEN};
use crate::runtime::durability;
use crate::runtime::latency;
use crate::runtime::listeners;
use crate::runtime::timer;
use crate::runtime::world;

/// Registers the section.
pub fn register(ctx: Ctx) {
    // SAFETY: the context is that of the load, the callback has the type of an info function.
    unsafe { api!(RedisModule_RegisterInfoFunc(ctx.0, Some(section))) };
}

unsafe extern "C" fn section(info: *mut raw::RedisModuleInfoCtx, for_crash_report: c_int) {
    // In a crash it must not lock, open or allocate anything.
    if for_crash_report != 0 {
        return;
    }
    let timer = timer::stats();
    let (posts, post_bytes) = blocked_posts::waiting();
    let fields = [
        (c"boards", BOARDS.load(Relaxed)),
        (c"broken_boards", BROKEN.load(Relaxed)),
        (c"blocked_claims", blocked_claims::waiting() as i64),
        (c"blocked_posts", posts as i64),
        (c"blocked_post_bytes", post_bytes as i64),
        (c"waiting_clients", blocked_waits::waiting() as i64),
        (c"manual_clock", i64::from(world::clock_is_manual())),
        (c"clock_ahead_ms", clock::lead()),
        (c"replies_before_sync", i64::from(durability::replies_before_sync())),
        (c"timer_boards", timer.hints as i64),
        (c"timer_overdue_ms", timer.overdue_ms),
        (c"timer_turns", timer.turns as i64),
        (c"timer_longest_turn_us", timer.longest_us as i64),
    ];
    // SAFETY: the info is that of the callback; the server copies the name.
    unsafe { api!(RedisModule_InfoAddSection(info, c"".as_ptr())) };
    let late = latency::with(|seen| {
        let [lease, due, fire] = &seen.late;
        [lease, due, fire, &seen.pickup].map(|dist| (dist.percentile(99) as i64, dist.max() as i64))
    });
    let names = [
        (c"lease_lateness_p99_ms", c"lease_lateness_max_ms"),
        (c"due_lateness_p99_ms", c"due_lateness_max_ms"),
        (c"fire_lateness_p99_ms", c"fire_lateness_max_ms"),
        (c"pickup_p99_ms", c"pickup_max_ms"),
    ];
    let late = names.into_iter().zip(late).flat_map(|(names, (p99, max))| [(names.0, p99), (names.1, max)]);
    // SAFETY: likewise; the server copies the word, too.
    unsafe { api!(RedisModule_InfoAddFieldCString(info, c"listeners".as_ptr(), listeners::word().as_ptr())) };
    for (name, value) in fields.into_iter().chain(late) {
        // SAFETY: likewise.
        unsafe { api!(RedisModule_InfoAddFieldLongLong(info, name.as_ptr(), value)) };
    }
}
