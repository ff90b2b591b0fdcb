//! Named limits: what several queues and groups share.

use std::collections::BTreeMap;

use board::*;

use crate::site::*;
use crate::world::World;

const MAIL: &[u8] = b"mail";
const SMS: &[u8] = b"sms";

fn put(w: &mut World, id: &str, queue: &'static [u8], group: Option<&'static str>, cost: Option<i64>) {
    w.put_with(id, |p| {
        p.queue = Some(queue);
        p.group = group.map(str::as_bytes);
        p.options.cost = cost;
    });
}

/// Two queues that name the limit `api`, with three jobs each.
fn shared(setting: Setting, value: i64) -> World {
    let mut w = World::default();
    w.configure_limit(b"api", setting, Some(value));
    for queue in [MAIL, SMS] {
        w.name_limits(queue, None, Some(&[b"api"]));
        for n in 0..3 {
            put(&mut w, &format!("{}{n}", String::from_utf8_lossy(queue)), queue, None, None);
        }
    }
    w
}

fn woken(w: &mut World) -> Vec<String> {
    let mut found = Vec::new();
    w.board.woken(|board, queue| found.push(String::from_utf8_lossy(board.queue_named(queue)).into_owned()));
    found.sort();
    found
}

fn claimed(w: &World) -> u64 {
    w.board.limit(b"api").map_or(0, |limit| limit.claimed())
}

fn waits_for(w: &mut World, queue: &[u8]) {
    let rules = w.rules.clone();
    let env = w.env(&rules);
    w.board.wait_for_permits(&[queue], env.now);
    woken(w);
}

#[test]
fn queues_share_one_count_and_an_end_in_one_wakes_the_others() {
    let mut w = shared(Setting::Concurrency, 2);
    assert_eq!(w.take_all(ANN), ["mail0", "mail1"]);
    assert_eq!(w.claim_id(&Claim { worker: BOB, ..Claim::default() }, b"sms0"), refused("LIMIT concurrency"));
    woken(&mut w);
    w.done(ANN, "mail0", None).unwrap();
    assert_eq!((woken(&mut w), claimed(&w)), (vec!["mail".into(), "sms".into()], 1));
    w.take_id(BOB, "sms0");
    assert!(w.take_all(ANN).is_empty());
    w.reload();
    w.is_valid();
    assert!(w.take_all(ANN).is_empty());
    assert_eq!(claimed(&w), 2);
}

#[test]
fn queues_share_one_bucket_and_are_woken_when_the_token_is_there() {
    let mut w = shared(Setting::Rate, 1);
    assert_eq!(w.take_all(ANN), ["mail0"]);
    waits_for(&mut w, SMS);
    let rules = w.rules.clone();
    let env = w.env(&rules);
    assert_eq!(w.board.reckon(&env), w.now + 1_000);
    assert_eq!(w.board.lacks_permits_until(SMS, w.now), Some(w.now + 1_000));
    w.pass(999);
    assert!(woken(&mut w).is_empty() && w.take_all(BOB).is_empty());
    w.reload();
    waits_for(&mut w, SMS);
    w.pass(1);
    assert_eq!(woken(&mut w), ["sms"]);
    let claim = Claim { worker: BOB, queues: &[SMS], ..Claim::default() };
    assert_eq!(w.claim(&claim, 9).len(), 1);
    assert_eq!(w.claim_id(&claim, b"mail1"), refused("LIMIT rate"));
    w.is_valid();
}

#[test]
fn a_job_that_goes_makes_way_for_one_that_costs_less() {
    let mut w = World::default();
    w.configure_limit(b"api", Setting::Rate, Some(1));
    w.configure_limit(b"api", Setting::Burst, Some(5));
    w.name_limits(MAIL, None, Some(&[b"api"]));
    for (id, cost) in [("a", 4), ("dear", 5), ("cheap", 1)] {
        put(&mut w, id, MAIL, None, Some(cost));
    }
    assert_eq!(w.take_all(ANN), ["a"]);
    waits_for(&mut w, MAIL);
    w.cancel(b"dear", false);
    assert_eq!(woken(&mut w), ["mail"]);
    assert_eq!(w.take_all(ANN), ["cheap"]);
}

