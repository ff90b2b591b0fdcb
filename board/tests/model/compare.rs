//! What has to be equal after every step.

use std::collections::BTreeMap;
use std::fmt::Debug;

use board::{Filter, Filters, Page, Setting, State, ALL_GROUPS};

use crate::commands::{Command, More};
use crate::drive;
use crate::explain;
use crate::naive::{Bytes, Job, Model};
use crate::signals::Arrived;
use crate::workers::Known;
use crate::world::World;

pub fn same<T: PartialEq + Debug>(what: &str, got: T, want: T) -> Result<(), String> {
    if got == want {
        return Ok(());
    }
    Err(format!("{what}: the board has {got:?}, the model {want:?}"))
}

pub fn copies(world: &World) -> Result<(), String> {
    same("digest of the copy", world.copy.digest(), world.board.digest())?;
    world.copy.check()
}

pub fn boards(world: &World, model: &Model) -> Result<(), String> {
    let board = &world.board;
    board.check()?;
    same("number of records", board.len(), model.jobs.len())?;
    let mut tokens = Vec::new();
    for (n, job) in model.jobs.iter().enumerate() {
        // Some of them at each step: it looks at all the others.
        let asked = (board.revision() as usize + n) % 4 == 0;
        let explained = if asked { explain::explained(world, model, job) } else { Ok(()) };
        explained.map_err(|e| format!("explaining {:?}: {e}", String::from_utf8_lossy(&job.id)))?;
        record(world, model, job).map_err(|e| format!("job {:?}: {e}", String::from_utf8_lossy(&job.id)))?;
        tokens.extend(job.hold.as_ref().map(|h| h.token));
    }
    tokens.sort_unstable();
    same("two claims of one token", tokens.windows(2).any(|w| w[0] == w[1]), false)?;
    tallies(world, model)?;
    schedules(world, model)?;
    workers(world, model)?;
    model.same_stats(board)?;
    limits(world, model)?;
    model.same_limits(world)?;
    same("broken", (board.broken(), world.copy.broken()), (false, false))?;
    same("last token", board.token(), model.token)?;
    same("revision of the copy", world.copy.revision(), board.revision())?;
    same("tombstones", board.tombstones(), model.tombs.len())?;
    for tomb in model.tombs.iter().filter_map(|t| t.id.as_ref()) {
        let got = board.tombstone(tomb, world.now).map(|t| (t.token, t.state));
        same("a tombstone", got, model.tomb(tomb).map(|t| (t.token, t.state)))?;
    }
    Ok(())
}

fn workers(world: &World, model: &Model) -> Result<(), String> {
    let owned = |bin: &[u8]| bin.to_vec();
    let got = world.board.registrations_after(None).map(|(name, r)| {
        let meta = r.meta.iter().map(|(f, v)| (owned(f), owned(v))).collect();
        let role = r.role.as_ref().map(|role| owned(role));
        let (registered, time, until, quiet, lapsed) = (r.registered, r.time, r.until, r.quiet, r.lapsed);
        let session = r.session;
        (owned(name), Known { role, meta, registered, time, until, quiet, lapsed, session })
    });
    same("registrations", got.collect::<BTreeMap<_, _>>(), model.workers.known.clone())
}

fn schedules(world: &World, model: &Model) -> Result<(), String> {
    same("schedules", world.board.schedule_count(), model.schedules.len())?;
    for want in &model.schedules {
        let got = world.board.schedule(&want.id).ok_or("a schedule is lost")?;
        same("next time", got.next, want.next)?;
        same("time of the post", got.at, want.at)?;
        same("children", (got.fired, got.last, got.intended), (want.fired, want.last, want.intended))?;
        same("paused", got.paused, want.paused)?;
        same("refused", got.refused, want.refused)?;
        same("wakes in time", world.board.wake() <= got.at, true)?;
    }
    Ok(())
}

