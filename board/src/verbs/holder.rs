//! Who may speak for a job: the check that all verbs of a worker begin with.

use crate::board::Board;
use crate::effect::Effect;
use crate::env::Env;
use crate::error::Refusal;
use crate::job::{End, State};
use crate::settings::Setting;

/// In place of a worker's name on an ownerless board: whoever holds the job, or nobody.
pub const ANYBODY: &[u8] = b"*";

/// Who speaks of which job.
#[derive(Debug, Clone, Copy, Default)]
pub struct Speaker<'a> {
    /// The worker's name, or [`ANYBODY`].
    pub worker: &'a [u8],
    /// The job's id.
    pub id: &'a [u8],
    /// The token of the claim; without one, the name alone counts.
    pub token: Option<u64>,
}

/// What a worker does with a job to end its claim.
pub trait WorkerVerb<'a> {
    /// How the claim ends.
    const END: End;

    /// What happens to a job that is to be cancelled; none when it ends as if it were not.
    fn at_cancel(
        &self,
        board: &Board,
        env: &Env<'_>,
        slot: u32,
        end: End,
    ) -> Result<Option<Effect<'a>>, Refusal>;

    /// What happens to any other. `apart` as in [`Standing::Late`].
    fn decide(&self, board: &Board, env: &Env<'_>, slot: u32, apart: bool) -> Result<Effect<'a>, Refusal>;
}

/// What a worker's verb comes to: something happens, or it already has.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer<E> {
    /// This is to be applied.
    Do(E),
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
        /// See [`Standing::Late`].
        apart: bool,
    },
    /// Its lease lapsed, and nobody has claimed the job since; or it speaks for a job that
    /// nobody holds.
    Late {
        slot: u32,
        /// It does not show that it is the holder: the claim ends as taken, so that the
        /// holder's own verb is not answered as if it were a repetition.
        apart: bool,
    },
    /// The very verb succeeded before, under the same token.
    Again(State),
}

/// How the claim of a job ends for one who may not be its holder.
pub(crate) fn end_of(end: End, apart: bool) -> End {
    match apart {
        true => End::Taken,
        false => end,
    }
}

impl Board {
    fn is_ownerless(&self) -> bool {
        self.own(Setting::Ownerless) != 0
    }

    /// Refuses `*` as a worker's name where jobs have owners. O(1).
    pub fn check_speaker(&self, worker: &[u8]) -> Result<(), Refusal> {
        match worker == ANYBODY && !self.is_ownerless() {
            true => Err(Refusal::Argument("worker must not be '*' on a board that is not ownerless".into())),
            false => Ok(()),
        }
    }

    /// Finds the job and how this worker stands to it; `verb` is how the claim is to end.
    /// Time has to be settled for the job before. [`ANYBODY`] speaks for the holder, checked
    /// by token alone; and for a job that nobody holds, where the verb ends it. O(1).
    pub(crate) fn standing(
        &self,
        env: &Env<'_>,
        speaker: &Speaker<'_>,
        verb: Option<End>,
    ) -> Result<Standing, Refusal> {
        let Speaker { worker, id, token } = *speaker;
        self.check_speaker(worker)?;
        let Some(slot) = self.find(id) else {
            let Some(gone) = self.tombstone(id, env.now) else { return Err(Refusal::NoJob) };
            let again = Some(gone).filter(|t| {
                let as_asked = match verb {
                    Some(End::Consumed) => t.state == State::Complete,
                    Some(End::Failed) => t.state == State::Failed,
                    Some(End::Trashed) => t.state == State::Trashed,
                    _ => false,
                };
                as_asked && t.token > 0 && token == Some(t.token)
            });
            return match (again, gone.state) {
                (Some(t), _) => Ok(Standing::Again(t.state)),
                (None, _) if !self.is_ownerless() => Err(Refusal::NoJob),
                (None, State::Cancelled) => Err(Refusal::Cancelled(State::Cancelled)),
                (None, state) => Err(Refusal::Ended(state)),
            };
        };
        let job = self.job(slot).map_err(|_| Refusal::NoJob)?;
        let extras = job.extras.as_deref();
        let anybody = worker == ANYBODY;
        if verb == Some(End::Advanced) {
            // Others may have claimed it since: that is what it was sent on for.
            let advanced = extras.and_then(|r| r.advanced.as_deref());
            if advanced.is_some_and(|(by, under)| (anybody || **by == *worker) && token == Some(*under)) {
                return Ok(Standing::Again(job.state));
            }
        }
        let stale = || !anybody && token.is_none() && extras.is_some_and(|r| r.is_stale(worker));
        if let Some(claim) = self.claim_of(job) {
            let holder = self.worker_name(claim);
            return match token {
                _ if !anybody && holder != worker => Err(Refusal::NotOwner(holder.into())),
                Some(t) if t != claim.token => Err(Refusal::Stale(t)),
                _ if stale() => Err(Refusal::Stale(0)),
                _ => Ok(Standing::Holds { slot, cancel: claim.cancel, apart: anybody && token.is_none() }),
            };
        }
        let last =
            extras.and_then(|r| r.last_claim.as_ref()).filter(|last| anybody || *last.worker == *worker);
        if let Some(last) = last {
            if token == Some(last.token) && verb == Some(last.end) && last.end != End::Advanced {
                return Ok(Standing::Again(job.state));
            }
            let keeps = verb.is_none();
            if last.end == End::Lapsed && !job.state.ended() {
                return match token {
                    _ if anybody && !keeps => Ok(Standing::Late { slot, apart: token != Some(last.token) }),
                    Some(t) if t != last.token => Err(Refusal::Stale(t)),
                    _ if stale() => Err(Refusal::Stale(0)),
                    _ => Ok(Standing::Late { slot, apart: false }),
                };
            }
        }
        let ends = matches!(verb, Some(End::Consumed | End::Failed | End::Trashed));
        if anybody && ends && !job.state.ended() {
            return Ok(Standing::Late { slot, apart: true });
        }
        Err(match job.state {
            State::Cancelled => Refusal::Cancelled(State::Cancelled),
            state if state.ended() => Refusal::Ended(state),
            state => Refusal::NotClaimed(state),
        })
    }

    /// Decides a worker's verb. O(log n), and see the verb.
    pub fn work<'a, V: WorkerVerb<'a>>(
        &self,
        env: &Env<'_>,
        speaker: &Speaker<'_>,
        verb: &V,
    ) -> Result<Answer<Effect<'a>>, Refusal> {
        let (slot, apart) = match self.standing(env, speaker, Some(V::END))? {
            Standing::Holds { slot, cancel: true, apart } => {
                match verb.at_cancel(self, env, slot, end_of(V::END, apart))? {
                    Some(effect) => return Ok(Answer::Do(effect)),
                    None => (slot, apart),
                }
            }
            Standing::Holds { slot, apart, .. } | Standing::Late { slot, apart } => (slot, apart),
            Standing::Again(state) => return Ok(Answer::Again(state)),
        };
        verb.decide(self, env, slot, apart).map(Answer::Do)
    }
}
