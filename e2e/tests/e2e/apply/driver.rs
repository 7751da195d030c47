//! The driver of one agent, and a hub's words to it. It asserts nothing.

use std::{collections::BTreeSet, sync::Arc};

use agent::{
    apply::{ApplyMetrics, Driver, DriverConfig, Handle, ManualDriver},
    definition,
    lease::WritePermit,
    watch::{Watches, follow_all},
};
use shared::{
    api::convert::NamespaceDenyList,
    api_client::api_server,
    model::{
        ChainHash, ClusterId, Cursor, Endpoint, EndpointPort, Epoch, ImportedSlice, ImportedSliceKey,
        IpFamily, Metadata, Protocol, Revision, ServiceImport, ServiceKey, ServicePolicies, ServicePort,
        ServiceType, SessionAffinity, SessionId, UnixMillis,
        policy::Brake,
        sync::{
            DesiredChange, DesiredItem, Interest, Namespaces, PROTOCOL_VERSION, Source, SourceState, UpTo,
            Welcome,
        },
    },
};
use sim::SimCluster;
use tokio_util::sync::CancellationToken;

pub(super) fn id(name: &str) -> ClusterId {
    ClusterId::new(name).expect("a cluster id")
}

pub(super) fn key() -> ServiceKey {
    ServiceKey::new("shop", "cart").expect("a key")
}

pub(crate) fn port(name: &str, number: u16) -> ServicePort {
    ServicePort {
        name: name.into(),
        protocol: Protocol::Tcp,
        port: number,
        app_protocol: None,
    }
}

pub(crate) fn import(ports: &[ServicePort], clusters: &[&str]) -> ServiceImport {
    let all: Vec<u16> = (0..).take(ports.len()).collect();
    ServiceImport {
        service: key(),
        service_type: ServiceType::ClusterSetIp,
        ports: ports.to_vec(),
        policies: ServicePolicies {
            session_affinity: SessionAffinity::None,
            session_affinity_timeout_seconds: None,
            internal_traffic_policy: Some("Cluster".into()),
            traffic_distribution: None,
        },
        ip_families: vec![IpFamily::V4],
        labels: Metadata::from([("tier".into(), "web".into())]),
        annotations: Metadata::from([("example.org/note".into(), "x".into())]),
        clusters: clusters.iter().map(|name| (id(name), all.clone())).collect(),
    }
}

pub(super) fn slice(source: &str, address: &str) -> ImportedSlice {
    ImportedSlice {
        key: ImportedSliceKey {
            service: key(),
            source_cluster: id(source),
            source_slice: "cart-abc".into(),
        },
        address_type: IpFamily::V4,
        ports: vec![EndpointPort {
            name: "http".into(),
            protocol: Protocol::Tcp,
            port: Some(8080),
            app_protocol: None,
        }],
        endpoints: [Endpoint {
            addresses: vec![address.parse().expect("an address")],
            ready: Some(true),
            serving: Some(true),
            terminating: Some(false),
            hostname: Some("cart-0".into()),
            zone: Some("a".into()),
        }]
        .into(),
        import_revision: Revision(0),
    }
}

pub(super) fn source(name: &str, listed: bool) -> Source {
    Source {
        cluster: id(name),
        state: SourceState::Live,
        listed,
        ended: false,
        on_loss: None,
    }
}

/// Two clusters that export http, one slice each.
pub(crate) fn wishes() -> Vec<DesiredChange> {
    let mut all = vec![DesiredChange::Import(Arc::new(import(
        &[port("http", 80)],
        &["east", "west"],
    )))];
    for (cluster, address) in [("east", "10.1.0.1"), ("west", "10.2.0.1")] {
        all.push(DesiredChange::Slice(Arc::new(slice(cluster, address))));
    }
    all
}

pub(crate) fn all_listed() -> [Source; 3] {
    [source("east", true), source("west", true), source("north", true)]
}

