//! How work ended, in replies.

use board::{FailAnswer, Refusal, State};

use crate::redis::reply::Reply;
use crate::replies::records::write_refusal;

/// How work ended: what its worker is told of that. It is kept while the worker waits for the
/// next.
pub enum Ending {
    /// Nothing more is to be said.
    Ok,
    /// In which state the job is now.
    State(State),
    /// How a failed try left the job.
    Failed(FailAnswer),
    /// Of several jobs, each by itself.
    Each {
        /// Their ids, when the worker did not name them.
        ids: Vec<Vec<u8>>,
        /// What is said of each.
        answers: Vec<Result<Ending, Refusal>>,
    },
}

impl Ending {
    /// Answers with it.
    pub fn write(&self, reply: Reply) {
        match self {
            Ending::Ok => reply.ok(),
            Ending::State(state) => reply.text(state.name()),
            Ending::Failed(FailAnswer { state, due, left }) => {
                reply.map(2 + usize::from(due.is_some()));
                reply.text("state");
                reply.text(state.name());
                if let Some(due) = due {
                    reply.text("due");
                    reply.int(*due);
                }
                reply.text("left");
                reply.int(*left);
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

/// Begins the answer to a claim: after an end of work it stands in a pair with that.
pub fn begin(reply: Reply, ending: Option<&Ending>) {
    if let Some(ending) = ending {
        reply.array(2);
        ending.write(reply);
    }
}
