//! Owns: connections of clusters that are no members yet: taken within bounds of their own, encrypted, by nobody in
//! particular, and cut after a while whatever they do.
//! Never: takes anything from the places of members and operators: those have another port.

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
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::mpsc,
    task::JoinSet,
    time::{Instant, Sleep, sleep_until, timeout, timeout_at},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_util::sync::WaitForCancellationFutureOwned;
use tonic::transport::server::Connected;
use tracing::debug;

use super::{
    bounds::{HANDSHAKE_SILENCE_MAX, HANDSHAKE_TIMEOUT},
    control_frames::ControlFrames,
    heard::{Heard, Pulse},
    live::LiveCredentials,
    unfinished::{Turn, Unfinished},
};

/// Handshakes of such connections at the same time. For one more the source address with most of them loses its oldest.
pub const JOIN_HANDSHAKES_MAX: usize = 64;
/// Such connections at the same time. For one more the source address with most of them loses its oldest that asks for
/// nothing.
pub const JOIN_CONNECTIONS_MAX: usize = 128;
/// Lifetime of such a connection: a join is one request.
pub const JOIN_CONNECTION_AGE_MAX: Duration = Duration::from_secs(30);
/// Connections that the server has not taken yet.
const READY_MAX: usize = 16;
/// Pause before it is looked again who can go, and after the listener reports an error.
const PAUSE: Duration = Duration::from_millis(20);

/// Connections of unauthenticated peers, for tonic's `serve_with_incoming`. Dropping it stops the accepting.
pub struct Strangers<IO> {
    ready: mpsc::Receiver<StrangerConnection<IO>>,
    /// The accepting task; ends with this value.
    _accepting: JoinSet<()>,
}

impl<IO> Stream for Strangers<IO> {
    type Item = io::Result<StrangerConnection<IO>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.ready.poll_recv(cx).map(|next| next.map(Ok))
    }
}

/// Starts to accept connections of clusters that are no members yet.
pub fn accept_strangers<S, IO>(sockets: S, credentials: Arc<LiveCredentials>) -> Strangers<IO>
where
    S: Stream<Item = io::Result<(IO, Option<SocketAddr>)>> + Send + 'static,
    IO: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (sender, ready) = mpsc::channel(READY_MAX);
    let mut accepting = JoinSet::new();
    accepting.spawn(accept_all(sockets, credentials, sender));
    Strangers {
        ready,
        _accepting: accepting,
    }
}

async fn accept_all<S, IO>(
    sockets: S,
    credentials: Arc<LiveCredentials>,
    ready: mpsc::Sender<StrangerConnection<IO>>,
) where
    S: Stream<Item = io::Result<(IO, Option<SocketAddr>)>> + Send,
    IO: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let mut sockets = std::pin::pin!(sockets);
    let unfinished = Unfinished::new(JOIN_HANDSHAKES_MAX);
    let places = Unfinished::new(JOIN_CONNECTIONS_MAX);
    let mut handshakes = JoinSet::new();
    loop {
        while handshakes.len() >= JOIN_HANDSHAKES_MAX + JOIN_CONNECTIONS_MAX || !unfinished.make_room() {
            // One ends, or has been silent for long enough to go.
            let _ = timeout(PAUSE, handshakes.join_next()).await;
            if ready.is_closed() {
                return;
            }
        }
        tokio::select! {
            biased;
            () = ready.closed() => return,
            Some(_) = handshakes.join_next() => {}
            socket = sockets.next() => match socket {
                Some(Ok((socket, remote))) => {
                    let pulse = Pulse::new();
                    let turn = unfinished.enter(pulse.clone(), remote);
                    let acceptor = TlsAcceptor::from(credentials.current().joining().clone());
                    let socket = Heard::new(socket, pulse.clone());
                    let greeting = greet(acceptor, (socket, remote), (pulse, turn), places.clone());
                    let ready = ready.clone();
                    handshakes.spawn(async move {
                        match greeting.await {
                            // An error means that the server is gone, and with it any use for the connection.
                            Ok(connection) => drop(ready.send(connection).await),
                            // Debug only: anybody who reaches the port can cause this line.
                            Err(error) => debug!(remote = remote.map(tracing::field::display), %error, "nobody joins over this connection"),
                        }
                    });
                }
                Some(Err(error)) => {
                    debug!(%error, "cannot accept connections of clusters that join; trying again");
                    tokio::time::sleep(PAUSE).await;
                }
                None => break,
            },
        }
    }
    while handshakes.join_next().await.is_some() {}
}

/// One handshake, and a place for what came of it.
async fn greet<IO: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
    acceptor: TlsAcceptor,
    (socket, remote): (Heard<IO>, Option<SocketAddr>),
    (pulse, turn): (Pulse, Turn),
    places: Unfinished,
) -> io::Result<StrangerConnection<IO>> {
    let refused = |why: &str| io::Error::other(why.to_owned());
    let born = Instant::now();
    let shown_out = turn.shown_out();
    let stream = tokio::select! {
        biased;
        () = shown_out.cancelled() => return Err(refused("closed for a newer one")),
        stream = in_time(&pulse, acceptor.accept(socket)) => stream.ok_or_else(|| refused("silent or too slow"))??,
    };
    drop(turn);
    let place = places.try_enter(pulse, remote);
    let place = place.ok_or_else(|| refused("all places are taken by connections that ask for something"))?;
    Ok(StrangerConnection {
        stream,
        control_frames: ControlFrames::new(),
        end: Box::pin(sleep_until(born + JOIN_CONNECTION_AGE_MAX)),
        shown_out: Box::pin(place.shown_out().cancelled_owned()),
        _place: place,
    })
}

/// The result of a handshake, unless its peer is silent or it takes too long.
async fn in_time<T>(pulse: &Pulse, handshake: impl Future<Output = T>) -> Option<T> {
    let mut handshake = std::pin::pin!(handshake);
    let end = Instant::now() + HANDSHAKE_TIMEOUT;
    loop {
        let until = end.min(pulse.last() + HANDSHAKE_SILENCE_MAX);
        if let Ok(done) = timeout_at(until, &mut handshake).await {
            return Some(done);
        }
        // Something may have been received since.
        if Instant::now() >= end.min(pulse.last() + HANDSHAKE_SILENCE_MAX) {
            return None;
        }
    }
}

/// An encrypted connection with nobody in particular.
pub struct StrangerConnection<IO> {
    stream: TlsStream<Heard<IO>>,
    /// Those that came. One request is answered over such a connection, so the bytes written pay for no more of them.
    control_frames: ControlFrames,
    /// Time at which it is cut.
    end: Pin<Box<Sleep>>,
    /// Done when it is cut for another: it asks for nothing.
    shown_out: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Gives the place back when it is dropped.
    _place: Turn,
}

impl<IO> StrangerConnection<IO> {
    fn is_over(&mut self, cx: &mut Context<'_>) -> bool {
        self.end.as_mut().poll(cx).is_ready() || self.shown_out.as_mut().poll(cx).is_ready()
    }
}

impl<IO> Connected for StrangerConnection<IO> {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl<IO: AsyncRead + AsyncWrite + Unpin> AsyncRead for StrangerConnection<IO> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_over(cx) || self.control_frames.are_too_many() {
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        let new = buffer.filled().get(before..).unwrap_or_default();
        self.control_frames.read(new);
        read
    }
}

impl<IO: AsyncRead + AsyncWrite + Unpin> AsyncWrite for StrangerConnection<IO> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.is_over(cx) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_over(cx) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
