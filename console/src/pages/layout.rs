//! The frame of all pages.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use axum::http::{header, HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use maud::{html, Markup, DOCTYPE};

use super::View;
use crate::access::guard::cookie;
use crate::access::sessions::Session;
use crate::actions::Words;
use crate::app::{App, RequestContext};
use crate::failure::Failure;
use crate::format::{board_address, name};
use crate::names::{own, short, shown};
use crate::query::{hidden_field, Query};

/// The hidden field that carries a name unharmed.
pub fn hidden(field: &str, value: &[u8]) -> Markup {
    let (field, value) = hidden_field(field, value);
    html! { input type="hidden" name=(field) value=(value); }
}

/// The secret of the session's forms.
pub fn secret(session: &Session) -> Markup {
    html! { input type="hidden" name="csrf" value=(session.csrf()); }
}

/// A button that copies the text of an element, or `text` where the page shows only a part of it.
pub fn copy(what: &str, element: &str, text: Option<&str>) -> Markup {
    html! { button.copy type="button" data-copy=(element) data-text=[text] { "Copy" span.unseen { " " (what) } } }
}

/// The same of what an address has: the page shows another form of it.
pub fn copy_from(what: &str, from: &str) -> Markup {
    html! { button.copy type="button" data-from=(from) { "Copy" span.unseen { " " (what) } } }
}

/// A command as one types it into redis-cli.
pub fn command(words: &Words, most: usize) -> Markup {
    let text = words.text();
    let shown = short(text.as_bytes(), most);
    html! {
        p { "The command: " (copy("the command", "#command", (shown != text).then_some(&text))) }
        pre.data #command tabindex="0" { (shown) }
    }
}

/// The hidden field that says which command a form has shown.
pub fn shown_command(words: &Words) -> Markup {
    html! { input type="hidden" name=(SHOWN) value=(mark(words)); }
}

/// Whether the form has shown this command: what it is about may have changed since. A program that fills in
/// a form says nothing of it.
pub fn has_shown(form: &Query, words: &Words) -> bool {
    form.text(SHOWN).is_none_or(|shown| shown == mark(words))
}

pub const SHOWN: &str = "shown";

fn mark(words: &Words) -> String {
    let mut hasher = DefaultHasher::new();
    words.text().hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// What is said where another command was shown before.
pub fn another_command(form: &Query) -> Markup {
    html! {
        @if form.is_set("sure") {
            p.refused role="alert" { "Something has changed since this was shown, and nothing was done. It would now be another command:" }
        }
    }
}

struct Frame<'a> {
    headers: &'a HeaderMap,
    session: Option<&'a Arc<Session>>,
    app: &'a App,
    title: &'a str,
    board: Option<&'a [u8]>,
    place: &'a str,
    live: Option<&'a str>,
}

/// A whole page. With `live`, the address of a stream, it refreshes its parts.
pub fn page(cx: &RequestContext, view: &View, live: Option<&str>) -> Response {
    let frame = Frame {
        headers: &cx.headers,
        session: Some(&cx.session),
        app: &cx.app,
        title: &view.title,
        board: view.board.as_deref(),
        place: view.place,
        live,
    };
    let message = cx.session.message();
    let body = html! {
        @if let Some(message) = message { p.message role="status" { (message) } }
        (view.head)
        @for part in &view.parts { section id=(part.id) tabindex="-1" { (part.body) } }
    };
    Html(framed(&frame, &body).into_string()).into_response()
}

pub fn failure_page(
    app: &App,
    headers: &HeaderMap,
    seen: Option<(&Arc<Session>, Option<&[u8]>)>,
    failure: &Failure,
) -> Response {
    let (session, board) = seen.map_or((None, None), |(session, board)| (Some(session), board));
    let frame = Frame { headers, session, app, title: failure.title(), board, place: "", live: None };
    let body = html! {
        h1 { (failure.title()) }
        p.refused role="alert" { (failure.text()) }
        p { @if let Some(board) = board { a href=(board_address("/board", board)) { "To the board" } " · " } a href=(own("/")) { "All boards" } }
    };
    plain(failure.status(), &framed(&frame, &body))
}

/// A page for somebody who is not signed in.
pub fn bare_page(app: &App, headers: &HeaderMap, status: StatusCode, title: &str, body: &Markup) -> Response {
    let frame = Frame { headers, session: None, app, title, board: None, place: "", live: None };
    plain(status, &framed(&frame, body))
}

