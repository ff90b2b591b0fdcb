//! Groups of a queue: they take turns.

use board::*;

use crate::site::*;
use crate::world::World;

fn put_in_group(w: &mut World, id: &str, group: &'static str) {
    w.put_with(id, |p| p.group = Some(group.as_bytes()).filter(|g| !g.is_empty()));
}

/// A board with so many jobs of each group; `""` for none.
fn shared(groups: &[(&'static str, usize)]) -> World {
    let mut w = World::default();
    for (group, n) in groups {
        for i in 0..*n {
            put_in_group(&mut w, &format!("{group}{i}"), group);
        }
    }
    w
}

#[test]
fn groups_take_turns() {
    let mut w = shared(&[("a", 3), ("b", 2), ("c", 1)]);
    assert_eq!(w.take_all(ANN), ["a0", "b0", "c0", "a1", "b1", "a2"]);
    w.is_valid();
}

#[test]
fn jobs_without_a_group_are_one_group() {
    let mut w = shared(&[("", 3), ("b", 2)]);
    assert_eq!(w.take_all(ANN), ["0", "b0", "1", "b1", "2"]);
    w.is_valid();
}

#[test]
fn a_single_job_waits_for_one_round_at_most() {
    let mut w = shared(&[("a", 40), ("b", 40)]);
    for _ in 0..7 {
        w.take(ANN).unwrap();
    }
    put_in_group(&mut w, "alone", "c");
    let next: Vec<_> = (0..3).map(|_| w.take(ANN).unwrap().id).collect();
    assert!(next.contains(&b"alone".to_vec()), "{next:?}");
    w.is_valid();
}

#[test]
fn coming_back_again_and_again_gains_nothing() {
    let mut w = shared(&[("a", 40)]);
    let mut turns = 0;
    for n in 0..20 {
        put_in_group(&mut w, &format!("b{n}"), "b");
        turns += usize::from(w.take(ANN).unwrap().id.starts_with(b"b"));
        if w.board.count_group(b"default", b"b", Ready) > 0 {
            turns += usize::from(w.take(ANN).unwrap().id.starts_with(b"b"));
        }
        w.is_valid();
    }
    let taken = 40 - w.board.count_group(b"default", b"a", Ready) as usize;
    assert!(turns <= taken + 1, "{turns} turns beside {taken}");
}

#[test]
fn a_higher_priority_of_any_group_goes_first_and_each_has_its_own_rounds() {
    let mut w = shared(&[("a", 2), ("b", 2)]);
    for (id, group) in [("high0", "a"), ("high1", "a"), ("high2", "b")] {
        w.put_with(id, |p| (p.group, p.priority) = (Some(group.as_bytes()), Some(1)));
    }
    assert_eq!(w.take_all(ANN), ["high0", "high2", "high1", "a0", "b0", "a1", "b1"]);
    w.is_valid();
}

#[test]
fn a_group_that_had_something_better_to_do_keeps_its_turn() {
    let mut w = shared(&[("a", 3), ("b", 3)]);
    assert_eq!(w.take(ANN).unwrap().id, b"a0");
    w.put_with("high", |p| (p.group, p.priority) = (Some(&b"b"[..]), Some(1)));
    w.is_valid();
    assert_eq!(w.take_all(ANN), ["high", "b0", "a1", "b1", "a2", "b2"]);
    w.is_valid();
}

#[test]
fn nobody_has_two_turns_while_a_group_waits_that_was_away_in_between() {
    let away: [&dyn Fn(&mut World); 3] = [
        &|_| {},
        &|w| {
            w.put_with("high", |p| (p.group, p.priority) = (Some(&b"a"[..]), Some(1)));
            assert_eq!(w.take(BOB).unwrap().id, b"high");
        },
        &|w| {
            let (queue, group) = (Some(&b"default"[..]), Some(&b"a"[..]));
            w.pause(&PauseRequest { queue, group, time: None, release: false, limit: None }, 9);
            w.resume_group(queue, group);
        },
    ];
    for leave in away {
        let mut w = shared(&[("a", 3), ("b", 3)]);
        assert_eq!((w.take(ANN).unwrap().id, w.take(ANN).unwrap().id), (b"a0".to_vec(), b"b0".to_vec()));
        leave(&mut w);
        w.reload();
        w.is_valid();
        assert_eq!(w.take_all(ANN), ["a1", "b1", "a2", "b2"]);
        w.is_valid();
    }
}

#[test]
fn first_in_first_out_within_a_group() {
    let mut w = shared(&[("a", 3), ("b", 3)]);
    let a = w.take(ANN).unwrap();
    w.gives_back(ANN, "a0", Some(a.token)).unwrap();
    assert_eq!(w.take_all(ANN), ["b0", "a0", "b1", "a1", "b2", "a2"]);
}

#[test]
fn groups_come_and_go_with_their_jobs() {
    let mut w = shared(&[("a", 1), ("b", 1)]);
    let names = |w: &World| -> Vec<String> {
        w.board.groups(None, None, 9).0.iter().map(|g| String::from_utf8_lossy(g.name()).into()).collect()
    };
    assert_eq!(names(&w), ["a", "b"]);
    w.take_id(ANN, "a0");
    w.done(ANN, "a0", None).unwrap();
    assert_eq!(names(&w), ["b"]);
    w.take_id(ANN, "b0");
    w.done_keeping(ANN, "b0", 500).unwrap();
    assert_eq!(names(&w), ["b"]);
    w.pass(500);
    assert!(names(&w).is_empty());
    w.is_valid();
}

#[test]
fn a_replacing_post_may_change_the_group_and_keeps_it_else() {
    let mut w = shared(&[("a", 2)]);
    w.put_replacing("a0", b"new");
    assert_eq!(w.job("a0").group(), Some(&b"a"[..]));
    let post = Post { id: Some(b"a0"), exists: Exists::Replace, group: Some(b"b"), ..Post::default() };
    w.post(&post).unwrap();
    assert_eq!(w.job("a0").group(), Some(&b"b"[..]));
    assert_eq!(w.board.count_group(b"default", b"a", Ready), 1);
    w.is_valid();
}

#[test]
fn a_job_that_moves_is_of_the_group_of_that_name_there() {
    let mut w = shared(&[("a", 2)]);
    let to = |queue| Update { queue: Some(queue), ..Update::default() };
    w.update(b"a0", &to(b"mail")).unwrap().unwrap();
    w.take_id(ANN, "a1");
    w.update(b"a1", &to(b"mail")).unwrap().unwrap();
    assert_eq!([Ready, Claimed].map(|s| w.board.count_group(b"mail", b"a", s)), [1, 1]);
    assert_eq!(w.board.groups(None, Some(b"default"), 9).0.len(), 0);
    w.is_valid();
}

#[test]
fn a_claim_by_id_is_a_turn_too() {
    let mut w = shared(&[("a", 3), ("b", 2)]);
    w.take_id(ANN, "a0");
    assert_eq!(w.take_all(ANN), ["b0", "a1", "b1", "a2"]);
}

#[test]
fn rounds_go_on_after_a_reload() {
    let mut w = shared(&[("a", 4), ("b", 4), ("", 4)]);
    let mut taken = Vec::new();
    for _ in 0..4 {
        taken.push(w.take(ANN).unwrap().id);
        w.reload();
        w.is_valid();
    }
    taken.extend(w.claim(&Claim { worker: ANN, ..Claim::default() }, 99).into_iter().map(|g| g.id));
    let names: Vec<String> = taken.iter().map(|id| String::from_utf8_lossy(id).into()).collect();
    assert_eq!(names, ["a0", "b0", "0", "a1", "b1", "1", "a2", "b2", "2", "a3", "b3", "3"]);
}

#[test]
fn children_of_a_schedule_are_of_its_group() {
    let mut w = World::default();
    let when = Some(When::Every(10));
    let child = Post { group: Some(b"a"), ..Post::default() };
    w.set_schedule(&SetSchedule { id: b"tick", when, child, ..SetSchedule::default() }).unwrap();
    w.set_schedule(&SetSchedule { id: b"tick", ..SetSchedule::default() }).unwrap();
    w.pass(10);
    assert_eq!(w.job("@tick@1").group(), Some(&b"a"[..]));
    w.is_valid();
}

#[test]
fn pages_of_groups_are_whole_and_in_order() {
    let mut w = World::default();
    let names: Vec<String> = (0..30).map(|n| format!("g{n}")).collect();
    for queue in [&b"b"[..], b"a"] {
        for name in &names {
            let post = Post { queue: Some(queue), group: Some(name.as_bytes()), ..Post::default() };
            w.post(&post).unwrap();
        }
    }
    let (mut seen, mut from) = (Vec::new(), None);
    loop {
        let (page, next) = w.board.groups(from, None, 7);
        seen.extend(page.iter().map(|g| (g.queue().to_vec(), g.name().to_vec())));
        match next {
            Some(next) => from = Some((next.queue(), next.number())),
            None => break,
        }
    }
    assert_eq!(seen.len(), 60);
    assert!(seen.is_sorted_by_key(|(queue, _)| queue.clone()));
    assert_eq!(w.board.groups(None, Some(b"b"), 99).0.len(), 30);
}