#[test]
fn all_limits_of_a_queue_and_its_group_have_to_let_a_job_through() {
    let mut w = World::default();
    for (limit, most) in [(&b"a"[..], 3), (b"b", 2), (b"c", 1)] {
        w.configure_limit(limit, Setting::Concurrency, Some(most));
    }
    w.name_limits(MAIL, None, Some(&[b"a"]));
    w.name_limits(MAIL, Some(ALL_GROUPS), Some(&[b"b", b"a"]));
    w.name_limits(MAIL, Some(b"small"), Some(&[b"c"]));
    for n in 0..4 {
        put(&mut w, &format!("big{n}"), MAIL, Some("big"), None);
        put(&mut w, &format!("small{n}"), MAIL, Some("small"), None);
        put(&mut w, &format!("plain{n}"), MAIL, None, None);
    }
    let runs = |w: &World| [b"a", b"b", b"c"].map(|limit| w.board.limit(limit).unwrap().claimed());
    assert_eq!(w.take_all(ANN), ["big0", "small0", "plain0"]);
    // A limit that a queue and its group name counts once.
    assert_eq!(runs(&w), [3, 1, 1]);
    w.is_valid();
    w.configure_limit(b"a", Setting::Concurrency, None);
    // Those without a group count against what the queue names alone.
    assert_eq!(w.take_all(ANN), ["big1", "plain1", "plain2", "plain3"]);
    assert_eq!(runs(&w), [7, 2, 1]);
    assert_eq!(w.board.group(MAIL, b"small").unwrap().hold(), Some(Hold::Limit));
    w.reload();
    w.is_valid();
    w.done(ANN, "small0", None).unwrap();
    assert_eq!(w.take_all(ANN), ["small1"]);
    w.done(ANN, "big0", None).unwrap();
    assert_eq!(w.take_all(ANN), ["big2"]);
    w.is_valid();
}

#[test]
fn a_group_of_one_queue_is_woken_by_that_of_another() {
    let mut w = World::default();
    w.configure_limit(b"acme", Setting::Concurrency, Some(1));
    for queue in [MAIL, SMS] {
        w.name_limits(queue, Some(b"acme"), Some(&[b"acme"]));
    }
    put(&mut w, "m", MAIL, Some("acme"), None);
    put(&mut w, "s", SMS, Some("acme"), None);
    put(&mut w, "other", SMS, Some("other"), None);
    assert_eq!(w.take_all(ANN), ["m", "other"]);
    woken(&mut w);
    w.done(ANN, "m", None).unwrap();
    assert_eq!(woken(&mut w), ["sms"]);
    assert_eq!(w.take_all(ANN), ["s"]);
    w.is_valid();
}

#[test]
fn a_group_that_shares_a_bucket_rests_until_its_tokens_are_there() {
    let mut w = World::default();
    w.configure_limit(b"acme", Setting::Rate, Some(1));
    for queue in [MAIL, SMS] {
        w.name_limits(queue, Some(b"acme"), Some(&[b"acme"]));
    }
    put(&mut w, "m", MAIL, Some("acme"), None);
    put(&mut w, "s", SMS, Some("acme"), None);
    assert_eq!(w.take_all(ANN), ["m"]);
    assert_eq!(w.board.group(SMS, b"acme").unwrap().hold(), Some(Hold::Dry(w.now + 1_000)));
    w.reload();
    woken(&mut w);
    w.pass(1_000);
    assert_eq!(woken(&mut w), ["sms"]);
    assert_eq!(w.take_all(ANN), ["s"]);
    w.is_valid();
}

#[test]
fn what_runs_is_counted_where_lists_name_it_now() {
    let mut w = World::default();
    for limit in [&b"api"[..], b"other"] {
        w.configure_limit(limit, Setting::Concurrency, Some(9));
    }
    for n in 0..3 {
        put(&mut w, &format!("a{n}"), MAIL, Some("a"), None);
        put(&mut w, &format!("b{n}"), MAIL, Some("b"), None);
        put(&mut w, &format!("plain{n}"), MAIL, None, None);
    }
    assert_eq!(w.take_all(ANN).len(), 9);
    let mut lists = |group: Option<&[u8]>, limits: Option<&[&[u8]]>, want: u64| {
        w.name_limits(MAIL, group, limits);
        assert_eq!(claimed(&w), want, "{group:?} {limits:?}");
        w.is_valid();
        w.reload();
        assert_eq!(claimed(&w), want);
        w.is_valid();
    };
    let api: Option<&[&[u8]]> = Some(&[b"api"]);
    lists(Some(ALL_GROUPS), api, 6);
    lists(Some(b"a"), Some(&[]), 3);
    lists(None, api, 9);
    lists(Some(b"a"), Some(&[b"other", b"api"]), 9);
    lists(None, None, 6);
    lists(Some(ALL_GROUPS), None, 3);
    lists(Some(b"a"), None, 0);
    lists(None, api, 9);
    lists(Some(b"b"), Some(&[b"other"]), 9);
    lists(None, Some(&[b"other"]), 0);
}

