//! Replace, release, requeue and update, in every state.

use board::*;

use crate::site::*;
use crate::world::World;

#[test]
fn a_replacing_post_begins_afresh_in_every_state() {
    for state in STATES {
        let mut w = World::default();
        w.put_in("job", state);
        let posted = w.job("job").posted();
        w.pass(10);
        w.put_replacing("job", b"new");
        let job = w.job("job");
        assert_eq!((job.state(), job.payload(), job.attempt()), (Ready, &b"new"[..], 0));
        assert_eq!((job.left(&w.rules), job.posted(), job.lapses()), (10, posted, 0));
        assert!(job.kind().is_none() && job.result().is_none() && job.reason().is_none());
        assert!(job.progress().is_none() && job.ended().is_none());
        w.is_valid();
        assert_eq!(w.take_all(BOB), ["job"]);
    }
}

#[test]
fn a_replacing_post_ends_the_claim_and_keeps_what_it_does_not_name() {
    let mut w = World::default();
    w.put_with("job", |p| {
        (p.queue, p.name) = (Some(&b"mail"[..]), Some(&b"send"[..]));
        p.priority = Some(4);
        p.options = options(|o| (o.retries, o.lease) = (Some(1), Some(500)));
        p.meta = vec![pair(b"a", b"1"), pair(b"b", b"2")];
    });
    let token = Some(w.take_id(ANN, "job"));
    let post = Post {
        id: Some(b"job"),
        exists: Exists::OnlyReplace,
        options: options(|o| o.lease = Some(900)),
        meta: vec![pair(b"b", b"3")],
        ..Post::default()
    };
    w.post(&post).unwrap();
    let job = w.job("job");
    assert_eq!((job.queue(), job.name(), job.priority()), (&b"mail"[..], Some(&b"send"[..]), 4));
    assert_eq!(job.left(&w.rules), 1);
    assert_eq!(job.meta().collect::<Vec<_>>(), [(&b"a"[..], &b"1"[..]), (b"b", b"3")]);
    assert_eq!(w.done(ANN, "job", token), refused("NOTCLAIMED ready"));
    w.take_id(BOB, "job");
    assert_eq!(w.job("job").deadline(), Some(w.now + 900));
    w.is_valid();
}

#[test]
fn an_id_that_is_taken_refuses_skips_or_replaces() {
    for state in STATES {
        let mut w = World::default();
        w.put_in("job", state);
        let post = |exists| Post { id: Some(b"job"), exists, ..Post::default() };
        assert_eq!(w.post(&post(Exists::Refuse)), refused("EXISTS job"));
        assert_eq!(w.post(&post(Exists::Skip)), Ok(None));
        assert_eq!(w.is("job"), Some(state));
        let other = Post { id: Some(b"other"), exists: Exists::OnlyReplace, ..Post::default() };
        assert_eq!(w.post(&other), Ok(None));
        assert_eq!(w.is("other"), None);
    }
}

#[test]
fn a_made_id_is_found_listed_and_replaced_like_any() {
    let mut w = World::default();
    let id = w.post(&Post { payload: b"x", ..Post::default() }).unwrap().unwrap();
    assert_eq!(id.len(), 36);
    let again = Post { id: Some(&id), exists: Exists::Replace, payload: b"y", ..Post::default() };
    assert_eq!(w.post(&again), Ok(Some(id.clone())));
    assert_eq!(w.record(&id).unwrap().payload(), b"y");
    w.reload();
    assert_eq!(w.record(&id).unwrap().payload(), b"y");
    assert_eq!(w.state(&id.to_ascii_uppercase()), None);
    w.is_valid();
}

#[test]
fn a_release_costs_nothing_and_works_only_on_what_is_claimed() {
    for state in STATES {
        let mut w = World::default();
        w.put_in("job", state);
        let token = w.board.token();
        let want = match state {
            Claimed => Ok(()),
            _ => refused(&format!("NOTCLAIMED {}", state.name())),
        };
        assert_eq!(w.release(b"job"), Some(want));
        if state == Claimed {
            let job = w.job("job");
            assert_eq!((job.state(), job.left(&w.rules), job.lapses()), (Ready, 10, 0));
            assert_eq!(w.done(ANN, "job", Some(token)), refused("NOTCLAIMED ready"));
        }
    }
    assert_eq!(World::default().release(b"job"), None);
}

#[test]
fn a_requeue_takes_failed_trashed_and_cancelled_jobs() {
    for state in STATES {
        let mut w = World::default();
        w.put_in("job", state);
        let want = match state {
            Failed | Trashed | Cancelled => Ok(()),
            Complete => refused("ENDED complete"),
            _ => refused(&format!("NOTENDED {}", state.name())),
        };
        assert_eq!(w.requeue(b"job", To::Queue(b"mail")), Some(want.clone()));
        if want.is_ok() {
            let job = w.job("job");
            assert_eq!((job.state(), job.queue(), job.attempt()), (Ready, &b"mail"[..], 0));
            assert_eq!((job.left(&w.rules), job.ended()), (10, None));
            assert_eq!(w.board.queue_names(), [b"mail"]);
        }
        w.is_valid();
    }
}

