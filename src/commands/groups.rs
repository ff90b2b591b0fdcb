//! `JOB.GROUPS`: the groups of a board's queues, page by page.

use board::{Board, GroupOf, Setting, State, ALL_GROUPS};

use super::pages::{self, Paging};
use super::{pause_end, read, reference, Command, KeyUse, Spec};
use crate::commands::args::{once, Keyword};
use crate::commands::call::Call;
use crate::redis::reply::Reply;
use crate::replies::errors::{unexpected, Done};
use crate::replies::fitting::fit_rows;
use crate::runtime::world;

/// `JOB.GROUPS` → cursor and a map for each group.
pub struct Groups;

/// The settings in each map, beside counts and pause.
const SETTINGS: [Setting; 7] = [
    Setting::Weight,
    Setting::Concurrency,
    Setting::Ordered,
    Setting::Rate,
    Setting::RatePeriod,
    Setting::Burst,
    Setting::MaxJobs,
];

/// The queue and number where a page begins, from `>`, the number, a dot, and the queue.
fn cursor(text: &[u8]) -> Option<(&[u8], u32)> {
    let text = pages::after(text)?;
    let dot = text.iter().position(|byte| *byte == b'.')?;
    let (number, queue) = text.split_at_checked(dot)?;
    Some((queue.get(1..)?, std::str::from_utf8(number).ok()?.parse().ok()?))
}

fn cursor_of(next: &GroupOf<'_>) -> Vec<u8> {
    [next.number().to_string().as_bytes(), b".", next.queue()].concat()
}

/// Writes one field: the shared limits that a queue or a group names.
pub fn write_limits(reply: Reply, board: &Board, queue: &[u8], group: Option<&[u8]>) {
    let own = board.limits_named(queue, group);
    let names = own.or_else(|| board.limits_named(queue, group.and(Some(ALL_GROUPS)))).unwrap_or_default();
    reply.text("limits");
    reply.array(names.len());
    names.into_iter().for_each(|name| reply.bytes(name));
}

impl Command for Groups {
    const SPEC: Spec = reference::JOB_GROUPS.with("readonly", KeyUse::Read);

    fn run(call: &mut Call<'_>) -> Done {
        let (mut queue, mut paging) = (None, Paging::FIRST);
        while let Some(word) = call.args.next() {
            match Keyword::of(word).text() {
                "QUEUE" => once(&mut queue, "QUEUE", call.args.name("QUEUE")?)?,
                option if paging.take(option, &mut call.args, cursor)? => {}
                _ => return unexpected(word),
            }
        }
        let (from, count) = paging.bounds();
        let reply = call.ctx.reply();
        read(call, |board| {
            let (mut groups, mut next) = board.groups(from, queue, count);
            let row = |reply: Reply<'_>, group: &GroupOf<'_>| {
                reply.map(4 + SETTINGS.len() + State::ALL.len());
                reply.text("queue");
                reply.bytes(group.queue());
                reply.text("group");
                reply.bytes(group.name());
                for state in State::ALL {
                    reply.text(state.name());
                    reply.int(group.count(state) as i64);
                }
                reply.text("paused");
                reply.int(pause_end(group.paused(world::now())));
                for setting in SETTINGS {
                    reply.text(setting.spec().name);
                    reply.int(group.setting(setting));
                }
                write_limits(reply, board, group.queue(), Some(group.name()));
            };
            let fits = fit_rows(&groups, row);
            if fits < groups.len() {
                next = groups.drain(fits..).next();
            }
            pages::begin(reply, next.map(|next| pages::behind(&cursor_of(&next))));
            reply.array(groups.len());
            groups.iter().for_each(|group| row(reply, group));
            Ok(())
        })
    }
}
