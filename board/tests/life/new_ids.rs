//! Ids that the server makes: no job has them yet, whatever clients have chosen.

use std::collections::BTreeSet;

use board::*;

use crate::world::World;

/// The id that a post without one would get, if it were the first command from now on.
fn next_id(w: &mut World) -> Vec<u8> {
    let rules = w.rules.clone();
    let env = w.env(&rules);
    let post = Post { payload: b"x", ..Post::default() };
    match w.board.post(&env, &post, 0) {
        Ok(PostAnswer::Do(posted)) => posted.text(<[u8]>::to_vec),
        _ => panic!("a post is refused"),
    }
}

fn plain() -> Post<'static> {
    Post { payload: b"x", ..Post::default() }
}

/// A board whose seed a client knows, and the id that it reckons for the post after its next.
fn reckoned() -> (World, Vec<u8>) {
    let mut w = World::default();
    w.post(&plain()).unwrap();
    let mut twin = World::on(w.board.copy().unwrap());
    (twin.now, twin.draws) = (w.now, w.draws);
    twin.post(&Post { id: Some(b"any"), ..plain() }).unwrap();
    let id = next_id(&mut twin);
    (w, id)
}

#[test]
fn an_id_that_a_client_has_reckoned_and_chosen_is_not_made() {
    let (mut w, id) = reckoned();
    w.post(&Post { id: Some(&id), ..plain() }).unwrap();
    let made = w.post(&plain()).unwrap().unwrap();
    assert_ne!(made, id);
    w.is_valid();
    w.reload();
    w.is_valid();
    assert_eq!(w.board.find(&id), Some(1));
    assert_eq!(w.board.find(&made), Some(2));
}

#[test]
fn nor_is_one_that_another_node_of_the_flow_chooses() {
    for turned in [false, true] {
        let mut w = World::default();
        w.post(&plain()).unwrap();
        // That of the first node, and that of the second.
        let mut twin = World::on(w.board.copy().unwrap());
        (twin.now, twin.draws) = (w.now, w.draws);
        if turned {
            twin.post(&Post { id: Some(b"any"), ..plain() }).unwrap();
        }
        let id = next_id(&mut twin);
        let made = Node { label: b"made", post: plain() };
        let chosen = Node { label: b"chosen", post: Post { id: Some(&id), ..plain() } };
        let nodes = if turned { vec![chosen, made] } else { vec![made, chosen] };
        let ids = w.flow(nodes).unwrap();
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 2);
        assert!(ids.contains(&id));
        w.is_valid();
        w.reload();
        w.is_valid();
    }
}

#[test]
fn two_servers_that_post_to_copies_of_a_board_make_different_ids() {
    let mut w = World::default();
    w.post(&plain()).unwrap();
    let mut other = World::on(w.board.copy().unwrap());
    (other.now, other.giver) = (w.now, w.giver + 1);
    let ids = |w: &mut World| (0..100).map(|_| w.post(&plain()).unwrap().unwrap()).collect::<BTreeSet<_>>();
    let (here, there) = (ids(&mut w), ids(&mut other));
    assert_eq!(here.intersection(&there).count(), 0);
    w.reload();
    w.is_valid();
    other.reload();
    other.is_valid();
}
