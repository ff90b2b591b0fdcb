//! Failures, retries, timeouts and expiry.

use board::*;

use crate::site::*;
use crate::world::World;

#[test]
fn so_many_failures_are_followed_by_another_try() {
    let mut w = World::default();
    w.put_with("job", |p| p.options.retries = Some(2));
    for left in [1, 0] {
        w.take_id(ANN, "job");
        assert_eq!(w.fails(ANN, "job", None), DID);
        assert_eq!((w.is("job"), w.job("job").left(&w.rules)), (Some(Scheduled), left));
        w.pass(60_000);
    }
    w.take_id(ANN, "job");
    assert_eq!(w.fails(ANN, "job", None), DID);
    let job = w.job("job");
    assert_eq!((job.state(), job.attempt(), job.left(&w.rules)), (Failed, 3, 0));
    assert_eq!((job.kind(), job.message()), (Some(&b"io"[..]), Some(&b"disk full"[..])));
    assert_eq!(w.board.kinds().collect::<Vec<_>>(), [(&b"io"[..], 1)]);
    w.is_valid();
}

#[test]
fn retries_without_end_never_run_out() {
    let mut w = World::default();
    w.put_with("job", |p| (p.options.retries, p.options.backoff) = (Some(-1), Some((0, 0))));
    for _ in 0..50 {
        w.take_id(ANN, "job");
        w.fails(ANN, "job", None).unwrap();
        assert_eq!((w.is("job"), w.job("job").left(&w.rules)), (Some(Ready), -1));
    }
}

#[test]
fn the_pause_doubles_up_to_its_longest() {
    let mut w = World::default();
    w.put_with("job", |p| (p.options.backoff, p.options.jitter) = (Some((1_000, 5_000)), Some(0)));
    for pause in [1_000, 2_000, 4_000, 5_000, 5_000] {
        w.take_id(ANN, "job");
        w.fails(ANN, "job", None).unwrap();
        assert_eq!(w.job("job").due(), Some(w.now + pause));
        w.pass(pause);
    }
}

#[test]
fn a_worker_can_name_the_pause_or_give_up() {
    let mut w = World::default();
    w.put("job");
    w.take_id(ANN, "job");
    w.fails_with(ANN, "job", None, Retry::After(77)).unwrap();
    assert_eq!(w.job("job").due(), Some(w.now + 77));
    w.pass(77);
    w.take_id(ANN, "job");
    w.fails_with(ANN, "job", None, Retry::No).unwrap();
    assert_eq!(w.is("job"), Some(Failed));
    w.put_with("last", |p| p.options.retries = Some(0));
    w.take_id(ANN, "last");
    w.fails_with(ANN, "last", None, Retry::After(5)).unwrap();
    assert_eq!(w.is("last"), Some(Failed));
}

#[test]
fn a_job_that_falls_due_has_changed_then() {
    let mut w = World::default();
    let due = w.now + 1_000;
    w.put_with("posted", |p| p.due = Some(due));
    w.put("failed");
    w.take_id(ANN, "failed");
    w.fails_with(ANN, "failed", None, Retry::After(1_000)).unwrap();
    assert_eq!(w.job("failed").modified(), w.now);
    w.pass(5_000);
    assert_eq!((w.job("posted").modified(), w.job("failed").modified()), (due, due));
}

#[test]
fn a_run_times_out_however_often_it_beats_and_that_is_a_failure() {
    let mut w = World::default();
    w.put_with("job", |p| p.options.timeout = Some(50_000));
    let token = Some(w.take_id(ANN, "job"));
    w.pass(25_000);
    w.beat(ANN, "job", token).unwrap();
    w.pass(24_999);
    assert_eq!(w.is("job"), Some(Claimed));
    w.pass(1);
    let job = w.job("job");
    assert_eq!((job.state(), job.kind(), job.lapses()), (Scheduled, Some(&b"timeout"[..]), 0));
    assert_eq!(job.left(&w.rules), 9);
    assert_eq!(w.done(ANN, "job", token), refused("NOTCLAIMED scheduled"));
    assert_eq!(w.events("job"), ["posted", "claimed", "timeout"]);
}

