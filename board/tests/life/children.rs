//! Children as a batch: a job that waits for all of them, however many there are.

use board::*;

use crate::site::*;
use crate::world::work::Waited;
use crate::world::World;

fn after(on_failure: OnFailure) -> Option<After<'static>> {
    Some(After { children: Some(on_failure), ..After::default() })
}

fn node(label: &str) -> Node<'_> {
    let label = label.as_bytes();
    Node { label, post: Post { id: Some(label), payload: label, ..Post::default() } }
}

fn child_of<'n>(label: &'n str, parent: &'n str) -> Node<'n> {
    let mut node = node(label);
    node.post.parent = Some(parent.as_bytes());
    node
}

impl World {
    fn put_part(&mut self, id: &str, parent: &str) {
        self.put_with(id, |p| p.parent = Some(parent.as_bytes()));
    }

    fn waits_for_children(&mut self, id: &str, on_failure: OnFailure) -> Result<Waited, String> {
        let request = Await { children: Some(on_failure), ..Await::default() };
        let waited = self.await_signals(&(Speaker { worker: ANN, id: id.as_bytes(), token: None }, request));
        self.pass(0);
        waited
    }

    /// A job that has begun, with these children.
    fn begun(&mut self, id: &str, children: &[&str]) {
        self.put(id);
        self.take_id(ANN, id);
        children.iter().for_each(|child| self.put_part(child, id));
    }

    fn ends(&mut self, id: &str, state: State) {
        match state {
            Cancelled => assert_eq!(self.cancel(id.as_bytes(), true), Some(Ok("cancelled"))),
            _ => {
                self.take_id(BOB, id);
                match state {
                    Complete => self.done(BOB, id, None).unwrap(),
                    Failed => self.fails_with(BOB, id, None, Retry::No).unwrap(),
                    _ => self.trashes(BOB, id, None).unwrap(),
                };
            }
        }
        self.pass(0);
    }

    /// How many children there are, how many have not ended, how many ended without success.
    fn sums(&self, id: &str) -> (u64, u32, u64) {
        let job = self.job(id);
        (job.children().unwrap_or(0), job.pending(), job.unsuccessful())
    }

    fn claims_and_waits(&mut self, id: &str, on_failure: OnFailure) -> Result<Waited, String> {
        self.take_id(ANN, id);
        self.waits_for_children(id, on_failure)
    }

    fn first_reason(&self, id: &str) -> (&'static str, String) {
        let reason = self.explain(id.as_bytes()).unwrap().reasons.remove(0);
        (reason.code, reason.text)
    }
}

fn blocked() -> Result<Waited, String> {
    Ok(Waited::State(Blocked))
}

fn is_kept(waited: &Result<Waited, String>) -> bool {
    matches!(waited, Ok(Waited::Kept { .. }))
}

#[test]
fn a_running_job_adds_children_and_waits_for_them() {
    let mut w = World::default();
    w.begun("p", &["a", "b"]);
    assert_eq!(w.waits_for_children("p", OnFailure::Hold), blocked());
    assert_eq!((w.is("p"), w.sums("p")), (Some(Blocked), (2, 2, 0)));
    w.ends("a", Complete);
    // One that is added while it waits counts as well.
    w.put_part("c", "p");
    w.ends("b", Complete);
    assert_eq!((w.is("p"), w.sums("p")), (Some(Blocked), (3, 1, 0)));
    w.ends("c", Complete);
    assert_eq!((w.is("p"), w.sums("p")), (Some(Ready), (3, 0, 0)));
    // Once met it stays met, until a run asks again.
    w.put_part("d", "p");
    assert_eq!(w.is("p"), Some(Ready));
    assert_eq!(w.claims_and_waits("p", OnFailure::Hold), blocked());
    w.ends("d", Complete);
    w.take_id(ANN, "p");
    assert!(is_kept(&w.waits_for_children("p", OnFailure::Hold)));
    assert_eq!(w.is("p"), Some(Claimed));
    assert_eq!(w.events("p")[..4], ["posted", "claimed", "awaiting", "claimed"]);
    assert_eq!(w.job("p").history()[2].children, 2);
    w.is_valid();
}

