//! Which of several values for the same thing is in force.

use board::*;

use crate::site::*;
use crate::world::World;

#[test]
fn the_job_its_queue_its_board_and_the_server_are_asked_in_this_order() {
    let mut w = World::default();
    let lease = |w: &mut World| {
        w.take_id(ANN, "job");
        let lease = w.job("job").deadline().unwrap() - w.now;
        w.release(b"job").unwrap().unwrap();
        lease
    };
    w.put("job");
    assert_eq!(lease(&mut w), 30_000);
    w.rule(Setting::Lease, 4_000);
    assert_eq!(lease(&mut w), 4_000);
    w.configure(None, Setting::Lease, Some(3_000));
    assert_eq!(lease(&mut w), 3_000);
    w.configure(Some(b"default"), Setting::Lease, Some(2_000));
    assert_eq!(lease(&mut w), 2_000);
    w.update(b"job", &Update { lease: Some(1_000), ..Update::default() }).unwrap().unwrap();
    assert_eq!(lease(&mut w), 1_000);
    let claim = Claim { worker: ANN, lease: Some(500), ..Claim::default() };
    w.claim_id(&claim, b"job").unwrap();
    assert_eq!(w.job("job").deadline(), Some(w.now + 500));
    w.is_valid();
}

#[test]
fn a_value_tells_where_it_comes_from_and_goes_back_when_it_is_reset() {
    let mut w = World::default();
    let get = |w: &World, scope: Option<&[u8]>| {
        let (value, source) = w.board.setting(Scope::of_queue(scope), Setting::Retries, &w.rules);
        (value, source.name())
    };
    let mail = Some(&b"mail"[..]);
    assert_eq!(get(&w, mail), (10, "default"));
    w.rule(Setting::Retries, 7);
    assert_eq!(get(&w, mail), (7, "module"));
    w.configure(None, Setting::Retries, Some(6));
    assert_eq!(get(&w, mail), (6, "board"));
    w.configure(mail, Setting::Retries, Some(5));
    assert_eq!((get(&w, mail), get(&w, None)), ((5, "queue"), (6, "board")));
    assert_eq!(w.board.queue_names(), [b"mail"]);
    assert_eq!(w.board.own_settings(Scope::of_queue(mail)), [Setting::Retries]);
    w.reload();
    w.configure(mail, Setting::Retries, None);
    assert_eq!((get(&w, mail), w.board.queue_names().len()), ((6, "board"), 0));
    w.configure(None, Setting::Retries, None);
    assert_eq!(get(&w, mail), (7, "module"));
    assert!(w.board.own_settings(Scope::Board).is_empty());
    w.is_valid();
}

#[test]
fn expiry_is_fixed_when_a_job_is_posted() {
    let mut w = World::default();
    w.configure(Some(b"mail"), Setting::Expire, Some(100));
    w.put_with("before", |p| p.queue = Some(b"mail"));
    w.put_with("own", |p| (p.queue, p.options.expire) = (Some(&b"mail"[..]), Some(-1)));
    w.put("elsewhere");
    w.configure(Some(b"mail"), Setting::Expire, None);
    w.put_with("after", |p| p.queue = Some(b"mail"));
    w.pass(100);
    let states = ["before", "own", "elsewhere", "after"].map(|id| w.is(id).unwrap());
    assert_eq!(states, [Failed, Ready, Ready, Ready]);
}

#[test]
fn retries_of_the_settings_are_read_at_the_failure() {
    let mut w = World::default();
    w.put("job");
    w.configure(None, Setting::Retries, Some(0));
    w.take_id(ANN, "job");
    w.fails(ANN, "job", None).unwrap();
    assert_eq!(w.is("job"), Some(Failed));
}

#[test]
fn many_queues_come_and_go() {
    let mut w = World::default();
    for n in 0..500 {
        let queue = format!("q{n}");
        let id = format!("j{n}");
        w.put_with(&id, |p| p.queue = Some(queue.as_bytes()));
        if n >= 100 {
            let id = format!("j{}", n - 100);
            w.take_id(format!("w{n}").as_bytes(), &id);
            w.done(format!("w{n}").as_bytes(), &id, None).unwrap();
        }
        if n % 50 == 0 {
            w.is_valid();
        }
    }
    assert_eq!(w.board.queue_names().len(), 100);
    assert_eq!(w.take_all(ANN).len(), 100);
    w.is_valid();
}
