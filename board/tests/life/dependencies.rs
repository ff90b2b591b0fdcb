//! Dependencies: a job that waits for others, and what becomes of it when they end.

use board::*;

use crate::site::*;
use crate::world::World;

fn ends_well(w: &mut World, id: &str) {
    w.take_id(ANN, id);
    w.done(ANN, id, None).unwrap();
}

fn ends_badly(w: &mut World, id: &str) {
    w.take_id(ANN, id);
    w.fails_with(ANN, id, None, Retry::No).unwrap();
}

/// `b` waits for `a`.
fn pair(on_failure: OnFailure) -> World {
    let mut w = World::default();
    w.put("a");
    w.put_after("b", &["a"], on_failure);
    assert_eq!(w.is("b"), Some(Blocked));
    w
}

fn add<'a>(others: &[&'a str], on_failure: OnFailure) -> Depend<'a> {
    Depend::Add(After {
        jobs: others.iter().map(|id| (id.as_bytes(), on_failure)).collect(),
        strict: false,
        ..After::default()
    })
}

fn strict<'a>(others: &[&'a str]) -> After<'a> {
    After {
        jobs: others.iter().map(|id| (id.as_bytes(), OnFailure::Hold)).collect(),
        strict: true,
        ..After::default()
    }
}

#[test]
fn a_job_is_ready_when_all_that_it_waits_for_are_complete() {
    let mut w = World::default();
    w.put("a");
    w.put("b");
    w.put_after("c", &["b", "a"], OnFailure::Hold);
    assert_eq!(w.job("c").after().iter().map(|id| id.to_vec()).collect::<Vec<_>>(), [b"a", b"b"]);
    ends_well(&mut w, "a");
    w.pass(0);
    assert_eq!(w.is("c"), Some(Blocked));
    w.now += 5;
    ends_well(&mut w, "b");
    w.pass(0);
    assert_eq!(w.is("c"), Some(Ready));
    assert_eq!(w.is("a"), None);
    w.is_valid();
}

#[test]
fn a_blocked_job_is_not_claimed_and_a_named_one_is_told_in_time() {
    let mut w = pair(OnFailure::Hold);
    assert_eq!(w.take_all(BOB), ["a"]);
    let refusal = w.claim_id(&Claim { worker: BOB, ..Claim::default() }, b"b").unwrap_err();
    assert_eq!(refusal, "NOTREADY blocked");
    w.done(BOB, "a", None).unwrap();
    assert_eq!(w.is("b"), Some(Blocked));
    w.take_id(BOB, "b");
    w.pass(0);
    w.is_valid();
}

#[test]
fn what_is_unknown_or_complete_counts_as_met() {
    let mut w = World::default();
    w.put_in("done", Complete);
    w.put("gone");
    ends_well(&mut w, "gone");
    w.put_after("b", &["nobody", "done", "gone"], OnFailure::Hold);
    assert_eq!(w.is("b"), Some(Ready));
    w.is_valid();
}

#[test]
fn strict_refuses_what_is_unknown() {
    let mut w = World::default();
    w.put("gone");
    ends_well(&mut w, "gone");
    let post = Post { id: Some(b"b"), after: Some(strict(&["gone", "nobody"])), ..Post::default() };
    assert_eq!(w.post(&post), refused("NOJOB no such job nobody"));
    let post = Post { id: Some(b"b"), after: Some(strict(&["gone"])), ..Post::default() };
    assert!(w.post(&post).is_ok());
    let depend = Depend::Add(strict(&["nobody"]));
    assert_eq!(w.depend(b"b", &depend), Some(refused("NOJOB no such job nobody")));
    assert_eq!(w.is("b"), Some(Ready));
}