#[test]
fn without_children_there_is_nothing_to_wait_for() {
    let mut w = World::default();
    w.put_with("p", |p| p.after = after(OnFailure::Hold));
    assert_eq!((w.is("p"), w.events("p")), (Some(Ready), vec!["posted"]));
    w.take_id(ANN, "p");
    assert!(is_kept(&w.waits_for_children("p", OnFailure::Hold)));
    assert_eq!(
        w.flow(vec![{
            let mut whole = node("whole");
            whole.post.after = after(OnFailure::Hold);
            whole
        }]),
        Ok(vec![b"whole".to_vec()])
    );
    w.pass(0);
    assert_eq!((w.is("whole"), w.events("whole")), (Some(Ready), vec!["posted"]));
    w.is_valid();
}

#[test]
fn a_flow_decides_when_all_of_it_is_there() {
    let mut w = World::default();
    let mut sum = node("sum");
    sum.post.after = after(OnFailure::Cancel);
    assert!(w.flow(vec![sum, child_of("a", "sum"), child_of("b", "sum")]).is_ok());
    // The server looks at it at the end of the command.
    assert_eq!(w.is("sum"), Some(Blocked));
    w.is_valid();
    w.reload();
    w.pass(0);
    assert_eq!((w.is("sum"), w.sums("sum")), (Some(Blocked), (2, 2, 0)));
    assert_eq!(w.events("sum"), ["posted", "awaiting"]);
    w.ends("a", Complete);
    w.ends("b", Complete);
    assert_eq!(w.is("sum"), Some(Ready));
    w.is_valid();
}

#[test]
fn what_a_child_without_success_means_is_said_by_the_parent() {
    for state in [Failed, Cancelled, Trashed] {
        for (on_failure, after_one, after_all) in [
            (OnFailure::Hold, Some(Blocked), Some(Blocked)),
            (OnFailure::Cancel, Some(Cancelled), Some(Cancelled)),
            (OnFailure::Fail, Some(Failed), Some(Failed)),
            (OnFailure::Run, Some(Blocked), Some(Ready)),
        ] {
            let mut w = World::default();
            w.begun("p", &["a", "b"]);
            w.waits_for_children("p", on_failure).unwrap();
            w.ends("a", state);
            assert_eq!((w.is("p"), w.sums("p")), (after_one, (2, 1, 1)), "{on_failure:?}");
            w.ends("b", Complete);
            assert_eq!((w.is("p"), w.sums("p")), (after_all, (2, 0, 1)), "{on_failure:?}");
            w.is_valid();
        }
    }
}

#[test]
fn a_failure_before_the_wait_counts_and_the_message_says_how_many() {
    let mut w = World::default();
    w.begun("p", &["a", "b", "c"]);
    w.ends("a", Failed);
    w.ends("c", Trashed);
    w.waits_for_children("p", OnFailure::Fail).unwrap();
    assert_eq!((w.is("p"), w.is("b")), (Some(Failed), Some(Ready)), "its children stay");
    assert_eq!(w.job("p").kind(), Some(&b"dependency"[..]));
    assert_eq!(w.job("p").message(), Some(&b"2 of 3 children unsuccessful"[..]));
    let mut w = World::default();
    w.begun("p", &["a"]);
    w.ends("a", Failed);
    w.waits_for_children("p", OnFailure::Cancel).unwrap();
    assert_eq!(w.job("p").reason(), Some(&b"1 of 1 children unsuccessful"[..]));
    w.is_valid();
}

