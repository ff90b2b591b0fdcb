//! The replies of verbs that end work.

use board::{FailAnswer, Memo, Refusal, State};

use crate::redis::reply::Reply;
use crate::replies::records::write_refusal;

/// The reply to the end of work. It is kept while the worker waits for its next job.
pub enum Ending {
    /// `OK`.
    Ok,
    /// The state of the job now.
    State(State),
    /// What a failure did to the job, and how many bytes of its message were cut.
    Failed(FailAnswer, usize),
    /// The job waits for signals or children, or is in this state by now.
    Awaits(State),
    /// All is there: the worker keeps the job.
    Kept(Kept),
    /// Several jobs, one reply each.
    Each {
        /// Their ids, unless the worker named them.
        ids: Vec<Vec<u8>>,
        /// The reply for each.
        answers: Vec<Result<Ending, Refusal>>,
    },
}

/// What a worker learns that keeps its job.
pub struct Kept {
    /// Whether the time of the wait was over in an earlier run.
    pub timeout: bool,
    /// The signals that it waited for.
    pub signals: Vec<Arrived>,
    /// How many children there are, how many have not ended, and how many ended without success, when
    /// it waited for them.
    pub children: Option<[i64; 3]>,
    /// When the claim ends by itself, Unix ms.
    pub deadline: i64,
    /// Whether it is asked to stop.
    pub cancel: bool,
}

/// A signal that has arrived.
pub struct Arrived {
    name: Vec<u8>,
    value: Vec<u8>,
    at: i64,
    sender: Option<Vec<u8>>,
}

impl Arrived {
    /// What a job remembers of it.
    pub fn of(memo: &Memo) -> Arrived {
        let sender = memo.sender.as_ref().map(|sender| sender.to_vec());
        Arrived { name: memo.name.to_vec(), value: memo.value.to_vec(), at: memo.at, sender }
    }

    fn write(&self, reply: Reply) {
        reply.bytes(&self.name);
        reply.map(2 + usize::from(self.sender.is_some()));
        reply.text("value");
        reply.bytes(&self.value);
        reply.text("at");
        reply.int(self.at);
        if let Some(sender) = &self.sender {
            reply.text("sender");
            reply.bytes(sender);
        }
    }
}

impl Kept {
    fn write(&self, reply: Reply) {
        reply.map(if self.children.is_some() { 8 } else { 5 });
        reply.text("state");
        reply.text(State::Claimed.name());
        reply.text("timeout");
        reply.int(self.timeout.into());
        reply.text("signals");
        reply.map(self.signals.len());
        self.signals.iter().for_each(|signal| signal.write(reply));
        let names = ["children", "pending", "unsuccessful"];
        for (name, n) in self.children.iter().flat_map(|numbers| names.iter().zip(numbers)) {
            reply.text(name);
            reply.int(*n);
        }
        reply.text("deadline");
        reply.int(self.deadline);
        reply.text("cancel");
        reply.int(self.cancel.into());
    }
}

impl Ending {
    /// Writes it.
    pub fn write(&self, reply: Reply) {
        match self {
            Ending::Ok => reply.ok(),
            Ending::State(state) => reply.text(state.name()),
            Ending::Awaits(state) => {
                reply.map(1);
                reply.text("state");
                reply.text(state.name());
            }
            Ending::Kept(kept) => kept.write(reply),
            Ending::Failed(FailAnswer { state, due, left, dead }, cut) => {
                let more = [due.is_some(), dead.is_some(), *cut > 0];
                reply.map(2 + more.into_iter().map(usize::from).sum::<usize>());
                reply.text("state");
                reply.text(state.name());
                if let Some(due) = due {
                    reply.text("due");
                    reply.int(*due);
                }
                reply.text("left");
                reply.int(*left);
                if let Some(dead) = dead {
                    reply.text("dead");
                    reply.bytes(dead);
                }
                if *cut > 0 {
                    reply.text("cut");
                    reply.int(*cut as i64);
                }
            }
            Ending::Each { ids, answers } => {
                reply.array(answers.len());
                let mut ids = ids.iter();
                for answer in answers {
                    if let Some(id) = ids.next() {
                        reply.array(2);
                        reply.bytes(id);
                    }
                    match answer {
                        Ok(ending) => ending.write(reply),
                        Err(refusal) => write_refusal(reply, refusal),
                    }
                }
            }
        }
    }

    /// Whether the worker still has the job, and claims no other.
    pub fn is_kept(&self) -> bool {
        matches!(self, Ending::Kept(_))
    }

    /// Whether the end of any job was refused.
    pub fn has_refusal(&self) -> bool {
        matches!(self, Ending::Each { answers, .. } if answers.iter().any(Result::is_err))
    }
}

/// Begins the reply to a claim: after an end of work the two form a pair.
pub fn begin(reply: Reply, ending: Option<&Ending>) {
    if let Some(ending) = ending {
        reply.array(2);
        ending.write(reply);
    }
}