#[test]
fn a_lease_that_ends_before_the_timeout_is_a_lapse() {
    let mut w = World::default();
    w.put_with("job", |p| p.options.timeout = Some(50_000));
    w.take_id(ANN, "job");
    w.pass(60_000);
    assert_eq!((w.is("job"), w.job("job").lapses(), w.job("job").kind()), (Some(Ready), 1, None));
}

#[test]
fn a_run_that_is_taken_back_keeps_its_timeout() {
    let mut w = World::default();
    w.put_with("job", |p| p.options.timeout = Some(50_000));
    let token = Some(w.take_id(ANN, "job"));
    w.pass(40_000);
    w.beat(ANN, "job", token).unwrap();
    w.pass(10_000);
    assert_eq!(w.job("job").kind(), Some(&b"timeout"[..]));
}

#[test]
fn a_job_that_nobody_claims_expires() {
    let mut w = World::default();
    w.put_with("job", |p| p.options.expire = Some(1_000));
    w.pass(999);
    assert_eq!(w.is("job"), Some(Ready));
    w.pass(1);
    assert_eq!((w.is("job"), w.job("job").kind()), (Some(Failed), Some(&b"expired"[..])));
    assert_eq!(w.job("job").left(&w.rules), 10);
    w.is_valid();
}

#[test]
fn a_delay_does_not_count_towards_expiry() {
    let mut w = World::default();
    let due = Some(w.now + 5_000);
    w.put_with("job", |p| (p.due, p.options.expire) = (due, Some(1_000)));
    w.pass(5_999);
    assert_eq!(w.is("job"), Some(Ready));
    w.pass(1);
    assert_eq!(w.is("job"), Some(Failed));
}

#[test]
fn back_off_does_not_count_towards_expiry_but_running_does() {
    let mut w = World::default();
    w.put_with("job", |p| p.options.expire = Some(1_000));
    w.pass(300);
    w.take_id(ANN, "job");
    w.pass(200);
    w.fails_with(ANN, "job", None, Retry::After(7_000)).unwrap();
    w.pass(7_000);
    assert_eq!(w.is("job"), Some(Ready));
    w.pass(499);
    assert_eq!(w.is("job"), Some(Ready));
    w.pass(1);
    assert_eq!(w.job("job").kind(), Some(&b"expired"[..]));
}

#[test]
fn a_back_off_that_is_moved_does_not_count_either() {
    let mut w = World::default();
    w.put_with("job", |p| p.options.expire = Some(1_000));
    w.take_id(ANN, "job");
    w.fails_with(ANN, "job", None, Retry::After(7_000)).unwrap();
    w.pass(3_000);
    let due = Some(w.now + 2_000);
    w.update(b"job", &Update { due, ..Update::default() }).unwrap().unwrap();
    w.pass(2_999);
    assert_eq!(w.is("job"), Some(Ready));
    w.pass(1);
    assert_eq!(w.is("job"), Some(Failed));
}

#[test]
fn a_job_is_done_in_time_even_when_its_lease_outlives_its_expiry() {
    let mut w = World::default();
    w.put_with("job", |p| p.options.expire = Some(1_000));
    let token = w.take_id(ANN, "job");
    w.pass(20_000);
    assert_eq!(w.is("job"), Some(Claimed));
    assert_eq!(w.done(ANN, "job", Some(token)), DID);
    w.put_with("lost", |p| p.options.expire = Some(1_000));
    w.take_id(ANN, "lost");
    w.now += 30_000;
    assert_eq!(w.settle(b"lost"), 2);
    w.commit();
    assert_eq!(w.job("lost").kind(), Some(&b"expired"[..]));
}

#[test]
fn one_named_job_is_settled_whatever_else_is_due() {
    let mut w = World::default();
    for n in 0..100 {
        w.put_with(&format!("j{n}"), |p| p.options.expire = Some(1_000));
    }
    w.now += 1_000;
    assert_eq!(w.settle(b"j50"), 1);
    w.commit();
    assert_eq!((w.is("j50"), w.is("j51")), (Some(Failed), Some(Ready)));
    w.pass(0);
    assert_eq!(w.board.count(Failed), 100);
    w.is_valid();
}

fn report<'a>(field: &'a [u8], value: &'a [u8], log: Option<&'a [u8]>) -> Report<'a> {
    Report { log, ..Report::of(vec![pair(field, value)]) }
}

