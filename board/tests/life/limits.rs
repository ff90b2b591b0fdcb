//! On whose behalf jobs are posted, and limits on posting.

use board::*;

use crate::site::*;
use crate::world::World;

const EVE: Option<&[u8]> = Some(b"eve");
const FAY: Option<&[u8]> = Some(b"fay");

/// A board with a job of eve's.
fn of_eve() -> World {
    let mut w = World::default();
    w.put_with("job", |p| p.user = EVE);
    w
}

#[test]
fn a_replacing_post_keeps_the_user_unless_it_names_another() {
    let mut w = of_eve();
    w.put_replacing("job", b"other");
    assert_eq!(w.job("job").user(), EVE);
    let exists = Exists::Replace;
    w.post(&Post { id: Some(b"job"), exists, user: FAY, ..Post::default() }).unwrap();
    assert_eq!(w.job("job").user(), FAY);
    w.reload();
    assert_eq!(w.job("job").user(), FAY);
    w.is_valid();
}

#[test]
fn a_child_has_the_user_of_its_schedule() {
    let mut w = World::default();
    let when = Some(When::Every(100));
    let child = Post { user: EVE, ..Post::default() };
    w.set_schedule(&SetSchedule { id: b"s", when, child, ..SetSchedule::default() }).unwrap();
    w.set_schedule(&SetSchedule { id: b"s", ..SetSchedule::default() }).unwrap();
    w.pass(100);
    assert_eq!(w.job("@s@1").user(), EVE);
}

#[test]
fn a_cancel_by_a_user_is_of_that_users_jobs_only() {
    let mut w = of_eve();
    w.put("nobodys");
    assert_eq!(w.cancel_by(b"job", false, FAY), Some(refused("NOTOWNER eve")));
    assert_eq!(w.cancel_by(b"nobodys", true, FAY), Some(refused("NOTOWNER -")));
    assert_eq!(w.is("job"), Some(Ready));
    assert_eq!(w.cancel_by(b"job", false, EVE), Some(Ok("cancelled")));
    assert_eq!(w.cancel_by(b"job", false, EVE), Some(Ok("already")));
    assert_eq!(w.cancel_by(b"job", false, FAY), Some(refused("NOTOWNER eve")));
}

// --- live jobs of a user ---

fn with_most<'p>(id: &'p str, most: i64) -> Post<'p> {
    let id = Some(id.as_bytes());
    Post { id, payload: b"work", user: EVE, name: Some(b"export"), most_live: Some(most), ..Post::default() }
}

fn live(w: &World) -> u64 {
    w.is_valid();
    w.board.live_of(b"eve", b"export")
}

#[test]
fn a_user_has_no_more_live_jobs_of_a_name_than_a_post_allows() {
    let mut w = World::default();
    w.post(&with_most("a", 2)).unwrap();
    w.post(&with_most("b", 2)).unwrap();
    assert_eq!(w.post(&with_most("c", 2)), refused("LIMIT maxlive"));
    assert!(w.post(&Post { name: Some(b"import"), ..with_most("d", 1) }).is_ok());
    assert!(w.post(&Post { user: FAY, ..with_most("e", 1) }).is_ok());
    assert_eq!(live(&w), 2);
    w.reload();
    assert_eq!(w.post(&with_most("c", 2)), refused("LIMIT maxlive"));
}

#[test]
fn every_end_makes_room_and_every_way_back_takes_it() {
    for state in ENDED {
        let mut w = World::default();
        w.put_with("job", |p| (p.user, p.name) = (EVE, Some(&b"export"[..])));
        w.take_id(ANN, "job");
        assert_eq!(live(&w), 1);
        match state {
            Complete => drop(w.done_keeping(ANN, "job", -1)),
            Failed => drop(w.fails_with(ANN, "job", None, Retry::No)),
            Cancelled => drop(w.cancel(b"job", true)),
            _ => drop(w.trashes(ANN, "job", None)),
        }
        assert_eq!((w.is("job"), live(&w)), (Some(state), 0));
        if state != Complete {
            w.requeue(b"job", To::Same).unwrap().unwrap();
            assert_eq!(live(&w), 1);
        }
        w.delete(b"job");
        assert_eq!(live(&w), 0);
    }
}

