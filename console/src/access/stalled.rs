//! A stream that fails when its reader stalls.

use std::future::Future;
use std::io::{Error, ErrorKind, Result};
use std::pin::Pin;
use std::task::{ready, Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{sleep, Sleep};

/// Fails a write of which the other side takes no byte for `patience`. While nothing waits to be written,
/// no time counts.
pub struct Stalled<S> {
    stream: S,
    patience: Duration,
    /// Since the last byte that the stream has taken, while it takes no more.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<S> Stalled<S> {
    pub fn new(stream: S, patience: Duration) -> Self {
        Self { stream, patience, deadline: None }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stalled<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, to)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stalled<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let this = &mut *self;
        if let Poll::Ready(result) = Pin::new(&mut this.stream).poll_write(cx, bytes) {
            this.deadline = None;
            return Poll::Ready(result);
        }
        let patience = this.patience;
        ready!(this.deadline.get_or_insert_with(|| Box::pin(sleep(patience))).as_mut().poll(cx));
        Poll::Ready(Err(Error::new(ErrorKind::TimedOut, "the other side reads nothing")))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tokio::net::UnixStream;

    fn poll(stream: &mut Stalled<UnixStream>, cx: &mut Context<'_>) -> Poll<Result<usize>> {
        Pin::new(stream).poll_write(cx, &[0; 1 << 16])
    }

    /// Writes until nobody takes more.
    async fn fill(stream: &mut Stalled<UnixStream>) {
        poll_fn(|cx| {
            while poll(stream, cx).is_ready() {}
            Poll::Ready(())
        })
        .await;
    }

    #[tokio::test]
    async fn a_write_that_nobody_reads_fails() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let mut ours = Stalled::new(ours, Duration::from_millis(20));
        let failed = loop {
            if let Err(error) = poll_fn(|cx| poll(&mut ours, cx)).await {
                break error;
            }
        };
        assert_eq!(failed.kind(), ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn time_counts_only_while_a_write_waits() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut ours = Stalled::new(ours, Duration::from_secs(3600));
        fill(&mut ours).await;
        assert!(ours.deadline.is_some());
        theirs.readable().await.unwrap();
        while theirs.try_read(&mut [0; 1 << 16]).is_ok() {}
        poll_fn(|cx| poll(&mut ours, cx)).await.unwrap();
        assert!(ours.deadline.is_none());
    }
}
