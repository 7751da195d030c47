//! State that the driver shares with the rest of the agent: the desired state, the queue, and the cluster's refusals.
//! Locks are held for moments and never across a request.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use api::{convert::NamespaceDenyList, server::Client};
use model::{ClusterId, FactKey, Revision, ServiceKey, policy::Brake};
use tokio::{
    sync::{Notify, broadcast},
    time::Instant,
};

use super::{
    contention::Contention,
    failing::Failing,
    lock::lock,
    metrics::ApplyMetrics,
    patience::Patience,
    perform::Performer,
    refusals::LearnedRefusals,
    view::{self, RefusedFacts},
};
use crate::{
    lease::WritePermit,
    outbox::Refusal,
    plan::{Desired, Progress, Reach, Report, ServedFields, Settling, Touched, Withdrawals},
    watch::{Dirty, Head, ObjectKey, Watches},
};

/// Most notices of applied services that a slow reader can be behind.
const APPLIED_NOTICES_MAX: usize = 4_096;

/// The driver's settings at start.
#[derive(Debug, Clone)]
pub struct DriverConfig {
    /// This cluster.
    pub cluster: ClusterId,
    /// Namespaces from which nothing is exported.
    pub deny: NamespaceDenyList,
    /// Nothing is written without it.
    pub permit: WritePermit,
    /// The share of imports that a hub may take away at once before it is held, and the time of that hold.
    pub withdrawals: Brake,
}

/// A service's objects are as desired, after at least one write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The service.
    pub service: ServiceKey,
    /// The greatest revision among what was desired of it.
    pub revision: Revision,
}

/// The services that wait for an unmanaged object to free a name, by namespace and name of the object. Its own labels
/// say nothing of them.
#[derive(Debug, Default)]
pub(super) struct TakenNames(Mutex<BTreeMap<ObjectKey, ServiceKey>>);

impl TakenNames {
    /// These unmanaged objects, and no others, are in the way of `service`.
    pub(super) fn replace(&self, service: &ServiceKey, before: &[Report], now: &[Report]) {
        let key = |Report::Stranger { name, .. }: &Report| (service.namespace.clone(), name.clone());
        let mut names = lock(&self.0);
        before.iter().for_each(|report| drop(names.remove(&key(report))));
        names.extend(now.iter().map(|report| (key(report), service.clone())));
    }

    /// The service that waits for the name of this object.
    pub(super) fn waiting_for(&self, object: &Head) -> Option<ServiceKey> {
        let names = lock(&self.0);
        if names.is_empty() {
            return None;
        }
        names.get(&object.key()).cloned()
    }
}

/// The link's way to feed the driver. Clones share one state.
#[derive(Clone)]
pub struct Handle(pub(super) Arc<Shared>);

pub(super) struct Shared {
    pub(super) config: DriverConfig,
    pub(super) client: Client,
    pub(super) watches: Watches,
    pub(super) performer: Performer,
    pub(super) desired: Mutex<Desired>,
    /// The position up to which the hub's objects are applied. Never locked together with `desired`.
    pub(super) progress: Mutex<Progress>,
    /// Signals that the applied position changed.
    pub(super) progressed: Notify,
    /// Signals that the set of confirmed sources may have changed.
    pub(super) confirmed: Notify,
    started: Instant,
    pub(super) queue: Dirty<ServiceKey>,
    /// Absent until the served schema has been read.
    pub(super) served: Mutex<Option<ServedFields>>,
    /// A write showed that the schema changed.
    pub(super) schema_changed: Notify,
    pub(super) refused_facts: Mutex<BTreeMap<ServiceKey, RefusedFacts>>,
    pub(super) refusals: Mutex<LearnedRefusals>,
    /// Writes that fail.
    pub(super) failing: Mutex<Failing>,
    /// Imports that a hub takes away. Locked behind `desired`, or alone.
    pub(super) withdrawals: Mutex<Withdrawals>,
    /// A hold began or ended.
    pub(super) withdrawals_changed: Notify,
    /// Objects that somebody else changes back again and again.
    pub(super) contention: Arc<Mutex<Contention>>,
    pub(super) reports: Mutex<BTreeMap<ServiceKey, Vec<Report>>>,
    /// Names of unmanaged objects, and the services that wait for them.
    pub(super) taken_names: Arc<TakenNames>,
    /// Exports that the hub may answer about any moment.
    pub(super) patience: Patience,
    pub(super) applied: broadcast::Sender<Applied>,
    pub(super) metrics: ApplyMetrics,
}

