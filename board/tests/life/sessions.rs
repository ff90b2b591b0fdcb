//! Session claims: what ends with a connection, and what its worker may still do.

use board::*;

use crate::site::*;
use crate::world::World;

const LINE: u64 = 7;

/// A job that ann holds over a connection; its token.
fn bound() -> (World, u64) {
    let mut w = World::default();
    w.put("job");
    let token = w.take_id(ANN, "job");
    w.bind(b"job", LINE);
    assert!(w.job("job").session());
    (w, token)
}

#[test]
fn a_session_claim_ends_with_its_connection_as_a_lapse() {
    let (mut w, token) = bound();
    assert!(w.board.close(LINE));
    assert_eq!(w.board.wake(), 0);
    w.pass(0);
    assert_eq!((w.is("job"), w.job("job").lapses()), (Some(Ready), 1));
    assert!(!w.job("job").session() && !w.board.close(LINE));
    // Its worker may come late, as after any lapse.
    assert_eq!(w.done(ANN, "job", Some(token)), DID);
    w.is_valid();
}

#[test]
fn one_that_is_held_for_a_recovery_ends_with_its_connection_all_the_same() {
    let (mut w, _) = bound();
    w.hold = w.now + 5_000;
    w.board.close(LINE);
    assert!(w.slice(9));
    w.commit();
    assert_eq!(w.is("job"), Some(Ready));
}

#[test]
fn a_closed_connection_does_not_open_again_by_a_claim_that_it_carried() {
    let (mut w, _) = bound();
    assert!(w.board.close(LINE));
    w.bind(b"job", LINE);
    w.pass(0);
    assert_eq!(w.is("job"), Some(Ready));
    w.is_valid();
}

#[test]
fn other_claims_and_other_connections_stay() {
    let (mut w, _) = bound();
    w.put_in("plain", Claimed);
    w.put_in("other", Claimed);
    w.bind(b"other", 8);
    assert_eq!(w.board.connections(), [LINE, 8]);
    w.board.close(LINE);
    w.pass(0);
    assert_eq!((w.is("plain"), w.is("other")), (Some(Claimed), Some(Claimed)));
    assert_eq!(w.board.connections(), [8]);
    w.is_valid();
}

#[test]
fn an_update_leaves_a_claim_to_its_connection() {
    for closed in [false, true] {
        let (mut w, _) = bound();
        assert_eq!(closed && w.board.close(LINE), closed);
        w.update(b"job", &Update { priority: Some(3), ..Update::default() }).unwrap().unwrap();
        assert!(closed || w.board.close(LINE));
        w.pass(0);
        assert_eq!(w.is("job"), Some(Ready));
        w.is_valid();
    }
}

#[test]
fn within_the_grace_a_heartbeat_keeps_the_job() {
    let (mut w, token) = bound();
    w.configure(None, Setting::SessionGrace, Some(500));
    w.configure(None, Setting::Grace, Some(9_000));
    w.board.close(LINE);
    w.pass(499);
    assert_eq!(w.is("job"), Some(Claimed));
    assert_eq!(w.beat(ANN, "job", Some(token)), Ok((w.now + 30_000, false)));
    w.bind(b"job", 8);
    w.pass(500);
    assert_eq!(w.is("job"), Some(Claimed));
    w.board.close(8);
    w.pass(0);
    w.pass(500);
    assert_eq!(w.is("job"), Some(Ready));
    w.is_valid();
}

#[test]
fn the_grace_does_not_lengthen_a_lease() {
    let (mut w, _) = bound();
    w.configure(None, Setting::SessionGrace, Some(60_000));
    w.board.close(LINE);
    w.pass(30_000);
    assert_eq!(w.is("job"), Some(Ready));
}

#[test]
fn a_connection_that_carries_nothing_any_more_ends_nothing() {
    for end in ["consume", "fail", "release", "lapse", "carried on"] {
        let (mut w, token) = bound();
        match end {
            "consume" => assert_eq!(w.done_keeping(ANN, "job", -1), DID),
            "fail" => assert_eq!(w.fails(ANN, "job", Some(token)), DID),
            "release" => w.release(b"job").unwrap().unwrap(),
            "lapse" => w.pass(30_000),
            _ => w.bind(b"job", 8),
        }
        let before = w.is("job");
        assert!(!w.board.close(LINE), "{end}");
        w.pass(0);
        assert_eq!(w.is("job"), before);
        w.is_valid();
    }
}

#[test]
fn a_copy_from_a_snapshot_knows_no_connections_and_keeps_the_claim() {
    let (mut w, token) = bound();
    w.reload();
    assert!(w.job("job").session() && !w.board.close(LINE));
    w.bind(b"job", LINE);
    assert!(w.board.close(LINE));
    w.pass(0);
    assert_eq!(w.is("job"), Some(Ready));
    assert_eq!(w.beat(ANN, "job", Some(token)), Ok((w.now + 30_000, false)));
    assert!(!w.job("job").session());
    w.is_valid();
}

#[test]
fn many_claims_of_one_connection_end_in_slices() {
    let mut w = World::default();
    let ids: Vec<String> = (0..20).map(|n| format!("job {n}")).collect();
    for id in &ids {
        w.put_in(id, Claimed);
        w.bind(id.as_bytes(), LINE);
    }
    w.cancel(b"job 3", false).unwrap().unwrap();
    w.board.close(LINE);
    assert!(w.slice(8));
    w.commit();
    assert_eq!((w.board.count(Claimed), w.is("job 3")), (12, Some(Cancelled)));
    w.pass(0);
    assert_eq!(w.board.count(Ready), 19);
    w.is_valid();
}
