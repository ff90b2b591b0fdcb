//! `JOB.METRICS`: boards and this server as OpenMetrics text.

use std::collections::HashSet;
use std::sync::atomic::Ordering::Relaxed;

use board::{day_of, Board, Late, Setting, State, Stats, Tally, DAY};

use super::{reference, Command, KeyUse, Spec};
use crate::commands::call::Call;
use crate::config::config;
use crate::redis::ctx::Ctx;
use crate::replies::errors::{syntax, Done};
use crate::replies::openmetrics::{Family, Kind, Labels, Text};
use crate::runtime::blocked_claims;
use crate::runtime::blocked_posts;
use crate::runtime::board_value::{BOARDS, BROKEN};
use crate::runtime::latency;
use crate::runtime::timer;
use crate::runtime::world;

/// The most queues with their own name in one text.
const QUEUES: usize = 1_000;
/// About the most bytes of the text.
const LONGEST: usize = 16 << 20;
/// The longest name of a board, bytes: it is in each line.
const NAME_LONGEST: usize = 1_024;
/// Takes the place of the label `queue`, which may have any value.
const OTHERS: (&str, &[u8]) = ("queues", b"other");

/// `JOB.METRICS` → text: this server's own numbers, and those of the named boards.
pub struct Metrics;

const fn gauge(name: &'static str, unit: &'static str, help: &'static str) -> Family {
    Family { name, kind: Kind::Gauge, unit, help }
}

const fn counter(name: &'static str, help: &'static str) -> Family {
    Family { name, kind: Kind::Counter, unit: "", help }
}

const fn times(name: &'static str, help: &'static str) -> Family {
    Family { name, kind: Kind::Histogram, unit: "seconds", help }
}

/// All families, in the order of the text.
static FAMILIES: [Family; 31] = [
    gauge("jobboard_jobs", "", "Jobs by state."),
    gauge("jobboard_oldest_ready_age_seconds", "seconds", "Age of the oldest ready job."),
    gauge("jobboard_drain_seconds", "seconds", "Time until no job is ready, at the pace of the last minute."),
    gauge("jobboard_paused", "", "1 when a pause stops claims from the queue."),
    gauge("jobboard_limit_claimed", "", "Claimed jobs that count against the shared limit."),
    gauge("jobboard_limit_concurrency", "", "How many jobs may run at once under the shared limit."),
    gauge("jobboard_limit_paused", "", "1 when a pause stops claims under the shared limit."),
    gauge("jobboard_limit_debt", "", "Permits that the shared limit owes."),
    gauge("jobboard_cost", "", "Permits that claims have cost, since midnight UTC."),
    gauge("jobboard_costs", "", "Permits of single limits that claims have cost, since midnight UTC."),
    gauge("jobboard_concurrency_limit", "", "How many jobs of the queue may run at once."),
    counter("jobboard_events", "What happened to jobs, since midnight UTC."),
    times("jobboard_wait_seconds", "How long jobs were ready before their claim, since midnight UTC."),
    times("jobboard_run_seconds", "How long workers had jobs, since midnight UTC."),
    times("jobboard_await_seconds", "How long jobs waited for signals, since midnight UTC."),
    times(
        "jobboard_lateness_seconds",
        "How late leases ended, jobs were due and schedules fired, since midnight UTC.",
    ),
    gauge("jobboard_workers", "", "Workers that hold jobs."),
    gauge("jobboard_schedules", "", "Schedules."),
    gauge("jobboard_overdue", "", "1 when deadlines wait for the timer."),
    gauge("jobboard_broken", "", "1 when a change of the replication stream was missing."),
    gauge("jobboard_memory_bytes", "bytes", "Approximate memory of the board."),
    gauge("jobboard_boards", "", "Boards on this server."),
    gauge("jobboard_broken_boards", "", "Boards on this server that miss a change."),
    gauge("jobboard_server_memory_ratio", "ratio", "Used share of the server's maxmemory."),
    gauge("jobboard_blocked_claims", "", "Clients that wait in a claim."),
    gauge("jobboard_blocked_posts", "", "Posts that wait for room."),
    gauge("jobboard_blocked_post_bytes", "bytes", "What is kept of posts that wait for room."),
    gauge("jobboard_timer_overdue_seconds", "seconds", "How late the timer is."),
    counter("jobboard_timer_turns", "Turns of the timer."),
    times(
        "jobboard_server_lateness_seconds",
        "How late leases ended, jobs were due and schedules fired, on this server.",
    ),
    times(
        "jobboard_pickup_seconds",
        "How long jobs had been ready when blocked claims got them, on this server.",
    ),
];

