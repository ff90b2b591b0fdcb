//! The numbers of all boards for Prometheus, as JOB.METRICS tells them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::http::{header, HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::Extension;
use redis::cmd;
use subtle::ConstantTimeEq;

use crate::access::sessions::lock;
use crate::access::visitors::Visitor;
use crate::app::App;
use crate::connection::place::User;
use crate::connection::reply::bytes;
use crate::connection::Link;
use crate::failure::Failure;
use crate::known_boards::Finder;
use crate::names::shown;

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Boards that one command names.
const AT_ONCE: usize = 100;

/// Who asks the server, and what is known of it.
pub struct Metrics {
    user: Option<User>,
    link: Mutex<Option<Link>>,
    finder: Finder,
}

impl Metrics {
    pub fn new(user: Option<User>) -> Self {
        Self { user, link: Mutex::default(), finder: Finder::default() }
    }

    /// The boards of the server, or those that are named, and who asks for them.
    pub async fn boards(&self, app: &App) -> Result<(Link, Vec<Vec<u8>>), Failure> {
        let link = self.link(app).await?;
        let boards = match app.options.board.as_slice() {
            [] => {
                let found = self.finder.boards(&link).await?;
                // Half of the numbers would look like all of them.
                if let Some(server) = found.away.first() {
                    let text =
                        format!("The server {} of the cluster does not answer.", shown(server.as_bytes()));
                    return Err(Failure::Unreachable(text));
                }
                found.boards
            }
            named => named.iter().map(|name| name.clone().into_bytes()).collect(),
        };
        Ok((link, boards))
    }

    async fn link(&self, app: &App) -> Result<Link, Failure> {
        if let Some(link) = lock(&self.link).clone() {
            return Ok(link);
        }
        let user = self.user.as_ref().map(|(name, password)| (name.as_str(), password.as_str()));
        let link = Link::open(&app.place, user).await?;
        *lock(&self.link) = Some(link.clone());
        Ok(link)
    }
}

pub async fn get(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    headers: HeaderMap,
) -> Response {
    if let Err((status, text)) = allowed(&app, &visitor, &headers) {
        return (status, text).into_response();
    }
    match scrape(&app).await {
        Ok(text) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
        Err(failure) => {
            *lock(&app.metrics.link) = None;
            let text = match failure {
                Failure::SignedOut => {
                    "The server asks for a user and password: put them into --redis or REDIS_URL.".into()
                }
                other => other.text(),
            };
            (StatusCode::SERVICE_UNAVAILABLE, text + "\n").into_response()
        }
    }
}

fn allowed(app: &App, visitor: &Visitor, headers: &HeaderMap) -> Result<(), (StatusCode, &'static str)> {
    let Some(token) = &app.options.metrics_token else {
        let text = "Others can reach this console: /metrics needs --metrics-token.\n";
        return if visitor.is_exposed { Err((StatusCode::FORBIDDEN, text)) } else { Ok(()) };
    };
    let given = headers.get(header::AUTHORIZATION).map(|value| value.as_bytes()).unwrap_or_default();
    match bool::from(given.ct_eq(format!("Bearer {token}").as_bytes())) {
        true => Ok(()),
        false => Err((StatusCode::UNAUTHORIZED, "Send the token: Authorization: Bearer <token>.\n")),
    }
}

