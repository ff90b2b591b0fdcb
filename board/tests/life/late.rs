//! Leases that end, and workers that come late or speak twice.

use board::*;

use crate::site::*;
use crate::world::World;

/// A job whose lease of ann's has ended; its token.
fn lapsed() -> (World, u64) {
    let mut w = World::default();
    w.put("job");
    let token = w.take_id(ANN, "job");
    w.pass(30_000);
    assert_eq!((w.is("job"), w.job("job").lapses()), (Some(Ready), 1));
    (w, token)
}

#[test]
fn a_lease_ends_at_its_millisecond() {
    let mut w = World::default();
    w.put("job");
    w.take_id(ANN, "job");
    w.pass(29_999);
    assert_eq!(w.is("job"), Some(Claimed));
    w.pass(1);
    assert_eq!((w.is("job"), w.job("job").previous()), (Some(Ready), Some(ANN)));
}

#[test]
fn a_heartbeat_moves_the_end_of_the_lease_and_may_change_its_length() {
    let mut w = World::default();
    w.put("job");
    let token = Some(w.take_id(ANN, "job"));
    w.pass(20_000);
    assert_eq!(w.beat(ANN, "job", token), Ok((w.now + 30_000, false)));
    let beat =
        (Speaker { worker: ANN, id: b"job", token }, Heartbeat { lease: Some(100), ..Heartbeat::default() });
    assert_eq!(w.heartbeat(&beat), Ok((w.now + 100, false)));
    assert_eq!(w.beat(ANN, "job", token), Ok((w.now + 100, false)));
    w.pass(100);
    assert_eq!(w.is("job"), Some(Ready));
}

#[test]
fn a_token_stands_for_one_job_among_many_of_its_worker() {
    let mut w = World::default();
    let ids: Vec<String> = (0..600).map(|n| format!("job-{n}")).collect();
    let tokens: Vec<u64> = ids.iter().map(|id| (w.put(id), w.take_id(ANN, id)).1).collect();
    for (at, id) in ids.iter().enumerate().step_by(7) {
        let (own, other) = (tokens[at], tokens[(at + 1) % 600]);
        let stale = refused(&format!("STALE token {other} is not the current one"));
        assert_eq!(w.beat(ANN, id, Some(other)), stale);
        assert_eq!(w.beat(BOB, id, Some(own)), refused("NOTOWNER ann"));
        assert_eq!(w.beat(ANN, id, Some(own)), Ok((w.now + 30_000, false)));
        assert_eq!(w.done(ANN, id, Some(own)), DID);
        assert_eq!(w.beat(ANN, id, Some(own)), refused("NOJOB no such job"));
    }
    w.post(&Post { payload: b"work", ..Post::default() }).unwrap();
    let made = w.claim(&Claim { worker: ANN, ..Claim::default() }, 1).remove(0);
    assert_eq!(w.beat(ANN, &name(&made.id), Some(made.token)), Ok((w.now + 30_000, false)));
    assert_eq!(w.beat(ANN, "", Some(made.token)), refused("NOJOB no such job"));
    w.is_valid();
}

#[test]
fn a_heartbeat_is_a_change_of_any_job() {
    let mut w = World::default();
    w.put("plain");
    w.put_with("rare", |p| p.user = Some(b"eve"));
    for id in ["plain", "rare"] {
        let token = Some(w.take_id(ANN, id));
        w.pass(20);
        w.beat(ANN, id, token).unwrap();
        let beaten = w.now;
        w.pass(20);
        assert_eq!(w.job(id).modified(), beaten);
        w.reload();
        assert_eq!(w.job(id).modified(), beaten);
        w.done_keeping(ANN, id, -1).unwrap();
        assert_eq!(w.job(id).modified(), w.now);
    }
    w.is_valid();
}

#[test]
fn a_late_consume_is_accepted_until_somebody_else_claims() {
    let (mut w, token) = lapsed();
    assert_eq!(w.done(ANN, "job", Some(token)), DID);
    assert_eq!(w.is("job"), None);
    let (mut w, token) = lapsed();
    let bobs = w.take_id(BOB, "job");
    assert_eq!(w.done(ANN, "job", Some(token)), refused("NOTOWNER bob"));
    assert_eq!(w.done(BOB, "job", Some(bobs)), DID);
    w.is_valid();
}

