//! Owns: what the objects of an API server say of each Cluster that decides whether something is done about it now.
//! Never: plans.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::event::{ClusterName, ObjectName};
use crate::{
    desired::{
        compare::UPSTREAM_MANAGER,
        objects::{Objects, label, text},
    },
    model::{Key, class_of},
    patch::owned::OWNED,
};

/// The annotation of a Cluster with a mode of its own: `observe` leaves its topology alone.
pub const ANNOTATION_MODE: &str = "topology.tributary.dev/mode";
/// The one mode that the annotation may say.
pub const MODE_OBSERVE: &str = "observe";
/// The annotation of what nobody is to work on.
const PAUSED: &str = "cluster.x-k8s.io/paused";

/// A Cluster with a topology.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenCluster<'a> {
    /// The object.
    pub document: &'a Value,
    /// Its identity.
    pub uid: &'a str,
    /// The generation of its `spec`.
    pub generation: i64,
    /// Its class, by namespace and name.
    pub class: Key,
    /// Why nothing is done about it, if so.
    pub rests: Option<Rest>,
    /// True if it refers to a control plane already.
    pub made: bool,
    /// The first of its objects whose machines are still being replaced, or made.
    pub moving: Option<String>,
    /// True if the controller of one of its objects has not seen yet what the object says: it may still make machines of
    /// what was there before.
    pub behind: bool,
}

/// Why nothing is done about a Cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// It is being deleted.
    Deleting,
    /// It is paused.
    Paused,
    /// It is to be observed only.
    Observed,
    /// Cluster API's own controller keeps, or kept, its topology.
    Upstream,
}

/// The Clusters with topologies among the objects of a server.
pub fn clusters<'a>(all: &Objects<'a>) -> BTreeMap<ClusterName, SeenCluster<'a>> {
    let mut seen = BTreeMap::new();
    for document in all.of_kind(GROUP, "Cluster") {
        let of = |place: &str| text(document, place).unwrap_or_default();
        let name = ClusterName {
            namespace: of("/metadata/namespace").to_owned(),
            name: of("/metadata/name").to_owned(),
        };
        let Some(topology) = document.pointer("/spec/topology").filter(|one| one.is_object()) else {
            continue;
        };
        let owned = of_topology(all, &name, document);
        let cluster = SeenCluster {
            document,
            uid: of("/metadata/uid"),
            generation: document
                .pointer("/metadata/generation")
                .and_then(Value::as_i64)
                .unwrap_or(0),
            class: class_of(topology, &name.namespace),
            rests: rests(document, &owned),
            made: document
                .pointer("/spec/controlPlaneRef")
                .is_some_and(Value::is_object),
            moving: owned
                .iter()
                .find(|object| moves(object))
                .map(|object| shown(object)),
            behind: owned
                .iter()
                .any(|object| object.pointer("/spec/replicas").is_some() && is_behind(object)),
        };
        seen.insert(name, cluster);
    }
    seen
}

/// The API group of Clusters.
const GROUP: &str = shared::api::names::CLUSTER_API_GROUP;

/// The objects of a Cluster's topology, and the Cluster.
pub fn of_topology<'a>(all: &Objects<'a>, cluster: &ClusterName, document: &'a Value) -> Vec<&'a Value> {
    let of_cluster = all.labelled(&cluster.namespace, &cluster.name);
    let owned = of_cluster.filter(|object| label(object, OWNED).is_some());
    let owned = owned.filter(|object| !std::ptr::eq(*object, document));
    owned.chain([document]).collect()
}

fn rests(document: &Value, owned: &[&Value]) -> Option<Rest> {
    let annotation = |name: &str| {
        document
            .pointer("/metadata/annotations")
            .and_then(|all| all.get(name))
    };
    if document.pointer("/metadata/deletionTimestamp").is_some() {
        Some(Rest::Deleting)
    } else if document.pointer("/spec/paused") == Some(&Value::Bool(true)) || annotation(PAUSED).is_some() {
        Some(Rest::Paused)
    } else if annotation(ANNOTATION_MODE).and_then(Value::as_str) == Some(MODE_OBSERVE) {
        Some(Rest::Observed)
    } else if owned.iter().any(|object| managed_upstream(object)) {
        Some(Rest::Upstream)
    } else {
        None
    }
}

