//! The wiring of `serve`: builds the parts, runs them under supervision, drains them.
//! It decides nothing about facts; it only connects.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, bail};
use proto::v1::sync_server::SyncServer;
use shared::{
    identity::{Identity, Role},
    model::{Clusterset, Epoch, advice},
    process::{AdminServer, LogArgs, Metrics, Readiness, Shutdown, Supervisor, random},
    tls::{
        CONNECTIONS_MAX, DoorBounds, Incoming, LiveCredentials, Reloader, Strangers, TlsMetrics,
        accept_strangers, accept_within, install_crypto_provider, listen, pem_of, tcp_connections,
    },
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
};
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tracing::{info, warn};

use crate::{
    args::{JoinArgs, ServeArgs},
    bounds::Bounds,
    certs::{MemberIssuer, RenewalIssuer},
    clock::Clock,
    descriptors,
    doors::{self, DoorMetrics, Doors},
    hub::{Hub, HubMetrics},
    lead::Leading,
    log,
    membership::{Joinable, JoiningService},
    profile::{self, AccessProviders, ProfileMetrics, ProfileWriter},
    session::SyncService,
    writer::Options,
};

/// How long connections may take to close while draining; a peer that is gone without a word never closes its own.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Calls at the same time over one connection of a cluster that joins; it makes one.
const JOIN_STREAMS_MAX: u32 = 2;
/// How long such a call may take.
const JOIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs the hub until it is told to stop or a part of it fails.
pub fn serve(log: &LogArgs, args: ServeArgs) -> anyhow::Result<()> {
    log.init()?;
    install_crypto_provider()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve_async(args))
}

async fn serve_async(args: ServeArgs) -> anyhow::Result<()> {
    let shutdown = Shutdown::default();
    let signals = shutdown.listen()?;
    tokio::spawn(signals);
    let mut metrics = Metrics::new("tributary_hub", env!("CARGO_PKG_VERSION"));
    let hub_metrics = HubMetrics::register(metrics.registry());
    let profile_metrics = ProfileMetrics::register(metrics.registry());
    let access = match &args.access_providers {
        Some(file) => AccessProviders::read(file)?,
        None => AccessProviders::default(),
    };
    let kubernetes = profile::client(args.kubeconfig.as_deref(), &profile_metrics).await?;
    let readiness = Readiness::default();
    let opening = readiness.handle("event log replayed");
    let starting = readiness.handle("gRPC port open");

    let tls_metrics = TlsMetrics::default();
    let (reloader, credentials) =
        Reloader::load_for_hub(args.tls.clone(), args.clients.clone(), tls_metrics.clone())?;
    tls_metrics.register(metrics.registry());
    TlsMetrics::register_expiry(metrics.registry(), credentials.clone());

    let admin = AdminServer::bind(args.admin).await?;
    let listener =
        listen(args.listen).with_context(|| format!("cannot listen on --listen {}", args.listen))?;
    let address = listener.local_addr()?;
    let sockets = tcp_connections(listener);
    let incoming = accept_within(door_bounds(), sockets, credentials.clone(), tls_metrics);

    let identity = credentials.identity();
    let options = options(&args, &identity)?;
    let issuer = member_issuer(&args.join, &credentials)?;
    let door = joining_door(args.join.join_listen, issuer.clone(), &credentials)?;
    let mut hub = open(
        args.data.clone(),
        identity.clusterset.clone(),
        options,
        hub_metrics,
    )
    .await?;
    drop(opening);
    hub.reports.register(metrics.registry());
    if let Some(issuer) = issuer {
        let ends = issuer.validity().not_after;
        let renewals = RenewalIssuer::new(issuer, credentials.clone());
        // One that has ended is no reason to serve nobody: it signs nothing, and says so to who asks.
        if ends > hub.clock.wall() {
            renewals.check(hub.clock.wall()).map_err(anyhow::Error::msg)?;
        }
        hub.renewals = Some(renewals);
    }

    let drain = shutdown.drain().clone();
    let lead = Leading::until(&drain, &readiness);
    let leading = lead.leading.clone();
    let mut supervisor = Supervisor::new(shutdown.clone());
    supervisor.spawn("the TLS file watch", reloader.run(drain.clone()));
    supervisor.spawn(
        "the admin port",
        admin.serve(readiness.clone(), metrics.finish(), drain.clone()),
    );
    if let Some(client) = kubernetes {
        let default = || profile::default_namespace(&hub.clusterset);
        let namespace = args.inventory_namespace.clone().unwrap_or_else(default);
        info!(%namespace, "keeping ClusterProfiles in the hub's own Kubernetes cluster");
        let kept = (namespace, access);
        let profiles = ProfileWriter::new(client, kept, &hub, profile_metrics, leading.clone());
        supervisor.spawn("the ClusterProfile writer", lead.clone().keep(profiles.run()));
    }
    if let Some(door) = door {
        hub.joinable = Some(door.joinable);
        info!(address = %door.address, "letting clusters join");
        let service = hub.joining(door.issuer, door.authorities);
        let strangers = accept_strangers(tcp_connections(door.listener), credentials.clone());
        let serving = serve_joining(service, strangers, leading.clone());
        supervisor.spawn("the port at which clusters join", lead.clone().keep(serving));
    }
    let (routes, doors) = (hub.routes(&leading), hub.doors.clone());
    let serving = serve_grpc(routes, doors, incoming, leading);
    supervisor.spawn("the gRPC port", lead.clone().keep(serving));
    supervisor.spawn("the event log's writer", lead.run(hub.run(shutdown)));
    info!(%address, identity = %credentials.identity(), "serving");
    drop(starting);
    supervisor.run().await
}

