//! The first page: how all boards go, what needs a person, and each board.

use futures_util::future::{join, join_all};
use maud::{html, Markup};

use super::attention::{self, Need};
use super::{days, Part, View};
use crate::app::RequestContext;
use crate::connection::reply::Record;
use crate::connection::{board_command, Found, MOST_BOARDS};
use crate::failure::Failure;
use crate::format::{board_address, count_link, name, now, number, paused, size, span};
use crate::names::{address, own, shown};
use crate::recent::Point;
use crate::server_memory::{self, Memory};

/// Boards on one page.
const PAGE: usize = 50;

/// What is known of a board that is shown.
struct Row<'a> {
    board: &'a [u8],
    info: Record,
    points: Vec<Point>,
    needs: Vec<Need>,
}

impl Row<'_> {
    /// Of the last point that knows it; one that is too old says nothing of now.
    fn pace(&self, of: fn(&Point) -> Option<f64>) -> Option<f64> {
        let last = self.points.last()?;
        of(last).filter(|_| now() - last.at <= super::recent::STALE)
    }

    /// By how much the timer is late, ms.
    fn lag(&self) -> i64 {
        let late = ["lease-lateness-p99", "due-lateness-p99", "fire-lateness-p99"];
        late.iter().map(|field| self.info.int(field)).max().unwrap_or(0)
    }
}

pub async fn view(cx: &RequestContext, kept: &mut super::Memory) -> Result<View, Failure> {
    let found = match boards(cx).await {
        Err(Failure::NotAllowed(text)) => return Ok(without_list(cx, &text)),
        found => found?,
    };
    if found.boards.is_empty() {
        // A server without the module has no boards either.
        if let Err(failure @ Failure::NoModule) = cx.ask(b"", board_command("INFO", b"")).await {
            return Err(failure);
        }
    }
    let wanted = cx.query.text("q").unwrap_or_default().to_lowercase();
    let matching: Vec<&Vec<u8>> =
        found.boards.iter().filter(|board| shown(board).to_lowercase().contains(&wanted)).collect();
    let number_of_pages = matching.len().div_ceil(PAGE).max(1);
    let page = cx.query.number("page").map_or(1, |page| page.clamp(1, number_of_pages as i64) as usize);
    let here = &matching[(page - 1) * PAGE..matching.len().min(page * PAGE)];
    let at = now();
    let rows = join_all(here.iter().map(|board| row(cx, board, at))).await;
    let (mut told, mut odd, mut hidden) = (Vec::new(), Vec::new(), 0);
    for (board, row) in here.iter().zip(rows) {
        match row {
            Ok(Some(row)) => told.push(row),
            Ok(None) => {}
            Err(Failure::NotAllowed(_) | Failure::NotFound(_)) => hidden += 1,
            Err(Failure::Server(text)) => odd.push((board.as_slice(), text)),
            Err(Failure::Unreachable(text)) if cx.session.link.is_cluster() => {
                odd.push((board.as_slice(), text));
            }
            Err(failure) => return Err(failure),
        }
    }
    let body = html! {
        h2 { "Boards" }
        @if !found.whole {
            p.note {
                "The console looked at a part of the server's keys: these are the first boards that it found, at most "
                (number(MOST_BOARDS as i64)) ". Open others by their name, or start the console with --board."
            }
        }
        @for server in &found.away {
            p.refused { "The server " (shown(server.as_bytes())) " of the cluster does not answer. Its boards are missing here until it does, or a replica takes its place." }
        }
        @if told.is_empty() && odd.is_empty() && hidden == 0 && found.away.is_empty() {
            p { @if wanted.is_empty() { "There is no board yet. The first JOB.POST makes one." } @else { "No board has such a name." } }
        }
        @if !told.is_empty() { (table(&told)) }
        @for (board, text) in &odd { p.refused { (name(board)) ": " (text) } }
        @if hidden > 0 { p.note { (hidden) " that you may not read are left out." } }
        @if number_of_pages > 1 { (pages(&wanted, page, number_of_pages)) }
    };
    // Without boards these are empty, and are filled when the first comes.
    let (mut lines, mut list) = (html! {}, html! {});
    if !told.is_empty() {
        let memory = server_memory::look(cx).await?;
        lines = activity(cx, &told, (&wanted, page), at, &memory);
        let server = memory.iter().flat_map(attention::of_server).collect();
        let boards = told.iter_mut().map(|row| (row.board, std::mem::take(&mut row.needs)));
        let needs: Vec<(&[u8], Vec<Need>)> = [(&b""[..], server)].into_iter().chain(boards).collect();
        list = html! { h2 { "What needs you" } (attention::draw(cx, &needs, true)) };
    }
    let mut parts = vec![
        Part { id: "activity", body: lines },
        Part { id: "needs", body: list },
        Part { id: "boards", body },
    ];
    // Days are told once: an open page refreshes what changes by the second.
    if !kept.told {
        let boards: Vec<&[u8]> = told.iter().map(|row| row.board).collect();
        parts.extend(days::part(cx, &boards).await?);
    }
    kept.told = true;
    Ok(View { title: "Boards".into(), board: None, place: "Boards", head: head(cx), parts })
}