#[test]
fn a_failure_brings_fields_a_line_and_how_long_its_record_is_kept() {
    let mut w = World::default();
    w.put_with("job", |p| p.options.retries = Some(1));
    let fail = |retain| {
        let report = report(b"host", b"web-1", Some(b"the trace"));
        let fail = Fail { kind: b"io", message: b"disk full", retain, report, ..Fail::default() };
        (Speaker { worker: ANN, id: b"job", ..Speaker::default() }, fail)
    };
    w.take_id(ANN, "job");
    w.work(&fail(Some(5))).unwrap();
    assert_eq!(w.is("job"), Some(Scheduled));
    assert_eq!(w.job("job").meta().collect::<Vec<_>>(), [(&b"host"[..], &b"web-1"[..])]);
    let history = w.job("job").history();
    let said: Vec<_> =
        history.iter().map(|e| (e.event.name(), e.message().map(<[u8]>::to_vec), e.last)).collect();
    assert_eq!(
        said[2..],
        [("log", Some(b"the trace".to_vec()), false), ("failed", Some(b"disk full".to_vec()), false),]
    );
    assert!(history[2..].iter().all(|entry| entry.worker.as_deref() == Some(ANN)));
    w.pass(60_000);
    w.take_id(ANN, "job");
    w.work(&fail(Some(5))).unwrap();
    assert_eq!((w.is("job"), w.job("job").history().last().map(|e| e.last)), (Some(Failed), Some(true)));
    w.pass(5);
    assert_eq!(w.is("job"), None);
    w.is_valid();
}

#[test]
fn what_a_worker_reports_with_the_end_is_kept_though_the_job_is_cancelled() {
    let ends: [fn(&mut World); 3] = [
        |w| {
            let report = Report { payload: Some(b"half"), ..report(b"at", b"3", Some(b"trace")) };
            let fail = Fail { kind: b"io", message: b"no", report, ..Fail::default() };
            w.work(&(Speaker { worker: ANN, id: b"job", ..Speaker::default() }, fail)).unwrap();
            assert_eq!(w.job("job").payload(), b"half");
            assert!(w.events("job").contains(&"log"));
        },
        |w| {
            let abandon = Abandon { report: report(b"at", b"3", None), ..Abandon::default() };
            w.work(&(Speaker { worker: ANN, id: b"job", ..Speaker::default() }, abandon)).unwrap();
        },
        |w| {
            let trash = Trash { report: report(b"at", b"3", None), ..Trash::default() };
            w.work(&(Speaker { worker: ANN, id: b"job", ..Speaker::default() }, trash)).unwrap();
        },
    ];
    for end in ends {
        for asked in [true, false] {
            let mut w = World::default();
            w.put("job");
            w.take_id(ANN, "job");
            if asked {
                w.cancel(b"job", false).unwrap().unwrap();
            }
            end(&mut w);
            assert_eq!(w.is("job") == Some(Cancelled), asked);
            assert_eq!(w.job("job").meta().collect::<Vec<_>>(), [(&b"at"[..], &b"3"[..])]);
            w.reload();
            w.is_valid();
        }
    }
}

#[test]
fn too_many_fields_with_the_end_of_a_run_are_refused() {
    let mut w = World::default();
    w.put("job");
    w.take_id(ANN, "job");
    let names: Vec<[u8; 1]> = (0..65).map(|n| [n]).collect();
    let meta: Meta<'_> = names.iter().map(|name| pair(name, b"x")).collect();
    let speaker = Speaker { worker: ANN, id: b"job", ..Speaker::default() };
    let refused = Err("LIMIT meta fields".to_string());
    let report = Report::of(meta.clone());
    assert_eq!(w.work(&(speaker, Fail { kind: b"k", report: report.clone(), ..Fail::default() })), refused);
    assert_eq!(w.work(&(speaker, Abandon { report: report.clone(), ..Abandon::default() })), refused);
    assert_eq!(w.work(&(speaker, Trash { report, ..Trash::default() })), refused);
    assert_eq!(w.work(&(speaker, Consume { meta: meta.clone(), ..Consume::default() })), refused);
    assert_eq!(w.work(&(speaker, Advance { queue: b"q", meta, ..Advance::default() })), refused);
    assert_eq!(w.is("job"), Some(Claimed));
}
