//! An accepted connection and who is at its other end.
//! The identity comes from the verified certificate and from nowhere else.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::OwnedSemaphorePermit,
};
use tokio_rustls::server::TlsStream;
use tonic::{Request, Status, transport::server::Connected};

use crate::{
    identity::{CertificateFacts, Identity, IdentityError},
    model::{KeyFingerprint, UnixMillis},
};

/// Who is at the other end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerIdentity {
    /// Whose certificate it is.
    pub identity: Identity,
    /// The fingerprint of its public key.
    pub key_fingerprint: KeyFingerprint,
    /// When the certificate expires. A connection may outlive it; whoever serves it decides for how long.
    pub not_after: UnixMillis,
    /// The address it came from, for logs only.
    pub remote: Option<SocketAddr>,
}

impl PeerIdentity {
    pub(super) fn read(certificate: &[u8], remote: Option<SocketAddr>) -> Result<Self, IdentityError> {
        let facts = CertificateFacts::read(certificate)?;
        Ok(Self {
            identity: facts.identity,
            key_fingerprint: facts.key_fingerprint,
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
    pub(super) stream: TlsStream<IO>,
    pub(super) peer: Arc<PeerIdentity>,
    /// Gives the connection's place back when it is dropped.
    pub(super) _place: OwnedSemaphorePermit,
}

impl<IO> TlsConnection<IO> {
    /// Who is at the other end.
    pub fn peer(&self) -> &Arc<PeerIdentity> {
        &self.peer
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
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<IO: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TlsConnection<IO> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
