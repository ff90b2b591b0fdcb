//! A board with something of everything, its bytes, and what is done with a board that hostile
//! bytes have made. The fuzz targets use it too.
#![allow(dead_code)]

use board::*;

use crate::site::*;
use crate::world::{Bytes, World};

/// A board with jobs in every state and much in their records, and the batches that made it.
pub fn full() -> World {
    let mut w = World::default();
    for (n, state) in STATES.into_iter().enumerate() {
        w.put_in(state.name(), state);
        w.configure(Some(b"mail"), Setting::Lease, Some(5 + n as i64));
        w.now += 3;
    }
    w.configure(None, Setting::Retries, Some(4));
    w.put_with("rich", |p| {
        (p.queue, p.name) = (Some(&b"mail"[..]), Some(&b"send"[..]));
        p.meta = vec![pair(b"field", b"value"), pair(b"", b"\xff")];
        p.tags = Some(vec![b"red", b"\xff\0"]);
        p.options =
            options(|o| (o.backoff, o.expire, o.timeout) = (Some((1, 9)), Some(99_999), Some(60_000)));
    });
    w.take_id(BOB, "rich");
    let report = Report {
        progress: Some(50),
        stage: Some(b"begun"),
        payload: Some(b"other"),
        meta: vec![pair(b"k", b"v")],
        log: Some(b"line"),
    };
    let beat = (
        Speaker { worker: BOB, id: b"rich", token: None },
        Heartbeat {
            lease: Some(40),
            report: Some(report),
            output: Some(Chunk { number: 1, text: b"written" }),
        },
    );
    w.heartbeat(&beat).unwrap();
    w.now += 40;
    assert!(w.slice(5));
    w.commit();
    w.pass(0);
    w.beat(BOB, "rich", None).unwrap();
    w.gives_back(BOB, "rich", None).unwrap();
    w.post(&Post { payload: b"made", ..Post::default() }).unwrap();
    w.cancel(b"claimed", false).unwrap().unwrap();
    w.release(b"claimed").unwrap().unwrap();
    w.requeue(b"failed", To::Queue(b"mail")).unwrap().unwrap();
    w.put_replacing("trashed", b"again");
    let label = Label { tag: vec![b"t", b"u"], untag: vec![b"red"], track: Some(true) };
    w.label(b"rich", &label).unwrap().unwrap();
    w.label(b"complete", &Label { tag: Vec::new(), ..label }).unwrap().unwrap();
    let update = Update { priority: Some(3), due: Some(w.now + 500), retries: Some(2), ..Update::default() };
    w.update(b"trashed", &update).unwrap().unwrap();
    let set = SetSchedule {
        id: b"tick",
        when: Some(When::Every(10)),
        start: Some(w.now + 5),
        end: Some(Some(w.now + 60)),
        max: Some(Some(9)),
        overlap: Some(Overlap::Replace),
        backlog: Some(Backlog::All),
        jitter: Some(2),
        child: Post {
            payload: b"tock",
            queue: Some(b"mail"),
            meta: vec![pair(b"m", b"v")],
            tags: Some(vec![b"red", b"blue"]),
            ..Post::default()
        },
        ..SetSchedule::default()
    };
    w.set_schedule(&set).unwrap();
    let cron = Some(When::Cron(b"*/5 * * * *"));
    w.set_schedule(&SetSchedule { id: b"cron", when: cron, zone: Some(b"Europe/Rome"), ..set.clone() })
        .unwrap();
    w.pass(16);
    w.run_schedule(b"tick").unwrap();
    w.pause_schedule(b"cron", true).unwrap();
    w.set_schedule(&SetSchedule { id: b"gone", ..set }).unwrap();
    w.delete_schedule(b"gone").unwrap();
    w.put("gone");
    w.take_id(ANN, "gone");
    w.done(ANN, "gone", None).unwrap();
    w.put("deleted");
    assert!(w.delete(b"deleted"));
    w.take_id(ANN, "ready");
    w.put_after("blocked", &["ready", "claimed", "complete", "cancelled"], OnFailure::Hold);
    w.put_after("untold", &["cancelled", "blocked"], OnFailure::Fail);
    w.put_after("late", &["untold"], OnFailure::Cancel);
    let more = After { jobs: vec![(b"cancelled", OnFailure::Cancel)], strict: true, ..After::default() };
    w.depend(b"late", &Depend::Remove(vec![b"untold"])).unwrap().unwrap();
    w.depend(b"late", &Depend::Add(more)).unwrap().unwrap();
    for (worker, time) in [(&b"ann"[..], Some(90)), (b"gone", None), (b"cy", None)] {
        let meta = vec![pair(b"host", b"a")];
        w.register(&Register { worker, role: Some(b"mailer"), meta, time, ..Register::default() }).unwrap();
    }
    w.quiet(b"cy", true).unwrap();
    w.registers_over(b"dee", 7);
    w.bind(b"claimed", 7);
    w.put("left");
    w.take_id(b"gone", "left");
    assert!(w.deregister(b"gone", 0));
    w.pause(
        &PauseRequest { queue: Some(b"mail"), time: Some(70), release: true, ..PauseRequest::default() },
        1,
    );
    w.pause(&PauseRequest { queue: Some(b"shut"), ..PauseRequest::default() }, 1);
    tenants(&mut w);
    keys(&mut w);
    w.is_valid();
    w
}

