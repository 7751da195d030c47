//! Owns: the rules that a ClusterClass keeps by itself.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    super::{
        model::{Class, Metadata, Placed, Reference, Report, Version, WorkerKind, may_follow},
        template,
    },
    names::{check_metadata, is_dns_label},
    quantity::{check_health, check_rollout},
    taints::{Machines, check_taints},
};

/// Every rule of a class by itself; those of variables stand beside them.
pub(super) const RULES: &[fn(&Class, &mut Report)] = &[
    template_reference,
    worker_class_unique,
    rollout_strategy,
    health_check,
    naming_template,
    metadata,
    taints,
    kubernetes_versions,
];

fn references(class: &Class) -> impl Iterator<Item = &Reference> {
    let workers = class.workers.iter();
    [&class.infrastructure, &class.control_plane.template]
        .into_iter()
        .chain(&class.control_plane.machines)
        .chain(workers.flat_map(|worker| [&worker.bootstrap, &worker.machines]))
}

/// A reference says API version, a kind that is a template's, and a name; it stays in the class's namespace.
fn template_reference(class: &Class, report: &mut Report) {
    const RULE: &str = "template-reference";
    for reference in references(class) {
        let mut say =
            |name: &str, message: &str| report.say(RULE, format!("{}.{name}", reference.field), message);
        if reference.name.is_empty() {
            say("name", "must be given");
        }
        if reference.api_version.is_empty() {
            say("apiVersion", "must be given");
        }
        if reference.kind.strip_suffix("Template").is_none_or(str::is_empty) {
            say("kind", "must be the kind of a template, and end in Template");
        }
        if !reference.namespace.is_empty() && reference.namespace != class.namespace {
            say("namespace", "must be the namespace of the class");
        }
    }
}

/// Classes of workers have names, each its own.
fn worker_class_unique(class: &Class, report: &mut Report) {
    const RULE: &str = "worker-class-unique";
    let mut known = BTreeSet::new();
    for worker in &class.workers {
        let at = format!("{}.class", worker.field);
        if worker.class.is_empty() {
            report.say(RULE, at, "must be given");
        } else if !known.insert((worker.kind, &worker.class)) {
            report.say(RULE, at, format!("{} is given twice", worker.class));
        }
    }
}

/// A rollout can proceed: it may have one more machine, or one less.
fn rollout_strategy(class: &Class, report: &mut Report) {
    for rollout in class.workers.iter().filter_map(|worker| worker.rollout.as_ref()) {
        check_rollout(rollout, report);
    }
}

/// Health checks have sane numbers, and the control plane's has machines to look at.
fn health_check(class: &Class, report: &mut Report) {
    const RULE: &str = "health-check";
    let workers = class
        .workers
        .iter()
        .filter_map(|worker| worker.health_check.as_ref());
    for check in class.control_plane.health_check.iter().chain(workers) {
        check_health(check, RULE, report);
    }
    if let (Some(check), None) = (&class.control_plane.health_check, &class.control_plane.machines) {
        report.say(
            RULE,
            &check.field,
            "needs spec.controlPlane.machineInfrastructure: the control plane has no machines",
        );
    }
}

/// Templates of names make names.
fn naming_template(class: &Class, report: &mut Report) {
    const VARIABLES: &[u8] = br#"{"cluster": {"name": "cluster"}, "random": "bcdfg"}"#;
    const OF_DEPLOYMENT: &[u8] = br#"{"cluster": {"name": "cluster"}, "random": "bcdfg",
        "machineDeployment": {"topologyName": "workers"}}"#;
    const OF_POOL: &[u8] = br#"{"cluster": {"name": "cluster"}, "random": "bcdfg",
        "machinePool": {"topologyName": "workers"}}"#;
    for naming in class
        .infrastructure_naming
        .iter()
        .chain(&class.control_plane.naming)
    {
        check_naming(naming, VARIABLES, report);
    }
    for worker in &class.workers {
        let variables = match worker.kind {
            WorkerKind::MachineDeployment => OF_DEPLOYMENT,
            WorkerKind::MachinePool => OF_POOL,
        };
        if let Some(naming) = &worker.naming {
            check_naming(naming, variables, report);
        }
    }
}

fn check_naming(naming: &Placed<String>, variables: &[u8], report: &mut Report) {
    const RULE: &str = "naming-template";
    let outcome = template::render(&naming.value, variables);
    let made = outcome.rendered.unwrap_or_default();
    let name = String::from_utf8_lossy(&made);
    if let Some(problem) = outcome
        .problem
        .filter(|problem| problem.stage != template::Stage::Yaml)
    {
        report.say(RULE, &naming.field, problem.message);
    } else if let Some(finding) = outcome.findings.first() {
        report.say(RULE, &naming.field, finding.clone());
    } else if !is_dns_label(name.get(..58).unwrap_or(&name).trim_end_matches('-')) || name.ends_with('-') {
        report.say(
            RULE,
            &naming.field,
            format!("makes {name}, which is no name of an object"),
        );
    }
}

/// Labels and annotations are such.
fn metadata(class: &Class, report: &mut Report) {
    let workers = class.workers.iter().map(|worker| &worker.metadata);
    let variables = class.variables.iter().map(|variable| &variable.metadata);
    let own = std::iter::once(&class.control_plane.metadata);
    for metadata in own.chain(workers).chain(variables) {
        check_metadata(metadata, report);
    }
    for Placed { field, value } in class.variables.iter().map(|variable| &variable.schema) {
        metadata_of_schema(value, field, report);
    }
}

/// The same of `x-metadata` in a schema, and in what is nested.
fn metadata_of_schema(schema: &Value, path: &str, report: &mut Report) {
    let texts = |name: &str| {
        let texts = schema["x-metadata"][name].as_object().into_iter().flatten();
        texts
            .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
            .collect()
    };
    let metadata = Metadata {
        field: format!("{path}.x-metadata"),
        labels: texts("labels"),
        annotations: texts("annotations"),
    };
    check_metadata(&metadata, report);
    let properties = schema["properties"].as_object().into_iter().flatten();
    for (name, property) in properties {
        metadata_of_schema(property, &format!("{path}.properties[{name}]"), report);
    }
    for name in ["additionalProperties", "items"] {
        if let Some(nested) = schema.get(name) {
            metadata_of_schema(nested, &format!("{path}.{name}"), report);
        }
    }
}

/// Taints of nodes are such, and none that others keep for themselves.
fn taints(class: &Class, report: &mut Report) {
    let plane = &class.control_plane.settings;
    check_taints(Machines::OfControlPlane, plane, "spec.controlPlane", report);
    for worker in &class.workers {
        check_taints(Machines::OfWorkers, &worker.settings, &worker.field, report);
    }
}

/// The versions of a class rise, and leave no minor out.
fn kubernetes_versions(class: &Class, report: &mut Report) {
    const RULE: &str = "kubernetes-versions";
    let mut before: Option<(Version, &str)> = None;
    for placed in &class.versions {
        let Some(version) = Version::read(&placed.value) else {
            report.say(RULE, &placed.field, "must be a version, such as v1.30.0");
            continue;
        };
        if let Some((before, written)) = &before {
            if !may_follow(&placed.value, written) {
                report.say(RULE, &placed.field, "must be later than the one before");
            } else if version.numbers[0] != before.numbers[0] || version.numbers[1] > before.numbers[1] + 1 {
                report.say(RULE, &placed.field, "must not leave a minor version out");
            }
        }
        before = Some((version, &placed.value));
    }
}
