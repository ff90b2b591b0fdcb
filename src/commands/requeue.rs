//! `JOB.REQUEUE`: jobs that failed, were trashed or cancelled are to be done after all.

use super::selection::{distinct, ids, resolve, write};
use super::{Command, KeyUse, Spec};
use crate::args::{once, Keyword};
use crate::fault::{unexpected, Done};
use crate::server::call::Call;
use crate::turn::Turn;

/// `JOB.REQUEUE board n id… [QUEUE q]` → count, cursor, unknown ids. Replicates `Requeued` for
/// each, oldest first.
pub struct Requeue;

impl Command for Requeue {
    const SPEC: Spec = Spec {
        name: "job.requeue",
        arity: -4,
        flags: "write",
        key: Some(KeyUse::Update),
        summary: "Makes failed, trashed and cancelled jobs ready again, oldest first.",
        complexity: "O(n log N)",
        syntax: "board n id [id ...] [QUEUE queue]",
        ..Spec::NONE
    };

    fn run(call: &mut Call<'_>) -> Done {
        let ids = ids(&mut call.args)?;
        let mut queue = None;
        while let Some(word) = call.args.next() {
            match Keyword::of(word).text() {
                "QUEUE" => once(&mut queue, "QUEUE", call.args.name("QUEUE")?)?,
                _ => return unexpected(word),
            }
        }
        let reply = call.ctx.reply();
        Turn::run(call.ctx, &call.key(), |turn| {
            let slots = resolve(turn, &ids, |turn, slot| turn.board().requeue(slot, queue))?;
            let mut known = distinct(&slots);
            known.sort_by_key(|slot| turn.board().seq(*slot));
            for slot in &known {
                let effect = turn.board().requeue(*slot, queue)?;
                turn.apply(effect)?;
            }
            write(reply, known.len(), &ids, &slots);
            Ok(())
        })
    }
}