pub(super) fn welcome(epoch: Epoch) -> Welcome {
    Welcome {
        protocol_version: PROTOCOL_VERSION,
        features: 0,
        hub_version: "test".into(),
        hub: "hub".into(),
        epoch,
        resume: false,
        list_exports: true,
        list_properties: true,
        session: SessionId(1),
        incarnation: Revision(1),
        heartbeat_interval_millis: 1_000,
        silence_max_millis: 3_000,
        unacknowledged_max: 100,
        term: 1,
        hubs: Vec::new(),
    }
}

/// The driver of one agent.
pub(crate) struct Agent {
    pub(crate) handle: Handle,
    drain: CancellationToken,
    tasks: Vec<tokio::task::JoinHandle<anyhow::Result<()>>>,
}

impl Agent {
    pub(super) fn start(cluster: &SimCluster) -> Self {
        Self::start_on(cluster.client_named("agent"), "shop")
    }

    /// An agent that is interested in one namespace.
    pub(crate) fn start_on(client: kube::Client, namespace: &str) -> Self {
        Self::start_denying(client, namespace, NamespaceDenyList::default())
    }

    /// One that exports nothing from some namespaces.
    pub(crate) fn start_denying(client: kube::Client, namespace: &str, deny: NamespaceDenyList) -> Self {
        Self::start_permitted(client, namespace, deny, WritePermit::unlimited())
    }

    /// One whose services are worked on by hand.
    pub(super) fn start_by_hand(cluster: &SimCluster) -> (Self, ManualDriver) {
        let (client, watches) = (cluster.client_named("agent"), Watches::default());
        let (drain, config) = (
            CancellationToken::new(),
            DriverConfig {
                cluster: id("north"),
                deny: NamespaceDenyList::default(),
                permit: WritePermit::unlimited(),
                withdrawals: Brake::default(),
            },
        );
        let (driver, handle) = Driver::new(
            api_server(client.clone()),
            watches.clone(),
            config,
            ApplyMetrics::default(),
        );
        let tasks = vec![tokio::spawn(follow_all(watches, client, drain.clone()))];
        let agent = Self { handle, drain, tasks };
        agent.interested_in("shop");
        (agent, ManualDriver::new(driver))
    }

    fn interested_in(&self, namespace: &str) {
        self.handle.feed(|desired| {
            let interest = Interest {
                generation: 1,
                namespaces: Namespaces::Only(BTreeSet::from([namespace.into()])),
            };
            (desired.interest(&interest), ())
        });
    }

    /// One that writes as long as it is permitted.
    pub(super) fn start_permitted(
        client: kube::Client,
        namespace: &str,
        deny: NamespaceDenyList,
        permit: WritePermit,
    ) -> Self {
        let (watches, drain) = (Watches::default(), CancellationToken::new());
        let config = DriverConfig {
            cluster: id("north"),
            deny,
            permit,
            withdrawals: Brake::default(),
        };
        let (driver, handle) = Driver::new(
            api_server(client.clone()),
            watches.clone(),
            config,
            ApplyMetrics::default(),
        );
        let tasks = vec![
            tokio::spawn(follow_all(watches, client.clone(), drain.clone())),
            tokio::spawn(driver.run(definition::of_imports(client), drain.clone())),
        ];
        let agent = Self { handle, drain, tasks };
        agent.interested_in(namespace);
        agent
    }

    /// A whole session: snapshot, then the sources.
    pub(crate) fn told(&self, created_at: u64, sources: &[Source], changes: Vec<DesiredChange>) {
        let epoch = Epoch {
            created_at: UnixMillis(created_at),
            random: 1,
        };
        let cursor = Cursor {
            epoch,
            revision: Revision(5),
            hash: ChainHash([0; 16]),
        };
        self.handle.feed(|desired| {
            desired.welcome(&welcome(epoch));
            desired.snapshot_begin(epoch);
            let items = changes.into_iter().map(|change| DesiredItem {
                revision: Revision(5),
                change,
            });
            desired.items(1, items);
            let up_to = UpTo {
                interest_generation: 1,
                cursor,
            };
            (desired.snapshot_complete(&up_to), ())
        });
        self.handle.feed(|desired| (desired.sources_changed(sources), ()));
    }

    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        self.drain.cancel();
        for task in self.tasks {
            task.await??;
        }
        Ok(())
    }
}
