//! Which jobs a slice of a selection takes, one after the other.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::board::Board;
use crate::dispatch::concurrency::Moves;
use crate::env::Env;
use crate::error::Refusal;
use crate::job::unique_key::Unique;
use crate::job::{Extras, State};
use crate::quotas::Growth;
use crate::verbs::selection::{Chosen, Operation, Selection};
use crate::verbs::{CancelAnswer, Requeue, SignalAnswer, Update};

/// The relation of a job to a selection.
enum Stand {
    /// It is not in it, or the operation does not apply to its state.
    Outside,
    /// The operation would be refused.
    Held,
    Inside,
}

/// A slice that is being chosen.
pub(super) struct Slice<'b, 's> {
    board: &'b Board,
    env: &'b Env<'b>,
    selection: &'s Selection<'s>,
    begun: (i64, u64),
    pub(super) chosen: Chosen,
    /// For jobs that wait for others: whether they are chosen.
    verdicts: BTreeMap<u32, bool>,
    looks: usize,
    bytes: usize,
    visited: usize,
    /// Claimed jobs that move to another queue.
    moves: Moves,
    /// What the chosen jobs add, as far as limits are concerned.
    growth: Growth,
    /// Keys that the chosen jobs take again, and how many of them are free now.
    keys: BTreeSet<&'b [u8]>,
    new_keys: usize,
    /// Queues to which the chosen jobs go, and which did not count before.
    queues: BTreeSet<Vec<u8>>,
    /// The queues that do not count although classes refer to them, once one was looked for.
    idle: OnceCell<BTreeSet<u32>>,
}

impl<'b, 's> Slice<'b, 's> {
    /// A slice without jobs; `begun` is when its loop began.
    pub(super) fn new(
        board: &'b Board,
        env: &'b Env<'b>,
        selection: &'s Selection<'s>,
        begun: (i64, u64),
    ) -> Self {
        Slice {
            board,
            env,
            selection,
            begun,
            chosen: Chosen::default(),
            verdicts: BTreeMap::new(),
            looks: selection.filters.most_looks(selection.count),
            bytes: 0,
            visited: 0,
            moves: Moves::default(),
            growth: Growth::default(),
            keys: BTreeSet::new(),
            new_keys: 0,
            queues: BTreeSet::new(),
            idle: OnceCell::new(),
        }
    }

    /// Whether it takes no more jobs.
    pub(super) fn full(&self) -> bool {
        self.chosen.slots.len() + self.chosen.held.len() >= self.selection.count
            || self.looks == 0
            || self.bytes >= self.selection.bytes
    }

    /// Counts a look at a job.
    pub(super) fn look(&mut self, slot: u32) {
        let looks = self.board.record_of(slot).map_or(1, |record| self.selection.filters.looks(&record));
        self.looks = self.looks.saturating_sub(looks);
    }

    fn stand(&self, slot: u32) -> Stand {
        let board = self.board;
        let Some(record) = board.record_of(slot) else { return Stand::Outside };
        let (revision, token) = self.begun;
        if record.seq() > revision || !self.selection.filters.holds(&record) {
            return Stand::Outside;
        }
        let inside = match self.selection.deed {
            Operation::Cancel { force } => match board.cancel(self.env, slot, force) {
                Ok(answer) => answer != CancelAnswer::Already,
                Err(_) => false,
            },
            Operation::Release => record.token().is_some_and(|t| t <= token),
            Operation::Requeue(ref requeue) => {
                let closed = board.extras(slot).map_or(0, |extras| extras.closed);
                let again = board.can_requeue(slot, requeue.to) && closed <= revision;
                if again && !self.can_live(slot, requeue) {
                    return Stand::Held;
                }
                again
            }
            Operation::Delete if board.children(slot).is_some_and(|children| children.live > 0) => {
                return Stand::Held;
            }
            Operation::Delete => true,
            Operation::Signal(signal) => match board.send_signal(slot, signal) {
                Ok(answer) => !matches!(answer, SignalAnswer::Already | SignalAnswer::Ended),
                Err(_) => return Stand::Held,
            },
            Operation::Label(label, _) if board.label(slot, label).is_err() => return Stand::Held,
            Operation::Label(_, None) => true,
            Operation::Update(update) | Operation::Label(_, Some(update)) => {
                if board.extras(slot).is_some_and(|extras| extras.updated > revision) {
                    return Stand::Outside;
                }
                match board.check_update(slot, update) {
                    Ok(()) if !self.has_room(slot, update) => return Stand::Held,
                    Ok(()) if !update.queue.is_none_or(|to| self.growth.fits(board, slot, to)) => {
                        return Stand::Held;
                    }
                    Err(Refusal::Limit(_)) => return Stand::Held,
                    decided => decided.is_ok(),
                }
            }
        };
        match inside {
            true => Stand::Inside,
            false => Stand::Outside,
        }
    }

    /// Whether it may run in its new queue beside the jobs chosen before.
    fn has_room(&self, slot: u32, update: &Update<'_>) -> bool {
        let Some(queue) = update.queue else { return true };
        let mut more = Moves::default();
        more.add(self.board, slot, queue);
        self.moves.fit(self.board, queue, &more)
    }

    /// Whether there is room for a queue beside those of the jobs chosen before.
    fn has_queue(&self, name: &[u8]) -> bool {
        !self.is_new_queue(name) || self.board.has_room_for_queues(self.queues.len() + 1, self.idle())
    }

    /// Whether a queue counts only with the job that goes there.
    fn is_new_queue(&self, name: &[u8]) -> bool {
        let queues = &self.board.queues;
        let counts = |number| queues.refs(number) > 0 && !self.idle().contains(&number);
        !self.queues.contains(name) && !queues.find(name).is_some_and(counts)
    }

