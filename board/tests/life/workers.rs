//! Workers that register: how long they stand, what ends with them, and who is quiet.

use board::*;

use crate::site::*;
use crate::world::World;

fn registers(w: &mut World, worker: &[u8], time: Option<i64>) {
    w.register(&Register { worker, time, ..Register::default() }).unwrap();
}

fn known<'w>(w: &'w World, worker: &[u8]) -> &'w Registration {
    w.board.registration(worker).expect("it is registered")
}

#[test]
fn a_registration_that_lapses_ends_the_leases_of_its_worker_at_its_millisecond() {
    let mut w = World::default();
    registers(&mut w, ANN, Some(1_000));
    w.put_in("anns", Claimed);
    w.put("bobs");
    w.take_id(BOB, "bobs");
    w.pass(999);
    assert_eq!(w.is("anns"), Some(Claimed));
    w.pass(1);
    assert_eq!((w.is("anns"), w.job("anns").lapses()), (Some(Ready), 1));
    assert_eq!(w.events("anns"), ["posted", "claimed", "lapsed"]);
    assert_eq!(w.is("bobs"), Some(Claimed));
    assert!(w.board.registration(ANN).is_none());
    w.is_valid();
}

#[test]
fn a_verb_on_a_job_finds_its_lease_ended_before_the_timer_has_run() {
    let mut w = World::default();
    registers(&mut w, ANN, Some(1_000));
    w.put_in("job", Claimed);
    w.now += 1_000;
    assert!(w.claim_id(&Claim { worker: BOB, ..Claim::default() }, b"job").is_ok());
    w.pass(0);
    assert_eq!(w.job("job").worker(), Some(BOB));
    w.is_valid();
}

#[test]
fn to_register_again_refreshes_and_changes_what_it_names() {
    let mut w = World::default();
    let meta = vec![pair(b"host", b"a"), pair(b"pid", b"1")];
    let role = Some(&b"mailer"[..]);
    let first = Register { worker: ANN, role, meta, time: Some(1_000), ..Register::default() };
    w.register(&first).unwrap();
    let begin = w.now;
    w.pass(600);
    w.register(&Register { worker: ANN, meta: vec![pair(b"pid", b"2")], ..Register::default() }).unwrap();
    let now = known(&w, ANN);
    assert_eq!((now.registered, now.until), (begin, begin + 1_600));
    assert_eq!(now.role.as_deref(), Some(&b"mailer"[..]));
    let meta: Vec<_> = now.meta.iter().map(|(f, v)| (&**f, &**v)).collect();
    assert_eq!(meta, [(&b"host"[..], &b"a"[..]), (b"pid", b"2")]);
    registers(&mut w, ANN, Some(50));
    assert_eq!(known(&w, ANN).until, w.now + 50);
    w.pass(50);
    assert_eq!(w.board.registered(), 0);
    w.is_valid();
}

#[test]
fn one_that_names_no_time_stands_until_it_is_deregistered() {
    let mut w = World::default();
    registers(&mut w, ANN, None);
    w.pass(1 << 39);
    assert_eq!(known(&w, ANN).until, NEVER);
    assert!(w.deregister(ANN, 1));
    assert!(!w.deregister(ANN, 1));
    w.is_valid();
}

#[test]
fn a_worker_that_is_deregistered_gives_its_jobs_back_at_no_cost() {
    let mut w = World::default();
    registers(&mut w, ANN, Some(60_000));
    w.put_in("job", Claimed);
    w.put_in("stopped", Claimed);
    w.cancel(b"stopped", false).unwrap().unwrap();
    let token = w.job("job").token();
    assert!(w.deregister(ANN, 9));
    assert_eq!((w.is("job"), w.job("job").lapses()), (Some(Ready), 0));
    assert_eq!(w.job("job").reason(), Some(&b"deregistered"[..]));
    assert_eq!(w.gives_back(ANN, "job", token), again(Ready));
    assert_eq!(w.is("stopped"), Some(Cancelled));
    w.is_valid();
}

