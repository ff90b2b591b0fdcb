//! Ready jobs of more queues than one call may look at: a walk over them goes by slots.

use std::collections::BTreeSet;

use board::*;

use crate::site::*;
use crate::world::World;

/// The most looks of a call.
const LOOK: usize = 10_000;

fn post(w: &mut World, n: usize) {
    w.put_with(&format!("j{n}"), |p| p.queue = Some(format!("q{n}").leak().as_bytes()));
}

/// Jobs with these numbers, each in a queue of its own.
fn spread(from: usize, to: usize) -> World {
    let mut w = World::default();
    (from..to).for_each(|n| post(&mut w, n));
    w
}

fn page(
    w: &World,
    filters: Filters<'_>,
    from: Option<Start>,
    count: usize,
    reverse: bool,
) -> (Vec<String>, Option<Start>) {
    let (slots, next) = w.board.list(&Page { filters, from, count, reverse });
    let ids = slots.into_iter().map(|slot| name(&w.board.record_of(slot).unwrap().id().to_vec()));
    (ids.collect(), next.map(|next| Start::read(next.text().as_bytes()).unwrap()))
}

fn ready() -> Filters<'static> {
    Filters::new([Filter::State(Ready)], [])
}

fn all_pages(w: &World, mut from: Option<Start>, reverse: bool) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let (ids, next) = page(w, ready(), from, 1_000, reverse);
        all.extend(ids);
        from = next;
        if from.is_none() {
            return all;
        }
    }
}

#[test]
fn a_walk_finds_each_job_once() {
    let mut w = spread(0, LOOK + 500);
    w.take_id(ANN, "j7");
    for reverse in [false, true] {
        let all = all_pages(&w, None, reverse);
        let once: BTreeSet<&String> = all.iter().collect();
        assert_eq!((all.len(), once.len()), (LOOK + 499, LOOK + 499));
        assert!(!once.contains(&"j7".to_owned()));
    }
    w.is_valid();
}

#[test]
fn a_page_looks_at_no_more_jobs_than_it_may() {
    let mut w = World::default();
    let due = w.now + 1_000_000;
    for n in 0..2 * LOOK + 500 {
        w.put_with(&format!("later{n}"), |p| p.due = Some(due));
    }
    (0..LOOK + 1).for_each(|n| post(&mut w, n));
    let (ids, next) = page(&w, ready(), None, 1, false);
    assert!(ids.is_empty(), "the first jobs by slot are not ready");
    let (ids, next) = page(&w, ready(), next, 1, false);
    assert!(ids.is_empty());
    let (ids, next) = page(&w, ready(), next, 1, false);
    assert_eq!(ids, ["j0"]);
    assert_eq!(page(&w, ready(), next, 1, false).0, ["j1"]);
}

#[test]
fn a_walk_goes_on_as_it_began_when_queues_come_and_go() {
    let mut w = spread(0, LOOK - 1);
    let (first, next) = page(&w, ready(), None, 100, false);
    assert_eq!(first[..2], ["j0", "j1"], "in the order of claims");
    (LOOK..LOOK + 10).for_each(|n| post(&mut w, n));
    let (second, next) = page(&w, ready(), next, 100, false);
    // Now by slots, and below the limit again: it has still what it has not listed.
    for n in 0..50 {
        w.take_id(ANN, &format!("j{n}"));
    }
    let rest = all_pages(&w, next, false);
    let all: Vec<&String> = first.iter().chain(&second).chain(&rest).collect();
    let once: BTreeSet<&&String> = all.iter().collect();
    assert_eq!((all.len(), once.len()), (LOOK + 9, LOOK + 9));
}

#[test]
fn a_queue_that_is_named_keeps_its_order() {
    let mut w = spread(0, LOOK + 10);
    w.put_with("best", |p| (p.queue, p.priority) = (Some(&b"q3"[..]), Some(9)));
    let named = Filters::new([Filter::Queue(b"q3"), Filter::Queue(b"q9")], []);
    assert_eq!(page(&w, named, None, 9, false).0, ["best", "j3", "j9"]);
}

#[test]
fn a_selection_takes_each_job_once() {
    let mut w = spread(0, LOOK + 20);
    let (mut from, mut cancelled) = (None, 0);
    loop {
        let deed = Operation::Cancel { force: false };
        let selection =
            Selection { deed, filters: ready(), from, count: 1_000, bytes: usize::MAX, dry: false };
        let chosen = w.select(&selection);
        cancelled += chosen.ids.len();
        from = chosen.next.map(|next| SelectionCursor::read(next.text().as_bytes()).unwrap());
        if from.is_none() {
            break;
        }
    }
    assert_eq!(cancelled, LOOK + 20);
    w.is_valid();
}

#[test]
fn a_count_by_groups_looks_at_no_more_than_it_may() {
    let mut w = World::default();
    for n in 0..20 {
        let queue = format!("q{n}");
        w.put_with(&format!("j{n}"), |p| {
            (p.queue, p.group) = (Some(queue.leak().as_bytes()), Some(&b"g"[..]))
        });
    }
    let any = Filters::new([Filter::Group(b"g"), Filter::Group(b"h")], []);
    assert_eq!(w.board.count_jobs(&any, 40), Some(20));
    assert_eq!(w.board.count_jobs(&any, 39), None);
    let named = Filters::new([Filter::Group(b"g"), Filter::Queue(b"q1"), Filter::Queue(b"none")], []);
    assert_eq!(w.board.count_jobs(&named, 2), Some(1));
    let excluding = Filters::new([Filter::Group(b"g")], [Filter::Queue(b"q1")]);
    assert_eq!(w.board.count_jobs(&excluding, 100), Some(19));
}