fn limits(world: &World, model: &Model) -> Result<(), String> {
    let board = &world.board;
    for (user, name) in drive::USERS.iter().flat_map(|user| drive::NAMES.map(|name| (user, name))) {
        same("live jobs of a user", board.live_of(user, name) as i64, model.live_of(user, name, None))?;
    }
    same("keys", board.key_count(), model.keys.len())?;
    for (key, held) in &model.keys {
        let got = board.holder_of(key, 0).map(|(id, slot)| (id.borrowed().to_vec(), slot.is_some()));
        same("holder of a key", got, Some((held.id.clone(), held.there)))?;
        same("wakes for a key", board.wake() <= held.end, true)?;
    }
    Ok(())
}

fn record(world: &World, model: &Model, job: &Job) -> Result<(), String> {
    let got = world.record(&job.id).ok_or("lost")?;
    let owned = |b: Option<&[u8]>| b.map(<[u8]>::to_vec);
    same("state", got.state(), job.state)?;
    same("id", got.id().to_vec(), job.id.clone())?;
    same("queue", got.queue(), &job.queue)?;
    same("cost", got.cost(), job.options.cost)?;
    let costs: BTreeMap<Bytes, i64> = got.costs().map(|(limit, cost)| (limit.to_vec(), cost)).collect();
    same("costs", costs, job.costs.clone())?;
    let owned_costs =
        |spent: &board::Spending| spent.costs.iter().map(|(l, cost)| (l.to_vec(), *cost)).collect();
    let spent = got.spent().map(|spent| (spent.token, spent.cost, owned_costs(spent)));
    same("spent", spent, job.spent.clone().filter(|(token, ..)| *token == job.run().0))?;
    same("group", owned(got.group()), job.group.clone())?;
    same("name", got.name().unwrap_or_default(), &job.name)?;
    same("payload", got.payload(), &job.payload)?;
    same("priority", got.priority(), job.priority)?;
    same("attempt", got.attempt(), job.attempt)?;
    same("retries left", got.left(&world.rules), model.left(job))?;
    same("lapses", i64::from(got.lapses()), job.lapses)?;
    let hold = job.hold.as_ref().or(job.past.as_ref().map(|p| &p.hold));
    same("token", got.token(), job.hold.as_ref().map(|h| h.token))?;
    same("worker", owned(got.worker()), job.hold.as_ref().map(|h| h.worker.clone()))?;
    same("deadline", got.deadline(), job.hold.as_ref().map(|_| job.deadline()))?;
    same("cancel", got.cancel(), job.hold.as_ref().is_some_and(|h| h.cancel))?;
    same("session", got.session(), job.hold.as_ref().is_some_and(|h| h.session > 0))?;
    same("claimed", got.claimed(), hold.map(|h| h.claimed))?;
    same("previous", owned(got.previous()), job.past.as_ref().map(|p| p.hold.worker.clone()))?;
    same("kind", owned(got.kind()), job.kind.clone())?;
    same("message", owned(got.message()), job.message.clone())?;
    same("stage", owned(got.stage()), job.stage.clone())?;
    same("reason", owned(got.reason()), job.reason.clone())?;
    same("result", owned(got.result()), job.result.clone())?;
    let done = job.state == State::Complete;
    same("progress", got.progress(), job.progress.map(|p| if done { 100.0 } else { f64::from(p) / 100.0 }))?;
    same("posted", got.posted(), job.posted)?;
    let delayed = job.state == State::Scheduled || job.state == State::Blocked && job.due > 0;
    same("due", got.due(), delayed.then_some(job.due))?;
    let after: Vec<Bytes> = got.after().into_iter().map(|id| id.to_vec()).collect();
    same("after", after, model.edges(job).into_iter().map(|edge| edge.0).collect())?;
    same("tags", got.tags().map(<[u8]>::to_vec).collect(), job.tags.clone())?;
    same("tracked", got.tracked(), job.tracked)?;
    let parent = model.parent(&job.id).map(|at| &model.jobs[at]);
    same("parent", got.parent().map(|id| id.to_vec()), parent.map(|parent| parent.id.clone()))?;
    same("share", got.share(), parent.and(job.tie.as_ref()).map(|tie| tie.share))?;
    let count = Some(model.sums(&job.id).count).filter(|n| *n > 0);
    same("children", got.children(), count)?;
    let live = model.live_children(&job.id).len();
    let sums = (got.pending() as usize, got.unsuccessful());
    same("ends of its children", sums, (live, model.failed_children(&job.id)))?;
    let batch =
        job.batch.as_ref().map(|batch| (batch.on_failure, batch.from.unwrap_or(0), batch.run, batch.open));
    let wait = got.child_wait().map(|wait| (wait.on_failure, wait.from, wait.run, wait.open));
    same("its wait for children", wait, batch)?;
    let slot = world.board.find(&job.id).ok_or("lost")?;
    let children = world.board.children_from(slot, 0).filter_map(|(_, slot)| world.board.record_of(slot));
    same("its children", children.map(|r| r.id().to_vec()).collect(), model.children(&job.id))?;
    same("intended", got.intended(), job.intended)?;
    same("user", owned(got.user()), job.user.clone())?;
    same("unique", owned(got.unique()), job.unique.as_ref().map(|unique| unique.key.clone()))?;
    let steps: Vec<(Bytes, Bytes, i64)> =
        got.steps().map(|(name, value, at)| (name.to_vec(), value.to_vec(), at)).collect();
    same("steps", steps, job.steps.clone())?;
    for since in 0..3 {
        let since = world.board.output_end(slot).saturating_sub(since);
        let unread = world.board.output_since(slot, since, 2);
        let chunks: Vec<Bytes> = unread.chunks.iter().map(|chunk| chunk.to_vec()).collect();
        same("output", (unread.next, unread.missed, unread.anew, unread.attempt, chunks), read(job, since))?;
    }
    let signals = got.signals().map(|s| {
        let sender = s.sender.as_ref().map(|sender| sender.to_vec());
        Arrived { name: s.name.to_vec(), value: s.value.to_vec(), sender, at: s.at }
    });
    same("signals", signals.collect(), job.signals.clone())?;
    let waits = got.waiting().map(|wait| (wait.gate.clone(), wait.from, wait.until()));
    same("its wait", waits, job.wait.as_ref().map(|wait| (wait.gate.clone(), wait.from, wait.until())))?;
    let origin = got.origin().map(|origin| (origin.queue.to_vec(), origin.attempts, origin.at));
    same("origin", origin, job.origin.clone())?;
    same("ended", got.ended(), job.state.ended().then_some(job.ended))?;
    let meta: Vec<(Bytes, Bytes)> = got.meta().map(|(f, v)| (f.to_vec(), v.to_vec())).collect();
    same("meta", meta, job.meta.clone())?;
    // Nothing that is due is before the time at which the board looks again.
    let next = match model.claim_end_of(job) {
        _ if job.state == State::Blocked => job.next().max(model.hold),
        _ if job.state != State::Claimed => job.next(),
        0 => 0,
        end => end.max(model.hold),
    };
    same("wake in time", world.board.wake() <= next, true)
}

