//! What those who follow a board are told.

use board::*;

use crate::world::World;

fn changed(world: &mut World) -> Vec<String> {
    let mut ids = Vec::new();
    world.board.changed(|_, id| ids.push(String::from_utf8_lossy(id).into_owned()));
    ids.sort();
    ids.dedup();
    ids
}

fn post(world: &mut World, id: &str) {
    world.post(&Post { id: Some(id.as_bytes()), ..Post::default() }).unwrap();
}

#[test]
fn nothing_is_noted_when_nobody_follows() {
    let mut world = World::default();
    post(&mut world, "a");
    assert!(changed(&mut world).is_empty());
}

#[test]
fn records_that_change_and_go_are_noted_until_they_are_asked_for() {
    let mut world = World::default();
    world.board.watch(true);
    post(&mut world, "a");
    post(&mut world, "b");
    assert_eq!(changed(&mut world), ["a", "b"]);
    world.claim(&Claim { worker: b"w", ..Claim::default() }, 1);
    assert_eq!(changed(&mut world), ["a"]);
    world.consume(&Consume { worker: b"w", id: b"a", ..Consume::default() }).unwrap();
    assert_eq!(changed(&mut world), ["a"]);
    assert!(world.delete(b"b"));
    assert_eq!(changed(&mut world), ["b"]);
    assert!(changed(&mut world).is_empty());
}

#[test]
fn one_fewer_to_wait_for_is_a_change() {
    let mut world = World::default();
    post(&mut world, "a");
    post(&mut world, "b");
    let jobs = vec![(&b"a"[..], OnFailure::Hold), (&b"b"[..], OnFailure::Hold)];
    let after = Some(After { jobs, strict: false });
    world.post(&Post { id: Some(b"c"), after, ..Post::default() }).unwrap();
    let version = world.record(b"c").unwrap().version();
    world.claim(&Claim { worker: b"w", ..Claim::default() }, 1);
    world.consume(&Consume { worker: b"w", id: b"a", ..Consume::default() }).unwrap();
    world.pass(0);
    assert_eq!(world.state(b"c"), Some(State::Blocked));
    assert!(world.record(b"c").unwrap().version() > version);
}
