//! Costs: what claims take of each limit, what is settled when it is known, and pauses of limits.

use std::collections::BTreeMap;

use board::*;

use crate::site::*;
use crate::world::World;

const API: &[u8] = b"api";
const G: Option<&[u8]> = Some(b"g");

/// A queue that names the limits `requests` and `tokens`.
fn api(requests: [i64; 3], tokens: [i64; 3]) -> World {
    let mut w = World::default();
    for (limit, values) in [(&b"requests"[..], requests), (b"tokens", tokens)] {
        for (setting, value) in [Setting::Rate, Setting::RatePeriod, Setting::Burst].into_iter().zip(values) {
            w.configure_limit(limit, setting, Some(value));
        }
    }
    w.name_limits(API, None, Some(&[b"requests", b"tokens"]));
    w
}

fn ask(w: &mut World, id: &str, tokens: i64) {
    w.put_with(id, |p| {
        p.queue = Some(API);
        p.costs = Some(vec![(b"tokens", tokens), (b"requests", 1)]);
    });
}

fn tokens(cost: i64) -> Spend<'static> {
    Spend { costs: Some(vec![(b"tokens", cost)]), ..Spend::default() }
}

fn pause(limit: &'static [u8], ms: i64) -> Spend<'static> {
    Spend { pause: Some((limit, ms)), ..Spend::default() }
}

/// What a limit holds, as far as the question for so many permits tells.
fn holds(w: &World, limit: &[u8]) -> i64 {
    let limit = w.board.limit(limit).unwrap();
    let debt = limit.debt(w.now);
    let burst = limit.setting(Setting::Burst).0;
    match (1..=burst).rev().find(|cost| limit.dry_until(*cost, w.now).is_none()) {
        _ if debt > 0 => -debt,
        most => most.unwrap_or(0),
    }
}

#[test]
fn each_limit_takes_its_own_cost_at_the_claim() {
    let mut w = api([3, 1_000, 3], [100, 1_000, 100]);
    ask(&mut w, "a", 70);
    ask(&mut w, "b", 40);
    w.put_with("plain", |p| (p.queue, p.options.cost, p.priority) = (Some(API), Some(2), Some(-1)));
    assert_eq!(w.take_all(ANN), ["a"]);
    assert_eq!((holds(&w, b"requests"), holds(&w, b"tokens")), (2, 30));
    let explained = w.explain(b"b").unwrap();
    let [rate] = &explained.reasons[..1] else { panic!("{explained:?}") };
    let detail = |name| rate.details.iter().find(|(n, _)| *n == name).map(|(_, d)| d.clone());
    assert_eq!((rate.code, detail("cost")), ("rate", Some(Detail::Number(40))));
    assert_eq!(w.claim_id(&Claim { worker: BOB, ..Claim::default() }, b"b"), refused("LIMIT rate"));
    w.pass(100);
    assert_eq!(w.take_all(ANN), ["b"]);
    // A limit that is not named takes the plain cost.
    w.pass(2_000);
    assert_eq!(w.take_all(ANN), ["plain"]);
    assert_eq!((holds(&w, b"requests"), holds(&w, b"tokens")), (1, 98));
    w.reload();
    assert_eq!(w.job("b").costs().collect::<Vec<_>>(), [(&b"requests"[..], 1), (b"tokens", 40)]);
    w.is_valid();
}

#[test]
fn the_difference_goes_back_or_is_taken() {
    let mut w = api([100, 1_000, 100], [100, 1_000, 100]);
    for id in ["a", "b"] {
        ask(&mut w, id, 50);
        w.take_id(ANN, id);
    }
    assert_eq!(holds(&w, b"tokens"), 0);
    w.saying(tokens(20), |w| w.beat(ANN, "a", None)).unwrap();
    assert_eq!(holds(&w, b"tokens"), 30);
    // Absolute: what comes again changes nothing.
    let revision = w.board.revision();
    w.saying(tokens(20), |w| w.beat(ANN, "a", None)).unwrap();
    assert_eq!((holds(&w, b"tokens"), w.board.revision()), (30, revision + 1));
    w.saying(tokens(35), |w| w.beat(ANN, "a", None)).unwrap();
    assert_eq!(holds(&w, b"tokens"), 15);
    w.saying(tokens(90), |w| w.done(ANN, "b", None)).unwrap();
    assert_eq!(holds(&w, b"tokens"), -25);
    w.reload();
    assert_eq!(holds(&w, b"tokens"), -25);
    w.pass(250);
    assert_eq!(holds(&w, b"tokens"), 0);
    let spent = w.job("a").spent().cloned().unwrap();
    assert_eq!(
        (spent.cost, &spent.costs[..]),
        (1, &[((&b"requests"[..]).into(), 1), ((&b"tokens"[..]).into(), 35)][..])
    );
    w.is_valid();
}

#[test]
fn no_bucket_holds_more_than_its_burst_and_none_owes_more_than_ten_periods_or_bursts() {
    let mut w = api([100, 1_000, 100], [20, 1_000, 50]);
    ask(&mut w, "a", 50);
    w.take_id(ANN, "a");
    w.pass(2_000);
    assert_eq!(holds(&w, b"tokens"), 40);
    w.saying(tokens(0), |w| w.beat(ANN, "a", None)).unwrap();
    assert_eq!(holds(&w, b"tokens"), 50);
    w.saying(tokens(MOST), |w| w.beat(ANN, "a", None)).unwrap();
    assert_eq!(holds(&w, b"tokens"), -500);
    // A claim takes no more than a burst, so a report of the estimate takes the rest.
    let mut w = api([100, 1_000, 100], [20, 1_000, 50]);
    ask(&mut w, "dear", 80);
    w.take_id(ANN, "dear");
    assert_eq!(holds(&w, b"tokens"), 0);
    w.saying(tokens(80), |w| w.done(ANN, "dear", None)).unwrap();
    assert_eq!(holds(&w, b"tokens"), -30);
}

#[test]
fn every_verb_of_a_worker_says_what_its_claim_has_cost() {
    type Verb = fn(&mut World, &str);
    let verbs: [Verb; 8] = [
        |w, id| _ = w.beat(ANN, id, None).unwrap(),
        |w, id| _ = w.done(ANN, id, None).unwrap(),
        |w, id| _ = w.fails(ANN, id, None).unwrap(),
        |w, id| _ = w.work(&(speaker(id), Abandon::default())).unwrap(),
        |w, id| _ = w.work(&(speaker(id), Trash::default())).unwrap(),
        |w, id| _ = w.work(&(speaker(id), Advance { queue: API, ..Advance::default() })).unwrap(),
        |w, id| _ = w.step(&(speaker(id), Step { name: b"s", ..Step::default() })).unwrap(),
        |w, id| {
            let gate = Gate { names: vec![b"go"[..].into()], ..Gate::default() };
            _ = w.await_signals(&(speaker(id), Await { gate, ..Await::default() })).unwrap()
        },
    ];
    for verb in verbs {
        let mut w = api([100, 1_000, 100], [100, 1_000, 100]);
        ask(&mut w, "a", 50);
        w.take_id(ANN, "a");
        w.saying(tokens(10), |w| verb(w, "a"));
        assert_eq!(holds(&w, b"tokens"), 90);
        w.is_valid();
        w.reload();
    }
    // A job that was to be cancelled has cost something all the same.
    let mut w = api([100, 1_000, 100], [100, 1_000, 100]);
    ask(&mut w, "a", 50);
    w.take_id(ANN, "a");
    w.cancel_by(b"a", false, None).unwrap().unwrap();
    w.saying(tokens(10), |w| w.fails(ANN, "a", None)).unwrap();
    assert_eq!((w.state(b"a"), holds(&w, b"tokens")), (Some(State::Cancelled), 90));
}

fn speaker(id: &str) -> Speaker<'_> {
    Speaker { worker: ANN, id: id.as_bytes(), token: None }
}

