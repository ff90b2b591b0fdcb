//! Taking connections: a limited number, and none whose client stops sending or reading halfway.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower_service::Service;

use crate::access::stalled::Stalled;
use crate::access::visitors::{network, Peer};
use crate::names::{asked, own};

/// How long the head of a request may take, and what comes after it. A connection that asks for nothing is
/// closed after that as well, and so is one whose client reads nothing of what waits for it.
const PATIENCE: Duration = Duration::from_secs(10);

/// So much of an answer waits in the system for its reader, and no more. That the reader takes some is seen
/// late where much waits.
const UNREAD: u32 = 64 << 10;

/// No form of ours is larger.
const MOST_BYTES: usize = 1 << 20;

/// The console answers this many surplus connections at once with "too many"; it closes further ones unanswered.
const TURNED_AWAY: usize = 16;

pub fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.set_send_buffer_size(UNREAD)?;
    socket.bind(address)?;
    socket.listen(1024)
}

/// Room for connections. One address takes three quarters of it at most, so that others find some too. A
/// proxy on this machine speaks for many, and may take all.
struct Room {
    most: usize,
    all: Arc<Semaphore>,
    by_address: HashMap<IpAddr, Arc<Semaphore>>,
}

impl Room {
    fn new(most: usize) -> Self {
        Self { most, all: Arc::new(Semaphore::new(most)), by_address: HashMap::new() }
    }

    fn take(&mut self, peer: IpAddr) -> Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)> {
        self.by_address.retain(|_, own| Arc::strong_count(own) > 1);
        let most = if peer.to_canonical().is_loopback() { self.most } else { self.most - self.most / 4 };
        let own = self.by_address.entry(network(peer)).or_insert_with(|| Arc::new(Semaphore::new(most)));
        let own = Arc::clone(own).try_acquire_owned().ok()?;
        Some((own, Arc::clone(&self.all).try_acquire_owned().ok()?))
    }
}

/// Serves for ever, at most so many connections at once.
pub async fn serve(listener: TcpListener, router: Router, most: usize) {
    let (mut room, lobby) = (Room::new(most), Arc::new(Semaphore::new(TURNED_AWAY)));
    loop {
        let Ok((stream, address)) = listener.accept().await else {
            // No descriptor is left, say: others have to close first.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let peer = Peer(address);
        if let Some(place) = room.take(address.ip()) {
            let router = router.clone();
            tokio::spawn(async move {
                answer(stream, true, move |request| pass_on(router.clone(), peer, request)).await;
                drop(place);
            });
        } else if let Ok(place) = Arc::clone(&lobby).try_acquire_owned() {
            tokio::spawn(async move {
                // It would hold its place by asking slowly.
                let told = answer(stream, false, |_| async { Ok(too_many()) });
                let _ = tokio::time::timeout(PATIENCE, told).await;
                drop(place);
            });
        }
    }
}

async fn answer<F>(stream: TcpStream, again: bool, ask: impl Fn(hyper::Request<Incoming>) -> F)
where
    F: Future<Output = Result<Response, Infallible>>,
{
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(PATIENCE).keep_alive(again);
    // That somebody has gone, or sends what is no request, is no concern of ours.
    let stream = TokioIo::new(Stalled::new(stream, PATIENCE));
    let _ = server.serve_connection(stream, service_fn(ask)).await;
}

async fn pass_on(
    mut router: Router,
    peer: Peer,
    request: hyper::Request<Incoming>,
) -> Result<Response, Infallible> {
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(peer);
    match under_base(request.uri()) {
        Some(uri) => *request.uri_mut() = uri,
        None => return Ok(elsewhere()),
    }
    router.call(request).await
}

/// What is asked for behind the path under which the console stands; `None` for what is not.
fn under_base(uri: &Uri) -> Option<Uri> {
    let path = asked(uri.path())?;
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    format!("{path}{query}").parse().ok()
}

fn elsewhere() -> Response {
    (StatusCode::NOT_FOUND, format!("This console is under {}/ (--base-path).\n", own(""))).into_response()
}

fn too_many() -> Response {
    let text = "This console serves as many connections as it may (--connections): close some pages, or try again later.\n";
    (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "5")], text).into_response()
}

/// Reads what comes after the head of a request, all of it and in time.
pub async fn whole(request: Request) -> Result<Request, Response> {
    let (parts, body) = request.into_parts();
    match tokio::time::timeout(PATIENCE, axum::body::to_bytes(body, MOST_BYTES)).await {
        Ok(Ok(bytes)) => Ok(Request::from_parts(parts, bytes.into())),
        Ok(Err(_)) => Err((
            StatusCode::PAYLOAD_TOO_LARGE,
            "The request was cut off, or is larger than any form here.\n",
        )
            .into_response()),
        Err(_) => Err((StatusCode::REQUEST_TIMEOUT, "The rest of the request did not arrive in time.\n")
            .into_response()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What twenty connections take that come from these addresses in turn.
    fn taken(room: &mut Room, addresses: &[&str]) -> Vec<(OwnedSemaphorePermit, OwnedSemaphorePermit)> {
        addresses.iter().cycle().take(20).filter_map(|address| room.take(address.parse().unwrap())).collect()
    }

    #[test]
    fn one_address_leaves_room_for_others() {
        let mut room = Room::new(8);
        let first = taken(&mut room, &["10.0.0.1", "::ffff:10.0.0.1"]);
        let second = taken(&mut room, &["10.0.0.2"]);
        assert_eq!((first.len(), second.len()), (6, 2));
        drop(first);
        assert_eq!(taken(&mut room, &["2001:db8::1", "2001:db8::2"]).len(), 6);
        drop(second);
        assert_eq!(taken(&mut room, &["10.0.0.1"]).len(), 6);
        assert!(room.by_address.len() <= 3);
    }

    #[test]
    fn this_machine_takes_all_room() {
        for address in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(taken(&mut Room::new(8), &[address]).len(), 8);
        }
    }
}
