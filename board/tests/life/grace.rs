//! The grace after a lease, and the one after a request to cancel.

use board::*;

use crate::site::*;
use crate::world::World;

/// A job of ann's with a lease of 1000 ms and a grace of 500; its token.
fn held() -> (World, Option<u64>) {
    let mut w = World::default();
    w.configure(None, Setting::Grace, Some(500));
    w.put_with("job", |p| p.options.lease = Some(1_000));
    let token = w.take_id(ANN, "job");
    (w, Some(token))
}

#[test]
fn a_job_is_handed_over_when_the_grace_after_its_lease_has_passed() {
    let (mut w, _) = held();
    let deadline = w.now + 1_000;
    assert_eq!(w.job("job").deadline(), Some(deadline));
    w.pass(1_499);
    assert_eq!((w.is("job"), w.job("job").deadline()), (Some(Claimed), Some(deadline)));
    assert!(w.take(BOB).is_none());
    w.pass(1);
    assert_eq!((w.is("job"), w.job("job").lapses()), (Some(Ready), 1));
    assert!(w.take(BOB).is_some());
    w.is_valid();
}

#[test]
fn a_heartbeat_in_the_grace_renews() {
    let (mut w, token) = held();
    w.pass(1_400);
    assert_eq!(w.beat(ANN, "job", token), Ok((w.now + 1_000, false)));
    w.pass(1_499);
    assert_eq!((w.is("job"), w.job("job").lapses()), (Some(Claimed), 0));
    w.pass(1);
    assert_eq!((w.is("job"), w.job("job").lapses()), (Some(Ready), 1));
    w.is_valid();
}

#[test]
fn all_verbs_of_the_holder_work_in_the_grace() {
    let (mut w, token) = held();
    w.pass(1_200);
    assert_eq!(w.done(ANN, "job", token), DID);
    let (mut w, token) = held();
    w.pass(1_200);
    assert_eq!(w.fails(ANN, "job", token), DID);
    assert_eq!((w.is("job"), w.job("job").lapses()), (Some(Scheduled), 0));
    w.is_valid();
}

#[test]
fn each_claim_has_its_grace_afresh() {
    let (mut w, _) = held();
    w.pass(1_500);
    w.configure(None, Setting::Grace, Some(200));
    w.take_id(BOB, "job");
    // What is set later counts for later claims.
    w.configure(None, Setting::Grace, Some(9_000));
    w.pass(1_199);
    assert_eq!(w.is("job"), Some(Claimed));
    w.pass(1);
    assert_eq!((w.is("job"), w.job("job").lapses()), (Some(Ready), 2));
    w.is_valid();
}

#[test]
fn a_job_that_came_back_to_its_worker_has_its_grace() {
    let (mut w, token) = held();
    w.pass(1_500);
    assert_eq!(w.beat(ANN, "job", token), Ok((w.now + 1_000, false)));
    w.pass(1_499);
    assert_eq!(w.is("job"), Some(Claimed));
    w.pass(1);
    assert_eq!(w.is("job"), Some(Ready));
    w.is_valid();
}

#[test]
fn the_timeout_of_a_run_knows_no_grace() {
    let mut w = World::default();
    w.configure(None, Setting::Grace, Some(500));
    w.put_with("job", |p| (p.options.lease, p.options.timeout) = (Some(1_000), Some(1_200)));
    w.take_id(ANN, "job");
    w.pass(1_200);
    assert_eq!((w.is("job"), w.job("job").kind()), (Some(Scheduled), Some(&b"timeout"[..])));
    w.is_valid();
}

#[test]
fn a_slot_stays_taken_during_the_grace() {
    let (mut w, _) = held();
    w.put("other");
    w.configure(None, Setting::Concurrency, Some(1));
    w.pass(1_400);
    assert!(w.take(BOB).is_none());
    w.pass(100);
    assert!(w.take(BOB).is_some());
    assert_eq!(w.board.count(Claimed), 1);
    w.is_valid();
}

#[test]
fn the_queue_has_a_grace_of_its_own_and_a_snapshot_keeps_it() {
    let mut w = World::default();
    w.configure(Some(b"mail"), Setting::Grace, Some(700));
    w.put_with("job", |p| (p.queue, p.options.lease) = (Some(&b"mail"[..]), Some(100)));
    w.take_id(ANN, "job");
    w.reload();
    w.pass(799);
    assert_eq!(w.is("job"), Some(Claimed));
    w.pass(1);
    assert_eq!(w.is("job"), Some(Ready));
    w.is_valid();
}

