//! Keys that jobs take: who holds one, when it is free, and what a conflict comes to.

use board::*;

use crate::site::*;
use crate::world::{Bytes, World};

const UNTIL_END: TakeKey<'static> =
    TakeKey { key: b"k", until: None, time: None, on_conflict: OnConflict::Reject };
const UNTIL_START: TakeKey<'static> = TakeKey { until: Some(Until::Start), ..UNTIL_END };

fn on(on_conflict: OnConflict) -> TakeKey<'static> {
    TakeKey { on_conflict, ..UNTIL_END }
}

impl World {
    fn put_unique(&mut self, id: &str, key: TakeKey<'static>) -> Result<Option<Bytes>, String> {
        self.post(&Post {
            id: Some(id.as_bytes()),
            payload: id.as_bytes(),
            unique: Some(key),
            ..Post::default()
        })
    }

    /// Whose the key is; `None` when it is free.
    fn holder(&self) -> Option<String> {
        self.is_valid();
        self.board.holder_of(b"k", self.now).map(|(id, _)| name(&id.borrowed().to_vec()))
    }
}

/// A board with a job of that key in a state.
fn held(state: State) -> World {
    let mut w = World::default();
    w.put_unique("a", UNTIL_END).unwrap();
    match state {
        Ready => {}
        Claimed => drop(w.take_id(ANN, "a")),
        _ => panic!("not asked for"),
    }
    w
}

#[test]
fn a_key_is_taken_until_its_job_ends() {
    for state in ENDED {
        let mut w = held(Claimed);
        assert_eq!(w.put_unique("b", UNTIL_END), refused("EXISTS a"));
        w.reload();
        assert_eq!(w.holder(), Some("a".into()));
        match state {
            Complete => drop(w.done(ANN, "a", None)),
            Failed => drop(w.fails_with(ANN, "a", None, Retry::No)),
            Cancelled => drop(w.cancel(b"a", true)),
            _ => drop(w.trashes(ANN, "a", None)),
        }
        assert_eq!(w.holder(), None);
        assert!(w.put_unique("b", UNTIL_END).is_ok());
        if state != Complete {
            assert_eq!(w.requeue(b"a", To::Same), Some(refused("EXISTS b")));
            w.delete(b"b");
            assert_eq!(w.requeue(b"a", To::Same), Some(Ok(())));
            assert_eq!(w.holder(), Some("a".into()));
        }
    }
}

#[test]
fn a_key_until_the_start_is_free_once_its_job_is_claimed() {
    let mut w = World::default();
    w.put_unique("a", UNTIL_START).unwrap();
    assert_eq!(w.put_unique("b", UNTIL_START), refused("EXISTS a"));
    w.take_id(ANN, "a");
    assert!(w.put_unique("b", UNTIL_START).is_ok());
    // One that comes back does not take it again.
    w.gives_back(ANN, "a", None).unwrap();
    w.delete(b"b");
    assert_eq!(w.holder(), None);
    w.put_unique("c", UNTIL_START).unwrap();
    w.cancel(b"c", false);
    assert_eq!(w.holder(), None);
}

#[test]
fn a_key_for_a_time_alone_is_taken_exactly_so_long() {
    let for_a_while = TakeKey { time: Some(1_000), ..UNTIL_END };
    let mut w = World::default();
    w.put_unique("a", for_a_while).unwrap();
    w.take_id(ANN, "a");
    w.done(ANN, "a", None).unwrap();
    assert_eq!((w.is("a"), w.holder()), (None, Some("a".into())));
    w.reload();
    assert_eq!(w.put_unique("b", on(OnConflict::Replace)), refused("EXISTS a"));
    assert_eq!(w.put_unique("b", on(OnConflict::Return)), Ok(Some(b"a".to_vec())));
    w.now += 999;
    assert_eq!(w.put_unique("b", for_a_while), refused("EXISTS a"));
    // Exact whether or not time has been settled.
    w.now += 1;
    w.put_unique("b", for_a_while).unwrap();
    w.pass(1_000);
    assert_eq!((w.is("b"), w.board.key_count()), (Some(Ready), 0));
    w.put_unique("c", for_a_while).unwrap();
    w.delete(b"c");
    assert_eq!(w.holder(), None);
}