#[test]
fn a_limit_that_is_reset_holds_nothing_and_goes_when_nothing_names_it() {
    let mut w = shared(Setting::Concurrency, 1);
    assert_eq!(w.take_all(ANN), ["mail0"]);
    woken(&mut w);
    w.configure_limit(b"api", Setting::Concurrency, None);
    assert_eq!(woken(&mut w), ["mail", "sms"]);
    assert_eq!(w.take_all(ANN).len(), 5);
    assert_eq!((claimed(&w), w.board.limit_count()), (6, 1));
    // It counts on, and holds again what it finds.
    w.configure_limit(b"api", Setting::Concurrency, Some(6));
    put(&mut w, "late", MAIL, None, None);
    assert!(w.take_all(ANN).is_empty());
    w.configure_limit(b"api", Setting::Concurrency, None);
    w.name_limits(MAIL, None, None);
    assert_eq!(w.board.limit(b"api").unwrap().queues(), 1);
    w.name_limits(SMS, None, Some(&[]));
    assert_eq!(w.board.limit_count(), 0);
    w.is_valid();
}

#[test]
fn a_lowered_limit_takes_nothing_back_and_a_late_heartbeat_keeps_to_it() {
    let mut w = shared(Setting::Concurrency, 2);
    let token = w.take_id(ANN, "mail0");
    w.pass(30_000);
    w.take_id(BOB, "sms0");
    w.take_id(BOB, "sms1");
    assert_eq!(w.beat(ANN, "mail0", Some(token)), refused("LIMIT concurrency"));
    w.configure_limit(b"api", Setting::Concurrency, Some(1));
    assert_eq!(claimed(&w), 2);
    w.done(BOB, "sms0", None).unwrap();
    assert!(w.take_all(BOB).is_empty());
    w.done(BOB, "sms1", None).unwrap();
    assert!(w.beat(ANN, "mail0", Some(token)).is_ok());
    w.is_valid();
}

#[test]
fn a_running_job_moves_only_where_its_limits_have_room() {
    let mut w = shared(Setting::Concurrency, 1);
    w.put("plain");
    w.take_id(ANN, "plain");
    w.take_id(ANN, "mail0");
    let to = |queue| Update { queue: Some(queue), ..Update::default() };
    assert_eq!(w.update(b"plain", &to(SMS)), Some(refused("LIMIT concurrency")));
    // It counts already where it comes from.
    assert_eq!(w.update(b"mail0", &to(SMS)), Some(Ok(())));
    assert_eq!(w.update(b"mail0", &to(b"default")), Some(Ok(())));
    assert_eq!(w.update(b"plain", &to(SMS)), Some(Ok(())));
    assert_eq!(claimed(&w), 1);
    w.is_valid();
}

#[test]
fn every_end_of_a_claim_frees_the_slot() {
    type End = fn(&mut World);
    let ends: [(&str, End); 9] = [
        ("consume", |w| assert_eq!(w.done(ANN, "mail0", None), DID)),
        ("fail", |w| assert_eq!(w.fails(ANN, "mail0", None), DID)),
        ("abandon", |w| assert_eq!(w.gives_back(ANN, "mail0", None), DID)),
        ("trash", |w| assert_eq!(w.trashes(ANN, "mail0", None), DID)),
        ("lapse", |w| w.pass(30_000)),
        ("cancel", |w| assert_eq!(w.cancel(b"mail0", true), Some(Ok("cancelled")))),
        ("release", |w| assert_eq!(w.release(b"mail0"), Some(Ok(())))),
        ("delete", |w| assert!(w.delete(b"mail0"))),
        ("raise", |w| w.configure_limit(b"api", Setting::Concurrency, Some(2))),
    ];
    for (what, end) in ends {
        let mut w = shared(Setting::Concurrency, 1);
        assert_eq!(w.take_all(ANN), ["mail0"], "{what}");
        woken(&mut w);
        end(&mut w);
        assert!(woken(&mut w).contains(&"sms".into()), "{what}");
        assert!(!w.take_all(BOB).is_empty(), "{what}");
        w.is_valid();
    }
}

#[test]
fn a_board_has_so_many_limits_and_a_limit_so_many_groups_at_most() {
    let mut w = World::default();
    for n in 0..GROUPS_MOST {
        w.configure_limit(b"api", Setting::Concurrency, Some(1));
        w.name_limits(MAIL, Some(format!("group{n}").as_bytes()), Some(&[b"api"]));
    }
    let refusal = Err(Refusal::Limit("groups"));
    assert_eq!(w.board.check_limits_named(MAIL, Some(b"one more"), &[b"api"]), refusal);
    assert_eq!(w.board.check_limits_named(MAIL, Some(b"group7"), &[b"api"]), Ok(()));
    assert_eq!(w.board.check_limits_named(MAIL, Some(ALL_GROUPS), &[b"api"]), Ok(()));
    w.is_valid();
}

