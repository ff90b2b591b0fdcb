//! Schedules: times, children, and what becomes of missed ones.

use board::*;

use crate::site::*;
use crate::world::World;

fn every<'a>(id: &'a str, ms: i64) -> SetSchedule<'a> {
    let when = Some(When::Every(ms));
    SetSchedule { when, ..same(id) }
}

/// What names nothing but the id.
fn same(id: &str) -> SetSchedule<'_> {
    let child = Post { payload: b"tick", ..Post::default() };
    SetSchedule { id: id.as_bytes(), child, ..SetSchedule::default() }
}

impl World {
    fn schedule(&self, id: &str) -> &Schedule {
        self.board.schedule(id.as_bytes()).expect("there is such a schedule")
    }

    /// The children that are there, with their intended times from `t0` on.
    fn children(&self, t0: i64) -> Vec<(String, i64)> {
        let page = Page { count: 1_000_000, ..Page::default() };
        let mut all: Vec<(i64, String, i64)> = self
            .board
            .list(&page)
            .0
            .into_iter()
            .filter_map(|slot| {
                let record = self.board.record_of(slot)?;
                Some((record.seq(), name(&record.id().to_vec()), record.intended()? - t0))
            })
            .collect();
        all.sort();
        all.into_iter().map(|(_, id, at)| (id, at)).collect()
    }
}

fn row(all: &[(&str, i64)]) -> Vec<(String, i64)> {
    all.iter().map(|(id, at)| (id.to_string(), *at)).collect()
}

#[test]
fn an_interval_posts_a_child_each_time_stamped_with_it() {
    let mut w = World::default();
    let t0 = w.now;
    let child = Post {
        payload: b"tick",
        queue: Some(b"mail"),
        name: Some(b"send"),
        priority: Some(4),
        meta: vec![pair(b"k", b"v")],
        options: options(|o| (o.lease, o.retries) = (Some(77), Some(2))),
        ..Post::default()
    };
    w.set_schedule(&SetSchedule { child, ..every("s", 100) }).unwrap();
    w.pass(99);
    assert_eq!(w.children(t0), []);
    w.pass(1);
    w.pass(105);
    assert_eq!(w.children(t0), row(&[("@s@1", 100), ("@s@2", 200)]));
    let child = w.job("@s@2");
    assert_eq!(
        (child.payload(), child.queue(), child.name()),
        (&b"tick"[..], &b"mail"[..], Some(&b"send"[..]))
    );
    assert_eq!((child.priority(), child.posted(), child.left(&w.rules)), (4, t0 + 205, 2));
    assert_eq!(child.meta().next(), Some((&b"k"[..], &b"v"[..])));
    assert_eq!((w.schedule("s").fired, w.schedule("s").next), (2, t0 + 300));
    w.take_id(ANN, "@s@1");
    assert_eq!(w.job("@s@1").deadline(), Some(w.now + 77));
    w.is_valid();
}

#[test]
fn start_is_where_intervals_count_from_and_end_and_max_are_the_last() {
    let mut w = World::default();
    let t0 = w.now;
    w.set_schedule(&SetSchedule { start: Some(t0 + 50), end: Some(Some(t0 + 250)), ..every("a", 100) })
        .unwrap();
    w.set_schedule(&SetSchedule { start: Some(t0 - 70), max: Some(Some(2)), ..every("b", 100) }).unwrap();
    for _ in 0..50 {
        w.pass(10);
    }
    let want = [("@b@1", 30), ("@a@1", 50), ("@b@2", 130), ("@a@2", 150), ("@a@3", 250)];
    assert_eq!(w.children(t0), row(&want));
    assert_eq!((w.schedule("a").state(), w.schedule("b").state()), ("over", "over"));
    w.set_schedule(&SetSchedule { max: Some(None), ..same("b") }).unwrap();
    assert_eq!(w.schedule("b").next, t0 + 530);
    w.is_valid();
}

/// A run each second, at its time.
const EACH: [(&str, i64); 6] =
    [("@s@1", 1_000), ("@s@2", 2_000), ("@s@3", 3_000), ("@s@4", 4_000), ("@s@5", 5_000), ("@s@6", 6_000)];

