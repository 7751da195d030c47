//! Owns: a port of HTTP/1.1 with a router behind it: connections are accepted, answered, and closed. A peer takes a
//! bounded number of descriptors ([`super::visitors`]), and none for long without a request.
//! Never: knows what is asked.

use std::{pin::pin, time::Duration};

use axum::Router;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use tracing::warn;

use super::visitors::{Asked, Visitors};

/// Time for which a connection may be open without a complete request head, from its beginning or since the last one.
const REQUEST_WAIT: Duration = Duration::from_secs(10);
/// Bytes of a request's head, of what is read of its body at once, and of an answer that nobody reads.
const BUFFER_BYTES_MAX: usize = 64 * 1024;
/// Time that an answer may take when the process ends.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(1);
/// Pause after the listener reports an error (no file descriptors left, for example).
const LISTENER_ERROR_PAUSE: Duration = Duration::from_millis(100);

/// Serves until the token is cancelled. `greet` turns a socket into a stream, as by a handshake; `None` lets it go, and
/// so does [`REQUEST_WAIT`] without either.
pub async fn serve_http<IO, F>(
    name: &'static str,
    listener: TcpListener,
    greet: impl Fn(TcpStream) -> F,
    router: Router,
    shutdown: CancellationToken,
) where
    IO: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    F: Future<Output = Option<IO>> + Send + 'static,
{
    let mut visitors = Visitors::default();
    loop {
        tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            true = visitors.leave() => {}
            accepted = listener.accept() => match accepted {
                Ok((socket, _)) => {
                    let (greeted, router, shutdown) = (greet(socket), router.clone(), shutdown.clone());
                    let visit = |asked| async {
                        if let Ok(Some(socket)) = timeout(REQUEST_WAIT, greeted).await {
                            answer(socket, router, asked, shutdown).await;
                        }
                    };
                    visitors.enter(visit).await;
                }
                Err(error) => {
                    warn!(%error, "{name} cannot accept connections; trying again");
                    sleep(LISTENER_ERROR_PAUSE).await;
                }
            },
        }
    }
    while visitors.leave().await {}
}

/// Answers over one connection until it ends or the process does.
async fn answer<IO>(socket: IO, router: Router, asked: Asked, shutdown: CancellationToken)
where
    IO: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        asked.note();
        router.clone().oneshot(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_WAIT)
        .max_buf_size(BUFFER_BYTES_MAX)
        .serve_connection(TokioIo::new(socket), service);
    let mut connection = pin!(connection);
    // However it ends, it is the visitor's loss alone.
    tokio::select! {
        biased;
        _ = connection.as_mut() => {}
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            let _ = timeout(FAREWELL_TIMEOUT, connection).await;
        }
    }
}