#[test]
fn a_failure_holds_until_it_is_made_good() {
    for state in [Failed, Cancelled, Trashed] {
        let mut w = pair(OnFailure::Hold);
        match state {
            Failed => ends_badly(&mut w, "a"),
            Cancelled => {
                w.take_id(ANN, "a");
                w.depend(b"b", &Depend::Clear).unwrap().unwrap();
                w.cancel(b"a", true).unwrap().unwrap();
                w.depend(b"b", &add(&["a"], OnFailure::Hold)).unwrap().unwrap();
            }
            _ => {
                w.take_id(ANN, "a");
                w.trashes(ANN, "a", None).unwrap();
            }
        }
        w.pass(0);
        assert_eq!((w.is("a"), w.is("b")), (Some(state), Some(Blocked)));
        w.requeue(b"a", To::Same).unwrap().unwrap();
        w.pass(0);
        assert_eq!(w.is("b"), Some(Blocked));
        ends_well(&mut w, "a");
        w.pass(0);
        assert_eq!(w.is("b"), Some(Ready));
        w.is_valid();
    }
}

#[test]
fn a_failure_decides_as_onfailure_says() {
    let mut w = pair(OnFailure::Cancel);
    w.put_after("c", &["a"], OnFailure::Fail);
    w.put_after("d", &["a"], OnFailure::Run);
    w.put_after("e", &["b"], OnFailure::Fail);
    ends_badly(&mut w, "a");
    w.pass(0);
    let states = ["b", "c", "d", "e"].map(|id| w.is(id));
    assert_eq!(states, [Some(Cancelled), Some(Failed), Some(Ready), Some(Failed)]);
    assert_eq!(w.job("b").reason(), Some(&b"a failed"[..]));
    assert_eq!((w.job("c").kind(), w.job("c").message()), (Some(&b"dependency"[..]), Some(&b"a failed"[..])));
    assert_eq!(w.job("e").message(), Some(&b"b cancelled"[..]));
    assert_eq!(w.job("c").left(&w.rules), 10);
    assert_eq!(w.events("c"), ["posted", "dependency"]);
    w.is_valid();
}

#[test]
fn a_job_that_has_failed_already_decides_at_once() {
    let mut w = World::default();
    w.put_in("a", Failed);
    w.put_after("hold", &["a"], OnFailure::Hold);
    w.put_after("run", &["a"], OnFailure::Run);
    w.put_after("cancel", &["a"], OnFailure::Cancel);
    assert_eq!((w.is("hold"), w.is("run")), (Some(Blocked), Some(Ready)));
    w.pass(0);
    assert_eq!((w.is("hold"), w.is("cancel")), (Some(Blocked), Some(Cancelled)));
    w.depend(b"hold", &add(&["a"], OnFailure::Run)).unwrap().unwrap();
    assert_eq!(w.is("hold"), Some(Ready));
    w.is_valid();
}

#[test]
fn delay_and_dependency_must_both_be_met() {
    let mut w = World::default();
    let due = w.now + 1_000;
    for first in ["time", "job"] {
        w.put("a");
        w.put_with("b", |p| {
            p.due = Some(due);
            p.after = Some(strict(&["a"]));
        });
        assert_eq!(w.job("b").due(), Some(due));
        if first == "job" {
            ends_well(&mut w, "a");
            w.pass(0);
            assert_eq!(w.is("b"), Some(Scheduled));
            w.pass(due - w.now);
        } else {
            let mut late = World::on(w.board.copy().unwrap());
            late.now = due;
            late.pass(0);
            assert_eq!(late.is("b"), Some(Blocked));
            ends_well(&mut late, "a");
            late.pass(0);
            assert_eq!(late.is("b"), Some(Ready));
            w.delete_all(&[b"a", b"b"]).unwrap();
            continue;
        }
        assert_eq!(w.is("b"), Some(Ready));
    }
}

