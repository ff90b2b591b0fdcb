//! Plots of the last quarter of an hour, of a board or one of its queues.

use std::collections::BTreeMap;

use maud::{html, Markup};

use crate::app::RequestContext;
use crate::chart::{Chart, Line};
use crate::connection::board_command;
use crate::connection::reply::Record;
use crate::failure::Failure;
use crate::format::now;
use crate::history::Seen;
use crate::recent::{Point, SPAN};

/// Samples further apart are not joined, and an older one says nothing of now, ms.
pub const STALE: i64 = 150_000;

const MINUTE: i64 = 60_000;

/// Looks at the statistics of today, and gives what has been seen so far.
pub async fn look(
    cx: &RequestContext,
    board: &[u8],
    queue: Option<&[u8]>,
    at: i64,
    counts: &Record,
) -> Result<Vec<Point>, Failure> {
    let mut command = board_command("STATS", board);
    if let Some(queue) = queue {
        command.arg("QUEUE").arg(queue);
    }
    let (stats, asked) = cx.ask_dated(board, command).await?;
    let asked = crate::format::now() - asked.elapsed().as_millis() as i64;
    let seen = (cx.session.user.clone(), board.to_vec(), queue.map(<[u8]>::to_vec));
    let points = cx.app.trends.note(seen, asked, counts.int("ready"), counts.int("claimed"), &stats);
    let past = if queue.is_none() { past(cx, board, at) } else { Vec::new() };
    Ok(behind(past, points))
}

/// What the samples of `--history` say of the last quarter of an hour.
fn past(cx: &RequestContext, board: &[u8], now: i64) -> Vec<Point> {
    let samples = cx.app.history.as_ref().map(|history| history.of(board)).unwrap_or_default();
    let young = samples.into_iter().filter(|seen| (0..=SPAN).contains(&(now - seen.sample.at)));
    let point = |seen: Seen| Point {
        at: seen.sample.at,
        ready: seen.sample.ready,
        claimed: seen.sample.claimed,
        done: seen.paces.map(|paces| paces.0),
        failed: seen.paces.map(|paces| paces.1),
        after_gap: seen.paces.is_none(),
        wait: [None; 3],
        run: [None; 3],
    };
    young.map(point).collect()
}

/// What was seen since somebody looks, behind what is known from before. The first look says nothing of a pace.
pub fn behind(mut past: Vec<Point>, mut seen: Vec<Point>) -> Vec<Point> {
    let first = seen.first().map_or(i64::MAX, |point| point.at);
    past.retain(|point| point.at < first);
    let Some(last) = past.last() else { return seen };
    if seen.first().is_some_and(|point| point.done.is_none() && point.at - last.at <= STALE) {
        seen.remove(0);
    }
    if let Some(point) = seen.first_mut() {
        point.after_gap |= point.at - last.at > STALE;
    }
    past.extend(seen);
    past
}

/// The samples of all these boards, summed: one point for each minute in which each board has one or more.
pub fn past_of_all(cx: &RequestContext, boards: &[&[u8]], now: i64) -> Vec<Point> {
    summed(boards.iter().map(|board| past(cx, board, now)))
}

fn summed(boards: impl Iterator<Item = Vec<Point>>) -> Vec<Point> {
    let mut minutes: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
    for points in boards {
        let mut own: BTreeMap<i64, (f64, f64, f64)> = BTreeMap::new();
        for point in points {
            if let (Some(done), Some(failed)) = (point.done, point.failed) {
                let sum = own.entry(point.at.div_euclid(MINUTE)).or_default();
                *sum = (sum.0 + done, sum.1 + failed, sum.2 + 1.0);
            }
        }
        for (minute, (done, failed, count)) in own {
            let sum = minutes.entry(minute).or_default();
            *sum = (sum.0 + done / count, sum.1 + failed / count);
        }
    }
    let mut last = i64::MIN;
    let point = |(minute, (done, failed)): (i64, (f64, f64))| {
        let at = minute * MINUTE + MINUTE / 2;
        let after_gap = last != i64::MIN && at - last > STALE;
        last = at;
        Point {
            at,
            ready: 0,
            claimed: 0,
            done: Some(done),
            failed: Some(failed),
            after_gap,
            wait: [None; 3],
            run: [None; 3],
        }
    };
    minutes.into_iter().map(point).collect()
}

/// The same, drawn.
pub async fn draw(
    cx: &RequestContext,
    board: &[u8],
    queue: Option<&[u8]>,
    counts: &Record,
) -> Result<Markup, Failure> {
    Ok(plots(&look(cx, board, queue, now(), counts).await?))
}

