//! Failed jobs: what has failed together, and which jobs, newest first, with message and payload.

use maud::{html, Markup};

use super::layout::hidden;
use super::{Part, View};
use crate::alike::{self, Alike, Group, NEWEST};
use crate::app::RequestContext;
use crate::connection::board_command;
use crate::connection::reply::{page, Record};
use crate::course;
use crate::failure::Failure;
use crate::format::{board_address, job_link, name, number, soon};
use crate::names::{address, own, short, shown};
use crate::preview;
use crate::query::hidden_field;

/// Groups on the page.
const GROUPS: usize = 20;

/// Jobs on the page.
const PAGE: usize = 50;

/// Characters of a message in the list; the job's page has all.
const MESSAGE: usize = 300;

/// Names of jobs that are shown of a group.
const NAMES: usize = 3;

pub async fn view(cx: &RequestContext) -> Result<View, Failure> {
    let board = cx.board()?;
    let (newest, older_ones) = alike::newest(cx, &board).await?;
    let one = chosen(cx);
    let groups = alike::groups(&newest);
    let mut parts = Vec::new();
    let is_first = !cx.query.is_set("cursor") && !cx.query.is_set("from");
    if one.is_none() && is_first {
        let body = match newest.is_empty() {
            true => html! {},
            false => table_of_groups(cx, &board, &groups, newest.len(), older_ones.is_none()),
        };
        parts.push(Part { id: "alike", body });
    }
    let list = match cx.query.bytes("cursor") {
        Some(cursor) => older(cx, &board, cursor).await?,
        None => {
            let from = cx.query.number("from").map_or(0, |from| from.clamp(0, NEWEST as i64) as usize);
            let fits: Vec<&Record> =
                newest.iter().filter(|row| one.as_ref().is_none_or(|alike| alike.holds(row))).collect();
            let to = fits.len().min(from + PAGE);
            let next = match older_ones {
                _ if to < fits.len() => Next::From(to),
                Some(cursor) if one.is_none() => Next::Cursor(cursor),
                _ => Next::None,
            };
            (fits[from.min(to)..to].iter().copied().cloned().collect(), next)
        }
    };
    let fitting = one.as_ref().map(|alike| newest.iter().filter(|row| alike.holds(row)).count());
    parts.push(Part { id: "list", body: listed(cx, &board, one.as_ref(), fitting, list).await? });
    if one.is_none() && is_first {
        parts.push(Part::new("kinds", "All failed jobs, by kind", super::work::kinds(cx, &board).await)?);
    }
    let head = html! {
        h1 { "Failed jobs of " (name(&board)) }
        @if let Some(alike) = &one {
            p.chips {
                a.chip href=(board_address("/failures", &board)) {
                    "kind: " (name(&alike.kind)) span aria-hidden="true" { " ×" } span.unseen { ", show all failures" }
                }
                @if let Some(pattern) = &alike.pattern {
                    a.chip href=(group_address(&board, &Alike { kind: alike.kind.clone(), pattern: None })) {
                        "message: " bdi { (short(pattern.as_bytes(), 80)) } span aria-hidden="true" { " ×" } span.unseen { ", any message" }
                    }
                }
            }
        }
    };
    Ok(View {
        title: format!("Failed jobs of {}", shown(&board)),
        board: Some(board),
        place: "Failed",
        head,
        parts,
    })
}

/// Where the next page begins: among the newest, or behind them.
enum Next {
    From(usize),
    Cursor(Vec<u8>),
    None,
}

/// The failures that the address asks for.
pub fn chosen(cx: &RequestContext) -> Option<Alike> {
    let kind = cx.query.bytes("kind")?.to_vec();
    let pattern = cx.query.any("alike").map(|pattern| String::from_utf8_lossy(pattern).into_owned());
    Some(Alike { kind, pattern })
}

fn fields<'a>(board: &'a [u8], alike: &'a Alike) -> Vec<(&'static str, &'a [u8])> {
    let mut fields = vec![("b", board), ("kind", alike.kind.as_slice())];
    fields.extend(alike.pattern.as_ref().map(|pattern| ("alike", pattern.as_bytes())));
    fields
}

