//! Selections by filter: what they take, in which order, and that a loop ends.

use board::*;

use crate::site::*;
use crate::world::{Selected, World};

const CANCEL: Operation<'_> = Operation::Cancel { force: false };

fn selection<'a>(deed: Operation<'a>, any: &[Filter<'a>], count: usize) -> Selection<'a> {
    let filters = Filters::new(any.to_vec(), []);
    Selection { deed, filters, from: None, count, bytes: usize::MAX, dry: false }
}

fn names(ids: &[Vec<u8>]) -> Vec<String> {
    ids.iter().map(name).collect()
}

impl World {
    fn sel(&mut self, deed: Operation<'_>, any: &[Filter<'_>], count: usize) -> Selected {
        self.select(&selection(deed, any, count))
    }

    /// The next slice of the same.
    fn go_on(
        &mut self,
        deed: Operation<'_>,
        any: &[Filter<'_>],
        count: usize,
        from: Option<SelectionCursor>,
    ) -> Selected {
        let from = SelectionCursor::read(from.unwrap().text().as_bytes());
        assert!(from.is_some());
        self.select(&Selection { from, ..selection(deed, any, count) })
    }

    /// Slices until there are no more: all ids, and how many slices there were.
    fn all(&mut self, deed: Operation<'_>, any: &[Filter<'_>], count: usize) -> (Vec<String>, usize) {
        let mut slice = self.sel(deed, any, count);
        let mut ids = names(&slice.ids);
        let mut slices = 1;
        while slice.next.is_some() {
            slice = self.go_on(deed, any, count, slice.next);
            ids.extend(names(&slice.ids));
            slices += 1;
            assert!(slices < 10_000, "a loop without end");
        }
        (ids, slices)
    }

    fn put_many(&mut self, n: usize) {
        (0..n).for_each(|i| self.put(&format!("j{i}")));
    }
}

