//! Offering the jobs of queues to the clients in line for them.
//!
//! Clients are asked in the order of their arrival, whichever queue they wait for, and only while one
//! of these queues gives a job. One that finds nothing all the same shows that none of its queues has
//! a job for anybody, and one for which every queue will do shows that of all queues. So an offer
//! costs no more than a look at each of its queues, what the clients take, and one look at the queues
//! of each that is asked.

use std::collections::BTreeMap;

/// What came of asking a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// It has left the line.
    Left,
    /// It has found nothing, and stays in line.
    Nothing,
    /// It was not asked: this turn has looked at enough queues.
    Enough,
}

/// The clients that wait in line, and the queues for which they wait.
pub trait Line {
    /// The first client that names this queue.
    fn first_naming(&self, queue: &[u8]) -> Option<u64>;

    /// The first client that waits for every queue.
    fn first_for_any(&self) -> Option<u64>;

    /// Whether a queue gives a job now.
    fn gives(&mut self, queue: &[u8]) -> bool;

    /// Whether any queue gives a job now.
    fn any_gives(&mut self) -> bool;

    /// Asks a client whether there is a job for it.
    fn ask(&mut self, client: u64) -> Asked;
}

/// Queues that have got jobs.
#[derive(Default)]
struct Offer {
    /// By the first client that names them.
    heads: BTreeMap<u64, Vec<Vec<u8>>>,
    /// Those that no client in line names.
    others: Vec<Vec<u8>>,
}

/// Offers what these queues give, until nothing is left for the clients or the turn has had enough;
/// returns the queues that may have jobs for others then.
pub fn offer(queues: Vec<Vec<u8>>, line: &mut impl Line) -> Vec<Vec<u8>> {
    let mut offer = Offer::default();
    offer.add(queues, line);
    loop {
        let any = line.first_for_any();
        let named = offer.heads.first_key_value().map(|(client, _)| *client);
        let Some(client) = named.into_iter().chain(any).min() else { break };
        let is_any = any == Some(client);
        let gives = match is_any {
            // When one queue gives jobs again, others that were not offered may.
            true => line.any_gives() || offer.gives(line),
            false => offer.gives_to(client, line),
        };
        match if gives { line.ask(client) } else { Asked::Nothing } {
            Asked::Enough => {
                offer.others.extend(offer.heads.into_values().flatten());
                return offer.others;
            }
            Asked::Nothing if is_any => break,
            Asked::Nothing => drop(offer.heads.remove(&client)),
            Asked::Left => {
                let queues = offer.heads.remove(&client).unwrap_or_default();
                offer.add(queues, line);
            }
        }
    }
    Vec::new()
}

impl Offer {
    fn add(&mut self, queues: Vec<Vec<u8>>, line: &impl Line) {
        for queue in queues {
            match line.first_naming(&queue) {
                Some(client) => self.heads.entry(client).or_default().push(queue),
                None => self.others.push(queue),
            }
        }
    }

    /// Whether any of the queues of which a client is the first gives a job. Forgets those that do not:
    /// nobody gets a job from them in this turn.
    fn gives_to(&mut self, client: u64, line: &mut impl Line) -> bool {
        self.heads.get_mut(&client).is_some_and(|queues| gives(queues, line))
    }

    /// The same for all queues.
    fn gives(&mut self, line: &mut impl Line) -> bool {
        if gives(&mut self.others, line) {
            return true;
        }
        while let Some(mut first) = self.heads.first_entry() {
            if gives(first.get_mut(), line) {
                return true;
            }
            first.remove();
        }
        false
    }
}

