//! `JOB.WAIT`: a client waits for something to happen on a board, without taking work.

use board::{all_fields, Board};

use super::{read, reference, selection, Command, KeyUse, Spec};
use crate::commands::args::{one_of, Args, Keyword};
use crate::commands::call::Call;
use crate::commands::shape::Asked;
use crate::replies::errors::{syntax, unexpected, CommandError, Done};
use crate::replies::records::write_found;
use crate::runtime::blocked_waits::{claimable, is_unread, sight, wait};
use crate::runtime::wait_index::{Sight, Until, Want};

/// `JOB.WAIT` → records and nulls, in place; with FOR → OK. Null at the timeout.
pub struct Wait;

/// The longest wait, ms.
const LONGEST: i64 = 1 << 40;

fn want(args: &mut Args<'_>) -> Result<Want, CommandError> {
    match args.next().map(Keyword::of).as_ref().map(Keyword::text) {
        Some("JOBS") => want_jobs(args),
        Some("FOR") => want_board(args),
        _ => syntax("JOBS or FOR is needed"),
    }
}

fn want_jobs(args: &mut Args<'_>) -> Result<Want, CommandError> {
    let ids = selection::ids(args)?.into_iter().map(<[u8]>::to_vec).collect();
    let (mut until, mut asked) = (None, Asked::default());
    const ALL: &str = "ALL, ANY and CHANGED";
    while let Some(word) = args.next() {
        match Keyword::of(word).text() {
            "ALL" => one_of(&mut until, ALL, "ALL", Until::All)?,
            "ANY" => one_of(&mut until, ALL, "ANY", Until::Any)?,
            "CHANGED" => {
                let version = args.int("CHANGED", 0..=board::NEVER)?;
                one_of(&mut until, ALL, "CHANGED", Until::Changed(version))?;
            }
            other if asked.take(other, args)? => {}
            _ => return unexpected(word),
        }
    }
    let until = until.map_or(Until::All, |(_, until)| until);
    Ok(Want::Jobs { ids, until, shape: asked.shape(all_fields) })
}

fn want_board(args: &mut Args<'_>) -> Result<Want, CommandError> {
    let word = Keyword::of(args.value("FOR")?);
    let mut queues = None;
    while let Some(word) = args.next() {
        if !args.queues(Keyword::of(word).text(), &mut queues)? {
            return unexpected(word);
        }
    }
    match word.text() {
        "CLAIMABLE" => {
            let queues = queues.map_or_else(|| vec![board::DEFAULT_QUEUE], |(_, queues)| queues);
            Ok(Want::Claimable(queues.into_iter().map(<[u8]>::to_vec).collect()))
        }
        "PRESENT" | "EMPTY" if queues.is_some() => syntax("QUEUE and QUEUES go with FOR claimable"),
        "PRESENT" => Ok(Want::Present),
        "EMPTY" => Ok(Want::Empty),
        _ => syntax("FOR must be claimable, present or empty"),
    }
}

fn is_met(board: &Board, want: &Want) -> bool {
    match want {
        Want::Jobs { ids, until, .. } => {
            let mut sights = ids.iter().map(|id| sight(board, id));
            let ended = |seen: Sight| seen.is_none_or(|seen| seen.ended);
            match until {
                Until::All => sights.all(ended),
                Until::Any => sights.any(ended),
                Until::Changed(above) => sights.any(|seen| seen.is_none_or(|seen| seen.version > *above)),
            }
        }
        Want::Claimable(queues) => {
            let queues: Vec<&[u8]> = queues.iter().map(|queue| &queue[..]).collect();
            claimable(board, &queues)
        }
        Want::Output { id, since, .. } => is_unread(board, id, *since),
        Want::Present => board.live() > 0,
        Want::Empty => board.live() == 0,
    }
}

impl Command for Wait {
    const SPEC: Spec = reference::JOB_WAIT.with("readonly blocking", KeyUse::Read);

    fn run(call: &mut Call<'_>) -> Done {
        let timeout = call.args.ms("ms", 0..=LONGEST)?;
        let want = want(&mut call.args)?;
        let reply = call.ctx.reply();
        let met = read(call, |board| {
            let met = is_met(board, &want);
            match &want {
                _ if !met => {}
                Want::Jobs { ids, shape, .. } => {
                    write_found(reply, Some(board), ids.iter().map(|id| &id[..]), shape)?;
                }
                _ => reply.ok(),
            }
            Ok(met)
        })?;
        match want {
            _ if met => {}
            want if !call.ctx.denies_blocking() => wait(&call.client(), timeout, want),
            Want::Jobs { .. } => reply.null_array(),
            _ => reply.null(),
        }
        Ok(())
    }
}
