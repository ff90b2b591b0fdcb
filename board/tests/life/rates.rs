//! How fast jobs are claimed: tokens of the board, of queues and of groups.

use board::*;

use crate::site::*;
use crate::world::World;

const MAIL: Option<&[u8]> = Some(b"mail");

fn put(w: &mut World, id: &str, group: Option<&'static str>, cost: Option<i64>) {
    w.put_with(id, |p| {
        p.queue = MAIL;
        p.group = group.map(str::as_bytes);
        p.options.cost = cost;
    });
}

/// A board with so many jobs in mail, of which `rate` a second may be claimed.
fn limited(jobs: usize, rate: i64, burst: i64) -> World {
    let mut w = World::default();
    for n in 0..jobs {
        put(&mut w, &format!("job{n}"), None, None);
    }
    w.configure(MAIL, Setting::Rate, Some(rate));
    w.configure(MAIL, Setting::Burst, Some(burst));
    w
}

fn woken(w: &mut World) -> bool {
    let mut found = false;
    w.board.woken(|_, _| found = true);
    found
}

fn thirsts(w: &mut World) {
    let rules = w.rules.clone();
    let env = w.env(&rules);
    w.board.wait_for_permits(&[], env.now);
}

#[test]
fn a_burst_and_then_one_for_each_token() {
    let mut w = limited(20, 4, 3);
    assert_eq!(w.take_all(ANN), ["job0", "job1", "job2"]);
    w.pass(249);
    assert!(w.take_all(ANN).is_empty());
    w.pass(1);
    assert_eq!(w.take_all(ANN), ["job3"]);
    w.pass(10_000);
    assert_eq!(w.take_all(ANN).len(), 3);
    w.is_valid();
}

#[test]
fn a_rate_need_not_divide_its_period() {
    let mut w = limited(100, 7, 1);
    w.configure(MAIL, Setting::RatePeriod, Some(60_000));
    let mut taken = 0;
    for _ in 0..600 {
        w.now += 100;
        taken += w.take_all(ANN).len();
    }
    // One at once, and seven within the minute.
    assert_eq!(taken, 7 + 1 - 1);
    w.pass(60_000 / 7 + 1);
    assert_eq!(w.take_all(ANN).len(), 1);
}

#[test]
fn who_waits_is_woken_when_the_token_is_there() {
    let mut w = limited(2, 10, 1);
    assert_eq!(w.take_all(ANN), ["job0"]);
    thirsts(&mut w);
    woken(&mut w);
    let rules = w.rules.clone();
    let env = w.env(&rules);
    assert_eq!(w.board.reckon(&env), w.now + 100);
    w.pass(99);
    assert!(!woken(&mut w));
    w.pass(1);
    assert!(woken(&mut w));
    assert_eq!(w.take_all(ANN), ["job1"]);
}

#[test]
fn a_job_that_costs_more_waits_for_more_and_nobody_goes_before_it() {
    let mut w = World::default();
    w.configure(MAIL, Setting::Rate, Some(1));
    w.configure(MAIL, Setting::Burst, Some(4));
    for (id, cost) in [("a", 3), ("b", 4), ("c", 1), ("d", 99)] {
        put(&mut w, id, None, Some(cost));
    }
    assert_eq!(w.take_all(ANN), ["a"]);
    w.pass(2_999);
    assert!(w.take_all(ANN).is_empty());
    w.pass(1);
    assert_eq!(w.take_all(ANN), ["b"]);
    w.pass(1_000);
    assert_eq!(w.take_all(ANN), ["c"]);
    // More than the bucket holds: it takes all of it.
    w.pass(4_000);
    assert_eq!(w.take_all(ANN), ["d"]);
    assert_eq!(w.job("d").cost(), Some(99));
    w.is_valid();
}

#[test]
fn a_group_without_tokens_is_passed_over_and_comes_back() {
    let mut w = World::default();
    for n in 0..3 {
        for group in ["a", "b"] {
            put(&mut w, &format!("{group}{n}"), Some(group), None);
        }
    }
    w.configure_group(b"mail", b"a", Setting::Rate, Some(2));
    assert_eq!(w.take_all(ANN), ["a0", "b0", "b1", "b2"]);
    w.is_valid();
    w.reload();
    w.is_valid();
    assert_eq!(w.board.group(b"mail", b"a").unwrap().hold(), Some(Hold::Dry(w.now + 500)));
    woken(&mut w);
    w.pass(499);
    assert!(w.take_all(ANN).is_empty());
    w.pass(1);
    assert!(woken(&mut w));
    assert_eq!(w.take_all(ANN), ["a1"]);
    w.is_valid();
}

