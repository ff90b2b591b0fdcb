//! `JOB.TRASH`: a worker puts a job aside that nobody should try again.

use board::{Answer, Trash as Request};

use super::{Command, KeyUse, Spec};
use crate::args::{once, Keyword};
use crate::fault::{unexpected, Done};
use crate::server::call::Call;
use crate::turn::Turn;

/// `JOB.TRASH board worker id [TOKEN t] [REASON text]` → OK. Replicates `Trashed`, or
/// `Cancelled` when the worker was asked to stop.
pub struct Trash;

impl Command for Trash {
    const SPEC: Spec = Spec {
        name: "job.trash",
        arity: -4,
        flags: "write fast",
        key: Some(KeyUse::Update),
        summary: "Puts a job aside that nobody should try again.",
        complexity: "O(log N)",
        syntax: "board worker id [TOKEN token] [REASON text]",
        ..Spec::NONE
    };

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let mut request = Request { worker: args.speaker()?, id: args.name("id")?, ..Request::default() };
        while let Some(word) = args.next() {
            match Keyword::of(word).text() {
                "TOKEN" => once(&mut request.token, "TOKEN", args.token("TOKEN")?)?,
                "REASON" => once(&mut request.reason, "REASON", args.text("REASON")?)?,
                _ => return unexpected(word),
            }
        }
        let reply = call.ctx.reply();
        Turn::run(call.ctx, &call.key(), |turn| {
            turn.hear(request.worker)?;
            turn.settle(request.id)?;
            let env = turn.env;
            if let Answer::Do(effect) = turn.board().trash(&env, &request)? {
                turn.apply(effect)?;
            }
            reply.ok();
            Ok(())
        })
    }
}