#[test]
fn a_late_verb_is_accepted_before_the_timer_has_run() {
    let mut w = World::default();
    w.put("job");
    let token = w.take_id(ANN, "job");
    w.now += 40_000;
    assert_eq!(w.done(ANN, "job", Some(token)), DID);
}

#[test]
fn every_late_verb_of_the_last_holder_is_accepted_with_its_token_or_none() {
    for absent in [false, true] {
        let (mut w, token) = lapsed();
        let token = Some(token).filter(|_| !absent);
        assert_eq!(w.fails(ANN, "job", token), DID);
        assert_eq!((w.is("job"), w.job("job").left(&w.rules)), (Some(Scheduled), 9));
        let (mut w, token) = lapsed();
        let token = Some(token).filter(|_| !absent);
        assert_eq!(w.gives_back(ANN, "job", token), DID);
        assert_eq!(w.is("job"), Some(Ready));
        let (mut w, token) = lapsed();
        let token = Some(token).filter(|_| !absent);
        assert_eq!(w.trashes(ANN, "job", token), DID);
        assert_eq!(w.is("job"), Some(Trashed));
    }
}

#[test]
fn a_late_verb_with_a_wrong_token_or_of_another_is_refused() {
    let (mut w, token) = lapsed();
    let wrong = Some(token + 1);
    let stale = format!("STALE token {} is not the current one", token + 1);
    assert_eq!(w.done(ANN, "job", wrong), refused(&stale));
    assert_eq!(w.beat(ANN, "job", wrong), refused(&stale));
    assert_eq!(w.done(BOB, "job", Some(token)), refused("NOTCLAIMED ready"));
    assert_eq!(w.beat(BOB, "job", None), refused("NOTCLAIMED ready"));
}

#[test]
fn a_late_heartbeat_takes_the_job_back_under_the_same_token_and_attempt() {
    let (mut w, token) = lapsed();
    assert_eq!(w.beat(ANN, "job", Some(token)), Ok((w.now + 30_000, false)));
    let job = w.job("job");
    assert_eq!((job.state(), job.token(), job.attempt(), job.lapses()), (Claimed, Some(token), 1, 1));
    assert_eq!(w.events("job"), ["posted", "claimed", "lapsed", "revived"]);
    assert_eq!(w.done_keeping(ANN, "job", -1), DID);
    assert_eq!(w.events("job"), ["posted", "claimed", "lapsed", "revived", "complete"]);
    w.is_valid();
}

#[test]
fn a_job_delayed_after_its_lapse_can_still_be_taken_back() {
    let (mut w, token) = lapsed();
    let due = Some(w.now + 1_000);
    w.update(b"job", &Update { due, ..Update::default() }).unwrap().unwrap();
    assert_eq!(w.is("job"), Some(Scheduled));
    w.beat(ANN, "job", Some(token)).unwrap();
    assert_eq!(w.is("job"), Some(Claimed));
    w.pass(1_000);
    assert_eq!(w.is("job"), Some(Claimed));
    w.is_valid();
}

#[test]
fn without_a_token_a_worker_whose_earlier_claim_lapsed_is_stale() {
    let (mut w, old) = lapsed();
    let token = w.take_id(ANN, "job");
    let stale = "STALE an earlier claim of yours lapsed: give the token";
    assert_eq!(w.done(ANN, "job", None), refused(stale));
    assert_eq!(w.beat(ANN, "job", None), refused(stale));
    assert_eq!(w.done(ANN, "job", Some(old)), refused(&format!("STALE token {old} is not the current one")));
    assert_eq!(w.done(ANN, "job", Some(token)), DID);
}

#[test]
fn a_stale_worker_is_remembered_over_the_claims_of_others() {
    let (mut w, _) = lapsed();
    let bobs = w.take_id(BOB, "job");
    w.gives_back(BOB, "job", Some(bobs)).unwrap();
    w.take_id(ANN, "job");
    assert!(w.fails(ANN, "job", None).unwrap_err().starts_with("STALE"));
    w.release(b"job").unwrap().unwrap();
    w.take_id(BOB, "job");
    assert_eq!(w.beat(BOB, "job", None).map(|_| ()), Ok(()));
}

