//! The protocol of a command, once for all verbs: time does what is due to the subject of a request,
//! then the request is decided, and its effects are applied in their order.
//!
//! The module implements [`Protocol`] for its commits, and the tests for their world. A command that
//! needs an order of its own calls [`Protocol::settle`] itself, before anything is decided.

use crate::board::Board;
use crate::effect::Apply;
use crate::env::Env;
use crate::error::Refusal;
use crate::job::End;
use crate::verbs::awaiting::{Await, AwaitAnswer};
use crate::verbs::depend::Depend;
use crate::verbs::flow::Node;
use crate::verbs::heartbeat::{Beaten, Revived};
use crate::verbs::holder::{Answer, Speaker, WorkerVerb};
use crate::verbs::post::Post;
use crate::verbs::schedule::SetSchedule;
use crate::verbs::spend::{Spend, Spends};
use crate::verbs::step::Stepped;

/// The most overdue things that a command does before its own work.
pub const SETTLES: u32 = 64;

/// What a request is about. Time may have changed it by now.
#[derive(Debug, Clone, Copy)]
pub enum Subject<'r> {
    /// Nothing that time changes.
    Timeless,
    /// The job of this id.
    Job(&'r [u8]),
    /// The jobs of these ids.
    Jobs(&'r [&'r [u8]]),
    /// What a post names: the job of its id or of these ids, the holder of its key, the parent.
    Post(&'r Post<'r>, &'r [&'r [u8]]),
    /// The jobs and the parents that the nodes of a flow name.
    Flow(&'r [Node<'r>]),
    /// The schedule of this id.
    Schedule(&'r [u8]),
    /// A schedule that is set, and the parent of its jobs.
    SetSchedule(&'r SetSchedule<'r>),
    /// Anything on the board: whatever is due, up to [`SETTLES`].
    Anything,
}

/// A worker keeps its job. The effects are to be applied in this order.
#[derive(Debug, Clone, PartialEq)]
pub struct Kept<'a> {
    /// The job.
    pub slot: u32,
    /// A late worker holds its job again.
    pub revived: Option<Revived>,
    /// What a step came to is stored.
    pub stepped: Option<Stepped<'a>>,
    /// The lease is extended.
    pub beaten: Option<Beaten<'a>>,
}

/// A verb with which a worker keeps its claim.
pub trait KeepVerb<'a> {
    /// What follows from it.
    fn decide(&self, board: &Board, env: &Env<'_>, speaker: &Speaker<'_>) -> Result<Kept<'a>, Refusal>;
}

/// A command at work on a board. See the module's comment.
pub trait Protocol {
    /// Why a command does not succeed.
    type Error: From<Refusal>;

    /// The board.
    fn board(&mut self) -> &mut Board;

    /// The time of the command, Unix ms.
    fn now(&self) -> i64;