/// A schedule of each second is first on time, then 4.3 s late, then on time again.
fn makes_up(backlog: Backlog, most_missed: u32, want: &[(&str, i64)]) {
    let mut w = World::default();
    let t0 = w.now;
    let set = SetSchedule { backlog: Some(backlog), most_missed, ..every("s", 1_000) };
    w.set_schedule(&set).unwrap();
    w.pass(1_000);
    w.pass(4_300);
    w.pass(700);
    assert_eq!(w.children(t0), row(want), "{backlog:?}, the last {most_missed}");
    w.is_valid();
}

#[test]
fn missed_times_are_skipped_or_made_up_once_or_all() {
    let one = [("@s@1", 1_000), ("@s@2", 5_000), ("@s@3", 6_000)];
    makes_up(Backlog::Skip, 0, &one);
    makes_up(Backlog::One, 0, &one);
    makes_up(Backlog::All, 0, &EACH);
}

#[test]
fn skip_forgets_a_time_that_is_long_past_although_no_other_has_come() {
    for (backlog, children) in [(Backlog::Skip, 0), (Backlog::One, 1)] {
        let mut w = World::default();
        w.set_schedule(&SetSchedule { backlog: Some(backlog), ..every("s", 86_400_000) }).unwrap();
        w.pass(86_400_000 + LATE + 1);
        assert_eq!(w.schedule("s").fired, children);
        w.pass(86_400_000 - 1);
        assert_eq!(w.schedule("s").fired, children + 1);
    }
}

#[test]
fn eighty_six_thousand_missed_times_come_one_slice_at_a_time_each_once() {
    let mut w = World::default();
    let t0 = w.now;
    w.set_schedule(&SetSchedule { backlog: Some(Backlog::All), ..every("s", 1_000) }).unwrap();
    w.now += 86_000_000;
    let mut slices = 0;
    while w.slice(64) {
        slices += 1;
        assert!(w.board.len() <= slices, "a slice did more than one thing");
        if slices % 1_000 == 0 {
            w.commit();
        }
    }
    w.commit();
    assert_eq!(w.board.len(), 86_000);
    let children = w.children(t0);
    assert!(children
        .iter()
        .enumerate()
        .all(|(i, (id, at))| { *id == format!("@s@{}", i + 1) && *at == 1_000 * (i as i64 + 1) }));
    w.is_valid();
}

#[test]
fn overlap_looks_at_the_last_child() {
    let mut w = World::default();
    let set = |id, overlap| SetSchedule { overlap: Some(overlap), ..every(id, 100) };
    w.set_schedule(&set("allow", Overlap::Allow)).unwrap();
    w.set_schedule(&set("skip", Overlap::Skip)).unwrap();
    w.set_schedule(&set("replace", Overlap::Replace)).unwrap();
    w.pass(100);
    for id in ["@allow@1", "@skip@1", "@replace@1"] {
        w.take_id(ANN, id);
    }
    w.pass(100);
    assert_eq!((w.is("@allow@1"), w.is("@allow@2")), (Some(Claimed), Some(Ready)));
    assert_eq!((w.is("@skip@1"), w.is("@skip@2")), (Some(Claimed), None));
    assert_eq!((w.is("@replace@1"), w.is("@replace@2")), (Some(Cancelled), Some(Ready)));
    assert_eq!(w.done(ANN, "@replace@1", None), refused("CANCELLED the job was cancelled"));
    w.done(ANN, "@skip@1", None).unwrap();
    w.pass(100);
    assert_eq!((w.is("@skip@2"), w.schedule("skip").intended), (Some(Ready), Some(w.now)));
    w.is_valid();
}

#[test]
fn a_long_overlap_is_passed_over_in_one_step() {
    let mut w = World::default();
    let set = SetSchedule { overlap: Some(Overlap::Skip), backlog: Some(Backlog::All), ..every("s", 1) };
    w.set_schedule(&set).unwrap();
    w.pass(1);
    w.take_id(ANN, "@s@1");
    w.beat(ANN, "@s@1", None).unwrap();
    w.now += 10_000;
    let before = w.board.revision();
    while w.slice(9) {}
    w.commit();
    assert_eq!((w.board.revision() - before, w.schedule("s").fired), (1, 1));
}

