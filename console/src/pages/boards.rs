//! All boards.

use futures_util::future::join_all;
use maud::{html, Markup};

use super::{Part, View};
use crate::app::RequestContext;
use crate::connection::reply::Record;
use crate::connection::{board_command, Found, MOST_BOARDS};
use crate::failure::Failure;
use crate::format::{board_address, count_link, name, number, paused, rate, size, span};
use crate::names::{address, shown};

/// Boards on one page.
const PAGE: usize = 50;

pub async fn view(cx: &RequestContext) -> Result<View, Failure> {
    let found = boards(cx).await?;
    let wanted = cx.query.text("q").unwrap_or_default().to_lowercase();
    let matching: Vec<&Vec<u8>> =
        found.boards.iter().filter(|board| shown(board).to_lowercase().contains(&wanted)).collect();
    let number_of_pages = matching.len().div_ceil(PAGE).max(1);
    let page = cx.query.number("page").map_or(1, |page| page.clamp(1, number_of_pages as i64) as usize);
    let here = &matching[(page - 1) * PAGE..matching.len().min(page * PAGE)];
    let rows = join_all(here.iter().map(|board| info(cx, board))).await;
    let mut told = Vec::new();
    let mut odd = Vec::new();
    let mut hidden = 0;
    for (board, row) in here.iter().zip(rows) {
        match row {
            Ok(Some(info)) => told.push((board.as_slice(), info)),
            Ok(None) => {}
            Err(Failure::NotAllowed(_) | Failure::NotFound(_)) => hidden += 1,
            Err(Failure::Server(text)) => odd.push((board.as_slice(), text)),
            Err(failure) => return Err(failure),
        }
    }
    let head = html! {
        h1 { "Boards" }
        form.filters {
            label { "Name " input type="search" name="q" value=(cx.query.text("q").unwrap_or_default()) data-key="/"; }
            button { "Filter" }
        }
        form.filters action="/board" {
            label { "Open the board " input name="b" required placeholder="its key"; }
            button { "Open" }
        }
    };
    let body = html! {
        @if !found.whole {
            p.note {
                "There are more keys than are looked at: these are boards found first, " (number(MOST_BOARDS as i64))
                " at most. Open others by their name, or start the console with --board."
            }
        }
        @if told.is_empty() && odd.is_empty() && hidden == 0 {
            p { @if wanted.is_empty() { "There is no board yet. The first JOB.POST makes one." } @else { "No board has such a name." } }
        }
        @if !told.is_empty() { (table(&told)) }
        @for (board, text) in &odd { p.refused { (name(board)) ": " (text) } }
        @if hidden > 0 { p.note { (hidden) " that you may not read are left out." } }
        @if number_of_pages > 1 { (pages(&wanted, page, number_of_pages)) }
    };
    Ok(View {
        title: "Boards".into(),
        board: None,
        place: "Boards",
        head,
        parts: vec![Part { id: "boards", body }],
    })
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
        Ok(Found { boards: named.iter().map(|name| name.clone().into_bytes()).collect(), whole: true })
    }
}

async fn info(cx: &RequestContext, board: &[u8]) -> Result<Option<Record>, Failure> {
    Ok(Record::read(cx.ask(board, board_command("INFO", board)).await?))
}

fn table(rows: &[(&[u8], Record)]) -> Markup {
    html! {
        div.wide {
            table {
                caption.unseen { "Boards, with their jobs by state and their pace" }
                thead {
                    tr {
                        th scope="col" { "Board" }
                        @for head in ["Ready", "Running", "Scheduled", "Blocked", "Failed", "Oldest ready", "In", "Out", "Empty in", "Workers", "Memory"] {
                            th.number scope="col" { (head) }
                        }
                    }
                }
                tbody {
                    @for (board, info) in rows {
                        tr {
                            th scope="row" {
                                a href=(board_address("/board", board)) { (name(board)) } " "
                                (paused(info.int("paused")))
                                @if info.int("broken") == 1 { " " span.badge.failed { "broken" } }
                            }
                            @for state in ["ready", "claimed", "scheduled", "blocked", "failed"] {
                                td.number { (count_link(info.int(state), board, &[("state", state.as_bytes())])) }
                            }
                            td.number { (age(info.int("oldest"))) }
                            td.number { (rate(info.float("arrival-rate"))) }
                            td.number { (rate(info.float("completion-rate"))) }
                            td.number { (drain(info.int("drain"))) }
                            td.number { (number(info.int("workers"))) }
                            td.number { (size(info.int("bytes"))) }
                        }
                    }
                }
            }
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
        -1 => "never".into(),
        0 => "–".into(),
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
