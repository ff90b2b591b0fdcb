//! Answers that the open pages of one user share: fifty readers of a board cost the server little more than
//! one. Loading a page asks anew; a page that refreshes itself takes an answer that is young enough.

use std::collections::HashMap;
use std::sync::{Arc, Mutex as PlainMutex};
use std::time::{Duration, Instant};

use redis::{Cmd, Value};
use tokio::sync::Mutex;

use crate::access::sessions::lock;
use crate::connection::Link;
use crate::failure::Failure;

/// An answer is young for this time …
const YOUNG: Duration = Duration::from_millis(1800);

/// … or for so many times what it took: asking takes a part of the time at most.
const SHARE: u32 = 40;

/// Questions that are remembered; those whose answers are old go first.
const MOST: usize = 500;

/// Answers that are kept have about so many bytes; the oldest go first.
const MOST_BYTES: usize = 8 << 20;

/// Nobody waits for an answer that is older than this.
const OLD: Duration = Duration::from_secs(60);

/// What came of a question.
enum Last {
    Answer {
        began: Instant,
        took: Duration,
        value: Value,
        size: usize,
    },
    /// The server did not answer: until then, who asked meanwhile waited as well.
    Silence(Instant, Failure),
}

#[derive(Default)]
struct Slot(Mutex<Option<Last>>);

#[derive(Default)]
pub struct Answers(PlainMutex<HashMap<Vec<u8>, Arc<Slot>>>);

impl Answers {
    /// The answer, and when it was asked for. Who asks while another asks the same waits for that answer.
    pub async fn ask(
        &self,
        link: &Link,
        board: &[u8],
        command: Cmd,
        anew: bool,
    ) -> Result<(Value, Instant), Failure> {
        let slot = self.slot([board, &command.get_packed_command()].concat());
        let asked = Instant::now();
        let mut last = slot.0.lock().await;
        match &*last {
            Some(Last::Answer { began, took, value, .. }) => {
                let young =
                    if anew { *began > asked } else { began.elapsed() < (*took * SHARE).clamp(YOUNG, OLD) };
                if young {
                    return Ok((value.clone(), *began));
                }
            }
            Some(Last::Silence(until, failure)) if *until > asked => return Err(failure.clone()),
            _ => {}
        }
        *last = None;
        let began = Instant::now();
        let reply = link.ask(board, command).await;
        *last = match &reply {
            Ok(value) => {
                let (took, size) = (began.elapsed(), size(value));
                Some(Last::Answer { began, took, value: value.clone(), size })
            }
            Err(failure @ Failure::Unreachable(_)) => Some(Last::Silence(Instant::now(), failure.clone())),
            Err(_) => None,
        };
        drop(last);
        self.forget();
        reply.map(|value| (value, began))
    }

    /// Forgets the oldest answers where all have more bytes than are kept.
    fn forget(&self) {
        let known = lock(&self.0);
        let mut kept = Vec::new();
        for slot in known.values() {
            let Ok(last) = slot.0.try_lock() else { continue };
            if let Some(Last::Answer { began, size, .. }) = &*last {
                kept.push((*began, *size, last));
            }
        }
        let mut all: usize = kept.iter().map(|(_, size, _)| size).sum();
        kept.sort_by_key(|(began, ..)| *began);
        for (_, size, mut last) in kept {
            if all <= MOST_BYTES {
                break;
            }
            all -= size;
            *last = None;
        }
    }

    fn slot(&self, question: Vec<u8>) -> Arc<Slot> {
        let mut known = lock(&self.0);
        if known.len() >= MOST && !known.contains_key(&question) {
            let is_young = |slot: &Arc<Slot>| match slot.0.try_lock() {
                Ok(last) => match &*last {
                    Some(Last::Answer { began, .. }) => began.elapsed() < YOUNG,
                    _ => false,
                },
                Err(_) => true,
            };
            known.retain(|_, slot| is_young(slot));
            if known.len() >= MOST {
                known.clear();
            }
        }
        Arc::clone(known.entry(question).or_default())
    }
}

/// About so many bytes of memory.
fn size(value: &Value) -> usize {
    let more = match value {
        Value::BulkString(bytes) => bytes.len(),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => text.len(),
        Value::Array(values) | Value::Set(values) => values.iter().map(size).sum(),
        Value::Map(pairs) => pairs.iter().map(|(name, value)| size(name) + size(value)).sum(),
        _ => 0,
    };
    size_of::<Value>() + more
}
