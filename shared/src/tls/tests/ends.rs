//! A hub's end and a client's end over loopback or in memory, without gRPC.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use futures::{StreamExt, future::BoxFuture};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
    net::TcpListener,
    sync::mpsc,
};
use tokio_rustls::client::TlsStream;
use tokio_stream::wrappers::ReceiverStream;
use tower::Service;

use crate::tls::{
    BoxedIo, Dial, DoorBounds, HubAddress, HubConnector, HubUnreachable, Incoming, LiveCredentials,
    TlsConnection, TlsMetrics, accept::accept_within,
};

pub(super) type Socket = io::Result<(DuplexStream, Option<SocketAddr>)>;

/// A network of one hub in memory: dialling it makes a pipe.
#[derive(Clone)]
pub(super) struct Pipes(mpsc::Sender<Socket>);

impl Pipes {
    /// A network, and the sockets that arrive at its hub.
    pub(super) fn new() -> (Self, ReceiverStream<Socket>) {
        let (sender, receiver) = mpsc::channel(16);
        (Self(sender), ReceiverStream::new(receiver))
    }
}

impl Pipes {
    /// A socket of somebody at this address.
    pub(super) async fn dial_from(&self, remote: Option<SocketAddr>) -> io::Result<BoxedIo> {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        self.0
            .send(Ok((theirs, remote)))
            .await
            .map_err(io::Error::other)?;
        Ok(Box::new(ours) as BoxedIo)
    }
}

impl Dial for Pipes {
    fn dial(&self, address: HubAddress) -> BoxFuture<'static, io::Result<BoxedIo>> {
        let pipes = Self(self.0.clone());
        Box::pin(async move {
            if &*address.host != "hub" {
                return Err(io::Error::new(io::ErrorKind::ConnectionRefused, "nobody listens"));
            }
            pipes.dial_from(None).await
        })
    }
}

/// Longer than any handshake of a test takes.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longer than anything that a test waits for takes.
const ANSWER_WAIT: Duration = Duration::from_secs(20);

/// Awaits the result. A test in which it never comes fails with this message instead of waiting for ever.
pub(super) async fn in_time<T>(what: &str, awaited: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(ANSWER_WAIT, awaited).await;
    waited.unwrap_or_else(|_| panic!("waited {ANSWER_WAIT:?} in vain: {what}"))
}

/// A listening hub.
pub(super) struct Hub {
    pub pipes: Pipes,
    pub incoming: Incoming<DuplexStream>,
    pub metrics: TlsMetrics,
}

impl Hub {
    pub(super) fn new(credentials: Arc<LiveCredentials>) -> Self {
        let patient = DoorBounds {
            handshake: PATIENCE,
            handshake_silence: PATIENCE,
            ..DoorBounds::default()
        };
        Self::within(patient, credentials)
    }

    pub(super) fn within(bounds: DoorBounds, credentials: Arc<LiveCredentials>) -> Self {
        let (pipes, sockets) = Pipes::new();
        let metrics = TlsMetrics::default();
        Self {
            pipes,
            incoming: accept_within(bounds, sockets, credentials, metrics.clone()),
            metrics,
        }
    }

    pub(super) fn connector(&self, credentials: Arc<LiveCredentials>, addresses: &[&str]) -> HubConnector {
        let addresses = addresses.iter().map(|text| text.parse().expect("address"));
        let dial = Arc::new(self.pipes.clone());
        HubConnector::new(addresses.collect(), credentials, dial, self.metrics.clone())
    }

    pub(super) async fn next(&mut self) -> TlsConnection<DuplexStream> {
        let next = in_time("the hub lets a connection in", self.incoming.next()).await;
        next.expect("open").expect("authenticated")
    }

    /// Connects and waits until the hub has the connection too.
    pub(super) async fn join(&mut self, client: &Arc<LiveCredentials>) -> Pair {
        let mut connector = self.connector(client.clone(), &["https://hub:7443"]);
        let connecting = in_time("the hub takes a connection", dialled(&mut connector));
        let client = connecting.await.expect("connected");
        let server = self.next().await;
        Pair { client, server }
    }
}

pub(super) async fn dialled(connector: &mut HubConnector) -> Result<TlsStream<BoxedIo>, HubUnreachable> {
    let stream = connector.call("http://hub".parse().expect("URI")).await;
    stream.map(TokioIo::into_inner)
}

/// Both ends of one connection.
pub(super) struct Pair {
    pub client: TlsStream<BoxedIo>,
    pub server: TlsConnection<DuplexStream>,
}

impl Pair {
    /// Sends a byte each way.
    pub(super) async fn works(&mut self) {
        self.client.write_all(b"a").await.expect("sent");
        assert_eq!(self.server.read_u8().await.expect("received"), b'a');
        self.server.write_all(b"b").await.expect("sent");
        self.server.flush().await.expect("flushed");
        assert_eq!(self.client.read_u8().await.expect("received"), b'b');
    }
}

/// The alert to a client whose certificate the hub refuses: in TLS 1.3 at its first read.
pub(super) async fn refusal(stream: &mut TlsStream<BoxedIo>) -> String {
    let error = stream.read_u8().await.expect_err("refused");
    crate::tls::explain(&error).unwrap_or_else(|| panic!("no reason in {error:?}"))
}

/// A free port on loopback.
pub(super) async fn loopback() -> (TcpListener, HubAddress) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let port = listener.local_addr().expect("address").port();
    (
        listener,
        format!("https://127.0.0.1:{port}").parse().expect("address"),
    )
}
