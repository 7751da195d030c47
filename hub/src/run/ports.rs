//! Owns: what is served at a clusterset's ports, until it drains.
//! Never: opens a port, or decides anything about facts.

use std::time::Duration;

use anyhow::Context;
use proto::v1::{
    event_log_server, join_tokens_server, membership_server, policy_server, state_server, sync_server,
};
use shared::tls::{Incoming, Strangers};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic_health::ServingStatus;
use tracing::{Span, info};

use crate::{
    doors::{self, DoorMetrics, Doors},
    membership::JoiningService,
};

/// The services of the contract that are answered at the port of members and operators.
const SERVED: [&str; 6] = [
    sync_server::SERVICE_NAME,
    state_server::SERVICE_NAME,
    event_log_server::SERVICE_NAME,
    membership_server::SERVICE_NAME,
    policy_server::SERVICE_NAME,
    join_tokens_server::SERVICE_NAME,
];
/// Longest time for connections to close while draining; a peer that vanished never closes its own.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Calls at the same time over one connection of a cluster that joins; it makes one.
const JOIN_STREAMS_MAX: u32 = 2;
/// Longest time of such a call.
const JOIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves the one call of clusters that are no members yet, until `drain`.
pub async fn serve_joining<IO>(
    service: JoiningService,
    strangers: Strangers<IO>,
    drain: CancellationToken,
) -> anyhow::Result<()>
where
    IO: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let span = Span::current();
    let served = doors::server()
        .trace_fn(move |_| span.clone())
        .max_concurrent_streams(JOIN_STREAMS_MAX)
        .timeout(JOIN_TIMEOUT)
        .add_service(service.server())
        .serve_with_incoming_shutdown(strangers, drain.clone().cancelled_owned());
    let overdue = async {
        drain.cancelled().await;
        tokio::time::sleep(CLOSE_TIMEOUT).await;
    };
    tokio::select! {
        biased;
        served = served => served.context("the port at which clusters join failed"),
        () = overdue => Ok(()),
    }
}

/// Serves these services, health and reflection on connections from any network, until `drain`.
pub async fn serve_grpc<IO>(
    routes: Routes,
    doors: DoorMetrics,
    incoming: Incoming<IO>,
    drain: CancellationToken,
) -> anyhow::Result<()>
where
    IO: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (health_reporter, health) = tonic_health::server::health_reporter();
    for service in SERVED {
        health_reporter
            .set_service_status(service, ServingStatus::Serving)
            .await;
    }
    let span = Span::current();
    let server = doors::server()
        // Each connection is a task of its own, which knows nothing of this one.
        .trace_fn(move |_| span.clone())
        .layer(Doors(doors))
        .add_routes(routes)
        .add_service(health)
        .add_service(reflected().build_v1()?)
        .add_service(reflected().build_v1alpha()?);
    let served = server.serve_with_incoming_shutdown(incoming, drain.clone().cancelled_owned());
    let overdue = async {
        drain.cancelled().await;
        tokio::time::sleep(CLOSE_TIMEOUT).await;
    };
    tokio::select! {
        biased;
        served = served => served.context("the gRPC port failed"),
        () = overdue => {
            info!("connections that are not closed by now are cut: nobody answers on them");
            Ok(())
        }
    }
}

/// Reflection over what is served here of our contract, and the health service, so that grpcurl needs no files.
fn reflected() -> tonic_reflection::server::Builder<'static> {
    let builder = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(proto::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .with_service_name(tonic_health::pb::health_server::SERVICE_NAME);
    SERVED
        .into_iter()
        .fold(builder, tonic_reflection::server::Builder::with_service_name)
}
