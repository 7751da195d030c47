//! One agent of a world: watches followed by hand, the observer, the outbox, the link's machine and the driver,
//! turn by turn. What the tasks around them decide in the program, the world's draw decides here.

mod differences;
mod link;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use agent::{
    apply::{ApplyMetrics, Driver, DriverConfig, Handle, ManualDriver},
    lease::{AgentLease, Attempt, Election, LeaseMetrics, Monotonic, WritePermit},
    link::machine::{Introduction, Session},
    observe::{Observer, removal},
    outbox::Outbox,
    watch::{Dirty, Watched, Watches, Whole},
};
use shared::{
    api::{ClusterProperty, convert::NamespaceDenyList, names},
    model::{ClusterId, ControlPlane, Epoch, Fact, FactKey, Health, ListingGroup, ServiceImport, ServiceKey},
    wire,
};
use tokio::runtime::Runtime;

use self::differences::Differences;
use super::{
    draw::Draw,
    follower::{Follow, Followed, Follower},
    network::{Network, StreamId},
};
use crate::sim::{GIT_VERSION, SimCluster};

/// Namespace of the agent's Lease.
pub(super) const AGENT_NAMESPACE: &str = "tributary-agent";

/// So often a Lease of another is looked at that does not move: once, after its duration, and after having looked away.
const LOOKS_MAX: usize = 3;
/// One agent of so many is of the release before differences.
const OLD_ONE_OF: u64 = 4;

/// A process of an agent.
pub(super) struct Agent {
    cluster: ClusterId,
    watches: Watches,
    properties: Watched<Whole<ClusterProperty>>,
    followers: Vec<Box<dyn Follow>>,
    changed: Dirty<ServiceKey>,
    namespaces_changed: Dirty<()>,
    observer: Observer,
    outbox: Outbox,
    handle: Handle,
    driver: ManualDriver,
    schema_read: bool,
    introduction: Introduction,
    lease: AgentLease,
    holder: String,
    known_epoch: Option<Epoch>,
    /// It is of the release before differences.
    is_old: bool,
    generation: u64,
    session: Option<Open>,
}

struct Open {
    stream: StreamId,
    machine: Session,
    differences: Differences,
    began_at: u64,
}

impl Agent {
    /// Starts an agent, in a pod of its own; it takes the Lease. One that another agent holds it saw unmoved for its
    /// duration: the other one's renewals did not get through. `None` when the API server did not let it.
    pub(super) fn start(
        runtime: &Runtime,
        cluster: &SimCluster,
        client: kube::Client,
        name: &ClusterId,
        instance: u64,
    ) -> Option<Self> {
        let is_old = instance.is_multiple_of(OLD_ONE_OF);
        let instance = format!("{instance:032x}");
        let holder = format!("pod-{instance}");
        let lease = runtime.block_on(take_lease(client.clone(), &holder))?;
        let fingerprint = cluster.get("Namespace", "", "kube-system")?["metadata"]["uid"]
            .as_str()?
            .to_owned();
        let watches = Watches::default();
        let properties = Watched::new(|_| None);
        let config = DriverConfig {
            cluster: name.clone(),
            deny: NamespaceDenyList::default(),
            permit: WritePermit::unlimited(),
        };
        let (driver, handle) = Driver::new(client, watches.clone(), config, ApplyMetrics::default());
        let (changed, namespaces_changed) = (Dirty::default(), Dirty::default());
        watches.exports.mark_services(&changed);
        watches.services.mark_services(&changed);
        watches.slices.mark_services(&changed);
        watches.namespaces.mark_changes(&namespaces_changed, |_| Some(()));
        let followers: Vec<Box<dyn Follow>> = vec![
            Box::new(Follower::new(watches.namespaces.clone())),
            Box::new(Follower::new(watches.services.clone())),
            Box::new(Follower::new(watches.slices.clone())),
            Box::new(Follower::new(watches.exports.clone())),
            Box::new(Follower::new(watches.imports.clone())),
            Box::new(Follower::new(properties.clone())),
        ];
        Some(Self {
            cluster: name.clone(),
            watches,
            properties,
            followers,
            changed,
            namespaces_changed,
            observer: Observer::new(NamespaceDenyList::default()),
            outbox: Outbox::new(removal),
            handle,
            driver: ManualDriver::new(driver),
            schema_read: false,
            introduction: Introduction {
                agent_version: "swarm".into(),
                cluster_fingerprint: fingerprint.into(),
                instance: instance.as_str().into(),
                lease_transitions: lease.transitions(),
            },
            known_epoch: lease.epoch(),
            lease,
            holder,
            is_old,
            generation: 0,
            session: None,
        })
    }