/// A queue, a group of it or all, and what it names.
type Named = (&'static [u8], Option<&'static str>, &'static [&'static [u8]]);

/// What queues and groups name in the next test.
const LISTS: [Named; 6] = [
    (b"mail", None, &[b"slots"]),
    (b"mail", Some("*"), &[b"pace"]),
    (b"mail", Some("a"), &[b"pace", b"acme"]),
    (b"sms", Some("a"), &[b"acme"]),
    (b"sms", Some("*"), &[b"slots", b"pace"]),
    (b"push", None, &[b"pace", b"slots"]),
];

fn list_of(queue: &[u8], group: Option<&str>) -> Vec<&'static [u8]> {
    let find = |g: Option<&str>| LISTS.iter().find(|l| l.0 == queue && l.1 == g).map(|l| l.2);
    let of_group = group.and_then(|g| find(Some(g)).or_else(|| find(Some("*"))));
    let mut all: Vec<&[u8]> = [find(None), of_group].into_iter().flatten().flatten().copied().collect();
    all.sort();
    all.dedup();
    all
}

#[test]
fn no_limit_is_exceeded_and_no_job_that_may_run_waits() {
    const QUEUES: [&[u8]; 3] = [b"mail", b"sms", b"push"];
    const GROUPS: [Option<&str>; 4] = [None, Some("a"), Some("b"), Some("c")];
    let mut w = World::default();
    w.configure_limit(b"slots", Setting::Concurrency, Some(4));
    w.configure_limit(b"acme", Setting::Concurrency, Some(2));
    w.configure_limit(b"acme", Setting::Rate, Some(6));
    w.configure_limit(b"pace", Setting::Rate, Some(20));
    w.configure_limit(b"pace", Setting::Burst, Some(3));
    for (queue, group, limits) in LISTS {
        w.name_limits(queue, group.map(str::as_bytes), Some(limits));
    }
    let mut draw = 7u64;
    let mut random = |n: usize| {
        draw = draw.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (draw >> 33) as usize % n
    };
    let (mut jobs, mut taken) = (BTreeMap::new(), BTreeMap::<&[u8], Vec<i64>>::new());
    let mut running: Vec<String> = Vec::new();
    for step in 0..1_500 {
        w.pass(random(40) as i64);
        if random(3) > 0 {
            let (id, queue, group) = (format!("job{step}"), QUEUES[random(3)], GROUPS[random(4)]);
            put(&mut w, &id, queue, group, None);
            jobs.insert(id, (queue, group));
        }
        if !running.is_empty() && random(2) == 0 {
            let id = running.swap_remove(random(running.len()));
            w.done(ANN, &id, None).unwrap();
        }
        if random(3) == 0 {
            let queues = [QUEUES[random(3)], QUEUES[random(3)]];
            for got in w.claim(&Claim { worker: ANN, queues: &queues, ..Claim::default() }, 1 + random(2)) {
                let id = name(&got.id);
                for limit in list_of(jobs[&id].0, jobs[&id].1) {
                    taken.entry(limit).or_default().push(w.now);
                }
                running.push(id);
            }
        } else if step % 5 == 0 {
            for id in w.take_all(ANN) {
                for limit in list_of(jobs[&id].0, jobs[&id].1) {
                    taken.entry(limit).or_default().push(w.now);
                }
                running.push(id);
            }
            // Nothing is left that every one of its limits would let through.
            for (id, (queue, group)) in &jobs {
                let open = |limit: &LimitOf<'_>| !limit.is_full() && limit.dry_until(1, w.now).is_none();
                let ready = w.is(id) == Some(Ready);
                let limits = w.board.limits_over(queue, group.map(str::as_bytes));
                assert_eq!(limits.iter().map(LimitOf::name).collect::<Vec<_>>(), list_of(queue, *group));
                assert!(!ready || !limits.iter().all(open), "{id} waits for nothing");
            }
        }
        for (limit, most) in [(&b"slots"[..], 4), (b"acme", 2)] {
            let runs = running.iter().filter(|id| list_of(jobs[*id].0, jobs[*id].1).contains(&limit)).count();
            assert!(runs <= most);
            assert_eq!(w.board.limit(limit).unwrap().claimed(), runs as u64);
        }
        if step % 50 == 0 {
            w.reload();
            w.is_valid();
        }
    }
    for (limit, rate, burst) in [(&b"acme"[..], 6, 1), (b"pace", 20, 3)] {
        let times = &taken[limit];
        let over =
            |i: usize, j: usize| (j - i + 1) as i64 * 1_000 > burst * 1_000 + rate * (times[j] - times[i]);
        assert!((0..times.len()).all(|i| (i..times.len()).all(|j| !over(i, j))), "{limit:?}");
        assert!(times.len() > 50, "{limit:?} {}", times.len());
    }
}
