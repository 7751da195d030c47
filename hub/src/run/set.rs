//! Owns: one clusterset of a hub process: its files and ports, its log, and the tasks that serve it.
//! Never: knows whether the process serves others, nor how it ends.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use anyhow::{Context, bail};
use kube::Client;
use prometheus_client::registry::Registry;
use shared::{
    identity::{Identity, Role},
    model::{Clusterset, Epoch, advice},
    process::{Readiness, ReadyHandle, Supervisor, random},
    tls::{
        DoorBounds, Incoming, LiveCredentials, Reloader, TlsMetrics, accept_strangers, accept_within, listen,
        tcp_connections,
    },
};
use tokio::{net::TcpStream, sync::watch};
use tracing::{Instrument, Span, info};

use super::{
    Task,
    joining::{self, JoiningDoor},
    ports::{serve_grpc, serve_joining},
    topologies::{Topologies, Wired},
};
use crate::{
    args::SetArgs,
    bounds::{Bounds, StateBounds},
    certs::MemberIssuer,
    clock::Clock,
    hub::{Hub, HubMetrics},
    inspect::NamedMembers,
    lead::Leading,
    log::{self, Retention, limits::DiskArgs},
    profile::{self, AccessProviders, ProfileMetrics, ProfileWriter},
    session::Reports,
    topology::own::{self, OwnLog},
    writer::Options,
};

/// Settings common to all clustersets of a process.
pub(super) struct Common {
    /// Retention of each log.
    pub(super) retention: Retention,
    /// Bounds of the disk under each log.
    pub(super) disk: DiskArgs,
    /// The bounds on what the members of each may have recorded.
    pub(super) state: StateBounds,
    /// Kubeconfig of the cluster with the ClusterProfiles.
    pub(super) kubeconfig: Option<PathBuf>,
    /// Most members of each that metrics name; absent: none.
    pub(super) member_metrics: Option<u16>,
    /// Connection limits of each port.
    pub(super) doors: DoorBounds,
}

/// A clusterset whose files are read and whose ports are open.
pub(super) struct Prepared {
    args: SetArgs,
    clock: Clock,
    options: Options,
    credentials: Arc<LiveCredentials>,
    reloader: Reloader,
    address: SocketAddr,
    incoming: Incoming<TcpStream>,
    issuer: Option<Arc<MemberIssuer>>,
    door: Option<JoiningDoor>,
    profiles: Profiles,
    metrics: HubMetrics,
    reports: Reports,
    named: Option<NamedMembers>,
    readiness: Readiness,
    opening: ReadyHandle,
    starting: ReadyHandle,
}

/// The parts that write ClusterProfiles.
struct Profiles {
    client: Option<Client>,
    access: AccessProviders,
    metrics: ProfileMetrics,
    topologies: Topologies,
}

/// A clusterset whose log is replayed and whose writer runs.
pub(super) struct Opened {
    set: Serving,
    hub: Hub,
    /// Only where the hub keeps topologies.
    topologies: Option<OwnLog>,
}

/// The rest of the preparation.
struct Serving {
    args: SetArgs,
    credentials: Arc<LiveCredentials>,
    reloader: Reloader,
    address: SocketAddr,
    incoming: Incoming<TcpStream>,
    issuer: Option<Arc<MemberIssuer>>,
    door: Option<JoiningDoor>,
    profiles: Profiles,
    readiness: Readiness,
    starting: ReadyHandle,
}

