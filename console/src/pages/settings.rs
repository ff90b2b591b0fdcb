//! The settings of a board, a queue, a group or a limit.

use axum::response::Response;
use maud::{html, Markup};

use super::layout::hidden;
use super::settings_words::{self, GROUPS};
use super::{answer, Part, View};
use crate::app::RequestContext;
use crate::connection::board_command;
use crate::connection::reply::{list, text, Record};
use crate::failure::Failure;
use crate::format::{name, number, size, span};
use crate::names::{address, own, shown};
use crate::query::Query;

/// The fields of an address that say whose settings are meant.
const PLACE: [&str; 3] = ["queue", "group", "limit"];

pub fn place_address(board: &[u8], query: &Query) -> String {
    let fields = PLACE.iter().filter_map(|field| query.bytes(field).map(|value| (*field, value)));
    address("/settings", &[("b", board)].into_iter().chain(fields).collect::<Vec<_>>())
}

pub async fn get(cx: RequestContext) -> Response {
    let view = view(&cx).await;
    answer(&cx, view, None)
}

/// Names, values and sources of the settings in force.
async fn in_force(cx: &RequestContext, board: &[u8]) -> Result<Record, Failure> {
    let mut command = board_command("SETTINGS GET", board);
    match (cx.query.bytes("limit"), cx.query.bytes("queue")) {
        (Some(limit), _) => {
            command.arg("LIMIT").arg(limit);
        }
        (None, Some(queue)) => {
            command.arg("QUEUE").arg(queue);
            if let Some(group) = cx.query.bytes("group") {
                command.arg("GROUP").arg(group);
            }
        }
        (None, None) => {}
    }
    Ok(Record::read(cx.ask(board, command).await?).unwrap_or_default())
}

/// Value, as one would write it, and source.
fn value(settings: &Record, setting: &str) -> (String, String) {
    let pair = settings.list(setting);
    let shown = match pair.first() {
        Some(redis::Value::Array(names)) => names.iter().map(text).collect::<Vec<_>>().join(" "),
        Some(other) => text(other),
        None => String::new(),
    };
    (shown, pair.get(1).map(text).unwrap_or_default())
}

async fn view(cx: &RequestContext) -> Result<View, Failure> {
    let board = cx.board()?;
    let settings = in_force(cx, &board).await?;
    let head = html! {
        h1 { "Settings of " (place(&board, &cx.query)) }
        form.filters action=(own("/settings")) {
            (hidden("b", &board))
            @for field in PLACE {
                label { (field) " " input name=(field) value=(shown(cx.query.bytes(field).unwrap_or_default())); }
            }
            button { "Show" }
            span.faint { "A group needs its queue; * is all groups without settings of their own. Times are ms, or have units: 30s, 2h." }
        }
    };
    let body = html! {
        @if cx.may_write() {
            form action=(own("/confirm")) {
                (hidden("b", &board))
                input type="hidden" name="verb" value="settings";
                @for field in PLACE { @if let Some(value) = cx.query.bytes(field) { (hidden(field, value)) } }
                (table(cx, &board, &settings))
                p.note { "Durations may have units: 90s, 15m, 2h, 7d." } button.primary { "Preview" }
            }
        } @else { (table(cx, &board, &settings)) }
    };
    Ok(View {
        title: format!("Settings of {}", shown(&board)),
        board: Some(board),
        place: "Settings",
        head,
        parts: vec![Part { id: "settings", body }],
    })
}

fn place(board: &[u8], query: &Query) -> Markup {
    match (query.bytes("limit"), query.bytes("queue"), query.bytes("group")) {
        (Some(limit), _, _) => html! { "the limit " (name(limit)) },
        (None, Some(queue), Some(group)) => {
            html! { "the group " (name(group)) " of the queue " (name(queue)) }
        }
        (None, Some(queue), None) => html! { "the queue " (name(queue)) },
        _ => html! { "the board " (name(board)) },
    }
}

