//! Clients that wait for work: for each board a line in the order of arrival, each client with its
//! own queues. Finding the first client for a job of a queue costs O(log waiters). A quiet worker
//! keeps its number and waits outside the line. Clients that wait for several jobs at once stand
//! apart, in [`Batches`].

use std::collections::{BTreeSet, HashMap};

use board::{Claim, Order};

use crate::replies::endings::Ending;
use crate::replies::records::Shape;
use crate::runtime::batch_queue::{Batch, Batches, Name};

/// A board's database and key.
pub type BoardKey = (i32, Vec<u8>);

/// A claim that found nothing and waits.
pub struct Wait {
    /// The worker's name.
    pub worker: Vec<u8>,
    /// The queues; empty for every queue. While it waits, clients share equal names.
    pub queues: Vec<Name>,
    /// The order in which it asks them.
    pub order: Order,
    /// The most jobs.
    pub count: usize,
    /// When it is served, if it waits for several jobs at once.
    pub batch: Option<Batch>,
    /// Whether its time is over, and it takes what there is.
    pub over: bool,
    /// The lease, ms.
    pub lease: Option<i64>,
    /// The connection that carries the claims, if they are session claims.
    pub session: Option<u64>,
    /// What to return of each job.
    pub shape: Shape,
    /// The reply to the end of work in the same command, to be written with that of the claim.
    pub ending: Option<Ending>,
}

/// One blocked claim.
pub struct Waiter<H> {
    /// The server's handle of the blocked client.
    pub handle: H,
    /// The board.
    pub place: BoardKey,
    /// What it waits for.
    pub wait: Wait,
}

impl Wait {
    /// Calls `work` with the claim that it waits for.
    pub fn with_claim<R>(&self, work: impl FnOnce(&Claim<'_>) -> R) -> R {
        let queues: Vec<&[u8]> = self.queues.iter().map(|q| &**q).collect();
        work(&Claim { worker: &self.worker, queues: &queues, order: self.order, lease: self.lease })
    }
}

#[derive(Default)]
struct WaitQueue {
    any: BTreeSet<u64>,
    queues: HashMap<Name, BTreeSet<u64>>,
    /// Clients that are not in line for now.
    aside: BTreeSet<u64>,
    /// Clients that wait for several jobs at once.
    batches: Option<Box<Batches>>,
}

impl WaitQueue {
    fn is_empty(&self) -> bool {
        self.any.is_empty() && self.queues.is_empty() && self.aside.is_empty() && self.batches.is_none()
    }
}

/// All blocked claims. Numbers rise in the order of arrival.
pub struct Waiters<H> {
    waiters: HashMap<u64, Waiter<H>>,
    lines: HashMap<BoardKey, WaitQueue>,
    /// How many clients wait for several jobs at once.
    batching: usize,
}

impl<H> Default for Waiters<H> {
    fn default() -> Self {
        Waiters { waiters: HashMap::new(), lines: HashMap::new(), batching: 0 }
    }
}

impl<H> Waiters<H> {
    /// How many clients wait.
    pub fn len(&self) -> usize {
        self.waiters.len()
    }

    /// Adds a client under a number of its own.
    pub fn add(&mut self, number: u64, mut waiter: Waiter<H>) {
        let line = self.lines.entry(waiter.place.clone()).or_default();
        if let Some(batch) = &waiter.wait.batch {
            line.batches.get_or_insert_default().add(number, &mut waiter.wait.queues, batch);
            self.batching += 1;
            self.waiters.insert(number, waiter);
            return;
        }
        if waiter.wait.queues.is_empty() {
            line.any.insert(number);
        }
        for queue in &mut waiter.wait.queues {
            if let Some((name, _)) = line.queues.get_key_value(queue) {
                *queue = name.clone();
            }
            line.queues.entry(queue.clone()).or_default().insert(number);
        }
        self.waiters.insert(number, waiter);
    }

