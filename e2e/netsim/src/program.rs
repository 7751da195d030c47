//! The two programs as software of simulated machines: the same tasks under the same supervision as the binaries
//! run, over a simulated socket, a log in memory and a simulated cluster's client. What the binaries have besides
//! (flags, signals, the admin port, the watch of TLS files) stays out.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    sync::Arc,
};

use agent::{
    agent::{AgentMetrics, AgentOptions},
    expiry::upkeep::Settings,
    membership::Membership,
};
use hub::{
    clock::Clock,
    hub::{Hub, HubMetrics},
    log::{MemoryDisk, MemoryLog},
    run::serve_grpc,
    writer::Options,
};
use prometheus_client::registry::Registry;
use shared::{
    api::{convert::NamespaceDenyList, names},
    api_client::{self, ApiMetrics},
    model::{ClusterId, Clusterset, Epoch, UnixMillis},
    process::{Readiness, Shutdown, Supervisor, random},
    tls::{HubAddress, HubConnector, LiveCredentials, TlsMetrics, accept},
};
use tokio_util::task::TaskTracker;

use super::{
    network::{HUB_PORT, Pace, SimulatedDial, sockets},
    script::HUB_MACHINES,
};
use sim::SimCluster;

/// The hub's name in the simulated network, and in its certificate.
pub(super) const HUB: &str = "hub";
/// The wall clock at the start of a simulation: 2026-01-01.
pub(super) const WALL_AT_START: u64 = 1_767_225_600_000;

/// The life of the processes on one machine, one after the other.
#[derive(Default)]
pub(super) struct Life {
    /// Processes started.
    pub(super) starts: Cell<u32>,
    /// Why processes ended by themselves; an orderly end leaves nothing.
    pub(super) ends: RefCell<Vec<String>>,
    /// Ends the present process in an orderly way.
    shutdown: RefCell<Shutdown>,
}

impl Life {
    fn begin(&self) -> Shutdown {
        self.starts.set(self.starts.get() + 1);
        let shutdown = Shutdown::default();
        self.shutdown.replace(shutdown.clone());
        shutdown
    }

    fn end(&self, result: anyhow::Result<()>) {
        if let Err(error) = result {
            self.ends.borrow_mut().push(format!("{error:#}"));
        }
    }

    /// The effect of SIGTERM.
    pub(super) fn terminate(&self) {
        self.shutdown.borrow().begin();
    }
}

/// State of the hub's machine, whatever process runs on it.
pub(super) struct HubMachine {
    pub(super) life: Life,
    pub(super) disk: RefCell<MemoryDisk>,
    /// Processes are started with `--adopt-epoch`.
    pub(super) adopt_epoch: Cell<bool>,
    /// The sessions of the present process.
    pub(super) sessions: RefCell<TaskTracker>,
    pub(super) clusterset: Clusterset,
    pub(super) credentials: Arc<LiveCredentials>,
    /// By how many milliseconds the clock is ahead of which a process has its time, one process after the other.
    pub(super) clocks_ahead: [i64; HUB_MACHINES],
}

/// One process of the hub.
pub(super) async fn run_hub(machine: Rc<HubMachine>) -> turmoil::Result {
    let shutdown = machine.life.begin();
    machine.life.end(hub(&machine, shutdown).await);
    Ok(())
}

async fn hub(machine: &HubMachine, shutdown: Shutdown) -> anyhow::Result<()> {
    let elapsed = u64::try_from(turmoil::sim_elapsed().unwrap_or_default().as_millis())?;
    let ahead = machine.clocks_ahead[machine.life.starts.get() as usize % HUB_MACHINES];
    let clock = Clock::simulated(UnixMillis((WALL_AT_START + elapsed).saturating_add_signed(ahead)));
    let new_epoch = Epoch::default().next(clock.wall(), random());
    let disk = machine.disk.borrow().clone();
    let log = MemoryLog::open(&disk, &machine.clusterset, new_epoch)?;
    let options = Options {
        hub: HUB.into(),
        hub_version: env!("CARGO_PKG_VERSION").into(),
        adopt_epoch: machine.adopt_epoch.get(),
        bounds: Default::default(),
    };
    let metrics = HubMetrics::register(&mut Registry::default());
    let hub = Hub::start_task(Box::new(log), options, clock, metrics)?;
    machine.sessions.replace(hub.sessions.clone());
    let sockets = sockets().await?;
    let incoming = accept(sockets, machine.credentials.clone(), TlsMetrics::default());
    let drain = shutdown.drain().clone();
    let (routes, doors) = (hub.routes(&drain), hub.doors.clone());
    let mut supervisor = Supervisor::new(shutdown.clone());
    supervisor.spawn("the gRPC port", serve_grpc(routes, doors, incoming, drain));
    supervisor.spawn("the event log's writer", hub.run(shutdown));
    supervisor.run().await
}

/// State of an agent's machine, whatever process runs on it.
pub(super) struct AgentMachine {
    /// Its name in the simulated network.
    pub(super) name: &'static str,
    /// The name under which its agent has the Lease: the machine's, or that of the one of which it is a copy.
    pub(super) holder: &'static str,
    pub(super) life: Life,
    pub(super) cluster: SimCluster,
    pub(super) id: ClusterId,
    pub(super) pace: Pace,
    /// Time for which imports stay without the hub.
    pub(super) source_leases: Settings,
    pub(super) credentials: Arc<LiveCredentials>,
}

/// One process of an agent.
pub(super) async fn run_agent(machine: Rc<AgentMachine>) -> turmoil::Result {
    let shutdown = machine.life.begin();
    machine.life.end(agent(&machine, shutdown).await);
    Ok(())
}

async fn agent(machine: &AgentMachine, shutdown: Shutdown) -> anyhow::Result<()> {
    let address = HubAddress {
        host: HUB.into(),
        port: HUB_PORT,
    };
    let dial = SimulatedDial {
        pace: machine.pace.clone(),
    };
    let credentials = machine.credentials.clone();
    let options = AgentOptions {
        membership: Membership {
            cluster: machine.id.clone(),
            clusterset: machine.credentials.identity().clusterset.name().into(),
        },
        client: api_client::over(
            machine.cluster.client_named("tributary-agent"),
            ApiMetrics::default(),
        ),
        connector: HubConnector::new(vec![address], credentials, Arc::new(dial), TlsMetrics::default()),
        namespace: names::TRIBUTARY_NAMESPACE.to_owned(),
        holder: machine.holder.to_owned(),
        deny: NamespaceDenyList::default(),
        all_namespaces: false,
        imports: Default::default(),
        withdrawals: Default::default(),
        renewing: None,
        source_leases: machine.source_leases,
        node_tolerance: agent::health::nodes::TOLERANCE_DEFAULT,
    };
    let supervisor = Supervisor::new(shutdown);
    agent::agent::run(
        options,
        AgentMetrics::default(),
        &Readiness::default(),
        supervisor,
    )
    .await
}
