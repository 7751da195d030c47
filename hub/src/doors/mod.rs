//! Owns: what one identity may have open behind the handshake: calls at the same time, and bytes before a stream has
//! introduced itself. The settings of HTTP/2 stand here too, with what each of them bounds.
//! Never: counts connections (`shared::tls` does); knows what a call does.
//!
//! * `hello.rs`: a request's first bytes. `metrics.rs`: what is counted.

mod hello;
mod metrics;
#[cfg(test)]
mod tests;

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use hyper::body::{Bytes, Frame, SizeHint};
use shared::{
    identity::Role,
    tls::{Call, HTTP2_KEEPALIVE_INTERVAL, HTTP2_KEEPALIVE_TIMEOUT, PeerIdentity},
};
use tonic::{
    Status,
    body::Body,
    codegen::{BoxFuture, Service, http},
    transport::Server,
};
use tower::Layer;

pub use hello::HELLO_BYTES_MAX;
pub(crate) use hello::Introduction;
pub use metrics::DoorMetrics;

/// Calls of one member at the same time, over all of its connections. An agent has one.
pub const MEMBER_CALLS_MAX: usize = 16;
/// Calls of one operator at the same time.
pub const OPERATOR_CALLS_MAX: usize = 256;
/// Calls of one reader at the same time: fewer than there are places for readers' watches, so that one does not take all.
pub const READER_CALLS_MAX: usize = 32;
/// Streams of one connection at the same time; HTTP/2 refuses one more before anybody sees it.
pub const STREAMS_MAX: u32 = 128;
/// Bytes of one stream that may be under way to its reader. The window is the same for the whole life of a stream, so
/// it is no more than a stream may hold before its Hello.
pub const STREAM_WINDOW_BYTES: u32 = 64 * 1024;
/// The same of all streams of a connection together.
pub const CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;
/// Bytes of a request's headers, with all frames that continue them; our own have a few hundred.
const HEADER_BYTES_MAX: u32 = 16 * 1024;
/// Largest frame that is taken.
const FRAME_BYTES_MAX: u32 = 16 * 1024;
/// Streams that a peer may reset before we have looked at them; one more ends the connection (rapid reset).
const RESETS_UNSEEN_MAX: usize = 20;
/// Streams that we reset because of a peer's errors; one more ends the connection.
const ERRORS_MAX: usize = 128;

/// A server with our settings of HTTP/2. `shared::tls` bounds a peer's other acts by closing connections with too many
/// control frames, and so does `h2` itself: one answer to a ping or to settings waits at a time, and nothing more is
/// read until it is written; headers end after five continuation frames; data in small pieces has a budget.
pub fn server() -> Server {
    Server::builder()
        .http2_keepalive_interval(Some(HTTP2_KEEPALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(HTTP2_KEEPALIVE_TIMEOUT))
        .max_concurrent_streams(STREAMS_MAX)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .http2_max_header_list_size(HEADER_BYTES_MAX)
        .max_frame_size(FRAME_BYTES_MAX)
        .http2_max_pending_accept_reset_streams(Some(RESETS_UNSEEN_MAX))
        .http2_max_local_error_reset_streams(Some(ERRORS_MAX))
}

/// Puts a doorkeeper before services.
#[derive(Debug, Clone)]
pub struct Doors(pub DoorMetrics);

impl<S> Layer<S> for Doors {
    type Service = Doorkeeper<S>;

    fn layer(&self, inner: S) -> Doorkeeper<S> {
        Doorkeeper {
            inner,
            metrics: self.0.clone(),
        }
    }
}

/// Lets calls in, as many as their holder may have.
#[derive(Debug, Clone)]
pub struct Doorkeeper<S> {
    inner: S,
    metrics: DoorMetrics,
}

impl<S> Service<http::Request<Body>> for Doorkeeper<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = S::Error;
    type Future = BoxFuture<Self::Response, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        // Only tests serve connections without a certificate.
        let Some(peer) = request.extensions().get::<Arc<PeerIdentity>>().cloned() else {
            return Box::pin(self.inner.call(request));
        };
        let most = match &peer.identity.role {
            Role::Operator(_) => OPERATOR_CALLS_MAX,
            Role::Reader(_) => READER_CALLS_MAX,
            Role::Cluster(_) | Role::Hub(_) => MEMBER_CALLS_MAX,
        };
        let Some(call) = peer.calls.begin(most) else {
            self.metrics.refused("calls");
            let refusal = too_many_calls(&peer, most).into_http();
            return Box::pin(std::future::ready(Ok(refusal)));
        };
        let request = match &peer.identity.role {
            Role::Operator(_) => request,
            Role::Cluster(_) | Role::Hub(_) | Role::Reader(_) => {
                hello::bounded(request, &peer, &self.metrics)
            }
        };
        let answering = self.inner.call(request);
        Box::pin(async move {
            let answer = answering.await?;
            Ok(answer.map(|body| Body::new(Answer { body, _call: call })))
        })
    }
}

fn too_many_calls(peer: &PeerIdentity, most: usize) -> Status {
    Status::resource_exhausted(format!(
        "{} has {most} calls open, as many as it may have over all of its connections: end some, or wait for them",
        peer.identity
    ))
}

/// The body of an answer; the call ends with it.
struct Answer {
    body: Body,
    _call: Call,
}

impl hyper::body::Body for Answer {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
