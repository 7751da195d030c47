//! Owns: the plan of one cluster: all of its objects as they should be, in the order in which they are written.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    blueprint::{Blueprint, has_content},
    change::{Change, Defaulted, Difference, LeftOut, Plan, Sources},
    changes::{self, Place},
    compare::Seen,
    current::Current,
    extended::{self, Extended},
    health::{Machines, health_check},
    kinds,
    named::{Named, NamedWorker, named},
    parts::{object, take, template},
    plane::{self, control_plane},
    progress::{Progress, progress},
    upgrade::{self, Part, Step},
    variables, versions,
    workers::machine_deployment,
};
use crate::{
    model::{Class, Cluster, Metadata, Reference, Report, Topology, WorkerClass, WorkerKind, WorkerTopology},
    patch::{
        apply::Applied,
        cluster::Cluster as Told,
        finding::Rule,
        owned,
        target::{Role, Target},
    },
};

/// Plans a cluster of the blueprint's class. If something is wrong there are findings, and no changes.
pub fn plan(
    blueprint: &Blueprint<'_>,
    cluster: &Cluster,
    topology: &Topology,
    current: &Current<'_>,
) -> Plan {
    let mut report = Report::new(
        &cluster.origin,
        &format!("Cluster {}/{}", cluster.namespace, cluster.name),
    );
    let mut plan = Plan {
        namespace: cluster.namespace.clone(),
        name: cluster.name.clone(),
        class: topology.class.value.clone(),
        version: versions::wanted(topology),
        ..Plan::default()
    };
    if let Some(planner) = Planner::new(blueprint, cluster, topology, current, &mut report) {
        plan.upgrade = planner.step.lines.clone();
        plan.progress = planner.progress.clone();
        plan.sources = planner.sources.clone();
        plan.left_out = planner.left_out.clone();
        plan.changes = planner.changes();
        (plan.defaults, plan.given) = planner.defaults;
    }
    plan.findings = report.into_findings();
    plan
}

/// Everything that goes into the objects.
struct Planner<'p, 'a> {
    blueprint: &'p Blueprint<'a>,
    cluster: &'p Cluster,
    topology: &'p Topology,
    current: &'p Current<'a>,
    step: Step,
    progress: Progress,
    sources: Sources,
    left_out: Vec<LeftOut>,
    /// The defaults that the Cluster has yet to get, and their fields.
    defaults: (Vec<Defaulted>, Vec<Difference>),
    named: Named,
    /// Templates by their places: as the class has them, and as its patches leave them.
    templates: BTreeMap<String, (Target, &'p Reference, Value)>,
}

impl<'p, 'a> Planner<'p, 'a> {
    /// None if something is wrong.
    fn new(
        blueprint: &'p Blueprint<'a>,
        cluster: &'p Cluster,
        topology: &'p Topology,
        current: &'p Current<'a>,
        report: &mut Report,
    ) -> Option<Self> {
        let class = blueprint.class;
        let state = versions::state(class, cluster, topology, current, report);
        let named = named(class, cluster, topology, current, report);
        kinds::templates(class, topology, current, report);
        if report.count() > 0 {
            return None;
        }
        let step = upgrade::next(&state).map_err(|why| report.say("upgrade", &topology.version.field, why));
        let step = step.ok()?;
        let told = variables::told(blueprint, cluster, topology, &named, &step);
        let told = told
            .map_err(|why| report.say("variables", "spec.topology", why))
            .ok()?;
        let made: Vec<(WorkerKind, &str)> = (named.workers.iter().zip(&step.workers))
            .filter(|(_, part)| part.is_ok())
            .map(|(worker, _)| (worker.kind, worker.name.as_str()))
            .collect();
        let (mut targets, mut references) = (Vec::new(), Vec::new());
        for (role, reference, variables) in told.places(class) {
            let waits = match &role {
                Role::Bootstrap(workers) | Role::Infrastructure(workers) => {
                    !made.contains(&(workers.kind, workers.name.as_str()))
                }
                _ => false,
            };
            if let (false, Some(template)) = (waits, blueprint.template(reference)) {
                targets.push(Target::new(role, template, variables));
                references.push(reference);
            }
        }
        let extended = extended::patched(blueprint, cluster, &named, &told, &targets);
        told_of_patches(&extended, class, topology, report);
        let Extended {
            applied, left_out, ..
        } = extended;
        if report.count() > 0 {
            return None;
        }
        let sources = sources(&told, &applied);
        let defaults = match current.seen {
            Seen::OnServer => variables::missing(blueprint, topology, current.cluster),
            Seen::AsPlanned | Seen::Unseen => (Vec::new(), Vec::new()),
        };
        let patched = applied.patched.into_iter();
        let all = targets.into_iter().zip(references).zip(patched);
        let templates =
            all.map(|((target, reference), patched)| (patched.target, (target, reference, patched.template)));
        Some(Self {
            progress: progress(&state, &step),
            sources,
            left_out,
            defaults,
            blueprint,
            cluster,
            topology,
            current,
            step,
            named,
            templates: templates.collect(),
        })
    }

