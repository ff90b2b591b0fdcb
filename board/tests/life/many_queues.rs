//! Claims that name no queue, on boards where thousands of queues have ready jobs: the same jobs as
//! a look at each queue would find, after a few looks.

use board::*;

use crate::site::*;
use crate::world::World;

const QUEUES: usize = 2_000;
/// Enough that candidates are kept.
const FEW: usize = 200;
const GROUPS: [Option<&[u8]>; 4] = [None, None, Some(b"a"), Some(b"b")];
const LIMITS: [&[u8]; 3] = [b"api", b"pace", b"slots"];
const ALL: [Option<&[u8]>; 3] = [None, Some(ALL_GROUPS), Some(b"a")];

/// The name of a queue of this number.
fn queue(n: usize) -> &'static [u8] {
    static NAMES: std::sync::OnceLock<Vec<String>> = std::sync::OnceLock::new();
    NAMES.get_or_init(|| (0..20_000).map(|n| format!("q{n}")).collect())[n].as_bytes()
}

/// Random acts on a board, beside what a look at each queue says of it.
struct Many {
    w: World,
    draws: u64,
    posted: usize,
    running: Vec<String>,
}

impl Many {
    /// A number below `n`.
    fn draw(&mut self, n: usize) -> usize {
        self.draws += 1;
        (mix(self.draws) % n as u64) as usize
    }

    fn queue(&mut self) -> &'static [u8] {
        // Some queues have most of what happens.
        let n = [5, 50, QUEUES][self.draw(3)];
        queue(self.draw(n))
    }

    fn post(&mut self, queue: &'static [u8]) {
        self.posted += 1;
        let (priority, group, cost) = (self.draw(4) as i32, GROUPS[self.draw(4)], self.draw(8) as i64);
        self.w.put_with(&format!("job{}", self.posted), |p| {
            (p.queue, p.group, p.priority) = (Some(queue), group, Some(priority));
            p.options.cost = (cost > 4).then_some(cost - 4);
        });
    }

    /// One of the running jobs, which runs no longer.
    fn end(&mut self) -> Option<String> {
        let n = self.running.len();
        (n > 0).then(|| self.draw(n)).map(|n| self.running.swap_remove(n))
    }

    /// A claim without queues against one that names all of them, which looks at each.
    fn compare(&mut self, what: &str) -> bool {
        let names: Vec<&[u8]> = (0..QUEUES).map(queue).collect();
        let rules = self.w.rules.clone();
        let env = self.w.env(&rules);
        let of = |queues| Claim { worker: ANN, queues, ..Claim::default() };
        let found = self.w.board.claim(&env, &of(&[]), 0).unwrap();
        let wanted = self.w.board.claim(&env, &of(&names), 0).unwrap();
        assert_eq!(found, wanted, "{what}");
        if self.draws % 8 == 0 {
            let counts = [&[][..], &names].map(|queues| self.w.board.claimable_jobs(queues, 40, env.now));
            assert_eq!(counts[0], counts[1], "{what}");
        }
        found.is_some()
    }

    fn act(&mut self) -> String {
        let queue = self.queue();
        let value = |n: usize| (n > 0).then_some(n as i64);
        let what = self.draw(26);
        match what {
            0..=5 => self.post(queue),
            6..=10 => {
                let count = 1 + self.draw(3);
                for got in self.w.claim(&Claim { worker: ANN, ..Claim::default() }, count) {
                    self.running.push(name(&got.id));
                }
            }
            11..=13 => {
                if let Some(id) = self.end() {
                    // Its lease may have ended.
                    let _ = match what {
                        11 => self.w.gives_back(ANN, &id, None),
                        _ => self.w.done(ANN, &id, None),
                    };
                }
            }
            14 => {
                let time = value(self.draw(500));
                let group = [None, Some(&b"a"[..])][self.draw(2)];
                self.w.pause(&PauseRequest { queue: Some(queue), group, time, ..PauseRequest::default() }, 9);
            }
            15 => {
                let group = [None, Some(&b"a"[..])][self.draw(2)];
                self.w.resume_group(Some(queue), group);
            }
            16 => {
                let limit = LIMITS[self.draw(3)];
                let place = PauseRequest {
                    limit: Some(limit),
                    time: value(self.draw(300)),
                    ..PauseRequest::default()
                };
                match (self.w.board.limit(limit).is_some(), self.draw(2) == 0) {
                    (false, _) => {}
                    (true, true) => self.w.pause(&place, 9),
                    (true, false) => _ = self.w.resume_place(&place),
                }
            }
            17 => {
                let most = value(self.draw(3));
                self.w.configure(Some(queue), Setting::Concurrency, most);
            }
            18 => {
                let rate = value(self.draw(10));
                self.w.configure(Some(queue), Setting::Rate, rate);
            }
            19 => {
                let most = value(self.draw(3));
                let group = [&b"a"[..], ALL_GROUPS][self.draw(2)];
                let setting = [Setting::Concurrency, Setting::Rate, Setting::Ordered][self.draw(3)];
                let most = if setting == Setting::Ordered { most.map(|_| 1) } else { most };
                self.w.configure_group(queue, group, setting, most);
            }
            20 => {
                let setting = [Setting::Concurrency, Setting::Rate][self.draw(2)];
                let most = value(self.draw(20));
                let limit = LIMITS[self.draw(3)];
                self.w.configure_limit(limit, setting, most);
            }
            21 => {
                let there: Vec<&[u8]> =
                    LIMITS.into_iter().filter(|l| self.w.board.limit(l).is_some()).collect();
                let some = there.len().min(self.draw(3));
                let group = ALL[self.draw(3)];
                self.w.name_limits(queue, group, Some(&there[..some]));
            }
            22 => {
                let id = format!("job{}", self.draw(self.posted + 1));
                let to = self.queue();
                let (priority, to) =
                    ((what > 3).then_some(self.draw(5) as i32), (self.draw(2) == 0).then_some(to));
                self.w.update(id.as_bytes(), &Update { priority, queue: to, ..Update::default() });
            }
            23 => {
                let id = format!("job{}", self.draw(self.posted + 1));
                self.w.cancel(id.as_bytes(), true);
            }
            24 => match (self.draw(12), self.draw(2) == 0) {
                (0, _) => self.w.now -= 200,
                (1, some) => self.w.configure(None, Setting::Concurrency, some.then_some(5)),
                (2, some) => self.w.configure(None, Setting::Rate, some.then_some(50)),
                (3, _) => self.w.reload(),
                (4, _) => self.w.pause(&PauseRequest { time: Some(100), ..PauseRequest::default() }, 9),
                (5, some) => self.w.configure(Some(queue), Setting::Ageing, some.then_some(50)),
                // Nothing is settled yet.
                _ => self.w.now += 150,
            },
            _ => self.w.pass(self.draws as i64 % 90),
        }
        format!("{what} on {}", String::from_utf8_lossy(queue))
    }
}

