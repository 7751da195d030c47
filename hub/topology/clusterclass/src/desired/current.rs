//! Owns: what there is of one cluster: found over the references of its Cluster, and by labels.
//! Never: takes what is not the topology's for it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    compare::Seen,
    objects::{Objects, group, label, refers_to, text},
};
use crate::{
    model::{Class, Cluster, Report},
    patch::owned::{DEPLOYMENT_NAME, OWNED},
};

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
    /// Its machine deployments by their names in the topology.
    pub(super) workers: BTreeMap<String, Deployment<'a>>,
    /// All objects.
    pub(super) objects: &'a Objects<'a>,
    /// The origin of their content.
    pub(super) seen: Seen,
}

/// A machine deployment.
#[derive(Debug, Clone)]
pub(super) struct Deployment<'a> {
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
        let workers = reader.workers();
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
    report: &'r mut Report,
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

    /// Returns true if the topology has a machine deployment of this name.
    fn is_wanted(&self, name: &str) -> bool {
        let topology = self.cluster.topology.as_ref();
        topology.is_some_and(|topology| topology.workers.iter().any(|worker| worker.name == name))
    }

    fn workers(&mut self) -> BTreeMap<String, Deployment<'a>> {
        let (namespace, cluster) = (&self.cluster.namespace, &self.cluster.name);
        let mut moving: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        for machine in self.objects.of_cluster(namespace, cluster, "Machine") {
            if let Some(name) = label(machine, DEPLOYMENT_NAME) {
                moving.entry(name).or_default().push(machine);
            }
        }
        let mut all = BTreeMap::new();
        for object in self.objects.of_cluster(namespace, cluster, "MachineDeployment") {
            let shown = text(object, "/metadata/name").unwrap_or_default();
            if label(object, OWNED).is_none() {
                continue;
            }
            let Some(name) = label(object, DEPLOYMENT_NAME) else {
                let message = format!(
                    "MachineDeployment {shown} has no label {DEPLOYMENT_NAME}: give it, or delete it"
                );
                self.report.say("deployment-unnamed", "metadata.labels", message);
                continue;
            };
            if object.pointer("/metadata/deletionTimestamp").is_some() && !self.is_wanted(name) {
                continue;
            }
            if text(object, "/apiVersion") != Some(CORE) {
                let message = format!("MachineDeployment {shown} is not of {CORE}: export it as that");
                self.report.say("current-version", "apiVersion", message);
                continue;
            }
            self.going(object);
            let version = text(object, "/spec/template/spec/version");
            let deployment = Deployment {
                object,
                bootstrap: self.referred(object, "/spec/template/spec/bootstrap/configRef", false),
                machines: self.referred(object, "/spec/template/spec/infrastructureRef", false),
                upgrading: moving.get(name).into_iter().flatten().any(|machine| {
                    let other = |place: &str| text(machine, place).is_some_and(|one| Some(one) != version);
                    other("/spec/version") || other("/status/nodeInfo/kubeletVersion")
                }),
            };
            if all.insert(name.to_owned(), deployment).is_some() {
                let message =
                    format!("two MachineDeployments are {name} of the topology: delete the one too many");
                self.report.say("deployment-twice", "metadata.labels", message);
            }
        }
        all
    }
}