    fn changes(&self) -> Vec<Change> {
        let mut changes = Vec::new();
        changes.extend(self.infrastructure());
        self.control_plane(&mut changes);
        changes.push(changes::cluster(
            self.cluster,
            self.current,
            self.references(),
            self.upgrade_step(),
        ));
        let all = self
            .topology
            .workers
            .iter()
            .zip(&self.named.workers)
            .zip(&self.step.workers);
        for ((said, named), part) in all {
            self.workers(said, named, part, &mut changes);
        }
        for ((kind, name), gone) in &self.current.workers {
            let mut workers = self.topology.workers.iter();
            if !workers.any(|one| one.kind == *kind && one.name == *name) {
                changes.extend(changes::gone(*kind, name, gone, self.current));
            }
        }
        changes
    }

    /// A template with its place's, if the class has one there.
    fn template(&self, place: &str) -> Option<(&Target, &Reference, &Value)> {
        let (target, reference, patched) = self.templates.get(place)?;
        Some((target, reference, patched))
    }

    fn infrastructure(&self) -> Option<Change> {
        let (target, reference, patched) = self.template("infrastructure-cluster")?;
        let said = Metadata {
            labels: owned::labels(&self.cluster.name),
            ..Metadata::default()
        };
        let mut wanted = object(target, reference, self.cluster, &self.named.infrastructure, said);
        take(&mut wanted, "/spec", patched);
        let place = Place::of("infrastructure-cluster", self.current);
        Some(changes::object(place, self.current.infrastructure, wanted))
    }

    /// Its health check, the template of its machines, and itself.
    fn control_plane(&self, changes: &mut Vec<Change>) {
        let (class, topology) = (&self.blueprint.class.control_plane, &self.topology.control_plane);
        let health = class.machines.as_ref().and_then(|_| {
            let named = (self.cluster, self.named.control_plane.as_str());
            let (of_class, said) = (class.health_check.as_ref(), topology.health_check.as_ref());
            health_check(of_class, said, named, Machines::ControlPlane)
        });
        let place = Place::of("control-plane/health-check", self.current);
        changes.extend(changes::health(place, &self.named.control_plane, health));
        let Some((target, _, patched)) = self.template("control-plane") else {
            return;
        };
        let part = &self.step.plane;
        if !part.waits.is_empty() {
            let wait = self
                .current
                .control_plane
                .map(|object| changes::wait("control-plane", object, &part.waits));
            changes.extend(wait);
            return;
        }
        let machines = self
            .template("control-plane-machines")
            .map(|(target, reference, patched)| {
                let name = self.named.machines.as_deref().unwrap_or_default();
                let mut wanted = template(target, reference, self.cluster, name, None);
                take(&mut wanted, "/spec/template/spec", patched);
                let place = Place::of("control-plane-machines", self.current);
                changes::template(place, self.cluster, None, self.current.machines, wanted)
            });
        let wanted = plane::Wanted {
            name: &self.named.control_plane,
            version: &part.version,
            machines: machines.as_ref().map(|change| change.name.as_str()),
            contract: self.blueprint.contract,
        };
        let object = control_plane(
            (target, patched),
            self.blueprint.class,
            self.cluster,
            self.topology,
            wanted,
        );
        let place = Place::of("control-plane", self.current);
        let of_plane = changes::object(place, self.current.control_plane, object);
        changes.extend(machines);
        changes.push(of_plane.with_machines());
    }

    /// Workers that are made or changed now, and those that wait.
    fn workers(
        &self,
        said: &WorkerTopology,
        named: &NamedWorker,
        part: &Result<Part, String>,
        changes: &mut Vec<Change>,
    ) {
        let Some(class) = self.blueprint.class.worker(said.kind, &said.class) else {
            return;
        };
        let at = format!("{}/{}", said.kind.place(), said.name);
        let part = match part {
            Ok(part) => part,
            Err(why) => {
                changes.push(changes::later(said.kind, &at, &named.object, why));
                return;
            }
        };
        changes.extend(self.health_of(class, said, named));
        let current = self.current.worker(said.kind, &said.name);
        if let (false, Some(current)) = (part.waits.is_empty(), current) {
            changes.push(changes::wait(&at, current.object, &part.waits));
            return;
        }
        match said.kind {
            WorkerKind::MachineDeployment => self.deployment(class, said, named, part, changes),
            WorkerKind::MachinePool => self.pool(class, said, named, part, changes),
        }
    }

