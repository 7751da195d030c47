//! Accepts connections: takes sockets, performs handshakes beside each other, hands on what is authenticated.
//! A slow or silent client costs one of a bounded number of places for a bounded time; it never holds others up.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::{Stream, StreamExt};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;
use tracing::{debug, warn};

use super::{
    connection::{PeerIdentity, TlsConnection},
    live::LiveCredentials,
    metrics::{Handshake, TlsMetrics},
};

/// Handshakes at the same time; more sockets wait in the kernel's queue.
pub const HANDSHAKES_MAX: usize = 512;
/// Established connections at the same time; one more is closed after its handshake.
pub const CONNECTIONS_MAX: usize = 16_384;
/// Longest time for a handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Connections that are authenticated and not yet taken by the server.
const READY_MAX: usize = 64;
/// How long a refused client has for reading the alert.
const REFUSED_TIMEOUT: Duration = Duration::from_secs(1);
/// Bytes that are still read from a refused client.
const REFUSED_BYTES_MAX: u64 = 64 * 1024;
/// Pause after the listener reports an error (no file descriptors left, for example).
const LISTENER_ERROR_PAUSE: Duration = Duration::from_millis(100);

/// A hub's authenticated connections, for tonic's `serve_with_incoming`. Dropping it stops the accepting.
pub struct Incoming<IO> {
    ready: mpsc::Receiver<TlsConnection<IO>>,
    /// The accepting task; ends with this value.
    _accepting: JoinSet<()>,
}

impl<IO> Stream for Incoming<IO> {
    type Item = io::Result<TlsConnection<IO>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.ready.poll_recv(cx).map(|next| next.map(Ok))
    }
}

/// The sockets of a TCP listener, as [`accept`] wants them. Small messages are sent at once (`TCP_NODELAY`).
pub fn tcp_connections(
    listener: TcpListener,
) -> impl Stream<Item = io::Result<(TcpStream, Option<SocketAddr>)>> + Send {
    futures::stream::unfold(listener, async |listener| {
        let accepted = listener.accept().await.and_then(|(socket, remote)| {
            socket.set_nodelay(true)?;
            Ok((socket, Some(remote)))
        });
        Some((accepted, listener))
    })
}

/// Starts to accept. `sockets` is any source of byte streams: a TCP listener, or a simulated network's.
/// The result ends when `sockets` does.
pub fn accept<S, IO>(sockets: S, credentials: Arc<LiveCredentials>, metrics: TlsMetrics) -> Incoming<IO>
where
    S: Stream<Item = io::Result<(IO, Option<SocketAddr>)>> + Send + 'static,
    IO: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    accept_within(HANDSHAKE_TIMEOUT, sockets, credentials, metrics)
}

/// [`accept`] with another bound on the time of a handshake.
pub(super) fn accept_within<S, IO>(
    longest: Duration,
    sockets: S,
    credentials: Arc<LiveCredentials>,
    metrics: TlsMetrics,
) -> Incoming<IO>
where
    S: Stream<Item = io::Result<(IO, Option<SocketAddr>)>> + Send + 'static,
    IO: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (sender, ready) = mpsc::channel(READY_MAX);
    let greeter = Greeter {
        longest,
        credentials,
        metrics,
        connections: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
        ready: sender,
    };
    let mut accepting = JoinSet::new();
    accepting.spawn(accept_all(sockets, greeter));
    Incoming {
        ready,
        _accepting: accepting,
    }
}

async fn accept_all<S, IO>(sockets: S, greeter: Greeter<IO>)
where
    S: Stream<Item = io::Result<(IO, Option<SocketAddr>)>> + Send,
    IO: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let mut sockets = std::pin::pin!(sockets);
    // Handshakes under way; they end when this function does.
    let mut handshakes = JoinSet::new();
    loop {
        while handshakes.len() >= HANDSHAKES_MAX {
            handshakes.join_next().await;
        }
        tokio::select! {
            biased;
            () = greeter.ready.closed() => return,
            Some(_) = handshakes.join_next() => {}
            socket = sockets.next() => match socket {
                Some(Ok((socket, remote))) => {
                    handshakes.spawn(greeter.clone().greet(socket, remote));
                }
                Some(Err(error)) => {
                    warn!(%error, "cannot accept connections; trying again");
                    tokio::time::sleep(LISTENER_ERROR_PAUSE).await;
                }
                None => break,
            },
        }
    }
    while handshakes.join_next().await.is_some() {}
}

