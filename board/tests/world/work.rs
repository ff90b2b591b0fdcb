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
        let answer = self.decide(Subject::Post(post, &[]), |board, env| board.post(env, post, 0));
        let done = answer.map_err(|refusal| refusal.to_string()).map(|answer| match answer {
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
        Protocol::settle(self, Subject::Flow(&nodes)).unwrap();
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
        let claimed = self.decide(Subject::Job(id), |board, env| board.claim_id(env, claim, id));
        let got = claimed.map_err(|r| r.to_string()).map(|claimed| self.got(claimed));
        self.commit();
        got
    }

    pub fn heartbeat(
        &mut self,
        (speaker, beat): &(Speaker<'_>, Heartbeat<'_>),
    ) -> Result<(i64, bool), String> {
        let kept = self.keep(speaker, beat, &self.spend.clone());
        let done = kept.map(|kept| self.board.hold_on(kept.slot).unwrap()).map_err(|r| r.to_string());
        self.commit();
        done
    }

    /// Gives the end of the claim, whether a cancel was requested, and the value that counts.
    pub fn step(&mut self, (speaker, step): &(Speaker<'_>, Step<'_>)) -> Result<Stored, String> {
        let kept = self.keep(speaker, step, &self.spend.clone()).map_err(|r| r.to_string());
        let done = kept.map(|kept| {
            let (deadline, cancel) = self.board.hold_on(kept.slot).unwrap_or_default();
            (deadline, cancel, self.board.step_value(kept.slot, step.name).unwrap().to_vec())
        });
        self.commit();
        done
    }

    pub fn await_signals(&mut self, (speaker, request): &(Speaker<'_>, Await<'_>)) -> Result<Waited, String> {
        let answer = Protocol::await_signals(self, speaker, request, &self.spend.clone());
        let done = answer.map_err(|r| r.to_string()).map(|answer| match answer {
            AwaitAnswer::Kept { slot, timeout, .. } => {
                let (deadline, cancel) = self.board.hold_on(slot).unwrap();
                let signals = if timeout { Vec::new() } else { self.board.signals_for(slot, &request.gate) };
                let of = |memo: &Memo| {
                    let sender = memo.sender.as_ref().map(|sender| sender.to_vec());
                    (memo.name.to_vec(), memo.value.to_vec(), sender, memo.at)
                };
                let signals = signals.into_iter().map(of).collect();
                Waited::Kept { timeout, signals, deadline, cancel }
            }
            AwaitAnswer::Waits(_) => Waited::State(State::Blocked),
            AwaitAnswer::Cancels(_) => Waited::State(State::Cancelled),
            AwaitAnswer::Again(state) => Waited::State(state),
        });
        self.commit();
        done
    }

    /// Does something in which workers say this of their claims.
    pub fn saying<R>(&mut self, spend: Spend<'static>, work: impl FnOnce(&mut World) -> R) -> R {
        self.spend = spend;
        let done = work(self);
        self.spend = Spend::default();
        done
    }

    pub fn work<'a>(&mut self, (speaker, verb): &(Speaker<'_>, impl WorkerVerb<'a>)) -> Result<Done, String> {
        let answer = Protocol::work(self, speaker, verb, &self.spend.clone());
        let done = answer.map_err(|r| r.to_string()).map(|answer| match answer {
            Answer::Again(state) => Done::Again(state),
            _ => Done::Did,
        });
        self.commit();
        done
    }
}
