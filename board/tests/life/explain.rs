//! Why a job is not running: a reason for each cause, first what has to change first.

use board::*;

use crate::site::*;
use crate::world::World;

const DEFAULT: Option<&[u8]> = Some(DEFAULT_QUEUE);

impl World {
    fn reasons(&self, id: &str) -> Vec<Reason> {
        self.explain(id.as_bytes()).unwrap().reasons
    }

    fn codes(&self, id: &str) -> Vec<&'static str> {
        self.reasons(id).iter().map(|reason| reason.code).collect()
    }

    fn claimable(&self, id: &str) -> bool {
        self.explain(id.as_bytes()).unwrap().claimable
    }

    fn reason(&self, id: &str, code: &str) -> Reason {
        self.reasons(id).into_iter().find(|reason| reason.code == code).expect("there is such a reason")
    }

    fn detail(&self, id: &str, code: &str, name: &str) -> Option<Detail> {
        self.reason(id, code).details.into_iter().find(|(n, _)| *n == name).map(|(_, detail)| detail)
    }

    fn rows(&self, id: &str, code: &str, name: &str) -> Vec<Details> {
        match self.detail(id, code, name) {
            Some(Detail::Rows(rows)) => rows,
            other => panic!("{other:?} are no rows"),
        }
    }

    fn put_in_group(&mut self, id: &str, group: &'static str) {
        self.put_with(id, |p| p.group = Some(group.as_bytes()));
    }
}

fn number(n: i64) -> Option<Detail> {
    Some(Detail::Number(n))
}

fn bytes(text: &str) -> Detail {
    Detail::Bytes(text.into())
}

#[test]
fn a_ready_job_is_told_its_place_at_any_length() {
    let mut w = World::default();
    for n in 0..2_000 {
        let id = n.to_string();
        w.put_with(&id, |p| p.priority = Some(n % 7));
    }
    let all = w.board.list(&Page { count: 2_000, ..Page::default() }).0;
    for (ahead, slot) in all.into_iter().enumerate().step_by(37) {
        let id = name(&w.board.record_of(slot).unwrap().id().to_vec());
        assert_eq!(w.detail(&id, "line", "ahead"), number(ahead as i64));
        assert!(w.claimable(&id));
    }
    // The best is what a claim takes, the others stand behind it.
    assert_eq!((w.codes("0"), w.codes("6")), (vec!["line", "unclaimed"], vec!["unclaimed", "line"]));
}

#[test]
fn the_place_is_that_within_a_group_and_its_turn_among_the_groups() {
    let mut w = World::default();
    w.put_in_group("a", "x");
    w.put_in_group("b", "x");
    w.put_in_group("c", "y");
    w.put("d");
    assert_eq!(w.detail("b", "line", "ahead"), number(1));
    assert_eq!((w.detail("c", "line", "ahead"), w.detail("c", "line", "groups")), (number(0), number(3)));
    assert_eq!((w.detail("a", "line", "turn"), w.detail("c", "line", "turn")), (number(0), number(1)));
    assert_eq!((w.detail("d", "line", "ahead"), w.detail("d", "line", "turn")), (number(0), number(2)));
    assert_eq!((w.codes("a"), w.codes("c")), (vec!["unclaimed", "line"], vec!["line", "unclaimed"]));
    w.take_id(ANN, "a");
    assert_eq!((w.codes("c"), w.detail("b", "line", "turn")), (vec!["unclaimed", "line"], number(2)));
}

#[test]
fn a_delayed_job_is_told_its_time_and_a_retry_its_failure() {
    let mut w = World::default();
    w.put_in("late", Scheduled);
    assert_eq!((w.codes("late"), w.claimable("late")), (vec!["delayed"], false));
    assert_eq!(w.detail("late", "delayed", "due"), number(w.now + 1_000));
    w.put_with("r", |p| p.options.jitter = Some(0));
    w.take_id(ANN, "r");
    w.fails(ANN, "r", None).unwrap();
    assert_eq!(w.codes("r"), ["retry"]);
    assert_eq!(w.detail("r", "retry", "due"), number(w.now + 5_000));
    assert_eq!((w.detail("r", "retry", "failures"), w.detail("r", "retry", "left")), (number(1), number(9)));
    assert_eq!(w.detail("r", "retry", "kind"), Some(bytes("io")));
    assert_eq!(w.detail("r", "retry", "message"), Some(bytes("disk full")));
    assert_eq!(w.detail("r", "retry", "worker"), Some(bytes("ann")));
    // A reader changes nothing: what is due and not settled is told as such.
    w.now += 1_000;
    assert!(w.reason("late", "delayed").text.contains("was due"));
}

