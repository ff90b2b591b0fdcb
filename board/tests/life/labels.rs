//! Names, tags, kinds of failure and tracked jobs: found without a walk over the board.

use board::*;

use crate::site::*;
use crate::world::World;

fn page<'a>(any: &[Filter<'a>]) -> Page<'a> {
    let filters = Filters::new(any.to_vec(), []);
    Page { filters, count: 1_000, ..Page::default() }
}

fn ids(w: &World, slots: &[u32]) -> Vec<String> {
    slots.iter().map(|slot| name(&w.board.record_of(*slot).unwrap().id().to_vec())).collect()
}

fn found(w: &World, any: &[Filter<'_>]) -> Vec<String> {
    let page = page(any);
    let (slots, next) = w.board.list(&page);
    assert_eq!(next, None);
    assert_eq!(w.board.count_jobs(&page.filters, usize::MAX).unwrap(), slots.len() as u64);
    ids(w, &slots)
}

fn tags(w: &World, id: &str) -> Vec<String> {
    w.job(id).tags().map(|tag| name(&tag.to_vec())).collect()
}

fn tag(w: &mut World, id: &str, tag: &[&[u8]], untag: &[&[u8]]) -> Result<(), String> {
    let label = Label { tag: tag.to_vec(), untag: untag.to_vec(), track: None };
    w.label(id.as_bytes(), &label).unwrap()
}

fn track(w: &mut World, id: &str, track: bool) {
    let label = Label { track: Some(track), ..Label::default() };
    w.label(id.as_bytes(), &label).unwrap().unwrap();
}

fn top(w: &World) -> Vec<(String, usize)> {
    w.board.top_tags(None).map(|(tag, n)| (name(&tag.to_vec()), n)).collect()
}

fn tagged(w: &mut World, id: &str, tags: &[&[u8]]) {
    w.put_with(id, |p| p.tags = Some(tags.to_vec()));
}

#[test]
fn tags_keep_the_order_in_which_they_were_given() {
    let mut w = World::default();
    tagged(&mut w, "a", &[b"z", b"a", b"m"]);
    assert_eq!(tags(&w, "a"), ["z", "a", "m"]);
    tag(&mut w, "a", &[b"b", b"a"], &[b"z"]).unwrap();
    assert_eq!(tags(&w, "a"), ["a", "m", "b"]);
    w.reload();
    assert_eq!(tags(&w, "a"), ["a", "m", "b"]);
    w.is_valid();
}

#[test]
fn a_listing_by_label_is_in_the_order_of_posts_whatever_the_states() {
    let mut w = World::default();
    for (n, state) in STATES.into_iter().enumerate() {
        w.put_in(state.name(), state);
        tag(&mut w, state.name(), &[b"all"], &[]).unwrap();
        if n % 2 == 0 {
            tag(&mut w, state.name(), &[b"even"], &[]).unwrap();
        }
    }
    let order = STATES.map(State::name);
    let posted = found(&w, &[Filter::Tag(b"all")]);
    assert_eq!(posted.len(), STATES.len());
    assert!(posted.iter().map(|id| w.job(id).seq()).is_sorted());
    assert_eq!(found(&w, &[Filter::Tag(b"all"), Filter::Tag(b"even")]), posted);
    let even: Vec<&str> = order.into_iter().step_by(2).collect();
    assert_eq!(found(&w, &[Filter::Tag(b"even")]), even);
    let ended = [Filter::State(Failed), Filter::State(Trashed), Filter::Tag(b"all")];
    assert_eq!(found(&w, &ended), ["failed", "trashed"]);
    w.is_valid();
}

#[test]
fn a_job_with_two_of_the_tags_asked_for_is_there_once_on_every_page() {
    let mut w = World::default();
    for n in 0..40 {
        let id = n.to_string();
        let all: [&[&[u8]]; 3] = [&[b"a", b"b"], &[b"a"], &[b"b"]];
        tagged(&mut w, &id, all[n % 3]);
    }
    let mut page = page(&[Filter::Tag(b"a"), Filter::Tag(b"b")]);
    for (count, reverse) in [(1, false), (3, true), (7, false)] {
        (page.count, page.reverse, page.from) = (count, reverse, None);
        let mut all = Vec::new();
        loop {
            let (slots, next) = w.board.list(&page);
            all.extend(ids(&w, &slots));
            let Some(next) = next else { break };
            page.from = Start::read(next.text().as_bytes());
            assert!(page.fits());
        }
        if reverse {
            all.reverse();
        }
        assert_eq!(all, (0..40).map(|n| n.to_string()).collect::<Vec<_>>());
    }
}

#[test]
fn a_listing_walks_the_smallest_set_that_is_named() {
    let mut w = World::default();
    for n in 0..12_000 {
        let id = n.to_string();
        w.put_with(&id, |p| {
            p.name = Some(b"common");
            p.tags = (n == 11_999).then(|| vec![&b"rare"[..]]);
        });
    }
    // One call finds it: a walk over the name would take two.
    assert_eq!(found(&w, &[Filter::Name(b"common"), Filter::Tag(b"rare")]), ["11999"]);
    assert_eq!(found(&w, &[Filter::State(Ready), Filter::Tag(b"rare")]), ["11999"]);
    let mut page = page(&[Filter::Name(b"common")]);
    page.filters.exclude(Filter::Tag(b"rare"));
    assert_eq!(w.board.count_jobs(&page.filters, usize::MAX).unwrap(), 11_999);
}

#[test]
fn a_kind_is_found_in_every_state_that_still_shows_it() {
    let mut w = World::default();
    w.put("a");
    w.put("b");
    w.take_id(ANN, "a");
    w.fails_with(ANN, "a", None, Retry::After(10)).unwrap();
    assert_eq!(found(&w, &[Filter::Kind(b"io")]), ["a"]);
    w.pass(10);
    w.take_id(ANN, "a");
    assert_eq!(found(&w, &[Filter::Kind(b"io"), Filter::State(Claimed)]), ["a"]);
    w.pass(30_000 * 10);
    w.configure(None, Setting::Lapses, Some(0));
    w.take_id(ANN, "a");
    w.pass(30_000);
    assert_eq!(w.is("a"), Some(Failed));
    assert_eq!(found(&w, &[Filter::Kind(b"lapsed")]), ["a"]);
    assert_eq!(found(&w, &[Filter::Kind(b"io")]), [""; 0]);
    w.requeue(b"a", To::Same).unwrap().unwrap();
    assert_eq!(found(&w, &[Filter::Kind(b"lapsed")]), ["a"]);
    w.put_replacing("a", b"new");
    assert_eq!(found(&w, &[Filter::Kind(b"lapsed")]), [""; 0]);
    w.is_valid();
}

#[test]
fn a_replaced_job_keeps_the_labels_that_are_not_named_and_stands_last() {
    let mut w = World::default();
    for (id, tags) in [("a", &[&b"t"[..], b"u"][..]), ("b", &[b"t"])] {
        w.put_with(id, |p| (p.name, p.tags) = (Some(&b"n"[..]), Some(tags.to_vec())));
    }
    track(&mut w, "a", true);
    w.put_replacing("a", b"again");
    assert_eq!(found(&w, &[Filter::Name(b"n")]), ["b", "a"]);
    assert_eq!(found(&w, &[Filter::Tag(b"t")]), ["b", "a"]);
    assert_eq!((tags(&w, "a"), w.job("a").tracked()), (vec!["t".into(), "u".into()], true));
    let other = Post {
        id: Some(b"a"),
        exists: Exists::Replace,
        name: Some(b"m"),
        tags: Some(vec![b"v"]),
        ..Post::default()
    };
    w.post(&other).unwrap();
    assert_eq!(found(&w, &[Filter::Name(b"n")]), ["b"]);
    assert_eq!(found(&w, &[Filter::Name(b"m"), Filter::Tracked]), ["a"]);
    assert_eq!(top(&w), [("t".into(), 1), ("v".into(), 1)]);
    w.post(&Post { tags: Some(Vec::new()), name: None, ..other }).unwrap();
    assert_eq!(top(&w), [("t".into(), 1)]);
    w.is_valid();
}

#[test]
fn tagging_is_idempotent_and_leaves_no_trace_when_nothing_changes() {
    let mut w = World::default();
    tagged(&mut w, "a", &[b"t"]);
    let before = w.board.digest();
    tag(&mut w, "a", &[b"t"], &[b"unknown"]).unwrap();
    track(&mut w, "a", false);
    assert_eq!(w.board.digest(), before);
    track(&mut w, "a", true);
    assert!(w.job("a").version() > 1);
    w.is_valid();
}

#[test]
fn an_ended_job_may_be_tagged_and_tracked() {
    let mut w = World::default();
    for state in ENDED {
        w.put_in(state.name(), state);
        w.now += 5;
        tag(&mut w, state.name(), &[b"seen"], &[]).unwrap();
        assert_eq!(w.job(state.name()).modified(), w.now);
    }
    assert_eq!(top(&w), [("seen".into(), ENDED.len())]);
    assert_eq!(w.job("failed").history().iter().filter(|e| e.event == HistoryKind::Updated).count(), 0);
    w.is_valid();
}

#[test]
fn a_job_has_64_tags_at_most() {
    let mut w = World::default();
    let many: Vec<String> = (0..65).map(|n| format!("t{n}")).collect();
    let many: Vec<&[u8]> = many.iter().map(|tag| tag.as_bytes()).collect();
    w.put("a");
    tag(&mut w, "a", &many[..64], &[]).unwrap();
    assert_eq!(tag(&mut w, "a", &many[64..], &[]), Err("LIMIT tags".into()));
    tag(&mut w, "a", &many[64..], &many[..1]).unwrap();
    assert_eq!(w.job("a").tags().len(), 64);
    w.reload();
    w.is_valid();
}

#[test]
fn the_most_used_tags_come_first_and_those_that_nobody_has_not_at_all() {
    let mut w = World::default();
    tagged(&mut w, "1", &[b"b", b"c"]);
    tagged(&mut w, "2", &[b"c", b"a"]);
    tagged(&mut w, "3", &[b"c", b"d"]);
    let of = |tags: &[(&str, usize)]| tags.iter().map(|(t, n)| (String::from(*t), *n)).collect::<Vec<_>>();
    assert_eq!(top(&w), of(&[("c", 3), ("a", 1), ("b", 1), ("d", 1)]));
    let behind: Vec<_> = w.board.top_tags(Some((1, b"a"))).map(|(tag, _)| name(&tag.to_vec())).collect();
    assert_eq!(behind, ["b", "d"]);
    w.delete(b"2");
    w.take_id(ANN, "3");
    w.done(ANN, "3", None).unwrap();
    assert_eq!(top(&w), of(&[("b", 1), ("c", 1)]));
    tag(&mut w, "1", &[], &[b"b", b"c"]).unwrap();
    assert_eq!(top(&w), []);
    w.is_valid();
}

#[test]
fn children_of_a_schedule_have_its_tags() {
    let mut w = World::default();
    let mut set = SetSchedule { id: b"s", when: Some(When::Every(10)), ..SetSchedule::default() };
    for tags in [Some(vec![&b"x"[..], b"y"]), None] {
        set.child.tags = tags;
        w.set_schedule(&set).unwrap();
        w.pass(10);
    }
    set.child.tags = Some(Vec::new());
    w.set_schedule(&set).unwrap();
    w.pass(10);
    assert_eq!(found(&w, &[Filter::Tag(b"y")]), ["@s@1", "@s@2"]);
    assert_eq!(w.job("@s@3").tags().len(), 0);
    w.is_valid();
}

#[test]
fn jobs_without_labels_cost_the_index_nothing() {
    let mut w = World::default();
    let empty = w.board.bytes();
    for n in 0..500 {
        w.put(&n.to_string());
    }
    let plain = w.board.bytes() - empty;
    let mut w = World::default();
    for n in 0..500 {
        w.put_with(&n.to_string(), |p| p.name = Some(b"name"));
    }
    let named = w.board.bytes() - empty;
    assert!(named - plain < 500 * 6 + 1_000, "{named} and {plain} bytes");
}

#[test]
fn a_worker_that_holds_few_jobs_is_listed_without_a_walk_over_all_claims() {
    let mut w = World::default();
    for n in 0..10_050 {
        w.put(&n.to_string());
    }
    let claim = Claim { worker: ANN, lease: Some(1_000), ..Claim::default() };
    w.claim(&claim, 10_040);
    w.claim(&Claim { worker: BOB, ..claim }, usize::MAX);
    assert_eq!(found(&w, &[Filter::Worker(BOB)]).len(), 10);
    let mut page = page(&[Filter::Worker(BOB)]);
    page.count = 3;
    let (first, next) = w.board.list(&page);
    page.from = next;
    let (second, _) = w.board.list(&page);
    assert_eq!(ids(&w, &first), ["10040", "10041", "10042"]);
    assert_eq!(ids(&w, &second), ["10043", "10044", "10045"]);
    page.reverse = true;
    assert_eq!(ids(&w, &w.board.list(&page).0), ["10043", "10042", "10041"]);
}
