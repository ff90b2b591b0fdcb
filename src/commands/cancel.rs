//! `JOB.CANCEL`: an operator cancels jobs.

use board::{CancelAnswer, Operation};

use super::selection::{distinct, named, resolve, Named};
use super::{reference, Command, KeyUse, Spec};
use crate::commands::args::{flag, once, Keyword};
use crate::commands::call::Call;
use crate::replies::errors::{unexpected, CommandError, Done};
use crate::runtime::commit::Commit;

/// `JOB.CANCEL` → for each id `cancelled`, `requested`, `already` or null; with WHERE → count,
/// cursor, ids held back. Replicates `Cancelled` or `CancelRequested` for each.
pub struct Cancel;

impl Command for Cancel {
    const SPEC: Spec = reference::JOB_CANCEL.with("write", KeyUse::Update);

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let mut jobs = named(args)?;
        let (mut force, mut by) = (false, None);
        while let Some(word) = args.next() {
            match Keyword::of(word).text() {
                "BY" => once(&mut by, "BY", args.name("BY")?)?,
                "FORCE" => flag(&mut force, "FORCE")?,
                _ if jobs.take(args, word)? => {}
                _ => return unexpected(word),
            }
        }
        jobs.check()?;
        let reply = call.ctx.reply();
        Commit::run(call.ctx, &call.key(), |commit| {
            let env = commit.env;
            let ids = match &jobs {
                Named::Where(chosen) => {
                    // Chosen once: a second choice may find jobs that were not due at the first, and are not checked.
                    let slice = chosen.choose(commit, Operation::Cancel { force }, usize::MAX)?;
                    if let Some(user) = by {
                        for slot in &slice.slots {
                            let id = commit.board().record_of(*slot).map(|job| job.id().to_vec());
                            let checked = commit.board().check_user(*slot, user);
                            checked.map_err(|refusal| refusal.of(&id.unwrap_or_default()))?;
                        }
                    }
                    if !chosen.dry {
                        slice.slots.iter().try_for_each(|slot| cancel(commit, *slot, force).map(|_| ()))?;
                    }
                    reply.array(3);
                    slice.write(reply);
                    return Ok(());
                }
                Named::Ids(ids) => ids,
            };
            let slots = resolve(commit, ids, |commit, slot| {
                by.map_or(Ok(()), |user| commit.board().check_user(slot, user))?;
                commit.board().cancel(&env, slot, force)
            })?;
            let chosen = distinct(&slots);
            commit.board().check_ties(&chosen)?;
            for (id, slot) in ids.iter().zip(&slots) {
                let Some(slot) = slot else { continue };
                if commit.board().cancel(&env, *slot, force)? != CancelAnswer::Already {
                    commit.board().check_depended(*slot, &chosen).map_err(|refusal| refusal.of(id))?;
                }
            }
            reply.array(ids.len());
            for id in ids {
                // Looked up again: without retention the record of a cancelled job is removed at
                // once.
                let Some(slot) = commit.board().find(id) else {
                    match commit.board().tombstone(id, env.now) {
                        Some(gone) if gone.state == board::State::Cancelled => reply.text("already"),
                        _ => reply.null(),
                    }
                    continue;
                };
                reply.text(cancel(commit, slot, force)?);
            }
            Ok(())
        })
    }
}

/// Cancels one job, and returns the word for the outcome.
fn cancel(commit: &mut Commit<'_>, slot: u32, force: bool) -> Result<&'static str, CommandError> {
    let env = commit.env;
    match commit.board().cancel(&env, slot, force)? {
        CancelAnswer::Already => Ok("already"),
        CancelAnswer::Requested(effect) => commit.apply(effect).map(|()| "requested"),
        CancelAnswer::Cancelled(effect) => commit.apply(effect).map(|()| "cancelled"),
    }
}
