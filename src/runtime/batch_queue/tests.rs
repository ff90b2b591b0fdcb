use super::*;

fn batch(least: usize, linger: Option<i64>, since: i64) -> Batch {
    Batch { least, linger, since, sees: false }
}

fn name(number: usize) -> Vec<u8> {
    format!("q{number}").into_bytes()
}

fn queue() -> Vec<Vec<u8>> {
    vec![b"q".to_vec()]
}

/// Queues with jobs, the clients that wait for them, and how often a queue has been looked at.
#[derive(Default)]
struct Hall {
    all: Batches,
    jobs: HashMap<Vec<u8>, usize>,
    looks: usize,
}

impl Hall {
    fn wait(&mut self, client: u64, queues: &[Vec<u8>], least: usize, linger: Option<i64>) {
        self.wait_since(client, queues, least, linger, 0);
    }

    fn wait_since(&mut self, client: u64, queues: &[Vec<u8>], least: usize, linger: Option<i64>, at: i64) {
        let mut names: Vec<Name> = queues.iter().map(|name| Name::from(&name[..])).collect();
        self.all.add(client, &mut names, &batch(least, linger, at));
    }

    fn post(&mut self, queue: &[u8], jobs: usize, now: i64) -> Vec<u64> {
        *self.jobs.entry(queue.to_vec()).or_default() += jobs;
        self.all.woke(&[queue.to_vec()], now);
        self.turn(now)
    }

    /// Other clients take all jobs of a queue.
    fn empty(&mut self, queue: &[u8]) {
        self.jobs.remove(queue);
        self.all.emptied(&[queue.to_vec()], self.jobs.is_empty());
    }

    /// One turn, as on a board. Returns who was served, and with how many looks it was done.
    fn turn(&mut self, now: i64) -> Vec<u64> {
        let Hall { all, jobs, looks } = self;
        *looks = 0;
        let mut count = |names: &[&[u8]], most: usize| {
            *looks += 1;
            let found = match names {
                [] => jobs.values().sum(),
                names => names.iter().filter_map(|name| jobs.get(*name)).sum::<usize>(),
            };
            found.min(most)
        };
        let mut heads = all.turn(now, &mut count);
        let mut served = Vec::new();
        while let Some((_, class)) = heads.pop_first() {
            let terms = all.terms(class).expect("the class of a turn has clients");
            let counts = terms.counts(|names, most| {
                *looks += 1;
                let found = match names {
                    [] => jobs.values().sum(),
                    names => names.iter().filter_map(|name| jobs.get(*name)).sum::<usize>(),
                };
                found.min(most)
            });
            match all.look(class, &counts, now) {
                Some(client) => {
                    all.remove(client);
                    served.push(client);
                    let mut left = terms.least;
                    let names: Vec<Vec<u8>> = match &terms.names()[..] {
                        [] => jobs.keys().cloned().collect(),
                        names => names.iter().map(|name| name.to_vec()).collect(),
                    };
                    for name in names {
                        let Some(jobs) = jobs.get_mut(&name) else { continue };
                        let taken = left.min(*jobs);
                        (*jobs, left) = (*jobs - taken, left - taken);
                    }
                    jobs.retain(|_, jobs| *jobs > 0);
                    heads.extend(all.first(class).map(|next| (next, class)));
                }
                None => all.wait_on(class, &counts, now),
            }
        }
        served
    }
}

#[test]
fn clients_that_ask_for_the_same_are_one_class() {
    let mut hall = Hall::default();
    (1..=100).for_each(|client| hall.wait(client, &queue(), 3, Some(50)));
    hall.wait(101, &queue(), 4, Some(50));
    assert_eq!(hall.all.classes.len(), 2);
    assert_eq!(hall.all.count_for(b"q"), 101);
    (1..=101).for_each(|client| hall.all.remove(client));
    let Batches { classes, numbers, class_of, queues, ends, .. } = &hall.all;
    assert!(classes.is_empty() && numbers.is_empty() && class_of.is_empty());
    assert!(queues.is_empty() && ends.is_empty());
}

#[test]
fn a_post_looks_at_no_class_that_it_does_not_fill() {
    let mut hall = Hall::default();
    (0..1_000).for_each(|client| hall.wait(client, &queue(), client as usize + 500, None));
    // Each class is looked at once after it came, a turn's length at a time.
    hall.post(b"q", 1, 0);
    while hall.all.is_pending() {
        hall.turn(0);
        assert!(hall.looks <= LOOKS);
    }
    for _ in 2..500 {
        assert!(hall.post(b"q", 1, 0).is_empty());
        assert_eq!(hall.looks, 1, "a look at the queue, and none at a class");
    }
    assert_eq!(hall.post(b"q", 1, 0), [0]);
    assert!(hall.looks <= 4);
}

