//! Owns: the admission webhook of classes and clusters: an HTTPS port at which API servers ask what [`super::admission`]
//! answers.
//! Never: writes to a cluster, fills in a default, or ends before the drain.
//!
//! * `door.rs`: a request, from its first byte to its answer. `objects.rs`: what is read of the API server for it.
//!   `metrics.rs`: what is counted.

mod door;
mod metrics;
mod objects;
#[cfg(test)]
mod tests;

use std::{net::SocketAddr, sync::Arc};

use anyhow::Context;
use kube::Client;
use prometheus_client::registry::Registry;
use shared::{
    process::serve_http,
    tls::{ServedCertificate, ServedFiles, listen},
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing::info;

use self::{
    door::{TIMES, router},
    metrics::WebhookMetrics,
    objects::Server,
};

/// A webhook whose port is open.
pub struct Webhook {
    listener: TcpListener,
    address: SocketAddr,
    certificate: Arc<ServedCertificate>,
    server: Server,
    metrics: WebhookMetrics,
}

impl Webhook {
    /// Reads the certificate and opens the port.
    ///
    /// # Errors
    ///
    /// The files cannot be used, or the port is taken.
    pub fn prepare(
        address: SocketAddr,
        files: ServedFiles,
        client: Client,
        registry: &mut Registry,
    ) -> anyhow::Result<Self> {
        let certificate = ServedCertificate::load(files)?;
        let listener =
            listen(address).with_context(|| format!("cannot listen on --topology-webhook {address}"))?;
        Ok(Self {
            address: listener.local_addr()?,
            listener,
            server: Server::new(client),
            metrics: WebhookMetrics::register(registry, certificate.clone()),
            certificate,
        })
    }

    /// Serves until the drain begins.
    ///
    /// # Errors
    ///
    /// A look at the certificate's files panicked.
    pub async fn run(self, drain: CancellationToken) -> anyhow::Result<()> {
        info!(address = %self.address, "answering what API servers ask about ClusterClasses and Clusters");
        let certificate = self.certificate.clone();
        let greet = move |socket| certificate.clone().greet(socket);
        let router = router(self.server, TIMES, self.metrics);
        let serving = serve_http(
            "the admission webhook",
            self.listener,
            greet,
            router,
            drain.clone(),
        );
        let ((), looked) = tokio::join!(serving, self.certificate.run(drain));
        looked
    }
}