#[test]
fn a_blocked_job_is_told_what_it_waits_for_and_what_holds_it() {
    let mut w = World::default();
    w.put("a");
    w.put_in("f", Failed);
    w.put_after("b", &["a", "f"], OnFailure::Hold);
    assert_eq!((w.codes("b"), w.detail("b", "dependencies", "count")), (vec!["dependencies"], number(2)));
    let row = |id, state| {
        vec![("id", bytes(id)), ("state", Detail::Word(state)), ("onfailure", Detail::Word("hold"))]
    };
    assert_eq!(w.rows("b", "dependencies", "jobs"), [row("a", "ready"), row("f", "failed")]);
    assert!(w.reason("b", "dependencies").text.contains("f is failed"));
    let after = || After { jobs: vec![(&b"a"[..], OnFailure::Run)], strict: false, ..After::default() };
    let due = w.now + 500;
    w.put_with("c", |p| (p.after, p.due) = (Some(after()), Some(due)));
    assert_eq!(w.codes("c"), ["dependencies", "delayed"]);
    let many: Vec<String> = (0..150).map(|n| format!("m{n}")).collect();
    many.iter().for_each(|id| w.put(id));
    w.put_after("d", &many.iter().map(String::as_str).collect::<Vec<_>>(), OnFailure::Hold);
    assert_eq!(w.detail("d", "dependencies", "count"), number(150));
    assert_eq!(w.rows("d", "dependencies", "jobs").len(), 100);
}

#[test]
fn each_pause_is_told_until_when() {
    let mut w = World::default();
    w.put_in_group("a", "x");
    w.put_in("late", Scheduled);
    let until = w.now + 500;
    w.pause(&PauseRequest { time: Some(500), ..PauseRequest::default() }, 1);
    w.pause(&PauseRequest { queue: DEFAULT, ..PauseRequest::default() }, 1);
    w.pause(
        &PauseRequest { queue: DEFAULT, group: Some(b"x"), time: Some(600), ..PauseRequest::default() },
        1,
    );
    let told: Vec<Details> =
        w.reasons("a").into_iter().filter(|r| r.code == "paused").map(|r| r.details).collect();
    let level = |level, until| vec![("level", Detail::Word(level)), ("until", Detail::Number(until))];
    assert_eq!(told, [level("board", until), level("queue", -1), level("group", until + 100)]);
    assert!(!w.claimable("a"));
    // Of a delayed job, those that last longer than its delay.
    assert_eq!(w.codes("late"), ["delayed", "paused"]);
    w.resume(DEFAULT);
    assert_eq!((w.codes("late"), w.claimable("a")), (vec!["delayed"], false));
    w.pass(600);
    assert_eq!((w.codes("a"), w.claimable("a")), (vec!["unclaimed", "line"], true));
}

#[test]
fn a_limit_is_told_with_who_holds_the_places() {
    let mut w = World::default();
    for id in ["a", "b", "c"] {
        w.put_in_group(id, "x");
    }
    w.put("d");
    w.configure(DEFAULT, Setting::Concurrency, Some(1));
    w.take_id(ANN, "a");
    assert_eq!((w.codes("d"), w.claimable("d")), (vec!["concurrency", "line"], false));
    assert_eq!(w.detail("d", "concurrency", "level"), Some(Detail::Word("queue")));
    assert_eq!(
        (w.detail("d", "concurrency", "limit"), w.detail("d", "concurrency", "running")),
        (number(1), number(1))
    );
    let until = w.now + 30_000;
    let held = vec![("worker", bytes("ann")), ("id", bytes("a")), ("until", Detail::Number(until))];
    assert_eq!(w.rows("d", "concurrency", "holders"), std::slice::from_ref(&held));
    w.configure(DEFAULT, Setting::Concurrency, None);
    w.take_id(BOB, "d");
    w.configure_group(b"default", b"x", Setting::Concurrency, Some(1));
    assert_eq!(w.detail("b", "concurrency", "level"), Some(Detail::Word("group")));
    assert_eq!(w.rows("b", "concurrency", "holders"), [held]);
    w.done(ANN, "a", None).unwrap();
    assert_eq!((w.codes("b"), w.codes("c")), (vec!["unclaimed", "line"], vec!["line", "unclaimed"]));
}

#[test]
fn ten_holders_of_many_are_told() {
    let mut w = World::default();
    for n in 0..30 {
        w.put_in(&format!("j{n}"), Claimed);
    }
    w.put("next");
    w.configure(DEFAULT, Setting::Concurrency, Some(20));
    assert_eq!(w.rows("next", "concurrency", "holders").len(), 10);
    assert_eq!(w.detail("next", "concurrency", "running"), number(30));
}

#[test]
fn a_job_of_an_ordered_group_is_told_the_one_before_it() {
    let mut w = World::default();
    w.configure_group(b"default", b"x", Setting::Ordered, Some(1));
    for id in ["a", "b"] {
        w.put_in_group(id, "x");
    }
    let waits = |w: &World| {
        assert!(!w.claimable("b"));
        [w.detail("b", "ordered", "id"), w.detail("b", "ordered", "state")].map(Option::unwrap)
    };
    let on = |state: &'static str| [bytes("a"), Detail::Word(state)];
    assert_eq!((w.codes("a"), waits(&w)), (vec!["unclaimed", "line"], on("ready")));
    w.take_id(ANN, "a");
    assert_eq!(waits(&w), on("claimed"));
    w.fails(ANN, "a", None).unwrap();
    assert_eq!(waits(&w), on("scheduled"));
    w.pass(10_000);
    assert_eq!((w.codes("a"), waits(&w)), (vec!["unclaimed", "line"], on("ready")));
    w.take_id(ANN, "a");
    w.done(ANN, "a", None).unwrap();
    assert_eq!(w.codes("b"), ["unclaimed", "line"]);
}