#[test]
fn unsuccessful_children_count_without_a_record() {
    let mut w = World::default();
    w.configure(None, Setting::RetainFailed, Some(0));
    w.begun("p", &["a", "b"]);
    w.waits_for_children("p", OnFailure::Hold).unwrap();
    w.ends("a", Failed);
    w.ends("b", Complete);
    assert_eq!((w.is("a"), w.is("p"), w.sums("p")), (None, Some(Blocked), (2, 0, 1)));
    assert_eq!(
        w.first_reason("p"),
        (
            "children",
            "It waits for its children. 1 ended without success: requeue or delete them, or let it run with \
             JOB.DEPEND REMOVE and CHILDREN."
                .into()
        )
    );
    w.is_valid();
    w.reload();
    w.depend(b"p", &Depend::RemoveChildren).unwrap().unwrap();
    assert_eq!(w.is("p"), Some(Ready));
    // The next run is not held up either.
    w.take_id(ANN, "p");
    assert!(is_kept(&w.waits_for_children("p", OnFailure::Hold)));
    w.is_valid();
}

#[test]
fn requeueing_replacing_or_deleting_a_child_mends_the_count() {
    let mut w = World::default();
    w.begun("p", &["a", "b", "c"]);
    w.waits_for_children("p", OnFailure::Hold).unwrap();
    for id in ["a", "b", "c"] {
        w.ends(id, Failed);
    }
    assert_eq!(w.sums("p"), (3, 0, 3));
    w.requeue(b"a", To::Same).unwrap().unwrap();
    assert_eq!(w.sums("p"), (3, 1, 2));
    w.post(&Post { id: Some(b"b"), exists: Exists::Replace, ..Post::default() }).unwrap();
    assert_eq!(w.sums("p"), (3, 2, 1));
    assert!(w.delete(b"c"));
    assert_eq!(w.sums("p"), (2, 2, 0));
    w.ends("a", Complete);
    w.ends("b", Complete);
    assert_eq!(w.is("p"), Some(Ready));
    // A delete, or another parent, can also be all that was missing.
    let mut w = World::default();
    w.begun("p", &["a", "b", "c"]);
    w.put("other");
    w.waits_for_children("p", OnFailure::Hold).unwrap();
    w.ends("a", Failed);
    w.delete(b"b");
    w.post(&Post { id: Some(b"c"), exists: Exists::Replace, parent: Some(b"other"), ..Post::default() })
        .unwrap();
    assert_eq!((w.is("p"), w.sums("p")), (Some(Blocked), (1, 0, 1)));
    w.delete(b"a");
    w.pass(0);
    assert_eq!((w.is("p"), w.sums("p")), (Some(Ready), (0, 0, 0)));
    w.is_valid();
}

#[test]
fn all_that_it_waits_for_must_be_there() {
    let mut w = World::default();
    w.put("first");
    w.begun("p", &["a"]);
    let (jobs, due) = (vec![(&b"first"[..], OnFailure::Hold)], w.now + 50);
    let after = After { jobs, children: Some(OnFailure::Run), strict: true };
    let gate = Gate { names: vec![(&b"go"[..]).into()], ..Gate::default() };
    let next = Advance {
        queue: b"sum",
        after: Some(after),
        due: Some(due),
        gate: Some(Box::new(gate)),
        ..Advance::default()
    };
    w.work(&(Speaker { worker: ANN, id: b"p", token: None }, next)).unwrap();
    let codes = |w: &World| -> Vec<&str> {
        w.explain(b"p").unwrap().reasons.iter().map(|reason| reason.code).collect()
    };
    assert_eq!(codes(&w), ["dependencies", "signals", "children", "delayed"]);
    // No child is left: but later ones count while the rest is missing.
    w.ends("a", Complete);
    w.put_part("b", "p");
    w.ends("first", Complete);
    let go = Signal { name: b"go", ..Signal::default() };
    assert_eq!(w.signal(b"p", &go), Some(Ok("kept")));
    assert_eq!(codes(&w), ["children", "delayed"]);
    w.ends("b", Complete);
    assert_eq!((w.is("p"), codes(&w)), (Some(Scheduled), vec!["delayed"]));
    w.put_part("c", "p");
    w.pass(50);
    assert_eq!(w.is("p"), Some(Ready));
    w.is_valid();
}

