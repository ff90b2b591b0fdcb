//! Signals: waiting for the outside world.

use board::*;

use crate::site::*;
use crate::world::work::Waited;
use crate::world::World;

const APPROVED: &[&[u8]] = &[b"approved"];

fn gate(names: &[&[u8]]) -> Gate {
    Gate { names: names.iter().map(|name| ByteString::from(*name)).collect(), ..Gate::default() }
}

fn within(ms: i64, on_timeout: OnTimeout) -> Gate {
    Gate { within: Some(ms), on_timeout, ..gate(APPROVED) }
}

impl World {
    fn waits(&mut self, worker: &[u8], id: &str, token: Option<u64>, gate: Gate) -> Result<Waited, String> {
        self.waits_as(worker, id, token, Await { gate, ..Await::default() })
    }

    fn waits_as(
        &mut self,
        worker: &[u8],
        id: &str,
        token: Option<u64>,
        request: Await<'_>,
    ) -> Result<Waited, String> {
        self.await_signals(&(Speaker { worker, id: id.as_bytes(), token }, request))
    }

    fn sends(&mut self, id: &str, name: &[u8]) -> &'static str {
        self.sends_value(id, name, b"")
    }

    fn sends_value(&mut self, id: &str, name: &[u8], value: &[u8]) -> &'static str {
        self.signal(id.as_bytes(), &Signal { name, value, sender: Some(b"eve") }).unwrap().unwrap()
    }

    fn put_gated(&mut self, id: &str, gate: Gate) {
        self.put_with(id, |p| p.gate = Some(Box::new(gate)));
    }

    /// Name and value of each signal, in order.
    fn signals_of(&self, id: &str) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| name(&bytes.to_vec());
        self.job(id).signals().map(|signal| (text(&signal.name), text(&signal.value))).collect()
    }
}

fn blocked() -> Result<Waited, String> {
    Ok(Waited::State(Blocked))
}

/// The names of the signals with which a worker keeps its job.
fn kept(waited: Result<Waited, String>) -> Vec<String> {
    match waited.unwrap() {
        Waited::Kept { timeout: false, signals, .. } => {
            signals.iter().map(|(signal, ..)| name(signal)).collect()
        }
        other => panic!("not kept: {other:?}"),
    }
}

fn timed_out(waited: &Result<Waited, String>) -> bool {
    matches!(waited, Ok(Waited::Kept { timeout: true, signals, .. }) if signals.is_empty())
}

/// A job that ann holds; its token.
fn begun() -> (World, u64) {
    let mut w = World::default();
    w.put("job");
    let token = w.take_id(ANN, "job");
    (w, token)
}

/// A job that ann held and that waits for its approval.
fn waiting() -> (World, u64) {
    let (mut w, token) = begun();
    assert_eq!(w.waits(ANN, "job", Some(token), gate(APPROVED)), blocked());
    (w, token)
}

#[test]
fn a_worker_gives_its_job_up_until_the_signal_arrives() {
    let (mut w, _) = waiting();
    assert_eq!((w.is("job"), w.take(BOB)), (Some(Blocked), None));
    assert_eq!(w.job("job").left(&w.rules), 10);
    assert_eq!(w.sends_value("job", b"approved", b"yes"), "woken");
    assert_eq!(w.is("job"), Some(Ready));
    let token = w.take_id(BOB, "job");
    let now = w.now;
    let signals = vec![(b"approved".to_vec(), b"yes".to_vec(), Some(b"eve".to_vec()), now)];
    let deadline = now + 30_000;
    let waited = w.waits(BOB, "job", Some(token), gate(APPROVED));
    assert_eq!(waited, Ok(Waited::Kept { timeout: false, signals, deadline, cancel: false }));
    assert_eq!(w.events("job"), ["posted", "claimed", "awaiting", "signalled", "claimed"]);
    w.is_valid();
}

