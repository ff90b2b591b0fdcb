//! `JOB.TRASH` and `JOB.MTRASH`: a worker puts jobs aside that nobody should attempt again.

use board::{Protocol, Report, Spend, Trash as Request};

use super::claim::ClaimRequest;
use super::many::{end_each, targets, tokens};
use super::shared::fields;
use super::{reference, spend, Command, KeyUse, Spec};
use crate::commands::args::{once, Keyword};
use crate::commands::call::Call;
use crate::commands::ending::end;
use crate::replies::endings::Ending;
use crate::replies::errors::{unexpected, Done};

/// `JOB.TRASH` → OK; with a claim also its reply. Replicates `Trashed`, or `Cancelled` when the
/// worker was asked to stop, and `Claimed`.
pub struct Trash;

/// `JOB.MTRASH` → the same for many jobs.
pub struct MTrash;

impl Command for Trash {
    const SPEC: Spec = reference::JOB_TRASH.with("write blocking", KeyUse::Update);

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let (mut speaker, mut request) = (args.speaker()?, Request::default());
        let (mut meta, mut next, mut spend) = (None, None, Spend::default());
        while let Some(word) = args.next() {
            match Keyword::of(word).text() {
                "TOKEN" => once(&mut speaker.token, "TOKEN", args.token("TOKEN")?)?,
                "REASON" => once(&mut request.reason, "REASON", args.text("REASON")?)?,
                "META" => once(&mut meta, "META", args.meta()?)?,
                "CLAIM" => next = Some(ClaimRequest::next(args, call.ctx, speaker.worker)?),
                option if spend::take(&spend::COST, option, args, &mut spend)? => {}
                _ => return unexpected(word),
            }
        }
        request.report = Report::of(meta.unwrap_or_default());
        end(call, next, |commit| {
            commit.work(&speaker, &request, &spend)?;
            Ok(Ending::Ok)
        })
    }
}

impl Command for MTrash {
    const SPEC: Spec = reference::JOB_MTRASH.with("write blocking", KeyUse::Update);

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let (worker, mut request) = (args.any_worker()?, Request::default());
        let targets = targets(args)?;
        let (mut meta, mut given, mut next, mut spend) = (None, None, None, Spend::default());
        while let Some(word) = args.next() {
            match Keyword::of(word).text() {
                "TOKENS" => once(&mut given, "TOKENS", tokens(args)?)?,
                "REASON" => once(&mut request.reason, "REASON", args.text("REASON")?)?,
                "META" => once(&mut meta, "META", args.meta()?)?,
                "CLAIM" => next = Some(ClaimRequest::next(args, call.ctx, worker)?),
                option if spend::take(&spend::COST, option, args, &mut spend)? => {}
                _ => return unexpected(word),
            }
        }
        request.report = Report::of(meta.unwrap_or_default());
        let reason = request.reason.map_or(0, <[u8]>::len);
        let meta = fields(&request.report.meta);
        let costs = spend::weight(spend.costs.as_ref());
        let shared = [("REASON", reason), ("META", meta), ("COSTS", costs)];
        end_each(call, worker, (targets, given), next, &shared, |commit, speaker| {
            commit.work(speaker, &request, &spend)?;
            Ok(Ending::Ok)
        })
    }
}
