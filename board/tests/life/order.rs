//! Which job a claim gives.

use board::*;

use crate::site::*;
use crate::world::World;

#[test]
fn higher_priorities_come_first_then_older_jobs() {
    let mut w = World::default();
    for (id, priority) in
        [("low", -5), ("a", 0), ("high", 7), ("b", 0), ("top", i32::MAX), ("last", i32::MIN)]
    {
        w.put_with(id, |p| p.priority = Some(priority));
    }
    assert_eq!(w.take_all(ANN), ["top", "high", "a", "b", "low", "last"]);
    w.is_valid();
}

#[test]
fn a_job_that_comes_back_keeps_its_place() {
    let mut w = World::default();
    for id in ["a", "b", "c"] {
        w.put(id);
        w.pass(10);
    }
    let a = w.take(ANN).unwrap();
    w.gives_back(ANN, "a", Some(a.token)).unwrap();
    assert_eq!(w.take(ANN).unwrap().id, b"a");
    w.fails_with(ANN, "a", None, Retry::After(0)).unwrap();
    assert_eq!(w.take(BOB).unwrap().id, b"a");
    w.pass(30_000);
    assert_eq!(w.take(ANN).unwrap().id, b"a");
    w.release(b"a").unwrap().unwrap();
    assert_eq!(w.take_all(ANN), ["a", "b", "c"]);
}

#[test]
fn a_delayed_job_takes_its_place_by_the_time_it_first_could_run() {
    let mut w = World::default();
    let due = Some(w.now + 50);
    w.put_with("delayed", |p| p.due = due);
    w.pass(40);
    w.put("before");
    w.pass(20);
    w.put("after");
    assert_eq!(w.take_all(ANN), ["before", "delayed", "after"]);
}

#[test]
fn a_claim_before_the_timer_settles_the_place_of_a_job_that_was_due() {
    let mut w = World::default();
    let due = Some(w.now + 50);
    w.put_with("delayed", |p| p.due = due);
    w.now += 60;
    w.put("after");
    while w.slice(1) {}
    w.commit();
    assert_eq!(w.take_all(ANN), ["delayed", "after"]);
}

#[test]
fn a_back_off_does_not_move_a_job_among_its_equals() {
    let mut w = World::default();
    w.put("a");
    w.pass(1);
    w.put("b");
    w.take_id(ANN, "a");
    w.fails_with(ANN, "a", None, Retry::After(500)).unwrap();
    assert_eq!((w.is("a"), w.job("a").due()), (Some(Scheduled), Some(w.now + 500)));
    w.pass(500);
    assert_eq!(w.take_all(BOB), ["a", "b"]);
}

#[test]
fn a_requeued_or_replaced_job_goes_to_the_end() {
    let mut w = World::default();
    w.put_in("failed", Failed);
    w.put("replaced");
    w.pass(1);
    w.put("waiting");
    w.pass(1);
    w.requeue(b"failed", To::Same).unwrap().unwrap();
    w.pass(1);
    w.put_replacing("replaced", b"new");
    assert_eq!(w.take_all(ANN), ["waiting", "failed", "replaced"]);
}

#[test]
fn several_requeued_at_once_keep_the_order_of_their_posts() {
    let mut w = World::default();
    for id in ["x", "y", "z"] {
        w.put_in(id, Failed);
    }
    for id in ["z", "x", "y"] {
        w.requeue(id.as_bytes(), To::Same).unwrap().unwrap();
    }
    assert_eq!(w.take_all(ANN), ["x", "y", "z"]);
}

#[test]
fn a_changed_priority_keeps_the_age() {
    let mut w = World::default();
    for id in ["a", "b", "c"] {
        w.put(id);
        w.pass(10);
    }
    for id in [&b"c"[..], b"a"] {
        w.update(id, &Update { priority: Some(1), ..Update::default() }).unwrap().unwrap();
    }
    assert_eq!(w.take_all(ANN), ["a", "c", "b"]);
}

