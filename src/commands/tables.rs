//! `JOB.QUEUES`, `JOB.WORKERS` and `JOB.KINDS`: tables of a board, with counts.

use board::{day_of, Board, Histogram, Pace, State};

use super::groups::write_limits;
use super::pages::{self, Paging};
use super::{pause_end, read, reference, Command, KeyUse, Spec};
use crate::commands::call::Call;
use crate::redis::reply::Reply;
use crate::replies::errors::Done;
use crate::runtime::world;

/// `JOB.QUEUES` → cursor, and queues with their counts by state.
pub struct Queues;

/// `JOB.WORKERS` → cursor, and workers with the number of jobs that they hold.
pub struct Workers;

/// `JOB.KINDS` → cursor, and kinds of failure with the number of failed jobs of each.
pub struct Kinds;

impl Command for Queues {
    const SPEC: Spec = reference::JOB_QUEUES.with("readonly", KeyUse::Read);

    fn run(call: &mut Call<'_>) -> Done {
        let (from, count) = Paging::only(&mut call.args, pages::after)?.bounds();
        let reply = call.ctx.reply();
        read(call, |board| {
            let (queues, more) = board.queues_after(from, count);
            let now = world::now();
            let queues = queues.into_iter().map(|name| QueueRow::of(board, name, now)).collect();
            pages::write(
                reply,
                queues,
                more,
                |queue| queue.name,
                |reply, queue| write_queue(reply, board, queue, now),
            );
            Ok(())
        })
    }
}

/// A queue, with what takes time to find: a row is measured before it is written.
struct QueueRow<'b> {
    name: &'b [u8],
    pace: Pace,
    late: Histogram,
}

impl<'b> QueueRow<'b> {
    fn of(board: &'b Board, name: &'b [u8], now: i64) -> QueueRow<'b> {
        let late = board.lateness(name, day_of(now)).unwrap_or_default();
        QueueRow { name, pace: board.pace(Some(name), now), late }
    }
}

fn write_queue(reply: Reply, board: &Board, row: &QueueRow<'_>, now: i64) {
    let queue = row.name;
    reply.map(12 + State::ALL.len());
    reply.text("queue");
    reply.bytes(queue);
    for state in State::ALL {
        reply.text(state.name());
        reply.int(board.count_in(queue, state) as i64);
    }
    reply.text("paused");
    reply.int(pause_end(board.paused(Some(queue), now)));
    reply.text("concurrency");
    reply.int(board.concurrency(queue));
    write_limits(reply, board, queue, None);
    reply.text("dead-queue");
    reply.bytes(board.dead_queue(queue).unwrap_or_default());
    reply.text("record-bytes");
    reply.int(board.record_bytes_in(queue) as i64);
    write_pace(reply, &row.pace);
    write_late(reply, "lateness", &row.late);
}

/// Writes four fields: how fast jobs are posted and end.
pub fn write_pace(reply: Reply, pace: &Pace) {
    reply.text("oldest");
    reply.int(pace.oldest.unwrap_or(-1));
    reply.text("arrival-rate");
    reply.double(pace.arrivals);
    reply.text("completion-rate");
    reply.double(pace.completions);
    reply.text("drain");
    reply.int(pace.drain().unwrap_or(-1));
}

/// Writes two fields: how late time was.
pub fn write_late(reply: Reply, name: &str, late: &Histogram) {
    reply.text(&format!("{name}-p99"));
    reply.int(late.percentile(99) as i64);
    reply.text(&format!("{name}-max"));
    reply.int(late.max() as i64);
}

impl Command for Workers {
    const SPEC: Spec = reference::JOB_WORKERS.with("readonly", KeyUse::Read);

    fn run(call: &mut Call<'_>) -> Done {
        let (from, count) = Paging::only(&mut call.args, pages::after)?.bounds();
        let reply = call.ctx.reply();
        read(call, |board| {
            let (workers, more) = board.workers_after(from, count);
            let now = world::now();
            pages::write(
                reply,
                workers,
                more,
                |(worker, ..)| worker,
                |reply, (worker, claims, seen)| {
                    reply.map(3);
                    reply.text("worker");
                    reply.bytes(worker);
                    reply.text("claimed");
                    reply.int(*claims as i64);
                    reply.text("active");
                    reply.int((now - seen).max(0));
                },
            );
            Ok(())
        })
    }
}

impl Command for Kinds {
    const SPEC: Spec = reference::JOB_KINDS.with("readonly", KeyUse::Read);

    fn run(call: &mut Call<'_>) -> Done {
        let (from, count) = Paging::only(&mut call.args, pages::after)?.bounds();
        let reply = call.ctx.reply();
        read(call, |board| {
            let mut behind = board.kinds_after(from);
            let kinds: Vec<(&[u8], u64)> = behind.by_ref().take(count).collect();
            pages::write(
                reply,
                kinds,
                behind.next().is_some(),
                |(kind, _)| kind,
                |reply, (kind, n)| {
                    reply.map(2);
                    reply.text("kind");
                    reply.bytes(kind);
                    reply.text("jobs");
                    reply.int(*n as i64);
                },
            );
            Ok(())
        })
    }
}
