//! `JOB.METRICS`: boards and this server as OpenMetrics text.

use std::sync::atomic::Ordering::Relaxed;

use board::{day_of, Board, Late, Setting, State, Tally, DAY};

use super::{Command, KeyUse, Spec};
use crate::config::config;
use crate::fault::{syntax, Done};
use crate::latency;
use crate::openmetrics::{Family, Kind, Text};
use crate::server::board_type::{BOARDS, BROKEN};
use crate::server::call::Call;
use crate::server::{blocked, timer};
use crate::world;

/// `JOB.METRICS [board …]` → text: this server's own numbers, and those of the boards named.
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

/// All that there is, in the order of the text.
static FAMILIES: [Family; 23] = [
    gauge("jobboard_jobs", "", "Jobs by state."),
    gauge("jobboard_oldest_ready_age_seconds", "seconds", "Age of the oldest ready job."),
    gauge("jobboard_drain_seconds", "seconds", "Time until no job is ready, at the pace of the last minute."),
    gauge("jobboard_paused", "", "1 when nothing is claimed from the queue."),
    gauge("jobboard_limit_claimed", "", "Claimed jobs that count against the named limit."),
    gauge("jobboard_limit_concurrency", "", "How many jobs may run at once under the named limit."),
    gauge("jobboard_concurrency_limit", "", "How many jobs of the queue may run at once."),
    counter("jobboard_events", "What happened to jobs, since midnight UTC."),
    times("jobboard_wait_seconds", "How long jobs were ready before their claim, since midnight UTC."),
    times("jobboard_run_seconds", "How long workers had jobs, since midnight UTC."),
    times(
        "jobboard_lateness_seconds",
        "How late leases ended, jobs were due and schedules fired, since midnight UTC.",
    ),
    gauge("jobboard_workers", "", "Workers that hold jobs."),
    gauge("jobboard_schedules", "", "Schedules."),
    gauge("jobboard_overdue", "", "1 when timed events wait for the timer."),
    gauge("jobboard_broken", "", "1 when a change of the replication stream was missing."),
    gauge("jobboard_memory_bytes", "bytes", "Memory of the board, about."),
    gauge("jobboard_boards", "", "Boards on this server."),
    gauge("jobboard_broken_boards", "", "Boards on this server that miss a change."),
    gauge("jobboard_blocked_claims", "", "Clients that wait in a claim."),
    gauge("jobboard_timer_overdue_seconds", "seconds", "How late the timer is."),
    counter("jobboard_timer_turns", "Turns of the timer."),
    times(
        "jobboard_server_lateness_seconds",
        "How late leases ended, jobs were due and schedules fired, on this server.",
    ),
    times("jobboard_pickup_seconds", "How long jobs were ready that blocked claims got, on this server."),
];

impl Command for Metrics {
    const SPEC: Spec = Spec {
        name: "job.metrics",
        arity: -1,
        flags: "readonly",
        key: Some(KeyUse::Read),
        many_keys: true,
        summary: "Returns numbers of boards and of the server as OpenMetrics text.",
        complexity: "O(Q log Q + W) for the Q queues and W workers of the boards named",
        syntax: "[board [board ...]]",
        ..Spec::NONE
    };

    fn run(call: &mut Call<'_>) -> Done {
        let most = config().max_batch;
        if call.keys().count() as i64 > most {
            return syntax(format!("no more than {most} boards can be named"));
        }
        let mut text = Text::new(&FAMILIES);
        let mut seen: Vec<Vec<u8>> = Vec::new();
        for key in call.keys() {
            // Twice the same sample would be no valid text.
            if seen.iter().any(|name| *name == key.bytes()) {
                continue;
            }
            seen.push(key.bytes().to_vec());
            let mut open = call.ctx.open(&key)?;
            if let Some(value) = open.value() {
                let broken = value.is_broken();
                text.gauge("jobboard_broken", &[("board", key.bytes())], f64::from(u8::from(broken)));
                if !broken {
                    board(&mut text, key.bytes(), &value.board);
                }
            }
        }
        server(&mut text);
        call.ctx.reply().text(&text.finish());
        Ok(())
    }
}

fn board(text: &mut Text, name: &[u8], board: &Board) {
    let env = world::env(&config().rules);
    let own = [("board", name)];
    text.gauge("jobboard_workers", &own, board.worker_names().len() as f64);
    text.gauge("jobboard_schedules", &own, board.schedule_count() as f64);
    text.gauge("jobboard_overdue", &own, f64::from(u8::from(board.soonest(&env) <= env.now)));
    text.gauge("jobboard_memory_bytes", &own, board.bytes() as f64);
    for queue in board.queue_names() {
        let labels = [("board", name), ("queue", queue)];
        for state in State::ALL {
            let labels = [("board", name), ("queue", queue), ("state", state.name().as_bytes())];
            text.gauge("jobboard_jobs", &labels, board.count_in(queue, state) as f64);
        }
        let pace = board.pace(Some(queue), env.now);
        if let Some(ms) = pace.oldest {
            text.gauge("jobboard_oldest_ready_age_seconds", &labels, ms as f64 / 1e3);
        }
        if let Some(ms) = pace.drain() {
            text.gauge("jobboard_drain_seconds", &labels, ms as f64 / 1e3);
        }
        let paused = board.paused(Some(queue), env.now).is_some();
        text.gauge("jobboard_paused", &labels, f64::from(u8::from(paused)));
        let most = board.concurrency(queue);
        if most >= 0 {
            text.gauge("jobboard_concurrency_limit", &labels, most as f64);
        }
    }
    for limit in board.limits_after(None) {
        let labels = [("board", name), ("limit", limit.name())];
        text.gauge("jobboard_limit_claimed", &labels, limit.claimed() as f64);
        let (most, _) = limit.setting(Setting::Concurrency);
        if most >= 0 {
            text.gauge("jobboard_limit_concurrency", &labels, most as f64);
        }
    }
    let today = day_of(env.now);
    let midnight = i64::from(today) * DAY;
    for (queue, stats) in board.stats_of(today) {
        for tally in Tally::ALL {
            let labels = [("board", name), ("queue", queue), ("event", tally.name().as_bytes())];
            text.counter("jobboard_events", &labels, stats.count(tally), midnight);
        }
        let labels = [("board", name), ("queue", queue)];
        text.histogram("jobboard_wait_seconds", &labels, stats.wait(), midnight);
        text.histogram("jobboard_run_seconds", &labels, stats.run(), midnight);
        for late in Late::ALL {
            if let Some(dist) = stats.late(late) {
                let labels = [("board", name), ("queue", queue), ("what", late.name().as_bytes())];
                text.histogram("jobboard_lateness_seconds", &labels, dist, midnight);
            }
        }
    }
}

fn server(text: &mut Text) {
    let timer = timer::stats();
    let begin = world::started();
    text.gauge("jobboard_boards", &[], BOARDS.load(Relaxed) as f64);
    text.gauge("jobboard_broken_boards", &[], BROKEN.load(Relaxed) as f64);
    text.gauge("jobboard_blocked_claims", &[], blocked::waiting() as f64);
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
