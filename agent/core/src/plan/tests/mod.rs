//! Tests of the plan, the worst first: what must never be deleted, then what must be written.
//! Here stand the builders and a model of a cluster that performs actions.

mod converge;
mod deletion;
mod desired;
mod differences;
mod expire;
mod export;
mod fixpoint;
mod names;
mod obstacles;
mod progress;
mod rules;
mod shapes;

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use model::{
    ChainHash, ClusterId, Cursor, Endpoint, EndpointPort, Epoch, ExportStatus, ImportedSlice,
    ImportedSliceKey, IpFamily, Metadata, Protocol, Revision, ServiceImport, ServiceKey, ServicePolicies,
    ServicePort, ServiceType, SessionAffinity, SessionId, UnixMillis,
    sync::{
        DesiredChange, DesiredItem, Interest, Namespaces, PROTOCOL_VERSION, Source, SourceState, UpTo,
        Welcome,
    },
};

use super::{
    Action, Desired, Found, Kind, LocalConfig, NamespaceState, Ours, Plan, ServedFields, ServiceView,
    Validity,
    content::{DerivedContent, FamilyPolicy, SliceEndpoint},
    plan, slice_names,
    view::{FoundDerived, FoundExport, FoundImport, Known, OwnSlice},
};

const OWN: &str = "north";

fn cluster(name: &str) -> ClusterId {
    ClusterId::new(name).unwrap()
}

fn key() -> ServiceKey {
    ServiceKey::new("shop", "cart").unwrap()
}

fn config() -> LocalConfig {
    LocalConfig {
        cluster: cluster(OWN),
        served: ServedFields::ALL,
    }
}

fn epoch(created_at: u64) -> Epoch {
    Epoch {
        created_at: UnixMillis(created_at),
        random: 1,
    }
}

fn up_to(created_at: u64, generation: u64, revision: u64) -> UpTo {
    UpTo {
        interest_generation: generation,
        cursor: Cursor {
            epoch: epoch(created_at),
            revision: Revision(revision),
            hash: ChainHash([0; 16]),
        },
    }
}

fn port(name: &str, number: u16) -> ServicePort {
    ServicePort {
        name: name.into(),
        protocol: Protocol::Tcp,
        port: number,
        app_protocol: None,
    }
}

/// An import of all ports by each of the clusters.
fn import(ports: &[ServicePort], clusters: &[&str]) -> ServiceImport {
    let all: Vec<u16> = (0..ports.len() as u16).collect();
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
        labels: Metadata::new(),
        annotations: Metadata::new(),
        clusters: clusters.iter().map(|name| (cluster(name), all.clone())).collect(),
    }
}

fn endpoint(address: &str) -> Endpoint {
    Endpoint {
        addresses: vec![address.parse().unwrap()],
        ready: Some(true),
        serving: None,
        terminating: None,
        hostname: None,
        zone: None,
    }
}

fn endpoint_port(name: &str, number: u16) -> EndpointPort {
    EndpointPort {
        name: name.into(),
        protocol: Protocol::Tcp,
        port: Some(number),
        app_protocol: None,
    }
}

fn slice(source: &str, name: &str, address: &str) -> ImportedSlice {
    ImportedSlice {
        key: ImportedSliceKey {
            service: key(),
            source_cluster: cluster(source),
            source_slice: name.into(),
        },
        address_type: IpFamily::V4,
        ports: vec![endpoint_port("http", 8080)],
        endpoints: [endpoint(address)].into(),
        import_revision: Revision(0),
    }
}

fn source(name: &str, listed: bool) -> Source {
    Source {
        cluster: cluster(name),
        state: SourceState::Live,
        listed,
        ended: false,
        on_loss: None,
    }
}

fn item(revision: u64, change: DesiredChange) -> DesiredItem {
    DesiredItem {
        revision: Revision(revision),
        change,
    }
}

fn status(uid: &str, generation: i64) -> ExportStatus {
    ExportStatus {
        service: key(),
        uid: uid.into(),
        generation,
        conflicts: Vec::new(),
        exporters: 1,
        denial: None,
        left_out: "".into(),
    }
}

