//! Bytes from elsewhere: snapshots and batches that are cut, changed or made up. Nothing
//! panics, nothing takes memory on the word of a length, and what loads is a whole board.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

#[path = "life/site.rs"]
mod site;
mod world;

use board::*;
use proptest::collection::vec;
use proptest::prelude::*;

use site::*;
use world::{Bytes, World};

/// A board with jobs in every state and much in their records, and the batches that made it.
fn full() -> World {
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
    let beat = Heartbeat { worker: BOB, id: b"rich", token: None, lease: Some(40), report: Some(report) };
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
    w.requeue(b"failed", Some(b"mail")).unwrap().unwrap();
    w.put_replacing("trashed", b"again");
    let label = Label { tag: vec![b"t", b"u"], untag: vec![b"red"], track: Some(true) };
    w.label(b"rich", &label).unwrap().unwrap();
    w.label(b"complete", &Label { tag: Vec::new(), ..label }).unwrap().unwrap();
    let update = Update { priority: Some(3), due: Some(w.now + 500), retries: Some(2), ..Update::default() };
    w.update(b"trashed", &update).unwrap().unwrap();
    let set = SetSchedule {
        id: b"tick",
        payload: b"tock",
        when: Some(When::Every(10)),
        start: Some(w.now + 5),
        end: Some(Some(w.now + 60)),
        max: Some(Some(9)),
        overlap: Some(Overlap::Replace),
        backlog: Some(Backlog::All),
        jitter: Some(2),
        queue: Some(b"mail"),
        meta: vec![pair(b"m", b"v")],
        tags: Some(vec![b"red", b"blue"]),
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
    let more = After { jobs: vec![(b"cancelled", OnFailure::Cancel)], strict: true };
    w.depend(b"late", &Depend::Remove(vec![b"untold"])).unwrap().unwrap();
    w.depend(b"late", &Depend::Add(more)).unwrap().unwrap();
    for (worker, time) in [(&b"ann"[..], Some(90)), (b"gone", None), (b"cy", None)] {
        let meta = vec![pair(b"host", b"a")];
        w.register(&Register { worker, role: Some(b"mailer"), meta, time, session: false }).unwrap();
    }
    w.quiet(b"cy", true).unwrap();
    w.registers_over(b"dee", 7);
    w.bind(b"claimed", 7);
    w.put("left");
    w.take_id(b"gone", "left");
    assert!(w.deregister(b"gone", 0));
    w.pause(&Halt { queue: Some(b"mail"), time: Some(70), release: true, group: None }, 1);
    w.pause(&Halt { queue: Some(b"shut"), ..Halt::default() }, 1);
    w.sound();
    w
}

fn parts(board: &Board) -> Vec<Bytes> {
    let mut parts = Vec::new();
    board.snapshot(|part| parts.push(part.to_vec()));
    parts
}

fn load<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Result<Board, Damage> {
    let mut loader = Loader::default();
    for part in parts {
        loader.part(part)?;
    }
    loader.finish()
}

/// The most memory that this process has had, in bytes; 0 where nobody tells.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap_or("0");
    line.split_whitespace().next().and_then(|n| n.parse::<usize>().ok()).unwrap_or(0) * 1024
}

/// Uses a board for all that the verbs offer: whatever it holds, nothing may panic, and it
/// stays whole.
fn live_on(board: Board) {
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
    if w.board.token() > 1 << 52 || w.board.revision() > 1 << 47 {
        return;
    }
    for id in &ids {
        w.record(id).unwrap().history();
        let _ = w.claim_id(&Claim { worker: BOB, ..Claim::default() }, id);
        let _ = w.consume(&Consume { worker: BOB, id, retain: Some(5), ..Consume::default() });
        let _ = w.cancel(id, true);
        let _ = w.requeue(id, None);
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
        let set = SetSchedule { id, payload: b"p", jitter: Some(3), ..SetSchedule::default() };
        let _ = w.set_schedule(&set);
        w.delete_schedule(id).unwrap();
    }
    w.pass(1_000_000);
    w.take_all(ANN);
    w.pass(1 << 41);
    w.sound();
    let all: Vec<&[u8]> = ids.iter().map(|id| &id[..]).collect();
    w.delete_all(&all).unwrap();
    w.sound();
}