#[test]
fn a_worker_of_before_has_no_say_in_a_requeued_job() {
    let mut w = World::default();
    w.put_with("job", |p| p.options.lapses = Some(0));
    let token = Some(w.take_id(ANN, "job"));
    w.pass(30_000);
    assert_eq!(w.is("job"), Some(Failed));
    w.requeue(b"job", To::Same).unwrap().unwrap();
    assert_eq!(w.done(ANN, "job", token), refused("NOTCLAIMED ready"));
    assert_eq!(w.beat(ANN, "job", token), refused("NOTCLAIMED ready"));
}

#[test]
fn an_update_changes_each_attribute_in_each_living_state() {
    for state in LIVE {
        let mut w = World::default();
        w.put_in("job", state);
        let report = Report {
            progress: Some(1_250),
            stage: None,
            payload: Some(b"new"),
            meta: vec![pair(b"k", b"v")],
            log: Some(b"looked at it"),
        };
        let update = Update {
            priority: Some(9),
            queue: Some(b"mail"),
            due: None,
            retries: Some(3),
            lease: Some(700),
            report: Some(report),
            unstep: Vec::new(),
        };
        assert_eq!(w.update(b"job", &update), Some(Ok(())));
        let job = w.job("job");
        assert_eq!((job.state(), job.priority(), job.queue()), (state, 9, &b"mail"[..]));
        assert_eq!((job.left(&w.rules), job.payload(), job.progress()), (3, &b"new"[..], Some(12.5)));
        assert_eq!(job.meta().collect::<Vec<_>>(), [(&b"k"[..], &b"v"[..])]);
        assert_eq!(w.board.count_in(b"mail", state), 1);
        assert_eq!(w.board.count_in(b"default", state), 0);
        w.is_valid();
        w.pass(60_000);
        w.take_id(BOB, "job");
        assert_eq!(w.job("job").deadline(), Some(w.now + 700));
    }
}

#[test]
fn an_update_of_an_ended_job_is_refused() {
    for state in ENDED {
        let mut w = World::default();
        w.put_in("job", state);
        let update = Update { priority: Some(1), ..Update::default() };
        assert_eq!(w.update(b"job", &update), Some(refused(&format!("ENDED {}", state.name()))));
    }
}

#[test]
fn a_delay_moves_jobs_that_wait_and_not_claimed_ones() {
    let mut w = World::default();
    for state in LIVE {
        w.put_in(state.name(), state);
    }
    let later = Update { due: Some(w.now + 9_000), ..Update::default() };
    assert_eq!(w.update(b"claimed", &later), Some(refused("CLAIMED ann")));
    for id in ["ready", "scheduled"] {
        assert_eq!(w.update(id.as_bytes(), &later), Some(Ok(())));
        assert_eq!((w.is(id), w.job(id).due()), (Some(Scheduled), Some(w.now + 9_000)));
    }
    let now = Update { due: Some(w.now), ..Update::default() };
    for id in ["ready", "scheduled"] {
        assert_eq!(w.update(id.as_bytes(), &now), Some(Ok(())));
        assert_eq!((w.is(id), w.job(id).due()), (Some(Ready), None));
    }
    w.is_valid();
}

#[test]
fn an_update_of_a_claimed_job_keeps_claim_token_and_deadline() {
    let mut w = World::default();
    w.put("job");
    let token = Some(w.take_id(ANN, "job"));
    let deadline = w.job("job").deadline();
    w.update(b"job", &Update { priority: Some(5), queue: Some(b"mail"), ..Update::default() })
        .unwrap()
        .unwrap();
    assert_eq!((w.job("job").token(), w.job("job").deadline()), (token, deadline));
    w.pass(30_000);
    assert_eq!((w.is("job"), w.job("job").queue()), (Some(Ready), &b"mail"[..]));
    w.is_valid();
}

#[test]
fn progress_of_a_worker_never_goes_back_and_an_operators_may() {
    let mut w = World::default();
    w.put("job");
    w.take_id(ANN, "job");
    let mut beat = |progress: u16| {
        let report = Some(Report { progress: Some(progress), ..Report::default() });
        w.heartbeat(&(
            Speaker { worker: ANN, id: b"job", ..Speaker::default() },
            Heartbeat { report, ..Heartbeat::default() },
        ))
        .unwrap();
        w.job("job").progress()
    };
    assert_eq!([beat(2_000), beat(1_000), beat(3_000)], [Some(20.0), Some(20.0), Some(30.0)]);
    let report = Some(Report { progress: Some(100), ..Report::default() });
    w.update(b"job", &Update { report, ..Update::default() }).unwrap().unwrap();
    assert_eq!(w.job("job").progress(), Some(1.0));
}