#[test]
fn the_claims_of_a_worker_that_starts_anew_lapse_and_its_registration_stays() {
    let mut w = World::default();
    registers(&mut w, ANN, Some(60_000));
    w.put_in("job", Claimed);
    let token = w.job("job").token();
    w.put("bobs");
    w.take_id(BOB, "bobs");
    w.quiet(ANN, true).unwrap();
    w.register(&Register { worker: ANN, anew: true, ..Register::default() }).unwrap();
    // A verb finds it ended before the timer has run.
    assert!(w.claim_id(&Claim { worker: BOB, ..Claim::default() }, b"job").is_ok());
    assert_eq!((w.job("job").lapses(), w.job("job").worker()), (1, Some(BOB)));
    assert!(w.job("job").token() > token);
    assert_eq!(w.events("job"), ["posted", "claimed", "lapsed", "claimed"]);
    w.pass(0);
    assert_eq!(w.is("bobs"), Some(Claimed));
    let now = known(&w, ANN);
    assert_eq!((now.quiet, now.lapsed), (true, 1));
    w.reload();
    w.is_valid();
}

#[test]
fn what_a_worker_claims_after_it_has_started_anew_stays() {
    let mut w = World::default();
    registers(&mut w, ANN, None);
    let ids: Vec<String> = (0..10).map(|n| format!("job {n}")).collect();
    ids.iter().for_each(|id| w.put(id));
    assert_eq!(w.take_all(ANN).len(), 10);
    w.register(&Register { worker: ANN, anew: true, ..Register::default() }).unwrap();
    w.put("later");
    w.take_id(ANN, "later");
    w.pass(0);
    assert_eq!(w.is("later"), Some(Claimed));
    assert!(ids.iter().all(|id| (w.is(id), w.job(id).lapses()) == (Some(Ready), 1)));
    w.is_valid();
}

#[test]
fn to_deregister_gives_back_nothing_that_is_already_lapsing() {
    let mut w = World::default();
    registers(&mut w, ANN, None);
    for id in ["a", "b"] {
        w.put(id);
        w.take_id(ANN, id);
    }
    w.register(&Register { worker: ANN, anew: true, ..Register::default() }).unwrap();
    assert!(w.deregister(ANN, 0));
    w.pass(0);
    assert!(["a", "b"].iter().all(|id| (w.is(id), w.job(id).lapses()) == (Some(Ready), 1)));
    w.is_valid();
}

#[test]
fn many_claims_end_in_slices_and_new_ones_of_the_same_name_do_not() {
    for lapses in [false, true] {
        let mut w = World::default();
        registers(&mut w, ANN, Some(1_000));
        let ids: Vec<String> = (0..50).map(|n| format!("job {n:02}")).collect();
        ids.iter().for_each(|id| w.put(id));
        assert_eq!(w.take_all(ANN).len(), 50);
        match lapses {
            true => w.now += 1_000,
            false => assert!(w.deregister(ANN, 5)),
        }
        assert!(w.slice(if lapses { 6 } else { 5 }));
        w.commit();
        assert_eq!(w.board.count(Claimed), if lapses { 45 } else { 40 });
        w.reload();
        w.is_valid();
        // A verb finds a claim ended that the timer has not come to yet.
        let name = if lapses { "lapsed" } else { "abandoned" };
        w.settle(b"job 49");
        w.commit();
        assert_eq!(w.events("job 49").last(), Some(&name));
        let token = w.take_id(ANN, "job 49");
        registers(&mut w, ANN, Some(60_000));
        w.pass(0);
        assert_eq!((w.board.count(Claimed), w.job("job 49").token()), (1, Some(token)));
        w.is_valid();
    }
}

