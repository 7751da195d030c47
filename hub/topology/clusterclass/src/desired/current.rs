//! Owns: what there is of one cluster: found over the references of its Cluster, and by labels.
//! Never: takes what is not the topology's for it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    compare::Seen,
    objects::{Objects, group, label, refers_to, text},
};
use crate::{
    model::{Class, Cluster, Report, WorkerKind},
    patch::owned::{DEPLOYMENT_NAME, OWNED, name_label},
};

/// The label of a Machine with the name of its MachinePool.
const MACHINES_OF_POOL: &str = "cluster.x-k8s.io/pool-name";

/// The version of Cluster API's own objects.
pub const CORE: &str = "cluster.x-k8s.io/v1beta2";

/// The API group of Clusters.
pub(super) fn group_of_cluster() -> &'static str {
    group(CORE)
}

/// The objects of a cluster.
#[derive(Debug, Clone)]
pub struct Current<'a> {
    /// Its Cluster.
    pub(super) cluster: &'a Value,
    /// Its infrastructure.
    pub(super) infrastructure: Option<&'a Value>,
    /// Its control plane.
    pub(super) control_plane: Option<&'a Value>,
    /// The template of the control plane's machines.
    pub(super) machines: Option<&'a Value>,
    /// Its machine deployments and pools by their names in the topology.
    pub(super) workers: BTreeMap<(WorkerKind, String), Workers<'a>>,
    /// All objects.
    pub(super) objects: &'a Objects<'a>,
    /// The origin of their content.
    pub(super) seen: Seen,
}

/// A machine deployment with its templates, or a machine pool with its objects.
#[derive(Debug, Clone)]
pub(super) struct Workers<'a> {
    pub(super) object: &'a Value,
    pub(super) bootstrap: Option<&'a Value>,
    pub(super) machines: Option<&'a Value>,
    /// True if one of its machines has another version than the object.
    pub(super) upgrading: bool,
}

impl<'a> Current<'a> {
    /// Finds the objects of a cluster of a class; a missing one, or one that is not the topology's, is reported.
    pub fn read(
        document: &'a Value,
        (cluster, class): (&Cluster, &Class),
        objects: &'a Objects<'a>,
        seen: Seen,
        report: &mut Report,
    ) -> Self {
        if seen == Seen::Unseen {
            return Self::unseen(document, objects);
        }
        let mut reader = Reader {
            cluster,
            class,
            objects,
            machines: machines(objects, cluster),
            report,
        };
        let infrastructure = reader.referred(document, "/spec/infrastructureRef", true);
        let control_plane = reader.referred(document, "/spec/controlPlaneRef", true);
        let machines = control_plane.and_then(|plane| {
            let places = [
                "/spec/machineTemplate/spec/infrastructureRef",
                "/spec/machineTemplate/infrastructureRef",
            ];
            let place = places.into_iter().find(|place| plane.pointer(place).is_some())?;
            reader.referred(plane, place, false)
        });
        let mut workers = BTreeMap::new();
        for kind in WorkerKind::ALL {
            reader.workers(kind, &mut workers);
        }
        Self {
            cluster: document,
            infrastructure,
            control_plane,
            machines,
            workers,
            objects,
            seen,
        }
    }

    /// The workers of a name in the topology.
    pub(super) fn worker(&self, kind: WorkerKind, name: &str) -> Option<&Workers<'a>> {
        self.workers.get(&(kind, name.to_owned()))
    }

    /// Nothing but the Cluster.
    fn unseen(document: &'a Value, objects: &'a Objects<'a>) -> Self {
        Self {
            cluster: document,
            infrastructure: None,
            control_plane: None,
            machines: None,
            workers: BTreeMap::new(),
            objects,
            seen: Seen::Unseen,
        }
    }
}

struct Reader<'r, 'a> {
    cluster: &'r Cluster,
    class: &'r Class,
    objects: &'a Objects<'a>,
    /// Machines by the labels that say whose they are.
    machines: BTreeMap<(&'static str, &'a str), Vec<&'a Value>>,
    report: &'r mut Report,
}

