//! Kinds of failure that grow: failures of the last quarter of an hour beside those of the quarter before it.

use std::collections::HashMap;

use futures_util::future::join;
use maud::{html, Markup};

use super::queues::DeadQueue;
use super::Need;
use crate::alike::{self, headline, Alike};
use crate::app::RequestContext;
use crate::connection::board_command;
use crate::connection::reply::{int, page, Record};
use crate::failure::Failure;
use crate::format::{board_address, jobs_address, name, now, number};

/// How long a window lasts, ms.
const WINDOW: i64 = 15 * 60_000;

/// Failed jobs that are read of each window, the newest.
const LOOK: usize = 200;

/// A kind, and what its messages have in common.
type Key = (Vec<u8>, Option<String>);

/// The failures of one window, as far as they were read.
#[derive(Default)]
struct Window {
    /// Failed jobs, newest first, with `kind`, `message` and `ended`.
    failed: Vec<Record>,
    /// Those that moved to a dead queue.
    dead: Vec<Record>,
    /// Whether failed jobs of the window were left, and dead ones.
    cut: (bool, bool),
    /// Failed jobs that were left, where the server counts so far.
    unread: Option<i64>,
}

impl Window {
    /// With the jobs that moved to a dead queue after `from`, and up to `to`.
    fn with(self, dead: &[DeadQueue], from: i64, to: i64) -> Self {
        let moved = |job: &&Record| (from + 1..=to).contains(&job.record("origin").int("at"));
        let jobs = dead.iter().flat_map(|dead| &dead.jobs).filter(moved).cloned().collect();
        Self { dead: jobs, cut: (self.cut.0, dead.iter().any(|dead| !dead.whole)), ..self }
    }

    fn is_whole(&self) -> bool {
        !self.cut.0 && !self.cut.1
    }

    /// How many ms the failed jobs cover: the window, or from the newest that was read to the oldest.
    fn covered(&self) -> i64 {
        let ended = |row: Option<&Record>| row.map_or(0, |row| row.int("ended"));
        match self.cut.0 {
            false => WINDOW,
            true => (ended(self.failed.first()) - ended(self.failed.last())).clamp(1, WINDOW),
        }
    }

    fn rows(&self) -> Vec<Record> {
        self.failed.iter().chain(&self.dead).cloned().collect()
    }

    fn counts(&self) -> HashMap<Key, Count> {
        let (failed, dead) = (count(&self.failed), count(&self.dead));
        let mut counts: HashMap<Key, Count> = HashMap::new();
        for (alike, jobs) in failed {
            let pace = jobs as f64 * WINDOW as f64 / self.covered() as f64;
            // A burst of a second does not go on for the whole window.
            let most = self.unread.map_or(f64::INFINITY, |unread| jobs as f64 + unread as f64);
            counts.insert(alike, Count { jobs, dead: 0, pace: pace.min(most) });
        }
        for (alike, jobs) in dead {
            let count = counts.entry(alike).or_default();
            (count.jobs, count.dead, count.pace) = (count.jobs + jobs, jobs, count.pace + jobs as f64);
        }
        counts
    }
}

/// Failures of one kind and message in one window.
#[derive(Clone, Copy, Default)]
struct Count {
    jobs: usize,
    /// How many of them moved to a dead queue.
    dead: usize,
    /// How many a whole window would have, if it went like the part that was read; no more than it can have.
    pace: f64,
}

fn count(rows: &[Record]) -> Vec<(Key, usize)> {
    alike::groups(rows)
        .into_iter()
        .map(|group| ((group.alike.kind, group.alike.pattern), group.rows.len()))
        .collect()
}

/// The kinds that fail now. One that is new or grows comes first. One that only fails on is listed below all
/// else: at night it is what is left to see of an outage whose growth is over.
pub async fn needs(
    cx: &RequestContext,
    board: &[u8],
    info: &Record,
    dead: &[DeadQueue],
) -> Result<Vec<Need>, Failure> {
    let (last, before) = match info.int("failed") {
        0 => (Window::default(), Window::default()),
        _ => {
            let (last, before) =
                join(failed(cx, board, "-15m", "+"), failed(cx, board, "-30m", "-15m")).await;
            (last?, before?)
        }
    };
    let at = now();
    let last = last.with(dead, at - WINDOW, i64::MAX);
    let before = before.with(dead, at - 2 * WINDOW, at - WINDOW);
    let earlier = before.counts();
    let now = last.counts();
    let rows = last.rows();
    let mut quiet = 0;
    let mut needs: Vec<Need> = alike::groups(&rows)
        .into_iter()
        .filter_map(|group| {
            let key = (group.alike.kind.clone(), group.alike.pattern.clone());
            let count = now.get(&key).copied().unwrap_or_default();
            let then = earlier.get(&key).copied().unwrap_or_default();
            let grows = count.pace > then.pace;
            let aside = cx.app.aside.of(board, &group.alike);
            match &aside {
                Some(entry) if !entry.grown && count.pace <= entry.limit() => {
                    quiet += 1;
                    return None;
                }
                Some(_) => cx.app.aside.grew(board, &group.alike),
                None => {}
            }
            let need = Need {
                weight: if grows { 1 << 20 } else { 1 << 10 } + count.jobs as i64,
                text: html! {
                    (said(&group.alike, &group.rows[0].bytes("message"))) " – "
                    @if !last.is_whole() { "at least " } (number(count.jobs as i64)) " in the last 15 minutes, "
                    (earlier_said(then.jobs, before.is_whole())) " in the 15 before"
                    @if !grows { " (not growing)" }
                    @if let Some(entry) = &aside { "; " (name(entry.user.as_bytes())) " had set it aside, and it has grown" }
                    @if count.dead > 0 { "; " (number(count.dead as i64)) " moved to a dead queue" }
                },
                to: address_of(board, &group.alike, count, dead),
                link: if count.dead == count.jobs { "Jobs" } else { "Failed jobs" },
                acts: Vec::new(),
            };
            // Dead jobs are sent back from their queue.
            let pattern = group.alike.pattern.as_deref().unwrap_or_default();
            let fields = |verb: &'static [u8]| {
                [("b", board), ("verb", verb), ("kind", &group.alike.kind), ("alike", pattern.as_bytes())]
            };
            let need = match count.dead == count.jobs {
                false => need.with_act("Requeue", &group.alike.kind, &fields(b"requeue")),
                true => need,
            };
            Some(need.with_act("Set aside", &group.alike.kind, &fields(b"aside")))
        })
        .collect();
    if quiet > 0 {
        needs.push(Need {
            weight: 1,
            text: html! {
                @if quiet == 1 { "A failure that goes on is" } @else { (number(quiet)) " failures that go on are" }
                " set aside until " @if quiet == 1 { "it grows" } @else { "they grow" }
            },
            to: board_address("/failures", board),
            link: "Failed jobs",
            acts: Vec::new(),
        });
    }
    Ok(needs)
}

