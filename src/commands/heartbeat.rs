//! `JOB.HEARTBEAT` and `JOB.MHEARTBEAT`: a worker is alive and keeps its jobs.

use board::{Heartbeat as Request, Protocol, Report, Speaker, Spend, LONGEST};

use super::many::{targets, tokens};
use super::{reference, spend, Command, KeyUse, Spec};
use crate::commands::args::{once, Args, Keyword};
use crate::commands::call::Call;
use crate::redis::reply::Reply;
use crate::replies::errors::{unexpected, CommandError, Done};
use crate::replies::records::write_refusal;
use crate::runtime::commit::Commit;

/// `JOB.HEARTBEAT` → deadline and cancel. Replicates `Beaten`, preceded by `Revived` when it is
/// late.
pub struct Heartbeat;

/// `JOB.MHEARTBEAT` → the same for many jobs.
pub struct MHeartbeat;

/// Applies one heartbeat; returns when the claim ends, and whether the worker is asked to stop.
fn beat(
    commit: &mut Commit<'_>,
    speaker: &Speaker<'_>,
    request: &Request<'_>,
    spend: &Spend<'_>,
) -> Result<(i64, bool), CommandError> {
    let slot = commit.keep(speaker, request, spend)?.slot;
    Ok(commit.board().hold_on(slot).unwrap_or_default())
}

/// Reads the options of one heartbeat.
fn options<'a>(
    args: &mut Args<'a>,
    speaker: &mut Speaker<'a>,
    request: &mut Request<'a>,
    spend: &mut Spend<'a>,
) -> Done {
    let (mut report, mut meta) = (Report::default(), None);
    while let Some(word) = args.next() {
        match Keyword::of(word).text() {
            "TOKEN" => once(&mut speaker.token, "TOKEN", args.token("TOKEN")?)?,
            "LEASE" => once(&mut request.lease, "LEASE", args.ms("LEASE", 1..=LONGEST)?)?,
            "PROGRESS" => once(&mut report.progress, "PROGRESS", args.percent("PROGRESS")?)?,
            "STAGE" => once(&mut report.stage, "STAGE", args.text("STAGE")?)?,
            "PAYLOAD" => once(&mut report.payload, "PAYLOAD", args.payload("PAYLOAD")?)?,
            "META" => once(&mut meta, "META", args.meta()?)?,
            "OUTPUT" => once(&mut request.output, "OUTPUT", args.chunk()?)?,
            "LOG" => once(&mut report.log, "LOG", args.text("LOG")?)?,
            option if spend::take(&spend::ALL, option, args, spend)? => {}
            _ => return unexpected(word),
        }
    }
    report.meta = meta.unwrap_or_default();
    request.report = (report != Report::default()).then_some(report);
    Ok(())
}

fn write(reply: Reply, (deadline, cancel): (i64, bool)) {
    reply.text("deadline");
    reply.int(deadline);
    reply.text("cancel");
    reply.int(cancel.into());
}

impl Command for Heartbeat {
    const SPEC: Spec = reference::JOB_HEARTBEAT.with("write fast", KeyUse::Update);

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let (mut speaker, mut request, mut spend) = (args.speaker()?, Request::default(), Spend::default());
        speaker.token = args.next_token()?;
        if args.left() > 0 {
            options(args, &mut speaker, &mut request, &mut spend)?;
        }
        let reply = call.ctx.reply();
        Commit::run(call.ctx, &call.key(), |commit| {
            let hold = beat(commit, &speaker, &request, &spend)?;
            reply.map(2);
            write(reply, hold);
            Ok(())
        })
    }
}

impl Command for MHeartbeat {
    const SPEC: Spec = reference::JOB_MHEARTBEAT.with("write", KeyUse::Update);

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let worker = args.any_worker()?;
        let targets = targets(args)?;
        let (mut lease, mut given) = (None, None);
        while let Some(word) = args.next() {
            match Keyword::of(word).text() {
                "TOKENS" => once(&mut given, "TOKENS", tokens(args)?)?,
                "LEASE" => once(&mut lease, "LEASE", args.ms("LEASE", 1..=LONGEST)?)?,
                _ => return unexpected(word),
            }
        }
        targets.check(worker, &given)?;
        let all = targets.is_all();
        let reply = call.ctx.reply();
        Commit::run(call.ctx, &call.key(), |commit| {
            let targets = targets.paired(given, worker, commit)?;
            let mut answers = Vec::with_capacity(targets.len());
            for (id, token) in &targets {
                let speaker = Speaker { worker, id, token: *token };
                match beat(commit, &speaker, &Request { lease, ..Request::default() }, &Spend::default()) {
                    Ok(hold) => answers.push((id, *token, Ok(hold))),
                    // With ALL, a job that it no longer holds is simply not one of them.
                    Err(CommandError::Refused(_)) if all => {}
                    Err(CommandError::Refused(refusal)) => answers.push((id, *token, Err(refusal))),
                    Err(fault) => return Err(fault),
                }
            }
            reply.array(answers.len());
            for (id, token, answer) in answers {
                match answer {
                    Err(refusal) => write_refusal(reply, &refusal),
                    Ok(hold) => {
                        reply.map(if all { 4 } else { 2 });
                        if all {
                            reply.text("id");
                            reply.bytes(id);
                            reply.text("token");
                            reply.int(token.unwrap_or_default() as i64);
                        }
                        write(reply, hold);
                    }
                }
            }
            Ok(())
        })
    }
}
