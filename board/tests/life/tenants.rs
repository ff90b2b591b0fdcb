//! Settings and pauses of groups: weight, concurrency, order.

use board::*;

use crate::site::*;
use crate::world::World;

const QUEUE: &[u8] = b"default";

fn shared(groups: &[(&'static str, usize)]) -> World {
    let mut w = World::default();
    for (group, n) in groups {
        for i in 0..*n {
            w.put_with(&format!("{group}{i}"), |p| p.group = Some(group.as_bytes()));
        }
    }
    w
}

fn set(w: &mut World, group: &str, setting: Setting, value: i64) {
    w.configure_group(QUEUE, group.as_bytes(), setting, Some(value));
    w.is_valid();
}

fn woken(w: &mut World) -> bool {
    let mut found = false;
    w.board.woken(|_, _| found = true);
    found
}

fn halt(group: &'static str) -> PauseRequest<'static> {
    PauseRequest { queue: Some(QUEUE), group: Some(group.as_bytes()), ..PauseRequest::default() }
}

#[test]
fn a_weight_is_a_share_of_the_turns() {
    let mut w = shared(&[("a", 60), ("b", 60), ("c", 60)]);
    set(&mut w, "a", Setting::Weight, 3);
    set(&mut w, "*", Setting::Weight, 2);
    set(&mut w, "c", Setting::Weight, 1);
    let taken: Vec<_> = (0..60).map(|_| w.take(ANN).unwrap().id).collect();
    let count = |group| taken.iter().filter(|id| id[0] == group).count();
    let counts = [b'a', b'b', b'c'].map(count);
    assert!((29..=31).contains(&counts[0]) && (19..=21).contains(&counts[1]), "{counts:?}");
    w.is_valid();
}

#[test]
fn a_group_that_waits_has_its_next_turn_by_the_weight_of_before() {
    let mut w = shared(&[("a", 3)]);
    set(&mut w, "*", Setting::Weight, 3);
    for id in ["b0", "b1", "b2", "b3", "b4"] {
        w.put_with(id, |p| p.group = Some(b"b"));
    }
    assert_eq!(w.take_all(ANN), ["b0", "b1", "b2", "a0", "b3", "a1", "b4", "a2"]);
    w.is_valid();
}

#[test]
fn no_more_jobs_of_a_group_run_than_its_limit_says() {
    let mut w = shared(&[("a", 4), ("b", 4)]);
    set(&mut w, "*", Setting::Concurrency, 1);
    set(&mut w, "b", Setting::Concurrency, 2);
    assert_eq!(w.take_all(ANN), ["a0", "b0", "b1"]);
    woken(&mut w);
    w.done(ANN, "a0", None).unwrap();
    assert!(woken(&mut w));
    assert_eq!(w.take_all(ANN), ["a1"]);
    let claim = Claim { worker: BOB, ..Claim::default() };
    assert_eq!(w.claim_id(&claim, b"a2"), refused("LIMIT concurrency"));
    set(&mut w, "*", Setting::Concurrency, -1);
    assert!(woken(&mut w));
    assert_eq!(w.take_all(ANN), ["a2", "a3"]);
    w.configure_group(QUEUE, b"b", Setting::Concurrency, None);
    assert_eq!(w.take_all(ANN), ["b2", "b3"]);
    w.is_valid();
}

#[test]
fn a_late_heartbeat_does_not_exceed_the_limit_of_its_group() {
    let mut w = shared(&[("a", 2)]);
    set(&mut w, "a", Setting::Concurrency, 1);
    let token = Some(w.take_id(ANN, "a0"));
    w.pass(30_000);
    w.take_id(BOB, "a1");
    assert_eq!(w.beat(ANN, "a0", token), refused("LIMIT concurrency"));
    w.done(BOB, "a1", None).unwrap();
    assert!(w.beat(ANN, "a0", token).is_ok());
    w.is_valid();
}

#[test]
fn a_running_job_is_not_moved_into_a_full_group() {
    let mut w = shared(&[("a", 3)]);
    w.configure_group(b"mail", b"a", Setting::Concurrency, Some(1));
    w.take_id(ANN, "a0");
    w.take_id(ANN, "a1");
    let to_mail = Update { queue: Some(b"mail"), ..Update::default() };
    assert_eq!(w.update(b"a0", &to_mail), Some(Ok(())));
    assert_eq!(w.update(b"a1", &to_mail), Some(refused("LIMIT concurrency")));
    assert_eq!(w.update(b"a2", &to_mail), Some(Ok(())));
    w.is_valid();
}

#[test]
fn an_ordered_group_gives_one_job_after_the_other() {
    let mut w = shared(&[("a", 3), ("b", 1)]);
    set(&mut w, "a", Setting::Ordered, 1);
    assert_eq!(w.take_all(ANN), ["a0", "b0"]);
    w.done(ANN, "b0", None).unwrap();
    let claim = Claim { worker: BOB, ..Claim::default() };
    assert_eq!(w.claim_id(&claim, b"a1"), refused("NOTREADY ordered"));
    woken(&mut w);
    w.fails_with(ANN, "a0", None, Retry::After(1_000)).unwrap();
    w.is_valid();
    assert_eq!(w.take_all(ANN), Vec::<String>::new());
    assert_eq!(w.claim_id(&claim, b"a1"), refused("NOTREADY ordered"));
    w.pass(1_000);
    assert!(woken(&mut w));
    assert_eq!(w.take_all(ANN), ["a0"]);
    w.done(ANN, "a0", None).unwrap();
    assert!(woken(&mut w));
    assert_eq!(w.take_all(ANN), ["a1"]);
    w.pass(30_000);
    assert_eq!(w.claim_id(&claim, b"a2"), refused("NOTREADY ordered"));
    assert_eq!(w.take_all(BOB), ["a1"]);
    w.cancel(b"a1", true).unwrap().unwrap();
    assert_eq!(w.take_all(BOB), ["a2"]);
    w.is_valid();
}

#[test]
fn what_was_begun_goes_first_even_before_a_higher_priority() {
    let mut w = shared(&[("a", 2)]);
    set(&mut w, "*", Setting::Ordered, 1);
    w.take_id(ANN, "a0");
    w.put_with("high", |p| (p.group, p.priority) = (Some(&b"a"[..]), Some(9)));
    w.release(b"a0").unwrap().unwrap();
    w.is_valid();
    assert_eq!(w.take_all(ANN), ["a0"]);
    w.done(ANN, "a0", None).unwrap();
    assert_eq!(w.take_all(ANN), ["high"]);
    w.is_valid();
}

#[test]
fn a_group_that_becomes_ordered_while_jobs_run_waits_for_all_of_them() {
    let mut w = shared(&[("a", 5)]);
    let got = w.claim(&Claim { worker: ANN, ..Claim::default() }, 3);
    assert_eq!(got.len(), 3);
    set(&mut w, "a", Setting::Ordered, 1);
    w.release(b"a1").unwrap().unwrap();
    w.done(ANN, "a0", None).unwrap();
    assert!(w.take_all(BOB).is_empty());
    w.done(ANN, "a2", None).unwrap();
    assert_eq!(w.take_all(BOB), ["a1"]);
    w.done(BOB, "a1", None).unwrap();
    assert_eq!(w.take_all(BOB), ["a3"]);
    set(&mut w, "a", Setting::Ordered, 0);
    assert_eq!(w.take_all(BOB), ["a4"]);
    w.is_valid();
}

#[test]
fn a_paused_group_gives_nothing_and_the_others_go_on() {
    let mut w = shared(&[("a", 2), ("b", 1)]);
    w.pause(&halt("a"), 1);
    w.is_valid();
    assert_eq!(w.take_all(ANN), ["b0"]);
    let claim = Claim { worker: BOB, ..Claim::default() };
    assert_eq!(w.claim_id(&claim, b"a0"), refused("NOTREADY paused"));
    woken(&mut w);
    assert!(w.resume_group(Some(QUEUE), Some(b"a")));
    assert!(woken(&mut w));
    assert_eq!(w.take_all(ANN), ["a0", "a1"]);
    w.is_valid();
}

#[test]
fn the_pause_of_a_group_ends_by_itself_and_takes_jobs_back() {
    let mut w = shared(&[("a", 5), ("b", 2)]);
    w.take_all(ANN);
    w.pause(&PauseRequest { time: Some(500), release: true, ..halt("a") }, 1);
    w.reload();
    w.is_valid();
    w.pass(0);
    assert_eq!(w.board.count_group(QUEUE, b"a", Ready), 5);
    assert_eq!(w.board.count_group(QUEUE, b"b", Claimed), 2);
    assert!(w.take_all(BOB).is_empty());
    woken(&mut w);
    w.pass(500);
    assert!(woken(&mut w));
    assert_eq!(w.take_all(BOB).len(), 5);
    w.is_valid();
}

#[test]
fn a_group_with_settings_or_a_pause_stays_without_jobs() {
    let mut w = World::default();
    set(&mut w, "vip", Setting::Weight, 5);
    w.pause(&halt("shut"), 1);
    assert_eq!(w.board.groups(None, None, 9).0.len(), 2);
    assert_eq!(w.board.queue_names(), [QUEUE]);
    w.reload();
    w.is_valid();
    w.configure_group(QUEUE, b"vip", Setting::Weight, None);
    w.resume_group(Some(QUEUE), Some(b"shut"));
    assert_eq!(w.board.groups(None, None, 9).0.len(), 0);
    assert!(w.board.queue_names().is_empty());
    w.is_valid();
}

#[test]
fn a_change_for_all_groups_is_looked_at_in_slices_and_keeps_to_the_limit_meanwhile() {
    let mut w = World::default();
    for n in 0..40 {
        let group = format!("g{n}");
        let post = Post { group: Some(group.as_bytes()), ..Post::default() };
        w.post(&post).unwrap();
        w.post(&post).unwrap();
    }
    let claim = Claim { worker: ANN, ..Claim::default() };
    assert_eq!(w.claim(&claim, 40).len(), 40);
    let (queue, group, setting) = (QUEUE, ALL_GROUPS, Setting::Concurrency);
    w.act(Configured { scope: Scope::Group(queue, group), setting, value: Some(1) });
    w.commit();
    w.is_valid();
    assert!(w.claim(&claim, 40).is_empty());
    assert!(w.slice(7));
    w.commit();
    w.reload();
    w.is_valid();
    assert!(w.claim(&claim, 40).is_empty());
    w.pass(0);
    w.is_valid();
    w.act(Configured { scope: Scope::Group(queue, group), setting, value: Some(2) });
    w.commit();
    w.pass(0);
    assert_eq!(w.claim(&claim, 99).len(), 40);
    w.is_valid();
}