/// How many failures of this sort 15 minutes have now.
pub async fn pace_now(cx: &RequestContext, board: &[u8], alike: &Alike) -> Result<f64, Failure> {
    let window = failed(cx, board, "-15m", "+").await?;
    let queues = super::queues::rows(cx, board).await?.rows;
    let dead = super::queues::dead(cx, board, &queues).await;
    let window = window.with(&dead, now() - WINDOW, i64::MAX);
    let key = (alike.kind.clone(), alike.pattern.clone());
    Ok(window.counts().get(&key).map_or(0.0, |count| count.pace))
}

/// The newest failed jobs that ended between these times.
async fn failed(cx: &RequestContext, board: &[u8], from: &str, to: &str) -> Result<Window, Failure> {
    let mut command = board_command("LIST", board);
    command.arg("STATE").arg("failed").arg("ENDED").arg(from).arg(to).arg("REV").arg("COUNT").arg(LOOK);
    command.arg("FIELDS").arg(3).arg("kind").arg("message").arg("ended");
    let (reply, listed) = cx.ask_dated(board, command).await?;
    let (next, failed) = page(reply);
    let mut window = Window { failed, cut: (next.is_some(), false), ..Window::default() };
    if window.cut.0 {
        let mut command = board_command("COUNT", board);
        command.arg("STATE").arg("failed").arg("ENDED").arg(from).arg(to);
        let counted = match cx.ask_dated(board, command.clone()).await {
            // A count from before the list may lack the jobs of a burst.
            Ok((_, counted)) if counted < listed => cx.ask(board, command).await,
            counted => counted.map(|(count, _)| count),
        };
        let all = match counted {
            // There may be more than one call counts.
            Err(Failure::NotAllowed(_) | Failure::Server(_)) => None,
            counted => int(&counted?),
        };
        window.unread = all.map(|all| (all - window.failed.len() as i64).max(0));
    }
    Ok(window)
}

fn said(alike: &Alike, message: &[u8]) -> Markup {
    html! {
        b { (name(&alike.kind)) }
        @if !message.is_empty() { ": " bdi { (crate::names::short(headline(message).as_bytes(), 120)) } }
    }
}

fn earlier_said(count: usize, is_whole: bool) -> Markup {
    html! {
        @match (count, is_whole) {
            (0, true) => "none",
            (0, false) => { "none of the newest " (number(LOOK as i64)) },
            (count, _) => { @if !is_whole { "at least " } (number(count as i64)) },
        }
    }
}

/// The failed jobs; when all of them have moved to dead queues, the jobs of this kind in the first of those.
fn address_of(board: &[u8], alike: &Alike, count: Count, dead: &[DeadQueue]) -> String {
    let has_one = |dead: &&DeadQueue| dead.jobs.iter().any(|job| alike.holds(job));
    match dead.iter().find(has_one).filter(|_| count.dead == count.jobs) {
        Some(dead) => {
            jobs_address(board, &[("state", b"ready"), ("queue", &dead.queue), ("kind", &alike.kind)])
        }
        None => crate::pages::failures::group_address(board, alike),
    }
}

#[cfg(test)]
mod tests {
    use redis::Value;

    use super::*;

    fn row(kind: &str, ended: i64) -> Record {
        let bulk = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let pairs = vec![(bulk("kind"), bulk(kind)), (bulk("ended"), Value::Int(ended))];
        Record::read(Value::Map(pairs)).unwrap()
    }

    fn pace(window: &Window, kind: &str) -> f64 {
        let counts = window.counts();
        counts.iter().find(|((own, _), _)| own == kind.as_bytes()).map_or(0.0, |(_, count)| count.pace)
    }

    #[test]
    fn a_window_that_was_read_in_part_counts_for_the_time_that_it_covers() {
        let failed: Vec<Record> = (0..60).map(|n| row("A", 1_000_000 - n * 1000)).collect();
        let dead = vec![row("A", 0), row("B", 0)];
        let mut window = Window { failed, dead, ..Window::default() };
        assert_eq!((pace(&window, "A"), pace(&window, "B")), (61.0, 1.0));
        window.cut.0 = true;
        // 60 failures in 59 s: some 900 in 15 minutes.
        assert!((900.0..920.0).contains(&pace(&window, "A")), "{}", pace(&window, "A"));
        // The whole window has no more than these.
        window.unread = Some(240);
        assert_eq!(pace(&window, "A"), 301.0);
    }
}
