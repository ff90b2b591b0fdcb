//! How records of ended jobs stay, go, and are remembered.

use board::*;

use crate::site::*;
use crate::world::{Done, World};

#[test]
fn a_completed_job_goes_at_once_or_stays_when_it_has_a_result() {
    let mut w = World::default();
    w.put_in("plain", Claimed);
    w.done(ANN, "plain", None).unwrap();
    assert_eq!((w.is("plain"), w.board.tombstones()), (None, 1));
    w.put_in("rich", Claimed);
    let consume = (
        Speaker { worker: ANN, id: b"rich", ..Speaker::default() },
        Consume { result: Some(b"42"), ..Consume::default() },
    );
    w.work(&consume).unwrap();
    assert_eq!((w.is("rich"), w.job("rich").result()), (Some(Complete), Some(&b"42"[..])));
    w.pass(3_599_999);
    assert_eq!(w.is("rich"), Some(Complete));
    w.pass(1);
    assert_eq!(w.is("rich"), None);
    w.is_valid();
}

#[test]
fn the_consume_the_post_and_the_settings_say_in_this_order_how_long_a_record_stays() {
    let mut w = World::default();
    w.configure(None, Setting::RetainComplete, Some(100));
    w.put_in("board", Claimed);
    w.done(ANN, "board", None).unwrap();
    w.put_with("post", |p| p.options.retain = Some(200));
    w.take_id(ANN, "post");
    w.done(ANN, "post", None).unwrap();
    w.put_with("consume", |p| p.options.retain = Some(200));
    w.take_id(ANN, "consume");
    w.done_keeping(ANN, "consume", 300).unwrap();
    w.put_with("ever", |p| p.options.retain = Some(-1));
    w.take_id(ANN, "ever");
    w.done(ANN, "ever", None).unwrap();
    for gone in ["board", "post", "consume"] {
        w.pass(99);
        assert_eq!(w.is(gone), Some(Complete));
        w.pass(1);
        assert_eq!(w.is(gone), None);
    }
    w.pass(1 << 40);
    assert_eq!(w.is("ever"), Some(Complete));
    w.is_valid();
}

#[test]
fn failed_trashed_and_cancelled_jobs_stay_as_long_as_their_settings_say() {
    let kinds = [(Failed, 30), (Trashed, 30), (Cancelled, 1)];
    for (state, days) in kinds {
        let mut w = World::default();
        w.put_in("job", state);
        w.pass(days * 86_400_000 - 1);
        assert_eq!(w.is("job"), Some(state));
        w.pass(1);
        assert_eq!(w.is("job"), None);
        w.is_valid();
    }
}

#[test]
fn a_retention_of_nothing_drops_every_end() {
    let mut w = World::default();
    for setting in [Setting::RetainFailed, Setting::RetainTrashed, Setting::RetainCancelled] {
        w.configure(None, setting, Some(0));
    }
    w.put_in("a", Claimed);
    let token = Some(w.board.token());
    w.fails_with(ANN, "a", None, Retry::No).unwrap();
    assert_eq!(w.fails(ANN, "a", token), again(Failed));
    w.put("b");
    w.cancel(b"b", false).unwrap().unwrap();
    w.put_in("c", Claimed);
    w.trashes(ANN, "c", None).unwrap();
    assert_eq!((w.board.len(), w.board.tombstones()), (0, 3));
    assert_eq!(w.post(&Post { id: Some(b"b"), ..Post::default() }), refused("EXISTS b"));
    w.is_valid();
}

#[test]
fn the_oldest_records_go_when_there_are_too_many() {
    let mut w = World::default();
    w.configure(None, Setting::KeepFailed, Some(3));
    for n in 0..8 {
        w.put_in(&format!("j{n}"), Failed);
        w.now += 1;
    }
    assert_eq!(w.board.count(Failed), 8);
    assert!(w.board.overfull(&Rules::default()));
    assert!(w.slice(2));
    w.commit();
    assert_eq!((w.board.count(Failed), w.is("j1"), w.is("j2")), (6, None, Some(Failed)));
    w.pass(0);
    assert_eq!((w.board.count(Failed), w.is("j4"), w.is("j5")), (3, None, Some(Failed)));
    w.rule(Setting::KeepTrashed, 0);
    w.put_in("rubbish", Trashed);
    w.pass(0);
    assert_eq!(w.is("rubbish"), None);
    w.is_valid();
}

#[test]
fn tombstones_are_bounded_in_number() {
    let mut w = World::default();
    w.configure(None, Setting::Tombstones, Some(2));
    let mut tokens = Vec::new();
    for id in ["a", "b", "c"] {
        w.put(id);
        tokens.push(Some(w.take_id(ANN, id)));
        w.done(ANN, id, None).unwrap();
    }
    assert_eq!(w.done(ANN, "a", tokens[0]), refused("NOJOB no such job"));
    assert_eq!(w.done(ANN, "b", tokens[1]), again(Complete));
    w.configure(None, Setting::Tombstones, Some(0));
    w.put_in("d", Claimed);
    w.done(ANN, "d", None).unwrap();
    assert_eq!(w.board.tombstones(), 0);
    w.is_valid();
}