#[test]
fn an_early_signal_is_kept_and_the_first_counts() {
    let (mut w, token) = begun();
    assert_eq!(w.sends_value("job", b"approved", b"yes"), "kept");
    assert_eq!(w.sends_value("job", b"approved", b"no"), "already");
    w.now += 10_000;
    assert_eq!(kept(w.waits(ANN, "job", Some(token), gate(APPROVED))), ["approved"]);
    assert_eq!(w.job("job").deadline(), Some(w.now + 30_000));
    assert_eq!(w.signals_of("job"), [("approved".into(), "yes".into())]);
    w.done_keeping(ANN, "job", -1).unwrap();
    assert_eq!(w.sends("job", b"other"), "ended");
    w.is_valid();
}

#[test]
fn all_must_arrive_or_with_any_the_first_counts_in_every_run() {
    let both: &[&[u8]] = &[b"a", b"b"];
    let (mut w, token) = begun();
    assert_eq!(w.waits(ANN, "job", Some(token), gate(both)), blocked());
    assert_eq!((w.sends("job", b"b"), w.is("job")), ("kept", Some(Blocked)));
    assert_eq!((w.sends("job", b"a"), w.is("job")), ("woken", Some(Ready)));
    w.take_id(ANN, "job");
    assert_eq!(kept(w.waits(ANN, "job", None, gate(both))), ["b", "a"]);
    let any = Gate { any: true, ..gate(both) };
    assert_eq!(kept(w.waits(ANN, "job", None, any.clone())), ["b"]);
    let (mut w, token) = begun();
    assert_eq!(w.waits(ANN, "job", Some(token), any.clone()), blocked());
    assert_eq!(w.sends("job", b"b"), "woken");
    assert_eq!(w.sends("job", b"a"), "kept");
    w.take_id(ANN, "job");
    assert_eq!(kept(w.waits(ANN, "job", None, any)), ["b"]);
    w.is_valid();
}

#[test]
fn a_timeout_lets_it_run_and_is_remembered() {
    let (mut w, token) = begun();
    let request = |step| Await { gate: within(1_000, OnTimeout::Run), step, ..Await::default() };
    assert_eq!(w.waits_as(ANN, "job", Some(token), request(None)), blocked());
    w.pass(999);
    assert_eq!(w.is("job"), Some(Blocked));
    w.pass(1);
    assert_eq!(w.is("job"), Some(Ready));
    assert_eq!(w.sends("job", b"approved"), "kept", "too late");
    w.take_id(ANN, "job");
    assert!(timed_out(&w.waits_as(ANN, "job", None, request(None))));
    assert!(timed_out(&w.waits_as(ANN, "job", None, request(Some(b"approved")))));
    assert_eq!(kept(w.waits_as(ANN, "job", None, request(Some(b"second")))), ["approved"]);
    let unstep = Update { unstep: vec![b"approved"], ..Update::default() };
    w.update(b"job", &unstep).unwrap().unwrap();
    assert_eq!(kept(w.waits_as(ANN, "job", None, request(None))), ["approved"]);
    w.is_valid();
}

#[test]
fn a_timeout_may_fail_or_cancel_the_job() {
    let (mut w, token) = begun();
    assert_eq!(w.waits(ANN, "job", Some(token), within(5, OnTimeout::Fail)), blocked());
    w.pass(5);
    assert_eq!(w.is("job"), Some(Failed));
    assert_eq!((w.job("job").kind(), w.job("job").message()), (Some(&b"signal"[..]), Some(&b"approved"[..])));
    assert_eq!(w.job("job").left(&w.rules), 10, "no retry is charged");
    let mut w = World::default();
    w.configure(None, Setting::RetainCancelled, Some(-1));
    w.put_gated("job", within(5, OnTimeout::Cancel));
    w.pass(5);
    assert_eq!((w.is("job"), w.job("job").reason()), (Some(Cancelled), Some(&b"no signal approved"[..])));
    assert_eq!(w.events("job"), ["posted", "awaiting", "await-timeout", "cancelled"]);
    w.is_valid();
}