#[test]
fn a_verb_that_comes_again_or_is_stale_settles_nothing() {
    let mut w = api([100, 1_000, 100], [100, 1_000, 100]);
    ask(&mut w, "a", 50);
    let token = w.take_id(ANN, "a");
    w.saying(tokens(10), |w| w.fails(ANN, "a", Some(token))).unwrap();
    w.saying(tokens(99), |w| w.fails(ANN, "a", Some(token))).unwrap();
    assert_eq!(holds(&w, b"tokens"), 90);
    w.pass(100_000);
    let second = w.take_id(BOB, "a");
    assert!(w.saying(tokens(99), |w| w.done(ANN, "a", Some(token))).is_err());
    assert!(w.saying(tokens(99), |w| w.done(BOB, "a", Some(token))).is_err());
    assert_eq!(holds(&w, b"tokens"), 50);
    // The next claim counts for itself, also when its worker is late.
    w.pass(60_000);
    assert_eq!(w.state(b"a"), Some(State::Ready));
    w.saying(tokens(110), |w| w.done(BOB, "a", Some(second))).unwrap();
    assert_eq!(holds(&w, b"tokens"), 40);
}

#[test]
fn a_limit_that_is_gone_or_does_not_count_is_ignored_by_workers_and_refused_in_posts() {
    let mut w = api([100, 1_000, 100], [100, 1_000, 100]);
    ask(&mut w, "a", 50);
    w.take_id(ANN, "a");
    w.name_limits(API, None, Some(&[b"requests"]));
    for setting in [Setting::Rate, Setting::RatePeriod, Setting::Burst] {
        w.configure_limit(b"tokens", setting, None);
    }
    assert!(w.board.limit(b"tokens").is_none());
    let spend = Spend { costs: Some(vec![(b"tokens", 7), (b"requests", 3)]), ..Spend::default() };
    w.saying(spend, |w| w.beat(ANN, "a", None)).unwrap();
    assert_eq!(holds(&w, b"requests"), 97);
    let costs = &w.job("a").spent().unwrap().costs;
    assert_eq!(costs[..], [((&b"requests"[..]).into(), 3)]);
    let refusal = |costs: Costs<'static>| {
        let mut w = api([1, 1, 1], [1, 1, 1]);
        let refused = w.post(&Post { costs: Some(costs), ..Post::default() }).unwrap_err();
        assert_eq!(w.board.len(), 0);
        refused
    };
    assert_eq!(
        refusal(vec![(b"tokns", 1)]),
        "ERR COSTS names 'tokns', and there is no such limit: JOB.SETTINGS SET board LIMIT tokns rate makes it"
    );
    assert_eq!(refusal(vec![(b"tokens", 1), (b"tokens", 2)]), "ERR COSTS names 'tokens' twice");
    w.is_valid();
}