#[test]
fn a_record_that_outlived_the_memory_of_tombstones_leaves_none() {
    let mut w = World::default();
    w.put_in("old", Cancelled);
    w.pass(86_400_000);
    assert_eq!((w.is("old"), w.board.tombstones()), (None, 0));
    w.put("old");
}

#[test]
fn a_deleted_job_leaves_no_trace() {
    for state in STATES {
        let mut w = World::default();
        w.put_in("job", state);
        assert!(w.delete(b"job"));
        assert!(!w.delete(b"job"));
        assert_eq!((w.board.len(), w.board.tombstones(), w.board.count(state)), (0, 0, 0));
        w.put("job");
        w.is_valid();
    }
}

#[test]
fn deleting_a_job_forgets_that_an_earlier_one_of_its_id_was_done() {
    let mut w = World::default();
    w.put("job");
    let token = w.take_id(ANN, "job");
    w.done(ANN, "job", None).unwrap();
    w.put_replacing("job", b"again");
    assert!(w.delete(b"job"));
    assert_eq!(w.done(ANN, "job", Some(token)), refused("NOJOB no such job"));
    w.put("job");
    let made = w.post(&Post::default()).unwrap().unwrap();
    w.take_id(ANN, std::str::from_utf8(&made).unwrap());
    w.done(ANN, std::str::from_utf8(&made).unwrap(), None).unwrap();
    let again = Post { id: Some(&made), exists: Exists::Replace, ..Post::default() };
    w.post(&again).unwrap();
    assert!(w.delete(&made));
    assert_eq!(w.post(&Post { exists: Exists::Refuse, ..again }), Ok(Some(made)));
    w.is_valid();
}

#[test]
fn a_job_that_has_gone_can_be_forgotten_and_posted_anew() {
    let mut w = World::default();
    w.put("job");
    let token = Some(w.take_id(ANN, "job"));
    w.done(ANN, "job", token).unwrap();
    w.act(Forgotten { id: b"job" });
    w.commit();
    assert_eq!(w.done(ANN, "job", token), refused("NOJOB no such job"));
    w.put("job");
    w.reload();
    w.is_valid();
}

#[test]
fn an_empty_board_weighs_what_it_weighed_before() {
    let mut w = World::default();
    w.configure(None, Setting::Tombstones, Some(0));
    let mut round = || {
        for state in STATES {
            w.put_in(state.name(), state);
        }
        let full = w.board.bytes();
        for state in STATES {
            assert!(w.delete(state.name().as_bytes()));
        }
        (full, w.board.bytes())
    };
    let (_, before) = round();
    let (full, after) = round();
    assert!(full > before);
    assert_eq!(after, before);
}

#[test]
fn a_job_is_only_completed_in_the_queue_that_is_named() {
    let mut w = World::default();
    w.put_with("job", |p| p.queue = Some(b"mails"));
    let token = Some(w.take_id(ANN, "job"));
    let speaker = Speaker { worker: ANN, id: b"job", token };
    let consume = |only_in| Consume { only_in: Some(only_in), retain: Some(60_000), ..Consume::default() };
    assert_eq!(w.work(&(speaker, consume(b"print"))), Err("WRONGQUEUE mails".into()));
    let advance = Advance { queue: b"sent", only_in: Some(b"print"), ..Advance::default() };
    assert_eq!(w.work(&(speaker, advance)), Err("WRONGQUEUE mails".into()));
    assert_eq!(w.is("job"), Some(Claimed));
    let meta = vec![pair(b"to", b"ann")];
    assert_eq!(w.work(&(speaker, Consume { meta, ..consume(b"mails") })), DID);
    assert_eq!(w.job("job").meta().collect::<Vec<_>>(), [(&b"to"[..], &b"ann"[..])]);
    // Sent again, it is answered as before, whatever queue it names.
    assert_eq!(w.work(&(speaker, consume(b"print"))), Ok(Done::Again(Complete)));
    w.is_valid();
}

#[test]
fn a_job_takes_fields_along_to_its_next_queue() {
    let mut w = World::default();
    w.put("job");
    w.take_id(ANN, "job");
    let advance = Advance { queue: b"next", meta: vec![pair(b"size", b"3")], ..Advance::default() };
    w.work(&(Speaker { worker: ANN, id: b"job", ..Speaker::default() }, advance)).unwrap();
    assert_eq!(w.job("job").meta().collect::<Vec<_>>(), [(&b"size"[..], &b"3"[..])]);
    w.is_valid();
}
