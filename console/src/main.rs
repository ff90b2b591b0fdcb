//! A console for job boards: pages over the `JOB.*` commands of a Redis or Valkey server.
//!
//! | room or file | what it does |
//! |---|---|
//! | `access` | takes connections; who may ask, how often, and who is signed in |
//! | `connection` | finds the server and talks to it |
//! | `pages` | a file for each page |
//! | `actions` | makes commands of what a user wants done |
//! | `live` | sends open pages what has changed |
//! | `known_boards`, `recent`, `endings`, `history` | the boards of a server; the last quarter of an hour of one, also by the names of jobs; a day of all |
//! | `alike`, `preview`, `payload` | failures that are the same; the beginnings of payloads; fields in payloads |
//! | `grammar`, `filters`, `query`, `names`, `format` | what people type to find jobs; which jobs are meant; addresses and forms; names; values as pages show them |
//! | `audit`, `aside` | what was done through the console; failures that were set aside |
//! | `server_memory` | the memory of the servers |
//! | `metrics` | the numbers of all boards for Prometheus |
//!
//! Nothing is stored on disk, but with `--history` samples, the audit, and which failures are set aside.

mod access;
mod actions;
mod alike;
mod app;
mod aside;
mod assets;
mod audit;
mod chart;
mod connection;
mod course;
mod endings;
mod failure;
mod filters;
mod format;
mod grammar;
mod history;
mod known_boards;
mod live;
mod metrics;
mod names;
mod options;
mod pages;
mod payload;
mod preview;
mod query;
mod recent;
mod server_memory;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use axum::middleware::from_fn_with_state;
use axum::routing::{get, post, MethodRouter};
use axum::Router;
use clap::Parser;
use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};

use crate::app::{with_session, App, RequestContext};
use crate::aside::Aside;
use crate::audit::Audit;
use crate::connection::Link;
use crate::failure::Failure;
use crate::history::History;
use crate::options::Options;
use crate::pages::LivePage;

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    raise_descriptors();
    match serve(options).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("jobboard-console: {text}");
            ExitCode::FAILURE
        }
    }
}

/// Each connection and each session needs a file descriptor: takes as many as the system lets us.
fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

async fn serve(options: Options) -> Result<(), String> {
    // Of the libraries that can do TLS we bring one; it has to be named once.
    let _ = rustls::crypto::ring::default_provider().install_default();
    names::put_under(&options.base_path);
    let (place, user) = options.place()?;
    let address = SocketAddr::new(options.bind, options.port);
    let listener = access::serving::listen(address).map_err(|error| format!("{address}: {error}"))?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    if options.is_exposed() && !options.secure {
        eprintln!("jobboard-console: others can reach this console, and passwords go over the net as they are: put it behind a proxy with TLS, and say --secure");
    }
    let history = options.history.as_deref().map(History::open).transpose()?;
    let audit = Audit::open(options.history.as_deref())?;
    let aside = Aside::open(options.history.as_deref());
    let app = Arc::new(App::new(options, place, user, address.port(), history, (audit, aside)));
    tokio::spawn(warn_of_server(Arc::clone(&app)));
    tokio::spawn(access::recheck::recheck(Arc::clone(&app)));
    tokio::spawn(history::sample(Arc::clone(&app)));
    println!("http://{address}{}", names::own("/"));
    tokio::select! {
        () = access::serving::serve(listener, routes(&app), app.options.connections.into()) => {}
        () = told_to_stop() => {}
    }
    Ok(())
}

async fn warn_of_server(app: Arc<App>) {
    match Link::open(&app.place, None).await {
        Ok(_) if app.options.is_exposed() => eprintln!("jobboard-console: the server's default user needs no password: nobody is let in as that user here, but whoever reaches the server itself is"),
        Err(failure @ Failure::Unreachable(_)) => eprintln!("jobboard-console: {}", failure.text()),
        _ => {}
    }
}

/// A page that refreshes itself while it is open.
fn live(page: LivePage) -> MethodRouter<Arc<App>> {
    get(move |cx: RequestContext| pages::get(page, cx))
}

fn routes(app: &Arc<App>) -> Router {
    let signed_in = Router::new()
        .route("/", live(LivePage::Boards))
        .route("/board", live(LivePage::Board))
        .route("/job", live(LivePage::Job))
        .route("/run", live(LivePage::Run))
        .route("/data", get(pages::job::get_data))
        .route("/jobs", get(pages::jobs::get))
        .route("/failures", live(LivePage::Failures))
        .route("/post", get(pages::compose::get).post(pages::compose::post))
        .route("/find", get(pages::search::get))
        .route("/suggest", get(pages::suggest::get))
        .route("/stats", live(LivePage::Stats))
        .route("/queues", live(LivePage::Queues))
        .route("/workers", live(LivePage::Workers))
        .route("/types", live(LivePage::Types))
        .route("/limits", live(LivePage::Limits))
        .route("/schedules", live(LivePage::Schedules))
        .route("/schedule", live(LivePage::Schedule))
        .route("/schedule/edit", get(pages::schedule::get_edit).post(pages::schedule::post_edit))
        .route("/settings", get(pages::settings::get))
        .route("/audit", get(pages::audit::get))
        .route("/confirm", get(pages::confirm::get))
        .route("/act", post(pages::confirm::post))
        .route("/stop", post(pages::run::stop))
        .route("/sign-out", post(pages::sign_in::sign_out))
        .route("/live/{page}", get(pages::get_live))
        .fallback(pages::get_nothing)
        .layer(from_fn_with_state(Arc::clone(app), with_session));
    Router::new()
        .route("/sign-in", get(pages::sign_in::get).post(pages::sign_in::post))
        .route("/metrics", get(metrics::get))
        .route("/static/{file}", get(assets::get))
        .merge(signed_in)
        .layer(from_fn_with_state(Arc::clone(app), access::guard::guard))
        .with_state(Arc::clone(app))
}

/// SIGINT or SIGTERM. Open streams would never end by themselves, so nothing waits for them.
async fn told_to_stop() {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .expect("the signal can be awaited");
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}
