//! `JOB.STEP`: a worker stores what a step of its work came to.

use board::{Protocol, Spend, Step as Request, LONGEST};

use super::{reference, spend, Command, KeyUse, Spec};
use crate::commands::args::{flag, once, Keyword};
use crate::commands::call::Call;
use crate::replies::errors::{unexpected, Done};
use crate::runtime::commit::Commit;

/// `JOB.STEP` → deadline, cancel, and the stored value when it is another one. Replicates `Stepped`
/// when it stores the value, otherwise `Beaten`; before either, `Revived` when it is late.
pub struct Step;

impl Command for Step {
    const SPEC: Spec = reference::JOB_STEP.with("write fast", KeyUse::Update);

    fn run(call: &mut Call<'_>) -> Done {
        let args = &mut call.args;
        let mut speaker = args.speaker()?;
        let (name, value) = (args.name("name")?, args.payload("value")?);
        let mut request = Request { name, value, ..Request::default() };
        let mut spend = Spend::default();
        while let Some(word) = args.next() {
            match Keyword::of(word).text() {
                "TOKEN" => once(&mut speaker.token, "TOKEN", args.token("TOKEN")?)?,
                "LEASE" => once(&mut request.lease, "LEASE", args.ms("LEASE", 1..=LONGEST)?)?,
                "OUTPUT" => once(&mut request.output, "OUTPUT", args.chunk()?)?,
                "REPLACE" => flag(&mut request.replace, "REPLACE")?,
                option if spend::take(&spend::COST, option, args, &mut spend)? => {}
                _ => return unexpected(word),
            }
        }
        let reply = call.ctx.reply();
        Commit::run(call.ctx, &call.key(), |commit| {
            let kept = commit.keep(&speaker, &request, &spend)?;
            let board = commit.board();
            let (deadline, cancel) = board.hold_on(kept.slot).unwrap_or_default();
            let other = match kept.stepped {
                Some(_) => None,
                None => board.step_value(kept.slot, name).filter(|other| *other != value),
            };
            reply.map(2 + usize::from(other.is_some()));
            reply.text("deadline");
            reply.int(deadline);
            reply.text("cancel");
            reply.int(cancel.into());
            if let Some(other) = other {
                reply.text("value");
                reply.bytes(other);
            }
            Ok(())
        })
    }
}
