//! Limits of how many jobs of a queue run at once.

use board::*;

use crate::site::*;
use crate::world::World;

const MAIL: Option<&[u8]> = Some(b"mail");

/// A board with so many jobs in mail, of which at most `most` may run.
fn limited(jobs: usize, most: i64) -> World {
    let mut w = World::default();
    for n in 0..jobs {
        w.put_with(&format!("job{n}"), |p| p.queue = MAIL);
    }
    limit(&mut w, most);
    w
}

fn limit(w: &mut World, most: i64) {
    w.configure(MAIL, Setting::Concurrency, Some(most));
}

/// Whether mail has been woken since the last call.
fn woken(w: &mut World) -> bool {
    let mut found = false;
    w.board.woken(|board, queue| found |= board.queue_named(queue) == b"mail");
    found
}

fn running(w: &World) -> u64 {
    w.is_valid();
    w.board.count_in(b"mail", Claimed)
}

#[test]
fn no_more_jobs_run_than_the_limit_says() {
    for most in 0..4 {
        let mut w = limited(3, most);
        w.put("plain");
        assert_eq!(w.take_all(ANN).len() as i64, most.min(3) + 1);
        assert_eq!(running(&w) as i64, most.min(3));
    }
    let mut w = limited(3, -1);
    assert_eq!(w.take_all(ANN).len(), 3);
}

#[test]
fn a_full_queue_is_passed_over_in_every_order() {
    for order in [Order::Best, Order::Listed, Order::Rotate] {
        let mut w = limited(2, 1);
        w.put("plain");
        let queues: [&[u8]; 2] = [b"mail", b"default"];
        let claim = Claim { worker: ANN, queues: &queues, order, ..Claim::default() };
        assert_eq!(w.claim(&claim, 9).len(), 2);
        assert!(!w.board.claimable(&claim, w.now));
        assert_eq!(running(&w), 1);
    }
}

#[test]
fn a_claim_by_id_keeps_to_the_limit() {
    let mut w = limited(2, 1);
    w.take_id(ANN, "job1");
    let claim = Claim { worker: BOB, ..Claim::default() };
    assert_eq!(w.claim_id(&claim, b"job0"), refused("LIMIT concurrency"));
    w.done(ANN, "job1", None).unwrap();
    assert!(w.claim_id(&claim, b"job0").is_ok());
}

#[test]
fn the_value_of_the_board_is_that_of_each_queue_without_its_own() {
    let mut w = World::default();
    w.configure(None, Setting::Concurrency, Some(1));
    limit(&mut w, 2);
    for n in 0..3 {
        w.put_with(&format!("mail{n}"), |p| p.queue = MAIL);
        w.put(&format!("plain{n}"));
        w.put_with(&format!("other{n}"), |p| p.queue = Some(b"other"));
    }
    assert_eq!(w.take_all(ANN).len(), 4);
    assert_eq!([b"mail", b"none"].map(|q| w.board.concurrency(q)), [2, 1]);
}

#[test]
fn a_limit_below_what_runs_does_no_harm() {
    let mut w = limited(5, 4);
    assert_eq!(w.take_all(ANN).len(), 4);
    limit(&mut w, 2);
    let token = w.job("job0").token();
    assert!(w.beat(ANN, "job0", token).is_ok());
    assert_eq!(w.done(ANN, "job0", token), DID);
    assert_eq!(w.done(ANN, "job1", None), DID);
    assert!(w.take_all(BOB).is_empty());
    assert_eq!(w.done(ANN, "job2", None), DID);
    assert_eq!(w.take_all(BOB), ["job4"]);
    assert_eq!(running(&w), 2);
}

#[test]
fn a_late_heartbeat_does_not_exceed_the_limit() {
    let mut w = limited(2, 1);
    let token = Some(w.take_id(ANN, "job0"));
    w.pass(30_000);
    w.take_id(BOB, "job1");
    assert_eq!(w.beat(ANN, "job0", token), refused("LIMIT concurrency"));
    assert_eq!(running(&w), 1);
    w.done(BOB, "job1", None).unwrap();
    assert!(w.beat(ANN, "job0", token).is_ok());
    assert_eq!(running(&w), 1);
    // What came late but ends the job needs no slot.
    let mut w = limited(2, 1);
    let token = Some(w.take_id(ANN, "job0"));
    w.pass(30_000);
    w.take_id(BOB, "job1");
    assert_eq!(w.done(ANN, "job0", token), DID);
}