#[test]
fn permits_that_come_back_wake_who_waits_for_them() {
    let mut w = api([100, 1_000, 100], [1, 1_000, 100]);
    ask(&mut w, "a", 100);
    ask(&mut w, "b", 60);
    w.take_id(ANN, "a");
    let rules = w.rules.clone();
    let env = w.env(&rules);
    w.board.wait_for_permits(&[API], env.now);
    w.board.nobody_waits();
    w.saying(tokens(50), |w| w.beat(ANN, "a", None)).unwrap();
    assert!(w.board.has_woken());
    assert!(w.take_all(BOB).is_empty());
    let env = w.env(&rules);
    w.board.wait_for_permits(&[API], env.now);
    w.board.nobody_waits();
    w.saying(tokens(40), |w| w.done(ANN, "a", None)).unwrap();
    assert!(w.board.has_woken());
    assert_eq!(w.take_all(BOB), ["b"]);
}

#[test]
fn boards_queues_and_groups_settle_the_plain_cost() {
    let scopes = [Scope::Board, Scope::Queue(API), Scope::Group(API, b"g")];
    for scope in scopes {
        let mut w = World::default();
        w.put_with("a", |p| (p.queue, p.group, p.options.cost) = (Some(API), G, Some(4)));
        w.put_with("b", |p| (p.queue, p.group, p.options.cost) = (Some(API), G, Some(3)));
        for (setting, value) in [(Setting::Rate, 1), (Setting::RatePeriod, 1_000), (Setting::Burst, 5)] {
            w.act(Configured { scope, setting, value: Some(value) });
            w.commit();
        }
        assert_eq!(w.take_all(ANN), ["a"]);
        w.board.nobody_waits();
        w.saying(Spend { cost: Some(2), ..Spend::default() }, |w| w.beat(ANN, "a", None)).unwrap();
        assert!(w.board.has_woken(), "{scope:?}");
        assert_eq!(w.take_all(ANN), ["b"], "{scope:?}");
        w.saying(Spend { cost: Some(6), ..Spend::default() }, |w| w.done(ANN, "a", None)).unwrap();
        w.put_with("c", |p| (p.queue, p.group) = (Some(API), G));
        w.pass(4_999);
        assert!(w.take_all(ANN).is_empty(), "{scope:?}");
        w.pass(1);
        assert_eq!(w.take_all(ANN), ["c"], "{scope:?}");
        w.is_valid();
    }
}

