//! Holders: the check with which all verbs of a worker begin.

use crate::board::Board;
use crate::effect::{Apply, Effect};
use crate::env::Env;
use crate::error::Refusal;
use crate::job::{End, State};
use crate::settings::Setting;
use crate::verbs::cancel::Cancelled;
use crate::verbs::heartbeat::Report;

/// Takes the place of a worker's name on an ownerless board: means the holder, or nobody.
pub const ANYBODY: &[u8] = b"*";

/// The worker that speaks, and for which job.
#[derive(Debug, Clone, Copy, Default)]
pub struct Speaker<'a> {
    /// The worker's name, or [`ANYBODY`].
    pub worker: &'a [u8],
    /// The job's id.
    pub id: &'a [u8],
    /// The token of the claim; without it, only the name is checked.
    pub token: Option<u64>,
}

/// What a worker's verb does with a job that is to be cancelled.
pub enum AtCancel<'a> {
    /// It cancels the job, for this reason.
    Cancel(Option<&'a [u8]>),
    /// It is refused.
    Refuse,
    /// The same as with any other job.
    Ignore,
}

/// What a worker does with a job to end its claim.
pub trait WorkerVerb<'a> {
    /// How the claim ends.
    const END: End;
    /// What happens to the job.
    type Effect: Apply + Into<Effect<'a>>;

    /// What it does when the job is to be cancelled.
    fn at_cancel(&self) -> AtCancel<'a>;

    /// What the worker reports besides.
    fn report(&self) -> Option<&Report<'a>> {
        None
    }

    /// The effect on a job. `taken` as in [`Standing::Late`].
    fn decide(&self, board: &Board, env: &Env<'_>, slot: u32, taken: bool) -> Result<Self::Effect, Refusal>;
}

/// The outcome of a worker's verb.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer<'a, E> {
    /// The caller must apply this.
    Do(E),
    /// The job was to be cancelled: the caller must apply this instead.
    Cancel(Cancelled<'a>),
    /// The same verb with the same token has succeeded before. Nothing happens; the state is that
    /// of the job, or the last it had.
    Again(State),
}

/// The relation of the speaker to a job.
pub(crate) enum Standing {
    /// It holds the job.
    Holds {
        slot: u32,
        /// Whether a cancel was requested.
        cancel: bool,
        /// See [`Standing::Late`].
        taken: bool,
    },
    /// The speaker's lease lapsed, and nobody has claimed the job since; or nobody holds the job.
    Late {
        slot: u32,
        /// Whether the speaker has not shown that it is the holder: the claim then ends as taken,
        /// so that the holder's own verb does not count as a repetition.
        taken: bool,
    },
    /// The same verb has succeeded before with the same token.
    Again(State),
}

/// How the claim of a job ends for a speaker that may not be its holder.
pub(crate) fn end_of(end: End, taken: bool) -> End {
    match taken {
        true => End::Taken,
        false => end,
    }
}

impl Board {
    fn is_ownerless(&self) -> bool {
        self.own(Setting::Ownerless) != 0
    }

    /// Refuses `*` as a worker's name on a board that is not ownerless. O(1).
    pub fn check_speaker(&self, worker: &[u8]) -> Result<(), Refusal> {
        match worker == ANYBODY && !self.is_ownerless() {
            true => Err(Refusal::Argument("worker must not be '*' on a board that is not ownerless".into())),
            false => Ok(()),
        }
    }

    /// Finds the job and the relation of this worker to it; `verb` is how the claim is to end. The
    /// caller must settle the job's time first. [`ANYBODY`] speaks for the holder, checked by token
    /// alone; and for a job that nobody holds, if the verb ends it. O(1).
    pub(crate) fn standing(
        &self,
        env: &Env<'_>,
        speaker: &Speaker<'_>,
        verb: Option<End>,
    ) -> Result<Standing, Refusal> {
        let Speaker { worker, id, token } = *speaker;
        self.check_speaker(worker)?;
        let Some(slot) = self.find_held(worker, token, id) else {
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
            // Others may have claimed it since: that is the purpose of advancing it.
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
                _ => Ok(Standing::Holds { slot, cancel: claim.cancel, taken: anybody && token.is_none() }),
            };
        }
        let last =
            extras.and_then(|r| r.last_claim.as_ref()).filter(|last| anybody || *last.worker == *worker);
        if let Some(last) = last {
            if token == Some(last.token) && verb == Some(last.end) && last.end != End::Advanced {
                return Ok(Standing::Again(job.state));
            }
            let keeps = matches!(verb, None | Some(End::Awaiting));
            if last.end == End::Lapsed && !job.state.ended() {
                return match token {
                    _ if anybody && !keeps => Ok(Standing::Late { slot, taken: token != Some(last.token) }),
                    Some(t) if t != last.token => Err(Refusal::Stale(t)),
                    _ if stale() => Err(Refusal::Stale(0)),
                    _ => Ok(Standing::Late { slot, taken: false }),
                };
            }
        }
        let ends = matches!(verb, Some(End::Consumed | End::Failed | End::Trashed));
        if anybody && ends && !job.state.ended() {
            return Ok(Standing::Late { slot, taken: true });
        }
        Err(match job.state {
            State::Cancelled => Refusal::Cancelled(State::Cancelled),
            state if state.ended() => Refusal::Ended(state),
            state => Refusal::NotClaimed(state),
        })
    }

    /// Decides a worker's verb. O(log n), plus the cost of the verb.
    pub fn work<'a, V: WorkerVerb<'a>>(
        &self,
        env: &Env<'_>,
        speaker: &Speaker<'_>,
        verb: &V,
    ) -> Result<Answer<'a, V::Effect>, Refusal> {
        let standing = self.standing(env, speaker, Some(V::END))?;
        if let (Standing::Holds { slot, .. } | Standing::Late { slot, .. }, Some(report)) =
            (&standing, verb.report())
        {
            self.check_meta(*slot, &report.meta)?;
        }
        let (slot, taken) = match standing {
            Standing::Holds { slot, cancel: true, taken } => match verb.at_cancel() {
                AtCancel::Cancel(reason) => {
                    let end = end_of(V::END, taken);
                    let report = verb.report().filter(|report| !report.is_empty()).cloned();
                    let cancelled = Cancelled::at_end(self, env, slot, end, reason);
                    return Ok(Answer::Cancel(cancelled.reporting(report)));
                }
                AtCancel::Refuse => return Err(Refusal::Cancelled(State::Claimed)),
                AtCancel::Ignore => (slot, taken),
            },
            Standing::Holds { slot, taken, .. } | Standing::Late { slot, taken } => (slot, taken),
            Standing::Again(state) => return Ok(Answer::Again(state)),
        };
        // Only a job that nobody has claimed still waits for others.
        self.count_edges(slot)?;
        verb.decide(self, env, slot, taken).map(Answer::Do)
    }
}
