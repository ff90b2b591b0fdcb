//! Who may speak for a job: the check that all verbs of a worker begin with.

use crate::board::Board;
use crate::effect::Effect;
use crate::env::Env;
use crate::error::Refusal;
use crate::job::{End, State};

/// What a worker's verb comes to: something happens, or it already has.
// It lives on the stack for one decision; a box would cost an allocation for each.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Clone, PartialEq)]
pub enum Answer<'a> {
    /// This is to be applied.
    Do(Effect<'a>),
    /// The same verb with the same token succeeded before: nothing happens, the job is (or
    /// went) in that state.
    Again(State),
}

/// How the caller stands to a job.
pub(crate) enum Standing {
    /// It holds the job.
    Holds {
        slot: u32,
        /// Somebody asked to cancel it.
        cancel: bool,
    },
    /// Its lease lapsed, and nobody has claimed the job since.
    Late { slot: u32 },
    /// The very verb succeeded before, under the same token.
    Again(State),
}

impl Board {
    /// Finds the job and how this worker stands to it; `verb` is how the claim is to end.
    /// Time has to be settled for the job before. O(1).
    pub(crate) fn standing(
        &self,
        env: &Env<'_>,
        worker: &[u8],
        id: &[u8],
        token: Option<u64>,
        verb: Option<End>,
    ) -> Result<Standing, Refusal> {
        let Some(slot) = self.find(id) else {
            let again = self.tombstone(id, env.now).filter(|t| {
                let as_asked = match verb {
                    Some(End::Consumed) => t.state == State::Complete,
                    Some(End::Failed) => t.state == State::Failed,
                    Some(End::Trashed) => t.state == State::Trashed,
                    _ => false,
                };
                as_asked && token == Some(t.token)
            });
            return again.map(|t| Standing::Again(t.state)).ok_or(Refusal::NoJob);
        };
        let job = self.job(slot).map_err(|_| Refusal::NoJob)?;
        let rare = job.rare.as_deref();
        let stale = || token.is_none() && rare.is_some_and(|r| r.is_stale(worker));
        if let Some(claim) = self.claim_of(job) {
            let holder = self.worker_name(claim);
            return match token {
                _ if holder != worker => Err(Refusal::NotOwner(holder.into())),
                Some(t) if t != claim.token => Err(Refusal::Stale(t)),
                _ if stale() => Err(Refusal::Stale(0)),
                _ => Ok(Standing::Holds { slot, cancel: claim.cancel }),
            };
        }
        let last = rare.and_then(|r| r.last.as_ref()).filter(|last| *last.worker == *worker);
        if let Some(last) = last {
            if token == Some(last.token) && verb == Some(last.end) {
                return Ok(Standing::Again(job.state));
            }
            if last.end == End::Lapsed && !job.state.ended() {
                return match token {
                    Some(t) if t != last.token => Err(Refusal::Stale(t)),
                    _ if stale() => Err(Refusal::Stale(0)),
                    _ => Ok(Standing::Late { slot }),
                };
            }
        }
        Err(match job.state {
            State::Cancelled => Refusal::Cancelled(State::Cancelled),
            state if state.ended() => Refusal::Ended(state),
            state => Refusal::NotClaimed(state),
        })
    }
}
