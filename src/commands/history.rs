//! `JOB.HISTORY`: the history of a job.

use super::{read, reference, Command, KeyUse, Spec};
use crate::commands::call::Call;
use crate::replies::errors::Done;
use crate::replies::records::write_history;

/// `JOB.HISTORY` → entries, oldest first, or null.
pub struct History;

impl Command for History {
    const SPEC: Spec = reference::JOB_HISTORY.with("readonly", KeyUse::Read);

    fn run(call: &mut Call<'_>) -> Done {
        let id = call.args.name("id")?;
        let reply = call.ctx.reply();
        read(call, |board| {
            let Some(record) = board.find(id).and_then(|slot| board.record_of(slot)) else {
                reply.null_array();
                return Ok(());
            };
            write_history(reply, &record.history());
            Ok(())
        })
    }
}
