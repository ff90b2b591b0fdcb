//! `JOB.EXPLAIN`: why a job is not running, and what would change that.

use board::{Board, Detail, Details, Explanation, Reason, State};

use super::{read, reference, Command, KeyUse, Spec};
use crate::commands::call::Call;
use crate::config::config;
use crate::redis::reply::Reply;
use crate::replies::errors::Done;
use crate::runtime::blocked_claims::waiting_for;
use crate::runtime::world;

/// `JOB.EXPLAIN` → a map with the reasons, or null.
pub struct Explain;

fn write_details(reply: Reply, details: &Details) {
    for (name, detail) in details {
        reply.text(name);
        match detail {
            Detail::Number(n) => reply.int(*n),
            Detail::Word(word) => reply.text(word),
            Detail::Bytes(bytes) => reply.bytes(bytes),
            Detail::Rows(rows) => {
                reply.array(rows.len());
                for row in rows {
                    reply.map(row.len());
                    write_details(reply, row);
                }
            }
        }
    }
}

fn write_reasons(reply: Reply, reasons: &[Reason]) {
    reply.text("reasons");
    reply.array(reasons.len());
    for Reason { code, details, text } in reasons {
        reply.map(2 + details.len());
        reply.text("reason");
        reply.text(code);
        write_details(reply, details);
        reply.text("text");
        reply.text(text);
    }
}

fn write(call: &Call<'_>, board: &Board, slot: u32, explanation: &Explanation) {
    let reply = call.ctx.reply();
    let Some(record) = board.record_of(slot) else { return reply.null() };
    let (state, group) = (record.state(), record.group());
    let waits = matches!(state, State::Scheduled | State::Blocked | State::Ready);
    reply.map(5 + usize::from(group.is_some()) + usize::from(waits));
    reply.text("id");
    record.id().text(|id| reply.bytes(id));
    reply.text("state");
    reply.text(state.name());
    reply.text("queue");
    reply.bytes(record.queue());
    if let Some(group) = group {
        reply.text("group");
        reply.bytes(group);
    }
    reply.text("claimable");
    reply.int(explanation.claimable.into());
    if waits {
        reply.text("waiting");
        reply.int(waiting_for(call.ctx, &call.key(), record.queue()) as i64);
    }
    write_reasons(reply, &explanation.reasons);
}

/// Replies with what is known of a job whose record has been removed, if anything is.
fn write_gone(reply: Reply, board: &Board, id: &[u8], now: i64) {
    let Some(gone) = board.tombstone(id, now) else { return reply.null() };
    reply.map(4);
    reply.text("id");
    reply.bytes(id);
    reply.text("state");
    reply.text(gone.state.name());
    reply.text("claimable");
    reply.int(0);
    write_reasons(reply, &[gone.explain()]);
}

impl Command for Explain {
    const SPEC: Spec = reference::JOB_EXPLAIN.with("readonly", KeyUse::Read);

    fn run(call: &mut Call<'_>) -> Done {
        let id = call.args.name("id")?;
        let env = world::env(config());
        read(call, |board| {
            let found = board.find(id).and_then(|slot| Some((slot, board.explain(slot, &env)?)));
            match found {
                Some((slot, explanation)) => write(call, board, slot, &explanation),
                None => write_gone(call.ctx.reply(), board, id, env.now),
            }
            Ok(())
        })
    }
}
