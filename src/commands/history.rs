//! `JOB.HISTORY`: the history of a job.

use super::{read, reference, Command, KeyUse, Spec};
use crate::commands::call::Call;
use crate::replies::errors::Done;

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
            let entries = record.history();
            reply.array(entries.len());
            for entry in entries {
                let some = [&entry.worker, &entry.text].into_iter().flatten().count();
                reply.map(2 + some);
                reply.text("at");
                reply.int(entry.at);
                reply.text("event");
                reply.text(entry.event.name());
                for (name, value) in [("worker", &entry.worker), ("text", &entry.text)] {
                    if let Some(value) = value {
                        reply.text(name);
                        reply.bytes(value);
                    }
                }
            }
            Ok(())
        })
    }
}
