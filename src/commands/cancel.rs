//! `JOB.CANCEL`: an operator calls jobs off.

use board::{CancelAnswer, Deed};

use super::selection::{distinct, named, resolve, Named};
use super::{Command, KeyUse, Spec};
use crate::commands::args::{flag, once, Keyword};
use crate::commands::call::Call;
use crate::replies::errors::{unexpected, Done, Fault};
use crate::runtime::commit::Turn;

/// `JOB.CANCEL board n id… [BY user] [FORCE]` → for each id `cancelled`, `requested`, `already`
/// or null; or `WHERE … [BY user] [FORCE]` → count, cursor, ids held back. Replicates `Cancelled`
/// or `CancelRequested` for each.
pub struct Cancel;

impl Command for Cancel {
    const SPEC: Spec = Spec {
        name: "job.cancel",
        arity: -4,
        flags: "write",
        key: Some(KeyUse::Update),
        summary: "Calls jobs off; asks the workers of those that are claimed to stop.",
        complexity: "O(n log N)",
        syntax: "board <n id [id ...]|WHERE filter [filter ...] [COUNT n] [CURSOR cursor] [DRYRUN]> \
            [BY user] [FORCE]",
        ..Spec::NONE
    };

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
        Turn::run(call.ctx, &call.key(), |turn| {
            let env = turn.env;
            let ids = match &jobs {
                Named::Where(chosen) => {
                    let deed = Deed::Cancel { force };
                    if let Some(user) = by {
                        for slot in chosen.choose(turn, deed, usize::MAX)?.slots {
                            let id = turn.board().record_of(slot).map(|job| job.id().to_vec());
                            let checked = turn.board().check_user(slot, user);
                            checked.map_err(|refusal| refusal.of(&id.unwrap_or_default()))?;
                        }
                    }
                    return chosen.run(turn, reply, deed, |turn, slot| cancel(turn, slot, force).map(|_| ()));
                }
                Named::Ids(ids) => ids,
            };
            let slots = resolve(turn, ids, |turn, slot| {
                by.map_or(Ok(()), |user| turn.board().check_user(slot, user))?;
                turn.board().cancel(&env, slot, force)
            })?;
            let chosen = distinct(&slots);
            for (id, slot) in ids.iter().zip(&slots) {
                let Some(slot) = slot else { continue };
                if turn.board().cancel(&env, *slot, force)? != CancelAnswer::Already {
                    turn.board().check_depended(*slot, &chosen).map_err(|refusal| refusal.of(id))?;
                }
            }
            reply.array(ids.len());
            for id in ids {
                // Looked up anew: with no retention a cancelled record has gone at once.
                let Some(slot) = turn.board().find(id) else {
                    match turn.board().tombstone(id, env.now) {
                        Some(gone) if gone.state == board::State::Cancelled => reply.text("already"),
                        _ => reply.null(),
                    }
                    continue;
                };
                reply.text(cancel(turn, slot, force)?);
            }
            Ok(())
        })
    }
}

/// Cancels one job, and says what that came to.
fn cancel(turn: &mut Turn<'_>, slot: u32, force: bool) -> Result<&'static str, Fault> {
    let env = turn.env;
    match turn.board().cancel(&env, slot, force)? {
        CancelAnswer::Already => Ok("already"),
        CancelAnswer::Requested(effect) => turn.apply(effect).map(|()| "requested"),
        CancelAnswer::Cancelled(effect) => turn.apply(effect).map(|()| "cancelled"),
    }
}
