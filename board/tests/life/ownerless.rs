//! Boards without owners: whoever comes first has done the job.

use board::*;

use crate::site::*;
use crate::world::World;

fn ownerless() -> World {
    let mut w = World::default();
    w.configure(None, Setting::Ownerless, Some(1));
    w
}

fn ended<T>() -> Result<T, String> {
    refused("ENDED complete")
}

#[test]
fn the_name_of_anybody_is_refused_where_jobs_have_owners() {
    let mut w = World::default();
    w.put_in("job", Claimed);
    let text = "ERR worker must not be '*' on a board that is not ownerless";
    assert_eq!(w.done(ANYBODY, "job", None), refused(text));
    assert_eq!(w.beat(ANYBODY, "job", None), refused(text));
    assert_eq!(w.fails(ANYBODY, "job", None), refused(text));
    assert_eq!(w.gives_back(ANYBODY, "job", None), refused(text));
    assert_eq!(w.trashes(ANYBODY, "job", None), refused(text));
    assert_eq!(w.done(ANYBODY, "nothing", None), refused(text));
    assert_eq!(w.is("job"), Some(Claimed));
}

#[test]
fn a_live_job_is_completed_by_whoever_comes_first_and_by_nobody_after() {
    for retain in [0, -1] {
        for state in [Scheduled, Blocked, Ready, Claimed] {
            let mut w = ownerless();
            w.put_in("job", state);
            let token = w.job("job").token();
            assert_eq!(w.done_keeping(ANYBODY, "job", retain), DID, "{state:?}");
            assert_eq!(w.done(ANYBODY, "job", None), ended());
            assert_eq!(w.done(ANN, "job", token), ended());
            assert_eq!(w.done(BOB, "job", None), ended());
            assert_eq!(w.done(ANYBODY, "job", token), ended());
            assert_eq!(w.beat(ANN, "job", token), ended());
            w.is_valid();
            w.reload();
            w.is_valid();
        }
    }
}

#[test]
fn a_token_that_nobody_was_given_repeats_nothing() {
    for retain in [0, -1] {
        let mut w = ownerless();
        w.put("job");
        let consume = |token| (Speaker { worker: ANYBODY, id: b"job", token }, Consume::default());
        let kept = Consume { retain: Some(retain), ..Consume::default() };
        assert_eq!(w.work(&(consume(Some(0)).0, kept)), DID);
        assert_eq!(w.work(&consume(Some(0))), ended());
        assert_eq!(w.work(&consume(Some(7))), ended());
    }
}

#[test]
fn a_lapsed_job_is_completed_by_the_other_and_its_last_holder_is_told() {
    for retain in [0, 1_000, -1] {
        let mut w = ownerless();
        w.put("job");
        let token = Some(w.take_id(ANN, "job"));
        w.pass(30_000);
        assert_eq!(w.done_keeping(ANYBODY, "job", retain), DID);
        assert_eq!(w.done(ANN, "job", token), ended());
        // The record has gone, the tombstone has not.
        w.pass(2_000);
        assert_eq!(w.done(ANN, "job", token), ended());
        assert_eq!(w.done(ANYBODY, "job", token), ended());
        w.pass(60_000);
        let after = if retain < 0 { ended() } else { refused("NOJOB no such job") };
        assert_eq!(w.done(ANN, "job", token), after);
        w.is_valid();
    }
}

#[test]
fn who_shows_the_token_of_the_claim_is_its_holder_and_may_repeat() {
    for retain in [0, -1] {
        for late in [false, true] {
            let mut w = ownerless();
            w.put("job");
            let token = Some(w.take_id(ANN, "job"));
            if late {
                w.pass(30_000);
            }
            let consume = (
                Speaker { worker: ANYBODY, id: b"job", token },
                Consume { retain: Some(retain), ..Consume::default() },
            );
            assert_eq!(w.work(&consume), DID);
            assert_eq!(w.work(&consume), again(Complete));
            assert_eq!(w.done(ANN, "job", token), again(Complete));
            assert_eq!(w.done(ANYBODY, "job", None), ended());
        }
    }
}