/// The last day of a board, where the console keeps one.
pub fn day(cx: &RequestContext, board: &[u8]) -> Option<Markup> {
    let samples = cx.app.history.as_ref()?.of(board);
    let line = |label, value: &dyn Fn(&Seen) -> Option<f64>| Line {
        label,
        points: samples.iter().map(|seen| (seen.sample.at, value(seen))).collect(),
    };
    let paces = vec![
        line("done", &|seen| seen.paces.map(|paces| paces.0)),
        line("failed", &|seen| seen.paces.map(|paces| paces.1)),
    ];
    // A sample without a pace comes after a gap, and breaks the line.
    let counts = vec![
        line("ready", &|seen| seen.paces.map(|_| seen.sample.ready as f64)),
        line("running", &|seen| seen.paces.map(|_| seen.sample.claimed as f64)),
    ];
    Some(html! {
        @if samples.len() < 3 { p.note { "Samples are taken once a minute." } }
        div.charts {
            (Chart { title: "Done and failed a minute", lines: paces, ms: false }.draw())
            (Chart { title: "Jobs", lines: counts, ms: false }.draw())
        }
    })
}

/// Jobs that are done and that fail, a minute.
pub fn activity(title: &'static str, points: &[Point]) -> Chart {
    let lines = vec![line("done", points, |point| point.done), line("failed", points, |point| point.failed)];
    Chart { title, lines, ms: false }
}

fn plots(points: &[Point]) -> Markup {
    let chart = |title, lines, ms| Chart { title, lines, ms }.draw();
    let counts = vec![
        line("ready", points, |point| Some(point.ready as f64)),
        line("running", points, |point| Some(point.claimed as f64)),
    ];
    html! {
        @if points.len() < 2 { p.note { "Plots grow while this page is open." } }
        div.charts {
            (activity("Done and failed a minute", points).draw())
            (chart("Jobs", counts, false))
            (chart("Wait before a claim, over one minute", percentiles(points, |point| point.wait), true))
            (chart("Run time, over one minute", percentiles(points, |point| point.run), true))
        }
    }
}

fn line(label: &'static str, points: &[Point], value: impl Fn(&Point) -> Option<f64>) -> Line {
    // Nothing is drawn over times in which nobody looked.
    let gap = |point: &Point| point.after_gap.then_some((point.at - 1, None));
    let drawn = points.iter().flat_map(|point| gap(point).into_iter().chain([(point.at, value(point))]));
    Line { label, points: drawn.collect() }
}

fn percentiles(points: &[Point], of: fn(&Point) -> [Option<f64>; 3]) -> Vec<Line> {
    let labels = ["50 %", "95 %", "99 %"].into_iter().enumerate();
    labels.map(|(at, label)| line(label, points, |point| of(point)[at])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(at: i64, done: Option<f64>) -> Point {
        let failed = done.map(|_| 0.0);
        Point { at, ready: 0, claimed: 0, done, failed, after_gap: false, wait: [None; 3], run: [None; 3] }
    }

    fn told(points: &[Point]) -> Vec<(i64, Option<f64>, bool)> {
        points.iter().map(|point| (point.at, point.done, point.after_gap)).collect()
    }

    #[test]
    fn what_is_seen_goes_on_behind_the_samples() {
        let past = || vec![point(0, Some(1.0)), point(MINUTE, Some(2.0)), point(MINUTE * 5, Some(9.0))];
        let seen = vec![point(MINUTE * 2, None), point(MINUTE * 2 + 5_000, Some(3.0))];
        let joined =
            [(0, Some(1.0), false), (MINUTE, Some(2.0), false), (MINUTE * 2 + 5_000, Some(3.0), false)];
        assert_eq!(told(&behind(past(), seen.clone())), joined);
        assert_eq!(behind(Vec::new(), seen.clone()), seen);
        let late = behind(vec![point(0, Some(1.0))], vec![point(STALE + 1, None)]);
        assert_eq!(told(&late), [(0, Some(1.0), false), (STALE + 1, None, true)]);
    }

    #[test]
    fn boards_are_summed_by_the_minute() {
        let one = vec![point(1_000, Some(2.0)), point(31_000, Some(4.0)), point(MINUTE * 9, Some(1.0))];
        let other = vec![point(2_000, Some(10.0)), point(3_000, None)];
        let sum = summed([one, other].into_iter());
        assert_eq!(told(&sum), [(MINUTE / 2, Some(13.0), false), (MINUTE * 9 + MINUTE / 2, Some(1.0), true)]);
    }
}
