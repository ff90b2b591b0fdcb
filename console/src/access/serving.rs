//! Taking connections: a limited number, and none whose client stops sending or reading halfway.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tower_service::Service;

use crate::access::stalled::Stalled;
use crate::access::visitors::Peer;

/// How long the head of a request may take, and what comes after it. A connection that asks for nothing is
/// closed after that as well, and so is one whose client reads nothing of what waits for it.
const PATIENCE: Duration = Duration::from_secs(10);

/// So much of an answer waits in the system for its reader, and no more. That the reader takes some is seen
/// late where much waits.
const UNREAD: u32 = 64 << 10;

/// No form of ours is larger.
const MOST_BYTES: usize = 1 << 20;

/// So many at once are told that there are too many; more are closed without a word.
const TURNED_AWAY: usize = 16;

pub fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.set_send_buffer_size(UNREAD)?;
    socket.bind(address)?;
    socket.listen(1024)
}

/// Serves for ever, at most so many connections at once.
pub async fn serve(listener: TcpListener, router: Router, most: usize) {
    let (room, lobby) = (Arc::new(Semaphore::new(most)), Arc::new(Semaphore::new(TURNED_AWAY)));
    loop {
        let Ok((stream, address)) = listener.accept().await else {
            // No descriptor is left, say: others have to close first.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let peer = Peer(address);
        if let Ok(place) = Arc::clone(&room).try_acquire_owned() {
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
    router.call(request).await
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
        Err(_) => {
            Err((StatusCode::REQUEST_TIMEOUT, "The rest of the request has not come in time.\n")
                .into_response())
        }
    }
}