    /// Removes a client, if it still waits.
    pub fn remove(&mut self, number: u64) -> Option<Waiter<H>> {
        let waiter = self.waiters.remove(&number)?;
        if let Some(line) = self.lines.get_mut(&waiter.place) {
            let aside = line.aside.remove(&number);
            if waiter.wait.batch.is_some() && !aside {
                self.batching -= 1;
                if let Some(batches) = &mut line.batches {
                    batches.remove(number);
                }
                line.batches.take_if(|batches| batches.is_empty());
            }
            line.any.remove(&number);
            for queue in &waiter.wait.queues {
                if let Some(numbers) = line.queues.get_mut(queue) {
                    numbers.remove(&number);
                    if numbers.is_empty() {
                        line.queues.remove(queue);
                    }
                }
            }
            if line.is_empty() {
                self.lines.remove(&waiter.place);
            }
        }
        Some(waiter)
    }

    /// Lets a client wait outside the line until [`Waiters::rejoin`].
    pub fn set_aside(&mut self, number: u64, waiter: Waiter<H>) {
        self.lines.entry(waiter.place.clone()).or_default().aside.insert(number);
        self.waiters.insert(number, waiter);
    }

    /// Returns the clients that wait outside the line of this board to their positions in it.
    pub fn rejoin(&mut self, place: &BoardKey) {
        let aside = self.lines.get_mut(place).map(|line| std::mem::take(&mut line.aside));
        for number in aside.unwrap_or_default() {
            if let Some(waiter) = self.waiters.remove(&number) {
                self.add(number, waiter);
            }
        }
    }

    /// Removes and returns all clients in line for this board.
    pub fn all_at(&mut self, place: &BoardKey) -> Vec<(u64, Waiter<H>)> {
        let Some(line) = self.lines.get(place) else { return Vec::new() };
        let batches = line.batches.iter().flat_map(|batches| batches.clients());
        let plain = line.queues.values().flatten().chain(&line.any).copied();
        let numbers: BTreeSet<u64> = plain.chain(batches).collect();
        numbers.into_iter().filter_map(|number| Some((number, self.remove(number)?))).collect()
    }

    /// Whether any client waits for this board.
    pub fn waits_for(&self, place: &BoardKey) -> bool {
        self.lines.contains_key(place)
    }

    /// The first client in line that names this queue.
    pub fn first_naming(&self, place: &BoardKey, queue: &[u8]) -> Option<u64> {
        self.lines.get(place)?.queues.get(queue)?.first().copied()
    }

    /// The first client in line for jobs of every queue.
    pub fn first_for_any(&self, place: &BoardKey) -> Option<u64> {
        self.lines.get(place)?.any.first().copied()
    }

    /// How many clients wait for a job of this queue.
    pub fn count_for(&self, place: &BoardKey, queue: &[u8]) -> usize {
        let Some(line) = self.lines.get(place) else { return 0 };
        let batches = line.batches.as_ref().map_or(0, |batches| batches.count_for(queue));
        line.any.len() + line.queues.get(queue).map_or(0, BTreeSet::len) + batches
    }

    /// Whether any client waits for several jobs at once. O(1).
    pub fn has_batches(&self) -> bool {
        self.batching > 0
    }

    /// The clients that wait for several jobs of this board at once.
    pub fn batches(&mut self, place: &BoardKey) -> Option<&mut Batches> {
        self.lines.get_mut(place)?.batches.as_deref_mut()
    }

    /// The time of a client is over. Returns the board that it waits for, if it still waits for
    /// several jobs at once.
    pub fn end_batch(&mut self, number: u64) -> Option<BoardKey> {
        let waiter = self.waiters.get_mut(&number).filter(|waiter| waiter.wait.batch.is_some())?;
        waiter.wait.over = true;
        Some(waiter.place.clone())
    }

    /// The boards for which clients wait.
    pub fn places(&self) -> impl Iterator<Item = &BoardKey> {
        self.lines.keys()
    }
}