    fn idle(&self) -> &BTreeSet<u32> {
        self.idle.get_or_init(|| self.board.idle_queues())
    }

    /// Whether an ended job may be live again beside the jobs chosen before.
    fn can_live(&self, slot: u32, requeue: &Requeue<'_>) -> bool {
        let can_take = |unique: &Unique| {
            let new = usize::from(self.board.is_new_key(&unique.key));
            !self.keys.contains(&*unique.key) && self.board.check_new_keys(self.new_keys + new).is_ok()
        };
        let Some(job) = self.board.store.jobs.get(slot) else { return false };
        let target = self.board.target(slot, requeue.to);
        if target.is_some_and(|name| !self.has_queue(name)) {
            return false;
        }
        let queue = target.unwrap_or(self.board.queue_name(job));
        self.board.unique(slot).filter(|_| !self.board.stays_dead(slot, requeue.to)).is_none_or(can_take)
            && self.board.requeue(self.env, slot, requeue).is_ok()
            && self.growth.fits(self.board, slot, queue)
    }

    fn choose(&mut self, slot: u32) {
        self.chosen.slots.push(slot);
        let board = self.board;
        if let Operation::Requeue(Requeue { to, .. }) = self.selection.deed {
            if let Some(unique) = board.unique(slot).filter(|_| !board.stays_dead(slot, to)) {
                self.new_keys += usize::from(board.is_new_key(&unique.key));
                self.keys.insert(&unique.key);
            }
            let target = board.target(slot, to).filter(|name| self.is_new_queue(name));
            self.queues.extend(target.map(<[u8]>::to_vec));
            self.growth.moves(board, slot, board.target(slot, to));
        }
        let waits_for = self.board.edges(slot).len();
        if waits_for > 0 && self.selection.deed.takes_away() {
            self.verdicts.insert(slot, true);
            self.looks = self.looks.saturating_sub(waits_for);
        }
        if let Operation::Update(update) | Operation::Label(_, Some(update)) = self.selection.deed {
            if let Some(queue) = update.queue {
                self.moves.add(board, slot, queue);
                self.growth.moves(board, slot, Some(queue));
            }
            self.bytes = self.bytes.saturating_add(update.weight());
        }
        if let Operation::Signal(signal) = self.selection.deed {
            self.bytes = self.bytes.saturating_add(signal.weight());
        } else if let Operation::Label(label, _) = self.selection.deed {
            self.bytes = self.bytes.saturating_add(label.weight() + self.board.places.labels.tag_bytes(slot));
        } else if !matches!(self.selection.deed, Operation::Update(_)) {
            self.bytes += self.board.store.jobs.get(slot).map_or(0, |job| job.heap());
        }
    }

    /// Decides on the next job of the walk. Returns false when the slice ends before it.
    pub(super) fn visit(&mut self, slot: u32) -> bool {
        match self.verdicts.get(&slot) {
            Some(false) => self.chosen.held.push(slot),
            // It was chosen with the job that it waits for, unless nothing is to change.
            Some(true) if self.selection.dry => self.choose(slot),
            Some(true) => {}
            None => match self.stand(slot) {
                Stand::Outside => {}
                Stand::Held => self.chosen.held.push(slot),
                Stand::Inside if self.selection.deed.takes_away() && self.board.awaited(slot) => {
                    return self.visit_awaited(slot);
                }
                Stand::Inside => self.choose(slot),
            },
        }
        self.visited += 1;
        true
    }

    /// Decides on a job that others wait for: they are chosen before it.
    fn visit_awaited(&mut self, slot: u32) -> bool {
        match self.waiters_go(slot) {
            Some(true) if self.outlived(slot) => {}
            Some(true) => self.choose(slot),
            Some(false) => self.chosen.held.push(slot),
            // The next slice begins here with all its looks; if this one did, they do not suffice.
            None if self.visited == 0 && self.chosen.slots.is_empty() => self.chosen.held.push(slot),
            None => return false,
        }
        self.visited += 1;
        true
    }

    /// Whether a record is kept only because others wait for it.
    fn outlived(&self, slot: u32) -> bool {
        let state = self.board.store.jobs.get(slot).map(|job| job.state);
        let extras = self.board.extras(slot);
        let over = |extras: &Extras| {
            let pins = extras.pins();
            extras.drop_at <= self.env.now && pins.children == 0 && !pins.parent
        };
        state.is_some_and(State::ended) && extras.is_some_and(over)
    }

    /// Whether all jobs that wait for a job, near and far, are in the selection. Chooses them on
    /// the way, those first for which nobody waits. `None` when the slice is full before that is
    /// known. O(n) for n of them, bounded by the slice.
    fn waiters_go(&mut self, root: u32) -> Option<bool> {
        let mut path = vec![(root, 0)];
        while let Some((slot, from)) = path.last_mut() {
            let awaited = *slot;
            if self.full() {
                return None;
            }
            let Some((seq, waiter)) = self.board.relations.waits.of(awaited, *from).next() else {
                path.pop();
                if awaited != root {
                    self.verdicts.insert(awaited, true);
                    if !self.selection.dry {
                        self.choose(awaited);
                    }
                }
                continue;
            };
            *from = seq + 1;
            self.look(waiter);
            match self.verdicts.get(&waiter) {
                Some(true) => continue,
                None if matches!(self.stand(waiter), Stand::Inside) => path.push((waiter, 0)),
                _ => {
                    self.verdicts.extend(path.iter().map(|(slot, _)| (*slot, false)));
                    return Some(false);
                }
            }
        }
        Some(true)
    }
}
