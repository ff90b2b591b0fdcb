//! `JOB.INFO`: a board at a glance.

use board::{day_of, Histogram, Late, State, NEVER};

use super::tables::{write_late, write_pace};
use super::{pause_end, reference, Command, KeyUse, Spec};
use crate::commands::args::{flag, Keyword};
use crate::commands::call::Call;
use crate::config::config;
use crate::replies::errors::{unexpected, Done};
use crate::runtime::blocked_posts;
use crate::runtime::world;

/// `JOB.INFO` → a map, or null when there is no board.
pub struct Info;

impl Command for Info {
    const SPEC: Spec = reference::JOB_INFO.with("readonly", KeyUse::Read);

    fn run(call: &mut Call<'_>) -> Done {
        let mut digest = false;
        while let Some(word) = call.args.next() {
            match Keyword::of(word).text() {
                "DIGEST" => flag(&mut digest, "DIGEST")?,
                _ => return unexpected(word),
            }
        }
        let reply = call.ctx.reply();
        let key = call.key();
        let mut open = call.ctx.open(&key)?;
        let Some(value) = open.value() else {
            reply.null();
            return Ok(());
        };
        let board = &value.board;
        let (posts, post_bytes) = blocked_posts::waiting_at(call.ctx, &key);
        let env = world::env(config());
        let (wake, next) = (board.soonest(&env), board.next_event(&env));
        let numbers = [
            ("queues", board.queue_count() as i64),
            ("workers", board.worker_count() as i64),
            ("schedules", board.schedule_count() as i64),
            ("limits", board.limit_count() as i64),
            ("tombstones", board.tombstones() as i64),
            ("created", board.created()),
            ("revision", board.revision() as i64),
            ("token", board.token() as i64),
            ("next", if next >= NEVER { -1 } else { (next - env.now).max(0) }),
            ("overdue", i64::from(wake <= env.now)),
            ("broken", i64::from(value.is_broken())),
            ("bytes", board.bytes() as i64),
            ("record-bytes", board.record_bytes() as i64),
            ("blocked-posts", posts as i64),
            ("blocked-post-bytes", post_bytes as i64),
            ("paused", pause_end(board.paused(None, env.now))),
        ];
        let late = board.stats(None, day_of(env.now)).unwrap_or_default();
        let extra = 4 + 2 * Late::ALL.len();
        reply.map(1 + State::ALL.len() + numbers.len() + extra + usize::from(digest));
        reply.text("jobs");
        reply.int(board.len() as i64);
        for state in State::ALL {
            reply.text(state.name());
            reply.int(board.count(state) as i64);
        }
        for (name, number) in numbers {
            reply.text(name);
            reply.int(number);
        }
        write_pace(reply, &board.pace(None, env.now));
        for kind in Late::ALL {
            let name = format!("{}-lateness", kind.name());
            write_late(reply, &name, late.late(kind).unwrap_or(&Histogram::default()));
        }
        if digest {
            reply.text("digest");
            reply.text(&format!("{:032x}", board.digest()));
        }
        Ok(())
    }
}