#[test]
fn a_group_is_not_forgotten_before_its_bucket_is_full() {
    let mut w = World::default();
    w.configure_group(b"mail", ALL_GROUPS, Setting::Rate, Some(1));
    for n in 0..2 {
        let id = format!("job{n}");
        put(&mut w, &id, Some("a"), None);
        let got = w.take_all(ANN);
        assert_eq!(got.len(), 1 - n, "{got:?}");
        if n == 0 {
            w.done(ANN, &id, None).unwrap();
            assert!(w.board.groups(None, None, 9).0.is_empty());
            w.reload();
            w.is_valid();
        }
    }
    w.pass(1_000);
    assert_eq!(w.take_all(ANN), ["job1"]);
    w.done(ANN, "job1", None).unwrap();
    w.configure_group(b"mail", ALL_GROUPS, Setting::Rate, None);
    w.pass(1_000);
    w.is_valid();
    assert!(w.board.queue_names().is_empty());
}

#[test]
fn the_rate_of_the_board_is_that_of_all_its_queues_together() {
    let mut w = limited(5, 1_000, 9);
    w.put("plain");
    w.configure(None, Setting::Rate, Some(1));
    w.configure(None, Setting::Burst, Some(2));
    let rules = w.rules.clone();
    assert_eq!(w.board.setting(Scope::of_queue(MAIL), Setting::Burst, &rules), (9, Source::Queue));
    assert_eq!(w.board.setting(Scope::Queue(b"default"), Setting::Burst, &rules), (1, Source::Default));
    assert_eq!(w.take_all(ANN).len(), 2);
    w.pass(1_000);
    assert_eq!(w.take_all(ANN).len(), 1);
    w.reload();
    w.is_valid();
    assert!(w.take_all(ANN).is_empty());
}

#[test]
fn a_claim_by_id_keeps_to_the_rate_and_what_comes_back_pays_again() {
    let mut w = limited(3, 1, 1);
    let token = w.take_id(ANN, "job1");
    let claim = Claim { worker: BOB, ..Claim::default() };
    assert_eq!(w.claim_id(&claim, b"job0"), refused("LIMIT rate"));
    w.gives_back(ANN, "job1", Some(token)).unwrap();
    assert!(w.take_all(ANN).is_empty());
    w.pass(1_000);
    assert_eq!(w.take_all(ANN), ["job0"]);
}

#[test]
fn a_clock_that_goes_back_adds_no_tokens() {
    let mut w = limited(9, 1, 2);
    assert_eq!(w.take_all(ANN).len(), 2);
    w.now -= 50_000;
    assert!(w.take_all(ANN).is_empty());
    w.now += 51_000;
    assert_eq!(w.take_all(ANN).len(), 1);
    w.is_valid();
}

#[test]
fn a_rate_that_is_taken_away_or_raised_wakes() {
    for value in [None, Some(1_000)] {
        let mut w = limited(9, 1, 1);
        assert_eq!(w.take_all(ANN).len(), 1);
        woken(&mut w);
        w.configure(MAIL, Setting::Rate, value);
        assert!(woken(&mut w));
        w.pass(1);
        assert!(!w.take_all(ANN).is_empty());
    }
    let mut w = limited(2, 0, 1);
    assert_eq!(w.take_all(ANN).len(), 1);
    w.pass(1 << 40);
    assert!(w.take_all(ANN).is_empty());
    w.is_valid();
}

#[test]
fn no_window_gives_more_than_burst_and_rate_whatever_the_groups() {
    let mut w = World::default();
    for n in 0..300 {
        put(&mut w, &format!("job{n:03}"), Some(["a", "b", "c"][n % 3]), None);
    }
    w.configure(MAIL, Setting::Rate, Some(30));
    w.configure(MAIL, Setting::Burst, Some(4));
    w.configure_group(b"mail", ALL_GROUPS, Setting::Rate, Some(8));
    let mut times: Vec<(i64, u8)> = Vec::new();
    for n in 0..400 {
        w.pass(1 + (n * 7) % 23);
        let got = w.claim(&Claim { worker: ANN, ..Claim::default() }, 9);
        for got in got {
            let group = w.job(&String::from_utf8_lossy(&got.id)).group().unwrap()[0];
            times.push((w.now, group));
        }
    }
    let within = |times: &[i64], rate: i64, burst: i64| {
        (0..times.len()).all(|i| {
            (i..times.len())
                .all(|j| (j - i + 1) as i64 * 1_000 <= burst * 1_000 + rate * (times[j] - times[i]))
        })
    };
    let all: Vec<i64> = times.iter().map(|(at, _)| *at).collect();
    assert!(within(&all, 30, 4) && all.len() > 90, "{}", all.len());
    for group in *b"abc" {
        let those: Vec<i64> = times.iter().filter(|(_, g)| *g == group).map(|(at, _)| *at).collect();
        assert!(within(&those, 8, 1) && those.len() > 25, "{}", those.len());
    }
}

#[test]
fn a_queue_without_a_rate_has_no_permits_however_it_came_here() {
    let mut w = limited(3, 1, 1);
    assert_eq!(w.take_all(ANN), ["job0"]);
    w.configure(MAIL, Setting::Rate, None);
    // The copy has had all batches, and no snapshot.
    w.reload();
    w.configure(MAIL, Setting::Rate, Some(1));
    w.is_valid();
    assert_eq!(w.take_all(ANN), ["job1"]);
}
