//! What producers and workers do in a world.

use board::*;

use super::{Bytes, Done, Got, World};

/// The end of a claim, whether a cancel was requested, and the value of a step that counts.
pub type Stored = (i64, bool, Bytes);

/// The outcome of a request to wait for signals.
#[derive(Debug, Clone, PartialEq)]
pub enum Waited {
    /// The worker does not hold the job; its state.
    State(State),
    /// The worker keeps the job. Of each signal its name, its value, its sender, and when it arrived.
    Kept { timeout: bool, signals: Vec<(Bytes, Bytes, Option<Bytes>, i64)>, deadline: i64, cancel: bool },
}

impl World {
    pub fn post(&mut self, post: &Post<'_>) -> Result<Option<Bytes>, String> {
        if let Some(id) = post.id {
            self.settle(id);
        }
        let holder = post.unique.as_ref().and_then(|key| self.board.holder_of(key.key, self.now));
        if let Some(id) = holder.map(|(id, _)| id.borrowed().to_vec()) {
            self.settle(&id);
        }
        if let Some(parent) = post.parent {
            self.settle(parent);
        }
        let rules = self.rules.clone();
        let env = self.env(&rules);
        let answer = self.board.post(&env, post, 0).map_err(|refusal| refusal.to_string());
        let done = answer.map(|answer| match answer {
            PostAnswer::Skip => None,
            PostAnswer::Holds(id) => Some(id.borrowed().to_vec()),
            PostAnswer::Do(posted) => {
                let id = posted.text(<[u8]>::to_vec);
                self.act(posted);
                Some(id)
            }
        });
        self.commit();
        done
    }

    /// Posts a flow; gives the ids of its jobs.
    pub fn flow(&mut self, nodes: Vec<Node<'_>>) -> Result<Vec<Bytes>, String> {
        for name in nodes.iter().flat_map(|node| [node.post.id, node.post.parent]).flatten() {
            self.settle(name);
        }
        let rules = self.rules.clone();
        let env = self.env(&rules);
        let planned = self.board.plan_flow(&env, nodes).map_err(|refusal| refusal.to_string());
        let done = planned.map(|mut plan| {
            for at in plan.order().to_vec() {
                let post = plan.post(at).unwrap();
                let PostAnswer::Do(posted) = self.board.post(&env, &post, at as u64).unwrap() else {
                    panic!("a node of a flow was not posted");
                };
                let id = posted.text(<[u8]>::to_vec);
                self.act(posted);
                plan.came(at, id);
            }
            let adopted = plan.adopted(&self.board).unwrap();
            adopted.into_iter().for_each(|adopted| self.act(adopted));
            plan.ids().to_vec()
        });
        self.commit();
        done
    }

    fn got(&mut self, claimed: Claimed<'_>) -> Got {
        let (slot, token) = (claimed.slot, claimed.token);
        self.act(claimed);
        Got { id: self.board.record_of(slot).unwrap().id().to_vec(), token }
    }

    pub fn claim(&mut self, claim: &Claim<'_>, count: usize) -> Vec<Got> {
        let rules = self.rules.clone();
        let mut all = Vec::new();
        for n in 0..count {
            let env = self.env(&rules);
            let Ok(Some(claimed)) = self.board.claim(&env, claim, n as u64) else { break };
            all.push(self.got(claimed));
        }
        self.commit();
        all
    }

    pub fn claim_id(&mut self, claim: &Claim<'_>, id: &[u8]) -> Result<Got, String> {
        self.settle(id);
        let rules = self.rules.clone();
        let env = self.env(&rules);
        let claimed = self.board.claim_id(&env, claim, id).map_err(|r| r.to_string());
        let got = claimed.map(|claimed| self.got(claimed));
        self.commit();
        got
    }

    pub fn heartbeat(
        &mut self,
        (speaker, beat): &(Speaker<'_>, Heartbeat<'_>),
    ) -> Result<(i64, bool), String> {
        self.settle(speaker.id);
        let rules = self.rules.clone();
        let env = self.env(&rules);
        let decided = self.board.heartbeat(&env, speaker, beat);
        let decided = decided.and_then(|decided| Ok((self.spends(&env, decided.1.slot)?, decided)));
        let done = decided.map_err(|r| r.to_string()).map(|(spends, (revived, beaten))| {
            let slot = beaten.slot;
            if let Some(revived) = revived {
                self.act(revived);
            }
            self.act_spends(spends);
            self.act(beaten);
            self.board.hold_on(slot).unwrap()
        });
        self.commit();
        done
    }

