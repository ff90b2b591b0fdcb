//! The queues of a board: what waits and runs in each, how fast, and what holds it back.

use maud::{html, Markup};

use super::attention::{queue_rows, Looked, Only};
use super::board::{at_most, rows, ROWS};
use super::boards::{age, drain};
use super::layout::hidden;
use super::{Part, View};
use crate::app::RequestContext;
use crate::connection::reply::Record;
use crate::failure::Failure;
use crate::format::{board_address, count_link, name, number, paused, rate, word, STATES};
use crate::names::{address, shown};

/// By what the queues can be sorted, beside their names.
const ORDERS: [(&str, &str); 4] = [
    ("ready", "most ready"),
    ("claimed", "most running"),
    ("failed", "most failed"),
    ("oldest", "oldest ready job"),
];

/// Queues on the board's own page.
const SOME: usize = 20;

const HEADS: [&str; 5] = ["concurrency", "oldest", "in", "out", "empties in"];

pub async fn view(cx: &RequestContext) -> Result<View, Failure> {
    let board = cx.board()?;
    let head = html! {
        h1 { "Queues of " (name(&board)) }
        form.filters {
            (hidden("b", &board))
            label { "Name " input type="search" name="name" value=(cx.query.text("name").unwrap_or_default()); }
            label {
                "Sorted by "
                select name="sort" {
                    option value="" { "name" }
                    @for (field, text) in ORDERS { option value=(field) selected[cx.query.text("sort") == Some(field)] { (text) } }
                }
            }
            label {
                "Only "
                select name="only" {
                    option value="" { "–" }
                    @for (word, text, _) in Only::ALL { option value=(word) selected[cx.query.text("only") == Some(word)] { (text) } }
                }
            }
            button { "Show" }
        }
    };
    let body = match cx.query.text("only").and_then(Only::named) {
        Some(only) => those(cx, &board, only).await,
        None => listed(cx, &board).await,
    };
    Ok(View {
        title: format!("Queues of {}", shown(&board)),
        head,
        place: "Queues",
        parts: vec![Part::new("queues", "", body)?],
        board: Some(board),
    })
}

/// A page, as the server lists, sorts and filters them.
async fn listed(cx: &RequestContext, board: &[u8]) -> Result<Markup, Failure> {
    let mut words: Vec<&[u8]> = Vec::new();
    let mut here: Vec<(&str, &[u8])> = vec![("b", board)];
    if let Some(text) = cx.query.bytes("name").filter(|text| !text.is_empty()) {
        words.extend([&b"CONTAINS"[..], text]);
        here.push(("name", text));
    }
    if let Some((field, _)) = ORDERS.iter().find(|(field, _)| cx.query.text("sort") == Some(field)) {
        words.extend([&b"BY"[..], field.as_bytes()]);
        here.push(("sort", field.as_bytes()));
    }
    let (next, rows) = rows(cx, board, "QUEUES", &words, "queues").await?;
    Ok(html! {
        (table(cx, board, &rows))
        @if let Some(next) = next {
            nav.pages aria-label="Pages" {
                a rel="next" href=(address("/queues", &[&here[..], &[("queues", &next)]].concat())) { "Next page" }
            }
        }
    })
}

/// Those that need a person for one reason, among the queues in which the first page looks for them.
async fn those(cx: &RequestContext, board: &[u8], only: Only) -> Result<Markup, Failure> {
    let text = cx.query.text("name").unwrap_or_default().to_lowercase();
    let Looked { mut rows, all, .. } = queue_rows(cx, board).await?;
    let looked = rows.len();
    rows.retain(|row| only.takes(row) && shown(&row.bytes("queue")).to_lowercase().contains(&text));
    match cx.query.text("sort").filter(|sort| ORDERS.iter().any(|(field, _)| field == sort)) {
        Some(field) => rows.sort_by_key(|row| std::cmp::Reverse(row.int(field))),
        None => rows.sort_by_key(|row| row.bytes("queue")),
    }
    let count = rows.len();
    rows.truncate(ROWS);
    Ok(html! {
        p {
            (number(count as i64)) @if count == 1 { " queue" } @else { " queues" }
            @if count > ROWS { ", of which these are the first " (ROWS) }
            @if !all { ", among " (number(looked as i64)) ": the first by name and those with most ready jobs" }
            "."
        }
        (table(cx, board, &rows))
    })
}

/// The queues with most ready jobs, on the board's own page.
pub async fn some(cx: &RequestContext, board: &[u8]) -> Result<Markup, Failure> {
    let (next, rows) = at_most(cx, board, "QUEUES", &[b"BY", b"ready"], "queues", SOME).await?;
    Ok(html! {
        (table(cx, board, &rows))
        @if next.is_some() {
            p { "Those with most ready jobs. " a href=(board_address("/queues", board)) { "All queues" } }
        }
    })
}

fn table(cx: &RequestContext, board: &[u8], rows: &[Record]) -> Markup {
    html! {
        @if rows.is_empty() { p { "None." } } @else {
            div.wide {
                table.stacked {
                    caption.unseen { "Queues of the board" }
                    thead {
                        tr {
                            th scope="col" { "Queue" }
                            @for state in STATES { th.number scope="col" { (word(state)) } }
                            @for head in HEADS { th.number scope="col" { (head) } }
                            @if cx.may_write() { th scope="col" { "actions" } }
                        }
                    }
                    tbody { @for row in rows { (table_row(cx, board, row)) } }
                }
            }
        }
    }
}

fn table_row(cx: &RequestContext, board: &[u8], row: &Record) -> Markup {
    let queue = row.bytes("queue");
    let act = |verb: &[u8]| address("/confirm", &[("b", board), ("verb", verb), ("queue", &queue)]);
    let unserved = super::attention::is_unserved(row);
    let cells = [
        html! { @if row.int("concurrency") < 0 { "any" } @else { (number(row.int("concurrency"))) } },
        html! { (age(row.int("oldest"))) },
        html! { (rate(row.float("arrival-rate"))) },
        html! { (rate(row.float("completion-rate"))) },
        html! { (drain(row.int("drain"))) },
    ];
    html! {
        tr {
            th scope="row" {
                a href=(address("/stats", &[("b", board), ("queue", &queue)])) { (name(&queue)) } " "
                (paused(row.int("paused")))
                @if unserved { span.badge.failed { "no worker" } }
                @if !row.list("limits").is_empty() { div.faint { "limits " (row.text("limits")) } }
            }
            @for state in STATES {
                td.number data-label=(word(state)) { (count_link(row.int(state), board, &[("state", state.as_bytes()), ("queue", &queue)])) }
            }
            @for (head, cell) in HEADS.iter().zip(&cells) { td.number data-label=(head) { (cell) } }
            @if cx.may_write() {
                td.actions {
                    @if row.int("paused") == 0 { a href=(act(b"pause")) { "pause" } } @else { a href=(act(b"resume")) { "resume" } }
                    " " a href=(address("/settings", &[("b", board), ("queue", &queue)])) { "settings" }
                }
            }
        }
    }
}
