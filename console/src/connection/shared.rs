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

/// Nobody waits for an answer that is older than this.
const OLD: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Slot(Mutex<Option<(Instant, Duration, Value)>>);

#[derive(Default)]
pub struct Answers(PlainMutex<HashMap<Vec<u8>, Arc<Slot>>>);

impl Answers {
    /// Who asks while another asks the same waits for that answer.
    pub async fn ask(&self, link: &Link, board: &[u8], command: Cmd, anew: bool) -> Result<Value, Failure> {
        let slot = self.slot([board, &command.get_packed_command()].concat());
        let asked = Instant::now();
        let mut last = slot.0.lock().await;
        if let Some((at, took, value)) = &*last {
            let young = if anew { *at > asked } else { at.elapsed() < (*took * SHARE).clamp(YOUNG, OLD) };
            if young {
                return Ok(value.clone());
            }
        }
        *last = None;
        let began = Instant::now();
        let value = link.ask(board, command).await?;
        *last = Some((began, began.elapsed(), value.clone()));
        Ok(value)
    }

    fn slot(&self, question: Vec<u8>) -> Arc<Slot> {
        let mut known = lock(&self.0);
        if known.len() >= MOST && !known.contains_key(&question) {
            let is_young = |slot: &Arc<Slot>| match slot.0.try_lock() {
                Ok(last) => last.as_ref().is_some_and(|(at, _, _)| at.elapsed() < YOUNG),
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
