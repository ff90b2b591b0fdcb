//! `JOB.GROUPS`: the groups of a board's queues, page by page.

use board::{Board, GroupOf, Setting, State, ALL_GROUPS};

use super::{pause_end, read, Command, KeyUse, Spec};
use crate::args::{once, Args, Keyword};
use crate::fault::{syntax, unexpected, Done, Fault};
use crate::server::call::Call;
use crate::server::reply::Reply;
use crate::world;

/// `JOB.GROUPS board [QUEUE q] [CURSOR c] [COUNT n]` → cursor and a map for each group.
pub struct Groups;

/// So many are given when COUNT does not say.
const COUNT: usize = 100;

/// What is told of each beside its counts and its pause.
const SETTINGS: [Setting; 7] = [
    Setting::Weight,
    Setting::Concurrency,
    Setting::Ordered,
    Setting::Rate,
    Setting::RatePeriod,
    Setting::Burst,
    Setting::MaxJobs,
];

/// Where the next page begins: a queue and a number.
type From<'a> = Option<(&'a [u8], u32)>;

/// `0`, or `>`, a number, a dot, and the name of a queue.
fn cursor<'a>(args: &mut Args<'a>) -> Result<From<'a>, Fault> {
    let word = args.value("CURSOR")?;
    if word == b"0" {
        return Ok(None);
    }
    let read = || {
        let word = word.strip_prefix(b">")?;
        let dot = word.iter().position(|byte| *byte == b'.')?;
        let (number, queue) = word.split_at_checked(dot)?;
        Some((queue.get(1..)?, std::str::from_utf8(number).ok()?.parse().ok()?))
    };
    read().map_or_else(|| syntax("CURSOR must be 0 or one that the last call gave"), |from| Ok(Some(from)))
}

fn cursor_of(next: &GroupOf<'_>) -> Vec<u8> {
    [format!(">{}.", next.number()).as_bytes(), next.queue()].concat()
}

/// The limits that a queue, or a group, names, one field.
pub fn write_limits(reply: Reply, board: &Board, queue: &[u8], group: Option<&[u8]>) {
    let own = board.limits_named(queue, group);
    let names = own.or_else(|| board.limits_named(queue, group.and(Some(ALL_GROUPS)))).unwrap_or_default();
    reply.text("limits");
    reply.array(names.len());
    names.into_iter().for_each(|name| reply.bytes(name));
}

impl Command for Groups {
    const SPEC: Spec = Spec {
        name: "job.groups",
        arity: -2,
        flags: "readonly",
        key: Some(KeyUse::Read),
        summary: "Counts the jobs of each group by state, and tells what counts for it, page by page.",
        complexity: "O(Q log Q + n) for Q queues and n groups returned",
        syntax: "board [QUEUE queue] [CURSOR cursor] [COUNT n]",
        ..Spec::NONE
    };

    fn run(call: &mut Call<'_>) -> Done {
        let (mut queue, mut from, mut count) = (None, None, None);
        while let Some(word) = call.args.next() {
            match Keyword::of(word).text() {
                "QUEUE" => once(&mut queue, "QUEUE", call.args.name("QUEUE")?)?,
                "CURSOR" => once(&mut from, "CURSOR", cursor(&mut call.args)?)?,
                "COUNT" => once(&mut count, "COUNT", call.args.length("COUNT", 1)?)?,
                _ => return unexpected(word),
            }
        }
        let reply = call.ctx.reply();
        read(call, |board| {
            let (groups, next) = board.groups(from.flatten(), queue, count.unwrap_or(COUNT));
            reply.array(2);
            match next {
                Some(next) => reply.bytes(&cursor_of(&next)),
                None => reply.text("0"),
            }
            reply.array(groups.len());
            for group in groups {
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
            }
            Ok(())
        })
    }
}
