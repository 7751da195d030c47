//! Simulated clusters: one in-memory store each that answers as a kube-apiserver and its controllers would.
//! Two fronts over one handler; no socket, process or disk unless `serve` is called. Never checks credentials.
//!
//! ```text
//! let east = SimCluster::new(SimConfig { name: "east".into(), ..SimConfig::default() })?;
//! east.apply_yaml("apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}")?;   // server-side apply, many documents
//! let client = east.client();                         // a kube::Client without a socket, with feature `client`
//! let served = east.serve("127.0.0.1:0".parse()?).await?; // HTTP for kubectl until dropped; served.address
//! east.get("ServiceImport", "shop", "cart");          // Option<Value>, straight from the store
//! east.list("EndpointSlice");                         // every namespace
//! east.faults().rate(Fault::Conflict, 50, "");        // 5 % of all writes; .next(fault, times, plural), .clear()
//! east.requests().writes();                           // what was written, by whom; .clear()
//! east.hold_controllers(true);                        // namespaces stay Terminating, garbage stays
//! east.remove_crd("serviceexports.multicluster.x-k8s.io"); // DELETED for each, then 404; install_crd brings it back
//! ```
//!
//! Deployments and ConfigMaps are kept, and nothing runs them. Protobuf is read and never written.
//!
//! Reviews of access are answered by the roles that `grant` names, and no request is refused because of them.
//!
//! Not simulated: JSON patch, RBAC otherwise, admission, CEL, dryRun of deletions, deletecollection.

mod age;
mod answer;
#[cfg(feature = "client")]
mod client;
mod clock;
mod columns;
mod discovery;
mod faults;
mod fields;
mod front;
mod grants;
mod handler;
mod kinds;
pub mod limits;
mod list;
mod listing;
mod managers;
mod media;
mod patch;
mod protobuf;
mod requests;
mod scale;
mod schema;
mod selector;
mod service;
mod status;
mod store;
mod table;
mod target;
mod validate;
mod versions;
mod workload;
mod write;

use std::sync::{Arc, LazyLock, Mutex};

use anyhow::{Context, ensure};
use bytes::Bytes;
use http::Request;
use serde::Deserialize;
use serde_json::{Value, json};

pub use answer::{Answer, Reply};
pub use clock::{Clock, ManualClock, Seeded, WallClock};
pub use discovery::GIT_VERSION;
pub use faults::{ALWAYS, Fault, Faults};
pub use front::Served;
pub use kinds::Crd;
pub use listing::Listing;
pub use requests::{Entry, REQUESTS_MAX, Requests};
pub use store::{HISTORY_CHANGES_MAX, Watch};

use crate::grants::Grants;
use handler::Cluster;
use kinds::Kinds;
use service::Range;
use store::Store;
use write::{How, Write};

/// The manager that `apply_yaml` writes as: the user with their kubectl.
const USER_MANAGER: &str = "kubectl";

/// Settings of a simulated cluster.
#[derive(Clone)]
pub struct SimConfig {
    /// For logs and assertions only.
    pub name: String,
    /// Decides uids, generated names and faults.
    pub seed: u64,
    /// Source of creation timestamps.
    pub clock: Arc<dyn Clock>,
    /// Ranges of cluster addresses, the primary family first: one, or one per family.
    pub service_cidrs: Vec<String>,
    /// CustomResourceDefinitions that are served from the start.
    pub crds: Vec<Crd>,
}

impl Default for SimConfig {
    fn default() -> Self {
        Self {
            name: "cluster".into(),
            seed: 1,
            clock: Arc::new(WallClock),
            service_cidrs: vec!["10.96.0.0/16".into()],
            crds: current_crds(),
        }
    }
}

/// The CRDs of this repository.
pub fn current_crds() -> Vec<Crd> {
    CURRENT.clone()
}

static CURRENT: LazyLock<Vec<Crd>> = LazyLock::new(|| read(definitions()));

fn read(definitions: Vec<Value>) -> Vec<Crd> {
    let read = definitions.into_iter().map(Crd::read);
    read.collect::<anyhow::Result<_>>()
        .expect("deploy/charts/crds is tested on a real API server")
}

fn definitions() -> Vec<Value> {
    let texts = [
        include_str!("../../../deploy/charts/crds/files/about.k8s.io_clusterproperties.yaml"),
        include_str!("../../../deploy/charts/crds/files/multicluster.x-k8s.io_clusterprofiles.yaml"),
        include_str!("../../../deploy/charts/crds/files/multicluster.x-k8s.io_serviceexports.yaml"),
        include_str!("../../../deploy/charts/crds/files/multicluster.x-k8s.io_serviceimports.yaml"),
    ];
    texts
        .iter()
        .filter_map(|text| serde_norway::from_str(text).ok())
        .collect()
}