/// Drops queues from the end until one gives a job.
fn gives(queues: &mut Vec<Vec<u8>>, line: &mut impl Line) -> bool {
    while let Some(queue) = queues.last() {
        if line.gives(queue) {
            return true;
        }
        queues.pop();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Jobs by queue, and clients in line, each with its queues; none stands for every queue.
    #[derive(Default)]
    struct World {
        jobs: BTreeMap<Vec<u8>, usize>,
        line: BTreeMap<u64, Vec<Vec<u8>>>,
        asked: Vec<u64>,
        /// The most clients that may be asked.
        most: usize,
        /// Whether a look at a queue finds jobs that no claim does.
        deceives: bool,
    }

    impl Line for World {
        fn first_naming(&self, queue: &[u8]) -> Option<u64> {
            let names = |names: &Vec<Vec<u8>>| names.iter().any(|name| name == queue);
            self.line.iter().find(|(_, queues)| names(queues)).map(|(client, _)| *client)
        }

        fn first_for_any(&self) -> Option<u64> {
            self.line.iter().find(|(_, queues)| queues.is_empty()).map(|(client, _)| *client)
        }

        fn gives(&mut self, queue: &[u8]) -> bool {
            self.deceives || self.jobs.get(queue).is_some_and(|n| *n > 0)
        }

        fn any_gives(&mut self) -> bool {
            self.deceives || self.jobs.values().any(|n| *n > 0)
        }

        fn ask(&mut self, client: u64) -> Asked {
            if self.asked.len() == self.most {
                return Asked::Enough;
            }
            self.asked.push(client);
            let queues = &self.line[&client];
            let fits = |queue: &Vec<u8>| queues.is_empty() || queues.contains(queue);
            let found = self.jobs.iter_mut().find(|(queue, n)| **n > 0 && fits(queue));
            let Some((_, n)) = found else { return Asked::Nothing };
            *n -= 1;
            self.line.remove(&client);
            Asked::Left
        }
    }

    fn queue(n: usize) -> Vec<u8> {
        format!("q{n}").into_bytes()
    }

    #[test]
    fn nobody_is_asked_while_no_queue_gives_a_job() {
        let all: Vec<Vec<u8>> = (0..500).map(queue).collect();
        let line = BTreeMap::from([(1, all.clone()), (2, Vec::new()), (3, vec![queue(7)])]);
        let mut world = World { line, most: usize::MAX, ..World::default() };
        assert!(offer(all.clone(), &mut world).is_empty());
        assert!(world.asked.is_empty());
        world.jobs.insert(queue(7), 1);
        assert!(offer(all, &mut world).is_empty());
        assert_eq!(world.asked, [1], "the others have nothing to be asked for");
    }

    #[test]
    fn a_client_that_finds_nothing_is_asked_once_however_many_queues_it_names() {
        let all: Vec<Vec<u8>> = (0..500).map(queue).collect();
        let line = BTreeMap::from([(1, all[..400].to_vec()), (2, Vec::new()), (3, all.clone())]);
        let mut world = World { line, most: usize::MAX, deceives: true, ..World::default() };
        assert!(offer(all, &mut world).is_empty());
        assert_eq!(world.asked, [1, 2], "if there is none for the second, there is none for anybody");
    }

    #[test]
    fn clients_are_served_in_the_order_of_arrival() {
        let line = BTreeMap::from([
            (1, vec![queue(9)]),
            (2, Vec::new()),
            (3, vec![queue(1), queue(2)]),
            (4, vec![queue(2)]),
            (5, Vec::new()),
            (6, Vec::new()),
        ]);
        let jobs = BTreeMap::from([(queue(1), 1), (queue(2), 2), (queue(3), 1)]);
        let mut world = World { jobs, line, most: usize::MAX, ..World::default() };
        assert!(offer((0..4).map(queue).collect(), &mut world).is_empty());
        assert_eq!(world.asked, [2, 3, 4, 5]);
        assert_eq!(world.line.keys().copied().collect::<Vec<_>>(), [1, 6]);
    }

    #[test]
    fn who_waits_for_every_queue_gets_the_jobs_of_those_that_were_not_offered() {
        let line = BTreeMap::from([(1, Vec::new()), (2, Vec::new()), (3, Vec::new())]);
        let jobs = BTreeMap::from([(queue(1), 1), (queue(2), 1)]);
        let mut world = World { jobs, line, most: usize::MAX, ..World::default() };
        assert!(offer(vec![queue(9)], &mut world).is_empty());
        assert_eq!(world.asked, [1, 2]);
    }

    #[test]
    fn what_is_left_after_enough_serves_the_others_later() {
        let clients = 100;
        let line =
            (0..clients).map(|n| (n, if n % 3 == 0 { Vec::new() } else { vec![queue(n as usize % 7)] }));
        let jobs = (0..7).map(|n| (queue(n), 50)).collect();
        let mut world = World { jobs, line: line.collect(), ..World::default() };
        let mut left: Vec<Vec<u8>> = (0..7).map(queue).collect();
        for most in [10, 50, 90] {
            world.most = most;
            left = offer(left, &mut world);
            assert_eq!(left.iter().collect::<BTreeSet<_>>().len(), 7);
        }
        world.most = usize::MAX;
        offer(left, &mut world);
        assert_eq!(world.asked, (0..clients).collect::<Vec<_>>());
    }
}