#[test]
fn a_replacing_post_does_not_count_the_job_that_it_replaces() {
    let mut w = World::default();
    w.post(&with_most("a", 1)).unwrap();
    let exists = Exists::Replace;
    assert!(w.post(&Post { exists, ..with_most("a", 1) }).is_ok());
    w.post(&Post { exists, name: Some(b"import"), ..with_most("a", 1) }).unwrap();
    assert_eq!((live(&w), w.board.live_of(b"eve", b"import")), (0, 1));
    w.post(&with_most("b", 1)).unwrap();
    assert_eq!(w.post(&Post { exists, ..with_most("a", 1) }), refused("LIMIT maxlive"));
}

// --- jobs and bytes ---

const MAIL: Option<&[u8]> = Some(b"mail");

#[test]
fn a_board_and_a_queue_bound_each_their_own_total() {
    let mut w = World::default();
    w.configure(None, Setting::MaxJobs, Some(3));
    w.configure(MAIL, Setting::MaxJobs, Some(1));
    w.put_with("a", |p| p.queue = MAIL);
    assert_eq!(w.post(&Post { queue: MAIL, ..Post::default() }), refused("LIMIT max-jobs"));
    w.put("b");
    w.put("c");
    assert_eq!(w.post(&Post::default()), refused("LIMIT max-jobs"));
    assert_eq!(w.board.setting(Scope::Queue(b"other"), Setting::MaxJobs, &w.rules).0, -1);
    let moved = Update { queue: MAIL, ..Update::default() };
    assert_eq!(w.update(b"b", &moved), Some(refused("LIMIT max-jobs")));
    assert_eq!(w.update(b"a", &moved), Some(Ok(())));
    w.cancel(b"b", false);
    w.put("d");
    assert_eq!(w.requeue(b"b", To::Same), Some(refused("LIMIT max-jobs")));
    // A queue that is full loses nothing when its limit falls, and a replacing post goes on.
    w.configure(None, Setting::MaxJobs, Some(0));
    w.put_replacing("d", b"other");
    w.take_all(ANN);
    w.done(ANN, "d", None).unwrap();
    w.is_valid();
}

#[test]
fn a_payload_with_which_a_job_goes_back_counts_against_the_bytes() {
    let mut w = World::default();
    w.put("a");
    w.take_all(ANN);
    w.fails_with(ANN, "a", None, Retry::No).unwrap();
    let most = w.board.record_bytes() as i64 + 100;
    w.configure(None, Setting::MaxBytes, Some(most));
    let with = |payload| Requeue { payload: Some(payload), ..Requeue::default() };
    assert_eq!(w.requeue_with(b"a", &with(&[b'x'; 200])), Some(refused("LIMIT max-bytes")));
    assert_eq!(w.requeue_with(b"a", &with(&[b'x'; 50])), Some(Ok(())));
    w.is_valid();
}

/// A job of that group in the queue `mail`.
fn of_group<'p>(id: &'p str, group: &'p [u8]) -> Post<'p> {
    Post { id: Some(id.as_bytes()), queue: MAIL, group: Some(group), ..Post::default() }
}