#[test]
fn a_worker_pauses_a_limit_of_its_job_and_only_for_longer() {
    let mut w = api([100, 1_000, 100], [100, 1_000, 100]);
    for id in ["a", "b"] {
        ask(&mut w, id, 10);
        w.take_id(ANN, id);
    }
    ask(&mut w, "c", 10);
    w.put_with("free", |p| p.queue = Some(b"other"));
    w.configure_limit(b"foreign", Setting::Rate, Some(1));
    let refused =
        "ERR PAUSE names 'foreign', which is no limit of this job: JOB.EXPLAIN and JOB.QUEUES say which are";
    assert_eq!(w.saying(pause(b"foreign", 1), |w| w.beat(ANN, "a", None)), Err(refused.to_string()));
    assert!(w.saying(pause(b"gone", 1), |w| w.fails(ANN, "a", None)).is_err());
    assert_eq!(w.state(b"a"), Some(State::Claimed));
    w.saying(pause(b"tokens", 5_000), |w| w.work(&(speaker("a"), Abandon::default()))).unwrap();
    w.saying(pause(b"tokens", 10), |w| w.beat(ANN, "b", None)).unwrap();
    assert_eq!(w.board.limit(b"tokens").unwrap().paused(w.now), Some(w.now + 5_000));
    assert_eq!(
        w.claim_id(&Claim { worker: BOB, ..Claim::default() }, b"c"),
        super::site::refused("NOTREADY paused")
    );
    let explained = w.explain(b"c").unwrap();
    assert_eq!(
        (explained.reasons[0].code, &explained.reasons[0].details[0].1),
        ("paused", &Detail::Word("limit"))
    );
    assert_eq!(w.take_all(BOB), ["free"]);
    w.reload();
    w.is_valid();
    let rules = w.rules.clone();
    let env = w.env(&rules);
    w.board.wait_for_permits(&[API], env.now);
    assert_eq!(w.board.reckon(&env), w.now + 5_000);
    w.pass(4_999);
    assert!(w.take_all(BOB).is_empty());
    w.board.nobody_waits();
    w.pass(1);
    assert!(w.board.has_woken());
    assert_eq!(w.take_all(BOB), ["a", "c"]);
    assert_eq!(w.board.limit(b"tokens").unwrap().paused(w.now), None);
    w.is_valid();
}