fn tallies(world: &World, model: &Model) -> Result<(), String> {
    let board = &world.board;
    let mut queues: BTreeMap<&[u8], [u64; 8]> = BTreeMap::new();
    let mut workers: BTreeMap<&[u8], usize> = BTreeMap::new();
    let mut kinds: BTreeMap<&[u8], u64> = BTreeMap::new();
    let mut states = [0; 8];
    for job in &model.jobs {
        states[job.state as usize] += 1;
        queues.entry(&job.queue).or_default()[job.state as usize] += 1;
        if let Some(hold) = &job.hold {
            *workers.entry(&hold.worker).or_default() += 1;
        }
        if let (State::Failed, Some(kind)) = (job.state, &job.kind) {
            *kinds.entry(kind).or_default() += 1;
        }
    }
    let paused = model.pauses.keys().flatten().map(|(queue, _)| queue);
    let set = model.own.keys().filter_map(|(queue, _)| queue.as_ref());
    let lists = model.lists.keys().map(|(queue, _)| queue);
    let dead = model.dead.keys();
    for queue in
        set.chain(paused).chain(lists).chain(dead).chain(model.group_own.keys().map(|(queue, ..)| queue))
    {
        queues.entry(queue).or_default();
    }
    same("counts", State::ALL.map(|s| board.count(s)), states)?;
    same("queues", board.queue_names(), queues.keys().copied().collect())?;
    for (queue, counts) in queues {
        same("paused", board.paused(Some(queue), world.now), model.paused(Some(queue)))?;
        same("counts of a queue", State::ALL.map(|s| board.count_in(queue, s)), counts)?;
    }
    same("the board is paused", board.paused(None, world.now), model.paused(None))?;
    let mut groups: BTreeMap<(&[u8], &[u8]), [u64; 8]> = BTreeMap::new();
    for job in &model.jobs {
        if let Some(group) = &job.group {
            groups.entry((&job.queue, group)).or_default()[job.state as usize] += 1;
        }
    }
    let paused = model.pauses.keys().flatten();
    let paused = paused.filter_map(|(queue, group)| Some((&queue[..], &group.as_ref()?[..])));
    let set = model.group_own.keys().filter(|(_, group, _)| *group != *b"*");
    let lists = model.lists.keys().filter_map(|(queue, group)| Some((&queue[..], &group.as_ref()?[..])));
    let lists = lists.filter(|(_, group)| *group != ALL_GROUPS);
    for place in set.map(|(queue, group, _)| (&queue[..], &group[..])).chain(paused).chain(lists) {
        groups.entry(place).or_default();
    }
    for (queue, group) in groups.keys() {
        let row = board.group(queue, group).ok_or("a group is lost")?;
        for setting in [Setting::Weight, Setting::Concurrency, Setting::Ordered] {
            same("a group's setting", row.setting(setting), model.group_rule(queue, group, setting))?;
        }
    }
    let (rows, next) = board.groups(None, None, usize::MAX);
    let rows = rows.iter().map(|g| ((g.queue(), g.name()), State::ALL.map(|s| g.count(s)))).collect();
    same("groups", (rows, next.is_none()), (groups, true))?;
    let mut top: BTreeMap<&[u8], usize> = BTreeMap::new();
    for tag in model.jobs.iter().flat_map(|job| &job.tags) {
        *top.entry(tag).or_default() += 1;
    }
    let mut top: Vec<(&[u8], usize)> = top.into_iter().collect();
    top.sort_by_key(|(tag, n)| (std::cmp::Reverse(*n), *tag));
    same("tags", board.top_tags(None).collect(), top.clone())?;
    if let Some((tag, n)) = top.get(1) {
        same("rest of the tags", board.top_tags(Some((*n, tag))).collect(), top.split_off(2))?;
    }
    same("workers", world.holders(), workers.into_iter().collect())?;
    same("kinds", board.kinds().collect::<Vec<_>>(), kinds.into_iter().collect())
}

