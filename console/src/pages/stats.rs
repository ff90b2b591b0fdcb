//! What happened day by day: counts, and how long jobs waited and ran.

use futures_util::future::try_join_all;
use maud::{html, Markup};

use super::layout::hidden;
use super::{Memory, Part, View};
use crate::app::RequestContext;
use crate::chart::{Chart, Line};
use crate::connection::board_command;
use crate::connection::reply::{int, Record};
use crate::failure::Failure;
use crate::format::{name, now, number, span};
use crate::names::{address, own, shown};
use crate::recent::Bins;

const DAY: i64 = 86_400_000;

/// No more days are asked for at once.
const MOST_DAYS: i64 = 90;

const COUNTS: [&str; 8] =
    ["posted", "claimed", "completed", "failed", "retried", "lapsed", "cancelled", "trashed"];

const REST: [&str; 9] =
    ["replaced", "fired", "timeouts", "revived", "abandoned", "released", "expired", "requeued", "deleted"];

/// What pages call a count of JOB.STATS.
fn label(field: &'static str) -> &'static str {
    match field {
        "completed" => "done",
        other => other,
    }
}

/// An open page refreshes what changes by the second, not the days.
pub async fn view(cx: &RequestContext, memory: &mut Memory) -> Result<View, Failure> {
    let board = cx.board()?;
    let queue = cx.query.bytes("queue").map(<[u8]>::to_vec);
    let mut counts = Vec::new();
    for state in ["ready", "claimed"] {
        let count = count(cx, &board, queue.as_deref(), state).await?;
        counts.push((redis::Value::SimpleString(state.into()), redis::Value::Int(count)));
    }
    let counts = Record::read(redis::Value::Map(counts)).unwrap_or_default();
    let trend = super::recent::draw(cx, &board, queue.as_deref(), &counts).await;
    let trend = Part::new("pace", "The last 15 minutes", trend)?;
    if memory.told {
        let (title, head) = (String::new(), html! {});
        return Ok(View { title, board: Some(board), place: "Statistics", head, parts: vec![trend] });
    }
    let kept = days_kept(cx, &board).await?;
    let days = cx.query.number("days").unwrap_or(14).clamp(1, kept.clamp(1, MOST_DAYS));
    let told = try_join_all((0..days).map(|day| stats(cx, &board, queue.as_deref(), day))).await?;
    memory.told = true;
    let head = html! {
        h1 { "Statistics of " (name(&board)) @if let Some(queue) = &queue { ", queue " (name(queue)) } }
        form.filters action=(own("/stats")) {
            (hidden("b", &board))
            label { "queue " input name="queue" value=(shown(queue.as_deref().unwrap_or_default())) placeholder="all"; }
            label { "days " input name="days" type="number" min="1" max=(kept.min(MOST_DAYS)) value=(days); }
            button { "Show" }
            @if queue.is_some() { a href=(address("/stats", &[("b", &board)])) { "All queues" } }
        }
    };
    Ok(View {
        title: format!("Statistics of {}", shown(&board)),
        board: Some(board),
        place: "Statistics",
        head,
        parts: vec![
            trend,
            Part { id: "plots", body: plots(&told) },
            Part { id: "today", body: today(&told[0]) },
            Part { id: "days", body: table(&told) },
        ],
    })
}

async fn count(cx: &RequestContext, board: &[u8], queue: Option<&[u8]>, state: &str) -> Result<i64, Failure> {
    let mut command = board_command("COUNT", board);
    command.arg("STATE").arg(state);
    if let Some(queue) = queue {
        command.arg("QUEUE").arg(queue);
    }
    match cx.ask(board, command).await {
        Ok(count) => Ok(int(&count).unwrap_or(0)),
        Err(Failure::NotAllowed(_)) => Ok(0),
        Err(failure) => Err(failure),
    }
}

async fn days_kept(cx: &RequestContext, board: &[u8]) -> Result<i64, Failure> {
    let mut command = board_command("SETTINGS GET", board);
    command.arg("stats-days");
    match cx.ask(board, command).await {
        Ok(reply) => {
            let setting = Record::read(reply).unwrap_or_default();
            Ok(setting.list("stats-days").first().and_then(int).unwrap_or(30))
        }
        Err(Failure::NotAllowed(_)) => Ok(30),
        Err(failure) => Err(failure),
    }
}

async fn stats(cx: &RequestContext, board: &[u8], queue: Option<&[u8]>, day: i64) -> Result<Record, Failure> {
    let mut command = board_command("STATS", board);
    if let Some(queue) = queue {
        command.arg("QUEUE").arg(queue);
    }
    command.arg("DAY").arg(day);
    Ok(Record::read(cx.ask(board, command).await?).unwrap_or_default())
}

/// Percentiles over the days, today last.
fn plots(days: &[Record]) -> Markup {
    let today = now() / DAY * DAY;
    let points = |value: &dyn Fn(&Record) -> Option<f64>| {
        let point = |(back, day): (usize, &Record)| (today - back as i64 * DAY, value(day));
        days.iter().enumerate().map(point).collect::<Vec<_>>().into_iter().rev().collect()
    };
    let percentiles = |what: &'static str| {
        [("50 %", "p50"), ("95 %", "p95"), ("99 %", "p99")]
            .into_iter()
            .map(|(label, field)| Line {
                label,
                points: points(&|day: &Record| {
                    let told = day.record(what);
                    (told.int("count") > 0).then(|| told.float(field))
                }),
            })
            .collect()
    };
    let counts = ["posted", "completed", "failed"]
        .into_iter()
        .map(|field| Line { label: label(field), points: points(&|day: &Record| Some(day.float(field))) })
        .collect();
    html! {
        h2 { "Day by day" }
        div.charts {
            (Chart { title: "Jobs", lines: counts, ms: false }.draw())
            (Chart { title: "Wait before a claim", lines: percentiles("wait"), ms: true }.draw())
            (Chart { title: "Run", lines: percentiles("run"), ms: true }.draw())
        }
    }
}

