//! Signing in with a user and password of the server, and out again.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{header, HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Redirect, Response};
use axum::Extension;
use maud::html;

use super::layout::bare_page;
use crate::access::sessions::random;
use crate::access::visitors::Visitor;
use crate::app::{App, RequestContext};
use crate::connection::Link;
use crate::failure::Failure;
use crate::names::{own, shown};
use crate::query::Query;

/// How long a wrong password takes.
const PENALTY: Duration = Duration::from_millis(500);

pub async fn get(State(app): State<Arc<App>>, headers: HeaderMap, uri: Uri) -> Response {
    let query = Query::read(uri.query().unwrap_or_default().as_bytes());
    form(&app, &headers, own_path(query.text("to")), StatusCode::OK, None)
}

pub async fn post(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let fields = Query::read(&body);
    let to = own_path(fields.text("to"));
    let user = fields.text("user").unwrap_or("default");
    let password =
        fields.any("password").and_then(|password| std::str::from_utf8(password).ok()).unwrap_or("");
    let refused = |status, text: &str| form(&app, &headers, to, status, Some(text));
    if password.is_empty() && visitor.is_exposed {
        return refused(StatusCode::FORBIDDEN, "A password is needed: others can reach this console.");
    }
    let Some(turn) = app.sign_ins.take((visitor.address, user.to_owned())).await else {
        let text = "Too many sign in as this user from where you are. Try again in a moment.";
        return refused(StatusCode::TOO_MANY_REQUESTS, text);
    };
    // In a task of its own: who hangs up early keeps the turn as long as who waits for the answer.
    let attempt = attempt(Arc::clone(&app), user.to_owned(), password.to_owned(), visitor.is_exposed);
    let attempt = tokio::spawn(async move {
        let link = attempt.await;
        drop(turn);
        link
    });
    let Ok(link) = attempt.await else {
        return refused(StatusCode::INTERNAL_SERVER_ERROR, "The console has failed.");
    };
    match link {
        Ok(link) => {
            if let Some(old) = app.session_id(&headers) {
                app.sessions.end(old);
            }
            let Some((id, _)) = app.sessions.begin(user.to_owned(), Some(password.to_owned()), link) else {
                let text = "Too many users are signed in to this console. Try again later.";
                return refused(StatusCode::SERVICE_UNAVAILABLE, text);
            };
            ([(header::SET_COOKIE, app.set_cookie(&id))], Redirect::to(&own(to))).into_response()
        }
        Err(Failure::SignedOut) => {
            refused(StatusCode::UNAUTHORIZED, "The server knows no such user with this password.")
        }
        // Why not is no concern of strangers: it names addresses.
        Err(failure @ Failure::Unreachable(_)) if visitor.is_exposed => {
            refused(failure.status(), "The server cannot be reached.")
        }
        Err(failure) => refused(failure.status(), &failure.text()),
    }
}

/// A link with the rights of this user. Where others can come, the server must have asked for the password.
async fn attempt(app: Arc<App>, user: String, password: String, is_exposed: bool) -> Result<Link, Failure> {
    let link = Link::open(&app.place, Some((&user, &password))).await;
    if matches!(link, Err(Failure::SignedOut)) {
        tokio::time::sleep(PENALTY).await;
    }
    let link = link?;
    if !is_exposed {
        return Ok(link);
    }
    // Of the same server: Sentinels may name another one by now.
    match Link::open(&link.place(&app.place).await?, Some((&user, &random()))).await {
        Err(Failure::SignedOut) => Ok(link),
        Err(failure) => Err(failure),
        Ok(_) => Err(Failure::Refused(format!(
            "The server lets {} in with any password, and others can reach this console. Give this user a password on \
             the server (ACL SETUSER), or sign in as another one.",
            shown(user.as_bytes())
        ))),
    }
}

pub async fn sign_out(cx: RequestContext, body: Bytes) -> Response {
    if !Query::read(&body).bytes("csrf").is_some_and(|csrf| cx.session.owns(csrf)) {
        return cx
            .fail(&Failure::Refused("This form belongs to another session. Nothing was changed.".into()));
    }
    cx.app.sign_out(&cx.session);
    ([(header::SET_COOKIE, cx.app.set_cookie(""))], Redirect::to(&own("/sign-in"))).into_response()
}

/// A path of this console; nothing that leads elsewhere, nor above the path that the console is under.
fn own_path(to: Option<&str>) -> &str {
    let own = |to: &&str| {
        let path = to.split(['?', '#']).next().unwrap_or_default();
        let climbs =
            path.split(['/', '\\']).any(|part| part.to_ascii_lowercase().replace("%2e", ".") == "..");
        path.starts_with('/')
            && !path[1..].starts_with(['/', '\\'])
            && !climbs
            && !to.chars().any(char::is_control)
    };
    to.filter(own).unwrap_or("/")
}

fn form(app: &App, headers: &HeaderMap, to: &str, status: StatusCode, refusal: Option<&str>) -> Response {
    let body = html! {
        form.sign-in method="post" action=(own("/sign-in")) {
            h1 { "Sign in" }
            p { "With a user of the Redis or Valkey server. You may do here what that user may do there." }
            @if let Some(text) = refusal { p.refused role="alert" { (text) } }
            input type="hidden" name="to" value=(to);
            label { "User " input name="user" autocomplete="username" value="default" required; }
            label { "Password " input type="password" name="password" autocomplete="current-password" autofocus; }
            button { "Sign in" }
            p.faint { "Signed in already, and came by a link from elsewhere? " a href=(to) { "Continue" } }
        }
    };
    bare_page(app, headers, status, "Sign in", &body)
}

#[cfg(test)]
mod tests {
    use super::own_path;

    #[test]
    fn only_paths_of_our_own_are_returned_to() {
        for other in [
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "",
            "javascript:alert(1)",
            "/\n/x",
            "/..",
            "/../admin",
            "/board/../../admin",
            "/board\\..\\..\\admin",
            "/%2E./admin",
        ] {
            assert_eq!(own_path(Some(other)), "/", "{other}");
        }
        for own in ["/job?b=x", "/job?b=a&id=../x", "/.well-known", "/board?b=a#/../"] {
            assert_eq!(own_path(Some(own)), own);
        }
        assert_eq!(own_path(None), "/");
    }
}