fn welcome(created_at: u64, resume: bool) -> Welcome {
    Welcome {
        protocol_version: PROTOCOL_VERSION,
        features: 0,
        hub_version: "test".into(),
        hub: "hub".into(),
        epoch: epoch(created_at),
        resume,
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

fn interest(generation: u64, namespaces: &[&str]) -> Interest {
    Interest {
        generation,
        namespaces: Namespaces::Only(namespaces.iter().map(|&name| name.into()).collect()),
    }
}

/// A session with a complete snapshot of these items.
fn snapshot(desired: &mut Desired, created_at: u64, sources: &[Source], items: Vec<DesiredChange>) {
    desired.welcome(&welcome(created_at, false));
    desired.snapshot_begin(epoch(created_at));
    desired.items(1, items.into_iter().map(|change| item(5, change)));
    desired.snapshot_complete(&up_to(created_at, 1, 5));
    desired.sources_changed(sources);
}

/// Desired state after such a session, by an agent interested in the namespace.
fn told(sources: &[Source], items: Vec<DesiredChange>) -> Desired {
    let mut desired = Desired::default();
    desired.interest(&interest(1, &["shop"]));
    snapshot(&mut desired, 1, sources, items);
    desired
}

fn both(import: ServiceImport, slices: &[ImportedSlice]) -> Vec<DesiredChange> {
    let slices = slices
        .iter()
        .map(|slice| DesiredChange::Slice(Arc::new(slice.clone())));
    std::iter::once(DesiredChange::Import(Arc::new(import)))
        .chain(slices)
        .collect()
}

/// Two clusters export `http`, each with one slice; both are listed.
fn east_and_west() -> Desired {
    let slices = [slice("east", "a", "10.1.0.1"), slice("west", "b", "10.2.0.1")];
    told(
        &[source("east", true), source("west", true), source(OWN, true)],
        both(import(&[port("http", 80)], &["east", "west"]), &slices),
    )
}

/// A cluster in which only this service exists.
#[derive(Debug, Clone)]
struct Model {
    view: ServiceView,
    next: u64,
    families: Vec<IpFamily>,
    /// Every action it performed.
    done: Vec<Action>,
}

impl Model {
    fn new() -> Self {
        let known = Known {
            imports: true,
            services: true,
            slices: true,
            exports: true,
        };
        Self {
            view: ServiceView {
                namespace: NamespaceState::Active,
                known,
                ..ServiceView::default()
            },
            next: 0,
            families: vec![IpFamily::V4],
            done: Vec::new(),
        }
    }

    fn uid(&mut self) -> Box<str> {
        self.next += 1;
        format!("uid-{}", self.next).into()
    }

    /// Plans and performs until nothing is left to do.
    #[track_caller]
    fn settle(&mut self, desired: &Desired) -> Plan {
        self.settle_with(desired, &config())
    }

    #[track_caller]
    fn settle_with(&mut self, desired: &Desired, config: &LocalConfig) -> Plan {
        self.settle_watched(desired, config, |_| {})
    }

    /// Lets `watch` look at the cluster after every action.
    #[track_caller]
    fn settle_watched(&mut self, desired: &Desired, config: &LocalConfig, watch: impl Fn(&Self)) -> Plan {
        for _ in 0..8 {
            let plan = plan(desired, &self.view, config, &key());
            if plan.is_settled() {
                return plan;
            }
            for action in plan.actions {
                self.perform(action);
                watch(self);
            }
        }
        panic!("no fixpoint: {:#?}", plan(desired, &self.view, config, &key()));
    }

    /// Starts from a settled cluster.
    #[track_caller]
    fn settled(desired: &Desired) -> Self {
        let mut model = Self::new();
        model.settle(desired);
        model.done.clear();
        model
    }

    fn perform(&mut self, action: Action) {
        self.done.push(action.clone());
        match action {
            Action::ApplyImport { uid, content, .. } => {
                let status = match self.view.import.ours() {
                    Some(ours) => ours.content.status.clone(),
                    None => Default::default(),
                };
                let content = FoundImport { content, status };
                self.view.import = self.applied(uid, self.view.import.clone(), content);
            }
            Action::ApplyImportStatus { status, .. } => {
                let Found::Ours(ours) = &mut self.view.import else {
                    panic!("status of an import that is not there")
                };
                ours.content.status = status;
            }
            Action::ApplyDerived {
                uid,
                content,
                cluster_ips,
                ..
            } => self.apply_derived(uid, content, cluster_ips),
            Action::ApplySlice {
                name, uid, content, ..
            } => {
                unique(content.ports.iter().map(|port| &port.name));
                let before = self.view.slices.get(&name).cloned().unwrap_or_default();
                let after = self.applied(uid, before, content);
                self.view.slices.insert(name, after);
            }
            Action::Delete { kind, name, uid } => self.delete(kind, &name, &uid),
            Action::ApplyExportStatus { uid, conditions } => {
                let export = self.view.export.as_mut().expect("an export");
                assert_eq!(export.uid, uid);
                export.conditions = conditions;
            }
            Action::ExportEvent { .. } => {}
        }
    }

    #[track_caller]
    fn applied<T>(&mut self, uid: Option<Box<str>>, before: Found<T>, content: T) -> Found<T> {
        match before {
            Found::Absent => {
                assert_eq!(uid, None, "a change of what is not there");
                Found::Ours(ours(self.uid(), content))
            }
            Found::Stranger => panic!("wrote a stranger's object"),
            Found::Ours(before) => {
                assert_eq!(uid, Some(before.uid.clone()), "wrote another object");
                Found::Ours(ours(before.uid, content))
            }
        }
    }

    #[track_caller]
    fn apply_derived(&mut self, uid: Option<Box<str>>, mut content: DerivedContent, asked: Vec<IpAddr>) {
        let names = content.ports.iter().map(|port| &port.name);
        assert!(
            content.ports.len() < 2 || names.clone().all(|name| !name.is_empty()),
            "several ports, and one without a name: {:?}",
            content.ports
        );
        unique(names);
        let before = self.view.derived.clone();
        let mut ips = before
            .ours()
            .map_or(asked, |ours| ours.content.cluster_ips.clone());
        if content.family_policy == Some(FamilyPolicy::PreferDualStack) {
            let more = self
                .families
                .iter()
                .filter(|family| !content.ip_families.contains(family));
            let more: Vec<IpFamily> = more.copied().collect();
            content.ip_families.extend(more);
        }
        content
            .ip_families
            .retain(|family| self.families.contains(family));
        for &family in content.ip_families.iter().skip(ips.len()) {
            self.next += 1;
            ips.push(match family {
                IpFamily::V4 => IpAddr::from([10, 96, 0, self.next as u8]),
                IpFamily::V6 => IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, self.next as u16]),
            });
        }
        ips.truncate(content.ip_families.len());
        let found = FoundDerived {
            content,
            cluster_ips: ips,
        };
        self.view.derived = self.applied(uid, before, found);
    }

    #[track_caller]
    fn delete(&mut self, kind: Kind, name: &str, uid: &str) {
        let found = match kind {
            Kind::Import => std::mem::take(&mut self.view.import)
                .ours()
                .map(|ours| ours.uid.clone()),
            Kind::Derived => std::mem::take(&mut self.view.derived)
                .ours()
                .map(|ours| ours.uid.clone()),
            Kind::Slice => self
                .view
                .slices
                .remove(name)
                .and_then(|found| Some(found.ours()?.uid.clone())),
        };
        assert_eq!(found.as_deref(), Some(uid), "deleted another object");
    }

    fn deletions(&self) -> usize {
        let deletion = |action: &&Action| matches!(action, Action::Delete { .. });
        self.done.iter().filter(deletion).count()
    }

    fn import(&self) -> &FoundImport {
        &self.view.import.ours().expect("an import").content
    }

    fn derived(&self) -> &FoundDerived {
        &self.view.derived.ours().expect("a derived Service").content
    }

    /// Source cluster and first address of every imported slice.
    fn slices(&self) -> Vec<(String, String)> {
        let mut all: Vec<_> = self
            .view
            .our_slices()
            .map(|(_, slice)| {
                let cluster = slice.content.source_cluster.as_ref().expect("a source");
                let address = slice.content.endpoints[0].endpoint.addresses[0];
                (cluster.to_string(), address.to_string())
            })
            .collect();
        all.sort();
        all
    }

    /// Gives the cluster a Service of its own with one slice, exported and valid.
    fn export(&mut self, ports: &[ServicePort], address: &str) {
        self.view.export = Some(FoundExport {
            uid: "export-1".into(),
            generation: 1,
            deleting: false,
            validity: Validity::Valid,
            metadata_left_out: "".into(),
            conditions: Vec::new(),
        });
        self.view.service_ports = Some(ports.to_vec());
        self.view.own_slices = vec![OwnSlice {
            name: "cart-own".into(),
            address_type: IpFamily::V4,
            ports: ports.iter().map(|port| endpoint_port(&port.name, 8080)).collect(),
            endpoints: vec![SliceEndpoint {
                endpoint: endpoint(address),
                node_name: Some("node-1".into()),
                target_ref: None,
                for_zones: Vec::new(),
            }],
        }];
    }
}

