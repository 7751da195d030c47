//! An API server that says no, over a real socket.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use http::Response;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use tokio::net::TcpListener;

/// An API server that refuses whatever it is asked, and counts.
pub struct RefusingServer {
    /// Where it listens, as a kubeconfig names it.
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

    /// How many requests it has refused.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}