#[test]
fn when_very_many_lapsed_everybody_needs_the_token() {
    let mut w = World::default();
    w.put_with("job", |p| p.options.lapses = Some(-1));
    for n in 0..17 {
        w.take_id(format!("w{n}").as_bytes(), "job");
        w.pass(30_000);
    }
    let token = w.take_id(BOB, "job");
    assert!(w.beat(BOB, "job", None).unwrap_err().starts_with("STALE"));
    assert!(w.beat(BOB, "job", Some(token)).is_ok());
    w.reload();
    assert!(w.beat(BOB, "job", None).unwrap_err().starts_with("STALE"));
    w.is_valid();
}

#[test]
fn a_resent_consume_is_answered_as_before_and_forgotten_after_a_while() {
    let mut w = World::default();
    w.put("job");
    let token = Some(w.take_id(ANN, "job"));
    assert_eq!(w.done(ANN, "job", token), DID);
    assert_eq!(w.done(ANN, "job", token), again(Complete));
    assert_eq!(w.done(ANN, "job", None), refused("NOJOB no such job"));
    assert_eq!(w.done(ANN, "job", token.map(|t| t + 1)), refused("NOJOB no such job"));
    assert_eq!(w.fails(ANN, "job", token), refused("NOJOB no such job"));
    w.pass(59_999);
    assert_eq!(w.done(ANN, "job", token), again(Complete));
    w.pass(1);
    assert_eq!(w.done(ANN, "job", token), refused("NOJOB no such job"));
}

#[test]
fn a_resent_post_finds_its_id_taken_although_the_job_is_gone() {
    let mut w = World::default();
    w.put("job");
    let token = w.take_id(ANN, "job");
    w.done(ANN, "job", Some(token)).unwrap();
    let post = |exists| Post { id: Some(b"job"), exists, ..Post::default() };
    assert_eq!(w.post(&post(Exists::Refuse)), refused("EXISTS job"));
    assert_eq!(w.post(&post(Exists::Skip)), Ok(None));
    assert_eq!(w.post(&post(Exists::OnlyReplace)), Ok(None));
    assert_eq!(w.post(&post(Exists::Replace)), Ok(Some(b"job".to_vec())));
    assert_eq!(w.is("job"), Some(Ready));
    w.is_valid();
}

#[test]
fn each_resent_verb_with_its_token_is_answered_as_before() {
    let mut w = World::default();
    w.put("job");
    let token = Some(w.take_id(ANN, "job"));
    assert_eq!(w.fails(ANN, "job", token), DID);
    assert_eq!(w.fails(ANN, "job", token), again(Scheduled));
    assert_eq!(w.job("job").left(&w.rules), 9);
    assert_eq!(w.done(ANN, "job", token), refused("NOTCLAIMED scheduled"));
    w.pass(10_000);
    assert_eq!(w.fails(ANN, "job", token), again(Ready));
    let token = Some(w.take_id(ANN, "job"));
    assert_eq!(w.gives_back(ANN, "job", token), DID);
    assert_eq!(w.gives_back(ANN, "job", token), again(Ready));
    assert_eq!(w.gives_back(ANN, "job", None), refused("NOTCLAIMED ready"));
    let token = Some(w.take_id(ANN, "job"));
    assert_eq!(w.trashes(ANN, "job", token), DID);
    assert_eq!(w.trashes(ANN, "job", token), again(Trashed));
    assert_eq!(w.gives_back(ANN, "job", token), refused("ENDED trashed"));
    w.put("kept");
    let token = Some(w.take_id(ANN, "kept"));
    assert_eq!(w.done_keeping(ANN, "kept", 1_000), DID);
    assert_eq!(w.done(ANN, "kept", token), again(Complete));
    assert_eq!(w.done(BOB, "kept", token), refused("ENDED complete"));
}

#[test]
fn a_resent_verb_after_another_claim_is_refused() {
    let mut w = World::default();
    w.put("job");
    let token = Some(w.take_id(ANN, "job"));
    w.gives_back(ANN, "job", token).unwrap();
    w.take_id(BOB, "job");
    assert_eq!(w.gives_back(ANN, "job", token), refused("NOTOWNER bob"));
}

