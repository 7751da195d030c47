//! A hub in memory: members that report, and clients with certificates that need no TLS to be believed.

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::AtomicU64},
};

use prometheus_client::registry::Registry;
use shared::{
    identity::Identity,
    model::{
        ClusterId, Clusterset, Cursor, Endpoint, EndpointPort, EndpointSlice, Epoch, Export, Fact, FactKey,
        IpFamily, KeyFingerprint, ListingGroup, Protocol, ServiceKey, ServicePolicies, ServicePort,
        ServiceType, SessionAffinity, SessionId, SliceKey, UnixMillis,
        sync::{Hello, Interest, Observation, ObservedItem, PROTOCOL_VERSION},
    },
    tls::PeerIdentity,
    wire,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tonic::Request;

use crate::{
    clock::Clock,
    hub::{Hub, HubMetrics},
    inspect::Inspection,
    log::{Log, MemoryDisk, MemoryLog},
    membership::MembershipService,
    writer::{
        self, AdmitRequest, CursorCheck, CursorVerdict, NotAdmitted, Options, SessionEvent, SessionSink,
    },
};

pub(crate) const EAST_KEY: KeyFingerprint = KeyFingerprint([0xea; 32]);
pub(crate) const WEST_KEY: KeyFingerprint = KeyFingerprint([0x3e; 32]);

pub(crate) fn clusterset() -> Clusterset {
    Clusterset::new("example.org", "default").expect("valid")
}

pub(crate) fn cluster(id: &str) -> ClusterId {
    ClusterId::new(id).expect("valid")
}

pub(crate) fn peer(uri: &str, key: KeyFingerprint) -> PeerIdentity {
    let identity = Identity::parse(uri).expect("an identity");
    PeerIdentity {
        identity,
        key_fingerprint: key,
        not_after: UnixMillis(u64::MAX),
        issuer: "".into(),
        renewable: false,
        lifetime: Default::default(),
        calls: Default::default(),
        remote: None,
    }
}

/// A request that arrived over a connection of this peer.
pub(crate) fn by<T>(message: T, peer: PeerIdentity) -> Request<T> {
    let mut request = Request::new(message);
    request.extensions_mut().insert(Arc::new(peer));
    request
}

/// A request of the operator alice.
pub(crate) fn by_alice<T>(message: T) -> Request<T> {
    let uri = "spiffe://example.org/clusterset/default/operator/alice";
    by(message, peer(uri, KeyFingerprint([0xa1; 32])))
}

/// A request of the reader dashboard.
pub(crate) fn by_dashboard<T>(message: T) -> Request<T> {
    let uri = "spiffe://example.org/clusterset/default/reader/dashboard";
    by(message, peer(uri, KeyFingerprint([0xda; 32])))
}

/// A request of the reader of a number.
pub(crate) fn by_reader<T>(message: T, number: u8) -> Request<T> {
    let uri = format!("spiffe://example.org/clusterset/default/reader/r{number}");
    by(message, peer(&uri, KeyFingerprint([number; 32])))
}

/// A request with the certificate of a member of a number.
pub(crate) fn by_member<T>(message: T, number: u8) -> Request<T> {
    let uri = format!("spiffe://example.org/clusterset/default/cluster/m{number}");
    by(message, peer(&uri, KeyFingerprint([100 + number; 32])))
}

/// A request of the member west.
pub(crate) fn by_west<T>(message: T) -> Request<T> {
    by(
        message,
        peer("spiffe://example.org/clusterset/default/cluster/west", WEST_KEY),
    )
}

/// A request of the member east.
pub(crate) fn by_east<T>(message: T) -> Request<T> {
    by(
        message,
        peer("spiffe://example.org/clusterset/default/cluster/east", EAST_KEY),
    )
}

/// A hub over a log in memory, and the services that people and tools ask.
pub(crate) struct InspectedHub {
    pub hub: Hub,
    pub inspection: Inspection,
    pub membership: MembershipService,
    pub metrics: Registry,
    pub drain: CancellationToken,
}

impl InspectedHub {
    pub(crate) fn new() -> Self {
        let epoch = Epoch::default().next(UnixMillis(1_000), 7);
        let log = MemoryLog::open(&MemoryDisk::default(), &clusterset(), epoch).expect("opened");
        Self::over(Box::new(log))
    }

    /// The same over another log.
    pub(crate) fn over(log: Box<dyn Log>) -> Self {
        let options = Options {
            hub: "hub".into(),
            hub_version: "test".into(),
            adopt_epoch: false,
            bounds: Default::default(),
        };
        let mut metrics = Registry::default();
        let counts = HubMetrics::register(&mut metrics);
        let hub = Hub::start(log, options, Clock::start(), counts).expect("started");
        let drain = CancellationToken::new();
        let inspection = hub.inspection(drain.clone());
        let membership = MembershipService::new(inspection.clone(), hub.writer.clone());
        Self {
            hub,
            inspection,
            membership,
            metrics,
            drain,
        }
    }

    /// East and west are members; both export shop/cart with different ports, east first; east alone shop/web.
    pub(crate) async fn with_two_members() -> (Self, Member, Member) {
        let inspected = Self::new();
        let mut east = inspected.join("east", EAST_KEY).await;
        let mut west = inspected.join("west", WEST_KEY).await;
        east.report(vec![
            export("shop", "cart", 100, 80),
            slice("shop", "cart", "cart-1", &["10.0.0.1", "10.0.0.2"]),
            export("shop", "web", 100, 80),
        ])
        .await;
        west.report(vec![
            export("shop", "cart", 200, 8080),
            slice("shop", "cart", "cart-x", &["10.1.0.1"]),
        ])
        .await;
        (inspected, east, west)
    }

    /// Somebody shows that the log was rewound: another epoch begins.
    pub(crate) async fn begin_epoch(&self) {
        let mut changed = self.hub.view.subscribe();
        let head = self.hub.view.read().head();
        let ahead = CursorVerdict {
            under: head,
            check: CursorCheck::Ahead,
        };
        let refused = self.admit("north", KeyFingerprint([0x40; 32]), ahead).await;
        assert_eq!(refused.err(), Some(NotAdmitted::NewEpoch));
        while self.hub.view.read().head().epoch == head.epoch {
            changed.changed().await.expect("the writer runs");
        }
    }

    pub(crate) async fn join(&self, id: &str, key: KeyFingerprint) -> Member {
        let absent = CursorVerdict {
            under: Cursor::default(),
            check: CursorCheck::Absent,
        };
        self.admit(id, key, absent).await.expect("admitted")
    }

    async fn admit(
        &self,
        id: &str,
        key: KeyFingerprint,
        cursor: CursorVerdict,
    ) -> Result<Member, NotAdmitted> {
        let (sender, events) = mpsc::unbounded_channel();
        let sink = SessionSink {
            cluster: cluster(id),
            events: sender,
            heard_at: Arc::new(AtomicU64::new(0)),
        };
        let hello = Hello {
            protocol_version: PROTOCOL_VERSION,
            features: 0,
            agent_version: "test".into(),
            highest_epoch: None,
            cluster_fingerprint: format!("uid-{id}").into(),
            instance: format!("instance-{id}").into(),
            lease_transitions: 1,
            cursor: None,
            exports_digest: None,
            properties_digest: None,
            sources_held: Default::default(),
            interest: Interest::default(),
        };
        let request = AdmitRequest {
            cluster: cluster(id),
            key,
            hello,
            cursor,
            pinged: None,
            presented: Default::default(),
        };
        let permit = self.hub.writer.permit().await.expect("the writer runs");
        let admitted = permit.admit(request, sink).await.expect("the writer runs");
        let session = admitted?.welcome.session;
        Ok(Member {
            cluster: cluster(id),
            session,
            writer: self.hub.writer.clone(),
            events,
            sequence: 0,
            reported: BTreeSet::new(),
        })
    }

    pub(crate) fn head(&self) -> u64 {
        self.hub.view.read().head().revision.0
    }
}

/// A member's open session.
pub(crate) struct Member {
    pub cluster: ClusterId,
    session: SessionId,
    writer: writer::WriterHandle,
    events: mpsc::UnboundedReceiver<SessionEvent>,
    sequence: u64,
    /// The services that it reported and did not withdraw.
    reported: BTreeSet<FactKey>,
}

impl Member {
    /// Reports facts and waits until they are durable.
    pub(crate) async fn report(&mut self, facts: Vec<Fact>) {
        for (key, fact) in facts.iter().filter_map(|fact| Some((fact.key()?, fact))) {
            if fact.is_removal() {
                self.reported.remove(&key);
            } else {
                self.reported.insert(key);
            }
        }
        let observations = facts.iter().map(|fact| {
            self.sequence += 1;
            Observation::new(self.sequence, ObservedItem::Fact(wire::encode_fact(fact)))
        });
        let observations = observations.collect();
        let request = writer::Request::Observe {
            session: self.session,
            cluster: self.cluster.clone(),
            observations,
        };
        self.send(request).await;
    }

    /// Lists its exports, all that it reported, and waits until that is durable.
    pub(crate) async fn list(&mut self) {
        self.sequence += 1;
        let request = writer::Request::CompleteListing {
            session: self.session,
            cluster: self.cluster.clone(),
            sequence: self.sequence,
            group: ListingGroup::Exports,
            seen: Arc::new(self.reported.clone()),
        };
        self.send(request).await;
    }

    async fn send(&mut self, request: writer::Request) {
        self.writer.permit().await.expect("the writer runs").send(request);
        loop {
            match self.events.recv().await.expect("the session is open") {
                SessionEvent::Acknowledged(dealt) if dealt.sequence == self.sequence => return,
                SessionEvent::Acknowledged(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

pub(crate) fn service(namespace: &str, name: &str) -> ServiceKey {
    ServiceKey::new(namespace, name).expect("valid")
}

pub(crate) fn export(namespace: &str, name: &str, created_at_seconds: u64, port: u16) -> Fact {
    let port = ServicePort {
        name: "http".into(),
        protocol: Protocol::Tcp,
        port,
        app_protocol: None,
    };
    Fact::ExportUpserted(Arc::new(Export {
        service: service(namespace, name),
        created_at: UnixMillis(created_at_seconds * 1_000),
        uid: format!("{namespace}-{name}-{created_at_seconds}").into(),
        generation: 1,
        service_type: ServiceType::ClusterSetIp,
        ports: vec![port],
        policies: ServicePolicies {
            session_affinity: SessionAffinity::None,
            session_affinity_timeout_seconds: None,
            internal_traffic_policy: None,
            traffic_distribution: None,
        },
        ip_families: vec![IpFamily::V4],
        labels: Default::default(),
        annotations: Default::default(),
    }))
}

pub(crate) fn slice(namespace: &str, name: &str, slice: &str, addresses: &[&str]) -> Fact {
    let endpoint = |address: &&str| Endpoint {
        addresses: vec![address.parse().expect("an address")],
        ready: Some(true),
        serving: None,
        terminating: None,
        hostname: None,
        zone: None,
    };
    Fact::EndpointSliceUpserted(Arc::new(EndpointSlice {
        key: SliceKey {
            service: service(namespace, name),
            name: slice.into(),
        },
        address_type: IpFamily::V4,
        ports: vec![EndpointPort {
            name: "http".into(),
            protocol: Protocol::Tcp,
            port: Some(8080),
            app_protocol: None,
        }],
        endpoints: addresses.iter().map(endpoint).collect(),
    }))
}
