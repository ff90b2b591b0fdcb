//! `JOB.REQUEUE`: an operator makes ended jobs ready again.

use board::{Operation, Requeue as Request, To};

use super::selection::{distinct, named, resolve, write, Named};
use super::{reference, Command, KeyUse, Spec};
use crate::commands::args::{flag, once, Keyword};
use crate::commands::call::Call;
use crate::replies::errors::{syntax, unexpected, CommandError, Done};
use crate::runtime::commit::Commit;

/// `JOB.REQUEUE` → count, cursor, unknown ids; after WHERE, QUEUE is a filter and TO the new queue.
/// Replicates `Requeued` for each, oldest first.
pub struct Requeue;

impl Command for Requeue {
    const SPEC: Spec = reference::JOB_REQUEUE.with("write", KeyUse::Update);

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let mut jobs = named(args)?;
        let by_id = jobs.by_id();
        let (mut queue, mut payload, mut fresh, mut origin) = (None, None, false, false);
        while let Some(word) = args.next() {
            match Keyword::of(word).text() {
                "QUEUE" if by_id => once(&mut queue, "QUEUE", args.name("QUEUE")?)?,
                "TO" if !by_id => once(&mut queue, "TO", args.name("TO")?)?,
                "PAYLOAD" => once(&mut payload, "PAYLOAD", args.payload("PAYLOAD")?)?,
                "FRESH" => flag(&mut fresh, "FRESH")?,
                "ORIGIN" => flag(&mut origin, "ORIGIN")?,
                _ if jobs.take(args, word)? => {}
                _ => return unexpected(word),
            }
        }
        jobs.check()?;
        if payload.is_some() && !jobs.is_one() {
            return syntax("PAYLOAD needs exactly one id");
        }
        let to = match queue {
            Some(_) if origin => {
                return syntax(format!(
                    "{} and ORIGIN exclude each other",
                    if by_id { "QUEUE" } else { "TO" }
                ))
            }
            Some(queue) => To::Queue(queue),
            None if origin => To::Origin,
            None => To::Same,
        };
        let request = Request { to, fresh, payload };
        let reply = call.ctx.reply();
        Commit::run(call.ctx, &call.key(), |commit| {
            let env = commit.env;
            if let Some(queue) = queue {
                commit.board().check_queue(queue)?;
            }
            let requeue = |commit: &mut Commit<'_>, slot| -> Result<(), CommandError> {
                let effect = commit.board().requeue(&env, slot, &request)?;
                commit.apply(effect)
            };
            let ids = match &jobs {
                Named::Where(chosen) => {
                    return chosen.run(commit, reply, Operation::Requeue(request), usize::MAX, requeue)
                }
                Named::Ids(ids) => ids,
            };
            let slots = resolve(commit, ids, |commit, slot| commit.board().requeue(&env, slot, &request))?;
            let mut known = distinct(&slots);
            commit.board().check_requeues(&known, to)?;
            known.sort_by_key(|slot| commit.board().seq(*slot));
            known.iter().try_for_each(|slot| requeue(commit, *slot))?;
            write(reply, known.len(), ids, &slots);
            Ok(())
        })
    }
}
