//! Server-sent events: the parts of a page that have changed since they were told last.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::app::RequestContext;
use crate::failure::Failure;
use crate::pages::{LivePage, Memory};

/// From one look to the next.
const PACE: Duration = Duration::from_secs(2);

/// A look that takes long is repeated more rarely: looking takes a tenth of the time …
const REST: u32 = 10;

/// … but whoever reads the page waits no longer than this for the next one.
pub const LONGEST_REST: Duration = Duration::from_secs(60);

pub const SIGNED_OUT: &str = "You are signed out.";

struct Stream {
    cx: RequestContext,
    living: LivePage,
    memory: Memory,
    told: HashMap<&'static str, String>,
    wait: Duration,
    over: bool,
    /// Room for one more, of the console's and of the session's.
    _room: (OwnedSemaphorePermit, OwnedSemaphorePermit),
}

/// Events `part` (`{"id": …, "html": …}`), one for each part that has changed, and `look` behind them;
/// `failure` (a sentence) when the page cannot be told now, and `over` when it never will again.
pub fn stream(cx: RequestContext, living: LivePage) -> Response {
    let room = |of: &Arc<Semaphore>| Arc::clone(of).try_acquire_owned().ok();
    let Some(room) = room(&cx.app.live).zip(room(&cx.session.live)) else {
        return over(
            "This page does not refresh itself: the most that --connections allows are open. Close some and reload it.",
        );
    };
    let state = Stream {
        cx: RequestContext { is_live: true, ..cx },
        living,
        memory: Memory::default(),
        told: HashMap::new(),
        wait: Duration::ZERO,
        over: false,
        _room: room,
    };
    let events = stream::unfold(state, |mut state| async move {
        if state.over {
            return None;
        }
        tokio::time::sleep(state.wait).await;
        let events = state.look().await;
        Some((stream::iter(events.into_iter().map(Ok::<_, Infallible>)), state))
    });
    let events = futures_util::StreamExt::flatten(events);
    let mut response = Sse::new(events).keep_alive(KeepAlive::default()).into_response();
    response.headers_mut().insert("x-accel-buffering", axum::http::HeaderValue::from_static("no"));
    response
}

/// Says why a page is not told.
pub fn over(text: &str) -> Response {
    let event = Event::default().event("over").data(text);
    Sse::new(stream::iter([Ok::<_, Infallible>(event)])).into_response()
}

impl Stream {
    async fn look(&mut self) -> Vec<Event> {
        let began = Instant::now();
        // Who signs out, or is signed out, sees no more.
        if !self.cx.app.sessions.is_used(&self.cx.session) {
            self.over = true;
            return vec![Event::default().event("over").data(SIGNED_OUT)];
        }
        let view = self.living.view(&self.cx, &mut self.memory).await;
        // Waiting in vain is no work for a server, and another may have taken its place.
        let rest = if matches!(view, Err(Failure::Unreachable(_))) { 1 } else { REST };
        self.wait = (began.elapsed() * rest).clamp(PACE, LONGEST_REST);
        match view {
            Ok(view) => {
                let mut events = Vec::new();
                for part in view.parts {
                    let html = part.body.into_string();
                    if self.told.get(part.id) != Some(&html) {
                        let data = serde_json::json!({ "id": part.id, "html": html }).to_string();
                        events.push(Event::default().event("part").data(data));
                        self.told.insert(part.id, html);
                    }
                }
                // A browser drops events without data.
                events.push(Event::default().event("look").data("ok"));
                events
            }
            Err(failure @ Failure::SignedOut) => {
                self.over = true;
                self.cx.app.sign_out(&self.cx.session);
                vec![Event::default().event("over").data(failure.text())]
            }
            Err(failure @ Failure::NotFound(_)) => {
                self.over = true;
                vec![Event::default().event("over").data(failure.text())]
            }
            Err(failure) => vec![Event::default().event("failure").data(failure.text())],
        }
    }
}
