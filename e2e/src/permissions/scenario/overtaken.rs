//! Owns: a way to an API server on which objects of strangers come first: a write to one of their names makes the
//! stranger's object, and is passed on then.
//! Never: answers anything itself.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::Context;
use http::{Method, Request};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use kube::{
    Client,
    api::{DynamicObject, PostParams},
    client::Body,
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinSet};

use cluster::deploy;

/// The way; it ends with it.
pub(super) struct Overtaken {
    address: SocketAddr,
    passing: Arc<Passing>,
    _serving: JoinSet<()>,
}

struct Passing {
    /// As whom requests are passed on.
    account: Client,
    /// As whom strangers write.
    strangers: Client,
    /// Objects to make before the first write to their name.
    waiting: Mutex<Vec<DynamicObject>>,
    overtook: AtomicUsize,
}

impl Overtaken {
    /// Serves the way on a port of its own, without credentials: requests are passed on as `account`.
    pub(super) async fn serve(
        account: Client,
        strangers: Client,
        objects: Vec<Value>,
    ) -> anyhow::Result<Self> {
        let objects: Result<Vec<DynamicObject>, _> =
            objects.into_iter().map(serde_json::from_value).collect();
        let passing = Arc::new(Passing {
            account,
            strangers,
            waiting: Mutex::new(objects?),
            overtook: AtomicUsize::new(0),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let mut serving = JoinSet::new();
        serving.spawn(accept(listener, passing.clone()));
        Ok(Self {
            address,
            passing,
            _serving: serving,
        })
    }

    /// By which a program goes this way.
    pub(super) fn kubeconfig(&self) -> String {
        let name = "overtaken";
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": name,
            "clusters": [{"name": name, "cluster": {"server": format!("http://{}", self.address)}}],
            "users": [{"name": name, "user": {}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        })
        .to_string()
    }

    /// Number of unmanaged objects that came first.
    pub(super) fn overtook(&self) -> usize {
        self.passing.overtook.load(Ordering::Relaxed)
    }
}

async fn accept(listener: TcpListener, passing: Arc<Passing>) {
    let mut connections = JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        let passing = passing.clone();
        let service = hyper::service::service_fn(move |request: Request<Incoming>| {
            let passing = passing.clone();
            async move { passing.pass(request).await.map_err(io::Error::other) }
        });
        let connection =
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), service);
        // A program that hangs up ends its connection: no error of ours.
        connections.spawn(async move { drop(connection.await) });
    }
}

impl Passing {
    async fn pass(&self, request: Request<Incoming>) -> anyhow::Result<http::Response<Body>> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        if parts.method == Method::PATCH
            && let Some(stranger) = self.overtaking(parts.uri.path())
        {
            let objects = deploy::api(&self.strangers, &stranger)?;
            let made = objects.create(&PostParams::default(), &stranger).await;
            made.context("a stranger's object")?;
            self.overtook.fetch_add(1, Ordering::Relaxed);
        }
        let request = Request::from_parts(parts, Body::from(body));
        Ok(self.account.send(request).await?)
    }

    /// The stranger whose name this is, once.
    fn overtaking(&self, path: &str) -> Option<DynamicObject> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |object: &DynamicObject| {
            let collection = format!("/{}s/", deploy::kind(object).to_lowercase());
            path.ends_with(&format!("{collection}{}", deploy::name(object)))
        };
        let index = waiting.iter().position(is_it)?;
        Some(waiting.remove(index))
    }
}
