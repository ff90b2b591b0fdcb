//! Verbs with which a worker ends its work, and takes the next in the same command.

use super::claim::Wanted;
use crate::commands::call::Call;
use crate::replies::endings::Ending;
use crate::replies::errors::{Done, Fault};
use crate::runtime::commit::Turn;

/// Ends work, answers, and takes the next when a claim follows. A refusal claims nothing.
pub fn end(
    call: &Call<'_>,
    next: Option<Wanted<'_>>,
    work: impl FnOnce(&mut Turn<'_>) -> Result<Ending, Fault>,
) -> Done {
    if let Some(wanted) = next {
        return wanted.take(call, |turn| work(turn).map(Some));
    }
    let reply = call.ctx.reply();
    Turn::run(call.ctx, &call.key(), |turn| {
        work(turn)?.write(reply);
        Ok(())
    })
}