/// What a filter asks for. Times are about `now`.
fn more((more, n): &(More, u8), now: i64) -> Filter<'static> {
    const SPANS: [i64; 5] = [0, 1, 1_000, 60_000, 100_000_000];
    const PARTS: [&[u8]; 4] = [b"x", b"text", b"me t", b"\x80\r"];
    let span = |n: u8| SPANS[n as usize % SPANS.len()];
    let part = PARTS[*n as usize % PARTS.len()];
    let id = drive::CHOSEN[*n as usize % drive::CHOSEN.len()];
    let first = now - span(*n);
    match more {
        More::Posted => Filter::Posted(first, first + span(n / 5)),
        More::Ended => Filter::Ended(first, first + span(n / 5)),
        More::Parent => Filter::Parent(id),
        More::After => Filter::After(id),
        More::Awaits => Filter::Awaits(drive::SIGNALS[*n as usize % drive::SIGNALS.len()]),
        More::Id => Filter::Id(&id[..usize::from(n % 9 > 0)]),
        More::Meta => Filter::Meta(drive::WORKERS[*n as usize % 4], drive::text(n / 4)),
        More::Stage => Filter::Stage(part),
        More::Message => Filter::Message(part),
        More::Contains => Filter::Contains(part),
    }
}

/// The filters of a listing.
pub fn filters(command: &Command, now: i64) -> Filters<'static> {
    let Command::List { state, queue, worker, name, lapsed, not, .. } = command else {
        return Filters::default();
    };
    let Command::List { tag, kind, tracked, group, user, more: others, .. } = command else {
        return Filters::default();
    };
    let of_kinds: [Vec<Filter<'_>>; 11] = [
        state.iter().map(|s| Filter::State(*s)).collect(),
        queue.iter().map(|q| Filter::Queue(drive::QUEUES[*q as usize])).collect(),
        worker.iter().map(|w| Filter::Worker(drive::WORKERS[*w as usize])).collect(),
        name.iter().map(|n| Filter::Name(drive::NAMES[*n as usize])).collect(),
        lapsed.then_some(Filter::Lapsed).into_iter().collect(),
        tag.iter().map(|t| Filter::Tag(drive::TAGS[*t as usize])).collect(),
        kind.iter().map(|k| Filter::Kind(drive::KINDS[*k as usize])).collect(),
        tracked.then_some(Filter::Tracked).into_iter().collect(),
        group.iter().map(|g| Filter::Group(drive::GROUPS[*g as usize])).collect(),
        user.iter().map(|u| Filter::User(drive::USERS[*u as usize])).collect(),
        others.iter().map(|other| more(other, now)).collect(),
    ];
    let mut filters = Filters::default();
    for (n, some) in of_kinds.into_iter().enumerate() {
        match not >> n & 1 {
            0 => some.into_iter().for_each(|filter| filters.ask(filter)),
            _ => some.into_iter().for_each(|filter| filters.exclude(filter)),
        }
    }
    filters
}