pub fn group_address(board: &[u8], alike: &Alike) -> String {
    address("/failures", &fields(board, alike))
}

fn act_address(board: &[u8], alike: &Alike, verb: &'static str) -> String {
    let mut all = fields(board, alike);
    all.push(("verb", verb.as_bytes()));
    if alike.pattern.is_none() {
        all.extend([("state", &b"failed"[..]), ("where", b"1")]);
    }
    address("/confirm", &all)
}

fn act_links(cx: &RequestContext, board: &[u8], alike: &Alike, count: usize) -> Markup {
    html! {
        @if cx.may_write() {
            @let all = if count == 1 { String::new() } else { format!(" all {}", number(count as i64)) };
            a.button href=(act_address(board, alike, "requeue")) { "Requeue" (all) } " "
            a.button href=(act_address(board, alike, "delete")) { "Delete" (all) }
            @if alike.pattern.is_some() {
                " "
                @match cx.app.aside.of(board, alike).filter(|entry| !entry.grown) {
                    None => a.button href=(act_address(board, alike, "aside")) { "Set aside" },
                    Some(_) => a.button href=(act_address(board, alike, "aside-end")) { "Bring back" },
                }
            }
        }
    }
}

fn table_of_groups(cx: &RequestContext, board: &[u8], groups: &[Group], all: usize, whole: bool) -> Markup {
    let ended = |row: &&Record| row.int("ended");
    let all_rows = || groups.iter().flat_map(|group| group.rows.iter().copied());
    let first = all_rows().map(|row| ended(&row)).min().unwrap_or(0);
    let last = all_rows().map(|row| ended(&row)).max().unwrap_or(0);
    html! {
        h2 { "The same failure" }
        @if !whole { p.note { "Of the newest " (number(all as i64)) " failures. Older ones are counted by kind, below." } }
        ol.groups {
            @for group in groups.iter().take(GROUPS) {
                li {
                    span.figure { (number(group.rows.len() as i64)) }
                    (course::draw("Failures", group.rows.iter().map(ended), first, last))
                    div {
                        p {
                            a href=(group_address(board, &group.alike)) {
                                b { (name(&group.alike.kind)) } ": "
                                bdi { (short(alike::headline(&group.rows[0].bytes("message")).as_bytes(), MESSAGE)) }
                            }
                        }
                        p.faint {
                            @if group.rows.len() > 1 { "last " } (soon(group.rows[0].int("ended")))
                            @if let [.., first] = group.rows.as_slice() { @if group.rows.len() > 1 { ", first " (soon(first.int("ended"))) } }
                            @for word in names(group) { " · " (name(&word)) }
                        }
                        (aside(cx, board, &group.alike))
                    }
                    p.actions { (act_links(cx, board, &group.alike, group.rows.len())) }
                }
            }
        }
        @if groups.len() > GROUPS { p.note { "The " (GROUPS) " most frequent of " (number(groups.len() as i64)) "." } }
    }
}

/// That somebody has set a failure aside, and until when.
fn aside(cx: &RequestContext, board: &[u8], alike: &Alike) -> Markup {
    html! {
        @if let Some(entry) = cx.app.aside.of(board, alike).filter(|entry| !entry.grown) {
            p.faint {
                span.badge { "set aside" } " by " (name(entry.user.as_bytes())) ", " (soon(entry.at))
                ", until it fails more than " (number(entry.limit() as i64)) " times in 15 minutes"
            }
        }
    }
}

/// The names of the jobs of a group, in the order in which they come.
fn names(group: &Group) -> Vec<Vec<u8>> {
    let mut found: Vec<Vec<u8>> = Vec::new();
    for row in &group.rows {
        let word = row.bytes(if row.has("name") { "name" } else { "queue" });
        if found.len() < NAMES && !found.contains(&word) {
            found.push(word);
        }
    }
    found
}

