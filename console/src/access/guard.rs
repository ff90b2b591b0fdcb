//! What holds for every request, before anything is looked up: who may be asked for, from where, and what
//! a browser may do with the answer.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{header, HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::access::serving::whole;
use crate::access::visitors::{without_port, Visitor};
use crate::app::App;

/// Nothing but our own files; no script, style or image in the page itself.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

pub async fn guard(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let visitor = Visitor::of(&request, app.options.is_exposed(), &app.options.proxy);
    request.extensions_mut().insert(visitor);
    let headers = request.headers();
    let mut response = if !host_is_ours(headers, &app.options.host) {
        let text = "This console does not answer under that host name: start it with --host <name>.\n";
        (StatusCode::MISDIRECTED_REQUEST, text).into_response()
    } else if !may_come_from_its_site(request.method(), headers) {
        (StatusCode::FORBIDDEN, "Refused: this request comes from another site.\n").into_response()
    } else {
        match whole(request).await {
            Ok(request) => next.run(request).await,
            Err(refusal) => refusal,
        }
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Whether the request was meant for us. A name that an attacker's name server points here is none of ours,
/// so their page cannot read our answers. An address of digits needs no name server.
fn host_is_ours(headers: &HeaderMap, ours: &[String]) -> bool {
    let Some(host) = headers.get(header::HOST).and_then(|host| host.to_str().ok()) else { return false };
    let name = without_port(host);
    let digits = name.trim_start_matches('[').trim_end_matches(']');
    digits.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || ours.iter().any(|own| own.eq_ignore_ascii_case(name))
}

/// Whether a request may come from where it comes. Another site may link to a page. It may not send a form,
/// nor make a page a part of its own: each such request would begin a session where no password is needed.
fn may_come_from_its_site(method: &Method, headers: &HeaderMap) -> bool {
    match *method {
        Method::GET | Method::HEAD => {
            is_own_site(headers) || headers.get("sec-fetch-dest").is_some_and(|dest| dest == "document")
        }
        _ => is_same_origin(headers),
    }
}

/// As far as the browser names the site.
fn is_own_site(headers: &HeaderMap) -> bool {
    headers.get("sec-fetch-site").is_none_or(|site| site == "same-origin" || site == "none")
}

/// Whether what changes something comes from our own pages, as far as the browser tells. Programs tell
/// nothing; the forms' secret is asked of everybody.
fn is_same_origin(headers: &HeaderMap) -> bool {
    if !is_own_site(headers) {
        return false;
    }
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    match (headers.get(header::ORIGIN), host) {
        (None, _) => true,
        (Some(origin), Some(host)) => origin
            .to_str()
            .ok()
            .and_then(|origin| origin.split_once("://"))
            .is_some_and(|(_, origin)| origin.eq_ignore_ascii_case(host)),
        (Some(_), None) => false,
    }
}

/// The value of a cookie.
pub fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(found, _)| *found == name)
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn only_addresses_and_known_names_are_ours() {
        let ours = ["jobs.example".to_owned()];
        for host in [
            "localhost",
            "LOCALHOST:80",
            "127.0.0.1:8379",
            "[::1]:8379",
            "[::1]",
            "10.0.0.9",
            "jobs.example:1",
        ] {
            assert!(host_is_ours(&headers(&[("host", host)]), &ours), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example:80", "jobs.example.evil", "", "127.0.0.1.evil:1"]
        {
            assert!(!host_is_ours(&headers(&[("host", host)]), &ours), "{host}");
        }
        assert!(!host_is_ours(&HeaderMap::new(), &ours));
    }

    #[test]
    fn other_origins_change_nothing() {
        let host = ("host", "localhost:1");
        assert!(is_same_origin(&headers(&[host])));
        assert!(is_same_origin(&headers(&[host, ("origin", "http://localhost:1")])));
        assert!(!is_same_origin(&headers(&[host, ("origin", "http://localhost:2")])));
        assert!(!is_same_origin(&headers(&[host, ("origin", "null")])));
        assert!(!is_same_origin(&headers(&[host, ("sec-fetch-site", "same-site")])));
        assert!(!is_same_origin(&headers(&[host, ("sec-fetch-site", "cross-site")])));
    }

    #[test]
    fn a_cookie_among_others() {
        let headers = headers(&[("cookie", "a=1; theme=dark"), ("cookie", "b=2")]);
        assert_eq!(cookie(&headers, "theme"), Some("dark"));
        assert_eq!(cookie(&headers, "b"), Some("2"));
        assert_eq!(cookie(&headers, "heme"), None);
    }
}
