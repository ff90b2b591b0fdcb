//! Turns at something that may be tried only so often, such as a password: a few at once for each key. Who
//! comes last is next, so that a heap of attempts holds nobody up; of a larger heap the oldest are sent away.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;

use crate::access::sessions::lock;

/// So many of one key have their turn at once.
const AT_ONCE: usize = 2;

/// So many more of one key wait.
const MOST_WAITING: usize = 16;

pub struct Turns<K: Eq + Hash + Clone> {
    lines: Mutex<HashMap<K, Line<K>>>,
}

struct Line<K: Eq + Hash + Clone> {
    running: usize,
    waiting: VecDeque<oneshot::Sender<Turn<K>>>,
}

/// One's turn, until it is dropped.
pub struct Turn<K: Eq + Hash + Clone> {
    /// `None` when it was never given.
    of: Option<(Arc<Turns<K>>, K)>,
}

impl<K: Eq + Hash + Clone> Turns<K> {
    pub fn new() -> Arc<Self> {
        Arc::new(Self { lines: Mutex::default() })
    }

    /// Waits for a turn; `None` when too many have come since.
    pub async fn take(self: &Arc<Self>, key: K) -> Option<Turn<K>> {
        let given = {
            let mut lines = lock(&self.lines);
            let line =
                lines.entry(key.clone()).or_insert_with(|| Line { running: 0, waiting: VecDeque::new() });
            if line.running < AT_ONCE {
                line.running += 1;
                return Some(Turn { of: Some((Arc::clone(self), key)) });
            }
            let (give, given) = oneshot::channel();
            line.waiting.push_back(give);
            if line.waiting.len() > MOST_WAITING {
                line.waiting.pop_front();
            }
            given
        };
        given.await.ok()
    }

    /// Who is next, or nobody: then one fewer has a turn.
    fn next(&self, key: &K) -> Option<oneshot::Sender<Turn<K>>> {
        let mut lines = lock(&self.lines);
        let line = lines.get_mut(key)?;
        let next = line.waiting.pop_back();
        if next.is_none() {
            line.running -= 1;
            if line.running == 0 {
                lines.remove(key);
            }
        }
        next
    }
}

impl<K: Eq + Hash + Clone> Drop for Turn<K> {
    fn drop(&mut self) {
        let Some((turns, key)) = self.of.take() else { return };
        while let Some(next) = turns.next(&key) {
            let turn = Turn { of: Some((Arc::clone(&turns), key.clone())) };
            match next.send(turn) {
                Ok(()) => return,
                // It has gone: nobody has this turn.
                Err(mut turn) => turn.of = None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use std::pin::pin;

    #[tokio::test]
    async fn the_last_to_come_is_next() {
        let turns = Turns::new();
        let (first, _second) = (turns.take("a").await, turns.take("a").await);
        let (mut early, mut late) = (pin!(turns.take("a")), pin!(turns.take("a")));
        assert!(early.as_mut().now_or_never().is_none() && late.as_mut().now_or_never().is_none());
        drop(first);
        let turn = late.now_or_never().flatten();
        assert!(turn.is_some() && early.as_mut().now_or_never().is_none());
        drop(turn);
        assert!(early.now_or_never().flatten().is_some());
    }

    #[tokio::test]
    async fn the_oldest_of_a_heap_is_sent_away_and_other_keys_are_not_held_up() {
        let turns = Turns::new();
        let _running = (turns.take("a").await, turns.take("a").await);
        let mut heap: Vec<_> = (0..60).map(|_| Box::pin(turns.take("a"))).collect();
        assert!(heap.iter_mut().all(|waiting| waiting.as_mut().now_or_never().is_none()));
        let told = heap.iter_mut().map(|waiting| waiting.as_mut().now_or_never());
        let sent_away: Vec<bool> = told.map(|told| matches!(told, Some(None))).collect();
        let expected = (0..60).map(|number| number < 60 - MOST_WAITING);
        assert_eq!(sent_away, expected.collect::<Vec<_>>());
        assert!(turns.take("b").now_or_never().flatten().is_some());
    }

    #[tokio::test]
    async fn who_has_gone_takes_no_turn_along() {
        let turns = Turns::new();
        let running = (turns.take("a").await, turns.take("a").await);
        let mut gone = Box::pin(turns.take("a"));
        let mut told_and_gone = Box::pin(turns.take("a"));
        assert!(gone.as_mut().now_or_never().is_none());
        assert!(told_and_gone.as_mut().now_or_never().is_none());
        drop(gone);
        drop(running);
        drop(told_and_gone);
        assert!(lock(&turns.lines).is_empty());
    }
}
