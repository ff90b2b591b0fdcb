//! Pauses: what they keep from being claimed, when they end, and what they take back.

use board::*;

use crate::site::*;
use crate::world::World;

const MAIL: Option<&[u8]> = Some(b"mail");

fn halt(queue: Option<&'static [u8]>) -> PauseRequest<'static> {
    PauseRequest { queue, ..PauseRequest::default() }
}

/// A board with a job in the default queue and one in mail.
fn two() -> World {
    let mut w = World::default();
    w.put("plain");
    w.put_with("letter", |p| p.queue = MAIL);
    w
}

/// The queues that have been woken since the last call, by name.
fn woken(w: &mut World) -> Vec<String> {
    let mut names = Vec::new();
    w.board.woken(|board, queue| names.push(name(&board.queue_named(queue).to_vec())));
    names.sort();
    names
}

#[test]
fn nothing_is_claimed_from_a_paused_queue() {
    for order in [Order::Best, Order::Listed, Order::Rotate] {
        let mut w = two();
        w.pause(&halt(MAIL), 1);
        let queues: [&[u8]; 2] = [b"mail", b"default"];
        let claim = Claim { worker: ANN, queues: &queues, order, ..Claim::default() };
        assert!(w.board.claimable(&claim, w.now));
        let got = w.claim(&claim, 9);
        assert_eq!(got.iter().map(|g| name(&g.id)).collect::<Vec<_>>(), ["plain"]);
        assert!(!w.board.claimable(&claim, w.now));
        w.is_valid();
    }
}

#[test]
fn nothing_is_claimed_from_a_paused_board() {
    let mut w = two();
    w.pause(&halt(None), 1);
    assert!(w.take_all(ANN).is_empty());
    assert!(w.resume(None));
    assert_eq!(w.take_all(ANN), ["plain", "letter"]);
    w.is_valid();
}

#[test]
fn a_claim_by_id_of_a_paused_job_is_refused() {
    let mut w = two();
    let claim = Claim { worker: ANN, ..Claim::default() };
    w.pause(&halt(MAIL), 1);
    assert_eq!(w.claim_id(&claim, b"letter"), refused("NOTREADY paused"));
    assert!(w.claim_id(&claim, b"plain").is_ok());
    w.resume(MAIL);
    w.pause(&halt(None), 1);
    assert_eq!(w.claim_id(&claim, b"letter"), refused("NOTREADY paused"));
    w.put_in("later", Scheduled);
    assert_eq!(w.claim_id(&claim, b"later"), refused("NOTREADY scheduled"));
}

#[test]
fn running_jobs_go_on_through_a_pause() {
    let mut w = two();
    let tokens = ["plain", "letter"].map(|id| Some(w.take_id(ANN, id)));
    w.pause(&halt(None), 1);
    w.pass(20_000);
    assert_eq!(w.beat(ANN, "plain", tokens[0]), Ok((w.now + 30_000, false)));
    assert_eq!(w.done(ANN, "plain", tokens[0]), DID);
    w.pass(20_000);
    assert_eq!(w.is("letter"), Some(Ready));
    assert_eq!(w.beat(ANN, "letter", tokens[1]), Ok((w.now + 30_000, false)));
    w.is_valid();
}

#[test]
fn a_pause_of_the_board_and_one_of_a_queue_end_apart() {
    let mut w = two();
    w.pause(&halt(None), 1);
    w.pause(&halt(MAIL), 1);
    assert!(w.resume(None));
    assert!(!w.resume(None));
    assert_eq!(w.take_all(ANN), ["plain"]);
    w.pause(&halt(None), 1);
    assert!(w.resume(MAIL));
    assert!(w.take_all(ANN).is_empty());
    w.resume(None);
    assert_eq!(w.take_all(ANN), ["letter"]);
    w.is_valid();
}

#[test]
fn a_pause_ends_when_its_time_has_passed() {
    let mut w = two();
    w.pause(&PauseRequest { time: Some(500), ..halt(MAIL) }, 1);
    assert_eq!(w.board.paused(MAIL, w.now), Some(w.now + 500));
    w.pass(499);
    assert_eq!(w.take_all(ANN), ["plain"]);
    let rules = w.rules.clone();
    let env = w.env(&rules);
    assert_eq!(w.board.reckon(&env), w.now + 1);
    woken(&mut w);
    // A claim need not wait for the timer.
    w.now += 1;
    assert_eq!(w.board.paused(MAIL, w.now), None);
    w.pass(0);
    assert_eq!(woken(&mut w), ["mail"]);
    assert!(!w.resume(MAIL));
    assert_eq!(w.take_all(ANN), ["letter"]);
    w.is_valid();
}

#[test]
fn a_pause_only_gets_longer() {
    let mut w = two();
    w.pause(&PauseRequest { time: Some(500), ..halt(MAIL) }, 1);
    w.pause(&PauseRequest { time: Some(900), ..halt(MAIL) }, 1);
    w.pause(&PauseRequest { time: Some(10), ..halt(MAIL) }, 1);
    w.pass(899);
    assert_eq!(w.take_all(ANN), ["plain"]);
    w.pass(1);
    assert_eq!(w.take_all(ANN), ["letter"]);
    w.put_with("again", |p| p.queue = MAIL);
    w.pause(&halt(MAIL), 1);
    w.pause(&PauseRequest { time: Some(10), ..halt(MAIL) }, 1);
    w.pass(1_000);
    assert!(w.take_all(ANN).is_empty());
    assert!(w.resume(MAIL));
    assert_eq!(w.take_all(ANN), ["again"]);
    w.is_valid();
}

#[test]
fn the_end_of_a_pause_wakes_the_queues_that_have_jobs() {
    let mut w = two();
    w.pause(&halt(None), 1);
    w.pause(&halt(Some(b"empty")), 1);
    woken(&mut w);
    w.resume(Some(b"empty"));
    assert!(woken(&mut w).is_empty());
    w.resume(None);
    assert_eq!(woken(&mut w), ["default", "mail"]);
    w.pause(&halt(MAIL), 1);
    w.resume(MAIL);
    assert_eq!(woken(&mut w), ["mail"]);
}

#[test]
fn a_pause_takes_running_jobs_back_in_slices() {
    let mut w = World::default();
    for n in 0..100 {
        w.put_with(&format!("job{n}"), |p| p.queue = (n % 2 == 0).then_some(b"mail"));
    }
    assert_eq!(w.take_all(ANN).len(), 100);
    w.pause(&PauseRequest { release: true, ..halt(MAIL) }, 8);
    let running = |w: &World, queue: &[u8]| w.board.count_in(queue, Claimed);
    assert_eq!(running(&w, b"mail"), 42);
    w.reload();
    assert!(w.slice(16));
    w.commit();
    assert_eq!((running(&w, b"mail"), running(&w, b"default")), (26, 50));
    w.pass(0);
    assert_eq!((running(&w, b"mail"), running(&w, b"default")), (0, 50));
    assert_eq!((w.job("job0").lapses(), w.job("job0").left(&w.rules)), (0, 10));
    assert_eq!(w.events("job0"), ["posted", "claimed", "released"]);
    assert!(w.take_all(BOB).is_empty());
    w.is_valid();
}

#[test]
fn a_pause_of_the_board_takes_all_running_jobs_back() {
    let mut w = two();
    let token = w.take_id(ANN, "plain");
    w.take_id(BOB, "letter");
    w.cancel(b"letter", false).unwrap().unwrap();
    w.pause(&PauseRequest { release: true, ..halt(None) }, 64);
    assert_eq!((w.is("plain"), w.is("letter")), (Some(Ready), Some(Cancelled)));
    assert_eq!(w.done(ANN, "plain", Some(token)), refused("NOTCLAIMED ready"));
    w.pass(0);
    w.is_valid();
}

#[test]
fn heartbeats_do_not_save_jobs_from_being_taken_back() {
    let mut w = World::default();
    for n in 0..40 {
        w.put(&format!("other{n}"));
        w.put_with(&format!("job{n}"), |p| p.queue = MAIL);
    }
    w.take_all(ANN);
    w.pause(&PauseRequest { release: true, ..halt(MAIL) }, 1);
    for n in 0..40 {
        w.now += 1;
        for m in 0..40 {
            let lease = if (n + m) % 2 == 0 { 30_000 } else { 15_000 };
            let id = format!("job{m}");
            let beat = (
                Speaker { worker: ANN, id: id.as_bytes(), ..Speaker::default() },
                Heartbeat { lease: Some(lease), ..Heartbeat::default() },
            );
            let _ = w.heartbeat(&beat);
        }
        w.slice(1);
        w.commit();
    }
    w.pass(0);
    assert_eq!((w.board.count_in(b"mail", Claimed), w.board.count_in(b"default", Claimed)), (0, 40));
    w.is_valid();
}

#[test]
fn a_resume_ends_the_taking_back() {
    let mut w = World::default();
    (0..10).for_each(|n| w.put(&format!("job{n}")));
    w.take_all(ANN);
    w.pause(&PauseRequest { release: true, ..halt(None) }, 4);
    w.resume(None);
    w.pass(0);
    assert_eq!(w.board.count(Claimed), 6);
    w.is_valid();
}

#[test]
fn pauses_are_kept_by_a_snapshot() {
    let mut w = two();
    w.pause(&PauseRequest { time: Some(900), ..halt(MAIL) }, 1);
    w.pause(&halt(Some(b"empty")), 1);
    w.reload();
    assert_eq!(w.board.queue_names(), [&b"default"[..], b"empty", b"mail"]);
    assert_eq!(w.board.paused(MAIL, w.now), Some(w.now + 900));
    assert_eq!(w.board.paused(Some(b"empty"), w.now), Some(NEVER));
    w.pass(900);
    assert_eq!(w.take_all(ANN), ["plain", "letter"]);
    w.is_valid();
}
