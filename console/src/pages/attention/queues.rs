//! Queues that need a person: paused ones, those with ready jobs of which no worker takes any, and dead queues.

use futures_util::future::join_all;
use maud::html;

use super::{until, Need, MOST};
use crate::app::RequestContext;
use crate::connection::board_command;
use crate::connection::reply::{page, Record};
use crate::failure::Failure;
use crate::format::{jobs_address, name, number, span};
use crate::names::address;

/// Queues that are looked at.
const QUEUES: usize = 1000;

/// A ready job may wait so long before a queue counts as unserved, ms.
const UNSERVED: i64 = 10_000;

/// Dead queues of which the jobs are read, those with most ready jobs first.
const DEAD_QUEUES: usize = 8;

/// Jobs that are read of each, the newest of the lowest priority.
const DEAD_JOBS: usize = 200;

/// The dead jobs that wait in a queue, as far as they were read.
pub struct DeadQueue {
    pub queue: Vec<u8>,
    /// With `kind`, `message` and `origin`.
    pub jobs: Vec<Record>,
    /// Whether all ready jobs of the queue were read.
    pub whole: bool,
}

pub async fn rows(cx: &RequestContext, board: &[u8]) -> Result<Vec<Record>, Failure> {
    let mut command = board_command("QUEUES", board);
    command.arg("COUNT").arg(QUEUES);
    Ok(page(cx.ask_shared(board, command).await?).1)
}

/// The dead jobs in the queues that others name as their dead queue. A queue that no other names any more may
/// still hold some: of the queues that nobody serves, the first are tried as well.
pub async fn dead(cx: &RequestContext, board: &[u8], rows: &[Record]) -> Vec<DeadQueue> {
    let named: Vec<Vec<u8>> = rows.iter().map(|row| row.bytes("dead-queue")).collect();
    let holds = |row: &&Record| row.int("ready") > 0 && named.contains(&row.bytes("queue"));
    let mut fullest: Vec<&Record> = rows.iter().filter(holds).collect();
    fullest.sort_by_key(|row| std::cmp::Reverse(row.int("ready")));
    let mut wanted: Vec<Vec<u8>> = fullest.iter().take(DEAD_QUEUES).map(|row| row.bytes("queue")).collect();
    let idle = rows.iter().filter(|row| is_unserved(row) && !named.contains(&row.bytes("queue"))).take(MOST);
    let tried = join_all(idle.map(|row| first_is_dead(cx, board, row.bytes("queue")))).await;
    wanted.extend(tried.into_iter().flatten());
    let read = join_all(wanted.into_iter().map(|queue| dead_jobs(cx, board, queue))).await;
    read.into_iter().flatten().filter(|dead| !dead.jobs.is_empty()).collect()
}

/// The queue, if the next of its ready jobs is a dead one.
async fn first_is_dead(cx: &RequestContext, board: &[u8], queue: Vec<u8>) -> Option<Vec<u8>> {
    let mut command = board_command("LIST", board);
    command.arg("STATE").arg("ready").arg("QUEUE").arg(&queue).arg("COUNT").arg(1);
    command.arg("FIELDS").arg(1).arg("origin");
    let (_, rows) = page(cx.ask_shared(board, command).await.ok()?);
    rows.first()?.has("origin").then_some(queue)
}

async fn dead_jobs(cx: &RequestContext, board: &[u8], queue: Vec<u8>) -> Option<DeadQueue> {
    let mut command = board_command("LIST", board);
    command.arg("STATE").arg("ready").arg("QUEUE").arg(&queue).arg("REV").arg("COUNT").arg(DEAD_JOBS);
    command.arg("FIELDS").arg(3).arg("kind").arg("message").arg("origin");
    let (next, mut jobs) = page(cx.ask_shared(board, command).await.ok()?);
    jobs.retain(|job| job.has("origin"));
    Some(DeadQueue { queue, jobs, whole: next.is_none() })
}

pub fn needs(board: &[u8], info: &Record, rows: &[Record], dead: &[DeadQueue]) -> Vec<Need> {
    let mut needs = Vec::new();
    for row in rows {
        let queue = row.bytes("queue");
        let ready = row.int("ready");
        let to = jobs_address(board, &[("state", b"ready"), ("queue", &queue)]);
        let dead = dead.iter().find(|dead| dead.queue == queue);
        if row.int("paused") != 0 {
            if info.int("paused") == 0 {
                let text = html! { "The queue " (name(&queue)) " is paused" (until(row.int("paused"))) ", " (number(ready)) " ready" };
                let to = address("/queues", &[("b", board), ("name", &queue)]);
                let need = Need { weight: 1 << 40, text, to, link: "Queue", acts: Vec::new() };
                let resume = [("b", board), ("verb", &b"resume"[..]), ("queue", &queue)];
                needs.push(need.with_act("Resume", &queue, &resume));
            }
        } else if let Some(dead) = dead.filter(|_| is_idle(row)) {
            let count = dead.jobs.len() as i64;
            let text = html! {
                @if !dead.whole { "At least " }
                (number(count)) @if count == 1 { " dead job waits" } @else { " dead jobs wait" }
                " in the queue " (name(&queue)) ": " (number(ready)) " ready, the oldest for " (span(row.int("oldest")))
            };
            let need = Need { weight: (1 << 25) + ready, text, to, link: "Jobs", acts: Vec::new() };
            let back = [
                ("b", board),
                ("verb", &b"return"[..]),
                ("where", b"1"),
                ("state", b"ready"),
                ("queue", &queue),
            ];
            needs.push(need.with_act("Send back", &queue, &back));
        } else if is_unserved(row) {
            let text = html! {
                "No worker takes jobs of the queue " (name(&queue)) ": " (number(ready)) " ready, the oldest for " (span(row.int("oldest")))
            };
            needs.push(Need { weight: (1 << 30) + ready, text, to, link: "Jobs", acts: Vec::new() });
        }
    }
    needs
}

/// Whether no worker has a job of this queue or has ended one in the last minute, though some are ready.
fn is_idle(row: &Record) -> bool {
    row.int("paused") == 0
        && row.int("ready") > 0
        && row.int("claimed") == 0
        && row.float("completion-rate") == 0.0
}

/// Whether jobs wait in a queue of which no worker takes any.
pub fn is_unserved(row: &Record) -> bool {
    is_idle(row) && row.int("oldest") > UNSERVED
}
