//! `JOB.OUTPUT`: reads what the worker of a job writes while it runs, or waits for more.

use board::LONGEST;

use super::{read, reference, Command, KeyUse, Spec};
use crate::commands::args::{once, Keyword};
use crate::commands::call::Call;
use crate::replies::errors::{unexpected, Done};
use crate::replies::output::write_output;
use crate::runtime::blocked_waits::{is_unread, wait};
use crate::runtime::wait_index::Want;

/// `JOB.OUTPUT` → a map, or null without a record. Without new output it waits.
pub struct Output;

/// How many chunks one call returns without COUNT.
const COUNT: usize = 1_000;

impl Command for Output {
    const SPEC: Spec = reference::JOB_OUTPUT.with("readonly blocking", KeyUse::Read);

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let id = args.name("id")?;
        let (mut since, mut count, mut block) = (None, None, None);
        while let Some(word) = args.next() {
            match Keyword::of(word).text() {
                "SINCE" => once(&mut since, "SINCE", args.int("SINCE", 0..=board::NEVER)? as u64)?,
                "COUNT" => once(&mut count, "COUNT", args.length("COUNT", 1)?)?,
                "BLOCK" => once(&mut block, "BLOCK", args.ms("BLOCK", 0..=LONGEST)?)?,
                _ => return unexpected(word),
            }
        }
        let (since, count) = (since.unwrap_or(0), count.unwrap_or(COUNT));
        let block = block.filter(|_| !call.ctx.denies_blocking());
        let reply = call.ctx.reply();
        let answered = read(call, |board| {
            let answers = block.is_none() || is_unread(board, id, since);
            if answers {
                write_output(reply, Some(board), id, since, count);
            }
            Ok(answers)
        })?;
        if let Some(block) = block.filter(|_| !answered) {
            wait(&call.client(), block, Want::Output { id: id.to_vec(), since, count });
        }
        Ok(())
    }
}
