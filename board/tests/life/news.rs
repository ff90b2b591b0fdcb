//! What those who follow a board are told.

use board::*;

use crate::world::{Bytes, World};

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
    world.work(&(Speaker { worker: b"w", id: b"a", ..Speaker::default() }, Consume::default())).unwrap();
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
    let after = Some(After { jobs, strict: false, ..After::default() });
    world.post(&Post { id: Some(b"c"), after, ..Post::default() }).unwrap();
    let version = world.record(b"c").unwrap().version();
    world.claim(&Claim { worker: b"w", ..Claim::default() }, 1);
    world.work(&(Speaker { worker: b"w", id: b"a", ..Speaker::default() }, Consume::default())).unwrap();
    world.pass(0);
    assert_eq!(world.state(b"c"), Some(State::Blocked));
    assert!(world.record(b"c").unwrap().version() > version);
}

fn heard(world: &mut World) -> Vec<&'static str> {
    world.board.messages().iter().map(|message| message.kind.name()).collect()
}

fn all() -> Subscribers {
    Subscribers { events: ALL_EVENTS, workers: true, names: ALL_EVENTS, tracked: false }
}

#[test]
fn messages_come_in_the_order_of_what_happened() {
    let mut world = World::default();
    world.board.listen(all());
    post(&mut world, "a");
    world.claim(&Claim { worker: b"w", ..Claim::default() }, 1);
    world.pass(30_000);
    let messages = world.board.messages();
    let kinds: Vec<&str> = messages.iter().map(|message| message.kind.name()).collect();
    assert_eq!(kinds, ["posted", "ready", "claimed", "lost", "ready"]);
    assert!(messages.windows(2).all(|pair| pair[0].version <= pair[1].version));
    assert_eq!(messages[3].worker.as_deref(), Some(&b"w"[..]));
    assert_eq!(messages[3].at, world.now);
    let names =
        [EventKind::Posted, EventKind::Ready, EventKind::Claimed, EventKind::Lost].map(EventKind::bit);
    assert_eq!(world.board.take_kinds(), names.iter().sum());
}

#[test]
fn a_worker_is_told_of_its_loss_though_nobody_else_listens() {
    let mut world = World::default();
    world.board.listen(Subscribers { workers: true, ..Subscribers::default() });
    post(&mut world, "a");
    world.claim(&Claim { worker: b"w", ..Claim::default() }, 1);
    world.cancel(b"a", false);
    world.cancel(b"a", true);
    let messages = world.board.messages();
    assert!(messages.iter().all(|message| !message.public));
    let kinds: Vec<EventKind> = messages.iter().map(|message| message.kind).collect();
    assert_eq!(kinds, [EventKind::Cancel, EventKind::Lost]);
    assert_eq!(world.board.take_kinds(), 0);
}

#[test]
fn nothing_is_told_when_nobody_listens() {
    let mut world = World::default();
    post(&mut world, "a");
    world.claim(&Claim { worker: b"w", ..Claim::default() }, 1);
    world.release(b"a");
    assert!(heard(&mut world).is_empty());
    assert_eq!(world.board.take_kinds(), 0);
}

#[test]
fn the_end_of_a_job_says_whether_its_record_is_kept() {
    let mut world = World::default();
    post(&mut world, "a");
    post(&mut world, "b");
    world.claim(&Claim { worker: b"w", ..Claim::default() }, 2);
    world.board.listen(all());
    world.work(&(Speaker { worker: b"w", id: b"a", ..Speaker::default() }, Consume::default())).unwrap();
    world
        .work(&(
            Speaker { worker: b"w", id: b"b", ..Speaker::default() },
            Consume { retain: Some(5), ..Consume::default() },
        ))
        .unwrap();
    let kept: Vec<bool> =
        world.board.messages().iter().map(|m| m.fields.contains(&EventField::Flag("kept", true))).collect();
    assert_eq!(kept, [false, true]);
    world.pass(5);
    assert_eq!(heard(&mut world), ["deleted"]);
}

#[test]
fn the_bits_of_the_setting_are_the_numbers_of_the_topics() {
    for (number, kind) in EventKind::ALL.into_iter().enumerate() {
        assert_eq!(kind.bit(), 1 << number);
    }
    assert_eq!(EventKind::Cancel.bit() & ALL_EVENTS, 0);
}

