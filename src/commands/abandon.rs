//! `JOB.ABANDON` and `JOB.MABANDON`: a worker gives jobs back, at no cost to them.

use board::{Abandon as Request, Speaker, LONGEST};

use super::claim::{next_claim, ClaimRequest};
use super::many::{for_each, targets, tokens};
use super::{shared, Command, KeyUse, Spec};
use crate::commands::args::{once, Keyword};
use crate::commands::call::Call;
use crate::commands::ending::end;
use crate::replies::endings::Ending;
use crate::replies::errors::{unexpected, Done};

/// `JOB.ABANDON board worker id [TOKEN t] [DELAY ms] [REASON text] [CLAIM …]` → OK; with a claim
/// also its reply. Replicates `Abandoned`, or `Cancelled` when the worker was asked to stop, and
/// `Claimed`.
pub struct Abandon;

/// `JOB.MABANDON board worker n id… [TOKENS n t…] [DELAY ms] [REASON text]`, or `ALL`: for a worker
/// that shuts down.
pub struct MAbandon;

impl Command for Abandon {
    const SPEC: Spec = Spec {
        name: "job.abandon",
        arity: -4,
        flags: "write blocking",
        key: Some(KeyUse::Update),
        summary: "Gives a job back, at no cost to it.",
        complexity: "O(log N), and that of the claim",
        syntax: concat!("board worker id [TOKEN token] [DELAY ms] [REASON text] ", next_claim!()),
        ..Spec::NONE
    };

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let (mut speaker, mut request, mut next) = (args.speaker()?, Request::default(), None);
        while let Some(word) = args.next() {
            match Keyword::of(word).text() {
                "TOKEN" => once(&mut speaker.token, "TOKEN", args.token("TOKEN")?)?,
                "DELAY" => once(&mut request.delay, "DELAY", args.ms("DELAY", 0..=LONGEST)?)?,
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

impl Command for MAbandon {
    const SPEC: Spec = Spec {
        name: "job.mabandon",
        arity: -4,
        flags: "write",
        key: Some(KeyUse::Update),
        summary: "Gives several jobs back, or all of a worker.",
        complexity: "O(n log N)",
        syntax: "board worker <n id [id ...] [TOKENS n token [token ...]]|ALL> [DELAY ms] [REASON text]",
        ..Spec::NONE
    };

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let (worker, mut request) = (args.any_worker()?, Request::default());
        let targets = targets(args)?;
        let mut given = None;
        while let Some(word) = args.next() {
            match Keyword::of(word).text() {
                "TOKENS" => once(&mut given, "TOKENS", tokens(args)?)?,
                "DELAY" => once(&mut request.delay, "DELAY", args.ms("DELAY", 0..=LONGEST)?)?,
                "REASON" => once(&mut request.reason, "REASON", args.text("REASON")?)?,
                _ => return unexpected(word),
            }
        }
        targets.check(worker, &given)?;
        let all = targets.is_all();
        end(call, None, |commit| {
            commit.check_worker_name(worker)?;
            let targets = targets.paired(given, worker, commit);
            let reason = request.reason.map_or(0, <[u8]>::len);
            shared::check(targets.len(), if all { "ALL" } else { "n" }, &[("REASON", reason)])?;
            for_each(commit, targets, all, |commit, id, token| {
                commit.work(&Speaker { worker, id, token }, &request)?;
                Ok(Ending::Ok)
            })
        })
    }
}
