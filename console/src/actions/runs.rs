//! Work on many jobs, slice by slice, while its user watches.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use redis::Cmd;

use crate::access::sessions::lock;
use crate::connection::reply::{bytes, int, list, text};
use crate::connection::Link;
use crate::failure::Failure;

/// So many are remembered of a session.
const KEPT: usize = 20;

/// How many ids of held back jobs are kept.
const HELD_SHOWN: usize = 100;

/// How far it has come.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    pub done: i64,
    pub held: Vec<String>,
    pub held_count: usize,
    pub ended: bool,
    pub stopped: bool,
    pub failure: Option<Failure>,
}

pub struct Run {
    pub id: usize,
    pub board: Vec<u8>,
    /// What is done, for people.
    pub title: String,
    /// The command, without cursor.
    pub words: String,
    progress: Mutex<Progress>,
    stopping: AtomicBool,
    /// Whether the session has ended.
    is_over: Arc<AtomicBool>,
}

impl Run {
    pub fn progress(&self) -> Progress {
        lock(&self.progress).clone()
    }

    /// Ends it after the slice at hand.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed) || self.is_over.load(Ordering::Relaxed)
    }

    /// Sends the slices, each with the cursor of the one before.
    async fn go(&self, link: Link, slice: impl Fn(&[u8]) -> Cmd) {
        let mut cursor = b"0".to_vec();
        loop {
            if self.is_stopping() {
                let mut progress = lock(&self.progress);
                progress.stopped = true;
                progress.ended = true;
                return;
            }
            match link.ask(&self.board, slice(&cursor)).await {
                Ok(reply) => {
                    let reply = list(reply);
                    let held = list(reply.get(2).cloned().unwrap_or_default());
                    let mut progress = lock(&self.progress);
                    progress.done += reply.first().and_then(int).unwrap_or(0);
                    progress.held_count += held.len();
                    let room = HELD_SHOWN.saturating_sub(progress.held.len());
                    progress.held.extend(held.iter().take(room).map(text));
                    cursor = reply.get(1).map(bytes).unwrap_or_else(|| b"0".to_vec());
                    if cursor == b"0" {
                        progress.ended = true;
                        return;
                    }
                }
                Err(failure) => {
                    let mut progress = lock(&self.progress);
                    progress.failure = Some(failure);
                    progress.ended = true;
                    return;
                }
            }
        }
    }
}

/// Those of a session.
#[derive(Default)]
pub struct Runs {
    known: Mutex<(usize, VecDeque<Arc<Run>>)>,
    is_over: Arc<AtomicBool>,
}

impl Runs {
    /// Ends all after the slice at hand, and whatever begins later before its first.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Begins one. `slice` makes the command of a slice from a cursor.
    pub fn begin(
        &self,
        link: Link,
        board: Vec<u8>,
        title: String,
        words: String,
        slice: impl Fn(&[u8]) -> Cmd + Send + Sync + 'static,
    ) -> Arc<Run> {
        let mut known = lock(&self.known);
        known.0 += 1;
        let run = Arc::new(Run {
            id: known.0,
            board,
            title,
            words,
            progress: Mutex::default(),
            stopping: AtomicBool::new(false),
            is_over: Arc::clone(&self.is_over),
        });
        known.1.push_back(Arc::clone(&run));
        if known.1.len() > KEPT {
            known.1.pop_front();
        }
        let going = Arc::clone(&run);
        tokio::spawn(async move { going.go(link, slice).await });
        run
    }

    pub fn get(&self, id: usize) -> Option<Arc<Run>> {
        lock(&self.known).1.iter().find(|run| run.id == id).cloned()
    }
}
