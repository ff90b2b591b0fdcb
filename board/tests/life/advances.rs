//! Pipelines: a job that goes on in the next queue under the same id.

use board::*;

use crate::site::*;
use crate::world::{Done, World};

impl World {
    fn goes_on(&mut self, worker: &[u8], id: &str, token: Option<u64>, queue: &[u8]) -> Result<Done, String> {
        self.work(&(Speaker { worker, id: id.as_bytes(), token }, Advance { queue, ..Advance::default() }))
    }
}

#[test]
fn a_job_goes_on_in_the_next_queue_with_all_afresh_but_meta_and_history() {
    let mut w = World::default();
    w.put_with("job", |p| {
        p.meta = vec![pair(b"k", b"v")];
        p.options = options(|o| (o.retries, o.lapses, o.expire) = (Some(1), Some(1), Some(1_000)));
    });
    w.take_id(ANN, "job");
    w.fails_with(ANN, "job", None, Retry::After(0)).unwrap();
    w.pass(500);
    let token = w.take_id(ANN, "job");
    let report = Some(Report { progress: Some(5_000), stage: Some(b"half"), ..Report::default() });
    let beat = (
        Speaker { worker: ANN, id: b"job", token: Some(token) },
        Heartbeat { report, ..Heartbeat::default() },
    );
    w.heartbeat(&beat).unwrap();
    w.pass(5);
    assert_eq!(w.goes_on(ANN, "job", Some(token), b"second"), DID);
    let job = w.job("job");
    assert_eq!((job.state(), job.queue(), job.payload()), (Ready, &b"second"[..], &b"work"[..]));
    assert_eq!((job.attempt(), job.left(&w.rules), job.lapses()), (0, 1, 0));
    assert_eq!((job.kind(), job.message(), job.stage(), job.progress()), (None, None, None, None));
    assert_eq!((job.meta().count(), job.previous()), (1, Some(ANN)));
    assert_eq!(w.events("job"), ["posted", "claimed", "failed", "claimed", "advanced"]);
    assert_eq!((w.board.count_in(b"default", Ready), w.board.count_in(b"second", Ready)), (0, 1));
    w.pass(999);
    assert_eq!(w.is("job"), Some(Ready));
    w.pass(1);
    assert_eq!(w.is("job"), Some(Failed));
    w.is_valid();
}

#[test]
fn a_job_may_go_on_under_another_name() {
    let mut w = World::default();
    w.put_with("job", |p| {
        p.name = Some(b"resize");
        p.user = Some(b"ann");
    });
    for (name, called, live) in [
        (None, &b"resize"[..], [1, 0]),
        (Some(&b"publish"[..]), b"publish", [0, 1]),
        (None, b"publish", [0, 1]),
    ] {
        w.take_id(ANN, "job");
        let advance = (
            Speaker { worker: ANN, id: b"job", ..Speaker::default() },
            Advance { queue: b"default", name, ..Advance::default() },
        );
        assert_eq!(w.work(&advance), DID);
        assert_eq!(w.job("job").name(), Some(called));
        assert_eq!([&b"resize"[..], b"publish"].map(|name| w.board.live_of(b"ann", name)), live);
        w.is_valid();
    }
}

#[test]
fn those_who_wait_for_it_wait_until_it_is_complete() {
    let mut w = World::default();
    w.put("job");
    w.put_after("then", &["job"], OnFailure::Hold);
    for queue in [&b"second"[..], b"third"] {
        w.take_id(ANN, "job");
        w.goes_on(ANN, "job", None, queue).unwrap();
        w.pass(0);
        assert_eq!(w.is("then"), Some(Blocked));
    }
    w.take_id(BOB, "job");
    w.done(BOB, "job", None).unwrap();
    w.pass(0);
    assert_eq!((w.is("job"), w.is("then")), (None, Some(Ready)));
    w.is_valid();
}

