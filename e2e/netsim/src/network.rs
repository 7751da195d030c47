//! The simulated network seen by hub and agents: how sockets are accepted and dialled, and a reader that is slow.
//! Only the socket is swapped; TLS, HTTP/2 and everything above are the programs' own.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use futures::{Stream, future::BoxFuture};
use shared::tls::{BoxedIo, Dial, HubAddress};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep, timeout},
};
use turmoil::net::{TcpListener, TcpStream};

/// Port of the simulated hub.
pub(super) const HUB_PORT: u16 = 7443;
/// Longest time for a connection, as over real TCP.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Delay of each received piece on a machine, in milliseconds.
pub(super) type Pace = Arc<AtomicU64>;

/// The sockets that connect to the hub.
pub(super) async fn sockets()
-> io::Result<impl Stream<Item = io::Result<(TcpStream, Option<SocketAddr>)>> + Send> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, HUB_PORT)).await?;
    Ok(futures::stream::unfold(listener, async |listener| {
        let accepted = listener.accept().await;
        Some((accepted.map(|(socket, remote)| (socket, Some(remote))), listener))
    }))
}

/// Dials over the simulated network.
pub(super) struct SimulatedDial {
    pub(super) pace: Pace,
}

impl Dial for SimulatedDial {
    fn dial(&self, address: HubAddress) -> BoxFuture<'static, io::Result<BoxedIo>> {
        let pace = self.pace.clone();
        Box::pin(async move {
            let connecting = TcpStream::connect((&*address.host, address.port));
            let socket = timeout(CONNECT_TIMEOUT, connecting).await??;
            let paced = Paced {
                socket,
                pace,
                waiting: None,
                waited: false,
            };
            Ok(Box::new(paced) as BoxedIo)
        })
    }
}

/// A socket whose reader takes its time.
struct Paced {
    socket: TcpStream,
    pace: Pace,
    waiting: Option<Pin<Box<Sleep>>>,
    waited: bool,
}

impl AsyncRead for Paced {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let millis = self.pace.load(Ordering::Relaxed);
        if millis > 0 && !self.waited {
            let waiting = self
                .waiting
                .get_or_insert_with(|| Box::pin(sleep(Duration::from_millis(millis))));
            ready!(waiting.as_mut().poll(cx));
            self.waiting = None;
            self.waited = true;
        }
        ready!(Pin::new(&mut self.socket).poll_read(cx, buffer))?;
        self.waited = false;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Paced {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