#[test]
fn time_goes_on_during_a_pause_and_waits_out_a_recovery() {
    let (mut w, token) = begun();
    assert_eq!(w.waits(ANN, "job", Some(token), within(1_000, OnTimeout::Run)), blocked());
    w.pause(&PauseRequest::default(), 1);
    w.hold = w.now + 1_500;
    w.pass(1_400);
    assert_eq!(w.is("job"), Some(Blocked), "nobody could signal while there was no server");
    assert_eq!(w.sends("job", b"other"), "kept");
    w.pass(100);
    assert_eq!(w.is("job"), Some(Ready));
}

#[test]
fn a_job_waits_for_all_that_it_needs() {
    let mut w = World::default();
    w.put("first");
    let (due, after) = (Some(w.now + 5_000), vec![(&b"first"[..], OnFailure::Hold)]);
    w.put_with("job", |p| {
        p.due = due;
        p.after = Some(After { jobs: after, strict: true, ..After::default() });
        p.gate = Some(Box::new(within(1_000, OnTimeout::Run)));
    });
    w.pass(1_000);
    assert_eq!(w.is("job"), Some(Blocked), "its time is about signals alone");
    w.take_id(ANN, "first");
    w.done(ANN, "first", None).unwrap();
    w.pass(0);
    assert_eq!(w.is("job"), Some(Scheduled));
    w.pass(4_000);
    assert_eq!(w.is("job"), Some(Ready));
    w.is_valid();
}

#[test]
fn a_signal_that_is_not_all_it_waits_for_does_not_wake_it() {
    let mut w = World::default();
    w.put("first");
    w.put_after("job", &["first"], OnFailure::Hold);
    w.put_gated("gated", gate(APPROVED));
    let more = After { jobs: vec![(b"first", OnFailure::Hold)], strict: true, ..After::default() };
    w.depend(b"gated", &Depend::Add(more)).unwrap().unwrap();
    assert_eq!((w.sends("gated", b"approved"), w.is("gated")), ("kept", Some(Blocked)));
    w.take_id(ANN, "first");
    w.done(ANN, "first", None).unwrap();
    w.pass(0);
    assert_eq!(w.is("gated"), Some(Ready));
    w.is_valid();
}

#[test]
fn a_resend_is_answered_with_the_state_now() {
    let (mut w, token) = waiting();
    let again = |w: &mut World| w.waits(ANN, "job", Some(token), gate(APPROVED));
    assert_eq!(again(&mut w), blocked());
    w.sends("job", b"approved");
    assert_eq!(again(&mut w), Ok(Waited::State(Ready)));
    w.take_id(BOB, "job");
    assert_eq!(again(&mut w), Err("NOTOWNER bob".into()));
    w.gives_back(BOB, "job", None).unwrap();
    w.take_id(ANN, "job");
    assert_eq!(again(&mut w), Err(format!("STALE token {token} is not the current one")));
    let (mut w, _) = waiting();
    assert_eq!(w.waits(ANN, "job", None, gate(APPROVED)), Err("NOTCLAIMED blocked".into()));
    assert_eq!(w.waits(BOB, "job", Some(token), gate(APPROVED)), Err("NOTCLAIMED blocked".into()));
}

#[test]
fn a_late_holder_waits_or_gets_its_job_back() {
    let (mut w, token) = begun();
    w.pass(30_000);
    assert_eq!(w.waits(ANN, "job", Some(token), gate(APPROVED)), blocked());
    assert_eq!((w.is("job"), w.sends("job", b"approved")), (Some(Blocked), "woken"));
    let (mut w, token) = begun();
    w.sends("job", b"approved");
    w.pass(30_000);
    assert_eq!(kept(w.waits(ANN, "job", Some(token), gate(APPROVED))), ["approved"]);
    assert_eq!(w.is("job"), Some(Claimed));
    let (mut w, token) = begun();
    w.configure(None, Setting::Ownerless, Some(1));
    w.pass(30_000);
    let stale = Err(format!("STALE token {} is not the current one", token + 1));
    assert_eq!(w.waits(ANYBODY, "job", Some(token + 1), gate(APPROVED)), stale);
    w.is_valid();
}

