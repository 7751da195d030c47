//! Owns: ClusterClasses and Clusters as values, one model of both spellings, and findings about what is written.
//! Never: ignores a field. Unknown fields are reported; unsupported ones are refused; [`limits`] bounds the rest.

mod class;
mod cluster;
mod discovered;
mod documents;
mod external;
mod finding;
pub mod limits;
mod older;
mod parts;
mod read;
mod settings;
#[cfg(test)]
mod tests;
mod version;

use std::collections::BTreeMap;

use serde_json::Value;

pub use self::{
    class::{Class, ControlPlaneClass, Definition, WorkerClass},
    cluster::{Cluster, ControlPlaneTopology, Network, Topology, WorkerTopology, class_of, is_hook},
    external::{External, INLINE},
    finding::{Finding, Report},
    parts::{HealthCheck, Metadata, Placed, Reference, Rollout, Spelling, Variable, WorkerKind},
    settings::Settings,
    version::{Version, may_follow},
};
use self::{
    cluster::refuse_hooks,
    documents::{documents, over_bounds},
    read::Fields,
};

/// Namespace and name.
pub type Key = (String, String);

/// Classes and clusters that were read together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Estate {
    /// Classes.
    pub classes: BTreeMap<Key, Class>,
    /// Clusters.
    pub clusters: BTreeMap<Key, Cluster>,
    /// Faults in their form.
    pub findings: Vec<Finding>,
    /// True if classes may need extensions, and Clusters may have lifecycle hooks. Otherwise these are faults.
    pub takes_extensions: bool,
}

impl Estate {
    /// An empty one that takes extensions and lifecycle hooks.
    pub fn with_extensions() -> Self {
        Self {
            takes_extensions: true,
            ..Self::default()
        }
    }

    /// Reads a text of YAML or JSON; objects of other kinds are passed over.
    pub fn add(&mut self, origin: &str, text: &str) {
        for (at, document) in documents(text).into_iter().enumerate() {
            let place = format!("document {}", at + 1);
            let mut report = Report::new(origin, &place);
            match document {
                Ok(document) => self.object(&document, &mut report),
                Err(message) => report.say("document", ".", message),
            }
            self.findings.extend(report.into_findings());
        }
    }

    /// Reads objects that were taken apart before; each with where it was read; those of other kinds are passed over.
    pub fn add_objects<'a>(&mut self, objects: impl IntoIterator<Item = (&'a str, &'a Value)>) {
        for (at, (origin, object)) in objects.into_iter().enumerate() {
            let mut report = Report::new(origin, &format!("object {}", at + 1));
            self.object(object, &mut report);
            self.findings.extend(report.into_findings());
        }
    }

    /// Reads an object of another sender; one that is over the bounds of a document is reported and not read.
    pub fn add_sent(&mut self, origin: &str, object: &Value) {
        match over_bounds(object) {
            None => self.add_objects([(origin, object)]),
            Some(message) => {
                let mut report = Report::new(origin, "object 1");
                report.say("document", ".", message);
                self.findings.extend(report.into_findings());
            }
        }
    }

    /// The class of a topology.
    pub fn class(&self, topology: &Topology) -> Option<&Class> {
        let key = (topology.class_namespace.clone(), topology.class.value.clone());
        self.classes.get(&key)
    }

    /// The clusters of a class.
    pub fn users(&self, key: &Key) -> impl Iterator<Item = (&Cluster, &Topology)> {
        self.clusters.values().filter_map(|cluster| {
            let topology = cluster.topology.as_ref()?;
            let used = topology.class_namespace == key.0 && topology.class.value == key.1;
            used.then_some((cluster, topology))
        })
    }

    fn object(&mut self, document: &Value, report: &mut Report) {
        let (Some(api_version), Some(kind)) = (text(document, "apiVersion"), text(document, "kind")) else {
            report.say(
                "document",
                ".",
                "is no object of Kubernetes: give apiVersion and kind",
            );
            return;
        };
        let Some(version) = api_version.strip_prefix("cluster.x-k8s.io/") else {
            return;
        };
        if kind != "ClusterClass" && kind != "Cluster" {
            return;
        }
        let spelling = match version {
            "v1beta1" => Spelling::V1Beta1,
            "v1beta2" => Spelling::V1Beta2,
            _ => {
                report.say(
                    "document",
                    "apiVersion",
                    "must be v1beta1 or v1beta2 of cluster.x-k8s.io",
                );
                return;
            }
        };
        let fields = Fields::open(
            Some(document),
            "",
            &["apiVersion", "kind", "metadata", "spec", "status"],
            report,
        );
        let named = Fields::open(fields.get("metadata"), "metadata", METADATA, report);
        let name = named.text("name", report);
        let namespace = match named.text("namespace", report) {
            namespace if namespace.is_empty() => "default".to_owned(),
            namespace => namespace,
        };
        let metadata = Metadata {
            field: "metadata".to_owned(),
            labels: named.texts("labels", report),
            annotations: named.texts("annotations", report),
        };
        let uid = Some(named.text("uid", report)).filter(|uid| !uid.is_empty());
        if name.is_empty() {
            report.say("document", "metadata.name", "must be given");
            return;
        }
        let key = (namespace, name);
        let mut read = Report::new(&report.origin, &format!("{kind} {}/{}", key.0, key.1));
        let spec = fields.get("spec").unwrap_or(&Value::Null);
        let twice = if kind == "ClusterClass" {
            let class = Class::read(spec, spelling, key.clone(), !self.takes_extensions, &mut read);
            self.classes.insert(key, class).is_some()
        } else {
            if !self.takes_extensions {
                refuse_hooks(&metadata, &mut read);
            }
            let cluster = Cluster::read(spec, spelling, key.clone(), (metadata, uid), &mut read);
            self.clusters.insert(key, cluster).is_some()
        };
        if twice {
            read.say("document", "metadata.name", "is given twice: the last one counts");
        }
        self.findings.extend(read.into_findings());
    }
}

const METADATA: &[&str] = &[
    "name",
    "generateName",
    "namespace",
    "labels",
    "annotations",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "finalizers",
    "ownerReferences",
    "managedFields",
    "selfLink",
];

fn text<'a>(document: &'a Value, name: &str) -> Option<&'a str> {
    document.get(name)?.as_str()
}
