//! `JOB.LIMITS`: the shared limits of a board, page by page.

use board::{LimitOf, Setting, NEVER};

use super::pages::{self, Paging};
use super::{pause_end, read, reference, Command, KeyUse, Spec};
use crate::commands::call::Call;
use crate::replies::errors::Done;
use crate::runtime::world;

/// `JOB.LIMITS` → cursor and a map for each limit.
pub struct Limits;

/// The settings in each map, beside what counts against the limit.
const SETTINGS: [Setting; 4] = [Setting::Concurrency, Setting::Rate, Setting::RatePeriod, Setting::Burst];

impl Command for Limits {
    const SPEC: Spec = reference::JOB_LIMITS.with("readonly", KeyUse::Read);

    fn run(call: &mut Call<'_>) -> Done {
        let (from, count) = Paging::only(&mut call.args, pages::after)?.bounds();
        let reply = call.ctx.reply();
        read(call, |board| {
            let now = world::now();
            let mut behind = board.limits_after(from);
            let page: Vec<LimitOf<'_>> = behind.by_ref().take(count).collect();
            let more = behind.next().is_some();
            pages::write(
                reply,
                page,
                more,
                |limit| pages::behind(limit.name()),
                |reply, limit| {
                    reply.map(6 + SETTINGS.len());
                    reply.text("limit");
                    reply.bytes(limit.name());
                    reply.text("queues");
                    reply.int(limit.queues() as i64);
                    reply.text("claimed");
                    reply.int(limit.claimed() as i64);
                    for setting in SETTINGS {
                        reply.text(setting.spec().name);
                        reply.int(limit.setting(setting).0);
                    }
                    reply.text("dry");
                    reply.int(match limit.dry_until(1, now) {
                        None => 0,
                        Some(NEVER) => -1,
                        Some(until) => until,
                    });
                    reply.text("debt");
                    reply.int(limit.debt(now));
                    reply.text("paused");
                    reply.int(pause_end(limit.paused(now)));
                },
            );
            Ok(())
        })
    }
}