    /// Looks at the board and the world as they are.
    fn look<R>(&mut self, look: impl FnOnce(&Board, &Env<'_>) -> R) -> R;

    /// Applies an effect.
    fn apply(&mut self, effect: impl Apply) -> Result<(), Self::Error>;

    /// Does what is due by now, up to [`SETTLES`].
    fn settle_due(&mut self) -> Result<(), Self::Error>;

    /// A worker has kept the claim of this job.
    fn kept(&mut self, slot: u32);

    /// Does to the subject of a request what is due by now, so that the request sees its true state.
    fn settle(&mut self, subject: Subject<'_>) -> Result<(), Self::Error> {
        match subject {
            Subject::Timeless => Ok(()),
            Subject::Job(id) => self.settle_job(id),
            Subject::Jobs(ids) => ids.iter().try_for_each(|id| self.settle_job(id)),
            Subject::Post(post, ids) => {
                post.id.iter().chain(ids).try_for_each(|id| self.settle_job(id))?;
                if let Some(key) = &post.unique {
                    let now = self.now();
                    let holder = self.board().holder_of(key.key, now);
                    let holder = holder.map(|(id, _)| id.borrowed().text(<[u8]>::to_vec));
                    holder.map_or(Ok(()), |id| self.settle_job(&id))?;
                }
                post.parent.map_or(Ok(()), |id| self.settle_job(id))
            }
            Subject::Flow(nodes) => {
                let mut named = nodes.iter().flat_map(|node| [node.post.id, node.post.parent]).flatten();
                named.try_for_each(|id| self.settle_job(id))
            }
            Subject::Schedule(id) => self.settle_schedule(id),
            Subject::SetSchedule(set) => {
                self.settle_schedule(set.id)?;
                set.child.parent.map_or(Ok(()), |id| self.settle_job(id))
            }
            Subject::Anything => self.settle_due(),
        }
    }

    /// Does to one job what is due by now.
    fn settle_job(&mut self, id: &[u8]) -> Result<(), Self::Error> {
        let now = self.now();
        if self.board().wake() > now {
            return Ok(());
        }
        // The last job that it waits for may have ended, its wait be over, and it have expired, all at
        // once: at most three things.
        for _ in 0..3 {
            let due = self.look(|board, env| board.find(id).and_then(|slot| board.overdue(slot, env)));
            let Some(effect) = due else { break };
            self.apply(effect)?;
        }
        Ok(())
    }

    /// Does to one schedule what is due by now, up to [`SETTLES`].
    fn settle_schedule(&mut self, id: &[u8]) -> Result<(), Self::Error> {
        for _ in 0..SETTLES {
            let Some(effect) = self.look(|board, env| board.overdue_schedule(env, id)) else { break };
            self.apply(effect)?;
        }
        Ok(())
    }

    /// The slots of the jobs of these ids, settled; `None` for unknown ids.
    fn find_all(&mut self, ids: &[&[u8]]) -> Result<Vec<Option<u32>>, Self::Error> {
        self.settle(Subject::Jobs(ids))?;
        Ok(ids.iter().map(|id| self.board().find(id)).collect())
    }

    /// Settles the subject of a request, and decides it.
    fn decide<R>(
        &mut self,
        subject: Subject<'_>,
        decide: impl FnOnce(&Board, &Env<'_>) -> Result<R, Refusal>,
    ) -> Result<R, Self::Error> {
        self.settle(subject)?;
        Ok(self.look(decide)?)
    }

    /// The same, and applies the effect. Returns false when there is none.
    fn perform<E: Apply>(
        &mut self,
        subject: Subject<'_>,
        decide: impl FnOnce(&Board, &Env<'_>) -> Result<Option<E>, Refusal>,
    ) -> Result<bool, Self::Error> {
        match self.decide(subject, decide)? {
            Some(effect) => self.apply(effect).map(|()| true),
            None => Ok(false),
        }
    }

    /// Decides what a worker says of its claim beside a verb. O(k log k).
    fn decide_spend<'a>(&mut self, slot: u32, spend: &Spend<'a>) -> Result<Spends<'a>, Self::Error> {
        match spend.is_silent() {
            true => Ok(Spends::default()),
            false => Ok(self.look(|board, env| board.spend(env, slot, spend))?),
        }
    }

    /// Applies what a worker says of its claim.
    fn apply_spends(&mut self, Spends { spent, paused }: Spends<'_>) -> Result<(), Self::Error> {
        spent.map_or(Ok(()), |spent| self.apply(spent))?;
        paused.map_or(Ok(()), |paused| self.apply(paused))
    }

    /// A worker ends its claim: does what it says of the claim, then its verb, unless that is a
    /// repetition.
    fn work<'a, V: WorkerVerb<'a>>(
        &mut self,
        speaker: &Speaker<'_>,
        verb: &V,
        spend: &Spend<'_>,
    ) -> Result<Answer<'a, V::Effect>, Self::Error> {
        self.settle_job(speaker.id)?;
        let answer = self.look(|board, env| board.work(env, speaker, verb))?;
        if !spend.is_silent() && !matches!(answer, Answer::Again(_)) {
            self.spend_by_id(speaker.id, spend)?;
        }
        match &answer {
            Answer::Do(effect) => self.apply(effect)?,
            Answer::Cancel(effect) => self.apply(effect)?,
            Answer::Again(_) => return Ok(answer),
        }
        if V::END == End::Advanced {
            // A job that it now waits for may have ended without success.
            self.settle_job(speaker.id)?;
        }
        Ok(answer)
    }

    /// A worker keeps its claim: a late one gets its job back, then what it says of the claim and its
    /// verb are done. Returns what was applied.
    fn keep<'a>(
        &mut self,
        speaker: &Speaker<'_>,
        verb: &impl KeepVerb<'a>,
        spend: &Spend<'_>,
    ) -> Result<Kept<'a>, Self::Error> {
        self.settle_job(speaker.id)?;
        let kept = self.look(|board, env| verb.decide(board, env, speaker))?;
        let spends = self.decide_spend(kept.slot, spend)?;
        kept.revived.as_ref().map_or(Ok(()), |revived| self.apply(revived))?;
        self.apply_spends(spends)?;
        kept.stepped.as_ref().map_or(Ok(()), |stepped| self.apply(stepped))?;
        kept.beaten.as_ref().map_or(Ok(()), |beaten| self.apply(beaten))?;
        self.kept(kept.slot);
        Ok(kept)
    }

    /// A worker keeps its claim when all that it waits for is there; else it gives the job up.
    fn await_signals<'a>(
        &mut self,
        speaker: &Speaker<'_>,
        request: &'a Await<'a>,
        spend: &Spend<'_>,
    ) -> Result<AwaitAnswer<'a>, Self::Error> {
        self.settle_job(speaker.id)?;
        let answer = self.look(|board, env| board.await_signals(env, speaker, request))?;
        if !matches!(answer, AwaitAnswer::Again(_)) {
            self.spend_by_id(speaker.id, spend)?;
        }
        match &answer {
            AwaitAnswer::Kept { slot, revived, beaten, .. } => {
                revived.as_ref().map_or(Ok(()), |revived| self.apply(revived))?;
                self.apply(beaten)?;
                self.kept(*slot);
            }
            AwaitAnswer::Waits(awaiting) => {
                self.apply(awaiting)?;
                // A child may have ended without success.
                self.settle_job(speaker.id)?;
            }
            AwaitAnswer::Cancels(cancelled) => self.apply(cancelled)?,
            AwaitAnswer::Again(_) => {}
        }
        Ok(answer)
    }

    /// Does what a worker says of the claim of a job, if there still is one.
    fn spend_by_id(&mut self, id: &[u8], spend: &Spend<'_>) -> Result<(), Self::Error> {
        let Some(slot) = self.board().find(id) else { return Ok(()) };
        let spends = self.decide_spend(slot, spend)?;
        self.apply_spends(spends)
    }

    /// Changes what a job waits for.
    fn depend(&mut self, id: &[u8], depend: &Depend<'_>) -> Result<(), Self::Error> {
        self.perform(Subject::Job(id), |board, env| {
            let slot = board.find(id).ok_or(Refusal::NoJob)?;
            board.depend(env, slot, depend).map(Some)
        })?;
        // A job that it now waits for may have ended without success.
        self.settle_job(id)
    }
}
