//! Parents and children: progress from the one to the other, and which records stay.

use board::*;

use crate::site::*;
use crate::world::World;

impl World {
    fn put_child(&mut self, id: &str, parent: &str, share: u32) {
        self.put_with(id, |p| (p.parent, p.share) = (Some(parent.as_bytes()), Some(share)));
    }

    fn try_child(&mut self, id: &str, parent: &str) -> Result<(), String> {
        let (id, exists) = (Some(id.as_bytes()), Exists::Replace);
        self.post(&Post { id, exists, parent: Some(parent.as_bytes()), ..Post::default() }).map(|_| ())
    }

    fn reports(&mut self, id: &str, percent: u16) {
        if self.is(id) != Some(Claimed) {
            self.take_id(ANN, id);
        }
        let report = Some(Report { progress: Some(percent * 100), ..Report::default() });
        let beat = (
            Speaker { worker: ANN, id: id.as_bytes(), ..Speaker::default() },
            Heartbeat { report, ..Heartbeat::default() },
        );
        self.heartbeat(&beat).unwrap();
    }

    fn sets(&mut self, id: &str, percent: u16) {
        let report = Some(Report { progress: Some(percent * 100), ..Report::default() });
        self.update(id.as_bytes(), &Update { report, ..Update::default() }).unwrap().unwrap();
    }

    fn finishes(&mut self, id: &str) {
        if self.is(id) != Some(Claimed) {
            self.take_id(ANN, id);
        }
        self.done(ANN, id, None).unwrap();
    }

    fn percent(&self, id: &str) -> Option<f64> {
        self.job(id).progress()
    }

    fn children_of(&self, id: &str) -> Vec<String> {
        let slot = self.board.find(id.as_bytes()).unwrap();
        let records = self.board.children_from(slot, 0).filter_map(|(_, slot)| self.board.record_of(slot));
        records.map(|record| name(&record.id().to_vec())).collect()
    }
}

#[test]
fn a_requeue_of_children_does_not_hide_their_parent_from_its_loop() {
    let mut w = World::default();
    w.put("p");
    w.put_child("a", "p", 1);
    for id in ["a", "p"] {
        w.cancel(id.as_bytes(), false).unwrap().unwrap();
        w.pass(1);
    }
    let filters = Filters::new([Filter::State(Cancelled)], []);
    let bytes = usize::MAX;
    let mut slice = Selection {
        deed: Operation::Requeue(Requeue::default()),
        filters,
        from: None,
        count: 1,
        bytes,
        dry: false,
    };
    for id in ["a", "p"] {
        let got = w.select(&slice);
        assert_eq!(got.ids, [id.as_bytes()]);
        slice.from = got.next;
    }
    w.is_valid();
}

/// `p` with the children `a`, of weight 1, and `b`, of weight 3.
fn trio() -> World {
    let mut w = World::default();
    w.put("p");
    w.put_child("a", "p", 1);
    w.put_child("b", "p", 3);
    w
}

#[test]
fn a_parent_is_as_far_as_the_weighted_mean_of_its_children() {
    let mut w = trio();
    assert_eq!((w.job("p").children(), w.percent("p")), (Some(2), Some(0.0)));
    assert_eq!((w.job("b").parent().unwrap().to_vec(), w.job("b").share()), (b"p".to_vec(), Some(3)));
    w.reports("a", 50);
    assert_eq!(w.percent("p"), Some(12.5));
    w.reports("b", 10);
    assert_eq!(w.percent("p"), Some(20.0));
    w.finishes("b");
    assert_eq!((w.is("b"), w.percent("p"), w.job("p").children()), (None, Some(87.5), Some(2)));
    w.finishes("a");
    assert_eq!((w.percent("p"), w.is("p")), (Some(100.0), Some(Ready)));
    w.is_valid();
}

#[test]
fn progress_goes_up_through_all_generations() {
    let mut w = World::default();
    w.put("0");
    for n in 1..=GENERATIONS {
        w.put_child(&n.to_string(), &(n - 1).to_string(), 7);
    }
    let deepest = GENERATIONS.to_string();
    w.reports(&deepest, 40);
    assert_eq!((w.percent("0"), w.percent("31")), (Some(40.0), Some(40.0)));
    assert_eq!(w.try_child("one more", &deepest), refused(&format!("LIMIT generations {deepest}")));
    w.finishes(&deepest);
    assert_eq!(w.percent("0"), Some(100.0));
    w.is_valid();
}

