//! Clients that wait for several jobs at once (`MIN`), of one board. They stand apart from the line
//! of the other clients, which pay nothing for them.
//!
//! Clients with the same queues, minimum and linger time are a class: they see the same jobs, so
//! only the first of a class is ever looked at. A change costs O(classes that name its queues).

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// When a claim for a batch is served.
#[derive(Debug, Clone, Copy)]
pub struct Batch {
    /// Its queues must have this many jobs.
    pub least: usize,
    /// Or it takes what there is, so many ms after it first saw a job.
    pub linger: Option<i64>,
    /// Since when it waits, Unix ms.
    pub since: i64,
    /// Whether there were jobs when it came, but too few.
    pub sees: bool,
}

/// What the clients of a class have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Terms {
    /// Each once; empty for every queue.
    queues: Vec<Vec<u8>>,
    least: usize,
    linger: Option<i64>,
}

struct Class {
    terms: Terms,
    /// Its clients in the order of arrival, and since when each waits, Unix ms.
    line: BTreeMap<u64, i64>,
    /// Since when there have been jobs for it, but too few, Unix ms.
    seen: Option<i64>,
    /// When its first client takes what there is, as in [`Batches::ends`].
    end: Option<i64>,
}

/// The first client of a class.
pub struct Head {
    /// Its number.
    pub number: u64,
    /// Its queues, each once; empty for every queue.
    pub queues: Vec<Vec<u8>>,
    /// How many jobs they must have.
    pub least: usize,
    /// Whether it takes what there is.
    pub is_due: bool,
}

/// The clients that wait for batches of one board.
#[derive(Default)]
pub struct Batches {
    classes: BTreeMap<u64, Class>,
    numbers: HashMap<Terms, u64>,
    /// The class of each client.
    class_of: BTreeMap<u64, u64>,
    by_queue: HashMap<Vec<u8>, BTreeSet<u64>>,
    /// The classes that wait for every queue.
    any: BTreeSet<u64>,
    /// When the first client of a class takes what there is, Unix ms.
    ends: BTreeSet<(i64, u64)>,
    /// The number of the last class.
    last: u64,
}

impl Batches {
    /// Whether no client waits.
    pub fn is_empty(&self) -> bool {
        self.class_of.is_empty()
    }

