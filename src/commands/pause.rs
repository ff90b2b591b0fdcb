//! `JOB.PAUSE` and `JOB.RESUME`: an operator stops claims for a while.

use board::{PauseRequest, Protocol, Subject, LONGEST};

use super::{reference, Command, KeyUse, Spec};
use crate::commands::args::{flag, once, Args, Keyword};
use crate::commands::call::Call;
use crate::replies::errors::{syntax, unexpected, CommandError, Done};
use crate::runtime::commit::Commit;

/// `JOB.PAUSE` → OK. Replicates `Paused`, with RELEASE also a first `Reclaimed`; the timer does the
/// rest.
pub struct Pause;

/// `JOB.RESUME` → OK. Replicates `Resumed` when there was a pause.
pub struct Resume;

/// The most jobs that the command itself takes back.
const RELEASES: u32 = 64;

/// Takes an option that says what is meant; otherwise returns false.
fn place<'a>(
    option: &str,
    args: &mut Args<'a>,
    request: &mut PauseRequest<'a>,
) -> Result<bool, CommandError> {
    match option {
        "QUEUE" => once(&mut request.queue, "QUEUE", args.name("QUEUE")?)?,
        "GROUP" => once(&mut request.group, "GROUP", args.group()?)?,
        "LIMIT" => once(&mut request.limit, "LIMIT", args.name("LIMIT")?)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn check_place(request: &PauseRequest<'_>) -> Done {
    match (request.queue, request.group, request.limit) {
        (Some(_), _, Some(_)) | (_, Some(_), Some(_)) => syntax("LIMIT excludes QUEUE and GROUP"),
        (None, Some(_), None) => syntax("GROUP needs QUEUE"),
        (.., Some(_)) if request.release => {
            syntax("RELEASE goes with a board, a queue or a group: LIMIT excludes it")
        }
        _ => Ok(()),
    }
}

impl Command for Pause {
    const SPEC: Spec = reference::JOB_PAUSE.with("write deny-oom", KeyUse::Insert);

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let mut request = PauseRequest::default();
        while let Some(word) = args.next() {
            match Keyword::of(word).text() {
                "FOR" => once(&mut request.time, "FOR", args.ms("FOR", 1..=LONGEST)?)?,
                "RELEASE" => flag(&mut request.release, "RELEASE")?,
                option if place(option, args, &mut request)? => {}
                _ => return unexpected(word),
            }
        }
        check_place(&request)?;
        Commit::run(call.ctx, &call.key(), |commit| {
            commit.perform(Subject::Timeless, |board, env| {
                if let Some(queue) = request.queue {
                    board.check_queue(queue)?;
                    board.check_new_group(queue, request.group)?;
                }
                board.pause(env, &request)
            })?;
            commit.perform(Subject::Timeless, |board, env| Ok(board.reclaim(env, RELEASES)))
        })?;
        call.ctx.reply().ok();
        Ok(())
    }
}

impl Command for Resume {
    const SPEC: Spec = reference::JOB_RESUME.with("write", KeyUse::Update);

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let mut request = PauseRequest::default();
        while let Some(word) = args.next() {
            match Keyword::of(word).text() {
                option if place(option, args, &mut request)? => {}
                _ => return unexpected(word),
            }
        }
        check_place(&request)?;
        Commit::run(call.ctx, &call.key(), |commit| {
            commit.perform(Subject::Timeless, |board, _| board.resume(&request))
        })?;
        call.ctx.reply().ok();
        Ok(())
    }
}
