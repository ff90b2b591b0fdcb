//! `JOB.TRASH`: a worker puts a job aside that nobody should attempt again.

use board::Trash as Request;

use super::claim::{next_claim, ClaimRequest};
use super::{Command, KeyUse, Spec};
use crate::commands::args::{once, Keyword};
use crate::commands::call::Call;
use crate::commands::ending::end;
use crate::replies::endings::Ending;
use crate::replies::errors::{unexpected, Done};

/// `JOB.TRASH board worker id [TOKEN t] [REASON text] [CLAIM …]` → OK; with a claim also its reply.
/// Replicates `Trashed`, or `Cancelled` when the worker was asked to stop, and `Claimed`.
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
        let (mut speaker, mut request, mut next) = (args.speaker()?, Request::default(), None);
        while let Some(word) = args.next() {
            match Keyword::of(word).text() {
                "TOKEN" => once(&mut speaker.token, "TOKEN", args.token("TOKEN")?)?,
                "REASON" => once(&mut request.reason, "REASON", args.text("REASON")?)?,
                "CLAIM" => next = Some(ClaimRequest::next(args, call.ctx, speaker.worker)?),
                _ => return unexpected(word),
            }
        }
        end(call, next, |commit| {
            commit.work(&speaker, &request)?;
            Ok(Ending::Ok)
        })
    }
}