fn machines<'a>(
    objects: &'a Objects<'a>,
    cluster: &Cluster,
) -> BTreeMap<(&'static str, &'a str), Vec<&'a Value>> {
    let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for machine in objects.of_cluster(&cluster.namespace, &cluster.name, "Machine") {
        for name_label in [DEPLOYMENT_NAME, MACHINES_OF_POOL] {
            if let Some(name) = label(machine, name_label) {
                all.entry((name_label, name)).or_default().push(machine);
            }
        }
    }
    all
}

impl<'a> Reader<'_, 'a> {
    /// The object that a field refers to.
    fn referred(&mut self, holder: &'a Value, place: &str, owned: bool) -> Option<&'a Value> {
        let reference = holder.pointer(place).filter(|one| one.is_object())?;
        let (group, kind) = refers_to(reference);
        let name = text(reference, "/name").unwrap_or_default();
        let holder_name = text(holder, "/metadata/name").unwrap_or_default();
        let field = place.trim_start_matches('/').replace('/', ".");
        let (found, unread) = self.found(group, kind, name);
        let Some(found) = found else {
            let field = format!("{field} of {holder_name}");
            match unread {
                Some(why) => {
                    let message = format!("cannot read {kind} {name}: {why}");
                    self.report.say("current-unread", field, message);
                }
                None => {
                    let message = format!(
                        "refers to {kind} {name} of {group}, which is not given: give it too, or compare with an older plan"
                    );
                    self.report.say("current-missing", field, message);
                }
            }
            return None;
        };
        if owned && label(found, OWNED).is_none() {
            let message =
                format!("{kind} {name} has no label {OWNED}: it is not the topology's, and stays as it is");
            self.report.say("not-owned", field, message);
        }
        self.going(found);
        Some(found)
    }

    /// An object in the version in which the class makes it, which is what it is compared with; in another one if this was
    /// not asked for. Else why it could not be read, if so.
    fn found(&self, group: &str, kind: &str, name: &str) -> (Option<&'a Value>, Option<&'a str>) {
        let namespace = &self.cluster.namespace;
        let version = self.class.version_of(group, kind);
        if let Some(found) = version.and_then(|version| self.objects.get_in(version, kind, namespace, name)) {
            return (Some(found), None);
        }
        if let Some(why) = version.and_then(|version| self.objects.unread_in(version, kind)) {
            return (None, Some(why));
        }
        let found = self.objects.get(group, kind, namespace, name);
        (found, self.objects.unread(group, kind))
    }

    fn going(&mut self, object: &Value) {
        if object.pointer("/metadata/deletionTimestamp").is_some() {
            let of = |place: &str| text(object, place).unwrap_or_default();
            let message = format!(
                "{} {} is being deleted: wait until it is gone",
                of("/kind"),
                of("/metadata/name")
            );
            self.report
                .say("being-deleted", "metadata.deletionTimestamp", message);
        }
    }

    /// Returns true if the topology has workers of this name.
    fn is_wanted(&self, kind: WorkerKind, name: &str) -> bool {
        let topology = self.cluster.topology.as_ref();
        let mut workers = topology.iter().flat_map(|topology| &topology.workers);
        workers.any(|worker| worker.kind == kind && worker.name == name)
    }

    /// Adds the workers of a kind.
    fn workers(&mut self, kind: WorkerKind, all: &mut BTreeMap<(WorkerKind, String), Workers<'a>>) {
        let (namespace, cluster) = (&self.cluster.namespace, &self.cluster.name);
        self.unlisted(kind);
        let (of, name_label) = (kind.kind(), name_label(kind));
        let (unnamed, twice) = match kind {
            WorkerKind::MachineDeployment => ("deployment-unnamed", "deployment-twice"),
            WorkerKind::MachinePool => ("pool-unnamed", "pool-twice"),
        };
        for object in self.objects.of_cluster(namespace, cluster, of) {
            let shown = text(object, "/metadata/name").unwrap_or_default();
            if label(object, OWNED).is_none() {
                continue;
            }
            let Some(name) = label(object, name_label) else {
                let message = format!("{of} {shown} has no label {name_label}: give it, or delete it");
                self.report.say(unnamed, "metadata.labels", message);
                continue;
            };
            if object.pointer("/metadata/deletionTimestamp").is_some() && !self.is_wanted(kind, name) {
                continue;
            }
            if text(object, "/apiVersion") != Some(CORE) {
                let message = format!("{of} {shown} is not of {CORE}: export it as that");
                self.report.say("current-version", "apiVersion", message);
                continue;
            }
            self.going(object);
            let owned = kind == WorkerKind::MachinePool;
            let workers = Workers {
                object,
                bootstrap: self.of_workers(object, "/spec/template/spec/bootstrap/configRef", owned),
                machines: self.of_workers(object, "/spec/template/spec/infrastructureRef", owned),
                upgrading: match kind {
                    WorkerKind::MachineDeployment => self.moves(name_label, name, object),
                    WorkerKind::MachinePool => {
                        self.moves(MACHINES_OF_POOL, shown, object) || self.is_behind(object)
                    }
                },
            };
            if all.insert((kind, name.to_owned()), workers).is_some() {
                let message = format!("two {of}s are {name} of the topology: delete the one too many");
                self.report.say(twice, "metadata.labels", message);
            }
        }
    }

    /// Tells a Cluster that uses workers of a kind that could not be read.
    fn unlisted(&mut self, kind: WorkerKind) {
        let topology = self.cluster.topology.as_ref();
        let mut workers = topology.iter().flat_map(|topology| &topology.workers);
        let unread = self.objects.unread(group(CORE), kind.kind());
        if let (Some(why), Some(one)) = (unread, workers.find(|worker| worker.kind == kind)) {
            let message = format!("cannot read {}s: {why}", kind.kind());
            self.report.say("current-unread", &one.field, message);
        }
    }

    /// Finds the object that workers refer to at a place. A machine pool without a reference is not the topology's.
    fn of_workers(&mut self, object: &'a Value, place: &str, of_pool: bool) -> Option<&'a Value> {
        let refers = object.pointer(place).is_some_and(Value::is_object);
        if of_pool && !refers {
            let shown = text(object, "/metadata/name").unwrap_or_default();
            let field = place.trim_start_matches('/').replace('/', ".");
            let message =
                format!("MachinePool {shown} refers to no object there: delete it, or give the reference");
            self.report.say("current-missing", field, message);
        }
        self.referred(object, place, of_pool)
    }

    /// Returns true if a Machine with this label has another version than its workers.
    fn moves(&self, name_label: &'static str, name: &'a str, workers: &Value) -> bool {
        let version = text(workers, "/spec/template/spec/version");
        let mut machines = self.machines.get(&(name_label, name)).into_iter().flatten();
        machines.any(|machine| {
            let other = |place: &str| text(machine, place).is_some_and(|one| Some(one) != version);
            other("/spec/version") || other("/status/nodeInfo/kubeletVersion")
        })
    }

    /// Returns true if a node of a machine pool has another version than the pool. Nodes are in the Cluster itself: of those
    /// that files do not have, the pool's own numbers tell.
    fn is_behind(&self, pool: &Value) -> bool {
        let version = text(pool, "/spec/template/spec/version");
        let nodes = pool.pointer("/status/nodeRefs").and_then(Value::as_array);
        let nodes = nodes.into_iter().flatten().filter_map(|node| text(node, "/name"));
        let nodes: Vec<_> = nodes
            .map(|name| self.objects.get("", "Node", "default", name))
            .collect();
        let is_old = |node: &&Value| text(node, "/status/nodeInfo/kubeletVersion") != version;
        let number = |place: &str| pool.pointer(place).and_then(Value::as_i64);
        let is_less = |one: &str, other: &str| {
            number(one)
                .zip(number(other))
                .is_some_and(|(one, other)| one < other)
        };
        nodes.iter().flatten().any(is_old)
            || (nodes.contains(&None)
                && (is_less("/status/observedGeneration", "/metadata/generation")
                    || is_less("/status/upToDateReplicas", "/status/replicas")))
    }
}