impl Command for Metrics {
    const SPEC: Spec = reference::JOB_METRICS.with("readonly", KeyUse::Read);

    fn run(call: &mut Call<'_>) -> Done {
        let most = config().max_batch;
        if call.keys().count() as i64 > most {
            return syntax(format!("no more than {most} boards can be named"));
        }
        if call.keys().any(|key| key.bytes().len() > NAME_LONGEST) {
            return syntax(format!("board must be at most {NAME_LONGEST} bytes long"));
        }
        let mut text = Text::new(&FAMILIES);
        let (mut seen, mut room) = (HashSet::new(), QUEUES);
        for key in call.keys() {
            // A text with the same sample twice would be invalid.
            if !seen.insert(key.bytes().to_vec()) {
                continue;
            }
            if text.len() > LONGEST {
                return syntax(format!("the text is longer than {LONGEST} bytes: name fewer boards"));
            }
            let mut open = call.ctx.open(&key)?;
            if let Some(value) = open.value() {
                let broken = value.is_broken();
                text.gauge("jobboard_broken", &[("board", key.bytes())], f64::from(u8::from(broken)));
                if !broken {
                    board(&mut text, key.bytes(), &value.board, &mut room);
                }
            }
        }
        server(&mut text, call.ctx);
        call.ctx.reply().text(&text.finish());
        Ok(())
    }
}

/// There is no bound for the number of queues: those that have jobs, settings or a pause get their
/// own name first, then those in which something happened today; all others share a label that no
/// queue has.
fn board(text: &mut Text, name: &[u8], board: &Board, room: &mut usize) {
    let env = world::env(config());
    let own = [("board", name)];
    text.gauge("jobboard_workers", &own, board.worker_count() as f64);
    text.gauge("jobboard_schedules", &own, board.schedule_count() as f64);
    text.gauge("jobboard_overdue", &own, f64::from(u8::from(board.soonest(&env) <= env.now)));
    text.gauge("jobboard_memory_bytes", &own, board.bytes() as f64);
    let today = day_of(env.now);
    let (mut named, more) = board.queues_after(b"", None, *room);
    let mut by_name: HashSet<&[u8]> = HashSet::new();
    named.retain(|queue| {
        let fits = text.len() < LONGEST / 2;
        if fits {
            queue_now(text, name, board, queue, env.now);
            by_name.insert(queue);
        }
        fits
    });
    if more || named.len() < board.queue_count() {
        others_now(text, name, board, &by_name, env.now);
    }
    limits(text, name, board, env.now);
    let mut others: Option<Stats> = None;
    let idle = board.stats_of(today).filter(|(queue, _)| !by_name.contains(queue));
    let left = (*room).saturating_sub(by_name.len());
    let idle: HashSet<&[u8]> = idle.take(left).map(|(queue, _)| queue).collect();
    for (queue, stats) in board.stats_of(today) {
        match (by_name.contains(queue) || idle.contains(queue)) && text.len() < LONGEST {
            true => queue_today(text, &[("board", name), ("queue", queue)], stats, today),
            false => others.get_or_insert_default().merge(stats),
        }
    }
    if let Some(stats) = others {
        queue_today(text, &[("board", name), OTHERS], &stats, today);
    }
    *room = (*room).saturating_sub(by_name.len() + idle.len());
}

fn queue_now(text: &mut Text, name: &[u8], board: &Board, queue: &[u8], now: i64) {
    let labels = [("board", name), ("queue", queue)];
    for state in State::ALL {
        let labels = [("board", name), ("queue", queue), ("state", state.name().as_bytes())];
        text.gauge("jobboard_jobs", &labels, board.count_in(queue, state) as f64);
    }
    let pace = board.pace(Some(queue), now);
    if let Some(ms) = pace.oldest {
        text.gauge("jobboard_oldest_ready_age_seconds", &labels, ms as f64 / 1e3);
    }
    if let Some(ms) = pace.drain() {
        text.gauge("jobboard_drain_seconds", &labels, ms as f64 / 1e3);
    }
    let paused = board.paused(Some(queue), now).is_some();
    text.gauge("jobboard_paused", &labels, f64::from(u8::from(paused)));
    let most = board.concurrency(queue);
    if most >= 0 {
        text.gauge("jobboard_concurrency_limit", &labels, most as f64);
    }
}