/// Walks a listing page by page: all that the filters allow, in order, each once.
pub fn listing(world: &World, model: &Model, command: &Command) -> Result<(), String> {
    let Command::List { page, reverse, .. } = command else {
        return Ok(());
    };
    let filters = filters(command, model.now);
    let by_label = |f: &Filter<'_>| {
        matches!(f, Filter::Name(_) | Filter::Tag(_) | Filter::Kind(_) | Filter::Tracked | Filter::User(_))
            || matches!(f, Filter::Parent(_) | Filter::After(_))
    };
    let by_end = |f: &Filter<'_>| matches!(f, Filter::Ended(..));
    let by_posting = filters.asked().any(by_label) && !filters.asked().any(by_end);
    let mut want: Vec<&Job> = model.jobs.iter().filter(|job| passes(model, job, &filters)).collect();
    match by_posting {
        true => want.sort_by_key(|job| job.order),
        false => want.sort_by_key(|job| place(job)),
    }
    if *reverse {
        want.reverse();
    }
    same(
        "count",
        world.board.count_jobs(&filters, usize::MAX).unwrap(),
        match filters.is_empty() {
            true => model.jobs.iter().filter(|j| !j.state.ended()).count() as u64,
            false => want.len() as u64,
        },
    )?;
    let mut got = Vec::new();
    let mut at = Page { filters, from: None, count: *page, reverse: *reverse };
    loop {
        let (slots, cursor) = world.board.list(&at);
        same("a page is not too long", slots.len() <= *page, true)?;
        got.extend(slots.into_iter().map(|s| world.board.record_of(s).unwrap().id().to_vec()));
        match cursor {
            Some(cursor) => at.from = board::Start::read(cursor.text().as_bytes()),
            None => break,
        }
    }
    same("listing", got, want.iter().map(|j| j.id.clone()).collect())
}

