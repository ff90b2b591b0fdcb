//! History, listings, counts.

use board::*;

use crate::site::*;
use crate::world::World;

#[test]
fn a_history_tells_what_happened_in_order() {
    let mut w = World::default();
    w.put("job");
    w.pass(1);
    w.take_id(ANN, "job");
    w.pass(1);
    let report = Some(Report { log: Some(b"half way"), ..Report::default() });
    w.heartbeat(&(
        Speaker { worker: ANN, id: b"job", ..Speaker::default() },
        Heartbeat { report, ..Heartbeat::default() },
    ))
    .unwrap();
    w.pass(1);
    w.fails_with(ANN, "job", None, Retry::After(10)).unwrap();
    w.pass(10);
    w.take_id(BOB, "job");
    w.pass(30_000);
    w.take_id(ANN, "job");
    w.pass(1);
    w.cancel(b"job", false).unwrap().unwrap();
    w.pass(1);
    w.release(b"job").unwrap().unwrap();
    w.pass(1);
    w.requeue(b"job", To::Same).unwrap().unwrap();
    w.pass(1);
    w.put_replacing("job", b"new");
    w.pass(1);
    w.update(b"job", &Update { priority: Some(1), ..Update::default() }).unwrap().unwrap();
    w.pass(1);
    w.take_id(ANN, "job");
    let (ann, bob) = (Some("ann"), Some("bob"));
    let want = [
        ("posted", None, None),
        ("claimed", ann, None),
        ("log", ann, Some("half way")),
        ("failed", ann, Some("io: disk full")),
        ("claimed", bob, None),
        ("lapsed", bob, None),
        ("claimed", ann, None),
        ("cancel-requested", None, None),
        ("cancelled", ann, None),
        ("requeued", None, None),
        ("replaced", None, None),
        ("updated", None, None),
        ("claimed", ann, None),
    ];
    let history = w.job("job").history();
    let text = |b: Option<&[u8]>| b.map(|b| String::from_utf8(b.to_vec()).unwrap());
    let said = |e: &Entry| {
        e.kind().map_or_else(
            || text(e.message()),
            |kind| Some(format!("{}: {}", text(Some(kind)).unwrap(), text(e.message()).unwrap_or_default())),
        )
    };
    let got: Vec<_> = history.iter().map(|e| (e.event.name(), text(e.worker.as_deref()), said(e))).collect();
    let want = want.map(|(event, worker, text)| (event, worker.map(String::from), text.map(String::from)));
    assert_eq!(got, want);
    assert!(history.is_sorted_by_key(|e| e.at));
    w.is_valid();
}

#[test]
fn the_first_and_the_last_entries_of_a_history_stay() {
    let mut w = World::default();
    w.configure(None, Setting::HistoryFirst, Some(2));
    w.configure(None, Setting::HistoryLast, Some(3));
    w.put("job");
    for n in 0..20u8 {
        w.pass(1);
        let line = [b'0' + n];
        let report = Some(Report { log: Some(&line), ..Report::default() });
        w.update(b"job", &Update { report, ..Update::default() }).unwrap().unwrap();
    }
    let texts: Vec<u8> = w.job("job").history().iter().filter_map(|e| Some(e.message()?[0] - b'0')).collect();
    assert_eq!(texts, [0, 17, 18, 19]);
    w.reload();
    w.is_valid();
}

#[test]
fn an_entry_names_the_queue_to_which_its_job_moved() {
    let mut w = World::default();
    w.put("job");
    w.update(b"job", &Update { queue: Some(b"second"), ..Update::default() }).unwrap().unwrap();
    w.update(b"job", &Update { queue: Some(b"second"), ..Update::default() }).unwrap().unwrap();
    w.cancel(b"job", true).unwrap().unwrap();
    w.requeue(b"job", To::Queue(b"third")).unwrap().unwrap();
    w.cancel(b"job", true).unwrap().unwrap();
    w.requeue(b"job", To::Same).unwrap().unwrap();
    let queues: Vec<_> = w.job("job").history().iter().map(|e| e.queue().map(<[u8]>::to_vec)).collect();
    let second = Some(b"second".to_vec());
    assert_eq!(queues, [None, second, None, None, Some(b"third".to_vec()), None, None]);
    w.reload();
    w.is_valid();
}

