//! What has changed and gone since a revision.

use board::*;

use crate::site::*;
use crate::world::World;

fn post(world: &mut World, id: &str) {
    world.post(&Post { id: Some(id.as_bytes()), exists: Exists::Replace, ..Post::default() }).unwrap();
}

fn consume(world: &mut World, id: &str) {
    world.claim_id(&Claim { worker: b"w", ..Claim::default() }, id.as_bytes()).unwrap();
    world
        .work(&(Speaker { worker: b"w", id: id.as_bytes(), ..Speaker::default() }, Consume::default()))
        .unwrap();
}

fn changed(world: &World, revision: u64) -> Vec<String> {
    let filters = Filters::new([Filter::Since(revision)], []);
    let (slots, _) = world.board.list(&Page { filters, count: 100, ..Page::default() });
    let ids = slots.into_iter().map(|slot| world.board.record_of(slot).unwrap().id().to_vec());
    ids.map(|id| String::from_utf8(id).unwrap()).collect()
}

fn gone(world: &World, revision: u64) -> Option<Vec<String>> {
    let ids = world.board.gone_since(revision)?;
    Some(ids.iter().map(|id| String::from_utf8(id.clone()).unwrap()).collect())
}

#[test]
fn what_changed_is_listed_in_order_whether_it_was_followed_or_not() {
    for follow in [false, true] {
        let mut world = World::default();
        ["a", "b", "c"].iter().for_each(|id| post(&mut world, id));
        if follow {
            world.board.follow_changes();
        }
        let then = world.board.revision();
        assert!(changed(&world, then).is_empty());
        world.update(b"c", &Update { priority: Some(1), ..Update::default() });
        world.claim_id(&Claim { worker: b"w", ..Claim::default() }, b"b").unwrap();
        post(&mut world, "d");
        assert_eq!(changed(&world, then), ["b", "c", "d"]);
        assert_eq!(changed(&world, then + 1), ["b", "d"]);
        assert_eq!(changed(&world, 0).len(), 4);
    }
}

#[test]
fn what_went_is_told_however_it_went() {
    let mut world = World::default();
    world.configure(None, Setting::RetainCancelled, Some(100_000));
    ["consumed", "deleted", "dropped", "stays"].iter().for_each(|id| post(&mut world, id));
    world.cancel(b"dropped", false);
    world.pass(90_000);
    let then = world.board.revision();
    consume(&mut world, "consumed");
    assert!(world.delete(b"deleted"));
    world.pass(10_000);
    assert_eq!(world.board.tombstone(b"dropped", world.now), None);
    assert_eq!(gone(&world, then).unwrap(), ["consumed", "deleted", "dropped"]);
    assert_eq!(gone(&world, world.board.revision()).unwrap(), [""; 0]);
    world.reload();
    assert_eq!(gone(&world, then).unwrap(), ["consumed", "deleted", "dropped"]);
}

#[test]
fn a_deleted_id_is_free_and_one_that_came_back_is_not_gone() {
    let mut world = World::default();
    post(&mut world, "a");
    let then = world.board.revision();
    assert!(world.delete(b"a"));
    assert_eq!(gone(&world, then).unwrap(), ["a"]);
    assert!(world.post(&Post { id: Some(b"a"), ..Post::default() }).is_ok());
    assert_eq!(gone(&world, then).unwrap(), [""; 0]);
    assert_eq!(changed(&world, then), ["a"]);
    assert!(world.delete(b"a"));
    assert_eq!(gone(&world, then).unwrap(), ["a"]);
}

#[test]
fn deleted_jobs_push_out_no_tombstones() {
    let mut world = World::default();
    world.configure(None, Setting::Tombstones, Some(2));
    ["a", "b", "c", "d", "e"].iter().for_each(|id| post(&mut world, id));
    ["a", "b"].iter().for_each(|id| consume(&mut world, id));
    ["c", "d", "e"].iter().for_each(|id| assert!(world.delete(id.as_bytes())));
    for id in [b"a", b"b"] {
        assert!(world.board.tombstone(id, world.now).is_some());
    }
}

#[test]
fn a_job_that_had_gone_and_is_forgotten_is_still_told() {
    let mut world = World::default();
    post(&mut world, "a");
    let then = world.board.revision();
    consume(&mut world, "a");
    world.act(Forgotten { id: b"a" });
    world.commit();
    assert_eq!(world.board.tombstone(b"a", world.now), None);
    assert_eq!(gone(&world, then).unwrap(), ["a"]);
}

