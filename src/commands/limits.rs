//! `JOB.LIMITS`: the named limits of a board, page by page.

use board::{LimitOf, Setting, NEVER};

use super::{read, Command, KeyUse, Spec};
use crate::args::{once, Args, Keyword};
use crate::fault::{syntax, unexpected, Done, Fault};
use crate::server::call::Call;
use crate::world;

/// `JOB.LIMITS board [CURSOR c] [COUNT n]` → cursor and a map for each limit.
pub struct Limits;

/// So many are given when COUNT does not say.
const COUNT: usize = 100;

/// What is told of each beside what counts against it.
const SETTINGS: [Setting; 4] = [Setting::Concurrency, Setting::Rate, Setting::RatePeriod, Setting::Burst];

/// `0`, or `>` and the name of the last limit that was given.
fn cursor<'a>(args: &mut Args<'a>) -> Result<Option<&'a [u8]>, Fault> {
    match args.value("CURSOR")? {
        b"0" => Ok(None),
        [b'>', last @ ..] => Ok(Some(last)),
        _ => syntax("CURSOR must be 0 or one that the last call gave"),
    }
}

impl Command for Limits {
    const SPEC: Spec = Spec {
        name: "job.limits",
        arity: -2,
        flags: "readonly",
        key: Some(KeyUse::Read),
        summary: "Tells what counts against each named limit of a board, page by page.",
        complexity: "O(log L + n) for L limits and n returned",
        syntax: "board [CURSOR cursor] [COUNT n]",
        ..Spec::NONE
    };

    fn run(call: &mut Call<'_>) -> Done {
        let (mut from, mut count) = (None, None);
        while let Some(word) = call.args.next() {
            match Keyword::of(word).text() {
                "CURSOR" => once(&mut from, "CURSOR", cursor(&mut call.args)?)?,
                "COUNT" => once(&mut count, "COUNT", call.args.length("COUNT", 1)?)?,
                _ => return unexpected(word),
            }
        }
        let reply = call.ctx.reply();
        read(call, |board| {
            let now = world::now();
            let mut limits = board.limits_after(from.flatten());
            let page: Vec<LimitOf<'_>> = limits.by_ref().take(count.unwrap_or(COUNT)).collect();
            reply.array(2);
            match page.last().filter(|_| limits.next().is_some()) {
                Some(last) => reply.bytes(&[b">", last.name()].concat()),
                None => reply.text("0"),
            }
            reply.array(page.len());
            for limit in page {
                reply.map(4 + SETTINGS.len());
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
            }
            Ok(())
        })
    }
}