#[test]
fn two_runs_in_one_millisecond_are_two_entries() {
    let mut w = World::default();
    w.put("job");
    for _ in 0..2 {
        w.take_id(ANN, "job");
        w.gives_back(ANN, "job", None).unwrap();
    }
    assert_eq!(w.events("job"), ["posted", "claimed", "abandoned", "claimed", "abandoned"]);
}

/// A board with jobs in all states, queues and priorities.
fn full() -> World {
    let mut w = World::default();
    for n in 0..60 {
        let id = format!("{n:02}");
        let state = STATES[n % STATES.len()];
        w.put_in(&id, state);
        let update = Update {
            priority: Some(n as i32 % 3),
            queue: Some([&b"default"[..], b"mail", b"slow"][n % 3]),
            ..Update::default()
        };
        let _ = w.update(id.as_bytes(), &update);
        w.now += 7;
    }
    w.is_valid();
    w
}

fn pages(w: &World, filters: &Filters<'_>, count: usize, reverse: bool) -> Vec<String> {
    let mut page = Page { filters: filters.clone(), from: None, count, reverse };
    let mut all = Vec::new();
    loop {
        let (slots, cursor) = w.board.list(&page);
        assert!(slots.len() <= count);
        all.extend(slots.iter().map(|s| name(&w.board.record_of(*s).unwrap().id().to_vec())));
        match cursor {
            Some(cursor) => page.from = Some(Start::read(cursor.text().as_bytes()).unwrap()),
            None => return all,
        }
    }
}

#[test]
fn a_listing_goes_through_the_states_and_each_in_its_order() {
    let w = full();
    let all = pages(&w, &Filters::default(), 7, false);
    assert_eq!(all.len(), 60);
    let walk = [Claimed, Ready, Scheduled, Complete, Failed, Cancelled, Trashed];
    let states: Vec<usize> =
        all.iter().map(|id| walk.iter().position(|s| Some(*s) == w.is(id)).unwrap()).collect();
    assert!(states.is_sorted());
    let w = &w;
    let of = |state| all.iter().filter(move |id| w.is(id) == Some(state)).map(move |id| w.job(id));
    assert!(of(Claimed).map(|j| j.deadline()).is_sorted());
    assert!(of(Ready).map(|j| (-j.priority(), j.posted())).is_sorted());
    assert!(of(Scheduled).map(|j| j.due()).is_sorted());
    for state in ENDED {
        assert!(of(state).map(|j| j.ended()).is_sorted());
    }
}

#[test]
fn a_listing_is_the_same_for_every_page_size_and_backwards() {
    let w = full();
    for filter in [None, Some(Filter::Queue(b"mail")), Some(Filter::State(Ready)), Some(Filter::Worker(ANN))]
    {
        let filters = Filters::new(filter, []);
        let whole = pages(&w, &filters, 1_000, false);
        let mut back = pages(&w, &filters, 1_000, true);
        back.reverse();
        assert_eq!(whole, back);
        for count in 1..20 {
            assert_eq!(pages(&w, &filters, count, false), whole);
            let mut back = pages(&w, &filters, count, true);
            back.reverse();
            assert_eq!(back, whole);
        }
        let counted = w.board.count_jobs(&filters, usize::MAX).unwrap() as usize;
        let want = if filters.is_empty() {
            whole.iter().filter(|id| !w.is(id).unwrap().ended()).count()
        } else {
            whole.len()
        };
        assert_eq!(counted, want);
    }
}

#[test]
fn a_listing_goes_on_although_the_job_at_the_cursor_is_gone() {
    let mut w = full();
    let filters = Filters::new([Filter::State(Ready)], []);
    let whole = pages(&w, &filters, 100, false);
    let page = Page { filters: filters.clone(), from: None, count: 3, reverse: false };
    let (_, cursor) = w.board.list(&page);
    w.delete(whole[3].as_bytes());
    let (rest, _) = w.board.list(&Page { from: cursor, count: 100, ..page });
    let rest: Vec<String> =
        rest.iter().map(|s| name(&w.board.record_of(*s).unwrap().id().to_vec())).collect();
    assert_eq!(rest, whole[4..]);
}