    /// Gives the end of the claim, whether a cancel was requested, and the value that counts.
    pub fn step(&mut self, (speaker, step): &(Speaker<'_>, Step<'_>)) -> Result<Stored, String> {
        self.settle(speaker.id);
        let rules = self.rules.clone();
        let env = self.env(&rules);
        let decided = self.board.step(&env, speaker, step);
        let decided = decided.and_then(|answer| Ok((self.spends(&env, answer.slot)?, answer)));
        let done = decided.map_err(|r| r.to_string()).map(|(spends, answer)| {
            let slot = answer.slot;
            answer.revived.into_iter().for_each(|effect| self.act(effect));
            self.act_spends(spends);
            answer.stepped.into_iter().for_each(|effect| self.act(effect));
            answer.beaten.into_iter().for_each(|effect| self.act(effect));
            let (deadline, cancel) = self.board.hold_on(slot).unwrap_or_default();
            (deadline, cancel, self.board.step_value(slot, step.name).unwrap().to_vec())
        });
        self.commit();
        done
    }

    pub fn await_signals(&mut self, (speaker, request): &(Speaker<'_>, Await<'_>)) -> Result<Waited, String> {
        self.settle(speaker.id);
        let rules = self.rules.clone();
        let env = self.env(&rules);
        let decided = self.board.await_signals(&env, speaker, request);
        let decided = decided.and_then(|answer| match (&answer, self.board.find(speaker.id)) {
            (AwaitAnswer::Again(_), _) | (_, None) => Ok((Spends::default(), answer)),
            (_, Some(slot)) => Ok((self.spends(&env, slot)?, answer)),
        });
        let decided = decided.map_err(|r| r.to_string()).map(|(spends, answer)| {
            self.act_spends(spends);
            answer
        });
        let done = decided.map(|answer| match answer {
            AwaitAnswer::Kept { slot, revived, beaten, timeout } => {
                revived.into_iter().for_each(|effect| self.act(effect));
                self.act(beaten);
                let (deadline, cancel) = self.board.hold_on(slot).unwrap();
                let signals = if timeout { Vec::new() } else { self.board.signals_for(slot, &request.gate) };
                let of = |memo: &Memo| {
                    let sender = memo.sender.as_ref().map(|sender| sender.to_vec());
                    (memo.name.to_vec(), memo.value.to_vec(), sender, memo.at)
                };
                let signals = signals.into_iter().map(of).collect();
                Waited::Kept { timeout, signals, deadline, cancel }
            }
            AwaitAnswer::Waits(awaiting) => {
                self.act(awaiting);
                Waited::State(State::Blocked)
            }
            AwaitAnswer::Cancels(cancelled) => {
                self.act(cancelled);
                Waited::State(State::Cancelled)
            }
            AwaitAnswer::Again(state) => Waited::State(state),
        });
        self.commit();
        done
    }

    /// What the worker says beside its verb.
    fn spends(&self, env: &Env<'_>, slot: u32) -> Result<Spends<'static>, Refusal> {
        self.board.spend(env, slot, &self.spend)
    }

    fn act_spends(&mut self, spends: Spends<'static>) {
        spends.spent.into_iter().for_each(|spent| self.act(spent));
        spends.paused.into_iter().for_each(|paused| self.act(paused));
    }

    /// Does something in which workers say this of their claims.
    pub fn saying<R>(&mut self, spend: Spend<'static>, work: impl FnOnce(&mut World) -> R) -> R {
        self.spend = spend;
        let done = work(self);
        self.spend = Spend::default();
        done
    }

    pub fn work<'a>(&mut self, (speaker, verb): &(Speaker<'_>, impl WorkerVerb<'a>)) -> Result<Done, String> {
        self.settle(speaker.id);
        let rules = self.rules.clone();
        let env = self.env(&rules);
        let decided = self.board.work(&env, speaker, verb);
        let decided = decided.and_then(|answer| match (&answer, self.board.find(speaker.id)) {
            (Answer::Again(_), _) | (_, None) => Ok((Spends::default(), answer)),
            (_, Some(slot)) => Ok((self.spends(&env, slot)?, answer)),
        });
        let decided = decided.map(|(spends, answer)| {
            self.act_spends(spends);
            answer
        });
        let done = match decided {
            Ok(Answer::Do(effect)) => {
                self.act(effect);
                Ok(Done::Did)
            }
            Ok(Answer::Cancel(effect)) => {
                self.act(effect);
                Ok(Done::Did)
            }
            Ok(Answer::Again(state)) => Ok(Done::Again(state)),
            Err(refusal) => Err(refusal.to_string()),
        };
        self.commit();
        done
    }
}
