//! Owns: what is read of one Cluster, and of the annotation of its class.
//! Never: keeps a variable that the class does not list, nor anything of a Cluster that nobody tells.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::Value;
use shared::{
    api::names::{
        ANNOTATION_MEMBER_ID, ANNOTATION_UPGRADE_STEP, CONDITION_TOPOLOGY_RECONCILED,
        PROPERTY_TOPOLOGY_PREFIX, PROPERTY_TOPOLOGY_RECONCILED,
    },
    model::ClusterId,
};

use super::{
    bounds::{self, PUBLISHED_VARIABLES_MAX},
    life::Life,
};
use crate::model::{Cluster, Estate, Key, Topology};

/// The names of variables that a class tells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PublishedVariables(BTreeSet<String>);

impl PublishedVariables {
    /// Reads the annotation of a class: names with commas between them; the first ones count.
    pub fn read(annotation: &str) -> Self {
        let names = annotation
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty());
        Self(names.take(PUBLISHED_VARIABLES_MAX).map(str::to_owned).collect())
    }

    /// Returns true if it lists none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if the class publishes this variable.
    pub fn contains(&self, variable: &str) -> bool {
        self.0.contains(variable)
    }

    pub(super) fn has_more_than(&self, other: &Self) -> bool {
        !self.0.is_subset(&other.0)
    }
}

/// The cached facts about a Cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterFacts {
    /// The member that it is, if it is one.
    pub(super) member: Option<ClusterId>,
    /// The topology that it was made from, if it has one.
    pub(super) stamped: Option<Arc<Stamped>>,
    /// The stage of its life.
    pub(super) life: Arc<Life>,
}

/// The published facts about a topology.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stamped {
    pub(super) class: Key,
    /// The version that is wanted.
    pub(super) version: String,
    /// Names and values of properties that do not depend on the member or the class.
    pub(super) properties: Vec<(String, String)>,
    /// Values of listed variables by their names.
    pub(super) variables: BTreeMap<String, String>,
}

/// Reads a Cluster as an API server shows it, with `apiVersion` and `kind`; `lists` knows which variables a class tells.
/// None: it is no Cluster.
pub fn cluster_facts<'a>(
    document: &Value,
    lists: impl Fn(&Key) -> Option<&'a PublishedVariables>,
) -> Option<(Key, ClusterFacts)> {
    let mut estate = Estate::default();
    // Faults of its form are Cluster API's to report.
    estate.add_objects([("", document)]);
    let (key, cluster) = estate.clusters.pop_first()?;
    let facts = ClusterFacts {
        member: member(&cluster),
        stamped: cluster
            .topology
            .as_ref()
            .map(|topology| Arc::new(stamped(document, &cluster, topology, lists))),
        life: Arc::new(Life::read(document)),
    };
    Some((key, facts))
}

/// An annotation decides, also where it names nobody.
fn member(cluster: &Cluster) -> Option<ClusterId> {
    let named = cluster.metadata.annotations.get(ANNOTATION_MEMBER_ID);
    ClusterId::new(named.or(cluster.uid.as_ref())?).ok()
}

fn stamped<'a>(
    document: &Value,
    cluster: &Cluster,
    topology: &Topology,
    lists: impl Fn(&Key) -> Option<&'a PublishedVariables>,
) -> Stamped {
    let class = (topology.class_namespace.clone(), topology.class.value.clone());
    let ours = |name: &str| format!("{PROPERTY_TOPOLOGY_PREFIX}{name}");
    let step = cluster.metadata.annotations.get(ANNOTATION_UPGRADE_STEP);
    let properties = [
        (ours("class"), class.1.clone()),
        (ours("class-namespace"), class.0.clone()),
        (ours("version"), topology.version.value.clone()),
        (ours("upgrade-step"), step.cloned().unwrap_or_default()),
        (PROPERTY_TOPOLOGY_RECONCILED.to_owned(), reconciled(document)),
    ];
    let properties = properties
        .into_iter()
        .filter_map(|(name, value)| Some((name, bounds::text(&value)?)));
    let listed = lists(&class);
    let variables = topology.variables.iter();
    let variables = variables
        .filter(|variable| listed.is_some_and(|listed| listed.contains(&variable.name)))
        .filter_map(|variable| Some((variable.name.clone(), bounds::value(&variable.value)?)));
    Stamped {
        properties: properties.collect(),
        variables: variables.collect(),
        version: topology.version.value.clone(),
        class,
    }
}

/// `True`, or a status and why; empty: nobody says.
fn reconciled(document: &Value) -> String {
    let conditions = document.pointer("/status/conditions").and_then(Value::as_array);
    let mut conditions = conditions.into_iter().flatten();
    let Some(condition) = conditions.find(|one| one["type"] == CONDITION_TOPOLOGY_RECONCILED) else {
        return String::new();
    };
    let text = |name: &str| condition[name].as_str().unwrap_or_default();
    match (text("status"), text("reason")) {
        (status @ "True", _) | (status, "") => status.to_owned(),
        (status, reason) => format!("{status}/{reason}"),
    }
}
