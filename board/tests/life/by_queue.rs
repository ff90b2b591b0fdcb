//! Jobs of one queue are found among those of others.

use board::*;

use crate::site::*;
use crate::world::World;

fn listed(w: &World, state: State, reverse: bool, from: Option<Cursor>) -> (Vec<String>, Option<Cursor>) {
    let any = vec![Filter::Queue(b"few"), Filter::Queue(b"few"), Filter::State(state)];
    let filters = Filters::new(any, []);
    let page = Page { filters, count: 2, reverse, from: from.map(Start::At) };
    let (slots, next) = w.board.list(&page);
    let ids = slots.into_iter().map(|slot| name(&w.board.record_of(slot).unwrap().id().to_vec()));
    let next = next.and_then(|next| Cursor::read(next.text().as_bytes()));
    (ids.collect(), next)
}

/// Many jobs of another queue in a state, three of the queue `few` among them.
fn crowd(state: State) -> World {
    let mut w = World::default();
    let due = w.now + 1_000;
    for n in 0..30_000 {
        let few = n % 10_000 == 9_999;
        let (id, queue) = if few { (format!("few-{n}"), "few") } else { (format!("many-{n}"), "many") };
        w.put_with(&id, |p| {
            p.queue = Some(queue.as_bytes());
            p.due = (state == Scheduled).then_some(due + n);
        });
        if state != Scheduled {
            w.take_id(ANN, &id);
            w.fails_with(ANN, &id, None, Retry::No).unwrap();
        }
    }
    w
}

#[test]
fn one_page_finds_the_few_jobs_of_a_queue_among_many_of_others() {
    for state in [Scheduled, Failed] {
        let w = crowd(state);
        let (ids, next) = listed(&w, state, false, None);
        assert_eq!(ids, ["few-9999", "few-19999"], "{state:?}");
        assert_eq!(listed(&w, state, false, next).0, ["few-29999"], "{state:?}");
        assert_eq!(listed(&w, state, true, None).0, ["few-29999", "few-19999"], "{state:?}");
    }
}

#[test]
fn what_moves_to_another_queue_is_found_there() {
    let mut w = World::default();
    w.put_in("a", Failed);
    w.requeue(b"a", To::Queue(b"few")).unwrap().unwrap();
    w.take_id(ANN, "a");
    w.fails_with(ANN, "a", None, Retry::No).unwrap();
    w.reload();
    assert_eq!(listed(&w, Failed, false, None).0, ["a"]);
    w.is_valid();
}
