//! Accepts connections: takes sockets, performs handshakes beside each other, hands on what is authenticated.
//! A slow or silent client costs one of a bounded number of places for a bounded time, or until a newer one needs it;
//! it never holds others up.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::{Stream, StreamExt};
use rustls_pki_types::CertificateDer;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::mpsc,
    task::JoinSet,
    time::{Instant, timeout, timeout_at},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tracing::{debug, warn};

use super::{
    bounds::DoorBounds,
    connection::{PeerIdentity, TlsConnection},
    control_frames::ControlFrames,
    goodbye::go_away,
    heard::{Heard, Pulse},
    live::LiveCredentials,
    metrics::{Handshake, TlsMetrics},
    places::{NoPlace, Place, Places},
    unfinished::{Turn, Unfinished},
};

/// Connections that are authenticated and not yet taken by the server.
const READY_MAX: usize = 64;
/// Time for a refused client to read the alert.
const REFUSED_TIMEOUT: Duration = Duration::from_secs(1);
/// Bytes that are still read from a refused client.
const REFUSED_BYTES_MAX: u64 = 64 * 1024;
/// Pause before it is looked again who can go for the next socket.
const ROOM_PAUSE: Duration = Duration::from_millis(20);
/// Sockets that may wait in the kernel's queue to be accepted; the kernel has a bound of its own (somaxconn).
const BACKLOG: u32 = 4_096;
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

/// Listens at an address, with a queue in which an operator finds a place beside a crowd.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    // As `TcpListener::bind` does: a hub that comes back finds its port free.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
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

/// Starts to accept within the product's bounds. `sockets` is any source of byte streams: a TCP listener, or a
/// simulated network's. The result ends when `sockets` does.
pub fn accept<S, IO>(sockets: S, credentials: Arc<LiveCredentials>, metrics: TlsMetrics) -> Incoming<IO>
where
    S: Stream<Item = io::Result<(IO, Option<SocketAddr>)>> + Send + 'static,
    IO: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    accept_within(DoorBounds::default(), sockets, credentials, metrics)
}