impl Handle {
    pub(super) fn new(client: Client, watches: Watches, config: DriverConfig, metrics: ApplyMetrics) -> Self {
        let performer = Performer::new(client.clone(), watches.clone(), config.permit.clone());
        let withdrawals = Mutex::new(Withdrawals::new(config.withdrawals));
        Self(Arc::new(Shared {
            config,
            client,
            watches,
            performer,
            desired: Mutex::default(),
            progress: Mutex::default(),
            progressed: Notify::new(),
            confirmed: Notify::new(),
            started: Instant::now(),
            queue: Dirty::default(),
            served: Mutex::default(),
            schema_changed: Notify::new(),
            refused_facts: Mutex::default(),
            refusals: Mutex::default(),
            failing: Mutex::default(),
            withdrawals,
            withdrawals_changed: Notify::new(),
            contention: metrics.contention.clone(),
            reports: Mutex::default(),
            taken_names: Arc::default(),
            patience: Patience::default(),
            applied: broadcast::Sender::new(APPLIED_NOTICES_MAX),
            metrics,
        }))
    }

    /// Changes the desired state; whatever that touches is planned again. Gives back what the change gives.
    pub fn feed<T>(&self, change: impl FnOnce(&mut Desired) -> (Touched, T)) -> T {
        let mut desired = lock(&self.0.desired);
        let (touched, outcome) = change(&mut desired);
        // A message about an object has no position.
        let cursor = match &touched {
            Touched::Services(services) if !services.is_empty() => None,
            _ => desired.cursor(),
        };
        drop(desired);
        if touched == Touched::All {
            lock(&self.0.progress).begin_anew();
        }
        if matches!(touched, Touched::All | Touched::Sources(_)) {
            self.0.confirmed.notify_one();
        }
        let services = match touched {
            Touched::Exports(services) => return self.mark(services, outcome),
            Touched::Services(services) => services,
            Touched::Namespaces(namespaces) => self.0.services_in(&namespaces),
            Touched::Sources(settling) => self.0.services_from(&settling),
            Touched::All => self.0.all_services(),
        };
        // In this order: work that ends before it is noted is done again, because it is marked after it.
        if lock(&self.0.progress).received(&services, cursor) {
            self.0.progressed.notify_one();
        }
        self.0.queue.mark(services);
        outcome
    }

    fn mark<T>(&self, services: BTreeSet<ServiceKey>, outcome: T) -> T {
        self.0.queue.mark(services);
        outcome
    }

    /// The applied position to report to the hub.
    pub fn reach(&self) -> Reach {
        self.reach_at(self.0.now())
    }

    /// The same for a simulation, at its own time in milliseconds.
    pub fn reach_at(&self, now: u64) -> Reach {
        let epoch = self.read(Desired::complete_epoch);
        lock(&self.0.progress).reach(epoch, now)
    }

    /// Waits until the applied position has changed since the last call. For one reader.
    pub async fn progressed(&self) {
        self.0.progressed.notified().await;
    }

    /// Changes the desired state in a way that touches nothing.
    pub fn note<T>(&self, change: impl FnOnce(&mut Desired) -> T) -> T {
        change(&mut lock(&self.0.desired))
    }

    /// Reads the desired state, for example its cursor.
    pub fn read<T>(&self, read: impl FnOnce(&Desired) -> T) -> T {
        read(&lock(&self.0.desired))
    }

    /// The hub does not take a fact of this cluster: the ServiceExport says so, until another fact is stated.
    pub fn fact_refused(&self, key: &FactKey, refusal: &Refusal) {
        let Some(service) = service_of(key) else { return };
        let mut refused = lock(&self.0.refused_facts);
        let of_service = refused.entry(service.clone()).or_default();
        if of_service.insert(key.clone(), refusal.clone()).as_ref() != Some(refusal) {
            self.0.queue.mark([service.clone()]);
        }
    }