fn plain(status: StatusCode, page: &Markup) -> Response {
    let kind = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
    (status, kind, page.clone().into_string()).into_response()
}

fn framed(frame: &Frame, body: &Markup) -> Markup {
    let theme = cookie(frame.headers, "theme").filter(|theme| ["dark", "light"].contains(theme));
    html! {
        (DOCTYPE)
        html lang="en" data-theme=[theme] {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (frame.title) " · jobboard" }
                link rel="icon" href=(own("/static/icon.svg")) type="image/svg+xml";
                link rel="stylesheet" href=(own("/static/style.css"));
                script src=(own("/static/console.js")) defer {}
            }
            body data-live=[frame.live] data-base=(own("")) {
                a.skip href="#main" { "Skip to the content" }
                @if ["Jobs", "Failed"].contains(&frame.place) { a.skip href="#list" { "Skip to the list" } }
                (banner(frame))
                main #main tabindex="-1" { (body) }
                (keys())
                p #told .unseen aria-live="polite" {}
            }
        }
    }
}

fn banner(frame: &Frame) -> Markup {
    html! {
        header.banner {
            a.brand href=(own("/")) { span.mark aria-hidden="true" {} "jobboard" }
            @if let Some(board) = frame.board { (navigation(board, frame.place)) }
            @if frame.session.is_some() {
                @if let Some(board) = frame.board {
                    form.find action=(own("/find")) role="search" aria-label="Everything" {
                        (hidden("b", board))
                        input type="search" name="q" aria-label="Find a job by its id, or jobs by what they are" list="suggestions"
                            title="An id, a word, or a search: failed since 2h kind:IOError"
                            data-suggest="1" autocomplete="off" placeholder="id or search" data-key="/";
                        button { "Find" }
                        datalist #suggestions {}
                    }
                }
            }
            div.corner {
                @if frame.live.is_some() {
                    span #pulse .badge { "connecting" }
                    button #hold type="button" aria-pressed="false" data-key="h" { "Hold still" }
                }
                @if frame.app.options.write { span.badge.write { "actions on" } }
                @else { span.badge { "read-only" } }
                button #theme type="button" aria-label="Change between light and dark" data-key="t" { "◐" }
                button #help type="button" aria-label="Keys" data-key="?" { "?" }
                @if let Some(session) = frame.session { (who(session)) }
            }
        }
    }
}

fn who(session: &Session) -> Markup {
    html! {
        @if !session.is_open() {
            span.who { (shown(session.user.as_bytes())) }
            form method="post" action=(own("/sign-out")) { (secret(session)) button { "Sign out" } }
        }
    }
}

fn navigation(board: &[u8], place: &str) -> Markup {
    let entries = [
        ("/board", "Board", "o"),
        ("/failures", "Failed", "f"),
        ("/jobs", "Jobs", "j"),
        ("/queues", "Queues", "q"),
        ("/workers", "Workers", "w"),
        ("/types", "Types", "t"),
        ("/limits", "Limits", "l"),
        ("/schedules", "Schedules", "r"),
        ("/stats", "Statistics", "s"),
        ("/settings", "Settings", "e"),
        ("/audit", "Audit", "a"),
    ];
    html! {
        nav aria-label="Board" {
            span.where { (name(board)) }
            @for (path, text, key) in entries {
                a href=(board_address(path, board)) aria-current=[(place == text).then_some("page")] data-key={ "g " (key) } {
                    (text)
                }
            }
        }
    }
}

fn keys() -> Markup {
    let keys = [
        ("/", "find a job"),
        ("g b", "all boards"),
        ("g o, g f, g j", "this board: overview, failed jobs, jobs"),
        ("g q, g w, g t, g l", "queues, workers, types of jobs, limits and groups"),
        ("g r, g s, g e, g a", "schedules, statistics, settings, audit"),
        ("[, ]", "on a failed job: the failure after it, before it"),
        ("h", "hold the page still, or let it change again"),
        ("← →", "on a plot: its values, one moment after the other"),
        ("t", "light or dark"),
        ("?", "this list"),
        ("Esc", "close, or leave a field"),
    ];
    html! {
        dialog #keys aria-labelledby="keys-title" {
            h2 #keys-title { "Keys" }
            dl { @for (key, meaning) in keys { dt { kbd { (key) } } dd { (meaning) } } }
            form method="dialog" { button { "Close" } }
        }
        a.unseen href=(own("/")) data-key="g b" tabindex="-1" aria-hidden="true" {}
    }
}
