//! `JOB.STATS`: counts and durations of a board, by queue and day.

use board::{day_of, Histogram, Late, Stats as Day, Tally};

use super::{read, reference, Command, KeyUse, Spec};
use crate::commands::args::{once, Args, Keyword};
use crate::commands::call::Call;
use crate::integers::whole;
use crate::redis::reply::Reply;
use crate::replies::date;
use crate::replies::errors::{syntax, unexpected, CommandError, Done};
use crate::runtime::world;

/// `JOB.STATS` → a map.
pub struct Stats;

/// The most days that any board keeps.
const BACK: i64 = 3_650;

impl Command for Stats {
    const SPEC: Spec = reference::JOB_STATS.with("readonly", KeyUse::Read);

    fn run(call: &mut Call<'_>) -> Done {
        let (mut queue, mut named) = (None, None);
        while let Some(word) = call.args.next() {
            match Keyword::of(word).text() {
                "QUEUE" => once(&mut queue, "QUEUE", call.args.name("QUEUE")?)?,
                "DAY" => once(&mut named, "DAY", day(&mut call.args)?)?,
                _ => return unexpected(word),
            }
        }
        let day = named.unwrap_or_else(|| day_of(world::now()));
        let reply = call.ctx.reply();
        read(call, |board| {
            let stats = board.stats(queue, day).unwrap_or_default();
            write(reply, day, &stats);
            Ok(())
        })
    }
}

/// A date, or a number of days before today.
fn day(args: &mut Args<'_>) -> Result<i32, CommandError> {
    let word = args.value("DAY")?;
    let back = whole(word).filter(|n| (0..=BACK).contains(n));
    let today = day_of(world::now());
    match date::day(word).or_else(|| back.map(|n| (today - n as i32).max(0))) {
        Some(day) => Ok(day),
        None => {
            syntax(format!("DAY must be a date like {} or a number of days from 0 to {BACK}", date::date(0)))
        }
    }
}

fn write(reply: Reply, day: i32, stats: &Day) {
    let none = Histogram::default();
    let all = stats.lateness();
    let awaits = stats.signal_wait().unwrap_or(&none);
    let times = [("wait", stats.wait()), ("run", stats.run()), ("await", awaits), ("lateness", &all)];
    reply.map(3 + Tally::ALL.len() + times.len() + Late::ALL.len());
    reply.text("day");
    reply.text(&date::date(day));
    for tally in Tally::ALL {
        reply.text(tally.name());
        reply.int(stats.count(tally) as i64);
    }
    reply.text("cost");
    reply.int(stats.cost());
    reply.text("costs");
    let costs = stats.costs();
    reply.map(costs.len());
    for (limit, cost) in costs {
        reply.bytes(limit);
        reply.int(cost);
    }
    for (name, dist) in times {
        reply.text(name);
        write_dist(reply, dist);
    }
    for late in Late::ALL {
        reply.text(&format!("{}-lateness", late.name()));
        write_dist(reply, stats.late(late).unwrap_or(&none));
    }
}

fn write_dist(reply: Reply, dist: &Histogram) {
    let whole = [
        ("count", dist.count()),
        ("sum", dist.sum()),
        ("min", dist.min()),
        ("max", dist.max()),
        ("p50", dist.percentile(50)),
        ("p95", dist.percentile(95)),
        ("p99", dist.percentile(99)),
    ];
    reply.map(whole.len() + 3);
    for (name, n) in whole {
        reply.text(name);
        reply.int(n as i64);
    }
    for (name, n) in [("mean", dist.mean()), ("deviation", dist.deviation())] {
        reply.text(name);
        reply.double(n);
    }
    reply.text("histogram");
    let bins = dist.bins();
    reply.array(bins.len());
    for (from, to, n) in bins {
        reply.array(3);
        // The last bin has no upper bound.
        for n in [from as i64, i64::try_from(to).unwrap_or(-1), n as i64] {
            reply.int(n);
        }
    }
}
