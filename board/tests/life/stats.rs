//! What is counted by queue and day, over every path.

use board::*;

use crate::site::*;
use crate::world::World;

fn today(w: &World) -> Stats {
    w.board.stats(None, day_of(w.now)).unwrap_or_default()
}

/// What has been counted today.
fn counted(w: &World) -> Vec<(&'static str, u64)> {
    let stats = today(w);
    Tally::ALL.into_iter().map(|t| (t.name(), stats.count(t))).filter(|(_, n)| *n > 0).collect()
}

/// How many, the shortest and the longest.
fn span(dist: &Histogram) -> (u64, u64, u64) {
    (dist.count(), dist.min(), dist.max())
}

#[test]
fn a_job_that_comes_back_waits_from_then_on() {
    let mut w = World::default();
    w.put("job");
    w.pass(100);
    w.take_id(ANN, "job");
    w.gives_back(ANN, "job", None).unwrap();
    w.pass(7);
    w.take_id(ANN, "job");
    w.release(b"job").unwrap().unwrap();
    w.pass(1_000);
    let update = Update { priority: Some(9), ..Update::default() };
    w.update(b"job", &update).unwrap().unwrap();
    w.pass(1_000);
    w.take_id(ANN, "job");
    let stats = today(&w);
    assert_eq!((span(stats.wait()), stats.wait().sum()), ((3, 7, 2_000), 2_107));
    assert_eq!(counted(&w), [("posted", 1), ("claimed", 3), ("abandoned", 1), ("released", 1)]);
    w.is_valid();
}

#[test]
fn a_run_is_counted_when_its_worker_ends_it_in_time_or_late() {
    for late in [0, 60_000] {
        let ends: [fn(&mut World); 4] = [
            |w| assert_eq!(w.done(ANN, "job", None), DID),
            |w| assert_eq!(w.fails(ANN, "job", None), DID),
            |w| assert_eq!(w.gives_back(ANN, "job", None), DID),
            |w| assert_eq!(w.trashes(ANN, "job", None), DID),
        ];
        for end in ends {
            let mut w = World::default();
            w.put("job");
            w.take_id(ANN, "job");
            w.pass(200 + late);
            end(&mut w);
            assert_eq!(span(today(&w).run()), (1, 200 + late as u64, 200 + late as u64));
            w.is_valid();
        }
    }
}

#[test]
fn a_run_that_others_end_is_not_counted() {
    let ends: [fn(&mut World); 6] = [
        |w| w.pass(30_000),
        |w| w.release(b"job").unwrap().unwrap(),
        |w| _ = w.cancel(b"job", true).unwrap().unwrap(),
        |w| w.put_replacing("job", b"other"),
        |w| assert!(w.delete(b"job")),
        |w| w.pause(&PauseRequest { release: true, ..PauseRequest::default() }, 9),
    ];
    for end in ends {
        let mut w = World::default();
        w.put("job");
        w.take_id(ANN, "job");
        end(&mut w);
        assert_eq!(today(&w).run().count(), 0);
        w.is_valid();
    }
}

#[test]
fn a_worker_that_heeds_a_cancel_ends_its_run() {
    let mut w = World::default();
    w.put("job");
    w.take_id(ANN, "job");
    w.cancel(b"job", false).unwrap().unwrap();
    w.pass(50);
    w.gives_back(ANN, "job", None).unwrap();
    assert_eq!(span(today(&w).run()), (1, 50, 50));
    assert_eq!(counted(&w), [("posted", 1), ("claimed", 1), ("cancelled", 1)]);
}

