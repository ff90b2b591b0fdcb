//! `JOB.TRASH`: a worker puts a job aside that nobody should try again.

use board::{Answer, Trash as Request};

use super::claim::{next_claim, ClaimRequest};
use super::{Command, KeyUse, Spec};
use crate::commands::args::{once, Keyword};
use crate::commands::call::Call;
use crate::commands::ending::end;
use crate::replies::endings::Ending;
use crate::replies::errors::{unexpected, Done};

/// `JOB.TRASH board worker id [TOKEN t] [REASON text] [CLAIM …]` → OK; with a claim also what
/// that gives. Replicates `Trashed`, or `Cancelled` when the worker was asked to stop, and
/// `Claimed`.
pub struct Trash;

impl Command for Trash {
    const SPEC: Spec = Spec {
        name: "job.trash",
        arity: -4,
        flags: "write blocking",
        key: Some(KeyUse::Update),
        summary: "Sets a job aside that can never succeed.",
        complexity: "O(log N), and that of the claim",
        syntax: concat!("board worker id [TOKEN token] [REASON text] ", next_claim!()),
        ..Spec::NONE
    };

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let mut request = Request { worker: args.speaker()?, id: args.name("id")?, ..Request::default() };
        let mut next = None;
        while let Some(word) = args.next() {
            match Keyword::of(word).text() {
                "TOKEN" => once(&mut request.token, "TOKEN", args.token("TOKEN")?)?,
                "REASON" => once(&mut request.reason, "REASON", args.text("REASON")?)?,
                "CLAIM" => next = Some(ClaimRequest::next(args, call.ctx, request.worker)?),
                _ => return unexpected(word),
            }
        }
        end(call, next, |commit| {
            commit.check_worker_name(request.worker)?;
            commit.settle(request.id)?;
            let env = commit.env;
            if let Answer::Do(effect) = commit.board().trash(&env, &request)? {
                commit.apply(effect)?;
            }
            Ok(Ending::Ok)
        })
    }
}
