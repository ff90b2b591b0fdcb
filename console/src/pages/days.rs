//! How many jobs were done and failed on each of the last days, of one board or of some together.

use futures_util::future::try_join_all;
use maud::html;

use super::Part;
use crate::app::RequestContext;
use crate::chart::{Chart, Line};
use crate::connection::board_command;
use crate::connection::reply::Record;
use crate::failure::Failure;
use crate::format::now;

const DAYS: i64 = 14;

/// Of more boards together the days are not drawn: each day of each is a question to the server.
const MOST: usize = 8;

const DAY: i64 = 86_400_000;

/// Nothing when all happened today: then the lines of the last minutes say it.
pub async fn part(cx: &RequestContext, boards: &[&[u8]]) -> Result<Option<Part>, Failure> {
    if boards.is_empty() || boards.len() > MOST {
        return Ok(None);
    }
    let days = try_join_all((0..DAYS).map(|day| sum(cx, boards, day))).await?;
    if days[1..].iter().all(|day| *day == (0, 0)) {
        return Ok(None);
    }
    let today = now() / DAY * DAY;
    let line = |label, value: fn(&(i64, i64)) -> i64| Line {
        label,
        points: (0..DAYS)
            .rev()
            .map(|day| (today - day * DAY, Some(value(&days[day as usize]) as f64)))
            .collect(),
    };
    let lines = vec![line("done", |day| day.0), line("failed", |day| day.1)];
    let chart = Chart { title: "Done and failed a day, in UTC", lines, ms: false };
    let body = html! { h2 { "The last " (DAYS) " days" } div.charts { (chart.draw()) } };
    Ok(Some(Part { id: "days", body }))
}

/// Jobs that were done and failed on this day, on the boards whose statistics the reader may see.
async fn sum(cx: &RequestContext, boards: &[&[u8]], day: i64) -> Result<(i64, i64), Failure> {
    let mut sum = (0, 0);
    for board in boards {
        let mut command = board_command("STATS", board);
        command.arg("DAY").arg(day);
        match cx.ask_shared(board, command).await {
            Ok(reply) => {
                let stats = Record::read(reply).unwrap_or_default();
                sum = (sum.0 + stats.int("completed"), sum.1 + stats.int("failed"));
            }
            Err(Failure::NotAllowed(_) | Failure::Server(_)) => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(sum)
}
