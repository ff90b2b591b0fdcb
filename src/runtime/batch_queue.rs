//! Clients that wait for several jobs at once (`MIN`), of one board. They stand apart from the line
//! of the other clients, which pay nothing for them.
//!
//! Clients with the same queues, minimum and linger time are a class: they see the same jobs, so
//! only the first of a class is ever looked at. A class has a mark at each of its queues: as long as
//! each queue has fewer jobs than the mark, they have too few together. So a queue that gets jobs
//! calls only for the classes whose marks it has reached, and a look at a class puts its marks above
//! what is there. One turn looks at [`LOOKS`] queues; what it does not reach waits for the next turn.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::rc::Rc;

use board::NEVER;

/// How many queues one turn looks at, or those of one class if that names more.
pub const LOOKS: usize = 64;

/// The name of a queue, kept once for all classes that name it.
pub type Name = Rc<[u8]>;

/// Stands for every queue, among the names: no queue is called so.
const EVERY: &[u8] = b"";

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
pub struct Terms {
    /// Its queues, each once; or [`EVERY`].
    queues: Rc<[Name]>,
    /// How many jobs they must have.
    pub least: usize,
    linger: Option<i64>,
}

impl Terms {
    /// Its queues, each once, as a claim names them: none stands for every queue.
    pub fn names(&self) -> Vec<&[u8]> {
        self.queues.iter().map(|name| &**name).filter(|name| *name != EVERY).collect()
    }

    /// How many jobs each of its queues has. `count` counts the jobs of these queues, up to the
    /// number given.
    pub fn counts(&self, mut count: impl FnMut(&[&[u8]], usize) -> usize) -> Vec<usize> {
        self.queues.iter().map(|name| count(named(&[name]), self.least)).collect()
    }
}