async fn scrape(app: &App) -> Result<String, Failure> {
    let (link, boards) = app.metrics.boards(app).await?;
    let mut whole = Exposition::default();
    for node in nodes(&link).await? {
        let text = ask(&link, node.as_ref(), &[]).await?;
        let server = node.map(|(host, port)| format!("{host}:{port}"));
        whole.add(&text, |_| true, server.as_deref());
    }
    // Keys of a cluster lie in many slots, and a command may name those of one alone.
    let at_once = if link.is_cluster() { 1 } else { AT_ONCE };
    for some in boards.chunks(at_once) {
        match ask_boards(&link, some).await {
            Ok(text) => whole.add(&text, is_of_a_board, None),
            Err(Failure::NotAllowed(_) | Failure::NotFound(_)) if some.len() > 1 => {
                for one in some.chunks(1) {
                    match ask_boards(&link, one).await {
                        Ok(text) => whole.add(&text, is_of_a_board, None),
                        Err(Failure::NotAllowed(_) | Failure::NotFound(_)) => {}
                        Err(failure) => return Err(failure),
                    }
                }
            }
            Err(Failure::NotAllowed(_) | Failure::NotFound(_)) => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(whole.text())
}

async fn nodes(link: &Link) -> Result<Vec<Option<(String, u16)>>, Failure> {
    let primaries = link.primaries().await?;
    Ok(if primaries.is_empty() { vec![None] } else { primaries.into_iter().map(Some).collect() })
}

async fn ask(link: &Link, node: Option<&(String, u16)>, boards: &[Vec<u8>]) -> Result<String, Failure> {
    let mut command = cmd("JOB.METRICS");
    command.arg(boards);
    Ok(String::from_utf8_lossy(&bytes(&link.ask_node(node, command).await?)).into_owned())
}

async fn ask_boards(link: &Link, boards: &[Vec<u8>]) -> Result<String, Failure> {
    let mut command = cmd("JOB.METRICS");
    command.arg(boards);
    let reply = link.ask(boards.first().map_or(&[], Vec::as_slice), command).await?;
    Ok(String::from_utf8_lossy(&bytes(&reply)).into_owned())
}

fn is_of_a_board(sample: &str) -> bool {
    sample.split_once('{').is_some_and(|(name, labels)| !name.contains(' ') && labels.starts_with("board=\""))
}

/// Texts of OpenMetrics put together: a family may stand in one place alone.
#[derive(Default)]
struct Exposition {
    order: Vec<String>,
    families: HashMap<String, (String, String)>,
}

impl Exposition {
    /// Adds the samples of a text that are wanted, with a label `server` where one is named.
    fn add(&mut self, text: &str, wanted: fn(&str) -> bool, server: Option<&str>) {
        let mut family = String::new();
        for line in text.lines().filter(|line| *line != "# EOF") {
            if let Some(head) = line.strip_prefix("# ") {
                let name = head.split(' ').nth(1).unwrap_or_default();
                if name != family {
                    family = name.to_owned();
                }
                let heads = &mut self.families.entry(family.clone()).or_default().0;
                if !heads.lines().any(|known| known == line) {
                    heads.push_str(line);
                    heads.push('\n');
                }
                if !self.order.contains(&family) {
                    self.order.push(family.clone());
                }
            } else if wanted(line) {
                let samples = &mut self.families.entry(family.clone()).or_default().1;
                samples.push_str(&labelled(line, server));
                samples.push('\n');
            }
        }
    }

    /// The families that have samples, and the end.
    fn text(&self) -> String {
        let mut text = String::new();
        for name in &self.order {
            if let Some((heads, samples)) = self.families.get(name).filter(|(_, samples)| !samples.is_empty())
            {
                text.push_str(heads);
                text.push_str(samples);
            }
        }
        text + "# EOF\n"
    }
}

fn labelled(sample: &str, server: Option<&str>) -> String {
    let Some(server) = server else { return sample.to_owned() };
    match sample.find(['{', ' ']) {
        Some(at) if sample[at..].starts_with('{') => {
            format!("{}{{server=\"{server}\",{}", &sample[..at], &sample[at + 1..])
        }
        Some(at) => format!("{}{{server=\"{server}\"}}{}", &sample[..at], &sample[at..]),
        None => sample.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_put_together() {
        let one =
            "# TYPE a gauge\n# HELP a Jobs.\na{board=\"x{\",queue=\"q\"} 1\n# TYPE b gauge\nb 2\n# EOF\n";
        let two =
            "# TYPE a gauge\n# HELP a Jobs.\na{board=\"y\"} 3\n# TYPE b gauge\nb{what=\"w\"} 4\n# EOF\n";
        let mut whole = Exposition::default();
        whole.add(one, |_| true, None);
        whole.add(two, is_of_a_board, None);
        let expected = "# TYPE a gauge\n# HELP a Jobs.\na{board=\"x{\",queue=\"q\"} 1\na{board=\"y\"} 3\n# TYPE b gauge\nb 2\n# EOF\n";
        assert_eq!(whole.text(), expected);
        let mut cluster = Exposition::default();
        cluster.add("# TYPE b gauge\nb 2\nb{what=\"w\"} 4\n", |_| true, Some("h:1"));
        let expected = "# TYPE b gauge\nb{server=\"h:1\"} 2\nb{server=\"h:1\",what=\"w\"} 4\n# EOF\n";
        assert_eq!(cluster.text(), expected);
    }
}