#[test]
fn a_report_of_a_parents_own_counts_until_it_has_children() {
    let mut w = World::default();
    w.put("p");
    w.reports("p", 30);
    w.put_child("a", "p", 1);
    assert_eq!(w.percent("p"), Some(0.0));
    w.reports("p", 90);
    assert_eq!(w.percent("p"), Some(0.0));
    w.reports("a", 20);
    assert_eq!(w.percent("p"), Some(20.0));
    w.reports("a", 35);
    assert_eq!(w.percent("p"), Some(35.0));
    w.is_valid();
}

#[test]
fn a_new_child_counts_at_once_in_all_generations() {
    let mut w = World::default();
    w.put("g");
    w.put_child("p", "g", 1);
    w.put_child("a", "p", 1);
    w.finishes("a");
    assert_eq!((w.percent("p"), w.percent("g")), (Some(100.0), Some(100.0)));
    w.put_child("b", "p", 1);
    assert_eq!((w.percent("p"), w.percent("g")), (Some(50.0), Some(50.0)));
    w.put_child("c", "p", 2);
    assert_eq!((w.percent("p"), w.percent("g")), (Some(25.0), Some(25.0)));
    assert!(w.delete(b"c"));
    assert_eq!((w.percent("p"), w.percent("g")), (Some(50.0), Some(50.0)));
    w.finishes("b");
    assert_eq!((w.percent("p"), w.percent("g")), (Some(100.0), Some(100.0)));
    w.is_valid();
}

#[test]
fn an_operator_may_set_progress_back_and_the_parents_follow() {
    let mut w = World::default();
    w.put("g");
    w.put_child("p", "g", 1);
    w.put_child("a", "p", 1);
    w.put_child("b", "p", 1);
    w.reports("a", 80);
    w.sets("a", 20);
    assert_eq!((w.percent("a"), w.percent("p"), w.percent("g")), (Some(20.0), Some(10.0), Some(10.0)));
    w.sets("p", 60);
    assert_eq!((w.percent("p"), w.percent("g")), (Some(60.0), Some(60.0)));
    w.reports("b", 10);
    assert_eq!((w.percent("p"), w.percent("g")), (Some(60.0), Some(60.0)));
    w.is_valid();
}

#[test]
fn one_that_ends_without_success_counts_what_it_came_to() {
    for state in [Failed, Cancelled, Trashed] {
        let mut w = trio();
        w.reports("b", 40);
        match state {
            Failed => w.fails_with(ANN, "b", None, Retry::No).map(|_| ()).unwrap(),
            Trashed => w.trashes(ANN, "b", None).map(|_| ()).unwrap(),
            _ => w.cancel(b"b", true).unwrap().map(|_| ()).unwrap(),
        }
        assert_eq!((w.is("b"), w.percent("p")), (Some(state), Some(30.0)));
        w.requeue(b"b", To::Same).unwrap().unwrap();
        assert_eq!((w.percent("b"), w.percent("p")), (None, Some(30.0)));
        w.reports("b", 60);
        assert_eq!(w.percent("p"), Some(45.0));
        w.is_valid();
    }
}

#[test]
fn a_parent_must_be_there_and_live() {
    let mut w = World::default();
    assert_eq!(w.try_child("a", "p"), refused("NOJOB no such job p"));
    assert_eq!(w.try_child("a", "a"), refused("NOJOB no such job a"));
    for state in ENDED {
        let id = state.name();
        w.put_in(id, state);
        assert_eq!(w.try_child("a", id), refused(&format!("ENDED {id} {id}")));
    }
    assert_eq!(w.is("a"), None);
    w.is_valid();
}

#[test]
fn nobody_is_its_own_ancestor() {
    let mut w = World::default();
    w.put("g");
    w.put_child("p", "g", 1);
    w.put_child("c", "p", 1);
    for (id, parent) in [("g", "g"), ("g", "p"), ("g", "c"), ("p", "c")] {
        let refusal = format!("CYCLE a job would be its own ancestor {parent}");
        assert_eq!(w.try_child(id, parent), refused(&refusal), "{id} under {parent}");
    }
    w.try_child("c", "g").unwrap();
    w.try_child("p", "c").unwrap();
    w.is_valid();
}

#[test]
fn a_replacing_post_keeps_the_parent_or_moves_the_job() {
    let mut w = trio();
    w.put("q");
    w.reports("b", 40);
    w.put_replacing("b", b"again");
    assert_eq!((w.job("b").parent().unwrap().to_vec(), w.job("b").share()), (b"p".to_vec(), Some(3)));
    assert_eq!((w.percent("b"), w.percent("p")), (None, Some(30.0)));
    w.try_child("b", "q").unwrap();
    assert_eq!((w.job("b").parent().unwrap().to_vec(), w.job("b").share()), (b"q".to_vec(), Some(3)));
    assert_eq!((w.job("p").children(), w.job("q").children()), (Some(1), Some(1)));
    assert_eq!((w.percent("p"), w.percent("q")), (Some(0.0), Some(0.0)));
    w.reports("a", 50);
    assert_eq!(w.percent("p"), Some(50.0));
    w.is_valid();
}