fn head(cx: &RequestContext) -> Markup {
    html! {
        h1 { "Boards" }
        div.bar {
            form.filters {
                label { "Name " input type="search" name="q" value=(cx.query.text("q").unwrap_or_default()) data-key="/"; }
                button { "Filter" }
            }
            (open_form())
        }
    }
}

fn open_form() -> Markup {
    html! {
        form.filters action=(own("/board")) {
            label { "Open the board " input name="b" required placeholder="its key"; }
            button { "Open" }
        }
    }
}

/// The page of a user who may not look for boards.
fn without_list(_: &RequestContext, text: &str) -> View {
    View {
        title: "Boards".into(),
        board: None,
        place: "Boards",
        head: html! { h1 { "Boards" } },
        parts: vec![Part { id: "boards", body: html! { p.note { (text) } (open_form()) } }],
    }
}

async fn row<'a>(cx: &RequestContext, board: &'a [u8], at: i64) -> Result<Option<Row<'a>>, Failure> {
    let Some(info) = info(cx, board).await? else { return Ok(None) };
    let (needs, points) =
        join(attention::of(cx, board, &info), super::recent::look(cx, board, None, at, &info)).await;
    let points = match points {
        Err(Failure::NotAllowed(_) | Failure::Server(_)) => Vec::new(),
        points => points?,
    };
    Ok(Some(Row { board, info, points, needs: needs? }))
}

/// All boards of the page together.
fn activity(
    cx: &RequestContext,
    rows: &[Row],
    (wanted, page): (&str, usize),
    at: i64,
    memory: &[Memory],
) -> Markup {
    let sum = |of: fn(&Point) -> Option<f64>| {
        rows.iter().filter_map(|row| row.pace(of)).reduce(|sum, pace| sum + pace)
    };
    let (done, failed) = (sum(|point| point.done), sum(|point| point.failed));
    let listed = (cx.session.user.clone(), wanted.to_owned(), page);
    let seen = cx.app.trends.note_sum(listed, at, done, failed);
    let boards: Vec<&[u8]> = rows.iter().map(|row| row.board).collect();
    let points = super::recent::behind(super::recent::past_of_all(cx, &boards, at), seen);
    let count = |state: &str| rows.iter().map(|row| row.info.int(state)).sum::<i64>();
    let most = |of: &dyn Fn(&Row) -> i64| rows.iter().map(of).max().unwrap_or(-1);
    html! {
        div.live {
            ul.figures {
                li { span.figure { (per_minute(done)) } " done a minute" }
                li { span.figure.bad[failed.is_some_and(|failed| failed > 0.0)] { (per_minute(failed)) } " failed a minute" }
                @for (state, word) in [("ready", "ready"), ("claimed", "running"), ("scheduled", "scheduled"), ("failed", "failed")] {
                    li { span.figure { (number(count(state))) } " " (word) }
                }
                li { span.figure { (age(most(&|row| row.info.int("oldest")))) } " oldest ready" }
                li { span.figure { (span(most(&|row| row.lag()))) } " timer lag (p99)" }
                @if !memory.is_empty() { li { span.figure { (size(memory.iter().map(|one| one.used).sum())) } " server memory" } }
            }
            (super::recent::activity("Done and failed a minute, the last 15 minutes", &points).draw())
        }
        @if points.len() < 2 { p.note { "The lines grow while this page is open." } }
    }
}