#[test]
fn a_late_holder_whose_slot_is_taken_is_refused_when_all_is_there() {
    let mut w = World::default();
    w.configure(None, Setting::Concurrency, Some(1));
    w.put("job");
    let token = w.take_id(ANN, "job");
    w.sends("job", b"approved");
    w.pass(30_000);
    w.put_with("other", |p| p.priority = Some(9));
    w.take_id(BOB, "other");
    assert_eq!(w.waits(ANN, "job", Some(token), gate(APPROVED)), Err("LIMIT concurrency".into()));
    assert_eq!(w.waits(ANN, "job", Some(token), gate(&[b"more"])), blocked());
    w.is_valid();
}

#[test]
fn a_job_that_is_to_be_cancelled_is_cancelled_unless_all_is_there() {
    let (mut w, token) = begun();
    w.cancel(b"job", false).unwrap().unwrap();
    assert_eq!(w.waits(ANN, "job", Some(token), gate(APPROVED)), Ok(Waited::State(Cancelled)));
    assert_eq!(w.waits(ANN, "job", Some(token), gate(APPROVED)), Ok(Waited::State(Cancelled)));
    let (mut w, token) = begun();
    w.sends("job", b"approved");
    w.cancel(b"job", false).unwrap().unwrap();
    let waited = w.waits(ANN, "job", Some(token), gate(APPROVED));
    assert!(matches!(waited, Ok(Waited::Kept { cancel: true, .. })), "{waited:?}");
}

#[test]
fn a_waiting_job_leaves_its_slot_and_keeps_its_group_and_its_key() {
    let mut w = World::default();
    w.configure(None, Setting::Concurrency, Some(1));
    w.configure_group(b"default", b"g", Setting::Ordered, Some(1));
    let key = TakeKey { key: b"k", until: None, time: None, on_conflict: OnConflict::Reject };
    w.put_with("job", |p| (p.group, p.unique) = (Some(&b"g"[..]), Some(key)));
    w.put_with("next of the group", |p| p.group = Some(b"g"));
    w.put("other");
    w.take_id(ANN, "job");
    assert_eq!(w.waits(ANN, "job", None, gate(APPROVED)), blocked());
    assert_eq!(w.take_all(BOB), ["other"]);
    let taken = w.post(&Post { id: Some(b"x"), unique: Some(key), ..Post::default() });
    assert_eq!(taken, Err("EXISTS job".into()));
    w.done(BOB, "other", None).unwrap();
    assert_eq!(w.take(BOB), None, "the group waits with it");
    w.sends("job", b"approved");
    assert_eq!(w.take_all(BOB), ["job"]);
    w.is_valid();
}

#[test]
fn waiting_does_not_count_towards_an_expiry() {
    let mut w = World::default();
    w.put_with("job", |p| p.options.expire = Some(1_000));
    w.pass(900);
    w.take_id(ANN, "job");
    assert_eq!(w.waits(ANN, "job", None, gate(APPROVED)), blocked());
    w.pass(100_000);
    w.sends("job", b"approved");
    w.pass(99);
    assert_eq!(w.is("job"), Some(Ready));
    w.pass(1);
    assert_eq!(w.is("job"), Some(Failed));
}

#[test]
fn a_requeued_job_waits_for_its_gate_again() {
    let mut w = World::default();
    w.put_gated("job", within(1_000, OnTimeout::Run));
    w.cancel(b"job", false).unwrap().unwrap();
    w.pass(5_000);
    w.requeue(b"job", To::Same).unwrap().unwrap();
    assert_eq!(
        (w.is("job"), w.job("job").waiting().map(Waiting::until)),
        (Some(Blocked), Some(w.now + 1_000))
    );
    assert_eq!(w.sends("job", b"approved"), "woken");
    w.take_id(ANN, "job");
    w.fails_with(ANN, "job", None, Retry::No).unwrap();
    w.requeue(b"job", To::Same).unwrap().unwrap();
    assert_eq!(w.is("job"), Some(Ready), "its signal counts for its life");
    w.is_valid();
}