#[test]
fn a_snapshot_cut_at_any_byte_is_refused() {
    let w = full();
    let parts = parts(&w.board);
    let bytes: Bytes = parts.concat();
    assert_eq!(load([&bytes[..]]).unwrap().digest(), w.board.digest());
    for at in 0..bytes.len() {
        assert!(load([&bytes[..at]]).is_err(), "cut at {at}");
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(load([&longer[..]]).is_err());
}

#[test]
fn the_parts_of_a_snapshot_may_come_in_other_pieces_but_not_in_another_order() {
    let w = full();
    let mut all = parts(&w.board);
    let whole = load(all.iter().map(|p| &p[..])).unwrap();
    assert_eq!(whole.digest(), w.board.digest());
    let two = [all.clone(), all.clone()].concat();
    assert!(load(two.iter().map(|p| &p[..])).is_err());
    assert!(load([]).is_err() && load([&b""[..]]).is_err());
    all.reverse();
    assert!(all.len() == 1 || load(all.iter().map(|p| &p[..])).is_err());
}

#[test]
fn every_byte_of_a_snapshot_may_be_another() {
    let w = full();
    let bytes: Bytes = parts(&w.board).concat();
    let mut loaded = 0;
    for at in 0..bytes.len() {
        for change in [0x01, 0x80, 0xff, bytes[at] ^ 0xc0, bytes[at] ^ 0xdd] {
            let mut changed = bytes.clone();
            changed[at] ^= change;
            if let Ok(board) = load([&changed[..]]) {
                loaded += 1;
                live_on(board);
            }
        }
    }
    assert!(loaded > 0);
}

/// Big numbers put where the format has numbers, lengths and nothing of the sort.
fn mutated(bytes: &[u8], changes: &[(usize, u8, u8)]) -> Bytes {
    let mut bytes = bytes.to_vec();
    for (at, how, with) in changes {
        if bytes.is_empty() {
            break;
        }
        let at = at % bytes.len();
        match how % 5 {
            0 => bytes[at] = *with,
            1 => bytes.insert(at, *with),
            2 => drop(bytes.remove(at)),
            3 => bytes.truncate(at.max(1)),
            _ => {
                let wide = [0xcf, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, *with];
                bytes.splice(at..at + 1, wide);
            }
        }
    }
    bytes
}

/// Applies a batch to a whole board; what it then is must be broken or whole.
fn replayed(w: &World, batch: &[u8]) {
    let mut board = w.board.copy().unwrap();
    match board.replay(batch) {
        Applied::Malformed | Applied::Skipped => assert_eq!(board.digest(), w.board.digest()),
        Applied::Broken => assert!(board.broken()),
        Applied::Done => live_on(board),
    }
}

fn batch(w: &World, effects: &[Effect<'_>]) -> Bytes {
    let mut batch = Batch::default();
    batch.begin(w.board.revision(), w.now);
    effects.iter().for_each(|effect| batch.push(effect));
    batch.bytes().to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_are_no_snapshot_and_no_batch(bytes in vec(any::<u8>(), 0..300), cut in any::<bool>()) {
        let mut loader = Loader::default();
        prop_assert!(loader.part(&bytes).is_err());
        let mut board = Board::default();
        let batch = if cut { bytes } else { [&[0x93, 0, 0, 1][..], &bytes].concat() };
        let _ = board.replay(&batch);
        prop_assert!(board.broken() || board.check().is_ok());
    }

    #[test]
    fn changed_snapshots_load_whole_or_not_at_all(
        changes in vec((any::<usize>(), any::<u8>(), any::<u8>()), 1..6),
    ) {
        let w = full();
        let bytes = mutated(&parts(&w.board).concat(), &changes);
        if let Ok(board) = load([&bytes[..]]) {
            live_on(board);
        }
    }
}

#[test]
fn changed_batches_break_a_copy_or_leave_it_whole() {
    let sent = full().sent;
    // A copy that is just about to get each batch.
    let mut w = World::default();
    for bytes in &sent {
        for at in 0..bytes.len() {
            replayed(&w, &bytes[..at]);
            for with in [0x00, 0x01, 0x7f, 0x90, 0xc0, 0xc4, 0xcf, 0xd3, 0xff] {
                replayed(&w, &mutated(bytes, &[(at, 0, with)]));
            }
            replayed(&w, &mutated(bytes, &[(at, 4, 0xff)]));
        }
        assert_eq!(w.board.replay(bytes), Applied::Done);
    }
}

#[test]
fn a_batch_cut_at_any_byte_breaks_the_copy() {
    let w = World::default();
    let effects = [
        Configured { queue: None, setting: Setting::Lease, value: Some(9) }.into(),
        Configured { queue: Some(b"mail"), setting: Setting::Jitter, value: Some(3) }.into(),
    ];
    let bytes = batch(&w, &effects);
    for at in 0..bytes.len() {
        let mut board = Board::default();
        let done = board.replay(&bytes[..at]);
        assert!(matches!(done, Applied::Broken | Applied::Malformed), "cut at {at}: {done:?}");
    }
}

#[test]
fn effects_that_do_not_fit_break_the_copy() {
    let w = full();
    let slot = |id: &str| w.board.find(id.as_bytes()).unwrap();
    let claimed =
        |slot, token| Effect::from(Claimed { slot, worker: b"eve", token, lease: 9, timeout: -1, grace: 0 });
    let fresh = w.board.token() + 1;
    let cases: Vec<Effect<'_>> = vec![
        claimed(999, fresh),
        claimed(slot("ready"), fresh),
        claimed(slot("scheduled"), fresh),
        claimed(slot("complete"), fresh),
        claimed(slot("failed"), w.board.token()),
        claimed(slot("failed"), 1 << 53),
        claimed(slot("failed"), u64::MAX),
        Claimed { slot: slot("failed"), worker: b"", token: fresh, lease: 9, timeout: -1, grace: 0 }.into(),
        Claimed { slot: slot("failed"), worker: b"eve", token: fresh, lease: 9, timeout: -1, grace: -1 }
            .into(),
        Claimed { slot: slot("failed"), worker: b"eve", token: fresh, lease: 0, timeout: -1, grace: 0 }
            .into(),
        Claimed {
            slot: slot("failed"),
            worker: b"eve",
            token: fresh,
            lease: i64::MIN,
            timeout: -1,
            grace: 0,
        }
        .into(),
        Deleted { slot: 999 }.into(),
        Deleted { slot: u32::MAX }.into(),
        Configured { queue: None, setting: Setting::Lease, value: Some(0) }.into(),
        Configured { queue: Some(b"mail"), setting: Setting::KeepFailed, value: Some(1) }.into(),
        Configured { queue: Some(b""), setting: Setting::Lease, value: Some(1) }.into(),
    ];
    for effect in cases {
        let mut board = w.board.copy().unwrap();
        assert_eq!(board.replay(&batch(&w, std::slice::from_ref(&effect))), Applied::Broken, "{effect:?}");
        assert!(board.broken());
        let mut next = Batch::default();
        next.begin(board.revision(), w.now);
        assert_eq!(board.replay(next.bytes()), Applied::Broken);
    }
}

/// Every effect that a verb decides on one board, applied to another on which the same slots
/// hold jobs in every other state.
#[test]
fn effects_of_another_board_break_or_fit_and_never_panic() {
    let sent = full().sent;
    for shift in 0..STATES.len() {
        let mut other = World::default();
        for n in 0..STATES.len() {
            let state = STATES[(n + shift) % STATES.len()];
            other.put_in(state.name(), state);
        }
        for bytes in &sent {
            // The same effects under this board's revision.
            let mut bytes = bytes.clone();
            bytes[2..10].copy_from_slice(&other.board.revision().to_be_bytes());
            replayed(&other, &bytes);
        }
    }
}

#[test]
fn a_broken_copy_says_so_in_its_snapshot() {
    let w = full();
    let mut board = w.board.copy().unwrap();
    assert_eq!(board.replay(&batch(&w, &[Deleted { slot: 999 }.into()])), Applied::Broken);
    if let Ok(loaded) = load(parts(&board).iter().map(|p| &p[..])) {
        assert!(loaded.broken());
    }
}

#[test]
fn clocks_out_of_range_are_no_batch() {
    for now in [-1, i64::MIN, NEVER + 1, i64::MAX] {
        let mut batch = Batch::default();
        batch.begin(0, now);
        batch.push(&Configured { queue: None, setting: Setting::Lease, value: Some(9) }.into());
        assert_eq!(Board::default().replay(batch.bytes()), Applied::Malformed);
    }
}

#[test]
fn lengths_and_slots_that_promise_much_cost_little() {
    let before = peak();
    let w = full();
    let bytes: Bytes = parts(&w.board).concat();
    let promises: [&[u8]; 6] = [
        &[0xdd, 0xff, 0xff, 0xff, 0xff],
        &[0xdf, 0xff, 0xff, 0xff, 0xff],
        &[0xc6, 0xff, 0xff, 0xff, 0xff],
        &[0xdb, 0xff, 0xff, 0xff, 0xff],
        &[0xce, 0x3f, 0xff, 0xff, 0xff],
        &[0xc9, 0xff, 0xff, 0xff, 0xff, 0x01],
    ];
    for at in 0..bytes.len() {
        for promise in promises {
            let mut changed = bytes.clone();
            changed.splice(at..at + 1, promise.iter().copied());
            if let Ok(board) = load([&changed[..]]) {
                board.check().unwrap();
            }
        }
    }
    for bytes in [
        &[0x93, 0, 0, 0xce, 0xff, 0xff, 0xff, 0xff][..],
        &[0x93, 0, 0, 0xce, 0xff, 0xff, 0xff, 0xff, 1, 0xdd],
    ] {
        assert_eq!(Board::default().replay(bytes), Applied::Broken);
    }
    assert!(peak().saturating_sub(before) < 200 << 20, "{} MB", (peak() - before) >> 20);
}

#[test]
fn deep_nesting_is_refused() {
    for marker in [0x91u8, 0x81, 0xc7] {
        let deep = vec![marker; 1 << 20];
        assert!(load([&[&[1][..], &deep].concat()[..]]).is_err());
        let _ = Board::default().replay(&[&[0x93, 0, 0, 1, 1][..], &deep].concat());
    }
}