#[test]
fn a_token_is_checked_while_the_job_is_claimed() {
    let mut w = ownerless();
    w.put("job");
    let old = w.take_id(ANN, "job");
    w.pass(30_000);
    let token = w.take_id(BOB, "job");
    let stale = format!("STALE token {old} is not the current one");
    assert_eq!(w.done(ANYBODY, "job", Some(old)), refused(&stale));
    assert_eq!(w.beat(ANYBODY, "job", Some(old)), refused(&stale));
    assert_eq!(w.beat(ANYBODY, "job", Some(token)), Ok((w.now + 30_000, false)));
    assert_eq!(w.beat(ANYBODY, "job", None), Ok((w.now + 30_000, false)));
    assert_eq!(w.done(ANYBODY, "job", None), DID);
    assert_eq!(w.beat(BOB, "job", Some(token)), ended());
}

#[test]
fn a_heartbeat_and_an_abandon_need_a_claim_that_runs_or_lapsed() {
    let mut w = ownerless();
    w.put("job");
    assert_eq!(w.beat(ANYBODY, "job", None), refused("NOTCLAIMED ready"));
    assert_eq!(w.gives_back(ANYBODY, "job", None), refused("NOTCLAIMED ready"));
    let token = w.take_id(ANN, "job");
    w.pass(30_000);
    assert_eq!(w.beat(ANYBODY, "job", Some(1)), refused("STALE token 1 is not the current one"));
    assert_eq!(w.beat(ANYBODY, "job", None), Ok((w.now + 30_000, false)));
    assert_eq!((w.job("job").worker(), w.job("job").token()), (Some(ANN), Some(token)));
    assert_eq!(w.gives_back(ANYBODY, "job", None), DID);
    assert_eq!(w.gives_back(ANN, "job", Some(token)), refused("NOTCLAIMED ready"));
    w.is_valid();
}

#[test]
fn anybody_may_fail_or_trash_a_job_and_its_holder_is_told() {
    let mut w = ownerless();
    w.put("job");
    let token = Some(w.take_id(ANN, "job"));
    assert_eq!(w.fails(ANYBODY, "job", None), DID);
    assert_eq!((w.is("job"), w.job("job").left(&w.rules)), (Some(Scheduled), 9));
    assert_eq!(w.fails(ANN, "job", token), refused("NOTCLAIMED scheduled"));
    assert_eq!(w.fails(ANYBODY, "job", None), DID);
    assert_eq!(w.job("job").left(&w.rules), 8);
    assert_eq!(w.trashes(ANYBODY, "job", None), DID);
    assert_eq!(w.trashes(ANYBODY, "job", None), refused("ENDED trashed"));
    assert_eq!(w.events("job"), ["posted", "claimed", "failed", "failed", "trashed"]);
    assert!(w.job("job").history().iter().skip(2).all(|entry| entry.worker.is_none()));
    w.is_valid();
}

#[test]
fn a_job_that_was_asked_to_stop_is_cancelled_by_the_end_that_anybody_tells() {
    let mut w = ownerless();
    w.put("job");
    let token = Some(w.take_id(ANN, "job"));
    w.cancel(b"job", false).unwrap().unwrap();
    assert_eq!(w.done(ANYBODY, "job", None), refused("CANCELLED cancel was requested"));
    assert_eq!(w.gives_back(ANYBODY, "job", None), DID);
    assert_eq!(w.is("job"), Some(Cancelled));
    assert_eq!(w.gives_back(ANN, "job", token), refused("CANCELLED the job was cancelled"));
}

#[test]
fn jobs_that_wait_for_one_completed_by_anybody_go_on() {
    let mut w = ownerless();
    w.put("first");
    w.put_after("second", &["first"], OnFailure::Hold);
    assert_eq!(w.done(ANYBODY, "first", None), DID);
    w.pass(0);
    assert_eq!(w.is("second"), Some(Ready));
    w.is_valid();
}
