//! What a job waits for: signals, which the reader may send, and its children.

use maud::{html, Markup};

use crate::app::RequestContext;
use crate::connection::reply::{bytes, Record};
use crate::format::{at, jobs_address, name, number};
use crate::names::{own, shown};
use crate::pages::layout::hidden;

pub fn draw(cx: &RequestContext, board: &[u8], id: &[u8], record: &Record) -> Markup {
    if !record.has("awaits") {
        return html! {};
    }
    let wait = record.record("awaits");
    html! {
        @if wait.has("signals") { (signals(cx, board, id, &wait)) }
        @if wait.has("children") { (children(board, id, record, &wait.record("children"))) }
    }
}

/// Times here are absolute, so that a refresh changes nothing and keeps what the reader has typed.
fn signals(cx: &RequestContext, board: &[u8], id: &[u8], wait: &Record) -> Markup {
    let missing = wait.list("missing");
    let then = match wait.text("ontimeout").as_str() {
        "fail" => "it fails",
        "cancel" => "it is cancelled",
        _ => "it runs without them",
    };
    html! {
        h2 { "Waits for signals" }
        p {
            @if wait.int("any") == 1 && missing.len() > 1 { "One of them is enough. " }
            "Since " (at(wait.int("since")))
            @if wait.has("until") { ", until " (at(wait.int("until"))) "; then " (then) "." }
            @else { ", with no time limit." }
        }
        ul {
            @for signal in missing.iter().map(bytes) {
                li {
                    (name(&signal))
                    @if cx.may_write() { (forms(board, id, &signal)) }
                }
            }
        }
    }
}

fn forms(board: &[u8], id: &[u8], signal: &[u8]) -> Markup {
    let fields = || {
        html! {
            (hidden("b", board)) (hidden("verb", b"signal")) (hidden("id", id)) (hidden("signal", signal))
        }
    };
    html! {
        form.filters action=(own("/confirm")) aria-label={ "Answer " (shown(signal)) } {
            (fields())
            button name="value" value="true" { "Approve" } " "
            button name="value" value="false" { "Reject" }
        }
        form.filters action=(own("/confirm")) aria-label={ "Value for " (shown(signal)) } {
            (fields())
            label { "another value " input name="value"; }
            button { "Send" }
        }
    }
}

/// How many of its children have not ended, and what becomes of the job when one fails.
fn children(board: &[u8], id: &[u8], record: &Record, wait: &Record) -> Markup {
    let of_state = |state: &'static str| jobs_address(board, &[("parent", id), ("state", state.as_bytes())]);
    let then = match wait.text("onfailure").as_str() {
        "cancel" => "it is cancelled when one fails",
        "fail" => "it fails when one fails",
        "run" => "it runs when all have ended, also without success",
        _ => "when one fails, it waits until that one is requeued or deleted",
    };
    html! {
        h2 { "Waits for its children" }
        p {
            (number(record.int("pending"))) " of " (number(record.int("children"))) " have not ended"
            @if wait.int("since") > 0 { ", since " (at(wait.int("since"))) }
            "; " (then) ". "
            a href=(jobs_address(board, &[("parent", id)])) { "All children" }
            @if record.int("unsuccessful") > 0 {
                ", " (number(record.int("unsuccessful"))) " without success: "
                a href=(of_state("failed")) { "failed" } ", "
                a href=(of_state("cancelled")) { "cancelled" } ", "
                a href=(of_state("trashed")) { "trashed" }
            }
        }
    }
}
