//! `JOB.QUEUES`, `JOB.WORKERS` and `JOB.KINDS`: tables of a board, with counts.

use std::cmp::Reverse;

use board::{day_of, Board, Histogram, Pace, QueueOrder, RankedQueue, State};

use super::groups::write_limits;
use super::pages::{self, Paging};
use super::{pause_end, read, reference, Command, KeyUse, Spec};
use crate::commands::args::{once, Args, Keyword, NO_CURSOR};
use crate::commands::call::Call;
use crate::integers::whole;
use crate::redis::reply::Reply;
use crate::replies::errors::{syntax, unexpected, unknown, CommandError, Done};
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
        let wanted = Wanted::read(&mut call.args)?;
        let reply = call.ctx.reply();
        read(call, |board| {
            let now = world::now();
            let (rows, more) = wanted.find(board, now);
            let row = |reply: Reply<'_>, row: &QueueRow<'_>| write_queue(reply, board, row, now);
            pages::write(reply, rows, more, |row| row.cursor(), row);
            Ok(())
        })
    }
}

/// Where a page of queues begins: behind a name, or behind a queue in an order.
enum From<'a> {
    Name(&'a [u8]),
    Rank(RankedQueue<'a>),
}

impl<'a> From<'a> {
    fn read(text: &'a [u8]) -> Option<Self> {
        if let Some(ranked) = text.strip_prefix(b"#") {
            let (rank, name) = ranked.split_at_checked(ranked.iter().position(|byte| *byte == b':')?)?;
            return Some(From::Rank((Reverse(whole(rank)?), name.get(1..)?)));
        }
        pages::after(text).map(From::Name)
    }
}

/// Which queues a client asks for.
struct Wanted<'a> {
    text: &'a [u8],
    order: Option<QueueOrder>,
    from: Option<From<'a>>,
    count: usize,
}

impl<'a> Wanted<'a> {
    fn read(args: &mut Args<'a>) -> Result<Self, CommandError> {
        let (mut page, mut text, mut order) = (Paging::FIRST, None, None);
        while let Some(word) = args.next() {
            match Keyword::of(word).text() {
                "CONTAINS" => once(&mut text, "CONTAINS", args.name("CONTAINS")?)?,
                "BY" => once(&mut order, "BY", queue_order(args)?)?,
                option if page.take(option, args, From::read)? => {}
                _ => return unexpected(word),
            }
        }
        let (from, count) = page.bounds();
        match (&from, order) {
            (Some(From::Name(_)), Some(_)) | (Some(From::Rank(_)), None) => syntax(NO_CURSOR),
            _ => Ok(Wanted { text: text.unwrap_or_default(), order, from, count }),
        }
    }

    /// These queues, and whether more follow.
    fn find<'b>(&self, board: &'b Board, now: i64) -> (Vec<QueueRow<'b>>, bool) {
        if let Some(order) = self.order {
            let after = self.from.as_ref().and_then(|from| match from {
                From::Rank(ranked) => Some(*ranked),
                From::Name(_) => None,
            });
            let (found, more) = board.queues_by(order, self.text, after, self.count, now);
            let row = |(Reverse(rank), name)| QueueRow::of(board, name, Some(rank), now);
            return (found.into_iter().map(row).collect(), more);
        }
        let after = self.from.as_ref().and_then(|from| match from {
            From::Name(name) => Some(*name),
            From::Rank(_) => None,
        });
        let (found, more) = board.queues_after(self.text, after, self.count);
        (found.into_iter().map(|name| QueueRow::of(board, name, None, now)).collect(), more)
    }
}

fn queue_order(args: &mut Args<'_>) -> Result<QueueOrder, CommandError> {
    match args.value("BY")? {
        word if word.eq_ignore_ascii_case(b"oldest") => Ok(QueueOrder::Oldest),
        word => match State::named(word) {
            Some(state) => Ok(QueueOrder::Jobs(state)),
            None => unknown("order", word, State::ALL.map(State::name).into_iter().chain(["oldest"])),
        },
    }
}

/// A queue, with what takes time to find: a row is measured before it is written.
struct QueueRow<'b> {
    name: &'b [u8],
    /// Its place in the order that was asked for.
    rank: Option<i64>,
    pace: Pace,
    late: Histogram,
}

impl<'b> QueueRow<'b> {
    fn of(board: &'b Board, name: &'b [u8], rank: Option<i64>, now: i64) -> QueueRow<'b> {
        let late = board.lateness(name, day_of(now)).unwrap_or_default();
        QueueRow { name, rank, pace: board.pace(Some(name), now), late }
    }

    /// The cursor of a page that ends with it.
    fn cursor(&self) -> Vec<u8> {
        match self.rank {
            Some(rank) => [format!("#{rank}:").as_bytes(), self.name].concat(),
            None => pages::behind(self.name),
        }
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
                |(worker, ..)| pages::behind(worker),
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
                |(kind, _)| pages::behind(kind),
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