/// As the API server requires of the ports of Services and slices.
#[track_caller]
fn unique<'a>(names: impl Iterator<Item = &'a Box<str>>) {
    let names: Vec<&Box<str>> = names.collect();
    let different: std::collections::BTreeSet<_> = names.iter().collect();
    assert_eq!(different.len(), names.len(), "one name for two ports: {names:?}");
}

fn ours<T>(uid: Box<str>, content: T) -> Ours<T> {
    Ours {
        uid,
        deleting: false,
        intact: true,
        content,
    }
}

fn words(actions: &[Action]) -> Vec<&'static str> {
    let word = |action: &Action| match action {
        Action::ApplyImport { .. } => "import",
        Action::ApplyImportStatus { .. } => "import status",
        Action::ApplyDerived { .. } => "service",
        Action::ApplySlice { .. } => "slice",
        Action::Delete {
            kind: Kind::Import, ..
        } => "delete import",
        Action::Delete {
            kind: Kind::Derived, ..
        } => "delete service",
        Action::Delete {
            kind: Kind::Slice, ..
        } => "delete slice",
        Action::ApplyExportStatus { .. } => "export status",
        Action::ExportEvent { .. } => "event",
    };
    actions.iter().map(word).collect()
}

fn strangers(desired: &Desired) -> BTreeMap<Box<str>, Found<super::content::SliceContent>> {
    slice_names(desired, &cluster(OWN), std::iter::empty(), &key())
        .into_iter()
        .map(|name| (name, Found::Stranger))
        .collect()
}
