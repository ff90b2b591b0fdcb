//! Queues that need a person: paused ones, those with ready jobs of which no worker takes any, and dead queues.

use std::collections::HashSet;

use futures_util::future::join_all;
use maud::html;

use super::{until, Need, MOST};
use crate::app::RequestContext;
use crate::connection::board_command;
use crate::connection::reply::{page, Record};
use crate::failure::Failure;
use crate::format::{jobs_address, name, number, span};
use crate::names::address;

/// Queues that are looked at: so many by name, and where there are more, so many of those with most ready jobs.
const QUEUES: usize = 1000;

/// Queues of one sort that have a line each, those with most ready jobs; the others share one.
const ALONE: usize = 3;

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

/// The queues that are looked at.
#[derive(Default)]
pub struct Looked {
    pub rows: Vec<Record>,
    /// Whether these are all queues of the board, and whether all that have ready jobs are known to be among them.
    pub all: bool,
    pub all_ready: bool,
}

pub async fn rows(cx: &RequestContext, board: &[u8]) -> Result<Looked, Failure> {
    let mut command = board_command("QUEUES", board);
    command.arg("COUNT").arg(QUEUES);
    let (next, mut rows) = page(cx.ask_shared(board, command).await?);
    if next.is_none() {
        return Ok(Looked { rows, all: true, all_ready: true });
    }
    let mut command = board_command("QUEUES", board);
    command.arg("BY").arg("ready").arg("COUNT").arg(QUEUES);
    let (next, fullest) = page(cx.ask_shared(board, command).await?);
    let all_ready = next.is_none() || fullest.last().is_none_or(|row| row.int("ready") == 0);
    let known: HashSet<Vec<u8>> = rows.iter().map(|row| row.bytes("queue")).collect();
    rows.extend(fullest.into_iter().filter(|row| !known.contains(&row.bytes("queue"))));
    Ok(Looked { rows, all: false, all_ready })
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

pub fn needs(board: &[u8], info: &Record, looked: &Looked, dead: &[DeadQueue]) -> Vec<Need> {
    let mut needs = Vec::new();
    let (mut paused, mut unserved) = (Alike::default(), Alike::default());
    for row in &looked.rows {
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
                paused.add(row, need.with_act("Resume", &queue, &resume));
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
            unserved.add(row, Need { weight: (1 << 30) + ready, text, to, link: "Jobs", acts: Vec::new() });
        }
    }
    needs.extend(paused.listed(board, Only::Paused));
    needs.extend(unserved.listed(board, Only::Unserved));
    if !looked.all_ready {
        let text = html! {
            "This list looks at " (number(looked.rows.len() as i64)) " queues of the board, the first by name and"
            " those with most ready jobs: others may have ready jobs as well"
        };
        let to = address("/queues", &[("b", board)]);
        needs.push(Need { weight: 0, text, to, link: "Queues", acts: Vec::new() });
    }
    needs
}

/// Which queues a list has, when it does not have all of them.
#[derive(Clone, Copy, PartialEq)]
pub enum Only {
    Unserved,
    Paused,
}

impl Only {
    pub const ALL: [(&'static str, &'static str, Self); 2] =
        [("unserved", "no worker", Self::Unserved), ("paused", "paused", Self::Paused)];

    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _, _)| *known == word).map(|(_, _, only)| *only)
    }

    fn word(self) -> &'static str {
        Self::ALL.iter().find(|(_, _, only)| *only == self).map_or("", |(word, _, _)| word)
    }

    pub fn takes(self, row: &Record) -> bool {
        match self {
            Self::Unserved => is_unserved(row),
            Self::Paused => row.int("paused") != 0,
        }
    }
}

/// Queues that need the same.
#[derive(Default)]
struct Alike {
    /// How many jobs are ready in each, for how long the oldest, and its line.
    queues: Vec<(i64, i64, Need)>,
}

impl Alike {
    fn add(&mut self, row: &Record, need: Need) {
        self.queues.push((row.int("ready"), row.int("oldest"), need));
    }

    /// A line for each of the fullest queues, and one for the others together: a thousand idle queues must not
    /// hide what else needs a person.
    fn listed(mut self, board: &[u8], only: Only) -> Vec<Need> {
        self.queues.sort_by_key(|(ready, _, _)| std::cmp::Reverse(*ready));
        // One more than that is no longer than the line that would stand for it.
        let others = match self.queues.len() {
            count if count > ALONE + 1 => self.queues.split_off(ALONE),
            _ => Vec::new(),
        };
        let count = others.len() as i64;
        let ready: i64 = others.iter().map(|(ready, _, _)| ready).sum();
        let oldest = others.iter().map(|(_, oldest, _)| *oldest).max().unwrap_or(0);
        let others = others.iter().map(|(_, _, need)| need.weight).min().map(|weight| Need {
            weight,
            text: match only {
                Only::Unserved => html! {
                    "No worker takes jobs of " (number(count)) " further queues: " (number(ready)) " ready, the oldest for " (span(oldest))
                },
                Only::Paused => html! { (number(count)) " further queues are paused, " (number(ready)) " ready" },
            },
            to: address("/queues", &[("b", board), ("only", only.word().as_bytes())]),
            link: "Queues",
            acts: Vec::new(),
        });
        self.queues.into_iter().map(|(_, _, need)| need).chain(others).collect()
    }
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
