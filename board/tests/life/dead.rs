//! Dead letters: where a job goes in place of failing for good, and how it comes back.

use board::*;

use crate::site::*;
use crate::world::World;

const MAIL: &[u8] = b"mail";
const GRAVE: &[u8] = b"grave";

/// A board whose queue `mail` has a dead queue, and a job there that is out of retries.
fn posted(change: impl FnOnce(&mut Post<'_>)) -> World {
    let mut w = World::default();
    w.name_dead_queue(MAIL, Some(GRAVE));
    w.put_with("a", |p| {
        (p.queue, p.options.retries) = (Some(MAIL), Some(0));
        change(p);
    });
    w
}

fn dies(w: &mut World) {
    w.take_id(ANN, "a");
    w.fails(ANN, "a", None).unwrap();
}

fn dead(change: impl FnOnce(&mut Post<'_>)) -> World {
    let mut w = posted(change);
    dies(&mut w);
    w
}

fn place(w: &World) -> (State, Vec<u8>) {
    (w.job("a").state(), w.job("a").queue().to_vec())
}

fn origin(w: &World) -> Option<(Vec<u8>, u32)> {
    w.job("a").origin().map(|origin| (origin.queue.to_vec(), origin.attempts))
}

#[test]
fn a_job_that_fails_for_good_moves_with_what_is_known_of_it() {
    let w = dead(|_| {});
    assert_eq!(place(&w), (Ready, GRAVE.to_vec()));
    assert_eq!(origin(&w), Some((MAIL.to_vec(), 1)));
    let job = w.job("a");
    assert_eq!((job.kind(), job.message()), (Some(&b"io"[..]), Some(&b"disk full"[..])));
    assert_eq!((job.attempt(), job.left(&w.rules)), (0, 0));
    assert_eq!(w.board.count(State::Failed), 0);
    w.is_valid();
}

#[test]
fn it_dies_by_a_lost_lease_a_timeout_and_its_age_too() {
    let lapse = |p: &mut Post<'_>| p.options.lapses = Some(0);
    let timeout = |p: &mut Post<'_>| p.options.timeout = Some(10);
    for change in [lapse, timeout] {
        let mut w = posted(change);
        w.take_id(ANN, "a");
        w.pass(100_000);
        assert_eq!(place(&w), (Ready, GRAVE.to_vec()));
        // Whoever held it is too late.
        assert!(w.done(ANN, "a", None).is_err());
    }
    let mut w = posted(|p| p.options.expire = Some(1_000));
    w.pass(1_000);
    assert_eq!(place(&w), (Ready, GRAVE.to_vec()));
    w.pass(1_000_000);
    assert_eq!(place(&w), (Ready, GRAVE.to_vec()), "it expires once");
}

#[test]
fn neither_a_cancel_nor_a_trash_nor_a_dependency_moves_it() {
    let mut w = posted(|_| {});
    w.cancel(b"a", false).unwrap().unwrap();
    assert_eq!(place(&w), (Cancelled, MAIL.to_vec()));
    let mut w = posted(|_| {});
    w.put("first");
    w.put_with("b", |p| {
        p.queue = Some(MAIL);
        p.after = Some(After { jobs: vec![(b"first", OnFailure::Fail)], strict: true, ..After::default() });
    });
    w.take_id(ANN, "first");
    w.fails_with(ANN, "first", None, Retry::No).unwrap();
    w.pass(0);
    assert_eq!((w.is("b"), w.job("b").queue()), (Some(Failed), MAIL));
}

#[test]
fn it_may_be_done_there_after_all_and_fails_there_for_good() {
    let mut w = dead(|_| {});
    w.take_id(BOB, "a");
    w.done(BOB, "a", None).unwrap();
    assert_eq!(w.is("a"), None);
    let mut w = dead(|_| {});
    w.name_dead_queue(GRAVE, Some(b"deeper"));
    w.take_id(BOB, "a");
    w.fails(BOB, "a", None).unwrap();
    assert_eq!(place(&w), (Failed, GRAVE.to_vec()));
    assert_eq!(origin(&w), Some((MAIL.to_vec(), 1)));
}

#[test]
fn it_goes_back_to_where_it_was() {
    let mut w = dead(|_| {});
    assert_eq!(w.requeue(b"a", To::Same), Some(refused("NOTENDED ready")));
    w.requeue(b"a", To::Origin).unwrap().unwrap();
    assert_eq!((place(&w), origin(&w)), ((Ready, MAIL.to_vec()), None));
    // Once more, and from there after it has failed there too.
    dies(&mut w);
    w.take_id(BOB, "a");
    assert_eq!(w.requeue(b"a", To::Origin), Some(refused("NOTENDED claimed")));
    w.fails(BOB, "a", None).unwrap();
    w.requeue(b"a", To::Same).unwrap().unwrap();
    assert_eq!((place(&w), origin(&w)), ((Ready, GRAVE.to_vec()), Some((MAIL.to_vec(), 1))));
    w.requeue(b"a", To::Origin).unwrap().unwrap();
    assert_eq!((place(&w), origin(&w)), ((Ready, MAIL.to_vec()), None));
    w.is_valid();
}

#[test]
fn its_failure_is_answered_again_when_it_is_sent_again() {
    let mut w = posted(|_| {});
    let token = w.take_id(ANN, "a");
    w.fails(ANN, "a", Some(token)).unwrap();
    assert_eq!(w.fails(ANN, "a", Some(token)), Ok(crate::world::Done::Again(Ready)));
    assert_eq!(place(&w), (Ready, GRAVE.to_vec()));
}

#[test]
fn those_who_wait_for_it_are_told_as_its_post_promised() {
    let ends = [
        (OnFailure::Hold, Blocked),
        (OnFailure::Cancel, Cancelled),
        (OnFailure::Fail, Failed),
        (OnFailure::Run, Ready),
    ];
    for (on_failure, end) in ends {
        let mut w = posted(|_| {});
        w.put_after("before", &["a"], on_failure);
        dies(&mut w);
        w.put_after("after", &["a"], on_failure);
        w.pass(0);
        assert_eq!((w.is("before"), w.is("after")), (Some(end), Some(end)), "{on_failure:?}");
        w.take_id(BOB, "a");
        w.done(BOB, "a", None).unwrap();
        w.pass(0);
        let done = if end == Blocked { Ready } else { end };
        assert_eq!(w.is("before"), Some(done), "{on_failure:?}");
        w.is_valid();
    }
}

#[test]
fn who_waits_for_one_that_went_back_waits_again() {
    let mut w = dead(|_| {});
    w.requeue(b"a", To::Origin).unwrap().unwrap();
    w.put_after("b", &["a"], OnFailure::Fail);
    w.pass(0);
    assert_eq!(w.is("b"), Some(Blocked));
}

#[test]
fn its_key_is_free_while_it_is_dead() {
    let key = TakeKey { key: b"k", until: None, time: None, on_conflict: OnConflict::Reject };
    let mut w = dead(|p| p.unique = Some(key));
    w.put_with("b", |p| p.unique = Some(key));
    assert_eq!(w.requeue(b"a", To::Origin), Some(refused("EXISTS b")));
    w.cancel(b"b", false).unwrap().unwrap();
    w.requeue(b"a", To::Origin).unwrap().unwrap();
    assert!(w.board.find(b"a").is_some());
    w.is_valid();
}

#[test]
fn it_stays_where_the_dead_queue_is_full() {
    let mut w = posted(|_| {});
    w.configure(Some(GRAVE), Setting::MaxJobs, Some(0));
    dies(&mut w);
    assert_eq!((place(&w), origin(&w)), ((Failed, MAIL.to_vec()), None));
}

#[test]
fn a_selection_sends_back_what_is_dead_each_once() {
    let mut w = World::default();
    w.name_dead_queue(MAIL, Some(GRAVE));
    for id in ["a", "b", "c"] {
        w.put_with(id, |p| (p.queue, p.options.retries) = (Some(MAIL), Some(0)));
        w.take_id(ANN, id);
        w.fails(ANN, id, None).unwrap();
    }
    w.put_with("own", |p| p.queue = Some(GRAVE));
    let filters = Filters::new([Filter::Queue(GRAVE)], []);
    let deed = Operation::Requeue(Requeue { to: To::Origin, ..Requeue::default() });
    let mut slice = Selection { deed, filters, from: None, count: 2, bytes: usize::MAX, dry: true };
    assert_eq!(w.select(&slice).ids.len(), 2);
    slice.dry = false;
    let mut all = Vec::new();
    loop {
        let got = w.select(&slice);
        all.extend(got.ids);
        match got.next {
            Some(next) => slice.from = Some(next),
            None => break,
        }
    }
    assert_eq!(all, [b"a", b"b", b"c"]);
    assert_eq!(w.job("own").queue(), GRAVE);
    assert_eq!(w.board.count_in(MAIL, Ready), 3);
}

#[test]
fn a_parent_keeps_what_its_children_have_done() {
    let mut w = posted(|_| {});
    let parent = Some(&b"a"[..]);
    w.put_with("child", |p| p.parent = parent);
    w.put_with("other", |p| p.parent = parent);
    w.take_id(BOB, "child");
    w.done(BOB, "child", None).unwrap();
    assert_eq!(w.job("a").progress(), Some(50.0));
    dies(&mut w);
    assert_eq!((place(&w), w.job("a").progress()), ((Ready, GRAVE.to_vec()), Some(50.0)));
    w.is_valid();
}

#[test]
fn it_is_explained_where_it_failed_and_how_it_comes_back() {
    let mut w = dead(|_| {});
    let codes = |w: &World| w.explain(b"a").unwrap().reasons.iter().map(|one| one.code).collect::<Vec<_>>();
    assert_eq!(codes(&w), ["unclaimed", "line", "dead"]);
    let reason = w.explain(b"a").unwrap().reasons.pop().unwrap();
    assert_eq!(
        reason.text,
        "It failed with io in the queue 'mail' and moved to a dead queue. JOB.REQUEUE with ORIGIN sends it back."
    );
    assert_eq!(reason.details[0], ("origin", Detail::Bytes(MAIL.to_vec())));
    w.take_id(BOB, "a");
    assert_eq!(codes(&w), ["claimed", "dead"]);
    w.fails(BOB, "a", None).unwrap();
    assert_eq!(codes(&w), ["ended", "dead"]);
    w.requeue(b"a", To::Origin).unwrap().unwrap();
    assert_eq!(codes(&w), ["unclaimed", "line"]);
}
