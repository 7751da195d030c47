//! Opens the byte stream to a hub's address. TCP in production; a simulated network brings its own [`Dial`].
//! It knows nothing of TLS.

use std::{io, net::SocketAddr, time::Duration};

use futures::future::BoxFuture;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};

use super::{address::HubAddress, race::race};

/// Longest time for a connection to one IP address of a hub.
const TCP_CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// IP addresses of one name that are tried.
const IP_ADDRESSES_MAX: usize = 8;

/// A byte stream in both directions.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Io for T {}

/// Any byte stream.
pub type BoxedIo = Box<dyn Io>;

/// Opens byte streams to hubs.
pub trait Dial: Send + Sync + 'static {
    /// Opens a stream; the name is resolved here, each time.
    fn dial(&self, address: HubAddress) -> BoxFuture<'static, io::Result<BoxedIo>>;
}

/// Dials over TCP.
#[derive(Debug, Clone, Copy, Default)]
pub struct TcpDial;

impl Dial for TcpDial {
    fn dial(&self, address: HubAddress) -> BoxFuture<'static, io::Result<BoxedIo>> {
        Box::pin(async move {
            let resolved = tokio::net::lookup_host((&*address.host, address.port)).await;
            let resolved = resolved.map_err(|error| {
                hinted(
                    &error,
                    "the name cannot be resolved (is it right, does DNS answer?)",
                )
            })?;
            let connected = race(resolved.take(IP_ADDRESSES_MAX), connect).await;
            let socket = connected.map_err(|mut failures| {
                let none = || io::Error::new(io::ErrorKind::NotFound, "the name has no addresses");
                failures.pop().unwrap_or_else(none)
            })?;
            socket.set_nodelay(true)?;
            Ok(Box::new(socket) as BoxedIo)
        })
    }
}

async fn connect(ip: SocketAddr) -> io::Result<TcpStream> {
    match timeout(TCP_CONNECT_TIMEOUT, TcpStream::connect(ip)).await {
        Ok(connected) => connected.map_err(|error| hinted(&error, &format!("{ip}"))),
        Err(_) => Err(silent(ip)),
    }
}

fn hinted(error: &io::Error, hint: &str) -> io::Error {
    io::Error::new(error.kind(), format!("{hint}: {error}"))
}

fn silent(ip: SocketAddr) -> io::Error {
    let seconds = TCP_CONNECT_TIMEOUT.as_secs();
    let reason = format!("{ip}: no answer within {seconds} s (does a firewall drop the packets?)");
    io::Error::new(io::ErrorKind::TimedOut, reason)
}