#[test]
fn no_lease_ends_while_a_recovery_lasts() {
    let mut w = World::default();
    w.put("job");
    let token = w.take_id(ANN, "job");
    w.hold = w.now + 35_000;
    w.now += 34_000;
    assert!(!w.slice(9));
    assert_eq!(w.is("job"), Some(Claimed));
    assert_eq!(w.settle(b"job"), 0);
    assert_eq!(w.beat(ANN, "job", Some(token)), Ok((w.now + 30_000, false)));
    assert_eq!(w.job("job").lapses(), 0);
}

#[test]
fn the_last_lease_that_may_be_lost_fails_the_job() {
    let mut w = World::default();
    w.put_with("job", |p| p.options.lapses = Some(1));
    w.take_id(ANN, "job");
    w.pass(30_000);
    assert_eq!((w.is("job"), w.job("job").lapses()), (Some(Ready), 1));
    let token = w.take_id(BOB, "job");
    w.pass(30_000);
    let job = w.job("job");
    assert_eq!((job.state(), job.kind(), job.lapses()), (Failed, Some(&b"lapsed"[..]), 2));
    assert_eq!(job.left(&w.rules), 10);
    assert_eq!(w.done(BOB, "job", Some(token)), refused("ENDED failed"));
    let lapsed = Filters::new([Filter::Lapsed], []);
    assert_eq!(w.board.count_jobs(&lapsed, usize::MAX).unwrap(), 1);
}

#[test]
fn a_job_that_lost_a_lease_waits_and_the_wait_doubles() {
    let mut w = World::default();
    w.configure(Some(b"default"), Setting::LapseDelay, Some(1_000));
    w.configure(None, Setting::Jitter, Some(0));
    w.configure(None, Setting::BackoffMax, Some(3_000));
    w.put("poison");
    w.put("healthy");
    for wait in [1_000, 2_000, 3_000] {
        w.take_id(ANN, "poison");
        w.pass(30_000);
        assert_eq!((w.is("poison"), w.job("poison").due()), (Some(Scheduled), Some(w.now + wait)));
        // Another job comes first meanwhile.
        let got = w.take(BOB).unwrap();
        assert_eq!(got.id, b"healthy");
        w.gives_back(BOB, "healthy", Some(got.token)).unwrap();
        w.reload();
        w.pass(wait);
        assert_eq!(w.is("poison"), Some(Ready));
    }
    assert_eq!(w.job("poison").lapses(), 3);
    w.is_valid();
}

#[test]
fn the_late_worker_still_gets_a_job_back_that_waits_after_its_lapse() {
    let mut w = World::default();
    w.configure(None, Setting::LapseDelay, Some(60_000));
    w.put("job");
    let token = w.take_id(ANN, "job");
    w.pass(30_000);
    assert_eq!(w.is("job"), Some(Scheduled));
    w.beat(ANN, "job", Some(token)).unwrap();
    assert_eq!(w.is("job"), Some(Claimed));
    w.pass(30_000);
    assert_eq!(w.done(ANN, "job", Some(token)), DID);
    // What a worker gives back, or an operator takes, does not wait.
    w.put("other");
    let token = w.take_id(ANN, "other");
    w.gives_back(ANN, "other", Some(token)).unwrap();
    w.take_id(ANN, "other");
    w.release(b"other").unwrap().unwrap();
    assert_eq!(w.is("other"), Some(Ready));
    w.is_valid();
}

#[test]
fn it_is_explained_why_a_job_waits_after_a_lapse() {
    let mut w = World::default();
    w.configure(None, Setting::LapseDelay, Some(60_000));
    w.put("job");
    w.take_id(ANN, "job");
    w.pass(30_000);
    let reason = w.explain(b"job").unwrap().reasons.remove(0);
    assert_eq!(reason.code, "lapse");
    assert!(reason.details.contains(&("lapses", Detail::Number(1))));
    assert!(reason.details.contains(&("worker", Detail::Bytes(ANN.to_vec()))));
}
