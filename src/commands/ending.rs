//! Verbs with which a worker ends its work, and claims the next job in the same command.

use super::claim::ClaimRequest;
use crate::commands::call::Call;
use crate::replies::endings::Ending;
use crate::replies::errors::{CommandError, Done};
use crate::runtime::commit::Commit;

/// Ends work and replies; claims the next job if a claim follows. A refusal claims nothing.
pub fn end(
    call: &Call<'_>,
    next: Option<ClaimRequest<'_>>,
    work: impl FnOnce(&mut Commit<'_>) -> Result<Ending, CommandError>,
) -> Done {
    if let Some(wanted) = next {
        return wanted.take(call, |commit| work(commit).map(Some));
    }
    let reply = call.ctx.reply();
    Commit::run(call.ctx, &call.key(), |commit| {
        work(commit)?.write(reply);
        Ok(())
    })
}
