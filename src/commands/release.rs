//! `JOB.RELEASE`: an operator takes jobs from their workers.

use board::Operation;

use super::selection::{distinct, named, resolve, write, Named};
use super::{reference, Command, KeyUse, Spec};
use crate::commands::call::Call;
use crate::replies::errors::{unexpected, CommandError, Done};
use crate::runtime::commit::Commit;

/// `JOB.RELEASE` → count, cursor, unknown ids. Replicates `Released` for each, or `Cancelled` where
/// the worker was asked to stop.
pub struct Release;

impl Command for Release {
    const SPEC: Spec = reference::JOB_RELEASE.with("write", KeyUse::Update);

    fn run(call: &mut Call<'_>) -> Done {
        let mut jobs = named(&mut call.args)?;
        while let Some(word) = call.args.next() {
            if !jobs.take(&mut call.args, word)? {
                return unexpected(word);
            }
        }
        jobs.check()?;
        let reply = call.ctx.reply();
        Commit::run(call.ctx, &call.key(), |commit| {
            let env = commit.env;
            let ids = match &jobs {
                Named::Where(chosen) => {
                    return chosen.run(commit, reply, Operation::Release, usize::MAX, release)
                }
                Named::Ids(ids) => ids,
            };
            let slots = resolve(commit, ids, |commit, slot| commit.board().release(&env, slot))?;
            let known = distinct(&slots);
            known.iter().try_for_each(|slot| release(commit, *slot))?;
            write(reply, known.len(), ids, &slots);
            Ok(())
        })
    }
}

fn release(commit: &mut Commit<'_>, slot: u32) -> Result<(), CommandError> {
    let env = commit.env;
    let effect = commit.board().release(&env, slot)?;
    commit.apply(effect)
}