/// Returns true if Cluster API's own controller manages fields of an object.
fn managed_upstream(object: &Value) -> bool {
    entries_of_upstream(object).next().is_some()
}

/// The entries in an object's managedFields of Cluster API's own controller.
pub(super) fn entries_of_upstream(object: &Value) -> impl Iterator<Item = &Value> {
    let entries = object
        .pointer("/metadata/managedFields")
        .and_then(Value::as_array);
    let entries = entries.into_iter().flatten();
    entries.filter(|entry| text(entry, "/manager") == Some(UPSTREAM_MANAGER))
}

/// Returns true if an object's machines are being replaced or made: fewer than wanted are up to date or ready, or there
/// are too many. An object without such numbers has no machines.
fn moves(object: &Value) -> bool {
    let number = |places: &[&str]| {
        let mut found = places.iter().filter_map(|place| object.pointer(place));
        found.find_map(Value::as_i64)
    };
    let Some(wanted) = number(&["/spec/replicas"]) else {
        return false;
    };
    if is_behind(object) {
        return true;
    }
    let current = number(&["/status/upToDateReplicas", "/status/updatedReplicas"]);
    let ready = number(&["/status/readyReplicas"]);
    let there = number(&["/status/replicas"]);
    current.is_some_and(|current| current < wanted)
        || (current.is_some() && ready.unwrap_or(0) < wanted)
        || there.is_some_and(|there| there > wanted)
}

/// Returns true if an object's controller has not seen the present `spec`.
fn is_behind(object: &Value) -> bool {
    let number = |place: &str| object.pointer(place).and_then(Value::as_i64);
    let (generation, observed) = (
        number("/metadata/generation"),
        number("/status/observedGeneration"),
    );
    generation
        .zip(observed)
        .is_some_and(|(generation, observed)| observed < generation)
}

fn shown(object: &Value) -> String {
    let of = |place: &str| text(object, place).unwrap_or_default();
    format!("{} {}", of("/kind"), of("/metadata/name"))
}

/// Templates of a Cluster that nothing refers to, of those that belong to its topology, and that are not to be there. They
/// are left by a controller that ended between two writes, and by rotations once no machine is of them.
pub fn orphans<'a>(
    all: &Objects<'a>,
    cluster: &ClusterName,
    uid: &str,
    wanted: &BTreeSet<ObjectName>,
) -> Vec<&'a Value> {
    let of_cluster: Vec<&Value> = all.labelled(&cluster.namespace, &cluster.name).collect();
    let mut referred: Vec<(&str, &str)> = Vec::new();
    for object in &of_cluster {
        if let Some(spec) = object.get("spec") {
            references(spec, &mut referred);
        }
    }
    let mut orphans = of_cluster;
    orphans.retain(|object| {
        let name = ObjectName::of(object);
        name.kind.ends_with("Template")
            && label(object, OWNED).is_some()
            && is_of(object, uid)
            && object.pointer("/metadata/deletionTimestamp").is_none()
            && !wanted.contains(&name)
            && !referred.contains(&(&name.kind, &name.name))
    });
    orphans
}

/// Returns true if an object belongs to a Cluster of this identity.
pub fn is_of(object: &Value, uid: &str) -> bool {
    let owners = object
        .pointer("/metadata/ownerReferences")
        .and_then(Value::as_array);
    let mut owners = owners.into_iter().flatten();
    owners.any(|owner| text(owner, "/kind") == Some("Cluster") && text(owner, "/uid") == Some(uid))
}

/// Every place with a kind and a name.
fn references<'a>(value: &'a Value, found: &mut Vec<(&'a str, &'a str)>) {
    match value {
        Value::Object(fields) => {
            let of = |name: &str| fields.get(name).and_then(Value::as_str);
            found.extend(of("kind").zip(of("name")));
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