#[test]
fn blocked_time_does_not_count_towards_expiry() {
    let mut w = World::default();
    w.put("a");
    w.put_with("b", |p| p.options.expire = Some(100));
    w.pass(60);
    w.depend(b"b", &add(&["a"], OnFailure::Hold)).unwrap().unwrap();
    w.pass(1_000);
    ends_well(&mut w, "a");
    w.pass(0);
    w.pass(39);
    assert_eq!(w.is("b"), Some(Ready));
    w.pass(1);
    assert_eq!(w.is("b"), Some(Failed));
}

#[test]
fn cycles_are_refused() {
    let mut w = pair(OnFailure::Hold);
    w.put_after("c", &["b"], OnFailure::Hold);
    let cycle = || refused("CYCLE a job would wait for itself");
    assert_eq!(w.depend(b"a", &add(&["c"], OnFailure::Run)), Some(cycle()));
    assert_eq!(w.depend(b"a", &add(&["a"], OnFailure::Run)), Some(cycle()));
    let own = Post {
        id: Some(b"new"),
        after: Some(After { jobs: vec![(b"new", OnFailure::Hold)], strict: false, ..After::default() }),
        ..Post::default()
    };
    assert_eq!(w.post(&own), refused("CYCLE a job would wait for itself"));
    let replaced =
        Post { id: Some(b"a"), exists: Exists::Replace, after: Some(strict(&["b"])), ..Post::default() };
    assert_eq!(w.post(&replaced), refused("CYCLE a job would wait for itself"));
    assert_eq!(w.is("a"), Some(Ready));
    w.is_valid();
}

#[test]
fn what_others_wait_for_is_cancelled_and_deleted_only_with_them() {
    let mut w = pair(OnFailure::Hold);
    assert_eq!(w.cancel(b"a", false), Some(refused("DEPENDED b")));
    assert_eq!(w.cancel(b"a", true), Some(refused("DEPENDED b")));
    assert_eq!(w.delete_all(&[b"a"]), refused("DEPENDED b"));
    assert_eq!(w.delete_all(&[b"a", b"b"]), Ok(2));
    assert!(w.board.is_empty());
    w.is_valid();
    let mut w = pair(OnFailure::Hold);
    assert_eq!(w.delete_all(&[b"b"]), Ok(1));
    assert_eq!(w.cancel(b"a", false), Some(Ok("cancelled")));
    w.is_valid();
}

#[test]
fn a_record_that_others_wait_for_is_not_dropped() {
    let mut w = pair(OnFailure::Hold);
    w.put_after("c", &["a"], OnFailure::Hold);
    w.configure(None, Setting::RetainFailed, Some(10));
    w.configure(None, Setting::KeepFailed, Some(0));
    ends_badly(&mut w, "a");
    w.pass(1_000);
    assert_eq!((w.is("a"), w.is("b")), (Some(Failed), Some(Blocked)));
    w.reload();
    w.depend(b"b", &Depend::Remove(vec![b"a"])).unwrap().unwrap();
    assert_eq!((w.is("a"), w.is("b")), (Some(Failed), Some(Ready)));
    w.depend(b"c", &Depend::Clear).unwrap().unwrap();
    assert_eq!((w.is("a"), w.is("c")), (None, Some(Ready)));
    w.is_valid();
}

#[test]
fn a_consumed_job_goes_when_all_have_been_told_and_its_consume_is_remembered() {
    let mut w = pair(OnFailure::Hold);
    let token = Some(w.take_id(ANN, "a"));
    assert_eq!(w.done(ANN, "a", token), DID);
    assert_eq!(w.is("a"), Some(Complete));
    assert_eq!(w.done(ANN, "a", token), again(Complete));
    w.pass(0);
    assert_eq!((w.is("a"), w.is("b")), (None, Some(Ready)));
    assert_eq!(w.done(ANN, "a", token), again(Complete));
    w.is_valid();
}