#[test]
fn what_a_deregistered_worker_gives_back_costs_nothing_though_it_comes_again_and_lapses() {
    let mut w = World::default();
    registers(&mut w, ANN, None);
    (0..3).for_each(|n| w.put_in(&format!("old {n}"), Claimed));
    assert!(w.deregister(ANN, 1));
    w.registers_over(ANN, 7);
    w.put_in("new", Claimed);
    assert_eq!(w.board.count(Claimed), 3);
    w.board.close(7);
    w.pass(0);
    assert_eq!((w.board.count(Claimed), w.board.registered()), (0, 0));
    let lapses: Vec<u32> = (0..3).map(|n| w.job(&format!("old {n}")).lapses()).collect();
    assert_eq!(lapses, [0, 0, 0]);
    w.is_valid();
}

#[test]
fn lost_leases_are_counted_and_others_are_not() {
    let mut w = World::default();
    registers(&mut w, ANN, None);
    for id in ["lapses", "fails", "consumed"] {
        w.put_in(id, Claimed);
    }
    w.fails(ANN, "fails", None).unwrap();
    w.done(ANN, "consumed", None).unwrap();
    w.pass(30_000);
    assert_eq!(known(&w, ANN).lapsed, 1);
    w.pass(30_000);
    assert_eq!(known(&w, ANN).lapsed, 1);
    w.is_valid();
}

#[test]
fn nothing_is_handed_to_a_quiet_worker_and_the_rest_goes_on() {
    let mut w = World::default();
    registers(&mut w, ANN, Some(60_000));
    w.put_in("held", Claimed);
    w.put("job");
    assert_eq!(w.quiet(ANN, true), Ok(()));
    assert_eq!(w.take(ANN), None);
    let claim = Claim { worker: ANN, ..Claim::default() };
    assert_eq!(w.claim_id(&claim, b"job"), refused("NOTREADY quiet"));
    assert!(!w.board.claimable(&claim, w.now));
    assert!(w.beat(ANN, "held", None).is_ok());
    assert_eq!(w.done(ANN, "held", None), DID);
    registers(&mut w, ANN, Some(60_000));
    assert!(w.board.is_quiet(ANN) && !w.board.roused());
    assert_eq!(w.quiet(ANN, false), Ok(()));
    assert!(w.board.roused() && !w.board.roused());
    assert_eq!(w.take_all(ANN), ["job"]);
    w.is_valid();
}

#[test]
fn a_quiet_worker_is_quiet_no_longer_when_its_registration_ends() {
    let mut w = World::default();
    for ends in [true, false] {
        registers(&mut w, ANN, Some(1_000));
        w.quiet(ANN, true).unwrap();
        match ends {
            true => w.pass(1_000),
            false => assert!(w.deregister(ANN, 1)),
        }
        assert!(!w.board.is_quiet(ANN) && w.board.roused());
    }
    assert_eq!(w.quiet(ANN, true), refused("NOWORKER no such worker is registered"));
}

#[test]
fn registrations_wait_for_a_recovery_as_leases_do() {
    let mut w = World::default();
    registers(&mut w, ANN, Some(1_000));
    w.put_in("job", Claimed);
    w.hold = w.now + 5_000;
    w.pass(1_000);
    assert_eq!((w.is("job"), w.board.registered()), (Some(Claimed), 1));
    registers(&mut w, ANN, Some(60_000));
    w.pass(4_000);
    assert_eq!((w.is("job"), w.board.registered()), (Some(Claimed), 1));
    w.is_valid();
}

#[test]
fn a_board_has_so_many_registered_workers_and_no_more() {
    let mut w = World::default();
    for n in 0..REGISTERED_MOST {
        let name = format!("worker {n}");
        registers(&mut w, name.as_bytes(), None);
    }
    w.commit();
    let one_more = Register { worker: b"one more", ..Register::default() };
    assert_eq!(w.register(&one_more), refused("LIMIT workers"));
    assert!(w.register(&Register { worker: b"worker 0", ..Register::default() }).is_ok());
    let fields: Vec<String> = (0..65).map(|n| format!("f{n}")).collect();
    let meta = fields.iter().map(|f| pair(f.as_bytes(), b"")).collect();
    assert_eq!(
        w.register(&Register { worker: b"worker 1", meta, ..Register::default() }),
        refused("LIMIT meta fields")
    );
    w.is_valid();
}