#[test]
fn a_signal_closes_an_open_batch() {
    let mut w = World::default();
    let gate = Gate { names: vec![(&b"sealed"[..]).into()], ..Gate::default() };
    w.put_with("p", |p| (p.after, p.gate) = (after(OnFailure::Hold), Some(Box::new(gate))));
    w.put_part("a", "p");
    w.ends("a", Complete);
    w.put_part("b", "p");
    let sealed = Signal { name: b"sealed", ..Signal::default() };
    assert_eq!((w.signal(b"p", &sealed), w.is("p")), (Some(Ok("kept")), Some(Blocked)));
    w.ends("b", Complete);
    assert_eq!(w.is("p"), Some(Ready));
    w.is_valid();
}

#[test]
fn a_timeout_is_about_the_signals_alone() {
    let mut w = World::default();
    w.begun("p", &["a"]);
    let names = vec![(&b"go"[..]).into()];
    let gate = Gate { names, within: Some(100), ..Gate::default() };
    let request = Await { gate, children: Some(OnFailure::Hold), ..Await::default() };
    let wait = |w: &mut World| {
        w.await_signals(&(Speaker { worker: ANN, id: b"p", token: None }, request.clone())).unwrap()
    };
    assert_eq!(wait(&mut w), Waited::State(Blocked));
    w.pass(100);
    assert_eq!((w.is("p"), w.first_reason("p").0), (Some(Blocked), "children"));
    w.ends("a", Complete);
    w.take_id(ANN, "p");
    w.put_part("b", "p");
    // The signals are over for good, the children of this run are not.
    assert_eq!(wait(&mut w), Waited::State(Blocked));
    assert_eq!(w.job("p").waiting(), None);
    w.ends("b", Complete);
    w.take_id(ANN, "p");
    assert!(matches!(wait(&mut w), Waited::Kept { timeout: true, .. }));
    w.is_valid();
}

#[test]
fn jobs_do_not_wait_for_each_other_through_parents() {
    let waits = |other: &'static [u8]| {
        Some(After { jobs: vec![(other, OnFailure::Hold)], strict: true, ..After::default() })
    };
    let mut w = World::default();
    w.begun("p", &["a"]);
    // A child may follow its parent as long as that does not wait for it.
    w.put_with("k", |k| (k.parent, k.after) = (Some(&b"p"[..]), waits(b"p")));
    assert_eq!(w.waits_for_children("p", OnFailure::Hold), cycle());
    assert!(w.delete(b"k"));
    assert_eq!(w.waits_for_children("p", OnFailure::Hold), blocked());
    let child = |id, other| Post { id: Some(id), parent: Some(b"p"), after: waits(other), ..Post::default() };
    assert_eq!(w.post(&child(b"k", b"p")), cycle());
    // By way of others: of one that waits, and of a parent that waits.
    w.put_after("x", &["p"], OnFailure::Hold);
    assert_eq!(w.post(&child(b"k", b"x")), cycle());
    w.begun("q", &[]);
    w.put_with("qc", |k| (k.parent, k.after) = (Some(&b"q"[..]), waits(b"x")));
    assert_eq!(w.waits_for_children("q", OnFailure::Hold), blocked());
    assert_eq!(w.post(&child(b"k", b"q")), cycle());
    assert_eq!(w.depend(b"a", &add(b"q")), Some(cycle()));
    assert!(w.post(&child(b"k", b"a")).is_ok());
    // A job that waits already gets a parent.
    w.put_after("late", &["q"], OnFailure::Hold);
    let moved = Post { id: Some(b"late"), exists: Exists::Replace, parent: Some(b"p"), ..Post::default() };
    assert_eq!(w.post(&moved), cycle());
    // A parent that has not run is to wait.
    w.put("r");
    w.put_with("rc", |k| (k.parent, k.after) = (Some(&b"r"[..]), waits(b"r")));
    let asks =
        Post { id: Some(b"r"), exists: Exists::Replace, after: after(OnFailure::Run), ..Post::default() };
    assert_eq!(w.post(&asks), cycle());
    let children = Depend::Add(After { children: Some(OnFailure::Run), ..After::default() });
    assert_eq!(w.depend(b"r", &children), Some(cycle()));
    w.is_valid();
}

fn cycle<T>() -> Result<T, String> {
    refused("CYCLE a job would wait for itself")
}

