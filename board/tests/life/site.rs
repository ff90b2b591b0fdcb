//! Short words for what the scenarios do.
#![allow(dead_code)]

use board::*;

use crate::world::{Bytes, Done, Got, World};

pub use board::State::*;

pub const ANN: &[u8] = b"ann";
pub const BOB: &[u8] = b"bob";

pub fn options(change: impl FnOnce(&mut Options)) -> Options {
    let mut options = Options::default();
    change(&mut options);
    options
}

impl World {
    pub fn put(&mut self, id: &str) {
        self.put_with(id, |_| {});
    }

    pub fn put_with<'p>(&mut self, id: &'p str, change: impl FnOnce(&mut Post<'p>)) {
        let mut post = Post { id: Some(id.as_bytes()), payload: b"work", ..Post::default() };
        change(&mut post);
        assert_eq!(self.post(&post), Ok(Some(id.as_bytes().to_vec())));
    }

    /// A job that waits for others.
    pub fn put_after(&mut self, id: &str, others: &[&str], on_failure: OnFailure) {
        let jobs = others.iter().map(|other| (other.as_bytes(), on_failure)).collect();
        let after = Some(After { jobs, strict: false, ..After::default() });
        self.put_with(id, |p| p.after = after);
    }

    pub fn put_replacing(&mut self, id: &str, payload: &[u8]) {
        let exists = Exists::Replace;
        self.post(&Post { id: Some(id.as_bytes()), payload, exists, ..Post::default() }).unwrap();
    }

    /// The best job of all queues, if there is one.
    pub fn take(&mut self, worker: &[u8]) -> Option<Got> {
        self.claim(&Claim { worker, ..Claim::default() }, 1).pop()
    }

    /// The named job; its token.
    pub fn take_id(&mut self, worker: &[u8], id: &str) -> u64 {
        self.claim_id(&Claim { worker, ..Claim::default() }, id.as_bytes()).unwrap().token
    }

    pub fn take_all(&mut self, worker: &[u8]) -> Vec<String> {
        let got = self.claim(&Claim { worker, ..Claim::default() }, usize::MAX);
        got.iter().map(|g| name(&g.id)).collect()
    }

    pub fn beat(&mut self, worker: &[u8], id: &str, token: Option<u64>) -> Result<(i64, bool), String> {
        self.heartbeat(&(Speaker { worker, id: id.as_bytes(), token }, Heartbeat::default()))
    }

    pub fn done(&mut self, worker: &[u8], id: &str, token: Option<u64>) -> Result<Done, String> {
        self.work(&(Speaker { worker, id: id.as_bytes(), token }, Consume::default()))
    }

    pub fn done_keeping(&mut self, worker: &[u8], id: &str, retain: i64) -> Result<Done, String> {
        let retain = Some(retain);
        self.work(&(
            Speaker { worker, id: id.as_bytes(), ..Speaker::default() },
            Consume { retain, ..Consume::default() },
        ))
    }

    pub fn fails(&mut self, worker: &[u8], id: &str, token: Option<u64>) -> Result<Done, String> {
        self.fails_with(worker, id, token, Retry::Policy)
    }

    pub fn fails_with(
        &mut self,
        worker: &[u8],
        id: &str,
        token: Option<u64>,
        retry: Retry,
    ) -> Result<Done, String> {
        let (kind, message) = (b"io", b"disk full");
        self.work(&(
            Speaker { worker, id: id.as_bytes(), token },
            Fail { kind, message, retry, ..Fail::default() },
        ))
    }

    pub fn gives_back(&mut self, worker: &[u8], id: &str, token: Option<u64>) -> Result<Done, String> {
        self.work(&(Speaker { worker, id: id.as_bytes(), token }, Abandon::default()))
    }

    pub fn trashes(&mut self, worker: &[u8], id: &str, token: Option<u64>) -> Result<Done, String> {
        self.work(&(
            Speaker { worker, id: id.as_bytes(), token },
            Trash { reason: Some(b"rubbish"), ..Trash::default() },
        ))
    }

    pub fn is(&self, id: &str) -> Option<State> {
        self.state(id.as_bytes())
    }

    pub fn job(&self, id: &str) -> Record<'_> {
        self.record(id.as_bytes()).expect("there is such a job")
    }

    pub fn events(&self, id: &str) -> Vec<&'static str> {
        self.job(id).history().iter().map(|e| e.event.name()).collect()
    }

    /// Everything about the board holds, and its copy is equal.
    pub fn is_valid(&self) {
        assert_eq!(self.board.check(), Ok(()));
        assert_eq!(self.board.digest(), self.copy.digest());
    }

    /// Brings a fresh job with that id into a state.
    pub fn put_in(&mut self, id: &str, state: State) {
        match state {
            Scheduled => {
                let due = Some(self.now + 1_000);
                self.put_with(id, |p| p.due = due);
            }
            Blocked => {
                let other = format!("before {id}");
                self.put(&other);
                self.put_after(id, &[&other], OnFailure::Hold);
            }
            Ready => self.put(id),
            Claimed => {
                self.put(id);
                self.take_id(ANN, id);
            }
            Complete => {
                self.put_in(id, Claimed);
                self.done_keeping(ANN, id, -1).unwrap();
            }
            Failed => {
                self.put_in(id, Claimed);
                self.fails_with(ANN, id, None, Retry::No).unwrap();
            }
            Cancelled => {
                self.put(id);
                self.cancel(id.as_bytes(), false).unwrap().unwrap();
            }
            Trashed => {
                self.put_in(id, Claimed);
                self.trashes(ANN, id, None).unwrap();
            }
        }
        assert_eq!(self.is(id), Some(state));
    }
}

/// Those in which a job can be without another.
pub const STATES: [State; 7] = [Scheduled, Ready, Claimed, Complete, Failed, Cancelled, Trashed];
pub const LIVE: [State; 3] = [Scheduled, Ready, Claimed];
pub const ENDED: [State; 4] = [Complete, Failed, Cancelled, Trashed];

pub fn name(id: &Bytes) -> String {
    String::from_utf8_lossy(id).into_owned()
}

pub fn again(state: State) -> Result<Done, String> {
    Ok(Done::Again(state))
}

pub fn refused<T>(text: &str) -> Result<T, String> {
    Err(text.into())
}

pub const DID: Result<Done, String> = Ok(Done::Did);
