//! A stream that gives up on a silent server.
//!
//! Keep-alive packets find a machine that is gone, but not a server that is stopped, or a proxy with nothing
//! behind it. The driver itself waits for ever.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// Fails when nothing came in and nothing went out for a while in which somebody waited.
pub(crate) struct Watched<S> {
    stream: S,
    /// Half of what is waited for. Between two calls nobody looks, so a timer that ran out then is no sign:
    /// it is set once more, and the next request, which is written at once, starts all over.
    half: Duration,
    timer: Pin<Box<Sleep>>,
    last: Instant,
    struck: bool,
}

impl<S> Watched<S> {
    /// To be called by the runtime that drives the stream.
    pub(crate) fn new(stream: S, limit: Duration) -> Self {
        let half = limit / 2;
        let (timer, last) = (Box::pin(sleep(half)), Instant::now());
        Self { stream, half, timer, last, struck: false }
    }

    fn moved(&mut self) {
        self.last = Instant::now();
        self.struck = false;
    }

    /// Nothing to read just now: how long already?
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.timer.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            let due = self.last + self.half;
            if due > now {
                self.timer.as_mut().reset(due);
            } else if self.struck {
                let limit = self.half * 2;
                let message = format!("the server did not answer within {limit:?}");
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, message)));
            } else {
                self.struck = true;
                self.timer.as_mut().reset(now + self.half);
            }
        }
        Poll::Pending
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_read(cx, buf) {
            Poll::Ready(done) => {
                self.moved();
                Poll::Ready(done)
            }
            Poll::Pending => self.wait(cx),
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(cx, buf);
        if done.is_ready() {
            self.moved();
        }
        done
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
