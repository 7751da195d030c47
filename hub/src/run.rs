//! The wiring of `serve`: what belongs to the process, and one clusterset or several beside it, under supervision.
//! It decides nothing about facts; it only connects.
//!
//! * `set.rs`: one clusterset. `ports.rs`, `joining.rs`: what it serves.
//! * `memory.rs`: how much memory the process may have.
//! * `topologies.rs`: what it does about topologies.
//! * `layout.rs`: the file that names several. `several.rs`: they run beside each other, and each ends alone.
//! * `own_lease.rs`: how the process says in its own cluster that it runs. `webhook.rs`: what it answers to the API server there.

mod joining;
mod layout;
pub(crate) mod memory;
mod own_lease;
mod ports;
mod set;
mod several;
mod topologies;
mod webhook;

use std::{net::SocketAddr, path::Path};

use shared::{
    api::identity_lease::IdentityLease,
    process::{AdminServer, LogArgs, Metrics, Readiness, Shutdown, Supervisor},
    tls::{CONNECTIONS_MAX, DoorBounds, install_crypto_provider},
};
use tracing::{info, warn};

use crate::{
    args::{ServeArgs, SetArgs, StateArgs},
    bounds::StateBounds,
    descriptors,
    topology::webhook::Webhook,
};

use layout::Layout;
use set::{Common, Prepared};

pub use layout::SETS_MAX;
pub use ports::{serve_grpc, serve_joining};

/// One task of a clusterset.
type Task = futures::future::BoxFuture<'static, anyhow::Result<()>>;

/// The clustersets of a file, for a process whose admin port is this one. An error: it holds a mistake.
pub fn sets(file: &Path, admin: SocketAddr) -> anyhow::Result<Vec<SetArgs>> {
    let sets = Layout::read(file, admin)?.sets;
    Ok(sets.into_iter().map(|(_, set)| set).collect())
}

/// The parts of the process, however many clustersets it serves.
struct Process {
    shutdown: Shutdown,
    metrics: Metrics,
    readiness: Readiness,
    admin: AdminServer,
    /// The Lease that shows that it runs, if it has a cluster for it.
    own_lease: Option<IdentityLease>,
    /// The webhook for that cluster's API server.
    webhook: Option<Webhook>,
}

/// Runs the hub until it is told to stop or a part of it fails.
pub fn serve(log: &LogArgs, args: ServeArgs) -> anyhow::Result<()> {
    log.init()?;
    install_crypto_provider()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let layout = args
            .clustersets
            .as_deref()
            .map(|file| Layout::read(file, args.admin));
        let layout = layout.transpose()?;
        let shutdown = Shutdown::default();
        tokio::spawn(shutdown.listen()?);
        let mut metrics = Metrics::new("tributary_hub", env!("CARGO_PKG_VERSION"));
        let own_lease = own_lease::prepare(&args, metrics.registry()).await?;
        let webhook = webhook::prepare(&args, metrics.registry()).await?;
        let process = Process {
            shutdown,
            metrics,
            own_lease,
            webhook,
            readiness: Readiness::default(),
            admin: AdminServer::bind(args.admin).await?,
        };
        let sets = layout.as_ref().map_or(1, |layout| layout.sets.len());
        let common = Common {
            retention: args.retention.retention(),
            disk: args.disk,
            state: state_bounds(args.state, sets),
            kubeconfig: args.kubeconfig,
            member_metrics: args.member_metrics,
            doors: door_bounds(sets),
        };
        match (layout, args.set.0) {
            (Some(layout), _) => process.several(layout, &common).await,
            (None, Some(set)) => process.one(set, &common).await,
            (None, None) => anyhow::bail!("neither flags of a clusterset nor --clustersets were given"),
        }
    })
}

impl Process {
    /// One clusterset, whose end is the end of the process.
    async fn one(mut self, set: SetArgs, common: &Common) -> anyhow::Result<()> {
        let (registry, readiness) = (self.metrics.registry(), self.readiness.clone());
        let prepared = Prepared::prepare(set, common, registry, readiness).await?;
        let opened = prepared.open().await?;
        let mut supervisor = self.supervisor();
        opened.run_on(&mut supervisor);
        supervisor.run().await
    }

    /// Several, each of which ends alone; the end of the last is the end of the process.
    async fn several(mut self, layout: Layout, common: &Common) -> anyhow::Result<()> {
        let (shutdown, readiness) = (self.shutdown.clone(), self.readiness.clone());
        let sets = several::prepare(layout, common, self.metrics.registry(), &readiness).await?;
        let mut supervisor = self.supervisor();
        supervisor.spawn("the last clusterset", several::run(sets, shutdown));
        supervisor.run().await
    }

    /// A supervisor that has what is the process's own: the admin port, its Lease, the webhook. Everything that counts is
    /// registered.
    fn supervisor(self) -> Supervisor {
        let drain = self.shutdown.drain().clone();
        let mut supervisor = Supervisor::new(self.shutdown);
        if let Some(lease) = self.own_lease {
            supervisor.spawn("the Lease of this process", lease.run(drain.clone()));
        }
        if let Some(webhook) = self.webhook {
            supervisor.spawn("the admission webhook", webhook.run(drain.clone()));
        }
        let admin = self.admin.serve(self.readiness, self.metrics.finish(), drain);
        supervisor.spawn("the admin port", admin);
        supervisor
    }
}

/// Returns the bounds of each of so many clustersets.
fn state_bounds(args: StateArgs, sets: usize) -> StateBounds {
    if let Some(most) = memory::too_much(args.state_memory, memory::limit()) {
        warn!(
            state_memory = args.state_memory,
            most,
            "the memory limit of this process leaves less for the state than --state-memory: members can make the hub run \
             out of memory. Raise the limit, or lower --state-memory to this"
        );
    }
    args.bounds(sets)
}

/// The connection limits: of the process, and of each of so many clustersets.
fn door_bounds(sets: usize) -> DoorBounds {
    let descriptors = descriptors::raise() / sets.max(1);
    let bounds = DoorBounds::within(descriptors);
    let (connections, handshakes, for_operators) = (bounds.connections, bounds.handshakes, bounds.reserve);
    info!(
        descriptors,
        connections, for_operators, handshakes, "connection limits"
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
