//! Flows: a whole graph in one command, or nothing.

use board::*;

use crate::site::*;
use crate::world::{Bytes, World};

fn node(label: &'static str) -> Node<'static> {
    let id = Some(label.as_bytes());
    Node { label: label.as_bytes(), post: Post { id, payload: b"work", ..Post::default() } }
}

fn after(label: &'static str, others: &[&'static str], on_failure: OnFailure) -> Node<'static> {
    let jobs = others.iter().map(|other| (other.as_bytes(), on_failure)).collect();
    let mut node = node(label);
    node.post.after = Some(After { jobs, strict: true, ..After::default() });
    node
}

fn part(label: &'static str, parent: &'static str) -> Node<'static> {
    let mut node = node(label);
    node.post.parent = Some(parent.as_bytes());
    node
}

impl World {
    fn comes(&mut self, nodes: &[Node<'_>]) -> Vec<String> {
        let ids = self.flow(nodes.to_vec()).unwrap();
        self.is_valid();
        ids.iter().map(|id| String::from_utf8_lossy(id).into_owned()).collect()
    }

    fn fails_whole(&mut self, nodes: &[Node<'_>], refusal: &str) {
        let before = self.board.digest();
        assert_eq!(self.flow(nodes.to_vec()), refused(refusal));
        assert_eq!(self.board.digest(), before);
    }

    fn does(&mut self, id: &str) {
        self.take_id(ANN, id);
        self.done(ANN, id, None).unwrap();
        self.pass(0);
    }
}

#[test]
fn a_chain_runs_one_by_one_however_it_is_named() {
    let mut w = World::default();
    let chain = [after("c", &["b"], OnFailure::Hold), after("b", &["a"], OnFailure::Hold), node("a")];
    assert_eq!(w.comes(&chain), ["c", "b", "a"]);
    assert_eq!((w.is("a"), w.is("b"), w.is("c")), (Some(Ready), Some(Blocked), Some(Blocked)));
    w.does("a");
    assert_eq!((w.is("b"), w.is("c")), (Some(Ready), Some(Blocked)));
    w.does("b");
    w.does("c");
    assert!(w.board.is_empty());
}

#[test]
fn a_parent_waits_for_its_children_and_collects_their_results() {
    let mut w = World::default();
    w.comes(&[
        after("sum", &["one", "two"], OnFailure::Run),
        part("one", "sum"),
        part("two", "sum"),
        after("end", &["sum"], OnFailure::Hold),
    ]);
    assert_eq!((w.is("sum"), w.is("one"), w.is("end")), (Some(Blocked), Some(Ready), Some(Blocked)));
    w.take_id(ANN, "one");
    let consume = (
        Speaker { worker: ANN, id: b"one", ..Speaker::default() },
        Consume { result: Some(b"1"), ..Consume::default() },
    );
    w.work(&consume).unwrap();
    w.take_id(ANN, "two");
    w.fails_with(ANN, "two", None, Retry::No).unwrap();
    w.pass(10_000_000);
    assert_eq!((w.is("sum"), w.job("sum").progress()), (Some(Ready), Some(50.0)));
    assert_eq!((w.job("one").result(), w.is("two")), (Some(&b"1"[..]), Some(Failed)));
    w.does("sum");
    w.does("end");
    assert_eq!(w.is("one"), None);
    w.is_valid();
}

#[test]
fn each_edge_has_its_own_policy() {
    use OnFailure::*;
    let mut w = World::default();
    w.comes(&[
        node("a"),
        after("held", &["a"], Hold),
        after("cancelled", &["a"], Cancel),
        after("failed", &["a"], Fail),
        after("run", &["a"], Run),
    ]);
    w.take_id(ANN, "a");
    w.fails_with(ANN, "a", None, Retry::No).unwrap();
    w.pass(0);
    let states = ["held", "cancelled", "failed", "run"].map(|id| w.is(id).unwrap());
    assert_eq!(states, [Blocked, Cancelled, Failed, Ready]);
}

#[test]
fn a_label_goes_before_the_id_of_a_node_and_that_before_one_on_the_board() {
    let mut w = World::default();
    w.put("x");
    w.put("y");
    w.put("z");
    let mut labelled = node("n");
    (labelled.label, labelled.post.id) = (b"x", Some(&b"n"[..]));
    let mut named = node("m");
    named.label = b"its label";
    let mut last = after("last", &["x", "m", "y"], OnFailure::Hold);
    last.post.parent = Some(b"z");
    last.post.share = Some(3);
    w.comes(&[last, labelled, named]);
    let after: Vec<Bytes> = w.job("last").after().iter().map(|id| id.to_vec()).collect();
    assert_eq!(after, [b"y", b"n", b"m"]);
    assert_eq!((w.job("last").parent().unwrap().to_vec(), w.job("last").share()), (b"z".to_vec(), Some(3)));
}

#[test]
fn nodes_without_an_id_are_given_one() {
    let mut w = World::default();
    let nodes = [after("b", &["a"], OnFailure::Hold), part("c", "b"), node("a")];
    let nodes = nodes.map(|mut node| {
        node.post.id = None;
        node
    });
    let ids = w.comes(&nodes);
    assert_eq!(w.job(&ids[0]).after()[0].to_vec(), ids[2].as_bytes());
    assert_eq!(w.job(&ids[1]).parent().unwrap().to_vec(), ids[0].as_bytes());
}

#[test]
fn a_flow_comes_whole_or_not_at_all() {
    let mut w = World::default();
    w.put("there");
    w.put_in("over", Failed);
    let hold = OnFailure::Hold;
    let fine = || node("fine");
    w.fails_whole(&[fine(), node("there")], "EXISTS there in node 'there'");
    w.fails_whole(&[fine(), fine()], "EXISTS fine in node 'fine'");
    w.fails_whole(&[fine(), after("b", &["nobody"], hold)], "NOJOB no such job nobody in node 'b'");
    w.fails_whole(&[fine(), part("b", "nobody")], "NOJOB no such job nobody in node 'b'");
    w.fails_whole(&[fine(), part("b", "over")], "ENDED failed over in node 'b'");
    w.fails_whole(&[fine(), after("b", &["b"], hold)], "CYCLE a job would wait for itself in node 'b'");
    let circle = [fine(), after("b", &["c"], hold), after("c", &["d"], hold), after("d", &["c"], hold)];
    w.fails_whole(&circle, "CYCLE a job would wait for itself in node 'c'");
    w.fails_whole(&[fine(), part("b", "b")], "CYCLE a job would be its own ancestor in node 'b'");
    let circle = [part("b", "c"), part("c", "b"), fine()];
    w.fails_whole(&circle, "CYCLE a job would be its own ancestor in node 'b'");
    let mut twice = node("fine");
    twice.label = b"other";
    w.fails_whole(&[fine(), twice], "EXISTS fine in node 'other'");
}

#[test]
fn generations_of_a_flow_add_to_those_above_it() {
    let mut w = World::default();
    w.put("top");
    w.put_with("below", |p| p.parent = Some(b"top"));
    let names: Vec<&'static str> = (0..40).map(|n| &*format!("n{n}").leak()).collect();
    let chain = |n: usize| {
        let mut nodes: Vec<_> = (1..n).map(|n| part(names[n], names[n - 1])).collect();
        nodes.push(part(names[0], "below"));
        nodes
    };
    w.fails_whole(&chain(32), "LIMIT generations in node 'n31'");
    w.comes(&chain(31));
    assert_eq!(w.job("n0").parent().unwrap().to_vec(), b"below");
}

#[test]
fn a_flow_for_many_waiting_parents_looks_at_a_bounded_number_of_nodes() {
    const MANY: usize = 400;
    let named =
        |letter: char| -> Vec<&'static str> { (0..MANY).map(|n| &*format!("{letter}{n}").leak()).collect() };
    let (parents, old, chain, new) = (named('p'), named('o'), named('c'), named('n'));
    let mut w = World::default();
    w.put("before");
    for (parent, child) in parents.iter().zip(&old) {
        let mut waits = after(parent, &[], OnFailure::Hold);
        waits.post.after = Some(After { children: Some(OnFailure::Hold), ..After::default() });
        w.comes(&[waits, part(child, parent)]);
    }
    // Each new child waits for the end of one chain, which begins with what `first` waits for.
    let flow = |first: &[&'static str], children: usize| {
        let mut nodes = vec![after(chain[0], first, OnFailure::Hold)];
        nodes.extend((1..300).map(|n| after(chain[n], &[chain[n - 1]], OnFailure::Hold)));
        nodes.extend((0..children).map(|n| {
            let mut node = after(new[n], &[chain[299]], OnFailure::Hold);
            node.post.parent = Some(parents[n].as_bytes());
            node
        }));
        nodes
    };
    w.pass(0);
    w.fails_whole(&flow(&["before"], MANY), "LIMIT dependency chain in node 'n166'");
    w.comes(&flow(&[], MANY));
    let mut again = flow(&["before"], 166);
    for node in &mut again {
        node.post.id = None;
    }
    w.comes(&again);
}