/// Jobs a minute; "–" while nothing is known yet.
pub fn per_minute(pace: Option<f64>) -> String {
    match pace {
        None => "–".into(),
        Some(pace) if pace > 0.0 && pace < 9.95 => format!("{pace:.1}"),
        Some(pace) => number(pace.round() as i64),
    }
}

/// The boards to show: those named at the start, or those that the server has.
async fn boards(cx: &RequestContext) -> Result<Found, Failure> {
    let named = &cx.app.options.board;
    if named.is_empty() {
        match cx.session.finder.boards(&cx.session.link).await {
            Err(Failure::NotAllowed(_)) => Err(Failure::NotAllowed(
                "Your user may not look for boards (SCAN). Open one by its name: /board?b=<name>.".into(),
            )),
            other => other,
        }
    } else {
        let boards = named.iter().map(|name| name.clone().into_bytes()).collect();
        Ok(Found { boards, whole: true, ..Found::default() })
    }
}

async fn info(cx: &RequestContext, board: &[u8]) -> Result<Option<Record>, Failure> {
    Ok(Record::read(cx.ask_shared(board, board_command("INFO", board)).await?))
}

const HEADS: [&str; 11] = [
    "Ready",
    "Running",
    "Scheduled",
    "Failed",
    "Oldest ready",
    "Done a minute",
    "Failed a minute",
    "15 minutes",
    "Timer lag (p99)",
    "Workers",
    "Memory",
];

fn table(rows: &[Row]) -> Markup {
    html! {
        div.wide {
            table.stacked {
                caption.unseen { "Boards, with their jobs by state and their pace" }
                thead {
                    tr {
                        th scope="col" { "Board" }
                        @for head in HEADS { th.number scope="col" { (head) } }
                    }
                }
                tbody { @for row in rows { (table_row(row)) } }
            }
        }
    }
}

fn table_row(row: &Row) -> Markup {
    let (board, info) = (row.board, &row.info);
    let jobs = |state: &str| count_link(info.int(state), board, &[("state", state.as_bytes())]);
    let cells = [
        jobs("ready"),
        jobs("claimed"),
        jobs("scheduled"),
        html! {
            @if info.int("failed") == 0 { span.faint { "0" } }
            @else { a href=(board_address("/failures", board)) { (number(info.int("failed"))) } }
        },
        html! { (age(info.int("oldest"))) },
        html! { (per_minute(row.pace(|point| point.done))) },
        html! { (per_minute(row.pace(|point| point.failed))) },
        super::recent::activity("Done and failed a minute", &row.points).spark(),
        html! { (span(row.lag())) },
        html! { (number(info.int("workers"))) },
        html! { (size(info.int("bytes"))) },
    ];
    html! {
        tr {
            th scope="row" {
                a href=(board_address("/board", board)) { (name(board)) } " "
                (paused(info.int("paused")))
                @if info.int("broken") == 1 { " " span.badge.failed { "broken" } }
            }
            @for (head, cell) in HEADS.iter().zip(cells) { td.number data-label=(head) { (cell) } }
        }
    }
}

/// How long ago; "–" for -1.
pub fn age(ms: i64) -> String {
    if ms < 0 {
        "–".into()
    } else {
        span(ms)
    }
}

/// When nothing is ready any more at this pace.
pub fn drain(ms: i64) -> String {
    match ms {
        -1 => "–".into(),
        0 => "empty".into(),
        ms => span(ms),
    }
}

fn pages(wanted: &str, page: usize, of: usize) -> Markup {
    let to = |page: usize| address("/", &[("q", wanted.as_bytes()), ("page", page.to_string().as_bytes())]);
    html! {
        nav.pages aria-label="Pages" {
            @if page > 1 { a href=(to(page - 1)) rel="prev" { "Previous" } }
            span { "Page " (page) " of " (of) }
            @if page < of { a href=(to(page + 1)) rel="next" { "Next" } }
        }
    }
}
