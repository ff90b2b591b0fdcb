//! The pages. Each is a `View`: a fixed part, and parts that refresh while the page is open.

pub mod aside;
pub mod attention;
pub mod audit;
pub mod board;
pub mod boards;
pub mod compose;
pub mod confirm;
pub mod days;
pub mod failures;
pub mod job;
pub mod jobs;
pub mod jobs_list;
pub mod layout;
pub mod limits;
pub mod queues;
pub mod recent;
pub mod run;
pub mod schedule;
pub mod schedules;
pub mod search;
pub mod settings;
pub mod settings_words;
pub mod sign_in;
pub mod stats;
pub mod suggest;
pub mod timeline;
pub mod types;
pub mod work;
pub mod workers;

use axum::extract::Path;
use axum::http::{header, HeaderMap};
use axum::response::Response;
use maud::{html, Markup};

use crate::app::RequestContext;
use crate::failure::Failure;
use crate::live;
use crate::names::own;

pub use layout::{failure_page, page};

pub struct View {
    pub title: String,
    /// The board that the page is about.
    pub board: Option<Vec<u8>>,
    /// Which entry of the navigation this is.
    pub place: &'static str,
    /// What stands above the parts and is not told anew.
    pub head: Markup,
    /// An open page shows only parts that it was loaded with, and leaves one that does not come as it is: a part
    /// that has nothing to show any more comes empty.
    pub parts: Vec<Part>,
}

/// A section of a page with an id of its own.
pub struct Part {
    pub id: &'static str,
    pub body: Markup,
}

impl Part {
    /// A part that could not be read says why; the others are shown all the same.
    pub fn new(id: &'static str, heading: &str, body: Result<Markup, Failure>) -> Result<Self, Failure> {
        let body = match body {
            Ok(body) => body,
            Err(failure @ (Failure::NotAllowed(_) | Failure::Server(_))) => html! {
                p.refused { (failure.title()) ": " (failure.text()) }
            },
            Err(failure) => return Err(failure),
        };
        Ok(Self { id, body: html! { @if !heading.is_empty() { h2 { (heading) } } (body) } })
    }
}

/// What an open page remembers from one look to the next.
#[derive(Default)]
pub struct Memory {
    /// Whether a look has succeeded: what does not change on a living page has been sent.
    pub told: bool,
    /// Which job of its id was shown.
    pub seq: i64,
    /// What was read of the job's data.
    pub job: job::Kept,
    /// What was read of the job's output.
    pub output: job::Output,
    /// What was found in its log and output.
    pub found: job::Found,
}

/// The pages that refresh while they are open.
#[derive(Clone, Copy, Debug)]
pub enum LivePage {
    Boards,
    Board,
    Failures,
    Jobs,
    Job,
    Run,
    Stats,
    Queues,
    Workers,
    Types,
    Limits,
    Schedules,
    Schedule,
}

impl LivePage {
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "boards" => Self::Boards,
            "board" => Self::Board,
            "failures" => Self::Failures,
            "jobs" => Self::Jobs,
            "job" => Self::Job,
            "run" => Self::Run,
            "stats" => Self::Stats,
            "queues" => Self::Queues,
            "workers" => Self::Workers,
            "types" => Self::Types,
            "limits" => Self::Limits,
            "schedules" => Self::Schedules,
            "schedule" => Self::Schedule,
            _ => return None,
        })
    }

    pub async fn view(self, cx: &RequestContext, memory: &mut Memory) -> Result<View, Failure> {
        match self {
            Self::Boards => boards::view(cx, memory).await,
            Self::Board => board::view(cx, memory).await,
            Self::Failures => failures::view(cx).await,
            Self::Jobs => jobs::view(cx).await,
            Self::Job => job::view(cx, memory).await,
            Self::Run => run::view(cx),
            Self::Stats => stats::view(cx, memory).await,
            Self::Queues => queues::view(cx).await,
            Self::Workers => workers::view(cx).await,
            Self::Types => types::view(cx).await,
            Self::Limits => limits::view(cx).await,
            Self::Schedules => schedules::view(cx).await,
            Self::Schedule => schedule::view(cx).await,
        }
    }

    async fn answer(self, cx: RequestContext) -> Response {
        let view = self.view(&cx, &mut Memory::default()).await;
        let query = cx.here.split_once('?').map_or("", |(_, query)| query);
        let name = format!("{self:?}").to_lowercase();
        answer(&cx, view, Some(&own(&format!("/live/{name}?{query}"))))
    }
}

/// A view, or why there is none.
pub fn answer(cx: &RequestContext, view: Result<View, Failure>, live: Option<&str>) -> Response {
    match view {
        Ok(view) => page(cx, &view, live),
        Err(failure) => cx.fail(&failure),
    }
}

/// The page of this name.
pub async fn get(page: LivePage, cx: RequestContext) -> Response {
    page.answer(cx).await
}

pub async fn get_live(
    Path(name): Path<String>,
    cx: Result<RequestContext, Response>,
    headers: HeaderMap,
) -> Response {
    let cx = match cx {
        Ok(cx) => cx,
        // An open page would follow the way to sign in, and take that page for a lost connection.
        Err(_) if headers.get(header::ACCEPT).is_some_and(|kind| kind == "text/event-stream") => {
            return live::over(live::SIGNED_OUT);
        }
        Err(elsewhere) => return elsewhere,
    };
    match LivePage::named(&name) {
        Some(living) => live::stream(cx, living),
        None => cx.fail(&Failure::NotFound("There is no such page.".into())),
    }
}

pub async fn get_nothing(cx: RequestContext) -> Response {
    cx.fail(&Failure::NotFound("There is no such page.".into()))
}