#[test]
fn a_claim_without_queues_gets_what_a_look_at_each_queue_finds() {
    for seed in 1..=2u64 {
        let mut many = Many { w: World::default(), draws: seed << 32, posted: 0, running: Vec::new() };
        (0..QUEUES).for_each(|n| many.post(queue(n)));
        let mut found = 0;
        for step in 0..1_200 {
            let what = many.act();
            found += usize::from(many.compare(&format!("seed {seed}, step {step}: {what}")));
            if step % 400 == 399 {
                many.w.is_valid();
            }
        }
        assert!((200..1_200).contains(&found), "{found} steps had a job to claim");
    }
}

/// A board on which `queues` queues have two jobs each. `change` configures it before the posts.
fn full(queues: usize, change: impl FnOnce(&mut World)) -> World {
    let mut w = World::default();
    change(&mut w);
    for n in 0..queues {
        for m in 0..2 {
            w.put_with(&format!("job{n}-{m}"), |p| p.queue = Some(queue(n)));
        }
    }
    w.board.leave_unattended();
    w
}

/// The most looks at queues that one of ten rounds takes: a claim, how many jobs there are, a wait
/// for more, and the end of the job.
fn most_looks(w: &mut World, jobs: usize) -> u64 {
    let round = |_| {
        let before = w.board.queue_looks();
        let got = w.take(ANN);
        assert_eq!(got.is_some(), jobs > 0);
        let claim = Claim { worker: BOB, ..Claim::default() };
        w.board.claimable(&claim, w.now);
        w.board.claimable_jobs(&[], 2, w.now);
        if let Some(got) = got {
            w.done(ANN, &name(&got.id), None).unwrap();
        } else {
            w.board.wait_for_permits(&[], w.now);
            w.board.leave_unattended();
        }
        w.pass(1);
        w.board.queue_looks() - before
    };
    (0..10).map(round).max().unwrap()
}

/// A claim of 3,000 queues takes no more looks than this, whatever keeps them back.
const LOOKS: u64 = 24;

#[test]
fn a_claim_takes_few_looks_however_many_queues_have_jobs() {
    let few = most_looks(&mut full(FEW, |_| ()), 1);
    let many = most_looks(&mut full(6_000, |_| ()), 1);
    assert_eq!(few, many);
    assert!(many <= LOOKS, "{many} looks");
}

