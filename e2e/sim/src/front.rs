//! The asynchronous fronts of a simulated cluster: one answer after the other, and loopback HTTP.
//! Turns answers into bodies and watches into streams; decides nothing.

use std::{convert::Infallible, io, net::SocketAddr, sync::PoisonError, time::Duration};

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Request, Response, header};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Frame;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{net::TcpListener, time::Instant};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{SimCluster, answer::Answer, store::Watch};

/// Interval of an idle watch's bookmarks.
const BOOKMARK_PERIOD: Duration = Duration::from_secs(10);

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// A running loopback server; it stops when this is dropped.
pub struct Served {
    /// Its address.
    pub address: SocketAddr,
    stop: CancellationToken,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl SimCluster {
    /// Serves the cluster as plain HTTP, for kubectl and the demo.
    pub async fn serve(&self, address: SocketAddr) -> io::Result<Served> {
        let listener = TcpListener::bind(address).await?;
        let served = Served {
            address: listener.local_addr()?,
            stop: CancellationToken::new(),
        };
        let (stop, cluster) = (served.stop.clone(), self.clone());
        tokio::spawn(async move {
            let connections = TaskTracker::new();
            while let Some(Ok((socket, _))) = stop.run_until_cancelled(listener.accept()).await {
                let (stop, cluster) = (stop.clone(), cluster.clone());
                let service = hyper::service::service_fn(move |request: Request<hyper::body::Incoming>| {
                    let cluster = cluster.clone();
                    async move {
                        let (parts, body) = request.into_parts();
                        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
                        cluster.respond(Request::from_parts(parts, body)).await
                    }
                });
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(socket), service);
                // A client that hangs up, or a fault that loses an answer, ends its connection: no error of ours.
                connections.spawn(async move { stop.run_until_cancelled(connection).await.map(drop) });
            }
        });
        Ok(served)
    }

    /// Answers one request; an error is a connection that broke.
    pub async fn respond(&self, request: Request<Bytes>) -> io::Result<Response<Body>> {
        let reply = self.handle(&request);
        if reply.delay_ms > 0 {
            tokio::time::sleep(Duration::from_millis(reply.delay_ms)).await;
        }
        let (code, content_type, body) = match reply.answer {
            Answer::Lost => {
                return Err(io::Error::new(
                    io::ErrorKind::ConnectionReset,
                    "injected fault: the answer was lost",
                ));
            }
            Answer::Document(text) => (200, "application/json", Full::from(text).boxed_unsync()),
            Answer::List(listing) => (
                200,
                "application/json",
                Full::from(serde_json::to_vec(&listing)?).boxed_unsync(),
            ),
            Answer::Watch(watch) => (200, "application/json", self.stream(*watch)),
            Answer::Whole {
                code,
                body: Value::String(text),
            } => (code, "text/plain", Full::from(text).boxed_unsync()),
            Answer::Whole { code, body } => (
                code,
                "application/json",
                Full::from(serde_json::to_vec(&body)?).boxed_unsync(),
            ),
        };
        let mut response = Response::builder()
            .status(code)
            .header(header::CONTENT_TYPE, content_type);
        if code == 429 {
            response = response.header(header::RETRY_AFTER, "1");
        }
        response.body(body).map_err(io::Error::other)
    }

    fn stream(&self, watch: Watch) -> Body {
        let ends = Instant::now() + Duration::from_secs(watch.timeout_seconds);
        let state = (self.clone(), watch, self.changes.subscribe(), false);
        let lines = stream::unfold(
            state,
            move |(cluster, mut watch, mut changes, ended)| async move {
                if ended {
                    return None;
                }
                loop {
                    changes.borrow_and_update();
                    let (lines, over) = cluster.lock().poll_watch(&mut watch);
                    if !lines.is_empty() || over {
                        return Some((lines, (cluster, watch, changes, over)));
                    }
                    let due = ends.min(Instant::now() + BOOKMARK_PERIOD);
                    if tokio::time::timeout_at(due, changes.changed()).await.is_ok() {
                        continue;
                    }
                    if due == ends {
                        return None;
                    }
                    let bookmark = cluster.lock().bookmark(&watch);
                    return Some((bookmark.into_iter().collect(), (cluster, watch, changes, false)));
                }
            },
        );
        let frames = lines.map(|lines: Vec<Value>| {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            Ok::<_, Infallible>(Frame::data(Bytes::from(text)))
        });
        StreamBody::new(frames).boxed_unsync()
    }
}

impl SimCluster {
    pub(crate) fn lock(&self) -> std::sync::MutexGuard<'_, super::handler::Cluster> {
        self.cluster.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
