//! Ageing: waiting is worth priority.

use board::*;

use crate::site::*;
use crate::world::{Bytes, World};

const MAIL: Option<&[u8]> = Some(b"mail");

fn ages(ms: i64) -> World {
    let mut w = World::default();
    w.configure(MAIL, Setting::Ageing, Some(ms));
    w
}

fn put(w: &mut World, id: &str, priority: i32) {
    w.put_with(id, |p| (p.queue, p.priority) = (MAIL, Some(priority)));
}

#[test]
fn each_time_waited_is_worth_one_step_of_priority() {
    let mut w = ages(100);
    put(&mut w, "low", 0);
    w.pass(99);
    put(&mut w, "one", 1);
    w.pass(102);
    put(&mut w, "two", 2);
    put(&mut w, "three", 3);
    // One step is worth 100 ms: `one` is 99 younger than `low`, `two` 201.
    assert_eq!(w.take_all(ANN), ["three", "one", "low", "two"]);
    w.is_valid();
}

#[test]
fn low_priorities_cannot_starve() {
    let mut w = ages(50);
    put(&mut w, "low", -3);
    let mut taken = Vec::new();
    for n in 0..20 {
        put(&mut w, &format!("high{n}"), 3);
        taken.extend(w.take(ANN).map(|got| got.id));
        w.pass(20);
    }
    let at = taken.iter().position(|id| id == b"low");
    assert_eq!(at, Some(15));
    w.is_valid();
}

#[test]
fn priority_counts_alone_without_ageing() {
    let mut w = ages(0);
    put(&mut w, "low", 0);
    w.pass(1_000_000);
    put(&mut w, "high", 1);
    assert_eq!(w.take_all(ANN), ["high", "low"]);
}

#[test]
fn the_ageing_of_the_board_is_that_of_each_queue_without_its_own() {
    let mut w = ages(0);
    w.configure(None, Setting::Ageing, Some(10));
    for (id, priority) in [("low", 0), ("high", 1)] {
        w.put_with(&format!("{id} plain"), |p| p.priority = Some(priority));
        put(&mut w, &format!("{id} mail"), priority);
        w.pass(11);
    }
    let take = |w: &mut World, queue: &'static [u8]| -> Vec<Bytes> {
        let claim = Claim { worker: ANN, queues: &[queue], ..Claim::default() };
        w.claim(&claim, 9).into_iter().map(|got| got.id).collect()
    };
    assert_eq!(take(&mut w, b"default"), [&b"low plain"[..], b"high plain"]);
    assert_eq!(take(&mut w, b"mail"), [&b"high mail"[..], b"low mail"]);
}

#[test]
fn a_change_counts_for_jobs_that_are_posted_requeued_or_moved_later() {
    let mut w = ages(0);
    put(&mut w, "before", -1);
    w.configure(MAIL, Setting::Ageing, Some(10));
    w.put_with("moved", |p| p.priority = Some(-1));
    w.pass(11);
    w.update(b"moved", &Update { queue: MAIL, ..Update::default() }).unwrap().unwrap();
    put(&mut w, "later", 0);
    w.is_valid();
    w.reload();
    w.is_valid();
    assert_eq!(w.take_all(ANN), ["moved", "later", "before"]);
    w.fails_with(ANN, "before", None, Retry::No).unwrap();
    w.requeue(b"before", To::Same).unwrap().unwrap();
    w.pass(11);
    put(&mut w, "last", 0);
    assert_eq!(w.take_all(BOB), ["before", "last"]);
    w.is_valid();
}

#[test]
fn a_change_of_priority_counts_at_once_and_keeps_the_age() {
    let mut w = ages(100);
    put(&mut w, "a", 0);
    w.pass(50);
    put(&mut w, "b", 0);
    w.update(b"b", &Update { priority: Some(1), ..Update::default() }).unwrap().unwrap();
    w.is_valid();
    assert_eq!(w.take_all(ANN), ["b", "a"]);
}

#[test]
fn groups_share_one_round_where_jobs_age() {
    let mut w = ages(1_000);
    for (id, group, priority) in [("a0", "a", 0), ("a1", "a", 5), ("b0", "b", 0), ("b1", "b", 9)] {
        w.put_with(id, |p| (p.queue, p.priority, p.group) = (MAIL, Some(priority), Some(group.as_bytes())));
    }
    assert_eq!(w.take_all(ANN), ["a1", "b1", "a0", "b0"]);
    w.is_valid();
}

#[test]
fn pages_of_a_listing_go_on_where_jobs_age() {
    let mut w = ages(100);
    for n in 0..9 {
        put(&mut w, &format!("job{n}"), (n * 7) % 5 - 2);
        w.pass(40);
    }
    let whole = Page { count: 99, ..Page::default() };
    let all = w.board.list(&whole).0;
    let (mut seen, mut from) = (Vec::new(), None);
    loop {
        let (slots, next) = w.board.list(&Page { from, count: 2, ..Page::default() });
        seen.extend(slots);
        from = next.and_then(|start| Start::read(start.text().as_bytes()));
        if from.is_none() {
            break;
        }
    }
    assert_eq!(seen, all);
}