#[test]
fn jobs_that_are_claimed_or_have_ended_get_no_dependencies() {
    let mut w = World::default();
    w.put("other");
    for (state, text) in [(Claimed, "CLAIMED ann"), (Failed, "ENDED failed"), (Complete, "ENDED complete")] {
        w.put_in(state.name(), state);
        let depend = add(&["other"], OnFailure::Hold);
        assert_eq!(w.depend(state.name().as_bytes(), &depend), Some(refused(text)));
    }
    w.release(b"claimed").unwrap().unwrap();
    assert_eq!(w.depend(b"claimed", &Depend::Clear), Some(refused("CLAIMED ann")));
    assert_eq!(w.depend(b"nobody", &Depend::Clear), None);
}

#[test]
fn a_replacing_post_keeps_what_it_does_not_name() {
    let mut w = pair(OnFailure::Hold);
    w.put_after("c", &["b"], OnFailure::Hold);
    w.put_replacing("b", b"new");
    assert_eq!(w.is("b"), Some(Blocked));
    let none =
        Post { id: Some(b"b"), exists: Exists::Replace, after: Some(After::default()), ..Post::default() };
    w.post(&none).unwrap();
    assert_eq!((w.is("b"), w.is("c")), (Some(Ready), Some(Blocked)));
    w.put_replacing("b", b"newer");
    ends_well(&mut w, "b");
    w.pass(0);
    assert_eq!(w.is("c"), Some(Ready));
    w.is_valid();
}

#[test]
fn a_requeued_job_waits_for_nothing() {
    let mut w = pair(OnFailure::Hold);
    w.cancel(b"b", false).unwrap().unwrap();
    w.requeue(b"b", To::Same).unwrap().unwrap();
    assert_eq!(w.is("b"), Some(Ready));
    w.is_valid();
}

#[test]
fn a_blocked_job_is_updated_like_any() {
    let mut w = pair(OnFailure::Hold);
    let due = w.now + 70;
    let update = Update { priority: Some(4), queue: Some(b"mail"), due: Some(due), ..Update::default() };
    w.update(b"b", &update).unwrap().unwrap();
    let b = w.job("b");
    assert_eq!((b.state(), b.priority(), b.queue(), b.due()), (Blocked, 4, &b"mail"[..], Some(due)));
    w.is_valid();
}

#[test]
fn twenty_thousand_are_told_in_slices_in_the_order_of_their_posts() {
    let mut w = World::default();
    w.put("a");
    for n in 0..20_000 {
        w.put_after(&format!("{n}"), &["a"], OnFailure::Hold);
    }
    ends_well(&mut w, "a");
    assert_eq!(w.board.count(Ready), 0);
    for slice in 1..=10 {
        assert!(w.slice(64));
        assert_eq!(w.board.count(Ready), slice * 64);
        w.commit();
        w.now += 1;
    }
    w.reload();
    let order: Vec<String> = w.take_all(BOB);
    assert_eq!(order, (0..640).map(|n| n.to_string()).collect::<Vec<_>>());
    w.pass(0);
    assert_eq!((w.board.count(Ready), w.board.count(Blocked), w.is("a")), (19_360, 0, None));
    w.is_valid();
}

#[test]
fn a_chain_of_cancels_is_worked_off_in_slices() {
    let mut w = World::default();
    w.put("0");
    for n in 1..2_000 {
        w.put_after(&format!("{n}"), &[&format!("{}", n - 1)], OnFailure::Cancel);
    }
    ends_badly(&mut w, "0");
    assert!(w.slice(100));
    assert!((40..=101).contains(&w.board.count(Cancelled)), "{}", w.board.count(Cancelled));
    w.commit();
    w.pass(0);
    assert_eq!(w.board.count(Cancelled), 1_999);
    w.is_valid();
}