#[test]
fn it_may_wait_for_a_time_and_for_other_jobs_first() {
    let mut w = World::default();
    w.put_in("job", Claimed);
    let due = Some(w.now + 100);
    let advance = (
        Speaker { worker: ANN, id: b"job", ..Speaker::default() },
        Advance { queue: b"next", due, ..Advance::default() },
    );
    assert_eq!(w.work(&advance), DID);
    assert_eq!((w.is("job"), w.job("job").due()), (Some(Scheduled), due));
    w.pass(100);
    w.take_id(ANN, "job");
    w.put("other");
    w.put_after("mine", &["job"], OnFailure::Hold);
    let wait = |id: &'static [u8]| {
        Some(After { jobs: vec![(id, OnFailure::Cancel)], strict: true, ..After::default() })
    };
    let advance = |id| (advance.0, Advance { after: wait(id), due: None, ..advance.1.clone() });
    assert_eq!(w.work(&advance(b"mine")), refused("CYCLE a job would wait for itself"));
    assert_eq!(w.work(&advance(b"job")), refused("CYCLE a job would wait for itself"));
    assert_eq!(w.work(&advance(b"nobody")), refused("NOJOB no such job nobody"));
    assert_eq!(w.is("job"), Some(Claimed));
    assert_eq!(w.work(&advance(b"other")), DID);
    assert_eq!(w.is("job"), Some(Blocked));
    w.is_valid();
    w.take_id(BOB, "other");
    w.done(BOB, "other", None).unwrap();
    w.pass(0);
    assert_eq!(w.is("job"), Some(Ready));
    w.is_valid();
}

#[test]
fn a_repetition_is_answered_also_when_another_has_the_job_by_then() {
    let mut w = World::default();
    w.put("job");
    let number = w.take_id(ANN, "job");
    let token = Some(number);
    assert_eq!(w.goes_on(ANN, "job", token, b"second"), DID);
    assert_eq!(w.goes_on(ANN, "job", token, b"second"), again(Ready));
    assert_eq!(w.done(ANN, "job", token), refused("NOTCLAIMED ready"));
    assert_eq!(w.beat(ANN, "job", token), refused("NOTCLAIMED ready"));
    w.reload();
    w.take_id(BOB, "job");
    assert_eq!(w.goes_on(ANN, "job", token, b"second"), again(Claimed));
    assert_eq!(w.done(ANN, "job", token), refused("NOTOWNER bob"));
    assert_eq!(
        w.goes_on(BOB, "job", token, b"second"),
        refused(&format!("STALE token {number} is not the current one"))
    );
    w.done_keeping(BOB, "job", -1).unwrap();
    assert_eq!(w.goes_on(ANN, "job", token, b"second"), again(Complete));
    assert_eq!(w.done(ANN, "job", token), refused("ENDED complete"));
    w.put_replacing("job", b"new");
    assert_eq!(w.goes_on(ANN, "job", token, b"second"), refused("NOTCLAIMED ready"));
}

#[test]
fn a_cancel_request_refuses_it_and_a_late_one_is_accepted() {
    let mut w = World::default();
    w.put_in("job", Claimed);
    w.cancel(b"job", false).unwrap().unwrap();
    assert_eq!(w.goes_on(ANN, "job", None, b"second"), refused("CANCELLED cancel was requested"));
    w.put("late");
    let token = Some(w.take_id(ANN, "late"));
    w.pass(30_000);
    assert_eq!(w.goes_on(ANN, "late", token, b"second"), DID);
    assert_eq!((w.job("late").lapses(), w.job("late").queue()), (0, &b"second"[..]));
    w.is_valid();
}

#[test]
fn it_frees_the_slot_of_its_queue() {
    let mut w = World::default();
    w.configure(None, Setting::Concurrency, Some(1));
    w.put("a");
    w.put("b");
    w.take_id(ANN, "a");
    assert!(w.take(BOB).is_none());
    w.goes_on(ANN, "a", None, b"second").unwrap();
    let mut got = w.take_all(BOB);
    got.sort();
    assert_eq!(got, ["a", "b"]);
    w.is_valid();
}