#[test]
fn a_replaced_parent_keeps_its_children() {
    let mut w = trio();
    w.reports("a", 80);
    w.put_replacing("p", b"again");
    assert_eq!((w.children_of("p"), w.percent("p")), (vec!["a".into(), "b".into()], Some(20.0)));
    w.finishes("b");
    assert_eq!(w.percent("p"), Some(95.0));
    w.is_valid();
}

#[test]
fn the_record_of_a_parent_stays_while_a_child_lives() {
    let mut w = trio();
    w.finishes("p");
    assert_eq!(w.is("p"), Some(Complete));
    w.pass(1 << 40);
    assert_eq!(w.is("p"), Some(Complete));
    w.finishes("a");
    assert_eq!(w.is("p"), Some(Complete));
    w.finishes("b");
    assert_eq!(w.is("p"), None);
    w.pass(0);
    w.is_valid();
}

#[test]
fn records_of_children_stay_until_their_parent_has_ended() {
    let mut w = trio();
    w.put_child("c", "p", 1);
    w.take_id(ANN, "a");
    w.done_keeping(ANN, "a", 1_000).unwrap();
    w.take_id(ANN, "b");
    w.fails_with(ANN, "b", None, Retry::No).unwrap();
    w.finishes("c");
    w.configure(None, Setting::KeepFailed, Some(0));
    w.pass(1_000_000);
    assert_eq!(w.children_of("p"), ["a", "b"]);
    w.configure(None, Setting::KeepFailed, None);
    w.finishes("p");
    assert_eq!(w.is("p"), None);
    w.pass(0);
    assert_eq!((w.is("a"), w.is("b")), (None, Some(Failed)));
    assert_eq!((w.job("b").parent(), w.job("b").share()), (None, None));
    w.is_valid();
    // A parent of the same id is another one.
    w.put_replacing("p", b"new");
    assert_eq!(w.children_of("p"), [""; 0]);
    w.requeue(b"b", To::Same).unwrap().unwrap();
    assert_eq!(w.job("b").parent(), None);
    w.is_valid();
}

#[test]
fn children_are_let_go_in_slices() {
    let mut w = World::default();
    w.put("p");
    for n in 0..20 {
        let id = n.to_string();
        w.put_child(&id, "p", 1);
        w.take_id(ANN, &id);
        w.done_keeping(ANN, &id, 1).unwrap();
    }
    w.now += 10;
    w.finishes("p");
    assert!(w.slice(5));
    w.commit();
    assert_eq!(w.board.len(), 15);
    w.board = w.board.copy().unwrap();
    w.is_valid();
    w.pass(0);
    assert_eq!(w.board.len(), 0);
    w.is_valid();
}

#[test]
fn a_parent_that_lives_again_keeps_its_children_again() {
    let mut w = trio();
    w.take_id(ANN, "a");
    w.done_keeping(ANN, "a", 1_000).unwrap();
    w.cancel(b"p", false).unwrap().unwrap();
    w.requeue(b"p", To::Same).unwrap().unwrap();
    w.pass(5_000);
    assert_eq!((w.is("a"), w.percent("p")), (Some(Complete), Some(25.0)));
    w.is_valid();
}

#[test]
fn a_parent_of_live_children_is_deleted_with_them_alone() {
    let mut w = trio();
    assert_eq!(w.delete_all(&[b"p"]), refused("DEPENDED a"));
    assert_eq!(w.delete_all(&[b"p", b"a"]), refused("DEPENDED b"));
    w.finishes("a");
    assert_eq!(w.delete_all(&[b"p", b"b"]), Ok(2));
    assert!(w.board.is_empty());
    w.is_valid();
}

#[test]
fn a_deleted_child_counts_no_more_unless_it_was_complete() {
    let mut w = trio();
    w.put_child("c", "p", 4);
    w.take_id(ANN, "a");
    w.done_keeping(ANN, "a", -1).unwrap();
    assert_eq!(w.delete_all(&[b"a"]), Ok(1));
    assert_eq!((w.job("p").children(), w.percent("p")), (Some(3), Some(12.5)));
    assert_eq!(w.delete_all(&[b"c"]), Ok(1));
    assert_eq!((w.job("p").children(), w.percent("p")), (Some(2), Some(25.0)));
    w.is_valid();
}