#[test]
fn filters_of_one_kind_are_alternatives_and_kinds_add_up() {
    let w = full();
    let any = vec![Filter::State(Ready), Filter::State(Failed), Filter::Queue(b"default")];
    let found = pages(&w, &Filters::new(any, [Filter::Name(b"x")]), 5, false);
    let want = (0..60).map(|n| format!("{n:02}")).filter(|id| {
        let job = w.job(id);
        job.queue() == b"default" && matches!(job.state(), Ready | Failed)
    });
    let mut sorted = found.clone();
    sorted.sort();
    assert_eq!(sorted, want.collect::<Vec<_>>());
    let none = vec![Filter::State(Ready), Filter::Queue(b"default")];
    let rest = pages(&w, &Filters::new([], none), 5, false);
    assert!(rest.iter().all(|id| w.is(id) != Some(Ready) && w.job(id).queue() != b"default"));
}

#[test]
fn a_filter_passes_its_own_value_alone_and_not_a_longer_or_shorter_one() {
    let mut w = World::default();
    for id in ["p", "pp", "ppp"] {
        w.put(id);
    }
    for value in [&b"p"[..], b"pp", b"ppp"] {
        let id = format!("{}-child", name(&value.to_vec()));
        w.put_with(&id, |p| {
            (p.name, p.queue, p.group, p.user) = (Some(value), Some(value), Some(value), Some(value));
            (p.tags, p.parent, p.meta) = (Some(vec![value]), Some(value), vec![(&b"f"[..], value)]);
            p.after = Some(After { jobs: vec![(value, OnFailure::Hold)], ..After::default() });
        });
    }
    let exact: [fn(&'static [u8]) -> Filter<'static>; 8] = [
        Filter::Name,
        Filter::Queue,
        Filter::Group,
        Filter::User,
        Filter::Tag,
        Filter::Parent,
        Filter::After,
        |value| Filter::Meta(b"f", value),
    ];
    for filter in exact {
        // What leads to its jobs is not asked of them: so also as one of two, and as what must not be.
        let filter = filter(b"pp");
        for any in [vec![filter], vec![filter, Filter::Id(b"p")]] {
            assert_eq!(pages(&w, &Filters::new(any, []), 5, false), ["pp-child"], "{filter:?}");
        }
        let others = pages(&w, &Filters::new([Filter::Id(b"p")], [filter]), 5, false);
        assert!(others.len() == 5 && !others.contains(&"pp-child".to_string()), "{filter:?}");
    }
}

#[test]
fn one_call_looks_at_a_bounded_number_of_jobs() {
    let mut w = World::default();
    for n in 0..10_050 {
        w.put_with(&n.to_string(), |p| p.name = (n != 10_049).then_some(b"hay"));
    }
    let filters = Filters::new([], [Filter::Name(b"hay")]);
    let mut page = Page { filters, from: None, count: 10, reverse: false };
    let (found, cursor) = w.board.list(&page);
    assert!(found.is_empty() && cursor.is_some());
    page.from = cursor;
    assert_eq!(w.board.list(&page).0.len(), 1);
}

#[test]
fn a_cursor_that_is_none_is_not_read() {
    for text in [
        "",
        "0",
        "9.0.0.0",
        "2.0.0",
        "2.0.0.0.x",
        "2.0.0.0.0.0",
        "3.0.0.0.0",
        "2.x.0.0",
        "2.99999999999.0.0",
        "\u{ff}",
    ] {
        assert_eq!(Cursor::read(text.as_bytes()), None, "{text:?}");
    }
}

#[test]
fn counts_per_state_queue_and_worker_follow() {
    let w = full();
    let total: u64 = State::ALL.iter().map(|s| w.board.count(*s)).sum();
    assert_eq!(total, 60);
    for queue in w.board.queue_names() {
        for state in State::ALL {
            let filters = Filters::new([Filter::Queue(queue), Filter::State(state)], []);
            assert_eq!(w.board.count_in(queue, state), pages(&w, &filters, 9, false).len() as u64);
        }
    }
    assert_eq!(w.holders(), [(ANN, w.board.count(Claimed) as usize)]);
}

#[test]
fn a_replaced_job_was_posted_when_it_first_was() {
    let mut w = World::default();
    let begin = w.now;
    w.put("job");
    w.pass(50);
    w.put_replacing("job", b"other");
    let history: Vec<_> = w.job("job").history().iter().map(|e| (e.event.name(), e.at - begin)).collect();
    assert_eq!(history, [("posted", 0), ("replaced", 50)]);
    assert_eq!((w.job("job").posted(), w.job("job").modified()), (begin, begin + 50));
    w.is_valid();
}

#[test]
fn a_time_of_end_is_found_without_a_look_at_what_ended_before() {
    let mut w = World::default();
    for n in 0..12_000 {
        let id = n.to_string();
        w.put(&id);
        assert!(w.cancel(id.as_bytes(), false).unwrap().is_ok());
    }
    w.pass(1_000);
    let then = w.now;
    w.put("late");
    assert!(w.cancel(b"late", false).unwrap().is_ok());
    for (from, to, reverse) in [(then, NEVER, false), (then, NEVER, true), (then, then, false)] {
        let filters = Filters::new([Filter::Ended(from, to), Filter::Id(b"l")], []);
        let (slots, next) = w.board.list(&Page { filters, count: 10, reverse, ..Page::default() });
        assert_eq!((slots.len(), next), (1, None));
    }
    // Nothing is looked at behind the last time either.
    let filters = Filters::new([Filter::Ended(0, 1), Filter::Id(b"l")], []);
    let page = Page { filters, count: 10, ..Page::default() };
    assert_eq!(w.board.list(&page), (vec![], None));
}

#[test]
fn a_text_that_is_searched_counts_as_looks() {
    let mut w = World::default();
    for n in 0..10 {
        let payload = vec![b'x'; 2_000 << 10];
        w.put_with(&n.to_string(), |p| p.payload = &payload);
    }
    let filters = Filters::new([Filter::Contains(b"y")], []);
    assert_eq!(w.board.count_jobs(&filters, 10_000), None);
    assert_eq!(w.board.count_jobs(&filters, 100_000), Some(0));
    let (found, next) = w.board.list(&Page { filters, count: 10, ..Page::default() });
    assert!(found.is_empty() && next.is_some());
}

#[test]
fn fields_and_tags_that_are_compared_count_as_looks() {
    let mut w = World::default();
    let many: Vec<Vec<u8>> = (0..64).map(|n: u8| vec![b'a' + n / 26, b'a' + n % 26]).collect();
    for n in 0..50 {
        w.put_with(&n.to_string(), |p| {
            p.meta = many.iter().map(|field| (&**field, &b"v"[..])).collect();
            p.tags = Some(many.iter().map(|tag| &**tag).collect());
        });
    }
    let values: Vec<String> = (0..99).map(|n| n.to_string()).collect();
    let fields = Filters::new(values.iter().map(|value| Filter::Meta(b"cl", value.as_bytes())), []);
    let tags = Filters::new([], values.iter().map(|tag| Filter::Tag(tag.as_bytes())));
    // 99 times 64, and one for each job.
    for filters in [fields, tags] {
        assert_eq!(w.board.count_jobs(&filters, 50 * (1 + 99 * 64 / 16) - 1), None);
        assert!(w.board.count_jobs(&filters, 50 * (1 + 99 * 64 / 16)).is_some());
        let (_, next) = w.board.list(&Page { filters, count: 2_000, ..Page::default() });
        assert_eq!(next, None, "a call takes ten looks for each job that it may return");
    }
    let filters = Filters::new(values.iter().map(|value| Filter::Meta(b"cl", value.as_bytes())), []);
    let (found, next) = w.board.list(&Page { filters, count: 10, ..Page::default() });
    assert!(found.is_empty() && next.is_some());
}