#[test]
fn a_group_bounds_its_own_total_and_all_groups_of_a_queue_each_of_theirs() {
    let mut w = World::default();
    w.configure_group(b"mail", ALL_GROUPS, Setting::MaxJobs, Some(1));
    w.configure_group(b"mail", b"big", Setting::MaxJobs, Some(2));
    let refusal = || refused::<Option<Vec<u8>>>("LIMIT max-jobs");
    w.post(&of_group("a", b"small")).unwrap();
    assert_eq!(w.post(&of_group("b", b"small")), refusal());
    w.post(&of_group("b", b"big")).unwrap();
    w.post(&of_group("c", b"big")).unwrap();
    assert_eq!(w.post(&of_group("d", b"big")), refusal());
    w.reload();
    assert_eq!(w.post(&of_group("d", b"big")), refusal());
    // Those without a group, and of the same name in another queue, are free.
    w.put_with("plain", |p| p.queue = MAIL);
    w.put_with("e", |p| p.group = Some(b"small"));
    let moved = Update { queue: MAIL, ..Update::default() };
    assert_eq!(w.update(b"e", &moved), Some(refused("LIMIT max-jobs")));
    // A job that stays, or leaves for another group, makes room.
    let exists = Exists::Replace;
    w.post(&Post { exists, ..of_group("a", b"small") }).unwrap();
    w.configure_group(b"mail", b"big", Setting::MaxJobs, Some(3));
    w.post(&Post { exists, ..of_group("a", b"big") }).unwrap();
    assert_eq!(w.update(b"e", &moved), Some(Ok(())));
    w.cancel(b"e", false);
    w.post(&of_group("f", b"small")).unwrap();
    assert_eq!(w.requeue(b"e", To::Same), Some(refused("LIMIT max-jobs")));
    w.take_id(ANN, "f");
    w.done(ANN, "f", None).unwrap();
    w.requeue(b"e", To::Same).unwrap().unwrap();
    w.configure_group(b"mail", ALL_GROUPS, Setting::MaxJobs, None);
    w.post(&of_group("g", b"small")).unwrap();
    w.is_valid();
}

#[test]
fn a_flow_and_a_schedule_are_bounded_by_groups() {
    let mut w = World::default();
    w.configure_group(b"mail", ALL_GROUPS, Setting::MaxJobs, Some(1));
    let node = |id: &'static str| Node { label: id.as_bytes(), post: of_group(id, b"small") };
    assert!(w.flow(vec![node("a"), node("b")]).is_err());
    assert!(w.board.is_empty());
    let when = Some(When::Every(100));
    let child = Post { queue: MAIL, group: Some(b"small"), ..Post::default() };
    w.set_schedule(&SetSchedule { id: b"s", when, child, ..SetSchedule::default() }).unwrap();
    w.pass(100);
    w.pass(100);
    assert_eq!((w.is("@s@1"), w.is("@s@2")), (Some(Ready), None));
    assert_eq!(w.board.schedule(b"s").unwrap().refused, 1);
}

#[test]
fn bytes_are_those_of_all_records_and_follow_their_queue() {
    let mut w = World::default();
    w.put_with("a", |p| (p.queue, p.payload) = (MAIL, &[7; 1_000]));
    let bytes = w.board.record_bytes() as i64;
    assert_eq!((bytes, w.board.record_bytes_in(b"mail") as i64), (64 + 2 + 1_000, bytes));
    w.configure(None, Setting::MaxBytes, Some(2 * bytes));
    w.configure(Some(b"sms"), Setting::MaxBytes, Some(bytes - 1));
    let other = Post { id: Some(b"b"), payload: &[8; 1_001], ..Post::default() };
    assert_eq!(w.post(&other), refused("LIMIT max-bytes"));
    let sms = Update { queue: Some(b"sms"), ..Update::default() };
    assert_eq!(w.update(b"a", &sms), Some(refused("LIMIT max-bytes")));
    assert!(w.post(&Post { payload: &[8; 1_000], ..other.clone() }).is_ok());
    let more = Post { id: Some(b"a"), exists: Exists::Replace, payload: &[7; 1_001], ..Post::default() };
    assert_eq!(w.post(&more), refused("LIMIT max-bytes"));
    // Workers are never refused.
    w.take_id(ANN, "a");
    let report = Report { payload: Some(&[9; 5_000]), ..Report::default() };
    let beat = (
        Speaker { worker: ANN, id: b"a", ..Speaker::default() },
        Heartbeat { report: Some(report), ..Heartbeat::default() },
    );
    w.heartbeat(&beat).unwrap();
    w.done(ANN, "a", None).unwrap();
    assert_eq!(w.board.record_bytes_in(b"mail"), 0);
    w.reload();
    assert_eq!(w.post(&Post { payload: &[8; 1_001], ..Post::default() }), refused("LIMIT max-bytes"));
    w.is_valid();
}