/// [`accept`] within other bounds.
pub fn accept_within<S, IO>(
    bounds: DoorBounds,
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
        bounds,
        credentials,
        metrics,
        places: Places::new(bounds),
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
    let unfinished = Unfinished::new(greeter.bounds.handshakes);
    // Handshakes under way, and as many sockets again that are being closed; they end when this function does.
    let mut handshakes = JoinSet::new();
    loop {
        while handshakes.len() >= 2 * greeter.bounds.handshakes || !unfinished.make_room() {
            // One ends, or has been silent for long enough to go.
            let _ = timeout(ROOM_PAUSE, handshakes.join_next()).await;
            if greeter.ready.is_closed() {
                return;
            }
        }
        tokio::select! {
            biased;
            () = greeter.ready.closed() => return,
            Some(_) = handshakes.join_next() => {}
            socket = sockets.next() => match socket {
                Some(Ok((socket, remote))) => {
                    let pulse = Pulse::new();
                    let turn = unfinished.enter(pulse.clone(), remote);
                    let socket = Heard::new(socket, pulse.clone());
                    handshakes.spawn(greeter.clone().greet(socket, pulse, remote, turn));
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

/// The inputs of a handshake.
struct Greeter<IO> {
    bounds: DoorBounds,
    credentials: Arc<LiveCredentials>,
    metrics: TlsMetrics,
    places: Places,
    ready: mpsc::Sender<TlsConnection<IO>>,
}

impl<IO> Clone for Greeter<IO> {
    fn clone(&self) -> Self {
        Self {
            bounds: self.bounds,
            credentials: self.credentials.clone(),
            metrics: self.metrics.clone(),
            places: self.places.clone(),
            ready: self.ready.clone(),
        }
    }
}

impl<IO: AsyncRead + AsyncWrite + Send + Unpin + 'static> Greeter<IO> {
    /// Performs one handshake, counts how it ended, and hands the connection on.
    async fn greet(self, socket: Heard<IO>, pulse: Pulse, remote: Option<SocketAddr>, turn: Turn) {
        let shown_out = turn.shown_out();
        let connection = tokio::select! {
            biased;
            () = shown_out.cancelled() => {
                return self.failed(remote, Handshake::Displaced, &"closed for a newer one");
            }
            connection = self.welcome(socket, pulse, remote) => connection,
        };
        // It is finished, and nothing goes for a newer one that waits for the server.
        drop(turn);
        if let Some(connection) = connection {
            // An error means that the server is gone, and with it any use for the connection.
            let _ = self.ready.send(connection).await;
        }
    }

    /// The handshake, and a place for what came of it.
    async fn welcome(
        &self,
        socket: Heard<IO>,
        pulse: Pulse,
        remote: Option<SocketAddr>,
    ) -> Option<TlsConnection<IO>> {
        // Read at each handshake, so that new files are in force for the next connection.
        let credentials = self.credentials.current();
        let acceptor = TlsAcceptor::from(credentials.server().clone());
        let stream = match self
            .in_time(&pulse, acceptor.accept(socket).into_fallible())
            .await
        {
            Some(Ok(stream)) => stream,
            Some(Err((error, socket))) => {
                self.failed(remote, outcome_of(&error), &cause_of(&error));
                close_gently(socket).await;
                return None;
            }
            None => {
                self.failed(remote, Handshake::TimedOut, &"silent or too slow");
                return None;
            }
        };
        let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let chain: Vec<_> = certificates.iter().map(|one| one.clone().into_owned()).collect();
        let peer = chain
            .first()
            .map(|certificate| PeerIdentity::read(certificate, credentials.renews(&chain), remote));
        let peer = match peer {
            Some(Ok(peer)) => peer,
            Some(Err(error)) => {
                self.failed(remote, Handshake::Refused, &error);
                return None;
            }
            None => {
                self.failed(remote, Handshake::Refused, &"no client certificate");
                return None;
            }
        };
        match self.places.take(&peer.identity, pulse, peer.lifetime.clone()) {
            Ok(place) => Some(self.established(stream, peer, place, chain)),
            Err(why) => {
                self.refused(stream, remote, why).await;
                None
            }
        }
    }

    /// A connection that has its place.
    fn established(
        &self,
        stream: TlsStream<Heard<IO>>,
        peer: PeerIdentity,
        place: Place,
        chain: Vec<CertificateDer<'static>>,
    ) -> TlsConnection<IO> {
        let calls = place.calls.clone();
        let peer = Arc::new(PeerIdentity { calls, ..peer });
        self.metrics.handshake(Handshake::Completed);
        if place.displaced {
            self.metrics.displaced();
        }
        let lifetime = peer.lifetime.clone();
        tokio::spawn(
            lifetime
                .clone()
                .watch(self.credentials.clone(), chain, peer.not_after),
        );
        TlsConnection {
            stream,
            peer,
            control_frames: ControlFrames::new(),
            metrics: self.metrics.clone(),
            cut: Box::pin(lifetime.cut().clone().cancelled_owned()),
            _place: place,
        }
    }

    /// Says in HTTP/2 why there is no place, and closes.
    async fn refused(&self, mut stream: TlsStream<Heard<IO>>, remote: Option<SocketAddr>, why: NoPlace) {
        let outcome = match why {
            NoPlace::Crowded(_) => Handshake::Crowded,
            NoPlace::Full => Handshake::Full,
        };
        self.failed(remote, outcome, &why);
        let said = timeout(REFUSED_TIMEOUT, stream.write_all(&go_away(&why.to_string()))).await;
        if let Ok(Ok(())) = said {
            close_gently(stream).await;
        }
    }

    /// The result of a handshake, unless its peer is silent or it takes too long.
    async fn in_time<T>(&self, pulse: &Pulse, handshake: impl Future<Output = T>) -> Option<T> {
        let mut handshake = std::pin::pin!(handshake);
        let end = Instant::now() + self.bounds.handshake;
        loop {
            let until = end.min(pulse.last() + self.bounds.handshake_silence);
            if let Ok(done) = timeout_at(until, &mut handshake).await {
                return Some(done);
            }
            // Something may have been received since.
            let now = Instant::now();
            if now >= end.min(pulse.last() + self.bounds.handshake_silence) {
                return None;
            }
        }
    }

    /// Debug only: anybody who reaches the port can cause this line. The metric shows that it happens.
    fn failed(&self, remote: Option<SocketAddr>, outcome: Handshake, error: &dyn std::fmt::Display) {
        self.metrics.handshake(outcome);
        let remote = remote.map(tracing::field::display);
        debug!(remote, outcome = outcome.label(), %error, "a TLS handshake failed");
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
