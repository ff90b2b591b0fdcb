//! `JOB.ABANDON` and `JOB.MABANDON`: a worker gives jobs back, at no cost to them.

use board::{Abandon as Request, Protocol, Report, Spend, LONGEST};

use super::claim::ClaimRequest;
use super::many::{end_each, targets, tokens};
use super::shared::fields;
use super::{reference, spend, Command, KeyUse, Spec};
use crate::commands::args::{once, Keyword};
use crate::commands::call::Call;
use crate::commands::ending::end;
use crate::replies::endings::Ending;
use crate::replies::errors::{unexpected, Done};

/// `JOB.ABANDON` → OK; with a claim also its reply. Replicates `Abandoned`, or `Cancelled` when the
/// worker was asked to stop, and `Claimed`.
pub struct Abandon;

/// `JOB.MABANDON` → the same for many jobs, or all of a worker that shuts down.
pub struct MAbandon;

impl Command for Abandon {
    const SPEC: Spec = reference::JOB_ABANDON.with("write blocking", KeyUse::Update);

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let (mut speaker, mut request) = (args.speaker()?, Request::default());
        let (mut meta, mut next, mut spend) = (None, None, Spend::default());
        while let Some(word) = args.next() {
            match Keyword::of(word).text() {
                "TOKEN" => once(&mut speaker.token, "TOKEN", args.token("TOKEN")?)?,
                "DELAY" => once(&mut request.delay, "DELAY", args.ms("DELAY", 0..=LONGEST)?)?,
                "REASON" => once(&mut request.reason, "REASON", args.text("REASON")?)?,
                "META" => once(&mut meta, "META", args.meta()?)?,
                "CLAIM" => next = Some(ClaimRequest::next(args, call.ctx, speaker.worker)?),
                option if spend::take(&spend::ALL, option, args, &mut spend)? => {}
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

impl Command for MAbandon {
    const SPEC: Spec = reference::JOB_MABANDON.with("write", KeyUse::Update);

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let (worker, mut request) = (args.any_worker()?, Request::default());
        let targets = targets(args)?;
        let (mut meta, mut given, mut spend) = (None, None, Spend::default());
        while let Some(word) = args.next() {
            match Keyword::of(word).text() {
                "TOKENS" => once(&mut given, "TOKENS", tokens(args)?)?,
                "DELAY" => once(&mut request.delay, "DELAY", args.ms("DELAY", 0..=LONGEST)?)?,
                "REASON" => once(&mut request.reason, "REASON", args.text("REASON")?)?,
                "META" => once(&mut meta, "META", args.meta()?)?,
                option if spend::take(&spend::ALL, option, args, &mut spend)? => {}
                _ => return unexpected(word),
            }
        }
        request.report = Report::of(meta.unwrap_or_default());
        let reason = request.reason.map_or(0, <[u8]>::len);
        let meta = fields(&request.report.meta);
        let costs = spend::weight(spend.costs.as_ref());
        let shared = [("REASON", reason), ("META", meta), ("COSTS", costs)];
        end_each(call, worker, (targets, given), None, &shared, |commit, speaker| {
            commit.work(speaker, &request, &spend)?;
            Ok(Ending::Ok)
        })
    }
}
