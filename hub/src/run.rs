//! The wiring of `serve`: builds the parts, runs them under supervision, drains them.
//! It decides nothing about facts; it only connects.

use anyhow::Context;
use shared::{
    shell::{AdminServer, LogArgs, Metrics, Readiness, Shutdown, Supervisor, block_on},
    tls::{Reloader, TlsMetrics, accept, install_crypto_provider, tcp_connections},
};
use tokio::net::TcpListener;
use tracing::info;

use crate::args::ServeArgs;

/// Runs the hub until it is told to stop or a part of it fails.
pub fn serve(log: &LogArgs, args: ServeArgs) -> anyhow::Result<()> {
    log.init()?;
    install_crypto_provider()?;
    block_on(serve_async(args))
}

async fn serve_async(args: ServeArgs) -> anyhow::Result<()> {
    let shutdown = Shutdown::default();
    let signals = shutdown.listen()?;
    tokio::spawn(signals);
    let mut metrics = Metrics::new("tributary_hub", env!("CARGO_PKG_VERSION"));
    let readiness = Readiness::default();
    let starting = readiness.handle("gRPC port open");

    let tls_metrics = TlsMetrics::default();
    let (reloader, credentials) = Reloader::load(args.tls.clone(), tls_metrics.clone())?;
    tls_metrics.register(metrics.registry());
    TlsMetrics::register_expiry(metrics.registry(), credentials.clone());

    let admin = AdminServer::bind(args.admin).await?;
    let listener = TcpListener::bind(args.listen).await;
    let listener = listener.with_context(|| format!("cannot listen on --listen {}", args.listen))?;
    let address = listener.local_addr()?;
    let incoming = accept(tcp_connections(listener), credentials.clone(), tls_metrics);

    let drain = shutdown.drain().clone();
    let mut supervisor = Supervisor::new(shutdown.clone());
    supervisor.spawn("the TLS file watch", reloader.run(drain.clone()));
    supervisor.spawn(
        "the admin port",
        admin.serve(readiness.clone(), metrics.finish(), drain.clone()),
    );
    let (_health, health) = tonic_health::server::health_reporter();
    let server = tonic::transport::Server::builder()
        .add_service(health)
        .add_service(reflected().build_v1()?)
        .add_service(reflected().build_v1alpha()?);
    supervisor.spawn("the gRPC port", async move {
        let served = server.serve_with_incoming_shutdown(incoming, drain.cancelled_owned());
        served.await.context("the gRPC port failed")
    });
    info!(%address, identity = %credentials.identity(), "serving");
    drop(starting);
    supervisor.run().await
}

/// Reflection over our contract and the health service, so that grpcurl needs no files.
fn reflected() -> tonic_reflection::server::Builder<'static> {
    tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(proto::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
}
