//! `JOB.DELETE`: records go, whatever their state.

use board::{Deleted, Forgotten};

use super::selection::{distinct, ids, resolve, write};
use super::{Command, KeyUse, Spec};
use crate::fault::Done;
use crate::server::call::Call;
use crate::turn::Turn;

/// `JOB.DELETE board n id…` → count, cursor, unknown ids. Replicates `Deleted` for each,
/// and `Forgotten` for each that had gone.
pub struct Delete;

impl Command for Delete {
    const SPEC: Spec = Spec {
        name: "job.delete",
        arity: -4,
        flags: "write",
        key: Some(KeyUse::Delete),
        summary: "Deletes the records of jobs in any state.",
        complexity: "O(n log N)",
        syntax: "board n id [id ...]",
        ..Spec::NONE
    };

    fn run(call: &mut Call<'_>) -> Done {
        let ids = ids(&mut call.args)?;
        call.args.end()?;
        let reply = call.ctx.reply();
        Turn::run(call.ctx, &call.key(), |turn| {
            let slots = resolve(turn, &ids, |_, _| Ok(()))?;
            let known = distinct(&slots);
            for (id, slot) in ids.iter().zip(&slots) {
                if let Some(slot) = slot {
                    turn.board().check_depended(*slot, &known).map_err(|refusal| refusal.of(id))?;
                }
            }
            for slot in &known {
                turn.apply(Deleted { slot: *slot })?;
            }
            let env = turn.env;
            for (id, _) in ids.iter().zip(&slots).filter(|(_, slot)| slot.is_none()) {
                if turn.board().tombstone(id, env.now).is_some() {
                    turn.apply(Forgotten { id })?;
                }
            }
            write(reply, known.len(), &ids, &slots);
            Ok(())
        })
    }
}
