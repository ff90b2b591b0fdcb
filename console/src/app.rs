//! What all requests share, and what each of them is given.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{header, HeaderMap, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use axum::Extension;
use tokio::sync::Semaphore;

use crate::access::guard::cookie;
use crate::access::sessions::{lock, Credentials, Session, Sessions, COOKIE};
use crate::access::turns::Turns;
use crate::access::visitors::Visitor;
use crate::aside::Aside;
use crate::audit::Audit;
use crate::connection::place::{Place, User};
use crate::connection::Link;
use crate::endings::Endings;
use crate::failure::Failure;
use crate::history::History;
use crate::metrics::Metrics;
use crate::names::{coded, own};
use crate::options::Options;
use crate::query::Query;
use crate::recent::Trends;

pub struct App {
    pub options: Options,
    pub place: Place,
    pub metrics: Metrics,
    /// The port that is listened on: in the names of cookies, which all ports of a host share.
    pub port: u16,
    pub sessions: Sessions,
    pub trends: Trends,
    pub endings: Endings,
    pub audit: Audit,
    pub aside: Aside,
    pub history: Option<History>,
    /// By address and user: guessing passwords is slow.
    pub sign_ins: Arc<Turns<(IpAddr, String)>>,
    /// Pages that refresh themselves.
    pub live: Arc<Semaphore>,
    /// Of those who need no password, all with the same rights.
    open: Mutex<Option<Link>>,
}

impl App {
    /// The user is for /metrics alone.
    pub fn new(
        options: Options,
        place: Place,
        user: Option<User>,
        port: u16,
        history: Option<History>,
        (audit, aside): (Audit, Aside),
    ) -> Self {
        Self {
            live: Arc::new(Semaphore::new(usize::from(options.connections) / 2)),
            sessions: Sessions::new(options.sessions),
            options,
            place,
            metrics: Metrics::new(user),
            port,
            trends: Trends::default(),
            endings: Endings::default(),
            audit,
            aside,
            history,
            sign_ins: Turns::new(),
            open: Mutex::default(),
        }
    }

    pub fn session_cookie(&self) -> String {
        format!("{COOKIE}-{}", self.port)
    }

    pub fn set_cookie(&self, value: &str) -> HeaderValue {
        let secure = if self.options.secure { "; Secure" } else { "" };
        let age = if value.is_empty() { "; Max-Age=0" } else { "" };
        let text = format!(
            "{}={value}; Path={}; HttpOnly; SameSite=Strict{age}{secure}",
            self.session_cookie(),
            own("/")
        );
        HeaderValue::try_from(text).expect("hexadecimal digits")
    }

    pub fn session_id<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        cookie(headers, &self.session_cookie())
    }

    /// A link that the server gives to anybody, for users of this machine; `None` when it asks for a
    /// password, or when others may come.
    async fn open_link(&self, visitor: &Visitor) -> Result<Option<Link>, Failure> {
        if visitor.is_exposed {
            return Ok(None);
        }
        if let Some(link) = lock(&self.open).clone() {
            return Ok(Some(link));
        }
        match Link::open(&self.place, None).await {
            Ok(link) => {
                *lock(&self.open) = Some(link.clone());
                Ok(Some(link))
            }
            Err(Failure::SignedOut) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// The server no longer takes the user: the session, or what all share, ends.
    pub fn sign_out(&self, session: &Arc<Session>) {
        self.sessions.end_session(session);
        if session.is_open() {
            *lock(&self.open) = None;
        }
    }

    /// The same of all sessions that began with these.
    pub fn sign_out_all(&self, credentials: &Credentials) {
        if credentials.1.is_none() {
            *lock(&self.open) = None;
        }
        self.sessions.end_all(credentials);
    }
}

/// Finds the session of a request, or begins one where no password is needed.
pub async fn with_session(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    mut request: Request,
    next: Next,
) -> Response {
    let known = app.session_id(request.headers()).and_then(|id| app.sessions.get(id));
    let known = known.filter(|session| !(session.is_open() && visitor.is_exposed));
    let mut begun = None;
    let session = match known {
        Some(session) => Some(session),
        None => match app.open_link(&visitor).await {
            Ok(Some(link)) => app.sessions.begin("default".into(), None, link).map(|(id, session)| {
                begun = Some(id);
                session
            }),
            Ok(None) => None,
            Err(failure) => return crate::pages::failure_page(&app, request.headers(), None, &failure),
        },
    };
    if let Some(session) = session {
        request.extensions_mut().insert(session);
    }
    let mut response = next.run(request).await;
    if let Some(id) = begun {
        response.headers_mut().append(header::SET_COOKIE, app.set_cookie(&id));
    }
    response
}

/// A request of somebody who is signed in.
#[derive(Clone)]
pub struct RequestContext {
    pub app: Arc<App>,
    pub session: Arc<Session>,
    pub query: Query,
    pub headers: HeaderMap,
    /// Path and query, to come back to.
    pub here: String,
    /// Whether this is an open page that refreshes itself.
    pub is_live: bool,
}

impl RequestContext {
    /// The board that the address names.
    pub fn board(&self) -> Result<Vec<u8>, Failure> {
        let named = self.query.any("b").map(<[u8]>::to_vec);
        named.ok_or_else(|| Failure::BadRequest("The address names no board (b=…).".into()))
    }

    pub fn may_write(&self) -> bool {
        self.app.options.write
    }

    /// The reply of a command about a board.
    pub async fn ask(&self, board: &[u8], command: redis::Cmd) -> Result<redis::Value, Failure> {
        self.session.link.ask(board, command).await
    }

    /// The same, of which an open page takes what others of its user have been told just before.
    pub async fn ask_shared(&self, board: &[u8], command: redis::Cmd) -> Result<redis::Value, Failure> {
        self.ask_dated(board, command).await.map(|(value, _)| value)
    }

    /// The same, and when that was asked.
    pub async fn ask_dated(
        &self,
        board: &[u8],
        command: redis::Cmd,
    ) -> Result<(redis::Value, Instant), Failure> {
        let (link, answers) = (&self.session.link, &self.session.answers);
        answers.ask(link, board, command, !self.is_live).await
    }

    pub fn fail(&self, failure: &Failure) -> Response {
        if *failure == Failure::SignedOut {
            self.app.sign_out(&self.session);
            return to_sign_in(&self.here);
        }
        let board = self.query.any("b").filter(|_| !self.here.starts_with("/?"));
        crate::pages::failure_page(&self.app, &self.headers, Some((&self.session, board)), failure)
    }
}

pub fn to_sign_in(here: &str) -> Response {
    Redirect::to(&own(&format!("/sign-in?to={}", coded(here.as_bytes())))).into_response()
}

impl FromRequestParts<Arc<App>> for RequestContext {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Response> {
        let here = parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
        let session = parts.extensions.get::<Arc<Session>>().cloned();
        let session = session.ok_or_else(|| to_sign_in(&here))?;
        Ok(Self {
            app: Arc::clone(app),
            session,
            query: Query::read(parts.uri.query().unwrap_or_default().as_bytes()),
            headers: parts.headers.clone(),
            here,
            is_live: false,
        })
    }
}