    /// The hub took facts that it had refused: no ServiceExport says any more that it did not.
    pub fn facts_taken(&self, keys: &[FactKey]) {
        let mut refused = lock(&self.0.refused_facts);
        for key in keys {
            let Some(service) = service_of(key) else { continue };
            let facts = refused.get_mut(service);
            if facts.is_some_and(|facts| facts.remove(key).is_some()) {
                self.0.queue.mark([service.clone()]);
            }
        }
        refused.retain(|_, facts| !facts.is_empty());
    }

    /// Reports facts again that the hub had no room for: no ServiceExport says any more that it is held back.
    pub fn room_again(&self) {
        let mut refused = lock(&self.0.refused_facts);
        for (service, facts) in refused.iter_mut() {
            let before = facts.len();
            facts.retain(|_, refusal| !refusal.reason.is_for_now());
            if facts.len() < before {
                self.0.queue.mark([service.clone()]);
            }
        }
        refused.retain(|_, facts| !facts.is_empty());
    }

    /// The clusters whose objects stand in this one: what a Hello names as held.
    pub fn sources_held(&self) -> BTreeSet<ClusterId> {
        view::sources_held(&self.0.watches)
    }

    /// Waits until the kinds that [`Handle::sources_held`] reads have been listed.
    pub async fn sources_known(&self) {
        let watches = &self.0.watches;
        let kinds = [
            watches.slices.listed(),
            watches.services.listed(),
            watches.imports.listed(),
        ];
        for mut listed in kinds {
            // The sender lives as long as the watches do.
            let _ = listed.wait_for(|listed| *listed).await;
        }
    }

    /// Notices of services that became as desired. A slow reader misses the oldest.
    pub fn applied(&self) -> broadcast::Receiver<Applied> {
        self.0.applied.subscribe()
    }
}

/// The service whose ServiceExport says what became of the fact.
fn service_of(key: &FactKey) -> Option<&ServiceKey> {
    match key {
        FactKey::Export(service) => Some(service),
        FactKey::EndpointSlice(slice) => Some(&slice.service),
        FactKey::ClusterProperty(_) | FactKey::Health => None,
    }
}

impl Shared {
    /// Milliseconds since it was made.
    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Everything is planned again.
    pub(super) fn mark_all(&self) {
        self.queue.mark(self.all_services());
    }

    /// Everything in a namespace is planned again.
    pub(super) fn mark_namespaces(&self, namespaces: &BTreeSet<Box<str>>) {
        self.queue.mark(self.services_in(namespaces));
    }

    /// Everything that is desired, observed, or not at rest though it is neither any more.
    fn all_services(&self) -> BTreeSet<ServiceKey> {
        let mut services = lock(&self.desired).services();
        services.extend(view::observed_services(&self.watches));
        services.extend(lock(&self.progress).services().cloned());
        services
    }

    /// Everything that comes from one of these clusters.
    fn services_from(&self, settling: &Settling) -> BTreeSet<ServiceKey> {
        let desired = lock(&self.desired);
        view::services_of(&self.watches, &desired, &self.config.cluster, settling)
    }

    /// Everything in these namespaces.
    fn services_in(&self, namespaces: &BTreeSet<Box<str>>) -> BTreeSet<ServiceKey> {
        let mut services = self.all_services();
        services.retain(|service| namespaces.contains(&service.namespace));
        services
    }
}

#[cfg(test)]
mod tests {
    use api::server::NoAnswer;
    use model::{
        ChainHash, Cursor, Epoch, ExportStatus, Metadata, ServiceImport, ServicePolicies, ServiceType,
        SessionAffinity, UnixMillis,
        sync::{DesiredChange, DesiredItem, Interest, Namespaces, UpTo},
    };

    use super::*;

    fn handle() -> Handle {
        let client = Client::new(|_: http::Request<bytes::Bytes>| async {
            Err::<http::Response<bytes::Bytes>, _>(NoAnswer::from("there is no API server"))
        });
        let config = DriverConfig {
            cluster: ClusterId::new("north").expect("an id"),
            deny: NamespaceDenyList::default(),
            permit: WritePermit::unlimited(),
            withdrawals: Brake::default(),
        };
        Handle::new(client, Watches::default(), config, ApplyMetrics::default())
    }

    fn up_to(revision: u64) -> UpTo {
        UpTo {
            interest_generation: 1,
            cursor: Cursor {
                epoch: Epoch::default().next(UnixMillis(1), 1),
                revision: Revision(revision),
                hash: ChainHash([0; 16]),
            },
        }
    }