#[test]
fn lateness_is_what_time_was_late_by() {
    let mut w = World::default();
    w.put_with("due", |p| p.due = Some(1_700_000_000_100));
    w.put("lease");
    w.take_id(ANN, "lease");
    w.now += 300;
    w.pass(0);
    w.now += 30_000;
    w.pass(0);
    let stats = today(&w);
    assert_eq!(span(stats.late(Late::Due).unwrap()), (1, 200, 200));
    assert_eq!(span(stats.late(Late::Lease).unwrap()), (1, 300, 300));
    assert_eq!(span(&stats.lateness()), (2, 200, 300));
    assert_eq!(span(stats.wait()), (1, 0, 0));
    w.take_id(ANN, "due");
    assert_eq!(span(today(&w).wait()), (2, 0, 30_200));
}

#[test]
fn a_failed_job_counts_its_kind_of_end_and_that_it_failed() {
    let mut w = World::default();
    w.configure(None, Setting::Lapses, Some(0));
    w.configure(None, Setting::Retries, Some(1));
    w.put("lapses");
    w.take_id(ANN, "lapses");
    w.pass(30_000);
    w.put_with("times out", |p| p.options.timeout = Some(10));
    w.take_id(ANN, "times out");
    w.pass(10);
    w.pass(7_000);
    w.take_id(ANN, "times out");
    w.pass(10);
    w.put_with("expires", |p| p.options.expire = Some(5));
    w.pass(5);
    let want = [("posted", 3), ("claimed", 3), ("failed", 3), ("retried", 1), ("lapsed", 1), ("timeouts", 2)];
    assert_eq!(counted(&w), [&want[..], &[("expired", 1)]].concat());
    w.is_valid();
}

#[test]
fn days_go_by_time_in_slices() {
    let mut w = World::default();
    w.configure(None, Setting::StatsDays, Some(1));
    let queues: Vec<String> = (0..100).map(|n| format!("q{n}")).collect();
    for queue in &queues {
        w.post(&Post { queue: Some(queue.as_bytes()), payload: b"", ..Post::default() }).unwrap();
    }
    let day = day_of(w.now);
    assert_eq!(w.board.stats_of(day).count(), 100);
    let rules = w.rules.clone();
    let env = w.env(&rules);
    assert_eq!(w.board.reckon(&env), i64::from(day + 1) * DAY);
    w.now += DAY;
    assert!(w.slice(30));
    assert_eq!(
        (w.board.stats_of(day).count(), w.board.stats(None, day).unwrap().count(Tally::Posted)),
        (70, 70)
    );
    w.pass(0);
    assert_eq!(w.board.days(), None);
    w.put("job");
    assert_eq!(w.board.days(), Some((day + 1, day + 1)));
    w.is_valid();
}

#[test]
fn a_queue_that_is_forgotten_between_its_jobs_keeps_its_count() {
    let mut w = World::default();
    for round in 1..4 {
        for n in 0..200 {
            let queue = format!("q{n}");
            let post = Post { queue: Some(queue.as_bytes()), payload: b"", ..Post::default() };
            let id = w.post(&post).unwrap().unwrap();
            w.delete(&id);
        }
        let day = day_of(w.now);
        assert!(w.board.stats_of(day).all(|(_, s)| s.count(Tally::Deleted) == round));
        assert_eq!(w.board.stats_of(day).count(), 200);
        w.reload();
    }
    w.is_valid();
}

#[test]
fn a_board_that_keeps_none_counts_nothing() {
    let mut w = World::default();
    w.put("job");
    w.configure(None, Setting::StatsDays, Some(0));
    w.pass(0);
    assert_eq!(w.board.days(), None);
    w.take_id(ANN, "job");
    w.gives_back(ANN, "job", None).unwrap();
    assert_eq!(w.board.days(), None);
    w.reload();
    w.pass(DAY);
    assert_eq!(w.board.days(), None);
    w.is_valid();
}

