//! `JOB.RELEASE`: an operator takes jobs from their workers.

use std::collections::HashSet;

use board::Operation;

use super::selection::{named, resolve, write, Named};
use super::{reference, Command, KeyUse, Spec};
use crate::commands::args::{flag, Keyword};
use crate::commands::call::Call;
use crate::replies::errors::{unexpected, CommandError, Done};
use crate::runtime::commit::Commit;

/// `JOB.RELEASE` → count, cursor, unknown ids. Replicates `Released` for each, or `Cancelled` where
/// the worker was asked to stop.
pub struct Release;

impl Command for Release {
    const SPEC: Spec = reference::JOB_RELEASE.with("write", KeyUse::Update);

    fn run(call: &mut Call<'_>) -> Done {
        let (mut jobs, mut front) = (named(&mut call.args)?, false);
        while let Some(word) = call.args.next() {
            match Keyword::of(word).text() {
                "FRONT" => flag(&mut front, "FRONT")?,
                _ if jobs.take(&mut call.args, word)? => {}
                _ => return unexpected(word),
            }
        }
        jobs.check()?;
        let reply = call.ctx.reply();
        Commit::run(call.ctx, &call.key(), |commit| {
            let env = commit.env;
            let ids = match &jobs {
                Named::Where(chosen) => {
                    let slice = chosen.choose(commit, Operation::Release, usize::MAX)?;
                    if !chosen.dry {
                        release(commit, &slice.slots, front)?;
                    }
                    reply.array(3);
                    slice.write(reply);
                    return Ok(());
                }
                Named::Ids(ids) => ids,
            };
            let slots = resolve(commit, ids, |commit, slot| commit.board().release(&env, slot, front))?;
            let known: Vec<u32> = each_once(&slots);
            release(commit, &known, front)?;
            write(reply, known.len(), ids, &slots);
            Ok(())
        })
    }
}

/// The known slots, each once, in the order of their ids.
fn each_once(slots: &[Option<u32>]) -> Vec<u32> {
    let mut seen = HashSet::new();
    slots.iter().flatten().copied().filter(|slot| seen.insert(*slot)).collect()
}

/// Releases jobs; to the front in such an order that the first of them is the first there.
fn release(commit: &mut Commit<'_>, slots: &[u32], front: bool) -> Result<(), CommandError> {
    let env = commit.env;
    let mut one = |slot: &u32| {
        let effect = commit.board().release(&env, *slot, front)?;
        commit.apply(effect)
    };
    match front {
        true => slots.iter().rev().try_for_each(&mut one),
        false => slots.iter().try_for_each(&mut one),
    }
}
