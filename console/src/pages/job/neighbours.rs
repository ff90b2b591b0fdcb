//! The failures before and after the one that is shown.

use futures_util::future::try_join;
use maud::{html, Markup};

use crate::app::RequestContext;
use crate::connection::board_command;
use crate::connection::reply::{page, Record};
use crate::failure::Failure;
use crate::names::address;

/// Jobs that are looked at on each side: so many may have failed in the same millisecond.
const LOOK: usize = 50;

/// Links to the failed jobs that ended just before and just after this one.
pub async fn draw(cx: &RequestContext, board: &[u8], record: &Record) -> Result<Markup, Failure> {
    if record.text("state") != "failed" {
        return Ok(html! {});
    }
    let (id, ended) = (record.bytes("id"), record.int("ended").to_string());
    let (newer, older) =
        try_join(beside(cx, board, &id, [&ended, "+"], false), beside(cx, board, &id, ["-", &ended], true))
            .await?;
    let link = |to: &[u8], key: &str, text: &str| {
        html! { a href=(address("/job", &[("b", board), ("id", to)])) data-key=(key) { (text) } }
    };
    Ok(html! {
        nav.pages aria-label="Failures" {
            @if let Some(newer) = &newer { (link(newer, "[", "Newer failure")) }
            @if let Some(older) = &older { (link(older, "]", "Older failure")) }
        }
    })
}

async fn beside(
    cx: &RequestContext,
    board: &[u8],
    id: &[u8],
    times: [&str; 2],
    back: bool,
) -> Result<Option<Vec<u8>>, Failure> {
    let mut command = board_command("LIST", board);
    command.arg("STATE").arg("failed").arg("ENDED").arg(&times);
    if back {
        command.arg("REV");
    }
    command.arg("COUNT").arg(LOOK).arg("FIELDS").arg(1).arg("id");
    let ids = page(cx.ask(board, command).await?).1.into_iter().map(|row| row.bytes("id"));
    Ok(ids.skip_while(|one| one != id).nth(1))
}