    /// The numbers of all clients.
    pub fn clients(&self) -> impl Iterator<Item = u64> + '_ {
        self.class_of.keys().copied()
    }

    /// How many clients wait for jobs of this queue. O(classes that name it).
    pub fn count_for(&self, queue: &[u8]) -> usize {
        let named = self.by_queue.get(queue).into_iter().flatten();
        named.chain(&self.any).filter_map(|class| self.classes.get(class)).map(|class| class.line.len()).sum()
    }

    /// Adds a client.
    pub fn add(&mut self, client: u64, queues: &[Vec<u8>], batch: &Batch) {
        let once: BTreeSet<&Vec<u8>> = queues.iter().collect();
        let queues = once.into_iter().cloned().collect();
        let terms = Terms { queues, least: batch.least, linger: batch.linger };
        let number = match self.numbers.get(&terms) {
            Some(number) => *number,
            None => self.found(terms),
        };
        if let Some(class) = self.classes.get_mut(&number) {
            class.line.insert(client, batch.since);
        }
        self.class_of.insert(client, number);
        self.reckon(number);
    }

    fn found(&mut self, terms: Terms) -> u64 {
        self.last += 1;
        let number = self.last;
        self.numbers.insert(terms.clone(), number);
        if terms.queues.is_empty() {
            self.any.insert(number);
        }
        for queue in &terms.queues {
            self.by_queue.entry(queue.clone()).or_default().insert(number);
        }
        let class = Class { terms, line: BTreeMap::new(), seen: None, end: None };
        self.classes.insert(number, class);
        number
    }

    /// Removes a client, if it waits.
    pub fn remove(&mut self, client: u64) {
        let Some(number) = self.class_of.remove(&client) else { return };
        let Some(class) = self.classes.get_mut(&number) else { return };
        class.line.remove(&client);
        if !class.line.is_empty() {
            return self.reckon(number);
        }
        let Some(class) = self.classes.remove(&number) else { return };
        if let Some(end) = class.end {
            self.ends.remove(&(end, number));
        }
        self.any.remove(&number);
        for queue in &class.terms.queues {
            if let Some(numbers) = self.by_queue.get_mut(queue) {
                numbers.remove(&number);
                if numbers.is_empty() {
                    self.by_queue.remove(queue);
                }
            }
        }
        self.numbers.remove(&class.terms);
    }

    /// Computes when the first client of a class takes what there is. O(log classes).
    fn reckon(&mut self, number: u64) {
        let Some(class) = self.classes.get_mut(&number) else { return };
        let first = class.line.values().next().copied();
        let end = match (class.terms.linger, class.seen, first) {
            (Some(linger), Some(seen), Some(since)) => Some(seen.max(since).saturating_add(linger)),
            _ => None,
        };
        if end == class.end {
            return;
        }
        if let Some(before) = std::mem::replace(&mut class.end, end) {
            self.ends.remove(&(before, number));
        }
        self.ends.extend(end.map(|end| (end, number)));
    }

    /// The first clients, and their classes, of the classes for which these queues may have jobs,
    /// and of those that take what there is by now.
    pub fn candidates(&self, queues: &[Vec<u8>], now: i64) -> BTreeSet<(u64, u64)> {
        let named = queues.iter().filter_map(|queue| self.by_queue.get(queue)).flatten();
        let any = self.any.iter().filter(|_| !queues.is_empty());
        let due = self.ends.range(..=(now, u64::MAX)).map(|(_, class)| class);
        let all: BTreeSet<u64> = named.chain(any).chain(due).copied().collect();
        all.into_iter().filter_map(|class| Some((self.first(class)?, class))).collect()
    }

    /// The classes that wait for one of these queues and have seen a job.
    pub fn that_saw(&self, queues: &[Vec<u8>]) -> BTreeSet<u64> {
        let named = queues.iter().filter_map(|queue| self.by_queue.get(queue)).flatten();
        let all = named.chain(&self.any).copied();
        all.filter(|class| self.classes.get(class).is_some_and(|class| class.seen.is_some())).collect()
    }

    /// The queues of a class.
    pub fn queues_of(&self, class: u64) -> Option<Vec<Vec<u8>>> {
        Some(self.classes.get(&class)?.terms.queues.clone())
    }

    /// The number of the first client of a class.
    pub fn first(&self, class: u64) -> Option<u64> {
        self.classes.get(&class)?.line.keys().next().copied()
    }

    /// The first client of a class.
    pub fn head(&self, class: u64, now: i64) -> Option<Head> {
        let number = self.first(class)?;
        let Class { terms, end, .. } = self.classes.get(&class)?;
        let is_due = end.is_some_and(|end| end <= now);
        Some(Head { number, queues: terms.queues.clone(), least: terms.least, is_due })
    }

    /// A client has just come: there are jobs for it, or none.
    pub fn came(&mut self, client: u64, batch: &Batch) {
        if let Some(class) = self.class_of.get(&client).copied() {
            self.saw(class, batch.sees.then_some(batch.since));
        }
    }

    /// There are jobs for a class now, but too few; or none, without a time.
    pub fn saw(&mut self, class: u64, at: Option<i64>) {
        if let Some(class) = self.classes.get_mut(&class) {
            class.seen = at.map(|at| class.seen.unwrap_or(at));
        }
        self.reckon(class);
    }

    /// There is another board now, on which no class has seen a job.
    pub fn forget(&mut self) {
        let seen = self.classes.iter().filter(|(_, class)| class.seen.is_some()).map(|(number, _)| *number);
        for number in seen.collect::<Vec<_>>() {
            self.saw(number, None);
        }
    }

    /// When the next client takes what there is, Unix ms.
    pub fn next_end(&self) -> Option<i64> {
        self.ends.first().map(|(end, _)| *end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(least: usize, linger: i64, since: i64) -> Batch {
        Batch { least, linger: Some(linger), since, sees: false }
    }

    fn queue() -> Vec<Vec<u8>> {
        vec![b"q".to_vec()]
    }

    #[test]
    fn clients_that_ask_for_the_same_are_one_class() {
        let mut all = Batches::default();
        for client in 1..=100 {
            all.add(client, &queue(), &batch(3, 50, 0));
        }
        all.add(101, &queue(), &batch(4, 50, 0));
        let found: Vec<u64> = all.candidates(&queue(), 0).into_iter().map(|(client, _)| client).collect();
        assert_eq!(found, [1, 101]);
        assert_eq!(all.count_for(b"q"), 101);
        (1..=101).for_each(|client| all.remove(client));
        assert!(all.is_empty() && all.numbers.is_empty() && all.by_queue.is_empty());
    }

    #[test]
    fn a_client_lingers_since_it_first_saw_a_job_and_not_before_it_came() {
        let mut all = Batches::default();
        all.add(1, &queue(), &batch(3, 50, 0));
        all.add(2, &queue(), &batch(3, 50, 30));
        let (_, class) = all.candidates(&queue(), 10).pop_first().expect("a class waits for the queue");
        all.saw(class, Some(10));
        all.saw(class, Some(20));
        assert_eq!(all.next_end(), Some(60));
        all.remove(1);
        assert_eq!(all.next_end(), Some(80));
        assert!(!all.head(class, 79).expect("a client waits").is_due);
        assert!(all.head(class, 80).expect("a client waits").is_due);
        all.saw(class, None);
        assert_eq!(all.next_end(), None);
    }

    #[test]
    fn a_queue_named_twice_counts_once() {
        let mut all = Batches::default();
        all.add(1, &[b"q".to_vec(), b"q".to_vec()], &batch(2, 50, 0));
        let class = all.candidates(&queue(), 0).pop_first().expect("a class waits for the queue").1;
        assert_eq!(all.head(class, 0).expect("a client waits").queues, queue());
    }
}