fn add(other: &'static [u8]) -> Depend<'static> {
    Depend::Add(After { jobs: vec![(other, OnFailure::Hold)], ..After::default() })
}

#[test]
fn flows_with_a_cycle_through_parents_are_refused_whole() {
    let mut w = World::default();
    let waits = |nodes: &mut Node<'_>, other: &'static [u8]| {
        nodes.post.after.get_or_insert_default().jobs.push((other, OnFailure::Hold));
    };
    let sum = || {
        let mut sum = node("sum");
        sum.post.after = after(OnFailure::Hold);
        sum
    };
    let mut part = child_of("part", "sum");
    waits(&mut part, b"sum");
    assert_eq!(w.flow(vec![sum(), part]), refused("CYCLE a job would wait for itself in node 'sum'"));
    assert_eq!(w.board.len(), 0);
    // By way of the board: its `p` waits for its children, `x` for `p`.
    w.begun("p", &["a"]);
    w.waits_for_children("p", OnFailure::Hold).unwrap();
    w.put_after("x", &["p"], OnFailure::Hold);
    let mut first = node("first");
    waits(&mut first, b"x");
    let mut second = child_of("second", "p");
    waits(&mut second, b"first");
    let refusal = refused("CYCLE a job would wait for itself in node 'second'");
    assert_eq!(w.flow(vec![first.clone(), second]), refusal);
    assert!(w.flow(vec![first, child_of("second", "p")]).is_ok());
    // Two parents of the board whose new children wait for the other one.
    w.begun("q", &["qa"]);
    w.waits_for_children("q", OnFailure::Hold).unwrap();
    let (mut of_p, mut of_q) = (child_of("of p", "p"), child_of("of q", "q"));
    waits(&mut of_p, b"q");
    assert!(w.flow(vec![of_p.clone()]).is_ok(), "one of them may");
    waits(&mut of_q, b"p");
    assert_eq!(w.flow(vec![of_q]), refused("CYCLE a job would wait for itself in node 'of q'"));
    assert!(w.delete(b"of p"));
    let (mut of_p, mut of_q) = (child_of("of p", "p"), child_of("of q", "q"));
    waits(&mut of_p, b"q");
    waits(&mut of_q, b"p");
    assert!(w.flow(vec![of_p, of_q]).unwrap_err().starts_with("CYCLE"));
    w.is_valid();
}

#[test]
fn the_end_of_the_parent_leaves_its_children() {
    let mut w = World::default();
    w.begun("p", &["a", "b"]);
    w.waits_for_children("p", OnFailure::Hold).unwrap();
    assert_eq!(w.cancel(b"p", false), Some(Ok("cancelled")));
    assert_eq!((w.is("a"), w.is("b"), w.job("p").child_wait()), (Some(Ready), Some(Ready), None));
    // Requeued, it waits for nothing, as for other jobs.
    w.requeue(b"p", To::Same).unwrap().unwrap();
    assert_eq!(w.is("p"), Some(Ready));
    // With children of it that have not ended it is not deleted.
    assert_eq!(w.claims_and_waits("p", OnFailure::Hold), blocked());
    assert_eq!(w.delete_all(&[b"p"]), refused("DEPENDED a"));
    assert_eq!(w.delete_all(&[b"p", b"a", b"b"]), Ok(3));
    w.is_valid();
}

#[test]
fn a_replacing_post_keeps_what_the_post_named_and_forgets_what_a_run_did() {
    let mut w = World::default();
    let replace = |w: &mut World, after| {
        w.post(&Post { id: Some(b"p"), exists: Exists::Replace, after, ..Post::default() }).unwrap();
        w.is("p")
    };
    w.begun("p", &["a"]);
    w.waits_for_children("p", OnFailure::Hold).unwrap();
    assert_eq!(replace(&mut w, None), Some(Ready), "a run asked for it");
    assert_eq!(replace(&mut w, after(OnFailure::Cancel)), Some(Blocked));
    assert_eq!(replace(&mut w, None), Some(Blocked));
    assert_eq!(w.job("p").child_wait().map(|wait| wait.on_failure), Some(OnFailure::Cancel));
    assert_eq!(replace(&mut w, Some(After::default())), Some(Ready), "AFTER 0");
    replace(&mut w, after(OnFailure::Cancel));
    w.ends("a", Failed);
    assert_eq!(w.is("p"), Some(Cancelled));
    w.is_valid();
}

#[test]
fn an_operator_lets_it_wait_or_run() {
    let mut w = World::default();
    w.put("p");
    w.put_part("a", "p");
    let add = |on| Depend::Add(After { children: Some(on), ..After::default() });
    w.depend(b"p", &add(OnFailure::Hold)).unwrap().unwrap();
    assert_eq!(w.is("p"), Some(Blocked));
    w.depend(b"p", &add(OnFailure::Run)).unwrap().unwrap();
    assert_eq!(w.job("p").child_wait().map(|wait| wait.on_failure), Some(OnFailure::Run));
    w.depend(b"p", &Depend::Clear).unwrap().unwrap();
    assert_eq!(w.is("p"), Some(Ready));
    w.take_id(ANN, "p");
    assert!(is_kept(&w.waits_for_children("p", OnFailure::Hold)));
    // In the next queue it counts again.
    w.work(&(Speaker { worker: ANN, id: b"p", token: None }, Advance { queue: b"on", ..Advance::default() }))
        .unwrap();
    assert_eq!(w.claims_and_waits("p", OnFailure::Hold), blocked());
    w.is_valid();
}

#[test]
fn a_dead_child_has_not_ended() {
    let mut w = World::default();
    w.name_dead_queue(b"default", Some(b"dead"));
    w.begun("p", &["a"]);
    w.waits_for_children("p", OnFailure::Cancel).unwrap();
    w.ends("a", Failed);
    assert_eq!((w.is("a"), w.is("p"), w.sums("p")), (Some(Ready), Some(Blocked), (1, 1, 0)));
    w.ends("a", Trashed);
    assert_eq!((w.is("p"), w.sums("p")), (Some(Cancelled), (1, 0, 1)));
    w.is_valid();
}

#[test]
fn a_wait_costs_neither_expiry_nor_a_retry_and_is_counted() {
    let mut w = World::default();
    w.put_with("p", |p| p.options.expire = Some(500));
    w.take_id(ANN, "p");
    w.put_part("a", "p");
    w.waits_for_children("p", OnFailure::Hold).unwrap();
    w.pass(10_000);
    w.ends("a", Complete);
    assert_eq!(w.is("p"), Some(Ready));
    w.put("fresh");
    assert_eq!(w.job("p").left(&w.rules), w.job("fresh").left(&w.rules));
    w.take_id(ANN, "p");
    assert_eq!(w.job("p").attempt(), 2);
    let stats = w.board.stats(None, day_of(w.now)).unwrap();
    assert_eq!((stats.count(Tally::Awaited), stats.signal_wait().map(Histogram::sum)), (1, Some(10_000)));
    w.is_valid();
}

#[test]
fn a_late_worker_waits_or_gets_its_job_back() {
    let mut w = World::default();
    w.put("p");
    let token = w.take_id(ANN, "p");
    w.put_part("a", "p");
    w.pass(120_000);
    assert_eq!(w.is("p"), Some(Ready));
    let wait = |w: &mut World| {
        let request = Await { children: Some(OnFailure::Hold), ..Await::default() };
        w.await_signals(&(Speaker { worker: ANN, id: b"p", token: Some(token) }, request)).unwrap()
    };
    assert_eq!(wait(&mut w), Waited::State(Blocked));
    assert_eq!(wait(&mut w), Waited::State(Blocked), "sent again");
    w.ends("a", Complete);
    assert_eq!(wait(&mut w), Waited::State(Ready), "sent again");
    let token = w.take_id(ANN, "p");
    w.pass(120_000);
    let request = Await { children: Some(OnFailure::Hold), ..Await::default() };
    let speaker = Speaker { worker: ANN, id: b"p", token: Some(token) };
    assert!(is_kept(&w.await_signals(&(speaker, request))));
    w.is_valid();
}
