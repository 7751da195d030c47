//! Owns: what each object of a cluster is called: as it is already, or as it will be.

use serde_json::Value;

use super::{
    current::{Current, Deployment},
    names::Names,
    objects::text,
};
use crate::model::{Class, Cluster, Placed, Report, Topology, WorkerTopology};

/// The names of a cluster's objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    /// Name of the cluster's infrastructure.
    pub(super) infrastructure: String,
    /// Name of the control plane.
    pub(super) control_plane: String,
    /// Name of the template of its machines, if it has machines.
    pub(super) machines: Option<String>,
    /// Names of machine deployments, in the order of the topology.
    pub(super) workers: Vec<NamedWorker>,
}

/// The names of a machine deployment and its templates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedWorker {
    /// In the topology.
    pub(super) name: String,
    /// Name of the machine deployment.
    pub(super) deployment: String,
    /// Name of the template of the bootstrap configuration.
    pub(super) bootstrap: String,
    /// Name of the template of machines.
    pub(super) machines: String,
}

/// Makes the names of a cluster's objects, present and future; a class's template that makes no name is reported.
pub(super) fn named(
    class: &Class,
    cluster: &Cluster,
    topology: &Topology,
    current: &Current<'_>,
    report: &mut Report,
) -> Named {
    let mut naming = Naming {
        names: Names::of(cluster),
        report,
    };
    let known = |place: &str| text(current.cluster, place).filter(|name| !name.is_empty());
    let infrastructure = known("/spec/infrastructureRef/name").map(str::to_owned);
    let control_plane = known("/spec/controlPlaneRef/name").map(str::to_owned);
    let (of_infrastructure, of_plane) = (&class.infrastructure_naming, &class.control_plane.naming);
    Named {
        infrastructure: infrastructure
            .unwrap_or_else(|| naming.object("infrastructure-cluster", None, of_infrastructure.as_ref())),
        control_plane: control_plane
            .unwrap_or_else(|| naming.object("control-plane", None, of_plane.as_ref())),
        machines: class.control_plane.machines.as_ref().map(|_| {
            let made = || naming.names.template("control-plane-machines", None, "", "");
            of(current.machines).unwrap_or_else(made)
        }),
        workers: topology
            .workers
            .iter()
            .map(|one| naming.worker(class, one, current.workers.get(&one.name)))
            .collect(),
    }
}

struct Naming<'r, 'a> {
    names: Names<'a>,
    report: &'r mut Report,
}

impl Naming<'_, '_> {
    fn object(&mut self, place: &str, deployment: Option<&str>, naming: Option<&Placed<String>>) -> String {
        let template = naming.map(|naming| naming.value.as_str());
        self.names
            .object(place, deployment, template)
            .unwrap_or_else(|why| {
                let field = naming.map_or("", |naming| &naming.field);
                self.report.say("naming-template", field, why);
                String::new()
            })
    }

    fn worker(
        &mut self,
        class: &Class,
        one: &WorkerTopology,
        current: Option<&Deployment<'_>>,
    ) -> NamedWorker {
        let place = format!("machine-deployment/{}", one.name);
        let naming = class.worker(&one.class).and_then(|class| class.naming.as_ref());
        let deployment = current.and_then(|current| of(Some(current.object)));
        let template = |part: &str, current: Option<&Value>| {
            of(current).unwrap_or_else(|| {
                self.names
                    .template(&format!("{place}/{part}"), Some(&one.name), "", "")
            })
        };
        NamedWorker {
            bootstrap: template("bootstrap", current.and_then(|one| one.bootstrap)),
            machines: template("infrastructure", current.and_then(|one| one.machines)),
            deployment: deployment.unwrap_or_else(|| self.object(&place, Some(&one.name), naming)),
            name: one.name.clone(),
        }
    }
}

fn of(object: Option<&Value>) -> Option<String> {
    text(object?, "/metadata/name").map(str::to_owned)
}
