//! What replies have told, to be sent again.

use board::{Board, Page};
use fake_server::Value;

pub type Word = Vec<u8>;

/// A job that a worker holds, or held.
#[derive(Clone, PartialEq)]
pub struct Held {
    pub worker: Word,
    pub id: Word,
    pub token: i64,
}

/// See the module's comment. The last are the latest.
#[derive(Default)]
pub struct Seen {
    pub ids: Vec<Word>,
    pub texts: Vec<Word>,
    pub tokens: Vec<i64>,
    pub numbers: Vec<i64>,
    pub queues: Vec<Word>,
    pub groups: Vec<Word>,
    held: Vec<Held>,
}

/// So much is remembered of each.
const MEMORY: usize = 32;

impl Seen {
    /// Takes over what a board tells that came from elsewhere.
    pub fn meet(&mut self, board: &Board) {
        let (slots, _) = board.list(&Page { count: MEMORY, ..Page::default() });
        for record in slots.into_iter().filter_map(|slot| board.record_of(slot)) {
            let id = record.id().to_vec();
            remember(&mut self.ids, id.clone());
            remember(&mut self.queues, record.queue().to_vec());
            record.group().into_iter().for_each(|group| remember(&mut self.groups, group.to_vec()));
            if let (Some(worker), Some(token)) = (record.worker(), record.token()) {
                let token = token as i64;
                remember(&mut self.tokens, token);
                remember(&mut self.held, Held { worker: worker.to_vec(), id, token });
            }
        }
    }

    /// Takes over what the reply to a command tells.
    pub fn learn(&mut self, words: &[Word], reply: &Value) {
        let name = words.first().map(|name| name.to_ascii_lowercase()).unwrap_or_default();
        let posts = [&b"job.post"[..], b"job.mpost", b"job.flow"].contains(&&name[..]);
        self.take(words.get(2), posts, reply);
    }

    fn take(&mut self, worker: Option<&Word>, posts: bool, reply: &Value) {
        match reply {
            Value::Bytes(bytes) if (1..=64).contains(&bytes.len()) => {
                let all = if posts { &mut self.ids } else { &mut self.texts };
                remember(all, bytes.clone());
            }
            Value::Int(n) => remember(&mut self.numbers, *n),
            Value::Array(values) => values.iter().for_each(|value| self.take(worker, posts, value)),
            Value::Map(pairs) => self.take_map(worker, pairs),
            _ => {}
        }
    }

    fn take_map(&mut self, worker: Option<&Word>, pairs: &[(Value, Value)]) {
        let (mut its_id, mut its_token) = (None, None);
        for (name, value) in pairs {
            match (name, value) {
                (Value::Bytes(name), Value::Bytes(id)) if name == b"id" => its_id = Some(id),
                (Value::Bytes(name), Value::Int(token)) if name == b"token" => its_token = Some(*token),
                _ => self.take(worker, false, value),
            }
        }
        if let Some(id) = its_id {
            remember(&mut self.ids, id.clone());
        }
        if let Some(token) = its_token {
            remember(&mut self.tokens, token);
        }
        if let (Some(worker), Some(id), Some(token)) = (worker, its_id, its_token) {
            remember(&mut self.held, Held { worker: worker.clone(), id: id.clone(), token });
        }
    }

    /// One of those that were claimed.
    pub fn held(&self, n: usize) -> Option<&Held> {
        self.held.iter().rev().nth(n % self.held.len().max(1))
    }
}

fn remember<T: PartialEq>(all: &mut Vec<T>, one: T) {
    if !all.contains(&one) {
        if all.len() == MEMORY {
            all.remove(0);
        }
        all.push(one);
    }
}

/// The last of them but `n`.
pub fn last<T: Clone>(all: &[T], n: usize) -> Option<T> {
    all.iter().rev().nth(n % all.len().max(1)).cloned()
}