impl Prepared {
    /// Reads its files and opens its ports. A fault in them is an error before anything is served.
    pub(super) async fn prepare(
        args: SetArgs,
        common: &Common,
        registry: &mut Registry,
        readiness: Readiness,
    ) -> anyhow::Result<Self> {
        let metrics = HubMetrics::register(registry);
        let profile_metrics = ProfileMetrics::register(registry);
        let access = match &args.access_providers {
            Some(file) => AccessProviders::read(file)?,
            None => AccessProviders::default(),
        };
        let client = profile::client(common.kubeconfig.as_deref(), &profile_metrics).await?;
        let clock = Clock::start();
        let mut topologies = Topologies::prepare(args.topology, client.as_ref(), clock, registry).await?;
        if client.is_none() {
            info!("no --kubeconfig and no service account: ClusterProfiles are shown over gRPC only");
        }
        let opening = readiness.handle("event log replayed");
        let starting = readiness.handle("gRPC port open");

        let tls_metrics = TlsMetrics::default();
        let (tls, clients) = (args.tls.clone(), args.clients.clone());
        let (reloader, credentials) = Reloader::load_for_hub(tls, clients, tls_metrics.clone())?;
        tls_metrics.register(registry);
        TlsMetrics::register_expiry(registry, credentials.clone());
        let reports = Reports::new(clock);
        reports.register(registry);
        let named = common
            .member_metrics
            .map(|most| NamedMembers::register(most, registry));

        let listener =
            listen(args.listen).with_context(|| format!("cannot listen on --listen {}", args.listen))?;
        let address = listener.local_addr()?;
        let sockets = tcp_connections(listener);
        let incoming = accept_within(common.doors, sockets, credentials.clone(), tls_metrics);
        let options = options(&args, common, &credentials.identity())?;
        let issuer = joining::member_issuer(&args.join, &credentials, registry)?;
        let door = joining::joining_door(args.join.join_listen, issuer.clone(), &credentials)?;
        let joinable = door.as_ref().map(|door| door.joinable);
        topologies.enrol(&args, joinable, registry)?;
        let profiles = Profiles {
            client,
            access,
            metrics: profile_metrics,
            topologies,
        };
        Ok(Self {
            args,
            clock,
            options,
            credentials,
            reloader,
            address,
            incoming,
            issuer,
            door,
            profiles,
            metrics,
            reports,
            named,
            readiness,
            opening,
            starting,
        })
    }

    /// The clusterset that its certificate names.
    pub(super) fn clusterset(&self) -> Clusterset {
        self.credentials.identity().clusterset
    }

    /// Opens the log and replays it.
    pub(super) async fn open(self) -> anyhow::Result<Opened> {
        let (clusterset, data) = (self.clusterset(), self.args.data.clone());
        let (options, clock, metrics) = (self.options, self.clock, self.metrics);
        let keeps = self.profiles.topologies.keep();
        let topologies = if keeps {
            Some(open_topologies(data.clone(), clusterset.clone(), clock).await?)
        } else {
            None
        };
        let mut hub = open(data, clusterset, options, clock, metrics).await?;
        drop(self.opening);
        hub.reports = self.reports;
        if let Some(named) = self.named {
            named.ask(hub.present.clone(), hub.reports.clone());
        }
        if let Some(issuer) = &self.issuer {
            let credentials = self.credentials.clone();
            hub.renewals = Some(joining::renewals(issuer.clone(), credentials, hub.clock.wall())?);
        }
        let set = Serving {
            args: self.args,
            credentials: self.credentials,
            reloader: self.reloader,
            address: self.address,
            incoming: self.incoming,
            issuer: self.issuer,
            door: self.door,
            profiles: self.profiles,
            readiness: self.readiness,
            starting: self.starting,
        };
        Ok(Opened { set, hub, topologies })
    }
}