#[test]
fn an_operator_pauses_and_resumes_a_limit_also_of_groups_that_name_it_themselves() {
    let mut w = World::default();
    w.configure_limit(b"api", Setting::Concurrency, Some(9));
    w.name_limits(API, Some(b"g"), Some(&[b"api"]));
    w.put_with("a", |p| (p.queue, p.group) = (Some(API), G));
    w.put_with("b", |p| p.queue = Some(API));
    let limit = |time| PauseRequest { limit: Some(b"api"), time, ..PauseRequest::default() };
    w.pause(&limit(None), 1);
    w.pause(&limit(Some(10)), 1);
    w.pass(100);
    assert_eq!(
        (w.board.limit(b"api").unwrap().paused(w.now), w.take_all(ANN)),
        (Some(NEVER), vec!["b".into()])
    );
    w.reload();
    w.is_valid();
    w.board.nobody_waits();
    assert!(w.resume_place(&limit(None)) && !w.resume_place(&limit(None)));
    assert!(w.board.has_woken());
    assert_eq!(w.take_all(ANN), ["a"]);
    // A pause keeps the limit; the end of the pause lets it go.
    w.name_limits(API, Some(b"g"), None);
    w.pause(&limit(Some(1_000)), 1);
    w.configure_limit(b"api", Setting::Concurrency, None);
    assert!(w.board.limit(b"api").is_some());
    w.reload();
    w.pass(1_000);
    assert!(w.board.limit(b"api").is_none());
    w.is_valid();
    assert!(w.board.pause(&w.peek(), &limit(None)).is_err());
}

#[test]
fn sums_of_costs_are_in_the_statistics() {
    let mut w = api([100, 1_000, 100], [100, 1_000, 100]);
    for id in ["a", "b"] {
        ask(&mut w, id, 30);
        w.take_id(ANN, id);
    }
    w.put_with("c", |p| (p.queue, p.options.cost) = (Some(API), Some(5)));
    w.take_id(ANN, "c");
    w.saying(tokens(12), |w| w.done(ANN, "a", None)).unwrap();
    w.saying(Spend { cost: Some(3), ..Spend::default() }, |w| w.done(ANN, "c", None)).unwrap();
    let stats = w.board.stats(Some(API), day_of(w.now)).unwrap();
    let costs: BTreeMap<&[u8], i64> = stats.costs().collect();
    assert_eq!((stats.cost(), costs), (5, BTreeMap::from([(&b"requests"[..], 2), (b"tokens", 42)])));
    w.reload();
    assert_eq!(w.board.stats(None, day_of(w.now)), Some(stats));
}

#[test]
fn costs_come_with_replacements_schedules_and_the_next_queue() {
    let mut w = api([100, 1_000, 100], [100, 1_000, 100]);
    ask(&mut w, "a", 30);
    w.post(&Post {
        id: Some(b"a"),
        exists: Exists::Replace,
        options: options(|o| o.cost = Some(4)),
        ..Post::default()
    })
    .unwrap();
    assert_eq!((w.job("a").cost(), w.job("a").costs().len()), (Some(4), 2));
    w.take_id(ANN, "a");
    let costs = Some(vec![(&b"tokens"[..], 3)]);
    w.work(&(speaker("a"), Advance { queue: API, cost: Some(2), costs, ..Advance::default() })).unwrap();
    assert_eq!(
        (w.job("a").cost(), w.job("a").costs().collect::<Vec<_>>()),
        (Some(2), vec![(&b"tokens"[..], 3)])
    );
    let child =
        Post { queue: Some(API), costs: Some(vec![(b"tokens", 8), (b"requests", 2)]), ..Post::default() };
    w.set_schedule(&SetSchedule {
        id: b"s",
        when: Some(When::Every(1_000)),
        child,
        ..SetSchedule::default()
    })
    .unwrap();
    let id = w.run_schedule(b"s").unwrap().unwrap();
    let id = String::from_utf8(id).unwrap();
    assert_eq!(w.job(&id).costs().collect::<Vec<_>>(), [(&b"requests"[..], 2), (b"tokens", 8)]);
    w.reload();
    w.is_valid();
}

/// One job of the API: when it ends, what it was thought to cost, and what it costs.
struct Run {
    id: String,
    begin: i64,
    end: i64,
    estimate: i64,
    cost: i64,
}