#[test]
fn queues_are_asked_best_first_as_listed_or_in_turn() {
    let mut w = World::default();
    for (id, queue, priority) in [("m1", "mail", 0), ("m2", "mail", 0), ("s1", "slow", 5), ("s2", "slow", 0)]
    {
        w.put_with(id, |p| (p.queue, p.priority) = (Some(queue.as_bytes()), Some(priority)));
        w.pass(1);
    }
    let mut claim = |queues: &[&[u8]], order, count| {
        let claim = Claim { worker: ANN, queues, order, lease: None };
        let got: Vec<String> = w.claim(&claim, count).iter().map(|g| name(&g.id)).collect();
        got.iter().for_each(|id| w.release(id.as_bytes()).unwrap().unwrap());
        w.turn += count as u64;
        got
    };
    let both: &[&[u8]] = &[b"mail", b"slow"];
    assert_eq!(claim(both, Order::Best, 4), ["s1", "m1", "m2", "s2"]);
    assert_eq!(claim(both, Order::Listed, 4), ["m1", "m2", "s1", "s2"]);
    assert_eq!(claim(both, Order::Rotate, 4), ["m1", "s1", "m2", "s2"]);
    assert_eq!(claim(both, Order::Rotate, 1), ["m1"]);
    assert_eq!(claim(both, Order::Rotate, 1), ["s1"]);
    assert_eq!(claim(&[], Order::Listed, 1), ["s1"]);
    assert_eq!(claim(&[b"empty", b"slow"], Order::Listed, 1), ["s1"]);
    assert!(claim(&[b"empty"], Order::Best, 1).is_empty());
}

#[test]
fn tokens_rise_and_follow_the_clock() {
    let mut w = World::default();
    for id in ["a", "b", "c"] {
        w.put(id);
    }
    let first = w.take(ANN).unwrap().token;
    assert_eq!(first, token_at(w.now) + w.giver);
    assert_eq!(w.take(ANN).unwrap().token, first + GIVERS);
    w.now -= 5_000;
    assert_eq!(w.take(ANN).unwrap().token, first + 2 * GIVERS);
    w.pass(6_000);
    w.release(b"a").unwrap().unwrap();
    assert_eq!(w.take(ANN).unwrap().token, token_at(w.now) + w.giver);
}

#[test]
fn a_token_of_this_process_is_not_given_out_again_by_another_board() {
    let mut w = World::default();
    w.put("a");
    let first = w.take(ANN).unwrap().token;
    w.board = Board::default();
    w.copy = Board::default();
    w.put("a");
    assert_eq!(w.take(ANN).unwrap().token, first + GIVERS);
}

#[test]
fn two_that_give_out_tokens_for_copies_of_a_board_never_give_the_same() {
    for giver in 0..GIVERS {
        let mut one = World::default();
        one.giver = giver;
        for id in ["a", "b", "c", "d", "e"] {
            one.put(id);
        }
        one.take(ANN).unwrap();
        // Both say that they are the same giver: the copy has seen a token of the other's.
        let mut other = World::on(one.copy.copy().unwrap());
        other.giver = giver;
        let mut tokens: Vec<u64> = Vec::new();
        for ms in [0, 0, 1, 0] {
            for w in [&mut one, &mut other] {
                w.now += ms;
                tokens.extend(w.take(BOB).map(|got| got.token));
            }
        }
        let all = tokens.len();
        tokens.sort_unstable();
        tokens.dedup();
        assert_eq!((all, tokens.len()), (8, 8));
    }
}

#[test]
fn a_board_without_tokens_left_refuses_claims() {
    let mut w = World::default();
    w.put("a");
    w.put("b");
    w.now = 1 << 42;
    let claim = Claim { worker: ANN, ..Claim::default() };
    assert_eq!(w.claim_id(&claim, b"a").map(|_| ()), refused("LIMIT tokens"));
    assert!(w.claim(&claim, 2).is_empty());
    w.now -= 1;
    let mut taken = 0;
    while w.take(ANN).is_some_and(|got| got.token < 1 << 53) {
        taken += 1;
        w.put(&taken.to_string());
        w.reload();
    }
    assert!(taken > 1);
    assert_eq!(w.claim_id(&claim, taken.to_string().as_bytes()).map(|_| ()), refused("LIMIT tokens"));
    w.reload();
    w.is_valid();
}