#[test]
fn setting_again_changes_what_it_names_and_keeps_the_counter() {
    let mut w = World::default();
    let t0 = w.now;
    let child = Post { payload: b"tick", queue: Some(b"mail"), ..Post::default() };
    w.set_schedule(&SetSchedule { child, ..every("s", 1_000) }).unwrap();
    w.pass(1_000);
    w.now += 400;
    // The same again, as a program does at each start: nothing moves.
    w.set_schedule(&every("s", 1_000)).unwrap();
    assert_eq!(w.schedule("s").next, t0 + 2_000);
    let child = Post { payload: b"new", priority: Some(3), ..Post::default() };
    w.set_schedule(&SetSchedule { child, ..same("s") }).unwrap();
    w.pass(600);
    let child = w.job("@s@2");
    assert_eq!((child.payload(), child.priority(), child.queue()), (&b"new"[..], 3, &b"mail"[..]));
    w.set_schedule(&every("s", 10_000)).unwrap();
    assert_eq!((w.schedule("s").next, w.schedule("s").last), (w.now + 10_000, 2));
    w.pass(10_000);
    assert_eq!(w.is("@s@3"), Some(Ready));
    let cron = Some(When::Cron(b"*/5 * * * * *"));
    w.set_schedule(&SetSchedule { when: cron, zone: Some(b"Asia/Tokyo"), ..same("s") }).unwrap();
    w.pass(5_000);
    assert_eq!((w.job("@s@4").intended().map(|t| t % 5_000), w.schedule("s").every), (Some(0), 0));
    w.is_valid();
}

#[test]
fn what_cannot_be_set_is_refused_and_says_why() {
    let mut w = World::default();
    let cron = |text: &'static str| SetSchedule { when: Some(When::Cron(text.as_bytes())), ..same("s") };
    let mut says = |set: &SetSchedule<'_>, text: &str| {
        let error = w.set_schedule(set).unwrap_err();
        assert!(error.starts_with(text), "{error}");
    };
    says(&same("s"), "ERR EVERY or CRON is needed for a new schedule");
    says(&cron("* * *"), "ERR CRON is not a cron expression: it must have five or six fields");
    says(&cron("61 * * * *"), "ERR CRON is not a cron expression: ");
    says(&cron("0 0 30 2 *"), "ERR CRON names no time that ever comes");
    says(&SetSchedule { zone: Some(b"Mars/\r"), ..cron("* * * * *") }, "ERR TZ names no time zone: 'Mars/?'");
    says(&SetSchedule { zone: Some(b"UTC"), ..every("s", 5) }, "ERR TZ goes with CRON");
    assert_eq!(w.board.schedule_count(), 0);
    assert_eq!(w.delete_schedule(b"s"), refused("NOSCHEDULE no such schedule"));
    assert_eq!(w.pause_schedule(b"s", true), refused("NOSCHEDULE no such schedule"));
    assert_eq!(w.run_schedule(b"s"), refused("NOSCHEDULE no such schedule"));
}

#[test]
fn a_paused_schedule_makes_up_nothing() {
    let mut w = World::default();
    let t0 = w.now;
    w.set_schedule(&SetSchedule { backlog: Some(Backlog::All), ..every("s", 100) }).unwrap();
    w.pass(100);
    w.pause_schedule(b"s", true).unwrap();
    assert_eq!(w.schedule("s").state(), "paused");
    w.pass(1_050);
    w.pause_schedule(b"s", false).unwrap();
    w.pause_schedule(b"s", false).unwrap();
    w.pass(50);
    assert_eq!(w.children(t0), row(&[("@s@1", 100), ("@s@2", 1_200)]));
    w.is_valid();
}

#[test]
fn a_time_that_has_had_its_child_does_not_come_again() {
    let mut w = World::default();
    let t0 = w.now;
    w.set_schedule(&every("s", 100)).unwrap();
    w.pass(100);
    w.pause_schedule(b"s", true).unwrap();
    w.pause_schedule(b"s", false).unwrap();
    w.pass(0);
    w.set_schedule(&SetSchedule { start: Some(t0 + 100), ..same("s") }).unwrap();
    w.pass(0);
    assert_eq!(w.children(t0), row(&[("@s@1", 100)]));
}