#[test]
fn a_post_in_its_place_forgets_signals_and_waits_and_keeps_the_gate() {
    let mut w = World::default();
    w.put_gated("job", gate(APPROVED));
    w.sends("job", b"approved");
    w.put_replacing("job", b"other");
    assert_eq!((w.is("job"), w.signals_of("job")), (Some(Blocked), Vec::new()));
    w.post(&Post {
        id: Some(b"job"),
        exists: Exists::Replace,
        gate: Some(Box::new(gate(&[b"paid"]))),
        ..Post::default()
    })
    .unwrap();
    assert_eq!((w.sends("job", b"approved"), w.sends("job", b"paid")), ("kept", "woken"));
    let (mut w, _) = waiting();
    w.put_replacing("job", b"other");
    assert_eq!(w.is("job"), Some(Ready), "a run's wait is of that run");
    w.is_valid();
}

#[test]
fn the_next_queue_keeps_signals_and_has_a_gate_of_its_own() {
    let mut w = World::default();
    w.put_gated("job", gate(APPROVED));
    w.sends("job", b"approved");
    w.take_id(ANN, "job");
    let advance = Advance { queue: b"next", gate: Some(Box::new(gate(&[b"paid"]))), ..Advance::default() };
    w.work(&(Speaker { worker: ANN, id: b"job", ..Speaker::default() }, advance)).unwrap();
    assert_eq!(w.is("job"), Some(Blocked));
    assert_eq!(w.signals_of("job").len(), 1);
    assert_eq!(w.sends("job", b"paid"), "woken");
    w.take_id(ANN, "job");
    let advance = Advance { queue: b"last", ..Advance::default() };
    w.work(&(Speaker { worker: ANN, id: b"job", ..Speaker::default() }, advance)).unwrap();
    assert_eq!(w.is("job"), Some(Ready));
    w.is_valid();
}

#[test]
fn an_operator_lets_a_job_run_without_its_signals() {
    let (mut w, token) = waiting();
    w.depend(b"job", &Depend::RemoveSignals).unwrap().unwrap();
    assert_eq!(w.is("job"), Some(Ready));
    w.take_id(ANN, "job");
    assert!(timed_out(&w.waits(ANN, "job", None, gate(APPROVED))));
    assert_eq!(w.depend(b"job", &Depend::RemoveSignals), Some(Err("CLAIMED ann".into())));
    let mut gated = World::default();
    gated.put_gated("job", gate(APPROVED));
    gated.depend(b"job", &Depend::Clear).unwrap().unwrap();
    assert_eq!(gated.is("job"), Some(Ready));
    gated.cancel(b"job", false).unwrap().unwrap();
    gated.requeue(b"job", To::Same).unwrap().unwrap();
    assert_eq!(gated.is("job"), Some(Ready), "it needs none from then on");
    assert!(token > 0);
    w.is_valid();
    gated.is_valid();
}

#[test]
fn what_operators_and_workers_do_to_a_waiting_job() {
    let (mut w, token) = waiting();
    assert_eq!(w.release(b"job"), Some(Err("NOTCLAIMED blocked".into())));
    assert_eq!(w.requeue(b"job", To::Same), Some(Err("NOTENDED blocked".into())));
    assert_eq!(w.beat(ANN, "job", Some(token)), Err("NOTCLAIMED blocked".into()));
    assert_eq!(w.done(ANN, "job", Some(token)), Err("NOTCLAIMED blocked".into()));
    let update = Update { due: Some(w.now + 500), priority: Some(7), ..Update::default() };
    w.update(b"job", &update).unwrap().unwrap();
    assert_eq!(w.sends("job", b"approved"), "woken");
    assert_eq!((w.is("job"), w.job("job").priority()), (Some(Scheduled), 7));
    let (mut w, _) = waiting();
    w.configure(None, Setting::RetainCancelled, Some(-1));
    assert_eq!(w.cancel(b"job", false), Some(Ok("cancelled")));
    assert!(w.job("job").waiting().is_none());
    let (mut gone, _) = waiting();
    assert!(gone.delete(b"job"));
    gone.is_valid();
    w.is_valid();
}