/// Where clusters join, and what signs for them.
struct JoiningDoor {
    listener: TcpListener,
    address: SocketAddr,
    issuer: Arc<MemberIssuer>,
    authorities: Arc<str>,
    joinable: Joinable,
}

/// The authority that signs for members, if the flags name one.
fn member_issuer(
    args: &JoinArgs,
    credentials: &LiveCredentials,
) -> anyhow::Result<Option<Arc<MemberIssuer>>> {
    let (Some(cert), Some(key)) = (&args.join_cert, &args.join_key) else {
        return Ok(None);
    };
    let read = |flag: &str, path: &Path| {
        let text = std::fs::read_to_string(path);
        text.with_context(|| format!("cannot read {flag} {}", path.display()))
    };
    let (cert, key) = (read("--join-cert", cert)?, read("--join-key", key)?);
    let issuer = MemberIssuer::from_pem(&cert, &key, &credentials.identity().clusterset)?;
    info!(
        until = issuer.validity().last_day(),
        "certificates of members end with --join-cert at the latest"
    );
    Ok(Some(Arc::new(issuer.lasting(args.member_cert_lifetime))))
}

/// Opens the port at which clusters join, if the flags name one.
fn joining_door(
    at: Option<SocketAddr>,
    issuer: Option<Arc<MemberIssuer>>,
    credentials: &LiveCredentials,
) -> anyhow::Result<Option<JoiningDoor>> {
    let (Some(at), Some(issuer)) = (at, issuer) else {
        return Ok(None);
    };
    let current = credentials.current();
    let pin = current.pin().context(
        "the certificate in --tls-cert leads to no authority in --tls-ca: clusters could not know this hub",
    )?;
    let listener = listen(at).with_context(|| format!("cannot listen on --join-listen {at}"))?;
    let address = listener.local_addr()?;
    let authorities = current
        .authorities()
        .iter()
        .map(|der| pem_of(der))
        .collect::<String>();
    Ok(Some(JoiningDoor {
        listener,
        address,
        issuer,
        authorities: authorities.into(),
        joinable: Joinable {
            pin,
            port: address.port(),
        },
    }))
}

/// Serves the one call of clusters that are no members yet, until `drain`.
pub async fn serve_joining<IO>(
    service: JoiningService,
    strangers: Strangers<IO>,
    drain: CancellationToken,
) -> anyhow::Result<()>
where
    IO: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let served = doors::server()
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

/// What the process may have open, and what that leaves for connections.
fn door_bounds() -> DoorBounds {
    let descriptors = descriptors::raise();
    let bounds = DoorBounds::within(descriptors);
    let (connections, handshakes, for_operators) = (bounds.connections, bounds.handshakes, bounds.reserve);
    info!(
        descriptors,
        connections, for_operators, handshakes, "this many sockets may be open"
    );
    if connections < CONNECTIONS_MAX {
        warn!(
            descriptors,
            connections,
            "fewer connections than {CONNECTIONS_MAX} are allowed: a higher limit of open files (ulimit -n, \
             LimitNOFILE) allows more"
        );
    }
    bounds
}

/// What the flags and the certificate say of this hub.
fn options(args: &ServeArgs, identity: &Identity) -> anyhow::Result<Options> {
    let Role::Hub(name) = &identity.role else {
        bail!(
            "--tls-cert is a {}'s certificate ({identity}); `{}` makes one for a hub",
            identity.role.word(),
            advice::certs_hub("DIR")
        );
    };
    Ok(Options {
        hub: name.clone(),
        hub_version: env!("CARGO_PKG_VERSION").into(),
        adopt_epoch: args.adopt_epoch,
        bounds: Bounds {
            retention: args.retention.retention(),
            disk_alarm_percent: args.disk.disk_alarm,
            disk_reserve_percent: args.disk.disk_reserve,
            ..Bounds::default()
        },
    })
}

/// Opens the log and replays it, on a thread that may block.
async fn open(
    data: PathBuf,
    clusterset: Clusterset,
    options: Options,
    metrics: HubMetrics,
) -> anyhow::Result<Hub> {
    let opening = tokio::task::spawn_blocking(move || {
        let clock = Clock::start();
        let new_epoch = Epoch::default().next(clock.wall(), random());
        let log = log::open(&data, &clusterset, new_epoch)?;
        Hub::start(log, options, clock, metrics)
    });
    opening.await.context("opening the event log panicked")?
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
    health_reporter.set_serving::<SyncServer<SyncService>>().await;
    let server = doors::server()
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

/// Reflection over our contract and the health service, so that grpcurl needs no files.
fn reflected() -> tonic_reflection::server::Builder<'static> {
    tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(proto::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
}
