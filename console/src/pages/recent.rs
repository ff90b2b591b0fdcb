//! Plots of the last quarter of an hour, of a board or one of its queues.

use maud::{html, Markup};

use crate::app::RequestContext;
use crate::chart::{Chart, Line};
use crate::connection::board_command;
use crate::connection::reply::Record;
use crate::failure::Failure;
use crate::format::now;
use crate::history::Seen;
use crate::recent::Point;

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
    let stats = cx.ask_shared(board, command).await?;
    let seen = (cx.session.user.clone(), board.to_vec(), queue.map(<[u8]>::to_vec));
    Ok(cx.app.trends.note(seen, at, counts.int("ready"), counts.int("claimed"), &stats))
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
