//! `JOB.GET` and `JOB.MGET`: records by id.

use board::{all_fields, FieldList};

use super::{fields, read, selection, write_record, Command, KeyUse, Spec};
use crate::args::{once, Args, Keyword};
use crate::fault::{unexpected, Done, Fault};
use crate::server::call::Call;

/// `JOB.GET board id [FIELDS n f…]` → record or null.
pub struct Get;

/// `JOB.MGET board n id… [FIELDS n f…]` → records and nulls, in place.
pub struct MGet;

fn options(args: &mut Args<'_>) -> Result<FieldList, Fault> {
    let mut asked = None;
    while let Some(word) = args.next() {
        match Keyword::of(word).text() {
            "FIELDS" => once(&mut asked, "FIELDS", fields(args)?)?,
            _ => return unexpected(word),
        }
    }
    Ok(asked.unwrap_or_else(all_fields))
}

impl Command for Get {
    const SPEC: Spec = Spec {
        name: "job.get",
        arity: -3,
        flags: "readonly fast",
        key: Some(KeyUse::Read),
        summary: "Returns the record of a job.",
        complexity: "O(1)",
        syntax: "board id [FIELDS n field [field ...]]",
        ..Spec::NONE
    };

    fn run(call: &mut Call<'_>) -> Done {
        let id = call.args.name("id")?;
        let fields = options(&mut call.args)?;
        let reply = call.ctx.reply();
        read(call, |board| {
            match board.find(id) {
                Some(slot) => write_record(reply, board, slot, &fields),
                None => reply.null(),
            }
            Ok(())
        })
    }
}

impl Command for MGet {
    const SPEC: Spec = Spec {
        name: "job.mget",
        arity: -4,
        flags: "readonly",
        key: Some(KeyUse::Read),
        summary: "Returns the records of several jobs.",
        complexity: "O(n)",
        syntax: "board n id [id ...] [FIELDS n field [field ...]]",
        ..Spec::NONE
    };

    fn run(call: &mut Call<'_>) -> Done {
        let ids = selection::ids(&mut call.args)?;
        let fields = options(&mut call.args)?;
        let reply = call.ctx.reply();
        read(call, |board| {
            reply.array(ids.len());
            for id in &ids {
                match board.find(id) {
                    Some(slot) => write_record(reply, board, slot, &fields),
                    None => reply.null(),
                }
            }
            Ok(())
        })
    }
}
