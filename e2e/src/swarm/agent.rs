//! One agent of a world: watches followed by hand, the observer, the outbox, the link's machine and the driver,
//! turn by turn. What the tasks around them decide in the program, the world's draw decides here.

use std::collections::BTreeSet;

use agent::{
    apply::{ApplyMetrics, Driver, DriverConfig, Handle, Turns},
    lease::AgentLease,
    link::machine::{Introduction, Reaction, Session},
    observe::{Observer, removal},
    outbox::Outbox,
    plan::Touched,
    watch::{Dirty, Watched, Watches},
};
use prost::Message;
use proto::v1;
use shared::{
    api::{ClusterProperty, convert::NamespaceDenyList, names},
    model::{
        ClusterId, ControlPlane, Epoch, Fact, FactKey, Health, ListingGroup, ServiceKey,
        sync::{AgentMessage, DesiredItem, HubMessage, Interest, Namespaces},
    },
    wire,
};
use tokio::runtime::Runtime;

use super::{
    follower::{Follow, Followed, Follower},
    histogram::Histogram,
    network::{IN_FLIGHT_MAX, Network, StreamId},
    script::Draw,
};
use crate::sim::{GIT_VERSION, SimCluster};

/// Namespace of the agent's Lease.
pub(super) const AGENT_NAMESPACE: &str = "tributary-agent";

/// A process of an agent.
pub(super) struct Agent {
    cluster: ClusterId,
    watches: Watches,
    properties: Watched<ClusterProperty>,
    followers: Vec<Box<dyn Follow>>,
    changed: Dirty<ServiceKey>,
    namespaces_changed: Dirty<()>,
    observer: Observer,
    outbox: Outbox,
    handle: Handle,
    turns: Turns,
    schema_read: bool,
    introduction: Introduction,
    lease: AgentLease,
    instance: String,
    known_epoch: Option<Epoch>,
    generation: u64,
    session: Option<Open>,
}

struct Open {
    stream: StreamId,
    machine: Session,
    interest: Interest,
    began_at: u64,
}

