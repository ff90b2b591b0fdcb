//! The replies of verbs that end work.

use board::{FailAnswer, Refusal, State};

use crate::redis::reply::Reply;
use crate::replies::records::write_refusal;

/// The reply to the end of work. It is kept while the worker waits for its next job.
pub enum Ending {
    /// `OK`.
    Ok,
    /// The state of the job now.
    State(State),
    /// What a failure did to the job.
    Failed(FailAnswer),
    /// Several jobs, one reply each.
    Each {
        /// Their ids, unless the worker named them.
        ids: Vec<Vec<u8>>,
        /// The reply for each.
        answers: Vec<Result<Ending, Refusal>>,
    },
}

impl Ending {
    /// Writes it.
    pub fn write(&self, reply: Reply) {
        match self {
            Ending::Ok => reply.ok(),
            Ending::State(state) => reply.text(state.name()),
            Ending::Failed(FailAnswer { state, due, left, dead }) => {
                reply.map(2 + usize::from(due.is_some()) + usize::from(dead.is_some()));
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