/// The same as a cluster has them that installed mcs-api v0.5.0: ServiceImport has no `status.endpointSliceObjects`.
pub fn older_crds() -> Vec<Crd> {
    let mut definitions = definitions();
    for definition in &mut definitions {
        for version in definition["spec"]["versions"]
            .as_array_mut()
            .into_iter()
            .flatten()
        {
            let status = version.pointer_mut("/schema/openAPIV3Schema/properties/status/properties");
            status
                .and_then(Value::as_object_mut)
                .map(|fields| fields.remove("endpointSliceObjects"));
        }
    }
    read(definitions)
}

/// A handle to a simulated cluster; clones are the same cluster.
#[derive(Clone)]
pub struct SimCluster {
    cluster: Arc<Mutex<Cluster>>,
    changes: tokio::sync::watch::Sender<u64>,
    name: Arc<str>,
    clock: Arc<dyn Clock>,
    faults: Faults,
    requests: Requests,
}

impl SimCluster {
    /// Starts a cluster with the namespaces `default` and `kube-system`.
    pub fn new(config: SimConfig) -> anyhow::Result<Self> {
        let ranges = config
            .service_cidrs
            .iter()
            .map(|cidr| Range::parse(cidr))
            .collect::<anyhow::Result<_>>()?;
        let store = Store::new(Kinds::new(&config.crds), ranges, config.seed, config.clock);
        let simulated = Self::over(store, config.name, config.seed);
        for namespace in ["default", "kube-system"] {
            simulated
                .apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}))?;
        }
        Ok(simulated)
    }

    /// A cluster made from a backup of this one: every object with its uid and revision, and from then on each goes its own
    /// way. Nothing is granted or goes wrong in it.
    #[must_use]
    pub fn restored(&self, name: &str, clock: Arc<dyn Clock>) -> Self {
        let mut store = self.lock().store.clone();
        store.clock = clock;
        let seed = store.random.number();
        Self::over(store, name.to_owned(), seed)
    }

    fn over(store: Store, name: String, seed: u64) -> Self {
        let changes = tokio::sync::watch::Sender::new(0);
        let woken = changes.clone();
        let faults = Faults::new(seed, Arc::new(move || woken.send_modify(|count| *count += 1)));
        let (requests, clock) = (Requests::default(), store.clock.clone());
        let cluster = Cluster {
            store,
            faults: faults.clone(),
            requests: requests.clone(),
            grants: Grants::default(),
        };
        Self {
            cluster: Arc::new(Mutex::new(cluster)),
            changes,
            name: name.into(),
            clock,
            faults,
            requests,
        }
    }

    /// The name it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The clock it lives by.
    pub fn clock(&self) -> Arc<dyn Clock> {
        self.clock.clone()
    }

    /// Its faults.
    pub fn faults(&self) -> Faults {
        self.faults.clone()
    }

    /// Its requests.
    pub fn requests(&self) -> Requests {
        self.requests.clone()
    }

    /// Answers one request, synchronously; `poll_watch` reads the watches it opens.
    pub fn handle(&self, request: &Request<Bytes>) -> Reply {
        let mut cluster = self.lock();
        let before = cluster.store.revision();
        let reply = cluster.handle(request);
        if cluster.store.revision() != before {
            self.changes.send_modify(|count| *count += 1);
        }
        reply
    }

    /// The watch events that are due and whether the watch ends after them.
    pub fn poll_watch(&self, watch: &mut Watch) -> (Vec<Value>, bool) {
        self.lock().poll_watch(watch)
    }

    /// An object in its storage version.
    pub fn get(&self, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        let cluster = self.lock();
        let kind = cluster.store.kinds.named(kind)?;
        cluster
            .store
            .get(kind.key(), namespace, name)
            .map(|object| Value::clone(&object))
    }

    /// All objects of a kind, ordered by namespace and name.
    pub fn list(&self, kind: &str) -> Vec<Value> {
        let objects = self.objects(kind).into_iter();
        objects.map(|object| Value::clone(&object)).collect()
    }

    /// As [`SimCluster::list`], without a copy.
    pub fn objects(&self, kind: &str) -> Vec<Arc<Value>> {
        let cluster = self.lock();
        let kind = cluster.store.kinds.named(kind);
        kind.map(|kind| cluster.store.list(kind.key(), ""))
            .unwrap_or_default()
    }

    /// The versions of a kind's objects after a revision, in order and every time, as far as the watch history reaches:
    /// what a watcher sees.
    pub fn versions_since(&self, kind: &str, revision: u64) -> Vec<Arc<Value>> {
        let cluster = self.lock();
        let kind = cluster.store.kinds.named(kind);
        kind.map(|kind| {
            cluster
                .store
                .versions_since(kind.key(), revision)
                .cloned()
                .collect()
        })
        .unwrap_or_default()
    }

    /// The revision of the last change.
    pub fn revision(&self) -> u64 {
        self.lock().store.revision()
    }

    /// Applies every document of a YAML text by forced server-side apply, as the user; namespace `default` if none.
    pub fn apply_yaml(&self, text: &str) -> anyhow::Result<Vec<Value>> {
        let documents = serde_norway::Deserializer::from_str(text).map(Value::deserialize);
        let documents: Vec<Value> = documents.collect::<Result<_, _>>()?;
        documents
            .into_iter()
            .filter(|document| !document.is_null())
            .map(|document| self.apply(document))
            .collect()
    }

    /// Applies one object by forced server-side apply, as the user.
    pub fn apply(&self, object: Value) -> anyhow::Result<Value> {
        let api_version = object["apiVersion"]
            .as_str()
            .context("the object has no apiVersion")?;
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind_name = object["kind"].as_str().context("the object has no kind")?;
        let write = |kind: Arc<kinds::Kind>| {
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
            let stated = Some(text("namespace"))
                .filter(|stated| !stated.is_empty())
                .unwrap_or("default".into());
            Write {
                namespace: if kind.namespaced { stated } else { String::new() },
                name: text("name"),
                version: version.to_owned(),
                subresource: managers::Subresource::Main,
                how: How::Apply { force: true },
                manager: USER_MANAGER.into(),
                strict: true,
                body: object.clone(),
                kind,
            }
        };
        self.change(|cluster| {
            let served = |kind: &&Arc<kinds::Kind>| kind.group == group && kind.kind == kind_name;
            let kind = cluster.store.kinds.all().iter().find(served).cloned();
            let kind = kind.with_context(|| format!("{api_version} {kind_name} is not served"))?;
            let written = cluster.store.write(write(kind));
            written
                .map(|(_, object)| Value::clone(&object))
                .map_err(|refusal| anyhow::anyhow!("{}", refusal.body()))
        })
    }

    /// Puts a value into a field of an object that stands, without any validation: so it is stored where an older version of
    /// its definition took it. Null removes the field. Returns the value before, or `None` where there is no such object.
    pub fn spoil(&self, kind: &str, at: (&str, &str), field: &str, value: Value) -> Option<Value> {
        self.change(|cluster| {
            let key = cluster.store.kinds.named(kind)?.key().to_owned();
            let mut object = Value::clone(&*cluster.store.get(&key, at.0, at.1)?);
            let fields = object.as_object_mut()?;
            let before = if value.is_null() {
                fields.remove(field)
            } else {
                fields.insert(field.to_owned(), value)
            };
            let place = (key, at.0.to_owned(), at.1.to_owned());
            cluster.store.commit(place, Some(object));
            Some(before.unwrap_or_default())
        })
    }

    /// Deletes an object as the user would.
    pub fn delete(&self, kind: &str, namespace: &str, name: &str) -> anyhow::Result<()> {
        self.change(|cluster| {
            let kind = cluster
                .store
                .kinds
                .named(kind)
                .with_context(|| format!("{kind} is not served"))?;
            let place = (kind.key().to_owned(), namespace.to_owned(), name.to_owned());
            let removed = cluster.store.remove(&kind, place, &Value::Null);
            removed
                .map(drop)
                .map_err(|refusal| anyhow::anyhow!("{}", refusal.body()))
        })
    }

    /// From now on an account that asks what it may do is told that it has these roles; until then, that it may do
    /// everything. Whatever it is told, it is refused nothing.
    pub fn grant(&self, roles: &[Value]) {
        self.lock().grants = Grants::of(roles);
    }

    /// Holds the namespace controller and the garbage collector, or lets them finish.
    pub fn hold_controllers(&self, hold: bool) {
        self.change(|cluster| {
            cluster.store.hold_controllers = hold;
            cluster.store.run_controllers();
        });
    }

    /// Forgets the watch history: watches that resume from before now are answered by 410.
    pub fn forget_history(&self) {
        self.change(|cluster| cluster.store.forget_history(cluster.store.history_length()));
    }

    /// Deletes a CRD by its name, and every object of its kind.
    pub fn remove_crd(&self, name: &str) -> anyhow::Result<()> {
        let removed = self.change(|cluster| cluster.store.remove_kind(name));
        ensure!(removed.is_some(), "{name} is not installed");
        Ok(())
    }

    /// Returns true if a CRD of this name is installed.
    pub fn serves(&self, name: &str) -> bool {
        self.lock().store.kinds.by_key(name).is_some()
    }

    /// Installs a CRD, or replaces its schema; objects stay.
    pub fn install_crd(&self, crd: &Crd) {
        self.change(|cluster| cluster.store.kinds.install(crd));
    }

    fn change<T>(&self, change: impl FnOnce(&mut Cluster) -> T) -> T {
        let result = change(&mut self.lock());
        self.changes.send_modify(|count| *count += 1);
        result
    }
}