#[test]
fn signals_are_bounded_with_steps() {
    let (mut w, token) = begun();
    w.configure(None, Setting::MaxSteps, Some(2));
    w.sends("job", b"a");
    let step = Step { name: b"a", value: b"1", ..Step::default() };
    w.step(&(Speaker { worker: ANN, id: b"job", ..Speaker::default() }, step)).unwrap();
    let more = Signal { name: b"b", ..Signal::default() };
    assert_eq!(w.signal(b"job", &more), Some(Err("LIMIT max-steps".into())));
    let none = w.waits(ANN, "job", Some(token), gate(&[b"b"]));
    assert_eq!(none, Err("LIMIT max-steps".into()), "that its time was over has no room");
    w.configure(None, Setting::MaxSteps, None);
    // a, its sender, and the step: 1 + 3 + 2 bytes.
    w.configure(None, Setting::MaxStepBytes, Some(8));
    let long = Signal { name: b"b", value: b"yz", ..Signal::default() };
    assert_eq!(w.signal(b"job", &long), Some(Err("LIMIT max-step-bytes".into())));
    assert_eq!(w.signal(b"job", &Signal { value: b"y", ..long }), Some(Ok("kept")));
    w.is_valid();
}

#[test]
fn a_snapshot_keeps_waits_and_signals() {
    let (mut w, _) = waiting();
    w.put_gated("gated", within(1_000, OnTimeout::Fail));
    w.sends_value("gated", b"other", b"value");
    w.reload();
    assert_eq!(w.signals_of("gated"), [("other".into(), "value".into())]);
    w.pass(1_000);
    assert_eq!((w.is("gated"), w.is("job")), (Some(Failed), Some(Blocked)));
    assert_eq!(w.sends("job", b"approved"), "woken");
    w.is_valid();
}

#[test]
fn a_selection_signals_all_that_wait() {
    let mut w = World::default();
    for id in ["a", "b"] {
        w.put_gated(id, gate(APPROVED));
    }
    w.put("c");
    let signal = Signal { name: b"approved", ..Signal::default() };
    let selection = Selection {
        deed: Operation::Signal(&signal),
        filters: Filters::new([Filter::Awaits(b"approved")], []),
        from: None,
        count: 1,
        bytes: usize::MAX,
        dry: false,
    };
    let first = w.select(&selection);
    let second = w.select(&Selection { from: first.next, count: 9, ..selection });
    let ids: Vec<String> = first.ids.iter().chain(&second.ids).map(name).collect();
    assert_eq!(ids, ["a", "b"]);
    assert_eq!((w.is("a"), w.is("b"), w.signals_of("c").len()), (Some(Ready), Some(Ready), 0));
}

#[test]
fn a_schedule_posts_jobs_that_wait() {
    let mut w = World::default();
    let set = SetSchedule {
        id: b"s",
        when: Some(When::Every(1_000)),
        child: Post { gate: Some(Box::new(gate(APPROVED))), ..Post::default() },
        ..SetSchedule::default()
    };
    w.set_schedule(&set).unwrap();
    w.pass(1_000);
    assert_eq!(w.is("@s@1"), Some(Blocked));
    assert_eq!(w.sends("@s@1", b"approved"), "woken");
    w.is_valid();
}

#[test]
fn it_is_explained_and_counted() {
    let mut w = World::default();
    w.put_gated("job", within(1_000, OnTimeout::Cancel));
    let explained = w.explain(b"job").unwrap();
    let reason = &explained.reasons[0];
    assert_eq!((reason.code, explained.claimable), ("signals", false));
    assert!(reason.text.contains("the signal approved") && reason.text.contains("it is cancelled"));
    w.pass(400);
    w.sends("job", b"approved");
    let stats = w.board.stats(None, day_of(w.now)).unwrap();
    assert_eq!((stats.count(Tally::Awaited), stats.count(Tally::Signalled)), (1, 1));
    assert_eq!(stats.signal_wait().map(Histogram::sum), Some(400));
}

#[test]
fn a_plain_job_pays_nothing() {
    let mut w = World::default();
    w.put("plain");
    let plain = w.job("plain").weight();
    assert_eq!(plain, b"\x05plain".len() + b"work".len());
    w.put_gated("gated", gate(APPROVED));
    assert!(w.job("gated").weight() > plain);
}