/// Most jobs are one step of a slice. Here each is 41: itself, and one step for 16 of the 641 edges.
#[test]
fn a_slice_ends_fewer_jobs_that_wait_for_many_others() {
    for by_time in [false, true] {
        let mut w = World::default();
        let ids: Vec<String> = (0..641).map(|n| n.to_string()).collect();
        ids.iter().for_each(|id| w.put(id));
        let all: Vec<(&[u8], OnFailure)> = ids.iter().map(|id| (id.as_bytes(), OnFailure::Cancel)).collect();
        let names = vec![ByteString::from(&b"approved"[..])];
        let gate = Gate { names, within: Some(1_000), on_timeout: OnTimeout::Cancel, ..Gate::default() };
        for n in 0..10 {
            w.put_with(&format!("waiter {n}"), |p| {
                p.after = Some(After { jobs: all.clone(), ..After::default() });
                p.gate = Some(Box::new(gate.clone()));
            });
        }
        match by_time {
            true => w.now += 1_000,
            false => ends_badly(&mut w, "0"),
        }
        assert!(w.slice(64));
        assert_eq!(w.board.count(Cancelled), 2, "by time: {by_time}");
        w.commit();
        w.pass(0);
        assert_eq!(w.board.count(Cancelled), 10);
        w.is_valid();
    }
}

/// `first` jobs, for each of which one job waits, and behind that a chain; and a chain that ends with
/// the job `last`.
fn chains(first: usize, length: usize) -> World {
    let mut w = World::default();
    let ids: Vec<String> = (0..first).map(|n| format!("first {n}")).collect();
    ids.iter().for_each(|id| w.put(id));
    let ids: Vec<&str> = ids.iter().map(|id| &**id).collect();
    w.put_after("behind 0", &ids, OnFailure::Hold);
    w.put("ahead 0");
    for n in 1..length {
        for chain in ["behind", "ahead"] {
            let before = format!("{chain} {}", n - 1);
            w.put_after(&format!("{chain} {n}"), &[&before], OnFailure::Hold);
        }
    }
    w.put_after("last", &[&format!("ahead {}", length - 1)], OnFailure::Hold);
    w
}

#[test]
fn the_searches_of_one_command_have_a_bound_together() {
    let mut w = chains(40, 2_000);
    let (rules, jobs) = (w.rules.clone(), vec![(&b"last"[..], OnFailure::Hold)]);
    let searches = |w: &mut World| {
        let ids = (0..40).map(|n| format!("first {n}").into_bytes());
        let env = w.env(&rules);
        let post = |id: Vec<u8>| {
            let after = Some(After { jobs: jobs.clone(), ..After::default() });
            let post = Post { id: Some(&id), exists: Exists::Replace, after, ..Post::default() };
            w.board.post_unbounded(&env, &post, 0).map(drop).map_err(|refusal| refusal.to_string())
        };
        ids.map(post).collect::<Vec<_>>()
    };
    assert!(searches(&mut w).iter().all(Result::is_ok));
    w.board.bound_looks();
    let bounded = searches(&mut w);
    // About 4,000 looks each.
    let done = bounded.iter().take_while(|done| done.is_ok()).count();
    assert!((20..=30).contains(&done), "{done}");
    assert!(bounded[done..].iter().all(|done| *done == Err("LIMIT dependency chain".into())));
    w.board.unbound_looks();
    assert!(searches(&mut w).iter().all(Result::is_ok));
}

#[test]
fn a_job_waits_for_no_more_than_ten_thousand() {
    let mut w = World::default();
    let ids: Vec<String> = (0..AFTER_MOST + 1).map(|n| n.to_string()).collect();
    ids.iter().for_each(|id| w.put(id));
    let all: Vec<&str> = ids.iter().map(|id| &**id).collect();
    let post = Post { id: Some(b"b"), after: Some(strict(&all)), ..Post::default() };
    assert_eq!(w.post(&post), refused("LIMIT dependencies"));
    w.put_after("b", &all[1..], OnFailure::Hold);
    assert_eq!(w.depend(b"b", &add(&all[..1], OnFailure::Hold)), Some(refused("LIMIT dependencies")));
    assert_eq!(w.depend(b"b", &add(&all[1..2], OnFailure::Run)), Some(Ok(())));
}