#[test]
fn claims_by_id_are_refused_for_what_stands_in_the_way() {
    let mut w = World::default();
    let claim = |w: &mut World, worker: &[u8], id: &str| {
        w.claim_id(&Claim { worker, ..Claim::default() }, id.as_bytes()).map(|_| ())
    };
    assert_eq!(claim(&mut w, ANN, "x"), refused("NOJOB no such job"));
    w.put_in("held", Claimed);
    assert_eq!(claim(&mut w, ANN, "held"), refused("CLAIMED you"));
    assert_eq!(claim(&mut w, BOB, "held"), refused("CLAIMED ann"));
    w.put_in("later", Scheduled);
    assert_eq!(claim(&mut w, ANN, "later"), refused("NOTREADY scheduled"));
    for state in ENDED {
        w.put_in(state.name(), state);
        assert_eq!(claim(&mut w, ANN, state.name()), refused(&format!("ENDED {}", state.name())));
    }
    w.now += 1_000;
    assert_eq!(claim(&mut w, ANN, "later"), Ok(()));
    w.now += 30_000;
    assert_eq!(claim(&mut w, BOB, "held"), Ok(()));
    w.is_valid();
}

#[test]
fn what_a_worker_holds_is_found_by_token() {
    let mut w = World::default();
    for id in ["a", "b", "c"] {
        w.put(id);
    }
    let tokens: Vec<u64> = (0..3).map(|_| w.take(ANN).unwrap().token).collect();
    let held = |w: &World, above| -> Vec<String> {
        w.board.held(ANN, above).map(|s| name(&w.board.record_of(s).unwrap().id().to_vec())).collect()
    };
    assert_eq!(held(&w, 0), ["a", "b", "c"]);
    assert_eq!(held(&w, tokens[0]), ["b", "c"]);
    assert!(held(&w, tokens[2]).is_empty());
    assert!(held(&w, u64::MAX).is_empty());
}

/// Three ready jobs and one that ann holds.
fn a_line() -> World {
    let mut w = World::default();
    for id in ["a", "b", "c", "late"] {
        w.put(id);
        w.pass(10);
    }
    w.take_id(ANN, "late");
    w
}

#[test]
fn a_job_that_is_released_to_the_front_comes_next() {
    let mut w = a_line();
    w.release_to(b"late", true).unwrap().unwrap();
    assert_eq!(w.take_all(BOB), ["late", "a", "b", "c"]);
    // The first is first already, and a line may be empty.
    w.release_to(b"b", true).unwrap().unwrap();
    w.release_to(b"a", true).unwrap().unwrap();
    w.reload();
    assert_eq!(w.take_all(BOB), ["a", "b"]);
    w.is_valid();
}

#[test]
fn the_front_is_that_of_its_priority_and_its_group() {
    let mut w = World::default();
    for (id, priority, group) in
        [("high", 1, None), ("a", 0, None), ("other", 0, Some(&b"g"[..])), ("b", 0, None)]
    {
        w.put_with(id, |p| (p.priority, p.group) = (Some(priority), group));
        w.pass(10);
    }
    w.take_id(ANN, "b");
    let other = w.job("other").modified();
    w.release_to(b"b", true).unwrap().unwrap();
    let order: Vec<String> = w.take_all(BOB).into_iter().filter(|id| id != "other").collect();
    assert_eq!(order, ["high", "b", "a"]);
    assert!(w.job("other").modified() >= other);
    w.is_valid();
}

#[test]
fn the_front_of_ageing_jobs_is_before_all_of_them() {
    let mut w = World::default();
    w.configure(None, Setting::Ageing, Some(1_000));
    for (id, priority) in [("urgent", 50), ("a", 0), ("slow", -50)] {
        w.put_with(id, |p| p.priority = Some(priority));
        w.pass(10);
    }
    w.take_id(ANN, "slow");
    w.release_to(b"slow", true).unwrap().unwrap();
    assert_eq!(w.take_all(BOB), ["slow", "urgent", "a"]);
    w.is_valid();
}

#[test]
fn the_front_makes_no_job_older() {
    let mut w = World::default();
    w.put("a");
    w.pass(500);
    w.put_with("b", |p| p.options.expire = Some(1_000));
    w.take_id(ANN, "b");
    w.pass(400);
    w.release_to(b"b", true).unwrap().unwrap();
    w.pass(599);
    assert_eq!(w.is("b"), Some(Ready));
    w.pass(1);
    assert_eq!(w.is("b"), Some(Failed));
    w.is_valid();
}