#[test]
fn a_running_job_is_not_moved_into_a_full_queue() {
    let mut w = limited(1, 1);
    w.put("plain");
    w.put("waits");
    w.take_id(ANN, "job0");
    w.take_id(ANN, "plain");
    let to_mail = Update { queue: MAIL, ..Update::default() };
    assert_eq!(w.update(b"plain", &to_mail), Some(refused("LIMIT concurrency")));
    assert_eq!(w.update(b"job0", &to_mail), Some(Ok(())));
    assert_eq!(w.update(b"waits", &to_mail), Some(Ok(())));
    limit(&mut w, 2);
    let slots: Vec<u32> = ["plain", "job0"].iter().filter_map(|id| w.board.find(id.as_bytes())).collect();
    assert_eq!(w.board.check_room(b"mail", &slots), Ok(()));
    assert_eq!(w.board.check_room(b"default", &slots), Ok(()));
    w.configure(Some(b"default"), Setting::Concurrency, Some(1));
    assert_eq!(w.board.check_room(b"default", &slots), Err(Refusal::Limit("concurrency")));
    assert_eq!(running(&w), 1);
}

#[test]
fn every_end_of_a_claim_wakes_the_queue() {
    type End = fn(&mut World);
    let ends: [(&str, End); 12] = [
        ("consume", |w| assert_eq!(w.done(ANN, "job0", None), DID)),
        ("fail", |w| assert_eq!(w.fails(ANN, "job0", None), DID)),
        ("abandon", |w| assert_eq!(w.gives_back(ANN, "job0", None), DID)),
        ("trash", |w| assert_eq!(w.trashes(ANN, "job0", None), DID)),
        ("lapse", |w| w.pass(30_000)),
        ("cancel", |w| assert_eq!(w.cancel(b"job0", true), Some(Ok("cancelled")))),
        ("release", |w| assert_eq!(w.release(b"job0"), Some(Ok(())))),
        ("delete", |w| assert!(w.delete(b"job0"))),
        ("replace", |w| w.put_replacing("job0", b"new")),
        ("update", |w| {
            w.update(b"job0", &Update { queue: Some(b"other"), ..Update::default() }).unwrap().unwrap()
        }),
        ("raise", |w| limit(w, 2)),
        ("reset", |w| w.configure(MAIL, Setting::Concurrency, None)),
    ];
    for (what, end) in ends {
        let mut w = limited(2, 1);
        assert_eq!(w.take_all(ANN), ["job0"], "{what}");
        woken(&mut w);
        end(&mut w);
        assert!(woken(&mut w), "{what}");
        assert!(!w.take_all(BOB).is_empty(), "{what}");
        w.is_valid();
    }
}

#[test]
fn a_limit_of_the_board_that_is_raised_wakes_its_queues() {
    let mut w = limited(2, 1);
    w.configure(MAIL, Setting::Concurrency, None);
    w.configure(None, Setting::Concurrency, Some(1));
    w.take_all(ANN);
    woken(&mut w);
    w.configure(None, Setting::Concurrency, Some(2));
    assert!(woken(&mut w));
}

#[test]
fn a_limit_outlives_a_snapshot() {
    let mut w = limited(3, 1);
    w.take_all(ANN);
    limit(&mut w, 0);
    w.reload();
    assert!(w.take_all(BOB).is_empty());
    assert_eq!((running(&w), w.board.concurrency(b"mail")), (1, 0));
}

#[test]
fn no_more_jobs_are_claimable_than_may_run() {
    let mut w = limited(5, 3);
    for id in ["a", "b"] {
        w.put(id);
    }
    let count = |w: &World, queues: &[&[u8]], most| w.board.claimable_jobs(queues, most, w.now);
    assert_eq!(count(&w, &[b"mail"], 9), 3);
    assert_eq!(count(&w, &[b"mail", b"default"], 9), 5);
    assert_eq!(count(&w, &[], 9), 5);
    assert_eq!(count(&w, &[], 4), 4);
    w.take_id(ANN, "job0");
    assert_eq!(count(&w, &[b"mail"], 9), 2);
    limit(&mut w, 1);
    assert_eq!(count(&w, &[b"mail"], 9), 0);
    assert_eq!(count(&w, &[b"none"], 9), 0);
}

#[test]
fn a_client_that_lingers_is_served_at_its_time() {
    let mut w = limited(1, 9);
    let (rules, now) = (w.rules.clone(), w.now);
    w.board.nobody_waits();
    w.board.linger_until(now + 80);
    w.board.linger_until(now + 50);
    let env = w.env(&rules);
    assert_eq!(w.board.reckon(&env), now + 50);
    w.board.wake_clients(now + 49);
    assert!(!w.board.has_woken());
    w.board.wake_clients(now + 50);
    assert!(w.board.has_woken() && w.board.lingered() && !w.board.lingered());
}