fn table(cx: &RequestContext, board: &[u8], settings: &Record) -> Markup {
    let reset = |setting: &str| {
        let field = format!("r.{setting}");
        let places = PLACE.iter().filter_map(|field| cx.query.bytes(field).map(|value| (*field, value)));
        let all: Vec<(&str, &[u8])> = [("b", board), ("verb", &b"settings"[..])]
            .into_iter()
            .chain(places)
            .chain([(field.as_str(), &b"1"[..])])
            .collect();
        address("/confirm", &all)
    };
    let own = own_source(&cx.query);
    html! {
        div.wide {
            table.stacked {
                caption.unseen { "Settings in force" }
                thead { tr { th scope="col" { "Setting" } th scope="col" { "value" } th scope="col" { "in words" } th scope="col" { "set by" } th scope="col" { "meaning" } } }
                @for (heading, known) in grouped(settings) {
                tbody {
                    tr.heading { th colspan="5" scope="rowgroup" { (heading) } }
                    @for setting in known {
                        @let (shown, source) = value(settings, &setting);
                        tr {
                            th scope="row" { (setting) }
                            td data-label="value" {
                                @if cx.may_write() {
                                    input name={ "s." (setting) } value=(shown) data-was=(shown) aria-label=(setting) autocomplete="off";
                                } @else { (shown) }
                            }
                            td.faint data-label="in words" { (plain(&setting, &shown)) }
                            td data-label="set by" {
                                span.origin.(if source == "default" { "faint" } else { "own" }) { (source) }
                                @if cx.may_write() && source == own { " " a href=(reset(&setting)) aria-label={ "Reset " (setting) } { "reset" } }
                            }
                            td.faint data-label="meaning" { (settings_words::find(&setting).map_or("", |known| known.meaning)) }
                        }
                    }
                }
                }
            }
        }
    }
}

/// The settings that there are, in their groups; those of later servers come last.
fn grouped(settings: &Record) -> Vec<(&'static str, Vec<String>)> {
    let there = |setting: &&settings_words::Setting| settings.has(setting.name);
    let names = |group: &[settings_words::Setting]| {
        group.iter().filter(there).map(|setting| setting.name.to_owned()).collect()
    };
    let mut groups: Vec<(&str, Vec<String>)> =
        GROUPS.iter().map(|(heading, group)| (*heading, names(group))).collect();
    let unknown = settings.fields().filter(|(name, _)| settings_words::find(name).is_none());
    groups.push(("Others", unknown.map(|(name, _)| name.to_owned()).collect()));
    groups.retain(|(_, settings)| !settings.is_empty());
    groups
}

/// A value with its unit, as people say it.
fn plain(setting: &str, value: &str) -> String {
    let unit = settings_words::find(setting).map_or("", |known| known.unit);
    match (unit, value.parse::<i64>()) {
        (_, Ok(-1)) => "no limit".into(),
        ("ms", Ok(ms)) => span(ms),
        ("bytes", Ok(bytes)) => size(bytes),
        ("", Ok(count)) if count > 9999 => number(count),
        ("", _) | (_, Err(_)) => String::new(),
        (unit, Ok(count)) => format!("{count} {unit}"),
    }
}

/// The source of what is set in the place itself.
fn own_source(query: &Query) -> &'static str {
    match (query.bytes("limit"), query.bytes("queue"), query.bytes("group")) {
        (Some(_), _, _) => "limit",
        (None, Some(_), Some(b"*")) => "groups",
        (None, Some(_), Some(_)) => "group",
        (None, Some(_), None) => "queue",
        _ => "board",
    }
}

/// Old and new values of what an action sets or resets.
pub async fn forecast(cx: &RequestContext, board: &[u8]) -> Result<Markup, Failure> {
    let settings = in_force(cx, board).await?;
    let changed = cx.query.iter().filter_map(|(field, new)| match field.split_once('.') {
        Some(("s", setting)) => Some((setting.to_owned(), Some(shown(new)))),
        Some(("r", setting)) => Some((setting.to_owned(), None)),
        _ => None,
    });
    Ok(html! {
        p { "Settings of " (place(board, &cx.query)) ":" }
        table {
            thead { tr { th scope="col" { "Setting" } th scope="col" { "now" } th scope="col" { "then" } } }
            tbody {
                @for (setting, new) in changed {
                    @let (old, source) = value(&settings, &setting);
                    tr {
                        th scope="row" { (shown(setting.as_bytes())) }
                        td { (old) span.faint { " (" (source) ")" } }
                        td { @match new { Some(new) => (new), None => "the value that counts without it" } }
                    }
                }
            }
        }
    })
}

/// Leaves out the fields of a form that have the values in force: browsers without scripts send all.
pub async fn only_changed(cx: &RequestContext, board: &[u8]) -> Result<Option<Query>, Failure> {
    let settings = in_force(cx, board).await?;
    let same = |field: &str, new: &[u8]| {
        let Some(setting) = field.strip_prefix("s.") else { return false };
        list(settings.get(setting).cloned().unwrap_or_default()).len() == 2
            && value(&settings, setting).0 == shown(new.trim_ascii())
    };
    let all = cx.query.iter().count();
    let kept: Query = cx
        .query
        .iter()
        .filter(|(field, new)| !same(field, new))
        .map(|(field, new)| (field.to_owned(), new.to_vec()))
        .collect();
    Ok((kept.iter().count() < all).then_some(kept))
}