    fn service(namespace: &str, name: &str) -> ServiceKey {
        ServiceKey::new(namespace, name).expect("a key")
    }

    /// An import of the services that these clusters export.
    fn import(service: ServiceKey, clusters: &[&str]) -> DesiredItem {
        let cluster = |name: &&str| (ClusterId::new(name).expect("an id"), Vec::new());
        DesiredItem {
            revision: Revision(1),
            change: DesiredChange::Import(Arc::new(ServiceImport {
                service,
                service_type: ServiceType::ClusterSetIp,
                ports: Vec::new(),
                policies: ServicePolicies {
                    session_affinity: SessionAffinity::None,
                    session_affinity_timeout_seconds: None,
                    internal_traffic_policy: None,
                    traffic_distribution: None,
                },
                ip_families: Vec::new(),
                labels: Metadata::default(),
                annotations: Metadata::default(),
                clusters: clusters.iter().map(cluster).collect(),
            })),
        }
    }

    /// Three services in two namespaces from two clusters are desired, and none is marked.
    fn with_three_imports() -> Handle {
        let handle = handle();
        handle.feed(|desired| {
            let interest = Interest {
                generation: 1,
                namespaces: Namespaces::All,
            };
            desired.interest(&interest);
            desired.snapshot_begin(up_to(1).cursor.epoch);
            let imports = [
                import(service("shop", "cart"), &["east"]),
                import(service("shop", "pay"), &["west"]),
                import(service("store", "stock"), &["west"]),
            ];
            desired.items(1, imports);
            (desired.snapshot_complete(&up_to(1)), ())
        });
        assert_eq!(
            handle.0.queue.take_now().len(),
            3,
            "a snapshot touches everything"
        );
        handle
    }

    fn marked(handle: &Handle) -> BTreeSet<ServiceKey> {
        handle.0.queue.take_now().into_iter().collect()
    }

    /// A namespace that comes costs plans of what is in it, not of everything.
    #[tokio::test]
    async fn a_namespace_that_was_told_touches_what_is_in_it() {
        let handle = with_three_imports();
        let shop = Touched::Namespaces([Box::from("shop")].into());
        handle.feed(|_| (shop, ()));
        assert_eq!(
            marked(&handle),
            [service("shop", "cart"), service("shop", "pay")].into()
        );
    }

    /// A source that lists costs plans of what comes from it, not of everything.
    #[tokio::test]
    async fn a_source_that_settles_touches_what_comes_from_it() {
        let handle = with_three_imports();
        let settling = |name: &str| {
            Touched::Sources(Settling {
                clusters: [ClusterId::new(name).expect("an id")].into(),
                all: false,
            })
        };
        handle.feed(|_| (settling("west"), ()));
        assert_eq!(
            marked(&handle),
            [service("shop", "pay"), service("store", "stock")].into()
        );
        handle.feed(|_| (settling("nowhere"), ()));
        assert_eq!(marked(&handle), BTreeSet::new());
    }

    /// A snapshot up to here, with a word on this export if there is one.
    fn snapshot(handle: &Handle, revision: u64, export: Option<&str>) {
        let word = |name| DesiredItem {
            revision: Revision(revision),
            change: DesiredChange::ExportStatus(Arc::new(ExportStatus {
                service: service("shop", name),
                uid: "uid".into(),
                generation: 1,
                conflicts: Vec::new(),
                exporters: 1,
                denial: None,
                left_out: "".into(),
            })),
        };
        handle.feed(|desired| {
            desired.snapshot_begin(up_to(revision).cursor.epoch);
            desired.items(1, export.map(word));
            (desired.snapshot_complete(&up_to(revision)), ())
        });
    }

    /// The log of the hub was rewound, and its epoch stayed: what it sends anew is not applied yet.
    #[tokio::test]
    async fn what_was_applied_says_nothing_of_what_is_told_anew() {
        let handle = handle();
        let interest = Interest {
            generation: 1,
            namespaces: Namespaces::Only([Box::from("shop")].into()),
        };
        handle.feed(|desired| (desired.interest(&interest), ()));
        snapshot(&handle, 5, None);
        assert_eq!(handle.reach().applied.cursor, Some(up_to(5).cursor));
        snapshot(&handle, 3, Some("cart"));
        assert_eq!(handle.reach().applied.cursor, None);
    }
}