fn track(world: &mut World, id: &str) {
    let label = Label { track: Some(true), ..Label::default() };
    world.label(id.as_bytes(), &label).unwrap().unwrap();
}

#[test]
fn of_jobs_only_tracked_ones_are_told_when_it_is_said_so() {
    let mut world = World::default();
    ["a", "b"].iter().for_each(|id| post(&mut world, id));
    track(&mut world, "b");
    world.board.listen(Subscribers { tracked: true, ..all() });
    world.claim(&Claim { worker: b"w", ..Claim::default() }, 2);
    let ids = |messages: &[Event]| -> Vec<Bytes> {
        messages.iter().map(|m| m.id.as_ref().map_or(Vec::new(), |id| id.borrowed().to_vec())).collect()
    };
    assert_eq!(ids(&world.board.messages()), [b"b".to_vec()]);
    // Of both it is known that it happened, and their worker is told in any case.
    assert_eq!(world.board.take_kinds(), EventKind::Claimed.bit());
    ["a", "b"].iter().for_each(|id| world.release(id.as_bytes()).unwrap().unwrap());
    let messages = world.board.messages();
    let told: Vec<(&str, bool)> = messages.iter().map(|m| (m.kind.name(), m.public)).collect();
    assert_eq!(told, [("lost", false), ("lost", true), ("ready", true)]);
    // What happens to the board is told, and the end of a tracked record.
    world.configure(None, Setting::Lease, Some(7));
    ["a", "b"].iter().for_each(|id| assert!(world.delete(id.as_bytes())));
    assert_eq!(heard(&mut world), ["settings", "deleted"]);
}

fn changes(world: &mut World) -> Vec<(String, bool, bool)> {
    let said = |message: &Event| {
        let changed = message.fields.iter().find_map(|field| match field {
            EventField::Text("changed", text) => Some(String::from_utf8(text.to_vec()).unwrap()),
            _ => None,
        });
        (changed.unwrap_or_default(), message.tracked, message.public)
    };
    let messages = world.board.messages();
    messages.iter().filter(|message| message.kind == EventKind::Updated).map(said).collect()
}

#[test]
fn an_update_says_what_it_changed() {
    let mut world = World::default();
    post(&mut world, "a");
    world.board.listen(all());
    let report = Some(Report { log: Some(b"looked at"), ..Report::of(vec![pair(b"f", b"v")]) });
    let update = Update { priority: Some(3), queue: Some(b"other"), report, ..Update::default() };
    world.update(b"a", &update).unwrap().unwrap();
    assert_eq!(changes(&mut world), [("priority,queue,meta,log".to_string(), false, true)]);
    let tag = Label { tag: vec![b"red"], track: Some(true), ..Label::default() };
    world.label(b"a", &tag).unwrap().unwrap();
    assert_eq!(changes(&mut world), [("tags,track".to_string(), true, true)]);
    // Nothing changes, nothing is said.
    world.label(b"a", &tag).unwrap().unwrap();
    assert_eq!(changes(&mut world), []);
}

#[test]
fn who_follows_tracked_jobs_learns_that_one_is_tracked_no_longer() {
    let mut world = World::default();
    post(&mut world, "a");
    world.board.listen(Subscribers { tracked: true, ..all() });
    track(&mut world, "a");
    let label = Label { track: Some(false), ..Label::default() };
    world.label(b"a", &label).unwrap().unwrap();
    world.label(b"a", &Label { tag: vec![b"red"], ..Label::default() }).unwrap().unwrap();
    let told = changes(&mut world);
    assert_eq!(told, [("track".to_string(), true, true), ("untrack".to_string(), true, true)]);
}

#[test]
fn messages_of_tracked_jobs_say_so() {
    let mut world = World::default();
    ["a", "b"].iter().for_each(|id| post(&mut world, id));
    track(&mut world, "b");
    world.board.listen(all());
    world.claim(&Claim { worker: b"w", ..Claim::default() }, 2);
    let tracked: Vec<bool> = world.board.messages().iter().map(|message| message.tracked).collect();
    assert_eq!(tracked, [false, true]);
}