#[test]
fn statistics_that_cannot_be_are_no_snapshot() {
    let mut w = World::default();
    w.put("job");
    let mut parts: Vec<Vec<u8>> = Vec::new();
    w.board.snapshot(|part| parts.push(part.to_vec()));
    let mut whole = parts.concat();
    // The end is a tag and a map of one number; before it stands the record of the day: twice the
    // same is refused.
    let end = whole.split_off(whole.len() - 4);
    let at = whole.len() - whole.iter().rev().position(|b| *b == 10).unwrap() - 1;
    let record = whole[at..].to_vec();
    let load = |bytes: &[u8]| {
        let mut loader = Loader::default();
        loader.part(bytes).and_then(|()| loader.finish().map(|_| ()))
    };
    assert_eq!(load(&[&whole[..], &end].concat()), Ok(()));
    assert_eq!(load(&[&whole[..], &record, &end].concat()), Err(SnapshotError("statistics")));
}

#[test]
fn pace_is_that_of_the_last_minute_and_drains_what_is_ready() {
    let mut w = World::default();
    w.now = w.now / 60_000 * 60_000;
    for n in 0..90 {
        w.put(&format!("job {n}"));
    }
    w.pass(30_000);
    let pace = w.board.pace(None, w.now);
    assert_eq!((pace.arrivals, pace.completions, pace.ready), (1.5, 0.0, 90));
    assert_eq!((pace.oldest, pace.drain()), (Some(30_000), None));
    w.pass(30_000 + 45_000);
    for got in w.claim(&Claim { worker: ANN, ..Claim::default() }, 60) {
        w.work(&(Speaker { worker: ANN, id: &got.id, ..Speaker::default() }, Consume::default())).unwrap();
    }
    // A quarter of the minute before is within the last one.
    let pace = w.board.pace(Some(b"default"), w.now);
    assert_eq!((pace.arrivals, pace.completions, pace.ready), (0.375, 1.0, 30));
    assert_eq!(pace.drain(), Some(48_000));
    w.pass(120_000);
    assert_eq!(w.board.pace(None, w.now).completions, 0.0);
    assert_eq!(w.board.pace(Some(b"other"), w.now), Pace::default());
}

#[test]
fn the_oldest_ready_job_may_be_of_any_priority() {
    let mut w = World::default();
    for (n, priority) in [(0, 5), (1, -3), (2, i32::MIN), (3, i32::MAX)] {
        w.put_with(&format!("job {n}"), |p| p.priority = Some(priority));
        w.pass(10);
    }
    assert_eq!(w.board.pace(None, w.now).oldest, Some(40));
    w.take_id(ANN, "job 0");
    assert_eq!(w.board.pace(None, w.now).oldest, Some(30));
    w.put_with("grouped", |p| p.group = Some(b"ann"));
    w.pass(10);
    w.take_all(BOB);
    w.gives_back(BOB, "grouped", None).unwrap();
    assert_eq!(w.board.pace(None, w.now).oldest, Some(10));
}

#[test]
fn lateness_is_poured_out_once_and_not_on_copies() {
    let mut w = World::default();
    let due = Some(w.now + 10);
    w.put_with("due", |p| p.due = due);
    w.now += 15;
    w.pass(0);
    assert!(w.board.was_late() && !w.copy.was_late());
    let mut into = Default::default();
    w.board.take_lateness(&mut into);
    assert_eq!(into.each_ref().map(Histogram::sum), [0, 5, 0]);
    assert!(!w.board.was_late());
}

#[test]
fn the_first_moment_of_a_clock_is_a_time_as_any_other() {
    let mut w = World::default();
    w.now = 0;
    for id in ["new", "back", "again"] {
        w.put(id);
    }
    w.take_id(ANN, "back");
    w.gives_back(ANN, "back", None).unwrap();
    w.take_id(ANN, "again");
    w.fails_with(ANN, "again", None, Retry::No).unwrap();
    w.requeue(b"again", To::Same).unwrap().unwrap();
    assert_eq!(span(today(&w).wait()), (2, 0, 0));
    w.pass(1_000);
    for id in ["new", "back", "again"] {
        w.take_id(ANN, id);
    }
    let wait = today(&w);
    assert_eq!((span(wait.wait()), wait.wait().sum()), ((5, 0, 1_000), 3_000));
    w.is_valid();
}