#[test]
fn queues_that_are_paused_or_full_take_no_looks() {
    type Change = fn(&mut World, &'static [u8]);
    let changes: [(&str, Change); 4] = [
        ("paused", |w, queue| w.pause(&PauseRequest { queue: Some(queue), ..PauseRequest::default() }, 1)),
        ("paused for a while", |w, queue| {
            let time = Some(1_000_000);
            w.pause(&PauseRequest { queue: Some(queue), time, ..PauseRequest::default() }, 1);
        }),
        ("full", |w, queue| w.configure(Some(queue), Setting::Concurrency, Some(0))),
        ("without permits", |w, queue| w.configure(Some(queue), Setting::Rate, Some(0))),
    ];
    for (what, change) in changes {
        for left in [0, 10] {
            let mut w = full(3_000, |_| ());
            let changed = 3_000 - left;
            (0..changed).for_each(|n| change(&mut w, queue(n)));
            if what == "without permits" {
                assert_eq!(w.claim(&Claim { worker: BOB, ..Claim::default() }, changed).len(), changed);
            }
            w.board.leave_unattended();
            // What the first claim finds to be worse than it was is not looked at again.
            w.board.claimable(&Claim { worker: BOB, ..Claim::default() }, w.now);
            let looks = most_looks(&mut w, left);
            assert!(looks <= LOOKS, "{what}, {left} left: {looks} looks");
            w.is_valid();
        }
    }
}

#[test]
fn a_shared_limit_that_fills_and_frees_takes_no_look_at_each_queue() {
    let limits = [(Setting::Concurrency, 1), (Setting::Rate, 1_000), (Setting::Rate, 0)];
    for (setting, value) in limits {
        for group in [None, Some(ALL_GROUPS)] {
            let mut w = full(3_000, |w| {
                w.configure_limit(b"api", setting, Some(value));
                (0..3_000).for_each(|n| w.name_limits(queue(n), group, Some(&[b"api"])));
            });
            if group.is_some() {
                for n in 0..3_000 {
                    w.put_with(&format!("of-group{n}"), |p| {
                        (p.queue, p.group, p.priority) = (Some(queue(n)), Some(&b"a"[..]), Some(1));
                    });
                }
            }
            if value == 0 {
                w.take(BOB);
            }
            w.board.leave_unattended();
            let jobs = usize::from(value > 0 || group.is_some());
            let looks = most_looks(&mut w, jobs);
            assert!(looks <= LOOKS, "{setting:?} {value} of {group:?}: {looks} looks");
            w.is_valid();
        }
    }
}

#[test]
fn a_rate_of_the_board_takes_no_look_at_each_queue() {
    for (rate, jobs) in [(1_000, 1), (0, 0)] {
        let mut w = full(3_000, |w| w.configure(None, Setting::Rate, Some(rate)));
        if jobs == 0 {
            w.take(BOB);
        }
        w.board.leave_unattended();
        let looks = most_looks(&mut w, jobs);
        assert!(looks <= LOOKS, "{looks} looks at a rate of {rate}");
        w.is_valid();
    }
}

#[test]
fn a_wait_of_no_queue_is_woken_by_the_first_that_gives_a_job_again() {
    let mut w = full(FEW, |w| {
        (0..FEW).for_each(|n| w.configure(Some(queue(n)), Setting::Rate, Some(1)));
        w.configure(Some(queue(7)), Setting::Rate, Some(2));
    });
    assert_eq!(w.take_all(ANN).len(), FEW);
    w.board.wait_for_permits(&[], w.now);
    w.board.woken(|_, _| ());
    let rules = w.rules.clone();
    let env = w.env(&rules);
    assert_eq!(w.board.reckon(&env), w.now + 500);
    w.pass(500);
    let mut woken = Vec::new();
    w.board.woken(|board, queue| woken.push(name(&board.queue_named(queue).to_vec())));
    assert_eq!(woken, ["q7"]);
    assert_eq!(w.take_all(ANN), ["job7-1"]);
}

#[test]
fn a_wait_of_no_queue_goes_on_when_the_queue_that_opens_first_has_no_job_any_more() {
    let mut w = full(FEW, |w| {
        (0..FEW).for_each(|n| w.configure(Some(queue(n)), Setting::Rate, Some(1)));
        w.configure(Some(queue(7)), Setting::Rate, Some(2));
    });
    assert_eq!(w.take_all(ANN).len(), FEW);
    w.board.wait_for_permits(&[], w.now);
    w.cancel(b"job7-1", false).unwrap().unwrap();
    // As a transaction does, which leaves clients that wait to the end of the turn.
    w.board.nobody_waits();
    w.pass(500);
    assert!(!w.board.has_woken());
    w.pass(500);
    assert!(w.board.has_woken(), "the other queues have permits again");
}

#[test]
fn who_waits_is_told_of_a_limit_again_after_nobody_did() {
    let mut w = full(FEW, |w| {
        w.configure_limit(b"api", Setting::Concurrency, Some(1));
        (0..FEW).for_each(|n| w.name_limits(queue(n), None, Some(&[b"api"])));
    });
    for waits in [false, true] {
        let got = w.take(ANN).unwrap();
        if waits {
            w.board.wait_for_permits(&[], w.now);
        }
        w.done(ANN, &name(&got.id), None).unwrap();
        let mut woken = 0;
        w.board.woken(|_, _| woken += 1);
        // The first queue has no job any more.
        assert_eq!(woken, if waits { FEW - 1 } else { 0 });
    }
}
