//! An accepted connection and its peer. The identity comes from the verified certificate and from nowhere else.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::server::TlsStream;
use tokio_util::sync::WaitForCancellationFutureOwned;
use tonic::{Request, Status, transport::server::Connected};
use tracing::debug;

use super::{
    calls::Calls, control_frames::ControlFrames, heard::Heard, lifetime::Lifetime, metrics::TlsMetrics,
    places::Place,
};
use crate::{
    identity::{CertificateFacts, Identity, IdentityError},
    model::{KeyFingerprint, UnixMillis},
};

/// The peer of a connection.
#[derive(Debug, Clone)]
pub struct PeerIdentity {
    /// The peer's identity.
    pub identity: Identity,
    /// The fingerprint of its public key.
    pub key_fingerprint: KeyFingerprint,
    /// Issuer of its certificate, as the certificate names it.
    pub issuer: Box<str>,
    /// The certificate leads to an authority that is trusted to renew members' keys.
    pub renewable: bool,
    /// Time at which the certificate expires. A connection may outlive it; its server decides for how long.
    pub not_after: UnixMillis,
    /// Lifetime of the connection.
    pub lifetime: Lifetime,
    /// The calls that are open, over the connection and of its holder.
    pub calls: Calls,
    /// The address it came from, for logs only.
    pub remote: Option<SocketAddr>,
}

impl PeerIdentity {
    pub(super) fn read(
        certificate: &[u8],
        renewable: bool,
        remote: Option<SocketAddr>,
    ) -> Result<Self, IdentityError> {
        let facts = CertificateFacts::read(certificate)?;
        Ok(Self {
            identity: facts.identity,
            key_fingerprint: facts.key_fingerprint,
            issuer: facts.issuer,
            renewable,
            lifetime: Lifetime::default(),
            calls: Calls::default(),
            not_after: facts.not_after,
            remote,
        })
    }
}

/// The peer of a gRPC request. It is missing only when the server was not given [`super::accept`]'s connections.
pub fn peer<T>(request: &Request<T>) -> Result<Arc<PeerIdentity>, Status> {
    let peer = request.extensions().get::<Arc<PeerIdentity>>().cloned();
    peer.ok_or_else(|| Status::unauthenticated("the connection carries no verified client certificate"))
}

/// An accepted connection: encrypted, authenticated, counted.
pub struct TlsConnection<IO> {
    pub(super) stream: TlsStream<Heard<IO>>,
    pub(super) peer: Arc<PeerIdentity>,
    /// The frames that came; beyond a rate the connection ends.
    pub(super) control_frames: ControlFrames,
    pub(super) metrics: TlsMetrics,
    /// Done when the connection is to be cut.
    pub(super) cut: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Gives the connection's place back when it is dropped.
    pub(super) _place: Place,
}

impl<IO> TlsConnection<IO> {
    /// The peer.
    pub fn peer(&self) -> &Arc<PeerIdentity> {
        &self.peer
    }

    /// Returns true if it was cut; wakes the task once it is.
    fn is_cut(&mut self, cx: &mut Context<'_>) -> bool {
        self.cut.as_mut().poll(cx).is_ready()
    }

    fn noted(&mut self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = &written {
            self.control_frames.wrote(*bytes);
        }
        written
    }
}

/// The error of writes after the cut, so that a peer that reads nothing does not keep the connection.
fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "the connection was cut")
}

impl<IO> Drop for TlsConnection<IO> {
    fn drop(&mut self) {
        self.peer.lifetime.closed();
    }
}

impl<IO> Connected for TlsConnection<IO> {
    type ConnectInfo = Arc<PeerIdentity>;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.peer.clone()
    }
}

impl<IO: AsyncRead + AsyncWrite + Unpin> AsyncRead for TlsConnection<IO> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_cut(cx) || self.control_frames.are_too_many() {
            // As if the peer had closed it: nothing more is read, and its server ends.
            return Poll::Ready(Ok(()));
        }
        let this = &mut *self;
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(cx, buffer);
        let new = buffer.filled().get(before..).unwrap_or_default();
        if this.control_frames.read(new) {
            this.metrics.flooded();
            let (peer, key) = (&this.peer.identity, this.peer.key_fingerprint);
            debug!(%peer, %key, "a connection is closed: control frames of HTTP/2 come faster than any program sends them");
        }
        read
    }
}

impl<IO: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TlsConnection<IO> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.is_cut(cx) {
            return Poll::Ready(Err(cut()));
        }
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.noted(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.is_cut(cx) {
            return Poll::Ready(Err(cut()));
        }
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.noted(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_cut(cx) {
            return Poll::Ready(Err(cut()));
        }
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