/// Ten minutes of an API with 60 requests and 90,000 tokens a minute: twenty workers, jobs whose
/// tokens are known only at their end.
fn ten_minutes(estimate: impl Fn(i64) -> i64) -> (World, Vec<Run>) {
    let mut w = api([60, 60_000, 5], [90_000, 60_000, 9_000]);
    let (begin, mut random) = (w.now, 7_u64);
    let mut draw = move |least: i64, most: i64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        least + (random >> 33) as i64 % (most - least + 1)
    };
    let (mut open, mut done): (Vec<Run>, Vec<Run>) = (Vec::new(), Vec::new());
    let mut waiting: BTreeMap<String, (i64, i64)> = BTreeMap::new();
    for n in 0.. {
        if w.now >= begin + 600_000 {
            break;
        }
        while waiting.len() < 3 {
            let (id, cost) = (format!("{n}-{}", waiting.len()), draw(540, 2_500));
            ask(&mut w, &id, estimate(cost));
            waiting.insert(id, (estimate(cost), cost));
        }
        let now = w.now;
        let (over, runs): (Vec<Run>, Vec<Run>) = open.drain(..).partition(|run| run.end <= now);
        open = runs;
        for run in over {
            w.saying(tokens(run.cost), |w| w.done(ANN, &run.id, None)).unwrap();
            done.push(run);
        }
        while open.len() < 20 {
            let claim = Claim { worker: ANN, lease: Some(60_000), ..Claim::default() };
            let Some(got) = w.claim(&claim, 1).pop() else { break };
            let id = name(&got.id);
            let (estimate, cost) = waiting.remove(&id).unwrap();
            open.push(Run { id, begin: now, end: now + draw(2_000, 12_000), estimate, cost });
        }
        w.pass(100);
    }
    done.extend(open);
    (w, done)
}

/// The most that jobs in flight at one time within these cost beyond what was thought.
fn beyond(runs: &[Run], from: i64, to: i64) -> i64 {
    let at = |moment: i64| -> i64 {
        let flying = runs.iter().filter(|run| run.begin <= moment && run.end >= moment);
        flying.map(|run| (run.cost - run.estimate).max(0)).sum()
    };
    runs.iter().map(|run| run.begin).filter(|at| (from..=to).contains(at)).map(at).max().unwrap_or(0)
}

#[test]
fn an_api_with_requests_and_tokens_is_used_and_never_overrun() {
    for (thought, factor) in [("at least", 60), ("about", 100)] {
        // Known only roughly: three fifths of the cost, or its mean.
        let (w, runs) = ten_minutes(|cost| if factor == 60 { cost * 3 / 5 } else { 1_520 });
        let begin = runs.iter().map(|run| run.begin).min().unwrap();
        let used: i64 = runs.iter().filter(|run| run.end <= begin + 600_000).map(|run| run.cost).sum();
        let requests = runs.len() as i64;
        assert!(used >= 900_000 * 95 / 100, "{thought}: {used} tokens of 900,000");
        assert!(requests >= 600 * 95 / 100, "{thought}: {requests} requests of 600");
        for first in runs.iter().map(|run| run.begin) {
            let within = || runs.iter().filter(|run| (first..first + 60_000).contains(&run.begin));
            assert!(within().count() <= 5 + 60, "{thought}: {} requests in a minute", within().count());
            let cost: i64 = within().map(|run| run.cost).sum();
            // Permits that came back from jobs which began before are there to be used.
            let before = runs.iter().filter(|run| run.begin < first && run.end >= first);
            let back: i64 = before.map(|run| (run.estimate - run.cost).max(0)).sum();
            let most = 9_000 + 90_000 + beyond(&runs, first, first + 60_000) + back;
            assert!(factor != 60 || back == 0, "no estimate was too high");
            assert!(cost <= most, "{thought}: {cost} tokens in a minute, more than {most}");
        }
        w.is_valid();
    }
}
