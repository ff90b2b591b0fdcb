//! Setting a failure aside, and bringing it back: what that means, and doing it.

use maud::{html, Markup};

use super::attention::pace_now;
use crate::actions::{for_filters, JobVerb};
use crate::alike::Alike;
use crate::app::RequestContext;
use crate::aside::Entry;
use crate::failure::Failure;
use crate::filters::Filters;
use crate::format::{name, number};
use crate::names::{short, shown};
use crate::query::Query;

/// Characters of a message that are shown.
const MESSAGE: usize = 200;

/// What it would do.
pub async fn forecast(
    cx: &RequestContext,
    board: &[u8],
    alike: &Alike,
    ends: bool,
) -> Result<Markup, Failure> {
    let pattern = alike.pattern.as_deref().unwrap_or_default();
    let pace = pace_now(cx, board, alike).await?;
    let limit = Entry { user: String::new(), at: 0, pace, grown: false }.limit();
    Ok(html! {
        p {
            b { (name(&alike.kind)) }
            @if !pattern.is_empty() { ": " bdi { (short(pattern.as_bytes(), MESSAGE)) } }
        }
        @if ends {
            p { "It is listed again under \u{201c}What needs you\u{201d} while it fails." }
        } @else {
            p {
                "It fails " b { (number(pace.round() as i64)) } " times in 15 minutes now. "
                "\u{201c}What needs you\u{201d} does not list it, for all users of this console, until it fails more than "
                b { (number(limit as i64)) } " times in 15 minutes, or somebody brings it back."
            }
            p.faint { "The jobs stay as they are, and the page of failed jobs still shows them." }
        }
    })
}

/// Does it, for somebody who may requeue its jobs. Returns what was done, in words.
pub async fn act(cx: &RequestContext, board: &[u8], alike: &Alike, ends: bool) -> Result<String, Failure> {
    let failed = [("state", b"failed".to_vec()), ("kind", alike.kind.clone())];
    let filters = Filters::read(&Query::from_iter(failed.map(|(field, value)| (field.to_owned(), value))));
    let tail = [&b"COUNT"[..], b"1", b"DRYRUN"];
    let dry = for_filters(board, JobVerb::Requeue, &filters, &Query::default(), &tail)?;
    cx.ask(board, dry.command()).await?;
    let done = if ends {
        cx.app.aside.remove(board, alike);
        "brought back."
    } else {
        cx.app.aside.add(board, alike, &cx.session.user, pace_now(cx, board, alike).await?);
        "set aside until it grows."
    };
    let kind = shown(&alike.kind);
    let pattern = shown(alike.pattern.as_deref().unwrap_or_default().as_bytes());
    cx.app.audit.note(&cx.session.user, board, &format!("the failure {kind}: {pattern}"), Ok(done));
    Ok(format!("{kind}: {done}"))
}