/// Groups with settings of their own, at a limit, out of tokens, and in the middle of a round.
fn tenants(w: &mut World) {
    let queue = Some(&b"tenants"[..]);
    w.configure_group(b"tenants", b"acme", Setting::Weight, Some(3));
    w.configure_group(b"tenants", b"slow", Setting::Rate, Some(1));
    w.configure_group(b"tenants", b"one", Setting::Concurrency, Some(1));
    w.configure_group(b"tenants", b"row", Setting::Ordered, Some(1));
    w.configure(queue, Setting::Rate, Some(50));
    w.configure(queue, Setting::Burst, Some(5));
    w.configure(queue, Setting::Ageing, Some(40));
    for (n, group) in ["acme", "slow", "one", "row", "idle"].into_iter().enumerate() {
        for id in [format!("{group}-{n}"), format!("{group}-x")] {
            w.put_with(&id, |p| {
                (p.queue, p.group, p.priority) = (queue, Some(group.as_bytes()), Some(n as i32 % 2))
            });
        }
    }
    w.pause(&PauseRequest { queue, group: Some(b"idle"), time: Some(60), ..PauseRequest::default() }, 1);
    let claim = Claim { worker: BOB, queues: &[b"tenants"], ..Claim::default() };
    assert!(w.claim(&claim, 4).len() > 2);
}

/// Keys that are taken until an end, a start and a time, live jobs of a user, and limits.
fn keys(w: &mut World) {
    let key = |key, until, time| Some(TakeKey { key, until, time, on_conflict: OnConflict::Reject });
    w.put_with("key-1", |p| (p.unique, p.user) = (key(b"k", None, None), Some(&b"eve"[..])));
    w.put_with("key-2", |p| p.unique = key(b"\xff", Some(Until::Start), Some(90)));
    w.put_with("key-3", |p| p.unique = key(b"gone", None, Some(80)));
    w.delete_all(&[b"key-3"]).unwrap();
    w.put_with("key-4", |p| p.unique = key(b"left", None, Some(70)));
    w.take_id(BOB, "key-4");
    w.done(BOB, "key-4", None).unwrap();
    w.configure(Some(b"mail"), Setting::MaxJobs, Some(100));
    w.configure(None, Setting::MaxBytes, Some(1 << 30));
}

pub fn parts(board: &Board) -> Vec<Bytes> {
    let mut parts = Vec::new();
    board.snapshot(|part| parts.push(part.to_vec()));
    parts
}

pub fn load<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Result<Board, SnapshotError> {
    let mut loader = Loader::default();
    for part in parts {
        loader.part(part)?;
    }
    loader.finish()
}

/// Uses a board for all that the verbs offer: whatever it holds, nothing may panic, and it
/// stays whole.
pub fn live_on(board: Board) {
    assert_eq!(board.check(), Ok(()));
    let copy = board.copy().expect("what was loaded can be saved and loaded");
    assert_eq!(copy.digest(), board.digest());
    let mut w = World::on(board);
    if w.board.broken() {
        return;
    }
    let ids: Vec<Bytes> = w
        .board
        .list(&Page { count: 1_000, ..Page::default() })
        .0
        .into_iter()
        .map(|s| w.board.record_of(s).unwrap().id().to_vec())
        .collect();
    if w.board.check_headroom().is_err() {
        return;
    }
    for id in &ids {
        w.record(id).unwrap().history();
        let _ = w.claim_id(&Claim { worker: BOB, ..Claim::default() }, id);
        let _ = w.work(&(
            Speaker { worker: BOB, id, ..Speaker::default() },
            Consume { retain: Some(5), ..Consume::default() },
        ));
        let _ = w.cancel(id, true);
        let _ = w.requeue(id, To::Same);
        let update =
            Update { priority: Some(1), queue: Some(b"q"), due: Some(w.now + 9), ..Update::default() };
        let _ = w.update(id, &update);
    }
    // A schedule that was changed may have any number of times to make up: some of them.
    w.now += 1_000;
    for _ in 0..20 {
        w.slice(7);
    }
    w.commit();
    let schedules: Vec<Bytes> = w.board.schedules_after(None).map(|s| s.id.to_vec()).collect();
    for id in &schedules {
        let _ = w.pause_schedule(id, false);
        let _ = w.run_schedule(id);
        let set = SetSchedule { id, jitter: Some(3), ..SetSchedule::default() };
        let _ = w.set_schedule(&set);
        w.delete_schedule(id).unwrap();
    }
    w.pass(1_000_000);
    w.take_all(ANN);
    w.pass(1 << 41);
    w.is_valid();
    let all: Vec<&[u8]> = ids.iter().map(|id| &id[..]).collect();
    w.delete_all(&all).unwrap();
    w.is_valid();
    // Whatever was made of it can be saved and loaded again.
    w.reload();
    let _ = w.post(&Post { id: Some(b"last"), ..Post::default() });
    let _ = w.take(ANN);
    w.reload();
}