#[test]
fn a_claim_whose_holder_does_not_stop_in_time_is_cancelled() {
    let mut w = World::default();
    w.configure(None, Setting::CancelGrace, Some(300));
    w.put("job");
    let token = Some(w.take_id(ANN, "job"));
    assert_eq!(w.cancel(b"job", false), Some(Ok("requested")));
    let end = w.now + 300;
    assert_eq!(w.job("job").deadline(), Some(end));
    w.pass(200);
    assert_eq!(w.cancel(b"job", false), Some(Ok("already")));
    assert_eq!(w.beat(ANN, "job", token), Ok((end, true)));
    w.reload();
    w.pass(99);
    assert_eq!(w.is("job"), Some(Claimed));
    w.pass(1);
    assert_eq!(w.is("job"), Some(Cancelled));
    assert_eq!(w.done(ANN, "job", token), refused("CANCELLED the job was cancelled"));
    assert_eq!(w.job("job").lapses(), 0);
    w.is_valid();
}

#[test]
fn without_a_grace_of_the_cancel_the_holder_may_go_on() {
    let mut w = World::default();
    w.put("job");
    let token = Some(w.take_id(ANN, "job"));
    w.cancel(b"job", false).unwrap().unwrap();
    w.pass(29_000);
    assert!(w.beat(ANN, "job", token).is_ok());
    w.pass(29_000);
    assert_eq!(w.is("job"), Some(Claimed));
    w.configure(None, Setting::CancelGrace, Some(0));
    w.put("other");
    w.take_id(ANN, "other");
    w.cancel(b"other", false).unwrap().unwrap();
    w.pass(0);
    assert_eq!((w.is("job"), w.is("other")), (Some(Claimed), Some(Cancelled)));
    w.is_valid();
}

#[test]
fn a_worker_that_consumes_by_force_is_in_time() {
    let mut w = World::default();
    w.configure(None, Setting::CancelGrace, Some(300));
    w.put("job");
    w.take_id(ANN, "job");
    w.cancel(b"job", false).unwrap().unwrap();
    w.pass(299);
    let consume = (
        Speaker { worker: ANN, id: b"job", ..Speaker::default() },
        Consume { force: true, ..Consume::default() },
    );
    assert_eq!(w.work(&consume), DID);
    w.pass(1);
    assert_eq!(w.is("job"), None);
    w.is_valid();
}

#[test]
fn the_end_of_a_lease_is_announced_once_and_the_worker_learns_until_when() {
    let (mut w, token) = held();
    let end = w.now + 1_500;
    w.board.listen(Subscribers { workers: true, ..Subscribers::default() });
    w.pass(999);
    assert!(w.board.messages().is_empty());
    w.pass(1);
    let messages = w.board.messages();
    assert_eq!(messages.iter().map(|m| m.kind).collect::<Vec<_>>(), [EventKind::Grace]);
    assert_eq!(messages[0].worker.as_deref(), Some(ANN));
    assert!(messages[0].fields.contains(&EventField::Number("until", end)));
    assert_eq!((w.events("job"), w.job("job").until()), (vec!["posted", "claimed", "grace"], Some(end)));
    // Neither the rest of the grace nor a copy that loads now announces it again.
    w.pass(200);
    w.reload();
    w.pass(200);
    assert!(w.board.messages().is_empty());
    w.is_valid();
    // A heartbeat ends the grace; the next end of the lease begins another.
    w.board.listen(Subscribers { workers: true, ..Subscribers::default() });
    w.beat(ANN, "job", token).unwrap();
    w.pass(1_000);
    assert_eq!(w.board.messages().len(), 1);
    w.pass(500);
    assert_eq!(
        (w.is("job"), w.events("job")),
        (Some(Ready), vec!["posted", "claimed", "grace", "grace", "lapsed",])
    );
    w.is_valid();
}

#[test]
fn a_grace_that_passed_unseen_is_not_announced() {
    let (mut w, _) = held();
    w.pass(1_500);
    assert_eq!(w.events("job"), ["posted", "claimed", "lapsed"]);
    let mut w = World::default();
    w.put_with("job", |p| p.options.lease = Some(1_000));
    w.take_id(ANN, "job");
    assert_eq!(w.job("job").until(), w.job("job").deadline());
    w.pass(1_000);
    assert_eq!(w.events("job"), ["posted", "claimed", "lapsed"]);
}

#[test]
fn a_timeout_in_the_grace_ends_the_run() {
    let mut w = World::default();
    w.configure(None, Setting::Grace, Some(500));
    w.put_with("job", |p| (p.options.lease, p.options.timeout) = (Some(1_000), Some(1_200)));
    w.take_id(ANN, "job");
    assert_eq!(w.job("job").until(), Some(w.now + 1_200));
    w.pass(1_000);
    w.pass(200);
    assert_eq!(w.events("job"), ["posted", "claimed", "grace", "timeout"]);
    w.is_valid();
}

#[test]
fn a_job_of_a_registered_worker_is_kept_no_longer_than_the_registration() {
    let (mut w, _) = held();
    w.register(&Register { worker: ANN, time: Some(1_100), ..Register::default() }).unwrap();
    assert_eq!(w.job("job").until(), Some(w.now + 1_100));
    w.pass(1_000);
    w.pass(100);
    assert_eq!((w.is("job"), w.job("job").lapses()), (Some(Ready), 1));
    w.is_valid();
}