pub fn passes(model: &Model, job: &Job, filters: &Filters<'_>) -> bool {
    let holds = |f: &Filter<'_>| match f {
        Filter::State(s) => job.state == *s,
        Filter::Queue(q) => job.queue == *q,
        Filter::Group(g) => job.group.as_deref() == Some(*g),
        Filter::Worker(w) => job.hold.as_ref().is_some_and(|h| h.worker == *w),
        Filter::Name(n) => job.name == *n && !n.is_empty(),
        Filter::Lapsed => job.lapses > 0,
        Filter::Tag(t) => job.tags.iter().any(|tag| tag == t),
        Filter::Kind(k) => job.kind.as_deref() == Some(k),
        Filter::Tracked => job.tracked,
        Filter::User(u) => job.user.as_deref() == Some(u),
        Filter::Since(_) => false,
        Filter::Posted(from, to) => *from <= job.posted && job.posted <= *to,
        Filter::Ended(from, to) => job.state.ended() && *from <= job.ended && job.ended <= *to,
        Filter::Parent(id) => model.parent(&job.id).is_some_and(|at| model.jobs[at].id == *id),
        Filter::Awaits(name) => job.awaits(name),
        Filter::After(id) => job.after.iter().any(|(other, _)| other == id),
        Filter::Id(beginning) => job.id.starts_with(beginning),
        Filter::Meta(field, value) => job.meta.iter().any(|(f, v)| f == field && v == value),
        Filter::Stage(part) => has(job.stage.as_deref(), part),
        Filter::Message(part) => has(job.message.as_deref(), part),
        Filter::Contains(part) => has(Some(&job.payload), part),
    };
    let fields: Vec<&[u8]> = filters
        .asked()
        .filter_map(|f| if let Filter::Meta(field, _) = f { Some(*field) } else { None })
        .collect();
    let each_field = fields.iter().all(|field| {
        filters.asked().any(|f| matches!(f, Filter::Meta(other, _) if other == field) && holds(f))
    });
    let kinds: [fn(&Filter<'_>) -> bool; 19] = [
        |f| matches!(f, Filter::Awaits(_)),
        |f| matches!(f, Filter::User(_)),
        |f| matches!(f, Filter::Group(_)),
        |f| matches!(f, Filter::State(_)),
        |f| matches!(f, Filter::Queue(_)),
        |f| matches!(f, Filter::Worker(_)),
        |f| matches!(f, Filter::Name(_)),
        |f| matches!(f, Filter::Lapsed),
        |f| matches!(f, Filter::Tag(_)),
        |f| matches!(f, Filter::Kind(_)),
        |f| matches!(f, Filter::Tracked),
        |f| matches!(f, Filter::Posted(..)),
        |f| matches!(f, Filter::Ended(..)),
        |f| matches!(f, Filter::Parent(_)),
        |f| matches!(f, Filter::After(_)),
        |f| matches!(f, Filter::Id(_)),
        |f| matches!(f, Filter::Stage(_)),
        |f| matches!(f, Filter::Message(_)),
        |f| matches!(f, Filter::Contains(_)),
    ];
    let one_of_each = kinds.iter().all(|kind| {
        let mut those = filters.asked().filter(|f| kind(f)).peekable();
        those.peek().is_none() || those.any(holds)
    });
    one_of_each && each_field && !filters.excluded().any(holds)
}

fn has(text: Option<&[u8]>, part: &[u8]) -> bool {
    text.is_some_and(|text| text.windows(part.len()).any(|window| window == part))
}

fn place(job: &Job) -> (usize, (i64, Option<i64>, u64)) {
    let walk = [
        State::Claimed,
        State::Ready,
        State::Scheduled,
        State::Blocked,
        State::Complete,
        State::Failed,
        State::Cancelled,
        State::Trashed,
    ];
    let within = match job.state {
        State::Claimed => (job.claim_next(), None, job.order),
        State::Ready => job.rank(),
        State::Scheduled | State::Blocked => (job.due, None, job.order),
        _ => (job.ended, None, job.order),
    };
    (walk.iter().position(|s| *s == job.state).unwrap(), within)
}

/// Two chunks behind the first `since`: the count then, how many are missing, whether they begin a
/// run, and whose they are.
fn read(job: &Job, since: u64) -> (u64, u64, bool, u32, Vec<Bytes>) {
    let Some(output) = &job.output else { return (0, 0, since > 0, 0, Vec::new()) };
    let numbered = || (output.before..).zip(&output.chunks).filter(|(number, _)| *number >= since);
    let missed = numbered().filter(|(number, _)| *number < output.before + output.dropped as u64).count();
    let chunks: Vec<_> = numbered().skip(missed).take(2).collect();
    let end = output.before + output.chunks.len() as u64;
    let next = chunks.last().map_or(end, |(number, _)| number + 1);
    let anew = since <= output.before;
    (next, missed as u64, anew, output.attempt, chunks.into_iter().map(|(_, text)| text.clone()).collect())
}