impl Agent {
    /// Starts an agent; it takes the Lease. `None` when the API server did not let it.
    pub(super) fn start(
        runtime: &Runtime,
        cluster: &SimCluster,
        client: kube::Client,
        name: &ClusterId,
        instance: u64,
    ) -> Option<Self> {
        let instance = format!("{instance:032x}");
        let (lease, taken) = runtime
            .block_on(AgentLease::take(client.clone(), AGENT_NAMESPACE, &instance))
            .ok()?;
        let fingerprint = cluster.get("Namespace", "", "kube-system")?["metadata"]["uid"]
            .as_str()?
            .to_owned();
        let watches = Watches::default();
        let properties = Watched::new(|_| None);
        let config = DriverConfig {
            cluster: name.clone(),
            deny: NamespaceDenyList::default(),
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
            turns: Turns::new(driver),
            schema_read: false,
            introduction: Introduction {
                agent_version: "swarm".into(),
                cluster_fingerprint: fingerprint.into(),
                instance: instance.as_str().into(),
                lease_transitions: taken.transitions,
            },
            lease,
            instance,
            known_epoch: taken.epoch,
            generation: 0,
            session: None,
        })
    }

    /// Another agent holds the Lease: this one ends as soon as it tries to renew it.
    pub(super) fn is_replaced(&self, cluster: &SimCluster) -> bool {
        let lease = cluster.get("Lease", AGENT_NAMESPACE, names::AGENT_LEASE);
        lease.is_none_or(|lease| lease["spec"]["holderIdentity"] != self.instance.as_str())
    }

    /// One turn of one watch.
    pub(super) fn follow(
        &mut self,
        index: usize,
        cluster: &SimCluster,
        cut: bool,
        seen: &mut Histogram,
    ) -> bool {
        let index = index % self.followers.len();
        match self.followers[index].turn(cluster, cut) {
            Followed::Nothing => false,
            Followed::Something => true,
            Followed::CutOff => {
                seen.count("listing cut off");
                true
            }
        }
    }

    /// One turn of every watch.
    pub(super) fn follow_all(&mut self, cluster: &SimCluster, seen: &mut Histogram) -> bool {
        let mut any = false;
        for index in 0..self.followers.len() {
            any |= self.follow(index, cluster, false, seen);
        }
        any
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

    fn interest(&self, generation: u64) -> Interest {
        Interest {
            generation,
            namespaces: Namespaces::Only(self.namespaces()),
        }
    }

    fn namespaces(&self) -> BTreeSet<Box<str>> {
        let all = self.watches.namespaces.all();
        let names = all
            .iter()
            .filter_map(|namespace| namespace.metadata.name.as_deref());
        names.map(Into::into).collect()
    }

    /// Opens a session, if there is none and the way is free. Returns the stream.
    pub(super) fn connect(&mut self, site: usize, network: &mut Network, now: u64) -> Option<StreamId> {
        if self.session.is_some() || !self.watches.namespaces.is_listed() {
            return None;
        }
        let stream = network.open(site)?;
        self.generation += 1;
        let interest = self.interest(self.generation);
        let held = self.handle.sources_held();
        let mut begun = None;
        self.handle.feed(|desired| {
            let known = self.known_epoch;
            let (introduction, outbox) = (&self.introduction, &mut self.outbox);
            begun = Some(Session::begin(
                introduction,
                known,
                &interest,
                outbox,
                desired,
                held,
                0,
            ));
            Touched::none()
        });
        let (machine, hello) = begun?;
        self.session = Some(Open {
            stream,
            machine,
            interest,
            began_at: now,
        });
        let hello = wire::agent_message_to_proto(AgentMessage::Hello(Box::new(hello)));
        let stream_of = network.streams.get_mut(&stream)?;
        stream_of.to_hub.push_back(hello.encode_to_vec());
        Some(stream)
    }

    /// States what no member may state, as a broken or a foreign agent would.
    pub(super) fn forge(&mut self) {
        let key = FactKey::ClusterProperty("forged".into());
        self.outbox.set(key, Some(wire::encode_fact(&Fact::MemberLost)));
    }

    /// Ends its session.
    pub(super) fn disconnect(&mut self, network: &mut Network) {
        let Some(open) = self.session.take() else { return };
        network.agent_leaves(open.stream);
        self.outbox.end_session();
        self.handle.feed(|desired| {
            desired.session_ended();
            Touched::none()
        });
    }

    /// Says one thing, if there is anything to say and room. A heartbeat does not count.
    pub(super) fn speak(&mut self, network: &mut Network, now: u64, trace: &mut blake3::Hasher) -> bool {
        self.follow_namespaces();
        let Some(open) = &mut self.session else {
            return false;
        };
        let room = |stream: &&mut super::network::Stream| stream.to_hub.len() < IN_FLIGHT_MAX;
        let Some(stream) = network.streams.get_mut(&open.stream).filter(room) else {
            return false;
        };
        let Some(message) = open.machine.poll(&mut self.outbox, now - open.began_at) else {
            return false;
        };
        let idle = matches!(message, AgentMessage::Heartbeat);
        let message = wire::agent_message_to_proto(message);
        if !idle {
            tracing::debug!(cluster = %self.cluster, ?message, "agent says");
        }
        let bytes = message.encode_to_vec();
        trace.update(&bytes);
        stream.to_hub.push_back(bytes);
        !idle
    }

    /// Reads one message, or learns that the stream is gone, or gives it up.
    pub(super) fn listen(
        &mut self,
        runtime: &Runtime,
        network: &mut Network,
        now: u64,
        seen: &mut Histogram,
    ) -> Result<bool, String> {
        let Some(open) = &mut self.session else {
            return Ok(false);
        };
        let at = now - open.began_at;
        let Some(bytes) = network.take_for_agent(open.stream) else {
            if network.hub_is_gone(open.stream).is_some() {
                self.disconnect(network);
                return Ok(true);
            }
            if open.machine.check_silence(at).is_err() {
                seen.count("silence ended a session");
                self.disconnect(network);
                return Ok(true);
            }
            return Ok(false);
        };
        let message = v1::HubMessage::decode(&*bytes).map_err(|error| error.to_string())?;
        let message: HubMessage = wire::hub_message_from_proto(message).map_err(|error| error.to_string())?;
        let news = !matches!(message, HubMessage::Heartbeat(_));
        let mut reaction = Ok(Reaction::default());
        self.handle.feed(|desired| {
            reaction = open
                .machine
                .on_message(message, &mut self.outbox, desired, decode, at);
            let touched = reaction
                .as_mut()
                .ok()
                .and_then(|reaction| reaction.touched.take());
            touched.unwrap_or(Touched::none())
        });
        match reaction {
            Ok(reaction) => self.react(runtime, reaction, network)?,
            Err(_) => self.disconnect(network),
        }
        Ok(news)
    }

    fn react(&mut self, runtime: &Runtime, reaction: Reaction, network: &mut Network) -> Result<(), String> {
        if let Some(welcome) = &reaction.welcomed {
            if self.known_epoch.is_some_and(|known| welcome.epoch < known) {
                return Err(format!("{} took an epoch lower than it has known", self.cluster));
            }
            if self.known_epoch.is_none_or(|known| known < welcome.epoch) {
                match runtime.block_on(self.lease.remember(welcome.epoch)) {
                    Ok(()) => self.known_epoch = Some(welcome.epoch),
                    // Before it is remembered nothing of it may be applied.
                    Err(_) => self.disconnect(network),
                }
            }
        }
        for key in &reaction.refused {
            if let (FactKey::Export(service), Some(refusal)) = (key, self.outbox.refusal(key)) {
                self.handle.export_refused(service, Some(&refusal.message));
            }
        }
        Ok(())
    }

    fn follow_namespaces(&mut self) {
        if self.namespaces_changed.take_now().is_empty() {
            return;
        }
        let present = self.namespaces();
        let Some(open) = &mut self.session else { return };
        let Namespaces::Only(known) = &open.interest.namespaces else {
            return;
        };
        if present == *known {
            return;
        }
        let came = present.difference(known).map(|name| (name.clone(), true));
        let went = known.difference(&present).map(|name| (name.clone(), false));
        let changes: Vec<(Box<str>, bool)> = came.chain(went).collect();
        self.generation += 1;
        let generation = self.generation;
        self.handle.feed(|desired| {
            for (namespace, exists) in &changes {
                match exists {
                    true => desired.namespace_added(generation, namespace),
                    false => desired.namespace_removed(namespace),
                }
            }
            Touched::none()
        });
        for (namespace, exists) in &changes {
            open.machine.interest_changed(generation, namespace, *exists);
        }
        open.interest = Interest {
            generation,
            namespaces: Namespaces::Only(present),
        };
    }

    /// Works on one of the services that wait.
    pub(super) fn apply(&mut self, runtime: &Runtime, draw: &mut Draw) -> bool {
        if !self.schema_read {
            self.schema_read = runtime.block_on(self.turns.read_schema());
            return true;
        }
        let waiting: Vec<ServiceKey> = self.turns.waiting().iter().cloned().collect();
        let Some(service) = waiting.get(draw.index(waiting.len())) else {
            return false;
        };
        runtime.block_on(self.turns.work(service));
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
        open && current && self.outbox.depth() == (0, 0) && self.turns.is_settled()
    }

    /// Keys that it holds, for the bound of its memory: facts, and what waits or is unacknowledged.
    pub(super) fn sizes(&self) -> (usize, usize) {
        let keys =
            self.outbox.keys(ListingGroup::Exports).len() + self.outbox.keys(ListingGroup::Properties).len();
        let (waiting, sent) = self.outbox.depth();
        (keys, waiting + sent)
    }
}

fn decode(item: bytes::Bytes) -> Option<DesiredItem> {
    wire::decode_desired(item).ok()
}