/// This one queue, as a claim names it.
fn named<'a>(one: &'a [&'a [u8]; 1]) -> &'a [&'a [u8]] {
    match one {
        [EVERY] => &[],
        one => one,
    }
}

struct Class {
    terms: Terms,
    /// Its clients in the order of arrival, and since when each waits, Unix ms.
    line: BTreeMap<u64, i64>,
    /// Since when there have been jobs for it, but too few, Unix ms.
    seen: Option<i64>,
    /// When its first client takes what there is, as in [`Batches::ends`].
    end: Option<i64>,
    /// Its mark at each of its queues. While it lingers for no job yet, any job reaches them.
    marks: Vec<usize>,
}

/// A queue that classes name.
#[derive(Default)]
struct Queue {
    /// The marks of the classes that name it.
    marks: BTreeSet<(usize, u64)>,
    /// How many clients wait for it.
    clients: usize,
    /// Whether it has got jobs, and the classes that it calls for are still to be looked at.
    pending: bool,
    /// When it was last without jobs, if it ever was.
    gap: Option<Gap>,
}

/// A time in which a queue has had no jobs.
#[derive(Clone, Copy)]
struct Gap {
    /// Its first and its last moment, as [`Batches::moment`] counts them; `u64::MAX` while it lasts.
    from: u64,
    to: u64,
    /// When it ended, Unix ms; [`NEVER`] while it lasts.
    end: i64,
}

impl Gap {
    fn since(moment: u64) -> Self {
        Gap { from: moment, to: u64::MAX, end: NEVER }
    }
}

/// The clients that wait for batches of one board.
#[derive(Default)]
pub struct Batches {
    classes: BTreeMap<u64, Class>,
    numbers: HashMap<Terms, u64>,
    /// The class of each client.
    class_of: BTreeMap<u64, u64>,
    queues: HashMap<Name, Queue>,
    /// The pending queues, first come first.
    pending: VecDeque<Name>,
    /// When the first client of a class takes what there is, Unix ms.
    ends: BTreeSet<(i64, u64)>,
    /// The number of the last class.
    last: u64,
    /// Counts the times at which a queue got jobs or lost its last.
    moment: u64,
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

    /// How many clients wait for jobs of this queue. O(1).
    pub fn count_for(&self, queue: &[u8]) -> usize {
        [queue, EVERY].into_iter().filter_map(|name| self.queues.get(name)).map(|queue| queue.clients).sum()
    }

    /// Whether any client waits for jobs of every queue. O(1).
    pub fn waits_for_every(&self) -> bool {
        self.queues.get(EVERY).is_some_and(|queue| queue.clients > 0)
    }

    /// Adds a client. Its queues' names become those that all classes share. O(n log classes) for n
    /// queues.
    pub fn add(&mut self, client: u64, queues: &mut [Name], batch: &Batch) {
        for name in queues.iter_mut() {
            *name = self.shared(name).unwrap_or_else(|| name.clone());
        }
        let mut once: BTreeSet<Name> = queues.iter().cloned().collect();
        if once.is_empty() {
            once.insert(self.shared(EVERY).unwrap_or_else(|| EVERY.into()));
        }
        let queues = once.into_iter().collect();
        let terms = Terms { queues, least: batch.least, linger: batch.linger };
        let number = match self.numbers.get(&terms) {
            Some(number) => *number,
            None => self.found(terms),
        };
        if let Some(class) = self.classes.get_mut(&number) {
            class.line.insert(client, batch.since);
            for name in class.terms.queues.iter() {
                self.queues.entry(name.clone()).or_default().clients += 1;
            }
        }
        self.class_of.insert(client, number);
        self.reckon(number);
    }

    fn shared(&self, name: &[u8]) -> Option<Name> {
        self.queues.get_key_value(name).map(|(name, _)| name.clone())
    }

    fn found(&mut self, terms: Terms) -> u64 {
        self.last += 1;
        let number = self.last;
        self.numbers.insert(terms.clone(), number);
        let marks = vec![1; terms.queues.len()];
        for name in terms.queues.iter() {
            self.queues.entry(name.clone()).or_default().marks.insert((1, number));
        }
        let class = Class { terms, line: BTreeMap::new(), seen: None, end: None, marks };
        self.classes.insert(number, class);
        number
    }

    /// Removes a client, if it waits. O(n log classes) for n queues.
    pub fn remove(&mut self, client: u64) {
        let Some(number) = self.class_of.remove(&client) else { return };
        let Some(class) = self.classes.get_mut(&number) else { return };
        class.line.remove(&client);
        let is_over = class.line.is_empty();
        for (name, mark) in class.terms.queues.iter().zip(&class.marks) {
            let Some(queue) = self.queues.get_mut(name) else { continue };
            queue.clients -= 1;
            if is_over {
                queue.marks.remove(&(*mark, number));
            }
            if queue.clients == 0 {
                self.queues.remove(name);
            }
        }
        if !is_over {
            return self.reckon(number);
        }
        let Some(class) = self.classes.remove(&number) else { return };
        if let Some(end) = class.end {
            self.ends.remove(&(end, number));
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

    /// Moves the marks of a class. O(n log classes) for n queues.
    fn mark(&mut self, number: u64, marks: Vec<usize>) {
        let Some(class) = self.classes.get_mut(&number) else { return };
        for ((name, before), mark) in class.terms.queues.iter().zip(&class.marks).zip(&marks) {
            if let Some(queue) = self.queues.get_mut(name).filter(|_| before != mark) {
                queue.marks.remove(&(*before, number));
                queue.marks.insert((*mark, number));
            }
        }
        class.marks = marks;
    }

    /// These queues have got jobs: the next turns look at the classes whose marks they have reached.
    pub fn woke(&mut self, queues: &[Vec<u8>], now: i64) {
        let every = (!queues.is_empty()).then_some(EVERY);
        for name in queues.iter().map(|name| &**name).chain(every) {
            let Some(shared) = self.shared(name) else { continue };
            let Some(queue) = self.queues.get_mut(name) else { continue };
            self.moment += 1;
            if let Some(gap) = queue.gap.as_mut().filter(|gap| gap.to == u64::MAX) {
                (gap.to, gap.end) = (self.moment, now);
            }
            if !std::mem::replace(&mut queue.pending, true) {
                self.pending.push_back(shared);
            }
        }
    }

    /// These queues have no jobs any more; `all`: nor has any other.
    pub fn emptied(&mut self, queues: &[Vec<u8>], all: bool) {
        for name in queues.iter().map(|name| &**name).chain(all.then_some(EVERY)) {
            if let Some(queue) = self.queues.get_mut(name) {
                self.moment += 1;
                queue.gap = Some(Gap::since(self.moment));
            }
        }
    }

    /// The classes to look at in this turn, by their first clients: those that take what there is by
    /// now, and those whose marks pending queues have reached. `count` as for [`Terms::counts`].
    pub fn turn(
        &mut self,
        now: i64,
        mut count: impl FnMut(&[&[u8]], usize) -> usize,
    ) -> BTreeSet<(u64, u64)> {
        let (mut heads, mut left) = (BTreeSet::new(), LOOKS);
        let due = self.ends.range(..=(now, u64::MAX)).map(|(_, class)| *class);
        if !self.admit(due, &mut left, &mut heads) {
            return heads;
        }
        while let Some(name) = self.pending.front().cloned() {
            if let Some(queue) = self.queues.get(&name) {
                let Some(rest) = left.checked_sub(1) else { break };
                left = rest;
                let highest = queue.marks.last().map_or(0, |(mark, _)| *mark);
                let found = count(named(&[&name]), highest);
                let reached = queue.marks.range(..=(found, u64::MAX)).map(|(_, class)| *class);
                if !self.admit(reached, &mut left, &mut heads) {
                    break;
                }
            }
            self.pending.pop_front();
            if let Some(queue) = self.queues.get_mut(&name) {
                queue.pending = false;
            }
        }
        heads
    }

    /// Admits classes to a turn that has so many looks left; false when it has too few for one of
    /// them. The first of a turn has always enough.
    fn admit(
        &self,
        classes: impl Iterator<Item = u64>,
        left: &mut usize,
        heads: &mut BTreeSet<(u64, u64)>,
    ) -> bool {
        for number in classes {
            let Some(class) = self.classes.get(&number) else { continue };
            let Some(head) = class.line.keys().next().map(|first| (*first, number)) else { continue };
            if heads.contains(&head) {
                continue;
            }
            let looks = class.terms.queues.len();
            if looks > *left && !heads.is_empty() {
                return false;
            }
            *left = left.saturating_sub(looks);
            heads.insert(head);
        }
        true
    }

    /// What the clients of a class ask for.
    pub fn terms(&self, class: u64) -> Option<Terms> {
        Some(self.classes.get(&class)?.terms.clone())
    }

    /// The number of the first client of a class.
    pub fn first(&self, class: u64) -> Option<u64> {
        self.classes.get(&class)?.line.keys().next().copied()
    }

    /// When the jobs that a class has in its queues, so many in each, began to come after there were
    /// none in any, Unix ms; `None` when that is not known to have been. O(n) for n queues.
    fn began_anew(&self, terms: &Terms, counts: &[usize]) -> Option<i64> {
        let (mut from, mut to, mut end) = (0, u64::MAX, NEVER);
        for (name, jobs) in terms.queues.iter().zip(counts) {
            let gap = self.queues.get(name).and_then(|queue| queue.gap);
            let gap = gap.or_else(|| (*jobs == 0).then(|| Gap::since(0)))?;
            (from, to) = (gap.from.max(from), gap.to.min(to));
            if *jobs > 0 {
                end = end.min(gap.end);
            }
        }
        (from < to && end < NEVER).then_some(end)
    }

    /// Looks at a class whose queues have `counts` jobs, queue by queue. Returns the first client, if it is
    /// served now.
    pub fn look(&mut self, number: u64, counts: &[usize], now: i64) -> Option<u64> {
        let anew = self.began_anew(&self.classes.get(&number)?.terms, counts);
        let class = self.classes.get_mut(&number)?;
        if let Some(seen) = &mut class.seen {
            *seen = anew.map_or(*seen, |anew| anew.max(*seen));
            self.reckon(number);
        }
        let class = self.classes.get(&number)?;
        let found: usize = counts.iter().sum();
        let is_due = class.end.is_some_and(|end| end <= now);
        let is_served = found >= class.terms.least || (found > 0 && is_due);
        class.line.keys().next().copied().filter(|_| is_served)
    }

    /// The first client of a class waits on, with so many jobs in each of its queues.
    pub fn wait_on(&mut self, number: u64, counts: &[usize], now: i64) {
        let Some(class) = self.classes.get_mut(&number) else { return };
        let found: usize = counts.iter().sum();
        let is_due = class.end.is_some_and(|end| end <= now);
        class.seen = (found > 0 && !is_due).then(|| class.seen.unwrap_or(now));
        for (name, jobs) in class.terms.queues.iter().zip(counts) {
            if let Some(queue) = self.queues.get_mut(name).filter(|queue| *jobs == 0 && queue.gap.is_none()) {
                queue.gap = Some(Gap::since(0));
            }
        }
        let missing = class.terms.least.saturating_sub(found).max(1);
        let more = match class.terms.linger.is_some() && class.seen.is_none() {
            true => 1,
            false => missing.div_ceil(counts.len().max(1)),
        };
        self.reckon(number);
        self.mark(number, counts.iter().map(|jobs| jobs + more).collect());
    }

    /// A client has just come: there are jobs for it, or none.
    pub fn came(&mut self, client: u64, batch: &Batch) {
        let Some(number) = self.class_of.get(&client).copied() else { return };
        if !batch.sees {
            return self.forget_jobs(number);
        }
        if let Some(class) = self.classes.get_mut(&number) {
            class.seen.get_or_insert(batch.since);
        }
        self.reckon(number);
    }

    /// There are no jobs for a class: the next one calls for it.
    fn forget_jobs(&mut self, number: u64) {
        let Some(class) = self.classes.get_mut(&number) else { return };
        class.seen = None;
        let queues = class.terms.queues.len();
        if class.terms.linger.is_some() {
            self.mark(number, vec![1; queues]);
        }
        self.reckon(number);
    }

    /// There is another board now, on which no class has seen a job.
    pub fn forget(&mut self) {
        let seen = self.classes.iter().filter(|(_, class)| class.seen.is_some()).map(|(number, _)| *number);
        for number in seen.collect::<Vec<_>>() {
            self.forget_jobs(number);
        }
    }

    /// Whether a turn has left something to the next.
    pub fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// When the next client takes what there is, Unix ms.
    pub fn next_end(&self) -> Option<i64> {
        self.ends.first().map(|(end, _)| *end)
    }
}

#[cfg(test)]
mod tests;