#[test]
fn a_child_and_the_ended_parent_that_it_kept_are_deleted_together() {
    for (first, second) in [("a", "p"), ("p", "a")] {
        let mut w = World::default();
        w.put("before");
        w.put("p");
        w.delete_all(&[b"before"]).unwrap();
        w.put_child("a", "p", 1);
        w.finishes("p");
        assert_eq!(w.delete_all(&[first.as_bytes(), second.as_bytes()]), Ok(2));
        assert!(w.board.is_empty() && w.board.tombstone(b"p", w.now).is_none());
        w.is_valid();
    }
}

#[test]
fn children_of_a_schedule_have_its_parent_while_that_lives() {
    let mut w = World::default();
    let every = |id: &'static [u8]| SetSchedule {
        id,
        when: Some(When::Every(100)),
        child: Post { parent: Some(b"p"), share: Some(5), ..Post::default() },
        ..SetSchedule::default()
    };
    assert_eq!(w.set_schedule(&every(b"s")), refused("NOJOB no such job p"));
    w.put("p");
    w.set_schedule(&every(b"s")).unwrap();
    w.pass(100);
    assert_eq!((w.children_of("p"), w.job("@s@1").share()), (vec!["@s@1".into()], Some(5)));
    w.finishes("p");
    w.pass(100);
    assert_eq!((w.job("@s@1").parent().is_some(), w.job("@s@2").parent()), (true, None));
    w.is_valid();
}

#[test]
fn mad_sums_do_not_come_from_elsewhere() {
    let mut w = trio();
    w.reports("a", 50);
    let mut bytes = Vec::new();
    w.board.snapshot(|part| bytes.extend_from_slice(part));
    let load = |bytes: &[u8]| {
        let mut loader = Loader::default();
        loader.part(bytes)?;
        loader.finish().map(|board| board.digest())
    };
    assert_eq!(load(&bytes), Ok(w.board.digest()));
    // Each number of the family, one by one, is another: no panic, and never a board that
    // does not pass its own check.
    for at in 0..bytes.len() {
        for change in [1, 0x7f, 0xff] {
            let mut mad = bytes.clone();
            mad[at] ^= change;
            let _ = load(&mad);
        }
    }
}

#[test]
fn what_is_rounded_in_one_generation_does_not_show_in_the_next() {
    let mut w = World::default();
    w.put("g");
    let families = [("p", [1_000, 1_000, 1_001]), ("q", [5_000, 5_000, 4_999])];
    for (p, _) in families {
        w.put_child(p, "g", 1);
        (0..3).for_each(|n| w.put_child(&format!("{p}{n}"), p, 1));
    }
    for (p, hundredths) in families {
        for (n, progress) in hundredths.into_iter().enumerate() {
            let id = format!("{p}{n}");
            w.take_id(ANN, &id);
            let report = Some(Report { progress: Some(progress), ..Report::default() });
            let beat = (
                Speaker { worker: ANN, id: id.as_bytes(), ..Speaker::default() },
                Heartbeat { report, ..Heartbeat::default() },
            );
            w.heartbeat(&beat).unwrap();
        }
    }
    assert_eq!((w.percent("p"), w.percent("q"), w.percent("g")), (Some(10.0), Some(49.99), Some(30.0)));
    w.is_valid();
}

#[test]
fn a_parent_is_whole_only_when_all_its_children_are() {
    let mut w = World::default();
    w.put("g");
    w.put_child("p", "g", 1);
    w.put_child("small", "p", 1);
    w.put_child("large", "p", 1_000_000);
    w.finishes("large");
    assert_eq!((w.percent("p"), w.percent("g")), (Some(99.99), Some(99.99)));
    w.finishes("small");
    assert_eq!((w.percent("p"), w.percent("g")), (Some(100.0), Some(100.0)));
    w.is_valid();
}

#[test]
fn a_complete_job_is_all_done_whatever_it_last_said() {
    let mut w = World::default();
    w.put_with("a", |p| p.options.retain = Some(1_000));
    w.put_with("b", |p| p.options.retain = Some(1_000));
    w.reports("a", 60);
    assert_eq!(w.percent("a"), Some(60.0));
    w.finishes("a");
    w.finishes("b");
    assert_eq!((w.is("a"), w.percent("a")), (Some(Complete), Some(100.0)));
    assert_eq!((w.is("b"), w.percent("b")), (Some(Complete), None));
    w.put("c");
    w.reports("c", 60);
    w.fails_with(ANN, "c", None, Retry::No).unwrap();
    assert_eq!((w.is("c"), w.percent("c")), (Some(Failed), Some(60.0)));
}