impl Opened {
    /// Starts what serves it, as tasks of this supervisor and with its shutdown.
    pub(super) fn run_on(self, supervisor: &mut Supervisor) {
        let Self {
            set,
            mut hub,
            topologies,
        } = self;
        let shutdown = supervisor.shutdown().clone();
        let drain = shutdown.drain().clone();
        let lead = Leading::until(&drain, &set.readiness);
        let leading = lead.leading.clone();
        let span = Span::current();
        let mut spawn = |name, task: Task| supervisor.spawn(name, task.instrument(span.clone()));
        if let Some(issuer) = set.issuer {
            let follow = joining::follow(set.args.join.clone(), issuer, drain.clone());
            spawn("the watch of --join-cert", Box::pin(follow));
        }
        spawn("the TLS file watch", Box::pin(set.reloader.run(drain)));
        if let Some(client) = set.profiles.client {
            let default = || profile::default_namespace(&hub.clusterset);
            let namespace = set.args.inventory_namespace.unwrap_or_else(default);
            info!(%namespace, "keeping ClusterProfiles in the hub's own Kubernetes cluster");
            let kept = (namespace, set.profiles.access);
            let mut profiles =
                ProfileWriter::new(client.clone(), kept, &hub, set.profiles.metrics, leading.clone());
            if let Some(manager) = set.args.cluster_manager {
                profiles = profiles.managed_as(manager);
            }
            hub.topologies = set.profiles.topologies.explains(&client);
            let rollouts = set.args.topology_rollouts;
            let wired = Wired {
                client,
                hub: &hub,
                lead: &lead,
            };
            let observed = set
                .profiles
                .topologies
                .run_on(&wired, (topologies, rollouts), &mut spawn);
            if let Some(observed) = observed {
                profiles = profiles.observing(observed);
            }
            spawn(
                "the ClusterProfile writer",
                Box::pin(lead.clone().keep(profiles.run())),
            );
        }
        if let Some(door) = set.door {
            hub.joinable = Some(door.joinable);
            info!(address = %door.address, "letting clusters join");
            let service = hub.joining(door.issuer, door.authorities);
            let strangers = accept_strangers(tcp_connections(door.listener), set.credentials.clone());
            let serving = serve_joining(service, strangers, leading.clone());
            let serving = Box::pin(lead.clone().keep(serving));
            spawn("the port at which clusters join", serving);
        }
        let told = tell_service(hub.service.clone(), lead.clone());
        spawn("the word on whether the clusterset is served", Box::pin(told));
        let (routes, doors) = (hub.routes(&leading), hub.doors.clone());
        let serving = serve_grpc(routes, doors, set.incoming, leading);
        spawn("the gRPC port", Box::pin(lead.clone().keep(serving)));
        spawn("the event log's writer", Box::pin(lead.run(hub.run(shutdown))));
        info!(address = %set.address, identity = %set.credentials.identity(), "serving");
        drop(set.starting);
    }
}

/// The hub is not ready while members know a later epoch and nobody is served. The log names the members: the admin
/// port shows nothing of clusters.
async fn tell_service(mut served: watch::Receiver<bool>, lead: Leading) -> anyhow::Result<()> {
    let telling = async {
        loop {
            let serves = *served.borrow_and_update();
            let _not_ready = (!serves).then(|| {
                lead.readiness
                    .handle("no other hub: members know a later epoch (see the log)")
            });
            if served.changed().await.is_err() {
                // The writer has ended, and with it this process or its leading.
                return;
            }
        }
    };
    lead.drain.run_until_cancelled(telling).await;
    lead.drain.cancelled().await;
    Ok(())
}

/// The hub's options, from the flags and the certificate.
fn options(args: &SetArgs, common: &Common, identity: &Identity) -> anyhow::Result<Options> {
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
            retention: common.retention,
            disk_alarm_percent: common.disk.disk_alarm,
            disk_reserve_percent: common.disk.disk_reserve,
            state: common.state,
            ..Bounds::default()
        },
    })
}

/// Opens the log of topologies, on a thread that may block.
async fn open_topologies(data: PathBuf, clusterset: Clusterset, clock: Clock) -> anyhow::Result<OwnLog> {
    let span = Span::current();
    let opening = tokio::task::spawn_blocking(move || span.in_scope(|| own::open(&data, &clusterset, clock)));
    opening.await.context("opening the log of topologies panicked")?
}

/// Opens the log and replays it, on a thread that may block.
async fn open(
    data: PathBuf,
    clusterset: Clusterset,
    options: Options,
    clock: Clock,
    metrics: HubMetrics,
) -> anyhow::Result<Hub> {
    let span = Span::current();
    let opening = tokio::task::spawn_blocking(move || {
        span.in_scope(|| {
            let new_epoch = Epoch::default().next(clock.wall(), random());
            let log = log::open(&data, &clusterset, new_epoch)?;
            Hub::start(log, options, clock, metrics)
        })
    });
    opening.await.context("opening the event log panicked")?
}