/// A page behind the newest.
async fn older(cx: &RequestContext, board: &[u8], cursor: &[u8]) -> Result<(Vec<Record>, Next), Failure> {
    let mut command = board_command("LIST", board);
    command.arg("STATE").arg("failed").arg("REV").arg("CURSOR").arg(cursor).arg("COUNT").arg(PAGE);
    command.arg("FIELDS").arg(alike::FIELDS.len()).arg(&alike::FIELDS);
    let (next, rows) = page(cx.ask(board, command).await?);
    Ok((rows, next.map_or(Next::None, Next::Cursor)))
}

async fn listed(
    cx: &RequestContext,
    board: &[u8],
    one: Option<&Alike>,
    fitting: Option<usize>,
    (rows, next): (Vec<Record>, Next),
) -> Result<Markup, Failure> {
    let ids: Vec<Vec<u8>> = rows.iter().map(|row| row.bytes("id")).collect();
    let payloads = preview::payloads(cx, board, &ids).await?;
    Ok(html! {
        @if let (Some(alike), Some(count)) = (one, fitting) {
            h2 { (number(count as i64)) @if count == 1 { " job" } @else { " jobs" } " with this failure" }
            p.note { "Of the newest " (number(NEWEST as i64)) " failures of the board, newest first." }
            (aside(cx, board, alike))
            p.actions { (act_links(cx, board, alike, count)) }
        } @else { h2 { "Newest first" } }
        @if rows.is_empty() { p { "There is no failed job." } } @else {
            form action=(own("/confirm")) {
                (hidden("b", board))
                ol.cards #jobs {
                    @for (row, payload) in rows.iter().zip(&payloads) { (card(cx, board, row, payload.as_deref())) }
                }
                @if cx.may_write() {
                    p.actions.bulk {
                        label { input type="checkbox" data-all="id"; " all of this page" }
                        @for verb in ["requeue", "delete"] { button name="verb" value=(verb) { (super::confirm::verb_text(verb)) " chosen" } " " }
                    }
                }
            }
        }
        (pages(cx, board, one, &next))
    })
}

fn pages(cx: &RequestContext, board: &[u8], one: Option<&Alike>, next: &Next) -> Markup {
    let here = one.map_or_else(|| vec![("b", board)], |alike| fields(board, alike));
    let to = |more: (&'static str, &[u8])| address("/failures", &[here.as_slice(), &[more]].concat());
    html! {
        nav.pages aria-label="Pages" {
            @if cx.query.is_set("cursor") || cx.query.is_set("from") { a href=(address("/failures", &here)) { "First page" } }
            @match next {
                Next::From(from) => a rel="next" href=(to(("from", from.to_string().as_bytes()))) { "Next page" },
                Next::Cursor(cursor) => a rel="next" href=(to(("cursor", cursor))) { "Next page" },
                Next::None => "",
            }
            @if let Some(alike) = one {
                a href=(address("/jobs", &[("b", board), ("state", b"failed"), ("kind", &alike.kind), ("rev", b"1")])) { "All jobs of this kind" }
            }
        }
    }
}

fn card(cx: &RequestContext, board: &[u8], row: &Record, payload: Option<&[u8]>) -> Markup {
    let id = row.bytes("id");
    let (field, value) = hidden_field("id", &id);
    html! {
        li.card {
            p.line {
                @if cx.may_write() { input type="checkbox" name=(field) value=(value) aria-label={ "Choose " (shown(&id)) }; " " }
                @if row.has("name") { b { (name(&row.bytes("name"))) } " " }
                (job_link(board, &id))
                span.faint { " in " (name(&row.bytes("queue"))) ", " (tries(row.int("attempt"))) ", " (soon(row.int("ended"))) }
            }
            p.error {
                b { (name(&row.bytes("kind"))) }
                @if row.has("message") { ": " bdi { (short(alike::headline(&row.bytes("message")).as_bytes(), MESSAGE)) } }
            }
            @match payload {
                Some([]) => p.faint { "no payload" },
                Some(payload) => p.payload { code { (preview::line(payload)) } },
                None => p.faint { "payload: see the job" },
            }
        }
    }
}

pub fn tries(count: i64) -> String {
    match count {
        1 => "1 attempt".into(),
        count => format!("{} attempts", number(count)),
    }
}
