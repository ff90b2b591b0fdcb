//! `JOB.QUEUES`, `JOB.WORKERS` and `JOB.KINDS`: what is on a board, counted.

use board::{day_of, Dist, Pace, State};

use super::groups::write_limits;
use super::{pause_end, read, Command, KeyUse, Spec};
use crate::fault::Done;
use crate::server::call::Call;
use crate::server::reply::Reply;
use crate::world;

/// `JOB.QUEUES board` → queues with their counts by state.
pub struct Queues;

/// `JOB.WORKERS board` → workers with the number of jobs that they hold.
pub struct Workers;

/// `JOB.KINDS board` → kinds of failure with the number of failed jobs of each.
pub struct Kinds;

impl Command for Queues {
    const SPEC: Spec = Spec {
        name: "job.queues",
        arity: 2,
        flags: "readonly",
        key: Some(KeyUse::Read),
        summary: "Counts the jobs of each queue by state, and tells which are paused.",
        complexity: "O(Q log Q) for Q queues",
        syntax: "board",
        ..Spec::NONE
    };

    fn run(call: &mut Call<'_>) -> Done {
        let reply = call.ctx.reply();
        read(call, |board| {
            let queues = board.queue_names();
            let now = world::now();
            reply.array(queues.len());
            for queue in queues {
                reply.map(11 + State::ALL.len());
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
                reply.text("record-bytes");
                reply.int(board.record_bytes_in(queue) as i64);
                write_pace(reply, &board.pace(Some(queue), now));
                let late = board.stats(Some(queue), day_of(now)).unwrap_or_default().lateness();
                write_late(reply, "lateness", &late);
            }
            Ok(())
        })
    }
}

/// How fast jobs come and end, four fields.
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

/// By how much time was late, two fields.
pub fn write_late(reply: Reply, name: &str, late: &Dist) {
    reply.text(&format!("{name}-p99"));
    reply.int(late.percentile(99) as i64);
    reply.text(&format!("{name}-max"));
    reply.int(late.max() as i64);
}

impl Command for Workers {
    const SPEC: Spec = Spec {
        name: "job.workers",
        arity: 2,
        flags: "readonly",
        key: Some(KeyUse::Read),
        summary: "Counts the jobs that each worker holds.",
        complexity: "O(W log W) for W workers that hold jobs",
        syntax: "board",
        ..Spec::NONE
    };

    fn run(call: &mut Call<'_>) -> Done {
        let reply = call.ctx.reply();
        read(call, |board| {
            let workers = board.worker_names();
            reply.array(workers.len());
            let now = world::now();
            for (worker, claims, seen) in workers {
                reply.map(3);
                reply.text("worker");
                reply.bytes(worker);
                reply.text("claimed");
                reply.int(claims as i64);
                reply.text("active");
                reply.int((now - seen).max(0));
            }
            Ok(())
        })
    }
}

impl Command for Kinds {
    const SPEC: Spec = Spec {
        name: "job.kinds",
        arity: 2,
        flags: "readonly",
        key: Some(KeyUse::Read),
        summary: "Counts the failed jobs that are kept by kind of failure.",
        complexity: "O(K) for K kinds",
        syntax: "board",
        ..Spec::NONE
    };

    fn run(call: &mut Call<'_>) -> Done {
        let reply = call.ctx.reply();
        read(call, |board| {
            let kinds = board.kinds();
            reply.map(kinds.len());
            for (kind, n) in kinds {
                reply.bytes(kind);
                reply.int(n as i64);
            }
            Ok(())
        })
    }
}
