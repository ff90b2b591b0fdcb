//! `JOB.FAIL` and `JOB.MFAIL`: an attempt did not work.

use board::{Answer, Fail as Request, Meta, Protocol, Report, Retry, Speaker, Spend, State, LONGEST};

use super::claim::ClaimRequest;
use super::many::{end_each, targets, tokens};
use super::shared::fields;
use super::{reference, spend, Command, KeyUse, Spec};
use crate::commands::args::{once, one_of, Args, Keyword};
use crate::commands::call::Call;
use crate::commands::ending::end;
use crate::replies::endings::Ending;
use crate::replies::errors::{unexpected, CommandError, Done};
use crate::runtime::commit::Commit;

/// `JOB.FAIL` → state, due, left; with a claim also its reply. Replicates `Failed`, or `Cancelled`
/// when the worker was asked to stop, and `Claimed`.
pub struct Fail;

/// `JOB.MFAIL` → the same for many jobs.
pub struct MFail;

/// The options for what follows a failure.
const RETRY: &str = "RETRY and NORETRY";

/// The options of both.
#[derive(Default)]
struct Options<'a> {
    retry: Option<(&'static str, Retry)>,
    retain: Option<i64>,
    meta: Option<Meta<'a>>,
    log: Option<&'a [u8]>,
}

impl<'a> Options<'a> {
    /// Takes an option if it is one of these; otherwise returns false.
    fn take(&mut self, option: &str, args: &mut Args<'a>) -> Result<bool, CommandError> {
        match option {
            "RETRY" => {
                let ms = args.ms("RETRY", 0..=LONGEST)?;
                one_of(&mut self.retry, RETRY, "RETRY", Retry::After(ms))?;
            }
            "NORETRY" => one_of(&mut self.retry, RETRY, "NORETRY", Retry::No)?,
            "RETAIN" => once(&mut self.retain, "RETAIN", args.ms("RETAIN", -1..=LONGEST)?)?,
            "META" => once(&mut self.meta, "META", args.meta()?)?,
            "LOG" => once(&mut self.log, "LOG", args.text("LOG")?)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The request that these options complete.
    fn finish(self, kind: &'a [u8], message: &'a [u8], payload: Option<&'a [u8]>) -> Request<'a> {
        let Options { retry, retain, meta, log } = self;
        let report = Report { payload, log, ..Report::of(meta.unwrap_or_default()) };
        let retry = retry.map(|(_, retry)| retry).unwrap_or_default();
        Request { kind, message, retry, retain, report }
    }
}

fn fail(
    commit: &mut Commit<'_>,
    speaker: &Speaker<'_>,
    request: &Request<'_>,
    cut: usize,
    spend: &Spend<'_>,
) -> Result<Ending, CommandError> {
    let ended = match commit.work(speaker, request, spend)? {
        Answer::Again(state) => state,
        Answer::Cancel(_) => State::Cancelled,
        Answer::Do(_) => State::Failed,
    };
    let env = commit.env;
    Ok(Ending::Failed(commit.board().after_fail(&env, speaker.id, ended), cut))
}

impl Command for Fail {
    const SPEC: Spec = reference::JOB_FAIL.with("write blocking", KeyUse::Update);

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let mut speaker = args.speaker()?;
        let (kind, (message, cut)) = (args.kind()?, args.message()?);
        let (mut options, mut payload, mut next, mut spend) =
            (Options::default(), None, None, Spend::default());
        while let Some(word) = args.next() {
            match Keyword::of(word).text() {
                "TOKEN" => once(&mut speaker.token, "TOKEN", args.token("TOKEN")?)?,
                "PAYLOAD" => once(&mut payload, "PAYLOAD", args.payload("PAYLOAD")?)?,
                "CLAIM" => next = Some(ClaimRequest::next(args, call.ctx, speaker.worker)?),
                option if options.take(option, args)? => {}
                option if spend::take(&spend::ALL, option, args, &mut spend)? => {}
                _ => return unexpected(word),
            }
        }
        let request = options.finish(kind, message, payload);
        end(call, next, |commit| fail(commit, &speaker, &request, cut, &spend))
    }
}

impl Command for MFail {
    const SPEC: Spec = reference::JOB_MFAIL.with("write blocking", KeyUse::Update);

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let worker = args.any_worker()?;
        let (kind, (message, cut)) = (args.kind()?, args.message()?);
        let targets = targets(args)?;
        let (mut options, mut given, mut next, mut spend) =
            (Options::default(), None, None, Spend::default());
        while let Some(word) = args.next() {
            match Keyword::of(word).text() {
                "TOKENS" => once(&mut given, "TOKENS", tokens(args)?)?,
                "CLAIM" => next = Some(ClaimRequest::next(args, call.ctx, worker)?),
                option if options.take(option, args)? => {}
                option if spend::take(&spend::ALL, option, args, &mut spend)? => {}
                _ => return unexpected(word),
            }
        }
        let request = options.finish(kind, message, None);
        let shared = [
            ("kind", kind.len()),
            ("message", message.len()),
            ("META", fields(&request.report.meta)),
            ("LOG", request.report.log.map_or(0, <[u8]>::len)),
            ("COSTS", spend::weight(spend.costs.as_ref())),
        ];
        end_each(call, worker, (targets, given), next, &shared, |commit, speaker| {
            fail(commit, speaker, &request, cut, &spend)
        })
    }
}
