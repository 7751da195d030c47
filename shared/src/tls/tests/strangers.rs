//! The join port, against unauthenticated peers that fill it: a peer with a request gets in.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::StreamExt;
use rustls_pki_types::ServerName;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
    task::JoinSet,
    time::{Instant, advance, sleep, timeout},
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::{
    ends::{Pipes, in_time},
    handshake::bare_client,
    pki::{Authority, HUB},
};
use crate::tls::{
    BoxedIo, Dial, JOIN_CONNECTION_AGE_MAX, JOIN_CONNECTIONS_MAX, StrangerConnection, Strangers,
    accept_strangers,
};

/// A hub's port for joining, and its clients.
struct Door {
    authority: Authority,
    pipes: Pipes,
    strangers: Strangers<DuplexStream>,
}

impl Door {
    fn new() -> Self {
        let authority = Authority::new("ca");
        let (pipes, sockets) = Pipes::new();
        Self {
            strangers: accept_strangers(sockets, authority.live(HUB)),
            authority,
            pipes,
        }
    }

    async fn socket(&self) -> BoxedIo {
        let address = "https://hub:7443".parse().expect("address");
        let dialled = in_time("the hub takes a socket", self.pipes.dial(address));
        dialled.await.expect("pipe")
    }

    async fn encrypted(&self) -> TlsStream<BoxedIo> {
        let connector = TlsConnector::from(Arc::new(bare_client(&self.authority, None)));
        let name = ServerName::try_from("hub").expect("name");
        let connecting = connector.connect(name, self.socket().await);
        let connected = in_time("the hub greets a stranger", connecting).await;
        connected.expect("without a certificate")
    }

    /// Both ends of a connection with traffic.
    async fn joins(&mut self) -> (TlsStream<BoxedIo>, StrangerConnection<DuplexStream>) {
        let mut client = self.encrypted().await;
        let next = in_time("a place for who joins", self.strangers.next()).await;
        let mut server = next.expect("open").expect("encrypted");
        client.write_all(b"a").await.expect("sent");
        assert_eq!(server.read_u8().await.expect("received"), b'a');
        (client, server)
    }
}

#[tokio::test(start_paused = true)]
async fn a_thousand_silent_sockets_keep_nobody_from_joining() {
    let mut door = Door::new();
    let mut silent = Vec::new();
    for _ in 0..1_000 {
        silent.push(door.socket().await);
    }
    let began = Instant::now();
    door.joins().await;
    assert!(
        began.elapsed() < Duration::from_secs(3),
        "{:?}: silence ends after two seconds",
        began.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn who_keeps_all_places_at_the_joining_port_loses_them_by_time() {
    let mut door = Door::new();
    let mut kept = Vec::new();
    for _ in 0..JOIN_CONNECTIONS_MAX {
        kept.push(door.joins().await);
    }
    let mut refused = door.encrypted().await;
    let mut said = [0; 1];
    let read = in_time("one more is closed", refused.read(&mut said)).await;
    assert!(!matches!(read, Ok(1..)), "{read:?}");
    advance(JOIN_CONNECTION_AGE_MAX).await;
    for (_, server) in &mut kept {
        let read = in_time("an old one is cut", server.read(&mut said)).await;
        assert_eq!(read.expect("an end"), 0);
        assert!(server.write_all(b"b").await.is_err(), "nothing is said over it");
    }
    // Their server closes them then.
    drop(kept);
    door.joins().await;
}

#[tokio::test(start_paused = true)]
async fn who_keeps_all_places_and_asks_nothing_gives_way_to_who_joins() {
    let mut door = Door::new();
    let mut kept = Vec::new();
    for _ in 0..JOIN_CONNECTIONS_MAX {
        let (client, mut server) = door.joins().await;
        // As a server does: it waits for a request over each.
        let serving = tokio::spawn(async move { server.read(&mut [0; 1]).await });
        kept.push((client, serving));
    }
    advance(Duration::from_millis(300)).await;
    for _ in 0..3 {
        door.joins().await;
    }
    let ended = kept.iter().filter(|(_, serving)| serving.is_finished()).count();
    assert!((1..=3).contains(&ended), "{ended} of the idle ones are cut");
}

/// Connections that stay idle, of one address: more than there are places.
const IDLERS: usize = 200;
/// A cluster gives a join up after so long.
const JOIN_WAIT: Duration = Duration::from_secs(3);

/// Strangers and a server that answers each request.
struct Served {
    authority: Authority,
    pipes: Pipes,
    serving: JoinSet<()>,
}

impl Served {
    fn new() -> Arc<Self> {
        let Door {
            authority,
            pipes,
            mut strangers,
        } = Door::new();
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut open = JoinSet::new();
            while let Some(Ok(mut connection)) = strangers.next().await {
                open.spawn(async move {
                    if let Ok(asked) = connection.read_u8().await {
                        connection.write_u8(asked).await.ok();
                    }
                });
            }
        });
        Arc::new(Self {
            authority,
            pipes,
            serving,
        })
    }

    async fn encrypted(&self, from: SocketAddr) -> std::io::Result<TlsStream<BoxedIo>> {
        let connector = TlsConnector::from(Arc::new(bare_client(&self.authority, None)));
        let name = ServerName::try_from("hub").expect("name");
        connector
            .connect(name, self.pipes.dial_from(Some(from)).await?)
            .await
    }

    /// One request over a connection of its own.
    async fn asks(&self, from: SocketAddr) -> std::io::Result<u8> {
        let mut client = self.encrypted(from).await?;
        client.write_u8(7).await?;
        client.read_u8().await
    }
}

#[tokio::test(start_paused = true)]
async fn two_hundred_idle_connections_that_open_again_keep_nobody_from_joining() {
    let served = Served::new();
    let (hostile, honest) = ("10.6.6.6:1", "10.1.1.1:1");
    let opened = Arc::new(AtomicUsize::new(0));
    let mut idlers = JoinSet::new();
    for _ in 0..IDLERS {
        let (served, opened) = (served.clone(), opened.clone());
        idlers.spawn(async move {
            loop {
                if let Ok(mut idle) = served.encrypted(hostile.parse().expect("an address")).await {
                    opened.fetch_add(1, Ordering::Relaxed);
                    let _ = idle.read_u8().await;
                }
                sleep(Duration::from_millis(100)).await;
            }
        });
    }
    let all_opened = async {
        while opened.load(Ordering::Relaxed) < 2 * IDLERS {
            sleep(Duration::from_millis(10)).await;
        }
    };
    in_time("all are open, and as many again", all_opened).await;
    for number in 0..20 {
        let joins = served.asks(honest.parse().expect("an address"));
        let joined = timeout(JOIN_WAIT, joins).await.expect("answered in time");
        assert_eq!(joined.expect("answered"), 7, "join {number}");
        sleep(Duration::from_millis(150)).await;
    }
    assert!(!served.serving.is_empty());
}
