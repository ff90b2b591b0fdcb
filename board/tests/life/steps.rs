//! Steps: what is done is not done again.

use board::*;

use crate::site::*;
use crate::world::work::Stored;
use crate::world::World;

impl World {
    fn stores(
        &mut self,
        worker: &[u8],
        id: &str,
        token: Option<u64>,
        step: Step<'_>,
    ) -> Result<Stored, String> {
        self.step(&(Speaker { worker, id: id.as_bytes(), token }, step))
    }

    fn keeps_step(&mut self, id: &str, name: &str, value: &str) {
        let step = Step { name: name.as_bytes(), value: value.as_bytes(), ..Step::default() };
        let stored = self.stores(ANN, id, None, step).unwrap();
        assert_eq!(stored.2, value.as_bytes());
    }

    /// Name and value of each step, in order.
    fn steps_of(&self, id: &str) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.job(id).steps().map(|(name, value, _)| (text(name), text(value))).collect()
    }
}

fn step<'a>(name: &'a str, value: &'a str) -> Step<'a> {
    Step { name: name.as_bytes(), value: value.as_bytes(), ..Step::default() }
}

/// Something that is done to a world, by name.
type Named = (&'static str, fn(&mut World));

/// A job that ann holds, with two steps.
fn begun() -> (World, u64) {
    let mut w = World::default();
    w.put("job");
    let token = w.take_id(ANN, "job");
    w.keeps_step("job", "fetch", "7 pages");
    w.now += 5;
    w.keeps_step("job", "charge", "receipt");
    (w, token)
}

fn both() -> Vec<(String, String)> {
    [("fetch", "7 pages"), ("charge", "receipt")].map(|(a, b)| (a.into(), b.into())).to_vec()
}

#[test]
fn the_first_value_wins_and_renews_the_lease() {
    let (mut w, token) = begun();
    let first = w.job("job").steps().next().map(|(_, _, at)| at);
    w.now += 20_000;
    let again = w.stores(ANN, "job", Some(token), step("fetch", "8 pages"));
    assert_eq!(again, Ok((w.now + 30_000, false, b"7 pages".to_vec())));
    assert_eq!((w.steps_of("job"), w.job("job").steps().next().map(|(_, _, at)| at)), (both(), first));
    let lease = Step { lease: Some(100), ..step("more", "") };
    assert_eq!(w.stores(ANN, "job", Some(token), lease), Ok((w.now + 100, false, Vec::new())));
    w.is_valid();
}

#[test]
fn replace_takes_the_place_of_the_first_value() {
    let (mut w, token) = begun();
    w.now += 7;
    let cursor = Step { replace: true, ..step("fetch", "9 pages") };
    assert_eq!(w.stores(ANN, "job", Some(token), cursor).unwrap().2, b"9 pages");
    let now = w.now;
    assert_eq!(w.job("job").steps().next(), Some((&b"fetch"[..], &b"9 pages"[..], now)));
    assert_eq!(w.job("job").steps().len(), 2);
    w.is_valid();
}

#[test]
fn steps_are_fenced_as_heartbeats_are() {
    let (mut w, token) = begun();
    let stores = |w: &mut World, worker, token| w.stores(worker, "job", token, step("x", "y")).err();
    assert_eq!(stores(&mut w, BOB, None), Some("NOTOWNER ann".into()));
    let stale = format!("STALE token {} is not the current one", token + 1);
    assert_eq!(stores(&mut w, ANN, Some(token + 1)), Some(stale));
    let unknown = w.stores(ANN, "nobody", None, step("x", "y"));
    assert_eq!(unknown.err(), Some("NOJOB no such job".into()));
    w.done_keeping(ANN, "job", -1).unwrap();
    assert_eq!(stores(&mut w, ANN, Some(token)), Some("ENDED complete".into()));
    w.put("waits");
    let unclaimed = w.stores(ANN, "waits", None, step("x", "y"));
    assert_eq!(unclaimed.err(), Some("NOTCLAIMED ready".into()));
    assert_eq!(w.steps_of("job"), both());
}

#[test]
fn a_late_holder_gets_its_job_back() {
    let (mut w, token) = begun();
    w.pass(30_000);
    assert_eq!(w.is("job"), Some(Ready));
    let stored = w.stores(ANN, "job", Some(token), step("late", "yes"));
    assert_eq!(stored, Ok((w.now + 30_000, false, b"yes".to_vec())));
    assert_eq!((w.is("job"), w.job("job").steps().len()), (Some(Claimed), 3));
    w.is_valid();
}

#[test]
fn a_late_holder_whose_slot_is_taken_stores_its_step_and_gets_nothing_back() {
    let mut w = World::default();
    w.configure(None, Setting::Concurrency, Some(1));
    w.put("job");
    let token = w.take_id(ANN, "job");
    w.pass(30_000);
    w.put_with("other", |p| p.priority = Some(9));
    w.take_id(BOB, "other");
    assert_eq!(w.beat(ANN, "job", Some(token)), Err("LIMIT concurrency".into()));
    let version = w.job("job").version();
    assert_eq!(w.stores(ANN, "job", Some(token), step("charge", "1")), Ok((0, false, b"1".to_vec())));
    assert_eq!(w.is("job"), Some(Ready));
    assert!(w.job("job").version() > version, "those who follow the board see it");
    assert_eq!(w.stores(ANN, "job", Some(token), step("charge", "2")), Ok((0, false, b"1".to_vec())));
    w.done(BOB, "other", None).unwrap();
    w.take_id(BOB, "job");
    let late = w.stores(ANN, "job", Some(token), step("charge", "3"));
    assert_eq!(late.err(), Some("NOTOWNER bob".into()));
    assert_eq!(w.steps_of("job"), [("charge".into(), "1".into())]);
    w.is_valid();
}

#[test]
fn steps_stay_over_all_that_brings_a_job_back() {
    let come_back: [Named; 6] = [
        ("a failure", |w| drop(w.fails(ANN, "job", None))),
        ("a lapse", |w| w.pass(30_000)),
        ("an abandon", |w| drop(w.gives_back(ANN, "job", None))),
        ("a release", |w| w.release(b"job").unwrap().unwrap()),
        ("a requeue", |w| {
            w.fails_with(ANN, "job", None, Retry::No).unwrap();
            w.requeue(b"job", To::Same).unwrap().unwrap();
        }),
        ("a snapshot", World::reload),
    ];
    for (what, act) in come_back {
        let (mut w, _) = begun();
        act(&mut w);
        assert_eq!(w.steps_of("job"), both(), "{what}");
        w.pass(10_000_000);
        assert_eq!(w.steps_of("job"), both(), "{what}");
        w.is_valid();
    }
}

#[test]
fn what_begins_other_work_forgets_them() {
    let (mut w, _) = begun();
    let next = (
        Speaker { worker: ANN, id: b"job", ..Speaker::default() },
        Advance { queue: b"next", ..Advance::default() },
    );
    w.work(&next).unwrap();
    assert_eq!(w.steps_of("job"), []);
    let (mut w, _) = begun();
    w.put_replacing("job", b"other");
    assert_eq!(w.steps_of("job"), []);
    let (mut w, _) = begun();
    w.fails_with(ANN, "job", None, Retry::No).unwrap();
    assert_eq!(w.steps_of("job"), both());
    w.requeue_with(b"job", &Requeue { fresh: true, ..Requeue::default() }).unwrap().unwrap();
    assert_eq!(w.steps_of("job"), []);
    w.is_valid();
}

#[test]
fn a_job_goes_back_with_another_payload_and_what_it_remembers() {
    let (mut w, _) = begun();
    w.fails_with(ANN, "job", None, Retry::No).unwrap();
    w.requeue_with(b"job", &Requeue { payload: Some(b"mended"), ..Requeue::default() }).unwrap().unwrap();
    assert_eq!(w.steps_of("job"), both());
    let slot = w.board.find(b"job").unwrap();
    assert_eq!(w.board.record_of(slot).unwrap().payload(), b"mended");
    w.is_valid();
}

#[test]
fn an_operator_forgets_single_steps_also_of_an_ended_job() {
    let (mut w, _) = begun();
    let unstep = |names: &[&'static [u8]]| Update { unstep: names.to_vec(), ..Update::default() };
    w.update(b"job", &unstep(&[b"fetch", b"not there"])).unwrap().unwrap();
    assert_eq!(w.steps_of("job"), [("charge".into(), "receipt".into())]);
    w.fails_with(ANN, "job", None, Retry::No).unwrap();
    w.update(b"job", &unstep(&[b"charge"])).unwrap().unwrap();
    assert_eq!((w.is("job"), w.steps_of("job")), (Some(Failed), Vec::new()));
    let more = Update { priority: Some(1), ..unstep(&[b"charge"]) };
    assert_eq!(w.update(b"job", &more), Some(Err("ENDED failed".into())));
    w.is_valid();
}

#[test]
fn an_ended_job_takes_fields_and_lines() {
    let mut w = World::default();
    w.put_in("job", Failed);
    let report = Report { meta: vec![pair(b"seen", b"by eve")], log: Some(b"a look"), ..Report::default() };
    w.update(b"job", &Update { report: Some(report), ..Update::default() }).unwrap().unwrap();
    let meta: Vec<_> = w.job("job").meta().collect();
    assert_eq!(meta, [(&b"seen"[..], &b"by eve"[..])]);
    assert_eq!(w.events("job").last(), Some(&"log"));
    let stage = Report { payload: Some(b"x"), ..Report::default() };
    let refused = w.update(b"job", &Update { report: Some(stage), ..Update::default() });
    assert_eq!(refused, Some(Err("ENDED failed".into())));
    w.is_valid();
}

#[test]
fn settings_bound_how_many_and_how_large() {
    let (mut w, _) = begun();
    w.configure(None, Setting::MaxSteps, Some(2));
    assert_eq!(w.stores(ANN, "job", None, step("x", "y")).err(), Some("LIMIT max-steps".into()));
    assert_eq!(w.stores(ANN, "job", None, step("fetch", "y")).unwrap().2, b"7 pages");
    w.configure(None, Setting::MaxSteps, Some(0));
    let shorter = Step { replace: true, ..step("fetch", "none") };
    assert_eq!(w.stores(ANN, "job", None, shorter).unwrap().2, b"none");
    w.configure(None, Setting::MaxSteps, None);
    // fetch none, charge receipt: 9 + 13 bytes.
    w.configure(None, Setting::MaxStepBytes, Some(24));
    assert_eq!(w.stores(ANN, "job", None, step("x", "yz")).err(), Some("LIMIT max-step-bytes".into()));
    assert_eq!(w.stores(ANN, "job", None, step("x", "y")).unwrap().2, b"y");
    let longer = Step { replace: true, ..step("x", "yz") };
    assert_eq!(w.stores(ANN, "job", None, longer).err(), Some("LIMIT max-step-bytes".into()));
    w.is_valid();
}

#[test]
fn they_count_as_bytes_of_the_board_and_are_not_refused_by_its_limit() {
    let mut w = World::default();
    w.put("job");
    w.take_id(ANN, "job");
    w.keeps_step("job", "a", "b");
    w.configure(None, Setting::MaxBytes, Some(1));
    let before = w.board.record_bytes();
    w.keeps_step("job", "large", &"x".repeat(1_000));
    assert!(w.board.record_bytes() >= before + 1_000);
    assert_eq!(w.post(&Post { payload: b"x", ..Post::default() }), Err("LIMIT max-bytes".into()));
    w.is_valid();
}

#[test]
fn they_leave_no_history_and_charge_nothing() {
    let (w, _) = begun();
    assert_eq!(w.events("job"), ["posted", "claimed"]);
    assert_eq!((w.job("job").attempt(), w.job("job").left(&w.rules)), (1, 10));
}

#[test]
fn a_job_that_is_to_be_cancelled_keeps_its_steps() {
    let (mut w, token) = begun();
    w.cancel(b"job", false).unwrap().unwrap();
    let (_, cancel, value) = w.stores(ANN, "job", Some(token), step("refund", "done")).unwrap();
    assert_eq!((cancel, value), (true, b"done".to_vec()));
    w.gives_back(ANN, "job", Some(token)).unwrap();
    assert_eq!((w.is("job"), w.job("job").steps().len()), (Some(Cancelled), 3));
}
