//! `JOB.PAUSE` and `JOB.RESUME`: an operator stops claims for a while.

use board::{PauseRequest, LONGEST};

use super::{reference, Command, KeyUse, Spec};
use crate::commands::args::{flag, once, Keyword};
use crate::commands::call::Call;
use crate::replies::errors::{syntax, unexpected, Done};
use crate::runtime::commit::Commit;

/// `JOB.PAUSE` → OK. Replicates `Paused`, with RELEASE also a first `Reclaimed`; the timer does the
/// rest.
pub struct Pause;

/// `JOB.RESUME` → OK. Replicates `Resumed` when there was a pause.
pub struct Resume;

/// The most jobs that the command itself takes back.
const RELEASES: u32 = 64;

fn needs_queue(queue: Option<&[u8]>, group: Option<&[u8]>) -> Done {
    match group.is_some() && queue.is_none() {
        true => syntax("GROUP needs QUEUE"),
        false => Ok(()),
    }
}

impl Command for Pause {
    const SPEC: Spec = reference::JOB_PAUSE.with("write deny-oom", KeyUse::Insert);

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let mut halt = PauseRequest::default();
        while let Some(word) = args.next() {
            match Keyword::of(word).text() {
                "QUEUE" => once(&mut halt.queue, "QUEUE", args.name("QUEUE")?)?,
                "GROUP" => once(&mut halt.group, "GROUP", args.group()?)?,
                "FOR" => once(&mut halt.time, "FOR", args.ms("FOR", 1..=LONGEST)?)?,
                "RELEASE" => flag(&mut halt.release, "RELEASE")?,
                _ => return unexpected(word),
            }
        }
        needs_queue(halt.queue, halt.group)?;
        Commit::run(call.ctx, &call.key(), |commit| {
            let env = commit.env;
            if let Some(queue) = halt.queue {
                commit.board().check_queue(queue)?;
                commit.board().check_new_group(queue, halt.group)?;
            }
            let paused = commit.board().pause(&env, &halt);
            commit.apply(paused)?;
            match commit.board().reclaim(&env, RELEASES) {
                Some(reclaimed) => commit.apply(reclaimed),
                None => Ok(()),
            }
        })?;
        call.ctx.reply().ok();
        Ok(())
    }
}

impl Command for Resume {
    const SPEC: Spec = reference::JOB_RESUME.with("write", KeyUse::Update);

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let (mut queue, mut group) = (None, None);
        while let Some(word) = args.next() {
            match Keyword::of(word).text() {
                "QUEUE" => once(&mut queue, "QUEUE", args.name("QUEUE")?)?,
                "GROUP" => once(&mut group, "GROUP", args.group()?)?,
                _ => return unexpected(word),
            }
        }
        needs_queue(queue, group)?;
        Commit::run(call.ctx, &call.key(), |commit| match commit.board().resume(queue, group) {
            Some(resumed) => commit.apply(resumed),
            None => Ok(()),
        })?;
        call.ctx.reply().ok();
        Ok(())
    }
}
