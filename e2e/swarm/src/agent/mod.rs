//! One agent of a world: watches followed by hand, the observer, the outbox, the link's machine and the driver,
//! turn by turn. What the tasks around them decide in the program, the world's draw decides here.

mod differences;
mod leadership;
mod link;
mod sources;
mod way;

use std::sync::Arc;

use agent_core::{
    link::{Introduction, Session},
    outbox::Outbox,
};
use agent_engine::{
    apply::{ApplyMetrics, Driver, DriverConfig, Handle, ManualDriver},
    expiry::SourceLeases,
    lease::{AgentLease, Election, WritePermit},
    observe::{Observer, removal},
    watch::{Dirty, Watched, Watches, Whole},
};
use api::{ClusterProperty, convert::NamespaceDenyList};
use model::{
    ClusterId, ControlPlane, Epoch, Fact, FactKey, Health, KeyFingerprint, ListingGroup, ServiceImport,
    ServiceKey, policy::Brake,
};
use tokio::runtime::Runtime;

pub(super) use self::leadership::Led;
use sim::{GIT_VERSION, SimCluster};

use self::{differences::Differences, leadership::AsksLease, way::Way};
use super::{
    draw::Draw,
    follower::{Follow, Followed, Follower},
    network::{Network, StreamId},
    still::Eyes,
    time::Time,
};

/// Namespace of the agent's Lease.
pub(super) const AGENT_NAMESPACE: &str = "tributary-agent";

/// One agent of so many is of the release before differences.
const OLD_ONE_OF: u64 = 4;

/// The process of an agent, and its pod: one of its own if none is named.
pub(super) struct Place {
    pub(super) instance: u64,
    pub(super) pod: Option<String>,
    /// True if imports go while its hub is away.
    pub(super) expires: bool,
}

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
    /// Absent while it looks at the Lease.
    election: Option<Election>,
    /// Present while it leads, as far as it knows.
    lease: Option<AgentLease>,
    /// The request for the Lease that is not answered yet.
    asks: Option<AsksLease>,
    /// Time of its last look at the Lease, in milliseconds of the world's time.
    looked: Option<u64>,
    permit: WritePermit,
    sources: SourceLeases,
    /// Time of its last look at the Leases of sources, in milliseconds of the world's time.
    looked_at_sources: Option<u64>,
    pub(super) eyes: Eyes,
    pod: String,
    way: Way,
    known_epoch: Option<Epoch>,
    /// It is of the release before differences.
    is_old: bool,
    generation: u64,
    session: Option<Open>,
    /// The key of a certificate that it was given and did not show yet.
    renewed: Option<KeyFingerprint>,
}

/// The services of which anything that is exported changes.
fn services_changed(watches: &Watches) -> Dirty<ServiceKey> {
    let changed = Dirty::default();
    watches.exports.mark_services(&changed);
    watches.services.mark_services(&changed);
    watches.slices.mark_services(&changed);
    changed
}

struct Open {
    stream: StreamId,
    machine: Session,
    differences: Differences,
    began_at: u64,
}

impl Agent {
    /// Starts an agent in a pod; it stands by until it has the Lease. `None` when the cluster does not say who it is.
    pub(super) fn start(cluster: &SimCluster, name: &ClusterId, time: &Time, place: Place) -> Option<Self> {
        let (instance, pod, expires) = (place.instance, place.pod, place.expires);
        let is_old = instance.is_multiple_of(OLD_ONE_OF);
        let clock = leadership::clock(time, instance);
        let instance = format!("{instance:032x}");
        let pod = pod.unwrap_or_else(|| format!("pod-{instance}"));
        let fingerprint = cluster.get("Namespace", "", "kube-system")?["metadata"]["uid"]
            .as_str()?
            .to_owned();
        let (way, permit) = (Way::default(), WritePermit::default());
        let client = way.client(cluster, time);
        let watches = Watches::default();
        let properties = Watched::new(|_| None);
        let config = DriverConfig {
            cluster: name.clone(),
            deny: NamespaceDenyList::default(),
            permit: permit.clone(),
            withdrawals: Brake::default(),
        };
        let election = leadership::election(client.clone(), &pod, clock.clone());
        let (driver, handle) = Driver::new(client.clone(), watches.clone(), config, ApplyMetrics::default());
        let sources = sources::leases(client, &pod, expires, (&handle, &permit), clock);
        let (changed, namespaces_changed) = (services_changed(&watches), Dirty::default());
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
                lease_transitions: 0,
            },
            known_epoch: None,
            election: Some(election),
            asks: None,
            lease: None,
            looked: None,
            sources,
            looked_at_sources: None,
            eyes: Eyes::default(),
            permit,
            pod,
            way,
            is_old,
            generation: 0,
            session: None,
            renewed: None,
        })
    }

    /// One turn of one watch.
    pub(super) fn follow(&mut self, watch: u8, cluster: &SimCluster, cut: bool) -> Followed {
        if self.is_cut_off() {
            return Followed::Nothing;
        }
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
                verdict: None,
                nodes: None,
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
        let may_write = self.may_write();
        self.permit.switch(may_write);
        if !may_write {
            return false;
        }
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
        let current = self.followers.iter().all(|follower| follower.is_current(cluster));
        if self.has_expired_sources() {
            return false; // what is back is renewed, and made anew
        }
        if !self.leads() {
            return current;
        }
        let open = self.session.as_ref().is_some_and(|open| open.machine.is_open());
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