/// What a handshake needs.
struct Greeter<IO> {
    /// Longest time for the handshake.
    longest: Duration,
    credentials: Arc<LiveCredentials>,
    metrics: TlsMetrics,
    connections: Arc<Semaphore>,
    ready: mpsc::Sender<TlsConnection<IO>>,
}

impl<IO> Clone for Greeter<IO> {
    fn clone(&self) -> Self {
        Self {
            longest: self.longest,
            credentials: self.credentials.clone(),
            metrics: self.metrics.clone(),
            connections: self.connections.clone(),
            ready: self.ready.clone(),
        }
    }
}

impl<IO: AsyncRead + AsyncWrite + Send + Unpin + 'static> Greeter<IO> {
    /// Performs one handshake, counts how it ended, and hands the connection on.
    async fn greet(self, socket: IO, remote: Option<SocketAddr>) {
        // Read at each handshake, so that new files are in force for the next connection.
        let credentials = self.credentials.current();
        let acceptor = TlsAcceptor::from(credentials.server().clone());
        let stream = match timeout(self.longest, acceptor.accept(socket).into_fallible()).await {
            Ok(Ok(stream)) => stream,
            Ok(Err((error, socket))) => {
                self.failed(remote, outcome_of(&error), &cause_of(&error));
                return close_gently(socket).await;
            }
            Err(late) => return self.failed(remote, Handshake::TimedOut, &late),
        };
        let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let chain: Vec<_> = certificates.iter().map(|one| one.clone().into_owned()).collect();
        let peer = chain
            .first()
            .map(|certificate| PeerIdentity::read(certificate, credentials.renews(&chain), remote));
        let peer = match peer {
            Some(Ok(peer)) => Arc::new(peer),
            Some(Err(error)) => return self.failed(remote, Handshake::Refused, &error),
            None => return self.failed(remote, Handshake::Refused, &"no client certificate"),
        };
        let Some(place) = self.place() else {
            warn!(
                connections = CONNECTIONS_MAX,
                "a connection was closed: there are as many as there may be"
            );
            return self.failed(remote, Handshake::Full, &"too many connections");
        };
        self.metrics.handshake(Handshake::Completed);
        let lifetime = peer.lifetime.clone();
        tokio::spawn(
            lifetime
                .clone()
                .watch(self.credentials.clone(), chain, peer.not_after),
        );
        let connection = TlsConnection {
            stream,
            peer,
            cut: Box::pin(lifetime.cut().clone().cancelled_owned()),
            _place: place,
        };
        // An error means that the server is gone, and with it any use for the connection.
        let _ = self.ready.send(connection).await;
    }

    fn place(&self) -> Option<OwnedSemaphorePermit> {
        self.connections.clone().try_acquire_owned().ok()
    }

    /// Debug only: anybody who reaches the port can cause this line. The metric shows that it happens.
    fn failed(&self, remote: Option<SocketAddr>, outcome: Handshake, error: &dyn std::fmt::Display) {
        self.metrics.handshake(outcome);
        debug!(?remote, ?outcome, %error, "a TLS handshake failed");
    }
}

/// Lets a refused client read why. In TLS 1.3 its first request is already on the way when it is refused, and TCP
/// answers bytes that nobody reads with a reset, which can overtake the alert.
async fn close_gently<IO: AsyncRead + AsyncWrite + Unpin>(mut socket: IO) {
    let farewell = async {
        socket.shutdown().await?;
        let mut unread = socket.take(REFUSED_BYTES_MAX);
        tokio::io::copy(&mut unread, &mut tokio::io::sink()).await
    };
    // Whatever goes wrong here, the client is refused already.
    let _ = timeout(REFUSED_TIMEOUT, farewell).await;
}

/// The reason inside a failed handshake, in our words where the check was ours.
fn cause_of(error: &io::Error) -> String {
    let inner = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(rustls::CertificateError::Other(ours))) => ours.to_string(),
        _ => error.to_string(),
    }
}

/// Tells a refusal from a peer that went away.
pub(super) fn outcome_of(error: &io::Error) -> Handshake {
    if error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>()) {
        Handshake::Refused
    } else {
        Handshake::Disconnected
    }
}
