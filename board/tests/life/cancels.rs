//! Cancels: at once, or a request that the holder sees, and every way in which that ends.

use board::*;

use crate::site::*;
use crate::world::World;

/// A job of ann's that somebody asked to cancel; its token.
fn asked() -> (World, Option<u64>) {
    let mut w = World::default();
    w.put("job");
    let token = w.take_id(ANN, "job");
    assert_eq!(w.cancel(b"job", false), Some(Ok("requested")));
    assert_eq!(w.is("job"), Some(Claimed));
    (w, Some(token))
}

fn is_cancelled(w: &World) {
    assert_eq!(w.is("job"), Some(Cancelled));
    w.is_valid();
}

#[test]
fn a_job_that_waits_is_cancelled_at_once() {
    for state in [Scheduled, Ready] {
        let mut w = World::default();
        w.put_in("job", state);
        assert_eq!(w.cancel(b"job", false), Some(Ok("cancelled")));
        assert_eq!(w.cancel(b"job", true), Some(Ok("already")));
        is_cancelled(&w);
    }
}

#[test]
fn a_cancel_names_no_worker_that_holds_nothing() {
    let workers = |w: &World| -> Vec<_> {
        let entries = w.job("job").history();
        entries
            .iter()
            .skip(2)
            .map(|e| (e.event.name(), e.worker.as_ref().map(|name| name.to_vec())))
            .collect()
    };
    let ann = || Some(ANN.to_vec());
    let mut w = World::default();
    w.put("job");
    w.take_id(ANN, "job");
    w.release(b"job").unwrap().unwrap();
    assert_eq!(w.cancel(b"job", false), Some(Ok("cancelled")));
    assert_eq!(workers(&w), [("released", ann()), ("cancelled", None)]);
    is_cancelled(&w);

    let mut w = World::default();
    w.put("job");
    w.take_id(ANN, "job");
    w.fails_with(ANN, "job", None, Retry::After(10)).unwrap();
    assert_eq!(w.cancel(b"job", false), Some(Ok("cancelled")));
    assert_eq!(workers(&w), [("failed", ann()), ("cancelled", None)]);
    is_cancelled(&w);

    let (mut w, _) = asked();
    w.release(b"job").unwrap().unwrap();
    assert_eq!(workers(&w), [("cancel-requested", None), ("cancelled", ann())]);
    is_cancelled(&w);
}

#[test]
fn an_ended_job_is_not_cancelled_and_an_unknown_one_is_told() {
    let mut w = World::default();
    for state in [Complete, Failed, Trashed] {
        w.put_in(state.name(), state);
        let refusal = refused(&format!("ENDED {}", state.name()));
        assert_eq!(w.cancel(state.name().as_bytes(), true), Some(refusal));
    }
    assert_eq!(w.cancel(b"nobody", false), None);
}

#[test]
fn the_holder_sees_the_request_and_goes_on() {
    let (mut w, token) = asked();
    assert_eq!(w.cancel(b"job", false), Some(Ok("already")));
    assert_eq!(w.beat(ANN, "job", token), Ok((w.now + 30_000, true)));
    assert_eq!(w.is("job"), Some(Claimed));
    w.reload();
    assert!(w.job("job").cancel());
}

#[test]
fn a_consume_is_refused_unless_forced() {
    let (mut w, token) = asked();
    assert_eq!(w.done(ANN, "job", token), refused("CANCELLED cancel was requested"));
    assert_eq!(w.is("job"), Some(Claimed));
    let consume = (Speaker { worker: ANN, id: b"job", token }, Consume { force: true, ..Consume::default() });
    assert_eq!(w.work(&consume), DID);
    assert_eq!(w.is("job"), None);
}

#[test]
fn every_other_end_of_the_claim_cancels() {
    let (mut w, token) = asked();
    assert_eq!(w.fails(ANN, "job", token), DID);
    is_cancelled(&w);
    assert_eq!(w.fails(ANN, "job", token), again(Cancelled));
    assert_eq!(w.done(ANN, "job", token), refused("CANCELLED the job was cancelled"));

    let (mut w, token) = asked();
    assert_eq!(w.gives_back(ANN, "job", token), DID);
    is_cancelled(&w);

    let (mut w, token) = asked();
    assert_eq!(w.trashes(ANN, "job", token), DID);
    is_cancelled(&w);

    let (mut w, _) = asked();
    assert_eq!(w.release(b"job"), Some(Ok(())));
    is_cancelled(&w);

    let (mut w, token) = asked();
    w.pass(30_000);
    is_cancelled(&w);
    assert_eq!(w.beat(ANN, "job", token), refused("CANCELLED the job was cancelled"));

    let mut w = World::default();
    w.put_with("job", |p| p.options.timeout = Some(10));
    w.take_id(ANN, "job");
    w.cancel(b"job", false).unwrap().unwrap();
    w.pass(10);
    is_cancelled(&w);

    let (mut w, token) = asked();
    assert_eq!(w.cancel(b"job", true), Some(Ok("cancelled")));
    is_cancelled(&w);
    assert_eq!(w.done(ANN, "job", token), refused("CANCELLED the job was cancelled"));
}

#[test]
fn a_request_does_not_outlive_a_replacing_post() {
    let (mut w, token) = asked();
    w.put_replacing("job", b"new");
    assert_eq!(w.is("job"), Some(Ready));
    let fresh = w.take_id(BOB, "job");
    assert_eq!(w.done(ANN, "job", token), refused("NOTOWNER bob"));
    assert_eq!(w.done(BOB, "job", Some(fresh)), DID);
}

#[test]
fn a_request_stays_when_the_job_is_moved_to_another_queue() {
    let (mut w, token) = asked();
    w.update(b"job", &Update { queue: Some(b"mail"), ..Update::default() }).unwrap().unwrap();
    assert_eq!(w.beat(ANN, "job", token).map(|(_, cancel)| cancel), Ok(true));
    w.is_valid();
}