/// A board on which ann is registered over connection 7, and holds a job by its lease.
fn attended() -> World {
    let mut w = World::default();
    w.registers_over(ANN, 7);
    w.put_in("job", Claimed);
    w
}

#[test]
fn a_registration_of_a_session_ends_with_its_connection_and_the_leases_with_it() {
    let mut w = attended();
    w.pass(20_000);
    assert_eq!((known(&w, ANN).session, known(&w, ANN).until, w.is("job")), (true, NEVER, Some(Claimed)));
    assert!(!w.board.close(8) && w.board.close(7));
    w.pass(0);
    assert_eq!((w.board.registered(), w.is("job"), w.job("job").lapses()), (0, Some(Ready), 1));
    assert!(!w.board.close(7) && w.board.connections().is_empty());
    w.is_valid();
}

#[test]
fn a_worker_that_registers_again_takes_its_registration_to_its_connection() {
    let mut w = attended();
    registers(&mut w, ANN, None);
    assert!(w.board.attend_session(ANN, 8));
    assert!(!w.board.close(7));
    // With a time it is a session's no longer.
    registers(&mut w, ANN, Some(1_000));
    assert!(!w.board.attend_session(ANN, 8) && !w.board.close(8));
    w.pass(999);
    assert_eq!((known(&w, ANN).session, w.board.registered()), (false, 1));
    w.pass(1);
    assert_eq!(w.board.registered(), 0);
    w.is_valid();
}

#[test]
fn within_the_grace_a_worker_keeps_its_registration_by_registering_again() {
    for comes in [true, false] {
        let mut w = attended();
        w.configure(None, Setting::SessionGrace, Some(500));
        w.board.close(7);
        w.pass(0);
        assert_eq!(known(&w, ANN).until, w.now + 500);
        w.pass(499);
        if comes {
            registers(&mut w, ANN, None);
            w.board.attend_session(ANN, 8);
        }
        w.pass(1);
        assert_eq!(w.is("job"), Some(if comes { Claimed } else { Ready }));
        assert_eq!(w.board.registered(), usize::from(comes));
        w.is_valid();
    }
}

#[test]
fn a_registration_without_its_connection_stands_as_long_as_a_recovery() {
    for comes in [true, false] {
        for way in ["load", "demotion"] {
            let mut w = attended();
            match way {
                "load" => w.reload(),
                _ => w.board.forget_connections(),
            }
            assert!(!w.board.close(7));
            w.pass(0);
            assert_eq!(known(&w, ANN).until, w.now + crate::world::RECOVERY);
            w.pass(crate::world::RECOVERY - 1);
            if comes {
                registers(&mut w, ANN, None);
                w.board.attend_session(ANN, 7);
            }
            w.pass(1);
            assert_eq!(w.is("job"), Some(if comes { Claimed } else { Ready }), "{way}");
            w.is_valid();
        }
    }
}

#[test]
fn many_registrations_of_one_connection_end_in_slices_after_its_claims() {
    let mut w = World::default();
    let names: Vec<String> = (0..20).map(|n| format!("worker {n:02}")).collect();
    names.iter().for_each(|name| w.registers_over(name.as_bytes(), 7));
    w.put_in("job", Claimed);
    w.bind(b"job", 7);
    w.board.close(7);
    assert!(w.slice(8));
    w.commit();
    assert_eq!((w.is("job"), w.board.registered()), (Some(Ready), 20));
    assert!(w.slice(8));
    w.commit();
    assert_eq!(w.board.registered(), 12);
    w.pass(0);
    assert_eq!(w.board.registered(), 0);
    w.is_valid();
}