    /// The health check of a machine deployment; machine pools have none.
    fn health_of(&self, class: &WorkerClass, said: &WorkerTopology, named: &NamedWorker) -> Option<Change> {
        if said.kind == WorkerKind::MachinePool {
            return None;
        }
        let own = (self.cluster, named.object.as_str());
        let (of_class, of_topology) = (class.health_check.as_ref(), said.health_check.as_ref());
        let health = health_check(of_class, of_topology, own, Machines::Deployment(&said.name));
        let place = format!("{}/{}/health-check", said.kind.place(), said.name);
        changes::health(Place::of(&place, self.current), &named.object, health)
    }

    /// The templates of a machine deployment, and itself.
    fn deployment(
        &self,
        class: &WorkerClass,
        said: &WorkerTopology,
        named: &NamedWorker,
        part: &Part,
        changes: &mut Vec<Change>,
    ) {
        let at = format!("{}/{}", said.kind.place(), said.name);
        let current = self.current.worker(said.kind, &said.name);
        let mut named = named.clone();
        for (which, name) in [
            ("bootstrap", &mut named.bootstrap),
            ("infrastructure", &mut named.machines),
        ] {
            let place = format!("{at}/{which}");
            let Some((target, reference, patched)) = self.template(&place) else {
                continue;
            };
            let mut wanted = template(target, reference, self.cluster, name, Some(&said.name));
            take(&mut wanted, "/spec/template/spec", patched);
            let there = current.and_then(|one| {
                if which == "bootstrap" {
                    one.bootstrap
                } else {
                    one.machines
                }
            });
            let place = Place::of(&place, self.current);
            let workers = Some((said.kind, said.name.as_str()));
            let change = changes::template(place, self.cluster, workers, there, wanted);
            name.clone_from(&change.name);
            changes.push(change);
        }
        let wanted = machine_deployment(class, self.cluster, said, &named, &part.version);
        let place = Place::of(&at, self.current);
        let change = changes::object(place, current.map(|one| one.object), wanted);
        changes.push(change.with_machines());
    }

    /// The references of the Cluster.
    fn references(&self) -> [(&'static str, Value); 2] {
        let class = self.blueprint.class;
        let refer = |reference: &Reference, name: &str| {
            let kind = reference.kind.strip_suffix("Template").unwrap_or(&reference.kind);
            super::parts::refer(&reference.api_version, kind, name)
        };
        [
            (
                "infrastructureRef",
                refer(&class.infrastructure, &self.named.infrastructure),
            ),
            (
                "controlPlaneRef",
                refer(&class.control_plane.template, &self.named.control_plane),
            ),
        ]
    }

    /// The version that an upgrade under way has reached.
    fn upgrade_step(&self) -> &str {
        if self.step.goes_on {
            &self.step.plane.version
        } else {
            ""
        }
    }
}

/// The values and the steps of patches that made the templates.
fn sources(told: &Told, applied: &Applied) -> Sources {
    let steps = applied.patched.iter();
    let variables = told.global.iter().filter(|(name, _)| *name != "builtin");
    Sources {
        patches: steps.map(|one| (one.target.clone(), one.steps.clone())).collect(),
        variables: variables
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
    }
}

/// Tells what patches could not do, and which templates have no content after them, unless an extension would add it.
fn told_of_patches(extended: &Extended, class: &Class, topology: &Topology, report: &mut Report) {
    let Extended { applied, refused, .. } = extended;
    if let Some((field, why)) = refused {
        report.say("extension", field, format!("{why} (ClusterClass {})", class.name));
        return;
    }
    for finding in applied.findings.iter().filter(|finding| finding.rule.is_error()) {
        let target = finding.target.as_deref().unwrap_or_default();
        let mut why = format!("{target}: {} of ClusterClass {}", finding.why, class.name);
        let mut patched = applied.patched.iter().filter(|one| one.target == target);
        let replaces = finding.rule == Rule::NotApplicable && finding.why.starts_with("replace");
        if replaces && patched.any(|one| !is_stored(&one.template)) {
            why += "; this is the template as the file has it: a server may store it with defaults, and --kubeconfig reads those";
        }
        report.say(finding.rule.name(), finding.place.to_string(), why);
    }
    let empty = applied.patched.iter().filter(|one| !has_content(&one.template));
    for patched in empty.filter(|_| !extended.incomplete) {
        let why = format!("{} has no spec.template, and no patch adds it", patched.target);
        report.say("template-empty", &topology.class.field, why);
    }
}

/// Returns true if a template was read from a server, which stores it with the defaults of its provider.
fn is_stored(template: &Value) -> bool {
    template.pointer("/metadata/resourceVersion").is_some()
}

mod pools;
#[cfg(test)]
mod tests;