    /// Another agent holds the Lease: this one ends as soon as it tries to renew it.
    pub(super) fn is_replaced(&self, cluster: &SimCluster) -> bool {
        let lease = cluster.get("Lease", AGENT_NAMESPACE, names::AGENT_LEASE);
        lease.is_none_or(|lease| lease["spec"]["holderIdentity"] != self.holder.as_str())
    }

    /// One turn of one watch.
    pub(super) fn follow(&mut self, watch: u8, cluster: &SimCluster, cut: bool) -> Followed {
        self.followers[usize::from(watch)].turn(cluster, cut)
    }

    /// States what changed, once everything is known.
    pub(super) fn observe(&mut self) -> bool {
        let services = self.changed.take_now();
        let mut something = !services.is_empty() || !self.outbox.is_complete(ListingGroup::Exports);
        something &= self
            .observer
            .services_changed(services, &self.watches, &mut self.outbox);
        if self.properties.is_listed() && !self.outbox.is_complete(ListingGroup::Properties) {
            self.observer
                .look_at_properties(&self.properties, &mut self.outbox);
            let health = Health {
                kubernetes_version: GIT_VERSION.into(),
                control_plane: ControlPlane::Ready,
                failed_checks: Vec::new(),
            };
            let health = wire::encode_fact(&Fact::HealthReported(health.into()));
            self.outbox.set(FactKey::Health, Some(health));
            self.outbox.complete(ListingGroup::Properties);
            something = true;
        }
        something
    }

    /// States what no member may state, as a broken or a foreign agent would.
    pub(super) fn forge(&mut self) {
        let key = FactKey::ClusterProperty("forged".into());
        self.outbox.set(key, Some(wire::encode_fact(&Fact::MemberLost)));
    }

    /// Works on one of the services that wait.
    pub(super) fn apply(&mut self, runtime: &Runtime, draw: &mut Draw, now: u64) -> bool {
        if !self.schema_read {
            self.schema_read = runtime.block_on(self.driver.read_schema());
            return true;
        }
        let waiting: Vec<ServiceKey> = self.driver.waiting().iter().cloned().collect();
        let Some(service) = waiting.get(draw.index(waiting.len())) else {
            return self.driver.lose_patience();
        };
        runtime.block_on(self.driver.work(service, now));
        true
    }

    /// The CRDs changed: the served schema is read again.
    pub(super) fn schema_changed(&mut self) {
        self.schema_read = false;
    }

    /// Nothing is left to say, to read or to do.
    pub(super) fn is_quiet(&self, cluster: &SimCluster) -> bool {
        let open = self.session.as_ref().is_some_and(|open| open.machine.is_open());
        let current = self.followers.iter().all(|follower| follower.is_current(cluster));
        open && current && self.outbox.depth() == (0, 0) && self.driver.is_settled()
    }

    /// The imports that stand, if it said now what it has applied and nothing is parked: those that the hub sent before
    /// that position.
    pub(super) fn says_to_stand(&self) -> Vec<Arc<ServiceImport>> {
        let applied = self.handle.reach_at(0).applied;
        let Some(cursor) = applied.cursor.filter(|_| applied.parked == 0) else {
            return Vec::new();
        };
        self.handle.read(|desired| {
            let services = desired.services();
            let imports = services.iter().filter_map(|service| desired.import(service));
            let before = imports.filter(|import| import.revision <= cursor.revision);
            before.map(|import| import.value.clone()).collect()
        })
    }

    /// Keys that it holds, for the bound of its memory: facts, and what waits or is unacknowledged.
    pub(super) fn sizes(&self) -> (usize, usize) {
        let keys =
            self.outbox.keys(ListingGroup::Exports).len() + self.outbox.keys(ListingGroup::Properties).len();
        let (waiting, sent) = self.outbox.depth();
        (keys, waiting + sent)
    }
}

/// Looks, and looks again when what it saw must be over.
async fn take_lease(client: kube::Client, holder: &str) -> Option<AgentLease> {
    let millis = Arc::new(AtomicU64::new(0));
    let clock: Monotonic = {
        let millis = millis.clone();
        Arc::new(move || Duration::from_millis(millis.load(Ordering::Relaxed)))
    };
    let clock = (clock, WritePermit::default());
    let mut election = Election::new(client, AGENT_NAMESPACE, holder, clock, LeaseMetrics::default());
    for _ in 0..LOOKS_MAX {
        match election.attempt().await {
            Ok(Attempt::Taken(lease)) => return Some(*lease),
            Ok(Attempt::Waiting { longest, .. }) => {
                let longest = u64::try_from(longest.as_millis()).ok()?;
                millis.fetch_add(longest, Ordering::Relaxed);
            }
            Err(_) => return None,
        }
    }
    None
}