#[test]
fn each_verb_takes_the_states_it_is_for_and_passes_over_the_others() {
    let priority = Update { priority: Some(3), ..Update::default() };
    let due = Update { due: Some(1), ..Update::default() };
    let cases: [(Operation<'_>, &[State]); 7] = [
        (CANCEL, &[Scheduled, Ready, Claimed]),
        (Operation::Cancel { force: true }, &[Scheduled, Ready, Claimed]),
        (Operation::Release, &[Claimed]),
        (Operation::Requeue(Requeue::default()), &[Failed, Cancelled, Trashed]),
        (Operation::Delete, &STATES),
        (Operation::Update(&priority), &[Scheduled, Ready, Claimed]),
        (Operation::Update(&due), &[Scheduled, Ready]),
    ];
    for (deed, states) in cases {
        let mut w = World::default();
        STATES.iter().for_each(|state| w.put_in(state.name(), *state));
        let filters: Vec<Filter<'_>> = STATES.iter().map(|s| Filter::State(*s)).collect();
        let dry = w.select(&Selection { dry: true, ..selection(deed, &filters, 100) });
        let revision = w.board.revision();
        let got = w.sel(deed, &filters, 100);
        assert_eq!((&got.ids, &got.held), (&dry.ids, &dry.held), "{deed:?}");
        assert_eq!(w.board.revision() > revision, !states.is_empty());
        let mut ids = names(&got.ids);
        ids.sort();
        let mut want: Vec<&str> = states.iter().map(|s| s.name()).collect();
        want.sort();
        assert_eq!(ids, want, "{deed:?}");
        assert!(got.held.is_empty());
        w.is_valid();
    }
}

#[test]
fn a_requeue_walks_all_that_ended_as_one_oldest_end_first() {
    let mut w = World::default();
    for (id, state) in [("e", Failed), ("c", Trashed), ("a", Cancelled), ("d", Failed), ("b", Cancelled)] {
        w.put_in(id, state);
        w.pass(1);
    }
    assert_eq!(
        names(&w.sel(Operation::Requeue(Requeue::default()), &[Filter::Queue(b"default")], 2).ids),
        ["e", "c"]
    );
    assert_eq!(
        w.all(Operation::Requeue(Requeue::default()), &[Filter::State(Failed), Filter::State(Cancelled)], 1)
            .0,
        ["a", "d", "b"]
    );
    assert_eq!(w.take_all(BOB).len(), 5);
    w.is_valid();
}

#[test]
fn a_requeue_may_lead_to_another_queue() {
    let mut w = World::default();
    w.put_in("a", Failed);
    w.select(&selection(
        Operation::Requeue(Requeue { to: To::Queue(b"slow"), ..Requeue::default() }),
        &[Filter::State(Failed)],
        9,
    ));
    assert_eq!((w.is("a"), w.job("a").queue()), (Some(Ready), &b"slow"[..]));
    assert_eq!(w.board.kinds().count(), 0);
    w.is_valid();
}

#[test]
fn a_loop_goes_on_where_it_was_although_its_deed_moves_the_jobs() {
    let back = Update { priority: Some(-5), ..Update::default() };
    let ahead = Update { priority: Some(5), ..Update::default() };
    let later = Update { due: Some(i64::MAX >> 20), ..Update::default() };
    for deed in [
        CANCEL,
        Operation::Delete,
        Operation::Update(&back),
        Operation::Update(&ahead),
        Operation::Update(&later),
    ] {
        let mut w = World::default();
        w.put_many(50);
        w.reload();
        let (ids, slices) = w.all(deed, &[Filter::State(Ready), Filter::State(Scheduled)], 7);
        let want: Vec<String> = (0..50).map(|i| format!("j{i}")).collect();
        assert_eq!((ids, slices), (want, 8), "{deed:?}");
        w.is_valid();
    }
}

#[test]
fn a_loop_ends_and_takes_each_job_once_while_others_post_claim_and_fail() {
    let mut w = World::default();
    for i in 0..6 {
        w.put_in(&format!("f{i}"), Failed);
        w.put_in(&format!("c{i}"), Claimed);
    }
    let fail = |w: &mut World| {
        while let Some(got) = w.take(BOB) {
            w.fails_with(BOB, &name(&got.id), None, Retry::No).unwrap();
        }
    };
    let mut slice = w.sel(Operation::Requeue(Requeue::default()), &[Filter::State(Failed)], 2);
    let mut ids = names(&slice.ids);
    while slice.next.is_some() {
        w.pass(1);
        fail(&mut w);
        slice = w.go_on(Operation::Requeue(Requeue::default()), &[Filter::State(Failed)], 2, slice.next);
        ids.extend(names(&slice.ids));
    }
    assert_eq!(ids, ["f0", "f1", "f2", "f3", "f4", "f5"]);
    slice = w.sel(Operation::Release, &[Filter::Queue(b"default")], 2);
    ids = names(&slice.ids);
    while slice.next.is_some() {
        w.pass(1);
        w.take_all(BOB);
        slice = w.go_on(Operation::Release, &[Filter::Queue(b"default")], 2, slice.next);
        ids.extend(names(&slice.ids));
    }
    assert_eq!(ids, ["c0", "c1", "c2", "c3", "c4", "c5"]);
    slice = w.sel(Operation::Cancel { force: true }, &[Filter::Queue(b"default")], 5);
    let mut n = 0;
    while slice.next.is_some() {
        w.put(&format!("new{n}"));
        w.put(&format!("newer{n}"));
        slice = w.go_on(Operation::Cancel { force: true }, &[Filter::Queue(b"default")], 1, slice.next);
        n += 1;
    }
    assert!(n < 30);
    assert_eq!(w.board.count(Ready), 2 * n);
    w.is_valid();
}

#[test]
fn a_job_that_goes_on_during_the_loop_is_met_further_down() {
    let mut w = World::default();
    w.put_in("before", Scheduled);
    w.put_in("moves", Scheduled);
    let any = [Filter::Queue(b"default")];
    let slice = w.sel(CANCEL, &any, 1);
    assert_eq!(names(&slice.ids), ["before"]);
    w.pass(1_000);
    w.take_id(ANN, "moves");
    let slice = w.go_on(CANCEL, &any, 1, slice.next);
    assert_eq!((names(&slice.ids), slice.next), (vec!["moves".into()], None));
    assert!(w.job("moves").cancel());
}

#[test]
fn an_update_touches_a_job_once_although_it_moves_on() {
    let mut w = World::default();
    w.put_in("first", Scheduled);
    w.put_in("second", Scheduled);
    let report = Some(Report { log: Some(b"seen"), ..Report::default() });
    let update = Update { report, ..Update::default() };
    let any = [Filter::Queue(b"default")];
    let slice = w.sel(Operation::Update(&update), &any, 1);
    w.pass(1_000);
    let slice = w.go_on(Operation::Update(&update), &any, 9, slice.next);
    assert_eq!((names(&slice.ids), slice.next), (vec!["second".into()], None));
    w.is_valid();
}

#[test]
fn what_one_worker_holds_is_found_without_a_look_at_the_rest() {
    let mut w = World::default();
    w.put_many(40);
    w.claim(&Claim { worker: ANN, ..Claim::default() }, 30);
    w.claim(&Claim { worker: BOB, ..Claim::default() }, 10);
    let (ids, slices) = w.all(Operation::Release, &[Filter::Worker(BOB)], 3);
    assert_eq!(ids, (30..40).map(|i| format!("j{i}")).collect::<Vec<_>>());
    assert_eq!(slices, 4);
    assert_eq!(w.all(Operation::Release, &[Filter::Worker(BOB), Filter::State(Ready)], 3).0.len(), 0);
    let (ids, _) = w.all(Operation::Release, &[Filter::Worker(BOB), Filter::Worker(ANN)], 7);
    assert_eq!(ids.len(), 30);
    w.is_valid();
}

#[test]
fn a_release_of_what_was_asked_to_stop_cancels_it() {
    let mut w = World::default();
    w.put_in("a", Claimed);
    w.cancel(b"a", false).unwrap().unwrap();
    assert_eq!(w.sel(CANCEL, &[Filter::State(Claimed)], 9).ids.len(), 0);
    w.sel(Operation::Release, &[Filter::State(Claimed)], 9);
    assert_eq!(w.is("a"), Some(Cancelled));
}

#[test]
fn those_who_wait_go_before_what_they_wait_for() {
    for deed in [CANCEL, Operation::Delete] {
        for count in [1, 2, 3, 100] {
            let mut w = World::default();
            w.put_with("last", |p| p.due = Some(p.due.unwrap_or(0) + i64::MAX / 1_000_000));
            w.put_in("a", Ready);
            w.put_after("b", &["a"], OnFailure::Hold);
            w.put_after("c", &["a", "b"], OnFailure::Hold);
            w.put_after("d", &["c"], OnFailure::Hold);
            let wait =
                Depend::Add(After { jobs: vec![(b"d", OnFailure::Hold)], strict: true, ..After::default() });
            w.depend(b"last", &wait).unwrap().unwrap();
            let slice = Selection { dry: true, ..selection(deed, &[Filter::Queue(b"default")], 100) };
            assert_eq!(w.select(&slice).ids.len(), 5);
            let (ids, _) = w.all(deed, &[Filter::Queue(b"default")], count);
            assert_eq!(ids, ["last", "d", "c", "b", "a"], "{deed:?} {count}");
            w.pass(0);
            w.is_valid();
        }
    }
}

#[test]
fn a_job_is_held_back_when_one_waits_for_it_that_stays() {
    for deed in [CANCEL, Operation::Delete] {
        let mut w = World::default();
        w.put("a");
        w.put_after("b", &["a"], OnFailure::Cancel);
        w.put_with("c", |p| {
            p.queue = Some(b"other");
            p.after = Some(After { jobs: vec![(b"b", OnFailure::Fail)], strict: false, ..After::default() });
        });
        w.put_after("leaf", &["a"], OnFailure::Hold);
        for dry in [true, false] {
            let slice = Selection { dry, ..selection(deed, &[Filter::Queue(b"default")], 100) };
            let got = w.select(&slice);
            assert_eq!((names(&got.ids), got.next), (vec!["leaf".into()], None));
            let mut held = names(&got.held);
            held.sort();
            assert_eq!(held, ["a", "b"]);
        }
        w.pass(0);
        assert_eq!((w.is("a"), w.is("b"), w.is("c")), (Some(Ready), Some(Blocked), Some(Blocked)));
        assert_eq!(w.all(deed, &[Filter::Queue(b"default")], 1).0.len(), 0);
        w.is_valid();
    }
}

#[test]
fn a_record_that_only_those_who_wait_keep_goes_with_them_and_is_not_counted() {
    for count in [1, 2, 100] {
        let mut w = World::default();
        w.configure(None, Setting::RetainFailed, Some(1_000));
        w.put_in("old", Failed);
        w.put_after("b", &["old"], OnFailure::Hold);
        w.put_after("c", &["old"], OnFailure::Hold);
        w.configure(None, Setting::RetainFailed, Some(-1));
        w.put_in("young", Failed);
        w.put_after("d", &["young"], OnFailure::Hold);
        let any = [Filter::Queue(b"default")];
        let slice = Selection { dry: true, ..selection(Operation::Delete, &any, 100) };
        assert_eq!(names(&w.select(&slice).ids), ["b", "c", "d", "old", "young"]);
        w.pass(1_000);
        assert_eq!(names(&w.select(&slice).ids), ["b", "c", "d", "young"]);
        let held = w.sel(Operation::Delete, &[Filter::State(Failed)], 100).held;
        assert_eq!(names(&held), ["old", "young"]);
        assert_eq!(w.all(Operation::Delete, &any, count).0, ["b", "c", "d", "young"], "{count}");
        assert_eq!(w.board.len(), 0);
        w.is_valid();
    }
}

/// `root` waits for a job of another queue, and `n` jobs wait for it: the walk meets it first.
fn fan(n: usize) -> World {
    let mut w = World::default();
    w.put_with("gate", |p| p.queue = Some(b"other"));
    w.put_after("root", &["gate"], OnFailure::Hold);
    (0..n).for_each(|i| w.put_after(&format!("w{i}"), &["root"], OnFailure::Hold));
    w
}

#[test]
fn those_who_wait_go_slice_by_slice() {
    let mut w = fan(2_000);
    let dry = Selection { dry: true, ..selection(Operation::Delete, &[Filter::Queue(b"default")], 700) };
    let mut counted = Vec::new();
    let mut from = None;
    loop {
        let slice = w.select(&Selection { from, ..dry.clone() });
        assert!(slice.held.is_empty());
        counted.push(slice.ids.len());
        from = slice.next;
        if from.is_none() {
            break;
        }
    }
    assert_eq!(counted, [700, 700, 601]);
    let (ids, slices) = w.all(Operation::Delete, &[Filter::Queue(b"default")], 700);
    assert_eq!((ids.len(), slices, ids.last()), (2_001, 3, Some(&"root".to_string())));
    assert_eq!(w.board.len(), 1);
    w.is_valid();
}

#[test]
fn a_job_with_more_behind_it_than_a_slice_looks_at_is_held_back() {
    let mut w = World::default();
    let next = |w: &mut World, i: i64| {
        let (id, other) = (format!("j{i}"), format!("j{}", i - 1));
        let after =
            After { jobs: vec![(other.as_bytes(), OnFailure::Hold)], strict: i > 0, ..After::default() };
        let due = Some(w.now + 1_000 + i);
        w.post(&Post { id: Some(id.as_bytes()), due, after: Some(after), ..Post::default() }).unwrap();
    };
    (0..10_020).for_each(|i| next(&mut w, i));
    let slice = w.sel(CANCEL, &[Filter::Queue(b"default")], 1_000);
    assert_eq!((slice.ids.len(), names(&slice.held)), (0, vec!["j1".to_string()]));
    let (ids, _) = w.all(CANCEL, &[Filter::Queue(b"default")], 1_000);
    assert!(ids.len() > 9_990, "{} are cancelled", ids.len());
    assert_eq!(ids.first(), Some(&"j10019".to_string()));
    w.is_valid();
}

#[test]
fn an_update_takes_as_many_as_may_run_in_the_new_queue() {
    let mut w = World::default();
    w.put_many(6);
    w.claim(&Claim { worker: ANN, ..Claim::default() }, 4);
    w.configure(Some(b"few"), Setting::Concurrency, Some(3));
    let update = Update { queue: Some(b"few"), ..Update::default() };
    let got = w.sel(Operation::Update(&update), &[Filter::Queue(b"default")], 99);
    assert_eq!(
        (names(&got.ids), names(&got.held)),
        (["j4", "j5", "j0", "j1", "j2"].map(String::from).to_vec(), vec!["j3".to_string()],)
    );
    assert_eq!(w.board.count_in(b"few", Claimed), 3);
    w.is_valid();
}

#[test]
fn a_slice_ends_when_its_records_are_large_enough() {
    let mut w = World::default();
    for id in ["a", "b", "c"] {
        w.put_with(id, |p| p.payload = &[7; 1_000]);
    }
    let any = [Filter::State(Ready)];
    let slice = Selection { bytes: 1_500, ..selection(Operation::Delete, &any, 9) };
    assert_eq!(names(&w.select(&slice).ids), ["a", "b"]);
    w.put_with("d", |p| p.payload = &[7; 1_000]);
    let slice = Selection { bytes: 1, ..selection(Operation::Delete, &any, 9) };
    let got = w.select(&slice);
    assert_eq!((got.ids.len(), got.next.is_some()), (1, true));
}

#[test]
fn a_cursor_that_nobody_gave_is_not_read_or_finds_nothing_wrong() {
    for text in
        ["", "0", "1.2", "1.2.9.0.0.0", "1.-2.2.0.0.0", "x.2.2.0.0.0", "1.2.2.0.0.0.0.0", "1.2.3.0.0.0.0"]
    {
        assert_eq!(SelectionCursor::read(text.as_bytes()), None, "{text}");
    }
    let mut w = World::default();
    w.put_many(3);
    for text in ["-9.0.2.0.0.0", "9223372036854775807.18446744073709551.7.0.-1.-1", "99.0.2.0.0.0"] {
        let from = SelectionCursor::read(text.as_bytes());
        assert!(from.is_some(), "{text}");
        let slice = Selection { from, ..selection(Operation::Delete, &[Filter::State(Ready)], 1) };
        w.select(&slice);
        w.is_valid();
    }
}

fn strings(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| id.to_string()).collect()
}