#[test]
fn a_board_says_when_it_no_longer_knows() {
    for consumed in [true, false] {
        let mut world = World::default();
        world.configure(None, Setting::Tombstones, Some(2));
        ["a", "b", "c"].iter().for_each(|id| post(&mut world, id));
        let then = world.board.revision();
        let go = |world: &mut World, id: &str| match consumed {
            true => consume(world, id),
            false => assert!(world.delete(id.as_bytes())),
        };
        go(&mut world, "a");
        let later = world.board.revision();
        ["b", "c"].iter().for_each(|id| go(&mut world, id));
        assert_eq!(gone(&world, then), None, "consumed: {consumed}");
        assert_eq!(gone(&world, later).unwrap(), ["b", "c"]);
        world.reload();
        assert_eq!(gone(&world, then), None);
        assert_eq!(gone(&world, world.board.revision() + 1), None);
    }
}

#[test]
fn old_departures_are_forgotten_and_none_are_kept_when_none_shall_be() {
    let mut world = World::default();
    ["a", "b", "c"].iter().for_each(|id| post(&mut world, id));
    let then = world.board.revision();
    world.delete(b"a");
    world.now += 60_000;
    world.delete(b"b");
    assert_eq!(gone(&world, then), None);
    assert_eq!(gone(&world, then + 1).unwrap(), ["b"]);
    world.configure(None, Setting::Tombstones, Some(0));
    let then = world.board.revision();
    world.delete(b"c");
    assert_eq!(gone(&world, then), None);
    assert_eq!(gone(&world, then + 1).unwrap(), [""; 0]);
}

#[test]
fn more_changes_than_are_remembered_are_looked_for() {
    let mut world = World::default();
    ["a", "b"].iter().for_each(|id| post(&mut world, id));
    let then = world.board.revision();
    world.board.follow_changes();
    world.claim(&Claim { worker: b"w", ..Claim::default() }, 1);
    for _ in 0..20_000 {
        world
            .heartbeat(&(Speaker { worker: b"w", id: b"a", ..Speaker::default() }, Heartbeat::default()))
            .unwrap();
    }
    post(&mut world, "c");
    assert_eq!(changed(&world, then), ["a", "c"]);
    assert_eq!(changed(&world, world.board.revision() - 1), ["c"]);
}

#[test]
fn what_bears_a_label_is_listed_in_the_order_of_posts_whether_it_was_followed_or_not() {
    for follow in [false, true] {
        let mut world = World::default();
        ["a", "b", "c"].iter().for_each(|id| world.put_with(id, |p| p.tags = Some(vec![b"red"])));
        post(&mut world, "d");
        if follow {
            world.board.follow_changes();
        }
        let then = world.board.revision();
        for id in ["d", "c", "a"] {
            world.update(id.as_bytes(), &Update { priority: Some(1), ..Update::default() });
        }
        for (reverse, want) in [(false, [b"a", b"c"]), (true, [b"c", b"a"])] {
            let filters = Filters::new([Filter::Since(then), Filter::Tag(b"red")], []);
            assert_eq!(world.board.count_jobs(&filters, usize::MAX).unwrap(), 2);
            let mut page = Page { filters, count: 1, reverse, ..Page::default() };
            for (n, id) in want.iter().enumerate() {
                let (slots, next) = world.board.list(&page);
                assert_eq!(world.board.record_of(slots[0]).unwrap().id().to_vec(), *id);
                assert_eq!(next.is_some(), n == 0);
                page.from = next;
            }
        }
    }
}

#[test]
fn an_id_that_the_server_made_and_a_client_chose_again_is_told_once() {
    let mut world = World::default();
    let then = world.board.revision();
    let id = world.post(&Post::default()).unwrap().unwrap();
    assert!(world.delete(&id));
    assert!(world.post(&Post { id: Some(&id), ..Post::default() }).is_ok());
    assert!(world.delete(&id));
    assert_eq!(gone(&world, then).unwrap(), [String::from_utf8(id).unwrap()]);
}

#[test]
fn a_parent_changes_with_its_children() {
    let mut world = World::default();
    ["p", "q"].iter().for_each(|id| post(&mut world, id));
    let then = world.board.revision();
    world.now += 5;
    world.put_with("c", |p| p.parent = Some(b"p"));
    assert_eq!(changed(&world, then), ["p", "c"]);
    assert_eq!(world.record(b"p").unwrap().modified(), world.now);
    let then = world.board.revision();
    assert!(world.delete(b"c"));
    assert_eq!(changed(&world, then), ["p"]);
}

#[test]
fn a_claim_changes_when_a_connection_carries_it() {
    let mut world = World::default();
    post(&mut world, "a");
    world.take_id(ANN, "a");
    let then = world.board.revision();
    world.bind(b"a", 1);
    assert_eq!(changed(&world, then), ["a"]);
    let then = world.board.revision();
    world.bind(b"a", 1);
    assert!(changed(&world, then).is_empty());
}