#[test]
fn run_posts_one_more_and_moves_no_time() {
    let mut w = World::default();
    w.set_schedule(&SetSchedule { overlap: Some(Overlap::Skip), max: Some(Some(2)), ..every("s", 100) })
        .unwrap();
    w.now += 30;
    assert_eq!(w.run_schedule(b"s"), Ok(Some(b"@s@1".to_vec())));
    assert_eq!(w.job("@s@1").intended(), Some(w.now));
    assert_eq!(w.run_schedule(b"s"), Ok(None));
    w.cancel(b"@s@1", true).unwrap().unwrap();
    w.pass(70);
    assert_eq!((w.is("@s@2"), w.schedule("s").state()), (Some(Ready), "over"));
    w.cancel(b"@s@2", true).unwrap().unwrap();
    assert_eq!(w.run_schedule(b"s"), Ok(Some(b"@s@3".to_vec())));
    w.is_valid();
}

#[test]
fn jitter_comes_after_the_intended_time_and_merges_none() {
    let mut w = World::default();
    let t0 = w.now;
    w.set_schedule(&SetSchedule { jitter: Some(5_000), ..every("s", 1_000) }).unwrap();
    for _ in 0..2_000 {
        w.pass(10);
    }
    let children = w.children(t0);
    assert!(children.len() >= 14, "{children:?}");
    let mut late = 0;
    for (i, (id, at)) in children.iter().enumerate() {
        assert_eq!(*at, 1_000 * (i as i64 + 1));
        let by = w.job(id).posted() - t0 - at;
        assert!((0..5_010).contains(&by), "{id} by {by}");
        late += i64::from(by > 100);
    }
    assert!(late > 2);
    w.is_valid();
}

#[test]
fn a_delay_counts_from_the_intended_time() {
    let mut w = World::default();
    w.set_schedule(&SetSchedule { delay: Some(500), ..every("s", 1_000) }).unwrap();
    w.pass(1_200);
    assert_eq!((w.is("@s@1"), w.job("@s@1").due()), (Some(Scheduled), Some(w.now + 300)));
    w.pass(300);
    assert_eq!(w.is("@s@1"), Some(Ready));
    w.is_valid();
}

#[test]
fn a_schedule_made_anew_passes_over_the_ids_of_children_that_are_there() {
    let mut w = World::default();
    w.set_schedule(&SetSchedule { backlog: Some(Backlog::All), ..every("s", 100) }).unwrap();
    w.pass(300);
    w.delete_schedule(b"s").unwrap();
    w.pass(1_000);
    assert_eq!(w.board.len(), 3);
    w.set_schedule(&every("s", 100)).unwrap();
    w.pass(100);
    assert_eq!(w.is("@s@4"), Some(Ready));
    w.is_valid();
}

#[test]
fn schedules_survive_a_snapshot_and_go_on_from_there() {
    let mut w = World::default();
    let cron = Some(When::Cron(b"0 3 * * *"));
    let set =
        SetSchedule { when: cron, zone: Some(b"Europe/Berlin"), backlog: Some(Backlog::All), ..same("s") };
    w.set_schedule(&set).unwrap();
    w.reload();
    w.pass(3 * 86_400_000);
    assert_eq!(w.schedule("s").fired, 3);
    w.reload();
    w.catch_up(b"s");
    assert_eq!(w.schedule("s").fired, 3);
    w.is_valid();
}

#[test]
fn of_many_missed_times_the_last_few_are_made_up() {
    let last_two = [("@s@1", 1_000), ("@s@2", 4_000), ("@s@3", 5_000), ("@s@4", 6_000)];
    makes_up(Backlog::All, 2, &last_two);
    makes_up(Backlog::All, 4, &EACH);
    makes_up(Backlog::All, 9, &EACH);
}

#[test]
fn the_missed_times_of_an_expression_are_counted_once() {
    let mut w = World::default();
    let cron = Some(When::Cron(b"*/5 * * * *"));
    let set = SetSchedule { when: cron, backlog: Some(Backlog::All), most_missed: 3, ..same("s") };
    w.set_schedule(&set).unwrap();
    let first = w.schedule("s").next;
    w.now = first + 3_600_000 - 1;
    // One thing at a time: what is left of the backlog is not cut again, although time goes on.
    for n in 1..=3 {
        assert!(w.slice(1));
        assert_eq!(w.schedule("s").intended, Some(first + 300_000 * (8 + n)));
        w.commit();
        w.now += 1;
        w.reload();
    }
    assert_eq!(w.schedule("s").fired, 3);
    w.now += 300_000;
    while w.slice(64) {}
    assert_eq!(w.schedule("s").fired, 5);
    w.commit();
    w.is_valid();
}
