//! Owns: when something was last received over a socket, and sent over it, and whether its peer is waited for.
//! Never: waits for it, or says what silence means.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Duration, Instant},
};

/// Time at which something was last heard; clones are of the same socket.
#[derive(Debug, Clone)]
pub(super) struct Pulse(Arc<Beats>);

#[derive(Debug)]
struct Beats {
    opened: Instant,
    /// Milliseconds from the opening to the last word, plus one; zero before the first.
    last: AtomicU64,
    /// Milliseconds from the opening to the last word of ours; zero before the first.
    answered: AtomicU64,
    /// It was read from, and nothing was there.
    awaited: AtomicBool,
}

impl Pulse {
    /// The times of a socket that was opened now.
    pub(super) fn new() -> Self {
        Self(Arc::new(Beats {
            opened: Instant::now(),
            last: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            awaited: AtomicBool::new(false),
        }))
    }

    pub(super) fn beat(&self) {
        self.0.awaited.store(false, Ordering::Relaxed);
        self.0.last.store(self.millis() + 1, Ordering::Relaxed);
    }

    pub(super) fn answer(&self) {
        self.0.answered.store(self.millis(), Ordering::Relaxed);
    }

    pub(super) fn wait(&self) {
        self.0.awaited.store(true, Ordering::Relaxed);
    }

    fn millis(&self) -> u64 {
        u64::try_from(self.0.opened.elapsed().as_millis()).unwrap_or(u64::MAX - 1)
    }

    /// True until the first word.
    pub(super) fn is_silent(&self) -> bool {
        self.0.last.load(Ordering::Relaxed) == 0
    }

    /// True while its peer is waited for; false while what it said waits for us, as a socket does that was just opened.
    pub(super) fn is_awaited(&self) -> bool {
        self.0.awaited.load(Ordering::Relaxed)
    }

    /// Time at which the last word came; before the first, when the socket was opened.
    pub(super) fn last(&self) -> Instant {
        let millis = self.0.last.load(Ordering::Relaxed).saturating_sub(1);
        self.0.opened + Duration::from_millis(millis)
    }

    /// Time of our last message, or of the opening of the socket. A peer makes no progress by bytes that lead to no
    /// answer, such as a handshake byte by byte.
    pub(super) fn progressed(&self) -> Instant {
        self.0.opened + Duration::from_millis(self.0.answered.load(Ordering::Relaxed))
    }
}

/// A socket whose words are noted.
#[derive(Debug)]
pub(super) struct Heard<IO> {
    io: IO,
    pulse: Pulse,
}

impl<IO> Heard<IO> {
    pub(super) fn new(io: IO, pulse: Pulse) -> Self {
        Self { io, pulse }
    }
}

impl<IO: AsyncRead + Unpin> AsyncRead for Heard<IO> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.io).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.pulse.beat();
        } else if read.is_pending() {
            self.pulse.wait();
        }
        read
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for Heard<IO> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(cx, bytes);
        if matches!(written, Poll::Ready(Ok(_))) {
            self.pulse.answer();
        }
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write_vectored(cx, slices);
        if matches!(written, Poll::Ready(Ok(_))) {
            self.pulse.answer();
        }
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
