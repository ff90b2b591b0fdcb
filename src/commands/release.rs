//! `JOB.RELEASE`: an operator takes jobs from their workers.

use super::selection::{distinct, ids, resolve, write};
use super::{Command, KeyUse, Spec};
use crate::fault::Done;
use crate::server::call::Call;
use crate::turn::Turn;

/// `JOB.RELEASE board n id…` → count, cursor, unknown ids. Replicates `Released` for each, or
/// `Cancelled` where the worker was asked to stop.
pub struct Release;

impl Command for Release {
    const SPEC: Spec = Spec {
        name: "job.release",
        arity: -4,
        flags: "write",
        key: Some(KeyUse::Update),
        summary: "Takes jobs from their workers, at no cost to the jobs.",
        complexity: "O(n log N)",
        syntax: "board n id [id ...]",
        ..Spec::NONE
    };

    fn run(call: &mut Call<'_>) -> Done {
        let ids = ids(&mut call.args)?;
        call.args.end()?;
        let reply = call.ctx.reply();
        Turn::run(call.ctx, &call.key(), |turn| {
            let env = turn.env;
            let slots = resolve(turn, &ids, |turn, slot| turn.board().release(&env, slot))?;
            let known = distinct(&slots);
            for slot in &known {
                let effect = turn.board().release(&env, *slot)?;
                turn.apply(effect)?;
            }
            write(reply, known.len(), &ids, &slots);
            Ok(())
        })
    }
}
