//! An API server that says no, over a real socket.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use http::Response;
use http_body_util::BodyExt;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use tokio::net::TcpListener;

/// An API server that refuses whatever it is asked, and counts.
pub struct RefusingServer {
    /// Its URI, as in a kubeconfig.
    pub uri: String,
    asked: Arc<AtomicUsize>,
}

impl RefusingServer {
    /// Answers everything with this HTTP code and "retry at once", as long as the runtime lives.
    pub async fn start(code: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let uri = format!("http://{}", listener.local_addr().expect("an address"));
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = asked.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let counted = counted.clone();
                let service = hyper::service::service_fn(move |_| {
                    counted.fetch_add(1, Ordering::Relaxed);
                    let answer = Response::builder().status(code).header("retry-after", "0");
                    async move { answer.body(Body::empty()) }
                });
                let connection = hyper::server::conn::http1::Builder::new();
                tokio::spawn(connection.serve_connection(TokioIo::new(socket), service));
            }
        });
        Self { uri, asked }
    }

    /// Number of refused requests.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

/// A request as a [`ScriptedServer`] shows it: method, path with query, body.
pub struct Asked {
    /// The method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// The body, if it is JSON.
    pub body: serde_json::Value,
}

/// An API server that answers what a test says, over a real socket.
pub struct ScriptedServer {
    /// Its URI, as in a kubeconfig.
    pub uri: String,
}

impl ScriptedServer {
    /// Answers with what `script` says, HTTP code and JSON, as long as the runtime lives.
    pub async fn start(script: impl Fn(&Asked) -> (u16, serde_json::Value) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let uri = format!("http://{}", listener.local_addr().expect("an address"));
        let script = Arc::new(script);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let script = script.clone();
                let service =
                    hyper::service::service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
                        let script = script.clone();
                        async move {
                            let (method, path) = (request.method().to_string(), request.uri().to_string());
                            let body = request.into_body().collect().await.expect("a body").to_bytes();
                            let body = serde_json::from_slice(&body).unwrap_or_default();
                            let (code, answer) = script(&Asked { method, path, body });
                            let response = Response::builder()
                                .status(code)
                                .header("content-type", "application/json");
                            response.body(Body::from(answer.to_string().into_bytes()))
                        }
                    });
                let connection = hyper::server::conn::http1::Builder::new();
                tokio::spawn(connection.serve_connection(TokioIo::new(socket), service));
            }
        });
        Self { uri }
    }

    /// A kubeconfig that names it.
    pub fn kubeconfig(&self) -> String {
        let uri = &self.uri;
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{{name: c, cluster: {{server: \"{uri}\"}}}}]\n\
             users: [{{name: u, user: {{}}}}]\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n"
        )
    }
}
