//! A `kube::Client` of a simulated cluster, without a socket.

use std::io;

use http::{HeaderValue, Request, header};

use super::SimCluster;

impl SimCluster {
    /// A client of this cluster.
    pub fn client(&self) -> kube::Client {
        self.client_named("simulated-client")
    }

    /// A client of this cluster whose requests carry `user_agent`.
    pub fn client_named(&self, user_agent: &str) -> kube::Client {
        let cluster = self.clone();
        let agent = HeaderValue::from_str(user_agent).unwrap_or_else(|_| HeaderValue::from_static("unknown"));
        let service = tower::service_fn(move |mut request: Request<kube::client::Body>| {
            let cluster = cluster.clone();
            request
                .headers_mut()
                .entry(header::USER_AGENT)
                .or_insert(agent.clone());
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect_bytes().await.map_err(io::Error::other)?;
                cluster.respond(Request::from_parts(parts, body)).await
            }
        });
        kube::Client::new(service, "default")
    }
}