#[test]
fn a_key_for_a_time_and_until_is_free_at_the_first_of_both() {
    let at_most = TakeKey { until: Some(Until::End), time: Some(1_000), ..UNTIL_END };
    let mut w = World::default();
    w.put_unique("a", at_most).unwrap();
    w.pass(999);
    assert_eq!(w.holder(), Some("a".into()));
    w.pass(1);
    assert_eq!(w.holder(), None);
    w.put_unique("b", at_most).unwrap();
    w.cancel(b"b", false);
    assert_eq!(w.holder(), None);
}

#[test]
fn a_replacement_goes_into_the_holder_and_keeps_its_time() {
    let mut w = World::default();
    let due = w.now + 1_000;
    w.put_with("a", |p| (p.due, p.unique) = (Some(due), Some(UNTIL_END)));
    w.now += 400;
    let later = Some(w.now + 1_000);
    let into = |on_conflict| Post {
        payload: b"new",
        priority: Some(7),
        due: later,
        unique: Some(on(on_conflict)),
        ..Post::default()
    };
    assert_eq!(w.post(&into(OnConflict::Replace)), Ok(Some(b"a".to_vec())));
    let job = w.job("a");
    assert_eq!((job.payload(), job.priority(), job.due()), (&b"new"[..], 7, Some(due)));
    assert_eq!(w.post(&into(OnConflict::Debounce)), Ok(Some(b"a".to_vec())));
    assert_eq!((w.job("a").due(), w.board.len()), (later, 1));
    assert_eq!(w.holder(), Some("a".into()));
}

#[test]
fn a_replacement_keeps_the_place_in_line() {
    let mut w = held(Ready);
    w.now += 10;
    w.put("b");
    w.put_unique("c", on(OnConflict::Replace)).unwrap();
    assert_eq!(w.take_all(ANN), ["a", "b"]);
    let mut w = held(Ready);
    w.now += 10;
    w.put("b");
    w.put_unique("c", on(OnConflict::Debounce)).unwrap();
    assert_eq!(w.take_all(ANN), ["b", "a"]);
}

#[test]
fn a_claimed_holder_is_not_replaced() {
    for on_conflict in [OnConflict::Replace, OnConflict::Debounce] {
        let mut w = held(Claimed);
        assert_eq!(w.put_unique("b", on(on_conflict)), refused("EXISTS a"));
        w.gives_back(ANN, "a", None).unwrap();
        assert_eq!(w.put_unique("b", on(on_conflict)), Ok(Some(b"a".to_vec())));
        assert_eq!(w.job("a").attempt(), 0);
    }
}

#[test]
fn a_replacing_post_keeps_its_key_or_takes_another() {
    let mut w = held(Ready);
    w.put_replacing("a", b"again");
    assert_eq!((w.holder(), w.job("a").unique()), (Some("a".into()), Some(&b"k"[..])));
    let other = TakeKey { key: b"other", ..UNTIL_END };
    let exists = Exists::Replace;
    w.post(&Post { id: Some(b"a"), exists, unique: Some(other), ..Post::default() }).unwrap();
    assert_eq!((w.holder(), w.board.key_count()), (None, 1));
    w.put_unique("b", UNTIL_END).unwrap();
    let back = Post { id: Some(b"a"), exists, unique: Some(UNTIL_END), ..Post::default() };
    assert_eq!(w.post(&back), refused("EXISTS b"));
}

#[test]
fn an_ended_job_is_not_replaced_when_another_holds_its_key() {
    let mut w = held(Ready);
    w.cancel(b"a", false);
    w.put_unique("b", UNTIL_END).unwrap();
    let exists = Exists::Replace;
    assert_eq!(w.post(&Post { id: Some(b"a"), exists, ..Post::default() }), refused("EXISTS b"));
}

#[test]
fn a_time_whose_child_finds_its_key_taken_is_passed_over() {
    let mut w = World::default();
    let when = Some(When::Every(100));
    let child = Post { unique: Some(UNTIL_END), ..Post::default() };
    w.set_schedule(&SetSchedule { id: b"s", when, child, ..SetSchedule::default() }).unwrap();
    w.pass(100);
    w.pass(250);
    assert_eq!((w.holder(), w.is("@s@2")), (Some("@s@1".into()), None));
    assert_eq!(w.run_schedule(b"s"), refused("EXISTS @s@1"));
    assert!(w.board.schedule(b"s").unwrap().refused >= 1);
    // The child that it replaces frees the key.
    let overlap = Some(Overlap::Replace);
    w.set_schedule(&SetSchedule { id: b"s", overlap, ..SetSchedule::default() }).unwrap();
    w.pass(100);
    assert_eq!((w.is("@s@1"), w.holder()), (Some(Cancelled), Some("@s@2".into())));
}
