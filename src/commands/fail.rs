//! `JOB.FAIL` and `JOB.MFAIL`: an attempt did not work.

use board::{Answer, Fail as Request, Retry, Speaker, Spend, State, LONGEST};

use super::claim::ClaimRequest;
use super::many::{end_each, targets, tokens};
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

/// Takes an option for what follows a failure; otherwise returns false.
fn retry(
    option: &str,
    args: &mut Args<'_>,
    retry: &mut Option<(&'static str, Retry)>,
) -> Result<bool, CommandError> {
    match option {
        "RETRY" => {
            let ms = args.ms("RETRY", 0..=LONGEST)?;
            one_of(retry, RETRY, "RETRY", Retry::After(ms))?;
        }
        "NORETRY" => one_of(retry, RETRY, "NORETRY", Retry::No)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn fail(
    commit: &mut Commit<'_>,
    speaker: &Speaker<'_>,
    request: &Request<'_>,
    spend: &Spend<'_>,
) -> Result<Ending, CommandError> {
    let ended = match commit.work(speaker, request, spend)? {
        Answer::Again(state) => state,
        Answer::Cancel(_) => State::Cancelled,
        Answer::Do(_) => State::Failed,
    };
    let env = commit.env;
    Ok(Ending::Failed(commit.board().after_fail(&env, speaker.id, ended)))
}

impl Command for Fail {
    const SPEC: Spec = reference::JOB_FAIL.with("write blocking", KeyUse::Update);

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let mut speaker = args.speaker()?;
        let (kind, message) = (args.name("kind")?, args.text("message")?);
        let mut request = Request { kind, message, ..Request::default() };
        let (mut retried, mut next, mut spend) = (None, None, Spend::default());
        while let Some(word) = args.next() {
            match Keyword::of(word).text() {
                "TOKEN" => once(&mut speaker.token, "TOKEN", args.token("TOKEN")?)?,
                "PAYLOAD" => once(&mut request.payload, "PAYLOAD", args.payload("PAYLOAD")?)?,
                "CLAIM" => next = Some(ClaimRequest::next(args, call.ctx, speaker.worker)?),
                option if retry(option, args, &mut retried)? => {}
                option if spend::take(&spend::ALL, option, args, &mut spend)? => {}
                _ => return unexpected(word),
            }
        }
        request.retry = retried.map(|(_, retry)| retry).unwrap_or_default();
        end(call, next, |commit| fail(commit, &speaker, &request, &spend))
    }
}

impl Command for MFail {
    const SPEC: Spec = reference::JOB_MFAIL.with("write blocking", KeyUse::Update);

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let worker = args.any_worker()?;
        let (kind, message) = (args.name("kind")?, args.text("message")?);
        let targets = targets(args)?;
        let mut request = Request { kind, message, ..Request::default() };
        let (mut given, mut retried, mut next, mut spend) = (None, None, None, Spend::default());
        while let Some(word) = args.next() {
            match Keyword::of(word).text() {
                "TOKENS" => once(&mut given, "TOKENS", tokens(args)?)?,
                "CLAIM" => next = Some(ClaimRequest::next(args, call.ctx, worker)?),
                option if retry(option, args, &mut retried)? => {}
                option if spend::take(&spend::ALL, option, args, &mut spend)? => {}
                _ => return unexpected(word),
            }
        }
        request.retry = retried.map(|(_, retry)| retry).unwrap_or_default();
        let costs = spend::weight(spend.costs.as_ref());
        let shared = [("kind", kind.len()), ("message", message.len()), ("COSTS", costs)];
        end_each(call, worker, (targets, given), next, &shared, |commit, speaker| {
            fail(commit, speaker, &request, &spend)
        })
    }
}