fn today(day: &Record) -> Markup {
    html! {
        h2 { "Today, " (day.text("day")) " UTC" }
        div.charts {
            @for (what, title) in [("wait", "Wait before a claim"), ("run", "Run"), ("lateness", "Timer lag")] {
                (histogram(title, &day.record(what)))
            }
        }
        dl.facts.overview {
            @for field in COUNTS.iter().chain(&REST) { div { dt { (label(field)) } dd { (number(day.int(field))) } } }
        }
    }
}

/// How many jobs took how long, in steps that double.
fn histogram(title: &str, told: &Record) -> Markup {
    let steps = steps(&Bins::read(told));
    let most = steps.iter().map(|step| step.1).max().unwrap_or(1).max(1);
    html! {
        figure.chart {
            figcaption { (title) }
            @if steps.is_empty() { p.note { "Nothing yet." } } @else {
                table.histogram {
                    caption.unseen { (title) ": jobs by how long it took" }
                    tbody {
                        @for (below, count) in &steps {
                            tr {
                                th scope="row" { "< " (span(*below)) }
                                td { meter min="0" max=(most) value=(count) { (count) } }
                                td.number { (number(*count)) }
                            }
                        }
                    }
                }
                p.faint {
                    (number(told.int("count"))) " in all; 50 % " (span(told.int("p50"))) ", 95 % " (span(told.int("p95")))
                    ", 99 % " (span(told.int("p99"))) ", longest " (span(told.int("max")))
                }
            }
        }
    }
}

/// Upper bounds, each twice the one before, and how many lie below them and above the one before.
fn steps(bins: &Bins) -> Vec<(i64, i64)> {
    let mut steps: Vec<(i64, i64)> = Vec::new();
    for (from, to, count) in bins.iter() {
        let middle = (from + to) / 2;
        let mut below = 1;
        while below <= middle {
            below *= 2;
        }
        while let Some((last, _)) = steps.last().filter(|(last, _)| *last * 2 < below) {
            steps.push((last * 2, 0));
        }
        match steps.last_mut() {
            Some((last, sum)) if *last == below => *sum += count,
            _ => steps.push((below, count)),
        }
    }
    steps
}

fn table(days: &[Record]) -> Markup {
    html! {
        h2 { "As a table" }
        div.wide tabindex="0" role="region" aria-label="Day by day, as a table" {
            table {
                caption.unseen { "Counts, and percentiles of wait and run, by day" }
                thead {
                    tr {
                        th scope="col" { "Day (UTC)" }
                        @for head in COUNTS { th.number scope="col" { (label(head)) } }
                        @for head in ["wait 50 %", "95 %", "99 %", "run 50 %", "95 %", "99 %"] { th.number scope="col" { (head) } }
                    }
                }
                tbody {
                    @for day in days {
                        tr {
                            th scope="row" { (day.text("day")) }
                            @for field in COUNTS { td.number { (number(day.int(field))) } }
                            @for what in ["wait", "run"] {
                                @let told = day.record(what);
                                @for field in ["p50", "p95", "p99"] {
                                    td.number { @if told.int("count") > 0 { (span(told.int(field))) } @else { "–" } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redis::Value;

    #[test]
    fn steps_double_and_leave_none_out() {
        let bin = |from, to, count| Value::Array(vec![Value::Int(from), Value::Int(to), Value::Int(count)]);
        let bins = Value::Array(vec![bin(0, 0, 2), bin(3, 3, 1), bin(21, 30, 5)]);
        let told = Record::read(Value::Map(vec![(Value::SimpleString("histogram".into()), bins)])).unwrap();
        assert_eq!(steps(&Bins::read(&told)), [(1, 2), (2, 0), (4, 1), (8, 0), (16, 0), (32, 5)]);
    }
}