#[test]
fn a_rate_is_told_with_the_time_of_the_next_tokens() {
    let mut w = World::default();
    for id in ["a", "b", "c", "d"] {
        w.put_with(id, |p| {
            p.group = Some(b"x");
            p.options.cost = Some(if id == "c" { 2 } else { 1 });
        });
    }
    w.configure(None, Setting::Rate, Some(2));
    w.configure(None, Setting::Burst, Some(2));
    w.configure(DEFAULT, Setting::Rate, Some(1));
    w.configure(DEFAULT, Setting::Burst, Some(2));
    w.take_id(ANN, "a");
    assert_eq!((w.codes("b"), w.claimable("b")), (vec!["unclaimed", "line"], true));
    assert_eq!((w.codes("c"), w.claimable("c")), (vec!["rate", "rate", "line"], false));
    let at: Vec<_> =
        w.reasons("c")[..2].iter().map(|r| (r.details[0].clone(), r.details[1].clone())).collect();
    let level = |level, at| (("level", Detail::Word(level)), ("at", Detail::Number(at)));
    assert_eq!(at, [level("board", w.now + 500), level("queue", w.now + 1_000)]);
    assert_eq!((w.detail("c", "rate", "cost"), w.detail("c", "rate", "rate")), (number(2), number(2)));
    w.take_id(ANN, "b");
    w.configure_group(b"default", b"x", Setting::Rate, Some(0));
    w.pass(2_000);
    w.take_id(ANN, "d");
    w.pass(2_000);
    // The group gives no token any more, but did not lack one for this job yet.
    assert_eq!(w.detail("c", "rate", "at"), number(-1));
    w.configure_group(b"default", b"x", Setting::Rate, None);
    assert!(w.claimable("c"));
}

#[test]
fn a_held_job_is_told_its_holder_and_an_ended_one_how() {
    let mut w = World::default();
    w.put_in("a", Claimed);
    assert_eq!((w.codes("a"), w.detail("a", "claimed", "until")), (vec!["claimed"], number(w.now + 30_000)));
    assert_eq!(w.detail("a", "claimed", "worker"), Some(bytes("ann")));
    w.hold = w.now + 50_000;
    assert_eq!(w.detail("a", "claimed", "until"), number(w.hold));
    w.hold = 0;
    w.register(&Register { worker: ANN, time: Some(100), ..Register::default() }).unwrap();
    assert_eq!(w.detail("a", "claimed", "until"), number(w.now + 100));
    w.cancel(b"a", false).unwrap().unwrap();
    assert_eq!(w.codes("a"), ["claimed", "cancel"]);
    w.now += 100;
    assert!(w.reason("a", "claimed").text.contains("has ended"));
    for state in ENDED {
        w.put_in(state.name(), state);
        assert_eq!((w.codes(state.name()), w.claimable(state.name())), (vec!["ended"], false));
        assert!(w.reason(state.name(), "ended").text.contains(state.name()));
    }
    assert_eq!(w.detail("trashed", "ended", "why"), Some(bytes("rubbish")));
    w.put("gone");
    w.take_id(BOB, "gone");
    w.done(BOB, "gone", None).unwrap();
    assert_eq!(w.board.tombstone(b"gone", w.now).unwrap().explain().code, "gone");
    assert_eq!(w.explain(b"nobody"), None);
}

#[test]
fn since_when_nobody_has_claimed_is_local_and_quiet_workers_are_told() {
    let mut w = World::default();
    w.put("a");
    w.put_with("b", |p| p.options.expire = Some(9_000));
    assert_eq!(w.detail("a", "unclaimed", "since"), None);
    w.take_id(ANN, "a");
    assert_eq!(w.detail("b", "unclaimed", "since"), number(w.now));
    assert_eq!(w.detail("b", "expires", "at"), number(w.now + 9_000));
    assert_eq!(w.codes("b"), ["unclaimed", "line", "expires"]);
    w.register(&Register { worker: BOB, ..Register::default() }).unwrap();
    assert_eq!(w.detail("b", "unclaimed", "quiet"), None);
    w.quiet(BOB, true).unwrap();
    assert_eq!(w.detail("b", "unclaimed", "quiet"), number(1));
    w.now += 9_000;
    assert_eq!((w.codes("b"), w.claimable("b")), (vec!["expires", "line"], false));
    w.is_valid();
    w.reload();
    assert_eq!(w.codes("b"), ["expires", "line"]);
}

#[test]
fn every_reason_has_a_sentence() {
    let mut w = World::default();
    for state in STATES {
        w.put_in(state.name(), state);
        for reason in w.reasons(state.name()) {
            assert!(reason.text.ends_with('.') && !reason.text.contains("  "), "{}", reason.text);
        }
    }
}
