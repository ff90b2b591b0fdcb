//! A hundred thousand children of one parent. A command that looked at each of them would make these
//! tests take hours: every child is posted, and ends, beside all the others.

use board::*;

use crate::site::*;
use crate::world::work::Waited;
use crate::world::World;

const MANY: u32 = 100_000;

fn child(n: u32) -> String {
    format!("c{n}")
}

/// A running job with a hundred thousand children.
fn parent() -> World {
    let mut w = World::default();
    w.configure(None, Setting::RetainComplete, Some(3_600_000));
    w.put("p");
    w.take_id(ANN, "p");
    for n in 0..MANY {
        w.put_with(&child(n), |post| post.parent = Some(b"p"));
    }
    w
}

/// The same, and it waits for them.
fn family(on_failure: OnFailure) -> World {
    let mut w = parent();
    assert_eq!(w.awaits_children(on_failure), Ok(Waited::State(Blocked)));
    w
}

impl World {
    fn awaits_children(&mut self, on_failure: OnFailure) -> Result<Waited, String> {
        let request = Await { children: Some(on_failure), ..Await::default() };
        self.await_signals(&(Speaker { worker: ANN, id: b"p", token: None }, request))
    }

    /// Ends a child; every third one fails. Gives the bytes that travel.
    fn end_child(&mut self, n: u32) -> usize {
        let id = child(n);
        self.take_id(BOB, &id);
        match n % 3 {
            0 => self.fails_with(BOB, &id, None, Retry::No).unwrap(),
            _ => self.done(BOB, &id, None).unwrap(),
        };
        self.sent.last().unwrap().len()
    }

    /// How many children there are, how many have not ended, how many ended without success.
    fn numbers(&self) -> (u64, u32, u64) {
        let job = self.job("p");
        (job.children().unwrap_or(0), job.pending(), job.unsuccessful())
    }
}

#[test]
fn the_last_of_many_children_ends_at_the_price_of_the_first() {
    let mut w = family(OnFailure::Run);
    let first = w.end_child(0);
    for n in 1..MANY {
        let sent = w.end_child(n);
        assert!(sent <= first + 16, "{sent} bytes after {first}");
        assert_eq!(w.board.is_resolving(), n == MANY - 1);
    }
    w.pass(0);
    let failed = u64::from(MANY.div_ceil(3));
    assert_eq!((w.is("p"), w.numbers()), (Some(Ready), (MANY.into(), 0, failed)));
    // The next run is not held up, and asks at the same price.
    w.take_id(ANN, "p");
    assert!(matches!(w.awaits_children(OnFailure::Run), Ok(Waited::Kept { .. })));
    // At the end of the parent its children's records are released in slices.
    w.done_keeping(ANN, "p", -1).unwrap();
    assert!(w.sent.last().unwrap().len() < 200);
    let before = w.sent.len();
    w.pass(0);
    assert!(w.sent[before..].iter().all(|batch| batch.len() < 100_000));
    w.is_valid();
}

#[test]
fn commands_on_a_parent_do_not_look_at_all_of_its_children() {
    let mut w = family(OnFailure::Hold);
    // Again and again beside all children: posts, waits, cancels, failures that are mended, reads.
    for n in 0..20_000 {
        let id = format!("more {n}");
        w.put_with(&id, |post| post.parent = Some(b"p"));
        assert_eq!(w.numbers().1, MANY + 1);
        assert_eq!(w.explain(b"p").unwrap().reasons[0].code, "children");
        let filters = Filters::new([Filter::Parent(b"p")], []);
        assert_eq!(w.board.list(&Page { filters, count: 3, ..Page::default() }).0.len(), 3);
        assert_eq!(w.cancel(id.as_bytes(), false), Some(Ok("cancelled")));
        assert_eq!(w.numbers().2, 1);
        w.requeue(id.as_bytes(), To::Same).unwrap().unwrap();
        assert!(w.delete(id.as_bytes()));
        assert!(w.sent.last().unwrap().len() < 300);
    }
    assert_eq!((w.is("p"), w.numbers()), (Some(Blocked), (MANY.into(), MANY, 0)));
    w.is_valid();
}

#[test]
fn a_cycle_through_many_children_is_found_from_its_short_end() {
    // A parent that another job follows begins to wait for its children.
    let mut w = parent();
    w.put_after("follows", &["p"], OnFailure::Hold);
    assert_eq!(w.awaits_children(OnFailure::Hold), Ok(Waited::State(Blocked)));
    let after = |other: &'static [u8]| {
        Some(After { jobs: vec![(other, OnFailure::Hold)], strict: true, ..After::default() })
    };
    let child = |other| Post { id: Some(b"k"), parent: Some(b"p"), after: after(other), ..Post::default() };
    for other in [&b"p"[..], b"follows"] {
        assert_eq!(w.post(&child(other)), refused("CYCLE a job would wait for itself"));
    }
    assert!(w.post(&child(b"c7")).is_ok());
    assert_eq!(w.is("p"), Some(Blocked));
    w.is_valid();
}

#[test]
fn a_parent_of_many_is_deleted_when_the_last_has_ended() {
    let mut w = family(OnFailure::Run);
    let (middle, last) = (MANY / 2, MANY - 1);
    for n in (0..MANY).filter(|n| ![0, middle, last].contains(n)) {
        w.end_child(n);
    }
    // The refusal names a child that has not ended, if one is among the first or the last.
    for (named, ends) in [("c0", 0), ("c99999", last), ("p", middle)] {
        assert_eq!(w.delete_all(&[b"p"]), refused(&format!("DEPENDED {named}")));
        w.end_child(ends);
    }
    w.pass(0);
    assert!(w.delete(b"p"));
    assert!(w.sent.last().unwrap().len() < 200);
    w.pass(0);
    w.is_valid();
}