#[test]
fn a_turn_is_bounded_however_many_queues_each_class_names() {
    let mut hall = Hall::default();
    let queues: Vec<Vec<u8>> = (0..100).map(name).collect();
    (0..1_000)
        .for_each(|client| hall.wait(client, &queues, 2 + client as usize % 50, Some(10 + client as i64)));
    let (mut served, mut turns) = (hall.post(b"q7", 60, 0), 1);
    assert!(hall.looks <= 100 + 2, "one class has as many queues as a turn takes looks, and more");
    while hall.all.is_pending() {
        served.extend(hall.turn(0));
        assert!(hall.looks <= 2 * (100 + 2), "{} looks", hall.looks);
        turns += 1;
    }
    assert!(!served.is_empty() && turns < 1_100, "{turns}");
    assert!(hall.jobs.is_empty() || hall.all.classes.values().all(|class| class.seen.is_some()));
}

#[test]
fn whoever_has_enough_is_served_in_the_end_and_nobody_else() {
    let mut state = 1;
    let mut drawn = |below: usize| {
        state = board::mix(state);
        state as usize % below
    };
    for _ in 0..50 {
        let mut hall = Hall::default();
        let mut asks: BTreeMap<u64, (Vec<Vec<u8>>, usize)> = BTreeMap::new();
        for step in 0..300 {
            match drawn(3) {
                0 => {
                    let queues: Vec<Vec<u8>> = (0..drawn(5)).map(|_| name(drawn(6))).collect();
                    let (least, linger) = (2 + drawn(8), (drawn(2) == 0).then_some(1 << 40));
                    hall.wait(step, &queues, least, linger);
                    asks.insert(step, (queues, least));
                    // Who comes with enough there does not wait.
                    let busy: Vec<Vec<u8>> = hall.jobs.keys().cloned().collect();
                    hall.all.woke(&busy, 0);
                }
                1 => hall.empty(&name(drawn(6))),
                _ => {
                    let (queue, jobs) = (name(drawn(6)), 1 + drawn(3));
                    *hall.jobs.entry(queue.clone()).or_default() += jobs;
                    hall.all.woke(&[queue], 0);
                }
            }
            loop {
                hall.turn(0).iter().for_each(|client| drop(asks.remove(client)));
                if !hall.all.is_pending() {
                    break;
                }
            }
            for (client, (queues, least)) in &asks {
                let once: BTreeSet<&Vec<u8>> = queues.iter().collect();
                let found: usize = match once.is_empty() {
                    true => hall.jobs.values().sum(),
                    false => once.iter().filter_map(|name| hall.jobs.get(*name)).sum(),
                };
                assert!(found < *least, "client {client} waits for {least} jobs, and there are {found}");
            }
        }
    }
}

#[test]
fn a_client_lingers_since_it_first_saw_a_job_and_not_before_it_came() {
    let mut hall = Hall::default();
    hall.wait(1, &queue(), 3, Some(50));
    hall.wait_since(2, &queue(), 3, Some(50), 30);
    assert!(hall.post(b"q", 1, 10).is_empty());
    assert!(hall.post(b"q", 1, 20).is_empty());
    assert_eq!(hall.all.next_end(), Some(60));
    hall.all.remove(1);
    assert_eq!(hall.all.next_end(), Some(80));
    assert!(hall.turn(79).is_empty());
    assert_eq!(hall.turn(80), [2]);
}

#[test]
fn a_client_lingers_anew_when_others_have_taken_all_jobs() {
    let mut hall = Hall::default();
    hall.wait(1, &queue(), 3, Some(50));
    hall.post(b"q", 1, 10);
    hall.empty(b"q");
    assert!(hall.turn(60).is_empty());
    assert_eq!(hall.all.next_end(), None);
    hall.post(b"q", 1, 70);
    hall.empty(b"q");
    hall.post(b"q", 1, 90);
    assert!(hall.turn(120).is_empty(), "it has not lingered since 90");
    assert_eq!(hall.all.next_end(), Some(140));
    assert_eq!(hall.turn(140), [1]);
}

#[test]
fn a_job_that_is_left_in_another_queue_keeps_the_time_running() {
    let mut hall = Hall::default();
    hall.wait(1, &[name(1), name(2)], 9, Some(50));
    hall.post(b"q1", 1, 10);
    hall.post(b"q2", 1, 20);
    hall.empty(b"q1");
    hall.post(b"q1", 1, 30);
    hall.empty(b"q2");
    assert_eq!(hall.turn(60), [1], "there have been jobs since 10");
}

#[test]
fn a_job_in_another_queue_than_the_last_begins_anew() {
    let mut hall = Hall::default();
    hall.wait(1, &[name(1), name(2)], 9, Some(50));
    hall.post(b"q1", 1, 10);
    hall.empty(b"q1");
    hall.post(b"q2", 1, 30);
    assert!(hall.turn(60).is_empty(), "there was no job before 30");
    assert_eq!(hall.turn(80), [1]);
}

#[test]
fn a_queue_named_twice_counts_once() {
    let mut hall = Hall::default();
    hall.wait(1, &[b"q".to_vec(), b"q".to_vec()], 2, Some(50));
    assert!(hall.post(b"q", 1, 0).is_empty());
    assert_eq!(hall.all.count_for(b"q"), 1);
    assert_eq!(hall.post(b"q", 1, 0), [1]);
}