#[test]
fn a_time_whose_child_would_exceed_a_limit_is_passed_over() {
    let mut w = World::default();
    w.configure(None, Setting::MaxJobs, Some(1));
    let (when, backlog) = (Some(When::Every(100)), Some(Backlog::All));
    w.set_schedule(&SetSchedule { id: b"s", when, backlog, ..SetSchedule::default() }).unwrap();
    w.pass(100);
    w.pass(100_000);
    assert_eq!((w.is("@s@1"), w.is("@s@2")), (Some(Ready), None));
    let schedule = w.board.schedule(b"s").unwrap();
    assert_eq!((schedule.refused, schedule.fired), (1, 1));
    assert_eq!(w.run_schedule(b"s"), refused("LIMIT max-jobs"));
    w.delete(b"@s@1");
    w.pass(100);
    assert_eq!(w.is("@s@2"), Some(Ready));
}

// --- room for posts that wait ---

/// What a post of this payload to a queue and a group lacks.
fn lack(
    w: &mut World,
    queue: Option<&[u8]>,
    group: Option<&[u8]>,
    payload: &[u8],
) -> Result<Option<Lack>, Refusal> {
    let post = Post { queue, group, payload, ..Post::default() };
    let rules = w.rules.clone();
    let env = w.env(&rules);
    let answer = w.board.post_unbounded(&env, &post, 0)?;
    let (mut growth, mut whole) = (Growth::default(), Growth::default());
    w.board.grow(&mut growth, &post, &answer);
    w.board.grow_whole(&mut whole, &post, &answer);
    w.board.lack(&growth, &whole)
}

fn level(w: &mut World, group: Option<&[u8]>) -> Option<RoomLevel> {
    lack(w, MAIL, group, b"x").unwrap().map(|lack| lack.level)
}

#[test]
fn a_post_waits_in_the_narrowest_place_that_is_full() {
    let mut w = World::default();
    assert_eq!(level(&mut w, None), None);
    w.configure(None, Setting::MaxJobs, Some(2));
    w.put("a");
    w.post(&of_group("b", b"small")).unwrap();
    assert_eq!(level(&mut w, Some(b"small")), Some(RoomLevel::Board));
    w.configure(MAIL, Setting::MaxJobs, Some(1));
    assert_eq!(level(&mut w, Some(b"small")), Some(RoomLevel::Queue));
    w.configure_group(b"mail", ALL_GROUPS, Setting::MaxJobs, Some(1));
    assert_eq!(level(&mut w, Some(b"small")), Some(RoomLevel::Group));
    assert_eq!(level(&mut w, Some(b"big")), Some(RoomLevel::Queue));
    let found = lack(&mut w, MAIL, Some(b"small"), b"x").unwrap().unwrap();
    assert_eq!(
        (found.bound, &found.queue[..], found.group.as_deref()),
        ("max-jobs", &b"mail"[..], Some(&b"small"[..]))
    );
}

#[test]
fn a_post_that_can_never_fit_does_not_wait() {
    let mut w = World::default();
    w.configure(None, Setting::MaxBytes, Some(500));
    w.put_with("a", |p| p.payload = &[7; 200]);
    assert_eq!(lack(&mut w, None, None, &[8; 300]).unwrap().map(|lack| lack.bound), Some("max-bytes"));
    assert_eq!(lack(&mut w, None, None, &[8; 500]), Err(Refusal::Limit("max-bytes")));
    w.configure_group(b"mail", b"none", Setting::MaxJobs, Some(0));
    assert_eq!(lack(&mut w, MAIL, Some(b"none"), b"x"), Err(Refusal::Limit("max-jobs")));
}

#[test]
fn room_that_becomes_free_is_reported_while_somebody_waits() {
    let mut w = World::default();
    w.post(&of_group("a", b"small")).unwrap();
    w.put("b");
    w.cancel(b"b", false);
    assert!(!w.board.has_freed());
    w.board.watch_room(true);
    w.take_id(ANN, "a");
    assert!(!w.board.has_freed(), "a claim makes no room");
    w.done(ANN, "a", None).unwrap();
    assert!(w.board.has_freed());
    let freed = w.board.freed();
    assert_eq!(freed.queues.iter().map(|name| &name[..]).collect::<Vec<_>>(), [b"mail"]);
    assert_eq!(freed.groups.len(), 1);
    assert!(!w.board.has_freed());
    w.configure(None, Setting::MaxBytes, Some(500));
    assert!(w.board.freed().anywhere);
}