/// The jobs of the queues without their own name: all jobs, less those of the other queues.
fn others_now(text: &mut Text, name: &[u8], board: &Board, named: &HashSet<&[u8]>, now: i64) {
    for state in State::ALL {
        let there: u64 = named.iter().map(|queue| board.count_in(queue, state)).sum();
        let labels = [("board", name), OTHERS, ("state", state.name().as_bytes())];
        text.gauge("jobboard_jobs", &labels, board.count(state).saturating_sub(there) as f64);
    }
    let queues = board.queue_names().into_iter().filter(|queue| !named.contains(queue));
    let oldest = queues.filter_map(|queue| board.pace(Some(queue), now).oldest).max();
    if let Some(ms) = oldest {
        text.gauge("jobboard_oldest_ready_age_seconds", &[("board", name), OTHERS], ms as f64 / 1e3);
    }
}

fn limits(text: &mut Text, name: &[u8], board: &Board, now: i64) {
    for limit in board.limits_after(None) {
        let labels = [("board", name), ("limit", limit.name())];
        text.gauge("jobboard_limit_claimed", &labels, limit.claimed() as f64);
        text.gauge("jobboard_limit_paused", &labels, f64::from(u8::from(limit.paused(now).is_some())));
        text.gauge("jobboard_limit_debt", &labels, limit.debt(now) as f64);
        let (most, _) = limit.setting(Setting::Concurrency);
        if most >= 0 {
            text.gauge("jobboard_limit_concurrency", &labels, most as f64);
        }
    }
}

fn queue_today(text: &mut Text, labels: Labels<'_>, stats: &Stats, today: i32) {
    let midnight = i64::from(today) * DAY;
    let with = |label| [labels, &[label]].concat();
    for tally in Tally::ALL {
        let labels = with(("event", tally.name().as_bytes()));
        text.counter("jobboard_events", &labels, stats.count(tally), midnight);
    }
    text.gauge("jobboard_cost", labels, stats.cost() as f64);
    for (limit, cost) in stats.costs() {
        text.gauge("jobboard_costs", &with(("limit", limit)), cost as f64);
    }
    text.histogram("jobboard_wait_seconds", labels, stats.wait(), midnight);
    text.histogram("jobboard_run_seconds", labels, stats.run(), midnight);
    if let Some(dist) = stats.signal_wait() {
        text.histogram("jobboard_await_seconds", labels, dist, midnight);
    }
    for late in Late::ALL {
        if let Some(dist) = stats.late(late) {
            let labels = with(("what", late.name().as_bytes()));
            text.histogram("jobboard_lateness_seconds", &labels, dist, midnight);
        }
    }
}

fn server(text: &mut Text, ctx: Ctx) {
    let timer = timer::stats();
    let begin = world::started();
    text.gauge("jobboard_boards", &[], BOARDS.load(Relaxed) as f64);
    text.gauge("jobboard_broken_boards", &[], BROKEN.load(Relaxed) as f64);
    if let Some(share) = ctx.used_memory() {
        text.gauge("jobboard_server_memory_ratio", &[], share);
    }
    text.gauge("jobboard_blocked_claims", &[], blocked_claims::waiting() as f64);
    let (posts, post_bytes) = blocked_posts::waiting();
    text.gauge("jobboard_blocked_posts", &[], posts as f64);
    text.gauge("jobboard_blocked_post_bytes", &[], post_bytes as f64);
    text.gauge("jobboard_timer_overdue_seconds", &[], timer.overdue_ms as f64 / 1e3);
    text.counter("jobboard_timer_turns", &[], timer.turns, begin);
    latency::with(|seen| {
        for (late, dist) in Late::ALL.into_iter().zip(&seen.late) {
            let labels = [("what", late.name().as_bytes())];
            text.histogram("jobboard_server_lateness_seconds", &labels, dist, begin);
        }
        text.histogram("jobboard_pickup_seconds", &[], &seen.pickup, begin);
    });
}