/// Which jobs it was done with, and which are held back.
fn went(slice: &Selected) -> (Vec<String>, Vec<String>) {
    (names(&slice.ids), names(&slice.held))
}

#[test]
fn a_requeue_holds_back_what_its_key_or_a_limit_refuses() {
    let mut w = World::default();
    let unique = Some(TakeKey { key: b"k", until: None, time: None, on_conflict: OnConflict::Reject });
    for id in ["a", "b", "c", "d"] {
        w.put_with(id, |p| p.unique = unique.filter(|_| id < "c"));
        w.take_id(ANN, id);
        w.fails_with(ANN, id, None, Retry::No).unwrap();
    }
    let failed = [Filter::State(Failed)];
    let slice = w.sel(Operation::Requeue(Requeue::default()), &failed, 9);
    assert_eq!(went(&slice), (strings(&["a", "c", "d"]), strings(&["b"])));
    w.configure(Some(b"few"), Setting::MaxJobs, Some(1));
    w.cancel(b"c", true);
    w.cancel(b"d", true);
    let slice = w.sel(
        Operation::Requeue(Requeue { to: To::Queue(b"few"), ..Requeue::default() }),
        &[Filter::State(Cancelled)],
        9,
    );
    assert_eq!(went(&slice), (strings(&["c"]), strings(&["d"])));
    let update = Update { queue: Some(b"few"), ..Update::default() };
    let slice = w.sel(Operation::Update(&update), &[Filter::State(Ready)], 9);
    assert_eq!(went(&slice), (strings(&["c"]), strings(&["a"])));
    w.is_valid();
}
