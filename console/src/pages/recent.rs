//! Plots of the last quarter of an hour, of a board or one of its queues.

use maud::{html, Markup};

use crate::app::RequestContext;
use crate::chart::{Chart, Line};
use crate::connection::board_command;
use crate::failure::Failure;
use crate::format::now;
use crate::recent::Point;

/// Looks at the statistics of today, and draws what they have gained look by look.
pub async fn draw(
    cx: &RequestContext,
    board: &[u8],
    queue: Option<&[u8]>,
    ready: i64,
    claimed: i64,
) -> Result<Markup, Failure> {
    let mut command = board_command("STATS", board);
    if let Some(queue) = queue {
        command.arg("QUEUE").arg(queue);
    }
    let stats = cx.ask(board, command).await?;
    let seen = (cx.session.user.clone(), board.to_vec(), queue.map(<[u8]>::to_vec));
    Ok(plots(&cx.app.trends.note(seen, now(), ready, claimed, &stats)))
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
            (chart("Jobs", counts, false))
            (chart("Wait before a claim, of the minute before", percentiles(points, |point| point.wait), true))
            (chart("Run, of the minute before", percentiles(points, |point| point.run), true))
        }
    }
}

fn line(label: &'static str, points: &[Point], value: impl Fn(&Point) -> Option<f64>) -> Line {
    Line { label, points: points.iter().map(|point| (point.at, value(point))).collect() }
}

fn percentiles(points: &[Point], of: fn(&Point) -> [Option<f64>; 3]) -> Vec<Line> {
    let labels = ["50 %", "95 %", "99 %"].into_iter().enumerate();
    labels.map(|(at, label)| line(label, points, |point| of(point)[at])).collect()
}
