//! The admin port: `/livez`, `/readyz`, `/metrics` over plain HTTP, GET only. It shows nothing of any cluster's state,
//! and nothing can be changed through it. [`super::http`] bounds the number and the time of connections.

use std::{future::ready, net::SocketAddr, sync::Arc};

use anyhow::Context;
use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing::info;

use super::{
    http::serve_http,
    metrics::{self, Form},
    ready::Readiness,
};

/// A bound admin port.
pub struct AdminServer {
    listener: TcpListener,
    address: SocketAddr,
}

#[derive(Clone)]
struct Shown {
    readiness: Readiness,
    registry: Arc<Registry>,
}

impl AdminServer {
    /// Binds the port, so that a taken one is an error at start.
    pub async fn bind(address: SocketAddr) -> anyhow::Result<Self> {
        let bind = TcpListener::bind(address).await;
        let listener =
            bind.with_context(|| format!("cannot listen on --admin {address}: choose a free port"))?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// The address in use; tells the port when 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the token is cancelled.
    pub async fn serve(
        self,
        readiness: Readiness,
        registry: Arc<Registry>,
        shutdown: CancellationToken,
    ) -> anyhow::Result<()> {
        info!(address = %self.address, "admin port serves /livez, /readyz and /metrics");
        let router = router(readiness, registry);
        serve_http(
            "the admin port",
            self.listener,
            |socket| ready(Some(socket)),
            router,
            shutdown,
        )
        .await;
        Ok(())
    }
}

/// The admin port's routes.
pub fn router(readiness: Readiness, registry: Arc<Registry>) -> Router {
    Router::new()
        .route("/livez", get(async || "ok\n"))
        .route("/readyz", get(readyz))
        .route("/metrics", get(show_metrics))
        .with_state(Shown { readiness, registry })
}

async fn readyz(State(shown): State<Shown>) -> Response {
    match shown.readiness.told() {
        (true, text) => text.into_response(),
        (false, text) => (StatusCode::SERVICE_UNAVAILABLE, text).into_response(),
    }
}

async fn show_metrics(State(shown): State<Shown>, headers: HeaderMap) -> Response {
    let accept = headers.get_all(header::ACCEPT).iter();
    let accept: Vec<&str> = accept.filter_map(|value| value.to_str().ok()).collect();
    let form = Form::accepted(&accept.join(","));
    match metrics::encode_as(&shown.registry, form) {
        Ok(text) => ([(header::CONTENT_TYPE, form.media_type())], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpStream,
        task::JoinHandle,
    };

    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;
    use crate::process::{HTTP_CONNECTIONS_MAX, Metrics};

    /// Longer than anything here takes.
    const ANSWER_WAIT: Duration = Duration::from_secs(20);

    async fn start(readiness: Readiness) -> (SocketAddr, CancellationToken, JoinHandle<anyhow::Result<()>>) {
        let server = AdminServer::bind(([127, 0, 0, 1], 0).into())
            .await
            .expect("bound");
        let (address, shutdown) = (server.address(), CancellationToken::new());
        let registry = Metrics::new("tributary_test", "1.2.3").finish();
        let serving = tokio::spawn(server.serve(readiness, registry, shutdown.clone()));
        (address, shutdown, serving)
    }

    async fn request(address: SocketAddr, line: &str) -> String {
        request_of(address, &format!("{line} HTTP/1.1")).await
    }

    async fn request_of(address: SocketAddr, head: &str) -> String {
        let mut socket = TcpStream::connect(address).await.expect("connected");
        let request = format!("{head}\r\nhost: admin\r\nconnection: close\r\n\r\n");
        socket.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.expect("answered");
        answer
    }

    #[tokio::test]
    async fn readyz_names_what_is_awaited() {
        let readiness = Readiness::default();
        let handle = readiness.handle("log opened");
        let (address, _shutdown, _serving) = start(readiness).await;
        let answer = request(address, "GET /readyz").await;
        assert!(
            answer.starts_with("HTTP/1.1 503") && answer.contains("log opened\n"),
            "{answer}"
        );
        assert!(request(address, "GET /livez").await.starts_with("HTTP/1.1 200"));
        drop(handle);
        assert!(request(address, "GET /readyz").await.starts_with("HTTP/1.1 200"));
    }

    #[tokio::test]
    async fn metrics_are_text_and_only_get_is_answered() {
        let (address, _shutdown, _serving) = start(Readiness::default()).await;
        let answer = request(address, "GET /metrics").await;
        assert!(
            answer.contains("tributary_test_build_info{version=\"1.2.3\"} 1"),
            "{answer}"
        );
        assert!(
            answer.contains(Form::OpenMetrics.media_type()) && answer.ends_with("# EOF\n"),
            "{answer}"
        );
        let asked = "GET /metrics HTTP/1.1\r\naccept: text/plain;version=0.0.4";
        let answer = request_of(address, asked).await;
        assert!(
            answer.contains(Form::Plain.media_type())
                && answer.contains("# TYPE tributary_test_build_info gauge\n"),
            "{answer}"
        );
        for line in ["POST /livez", "DELETE /metrics", "PUT /readyz"] {
            assert!(request(address, line).await.starts_with("HTTP/1.1 405"), "{line}");
        }
        assert!(request(address, "GET /").await.starts_with("HTTP/1.1 404"));
    }

    async fn closed(socket: &mut TcpStream) {
        let read = timeout(ANSWER_WAIT, socket.read_u8()).await;
        read.expect("the port closes it").expect_err("and says nothing");
    }

    #[tokio::test]
    async fn whoever_only_stays_goes_for_whoever_comes() {
        let (address, _shutdown, _serving) = start(Readiness::default()).await;
        let mut asks = TcpStream::connect(address).await.expect("connected");
        let mut asked_again = async || {
            let request = b"GET /livez HTTP/1.1\r\nhost: admin\r\n\r\n";
            asks.write_all(request).await.expect("sent");
            let mut answer = vec![0; 256];
            let read = timeout(ANSWER_WAIT, asks.read(&mut answer)).await;
            let read = read.expect("in time").expect("not closed");
            assert!(answer[..read].starts_with(b"HTTP/1.1 200"));
        };
        asked_again().await;
        let mut silent = Vec::new();
        for _ in 0..2 * HTTP_CONNECTIONS_MAX {
            silent.push(TcpStream::connect(address).await.expect("connected"));
        }
        assert!(request(address, "GET /livez").await.starts_with("HTTP/1.1 200"));
        // The one that asked has a place, and so had the last that came.
        for oldest in &mut silent[..=HTTP_CONNECTIONS_MAX] {
            closed(oldest).await;
        }
        let newest = silent.last_mut().expect("some");
        let waits = timeout(Duration::from_millis(1), newest.read_u8()).await;
        waits.expect_err("the newest stays");
        asked_again().await;
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_asks_nothing_is_let_go() {
        let (address, _shutdown, _serving) = start(Readiness::default()).await;
        let mut silent = TcpStream::connect(address).await.expect("connected");
        let mut slow = TcpStream::connect(address).await.expect("connected");
        slow.write_all(b"GET /livez").await.expect("sent");
        closed(&mut silent).await;
        closed(&mut slow).await;
    }

    #[tokio::test]
    async fn it_stops_when_told_and_a_taken_port_is_an_error() {
        let (address, shutdown, serving) = start(Readiness::default()).await;
        let error = AdminServer::bind(address).await.err().expect("the port is taken");
        assert!(error.to_string().contains("--admin"), "{error}");
        shutdown.cancel();
        serving.await.expect("no panic").expect("stopped cleanly");
    }
}
