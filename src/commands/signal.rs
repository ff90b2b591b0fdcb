//! `JOB.SIGNAL`: tells jobs what they wait for.

use board::{Operation, Protocol, Signal as Request, SignalAnswer};
use smallvec::SmallVec;

use super::selection::{distinct, named, Named, BYTES};
use super::{reference, shared, Command, KeyUse, Spec};
use crate::commands::args::{once, Keyword};
use crate::commands::call::Call;
use crate::replies::errors::{unexpected, CommandError, Done};
use crate::runtime::commit::Commit;

/// `JOB.SIGNAL` → for each id `woken`, `kept`, `already`, `ended` or null; with WHERE → count,
/// cursor, ids held back. Replicates `Signalled` for each.
pub struct Signal;

impl Command for Signal {
    const SPEC: Spec = reference::JOB_SIGNAL.with("write deny-oom", KeyUse::Update);

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let name = args.name("name")?;
        let mut jobs = named(args)?;
        let (mut value, mut sender) = (None, None);
        while let Some(word) = args.next() {
            match Keyword::of(word).text() {
                "VALUE" => once(&mut value, "VALUE", args.payload("VALUE")?)?,
                "SENDER" => once(&mut sender, "SENDER", args.name("SENDER")?)?,
                _ if jobs.take(args, word)? => {}
                _ => return unexpected(word),
            }
        }
        jobs.check()?;
        let request = Request { name, value: value.unwrap_or_default(), sender };
        let reply = call.ctx.reply();
        if let Named::Ids(ids) = &jobs {
            let len = |text: Option<&[u8]>| text.map_or(0, <[u8]>::len);
            let options = [("VALUE", len(value)), ("SENDER", len(sender)), ("name", name.len())];
            shared::check(ids.len(), "n", &options)?;
        }
        Commit::run(call.ctx, &call.key(), |commit| {
            let ids = match &jobs {
                Named::Where(chosen) => {
                    let deed = Operation::Signal(&request);
                    return chosen.run(commit, reply, deed, BYTES, |commit, slot| {
                        send(commit, slot, &request).map(|_| ())
                    });
                }
                Named::Ids(ids) => ids,
            };
            let slots = commit.find_all(ids)?;
            // All or none of several: each is decided before the first changes.
            if slots.len() > 1 {
                for slot in distinct(&slots) {
                    decide(commit, slot, &request)?;
                }
            }
            let now = commit.env.now;
            let mut words = SmallVec::<[Option<&str>; 8]>::new();
            for (id, slot) in ids.iter().zip(&slots) {
                words.push(match slot {
                    Some(slot) => Some(send(commit, *slot, &request)?),
                    None => commit.board().tombstone(id, now).map(|_| "ended"),
                });
            }
            reply.array(words.len());
            words.into_iter().for_each(|word| match word {
                Some(word) => reply.text(word),
                None => reply.null(),
            });
            Ok(())
        })
    }
}

/// What the signal would do to one job. The refusal names the job.
fn decide<'a>(
    commit: &mut Commit<'_>,
    slot: u32,
    request: &Request<'a>,
) -> Result<SignalAnswer<'a>, CommandError> {
    let board = &*commit.board();
    board.send_signal(slot, request).map_err(|refusal| {
        let id = board.record_of(slot).map(|job| job.id().to_vec());
        refusal.of(&id.unwrap_or_default()).into()
    })
}

/// Sends the signal to one job, and returns the word for the outcome.
fn send(commit: &mut Commit<'_>, slot: u32, request: &Request<'_>) -> Result<&'static str, CommandError> {
    match decide(commit, slot, request)? {
        SignalAnswer::Wakes(signalled) => commit.apply(signalled).map(|()| "woken"),
        SignalAnswer::Kept(signalled) => commit.apply(signalled).map(|()| "kept"),
        SignalAnswer::Already => Ok("already"),
        SignalAnswer::Ended => Ok("ended"),
    }
}
