//! Owns: what classes and clusters share: references, metadata, health checks, rollouts, variables with values.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{
    finding::Report,
    limits::MAX_VARIABLES,
    older::{older_checks, older_remediation},
    read::{Fields, seconds},
};

/// The API version that an object is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    /// `cluster.x-k8s.io/v1beta1`
    V1Beta1,
    /// `cluster.x-k8s.io/v1beta2`
    V1Beta2,
}

impl Spelling {
    /// The name of a field in this spelling.
    pub(super) fn name(self, older: &'static str, newer: &'static str) -> &'static str {
        match self {
            Self::V1Beta1 => older,
            Self::V1Beta2 => newer,
        }
    }
}

/// A kind of workers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkerKind {
    /// Machines of their own, from templates.
    #[default]
    MachineDeployment,
    /// Machines that a provider keeps as a whole, such as a scaling group.
    MachinePool,
}

impl WorkerKind {
    /// Both, in the order in which they are planned.
    pub const ALL: [Self; 2] = [Self::MachineDeployment, Self::MachinePool];

    /// The kind of their objects.
    pub fn kind(self) -> &'static str {
        self.one_of("MachineDeployment", "MachinePool")
    }

    /// Their list in `workers` of a class and of a topology.
    pub fn list(self) -> &'static str {
        self.one_of("machineDeployments", "machinePools")
    }

    /// Their part of `builtin`, and of what templates of names are given.
    pub fn builtin(self) -> &'static str {
        self.one_of("machineDeployment", "machinePool")
    }

    /// The first part of their places.
    pub fn place(self) -> &'static str {
        self.one_of("machine-deployment", "machine-pool")
    }

    /// One of them in a sentence.
    pub fn words(self) -> &'static str {
        self.one_of("machine deployment", "machine pool")
    }

    fn one_of(self, deployment: &'static str, pool: &'static str) -> &'static str {
        match self {
            Self::MachineDeployment => deployment,
            Self::MachinePool => pool,
        }
    }
}

/// A value and where it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed<T> {
    /// The field's path.
    pub field: String,
    /// The value.
    pub value: T,
}

/// A reference to a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Its path.
    pub field: String,
    /// Group and version.
    pub api_version: String,
    /// The template's kind.
    pub kind: String,
    /// The template's name.
    pub name: String,
    /// The namespace, if one is written (v1beta1).
    pub namespace: String,
}

impl Reference {
    /// Returns true if it is for templates of this type; one that is not given is for none.
    pub fn is(&self, api_version: &str, kind: &str) -> bool {
        !self.name.is_empty() && self.api_version == api_version && self.kind == kind
    }

    /// API group and kind, which a change may not touch.
    pub fn group_kind(&self) -> (&str, &str) {
        let group = self.api_version.split_once('/').map_or("", |(group, _)| group);
        (group, &self.kind)
    }
}

/// Labels and annotations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Their path.
    pub field: String,
    /// Labels by key.
    pub labels: BTreeMap<String, String>,
    /// Annotations by key.
    pub annotations: BTreeMap<String, String>,
}

/// A health check of a class, or what a cluster says of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthCheck {
    /// Its path.
    pub field: String,
    /// True if the cluster wants one; a class does not say.
    pub enabled: Option<bool>,
    /// True if it has more than `enabled`.
    pub defined: bool,
    /// Time for a node to come up, in seconds; 0 for ever.
    pub startup_seconds: Option<Placed<i64>>,
    /// Numbers or percentages.
    pub quantities: Vec<Placed<Value>>,
    /// The checks, as v1beta2 writes them.
    pub checks: Map<String, Value>,
    /// The remediation, as v1beta2 writes it.
    pub remediation: Map<String, Value>,
}

/// A strategy for replacing machines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rollout {
    /// Its path.
    pub field: String,
    /// Number of additional machines, a number or a percentage.
    pub max_surge: Option<Placed<Value>>,
    /// Number of machines that may be missing.
    pub max_unavailable: Option<Placed<Value>>,
}

/// A variable with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    /// Its path.
    pub field: String,
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Value,
}

const REFERENCE: &[&str] = &[
    "apiVersion",
    "kind",
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "fieldPath",
];

/// `ref` or `templateRef` of an object.
pub(super) fn reference(within: &Fields<'_>, spelling: Spelling, report: &mut Report) -> Reference {
    let known = match spelling {
        Spelling::V1Beta1 => REFERENCE,
        Spelling::V1Beta2 => &REFERENCE[..3],
    };
    let fields = within.within(spelling.name("ref", "templateRef"), known, report);
    Reference {
        field: fields.path().to_owned(),
        api_version: fields.text("apiVersion", report),
        kind: fields.text("kind", report),
        name: fields.text("name", report),
        namespace: fields.text("namespace", report),
    }
}

/// An object that has a reference only.
pub(super) fn referring(
    within: &Fields<'_>,
    name: &str,
    spelling: Spelling,
    report: &mut Report,
) -> Reference {
    let fields = within.within(name, &[spelling.name("ref", "templateRef")], report);
    reference(&fields, spelling, report)
}

/// `metadata` of an object.
pub(super) fn metadata(within: &Fields<'_>, report: &mut Report) -> Metadata {
    metadata_at(within, "metadata", report)
}

/// The same where it has another name.
pub(super) fn metadata_at(within: &Fields<'_>, name: &str, report: &mut Report) -> Metadata {
    let fields = within.within(name, &["labels", "annotations"], report);
    Metadata {
        field: fields.path().to_owned(),
        labels: fields.texts("labels", report),
        annotations: fields.texts("annotations", report),
    }
}

/// The template of names, if there is one.
pub(super) fn naming(within: &Fields<'_>, name: &str, report: &mut Report) -> Option<Placed<String>> {
    let fields = within.within(name, &["template"], report);
    let template = fields.text("template", report);
    (!template.is_empty()).then(|| Placed {
        field: fields.at("template"),
        value: template,
    })
}

/// `healthCheck` or `machineHealthCheck` of an object, if it has one.
pub(super) fn health_check(
    within: &Fields<'_>,
    spelling: Spelling,
    report: &mut Report,
) -> Option<HealthCheck> {
    match spelling {
        Spelling::V1Beta1 => older_health_check(within, report),
        Spelling::V1Beta2 => newer_health_check(within, report),
    }
}

fn older_health_check(within: &Fields<'_>, report: &mut Report) -> Option<HealthCheck> {
    const KNOWN: &[&str] = &[
        "enable",
        "nodeStartupTimeout",
        "maxUnhealthy",
        "unhealthyRange",
        "unhealthyConditions",
        "unhealthyMachineConditions",
        "remediationTemplate",
    ];
    let fields = within.within("machineHealthCheck", KNOWN, report);
    within.get("machineHealthCheck")?;
    let written = fields.text("nodeStartupTimeout", report);
    let startup_seconds = seconds(&written).map(|value| Placed {
        field: fields.at("nodeStartupTimeout"),
        value,
    });
    if startup_seconds.is_none() && !written.is_empty() {
        report.say(
            "type",
            fields.at("nodeStartupTimeout"),
            "must be a duration such as 10m",
        );
    }
    Some(HealthCheck {
        field: fields.path().to_owned(),
        enabled: fields.flag("enable", report),
        defined: KNOWN[1..].iter().any(|name| fields.get(name).is_some()),
        startup_seconds,
        quantities: quantity(&fields, "maxUnhealthy").into_iter().collect(),
        checks: older_checks(&fields),
        remediation: older_remediation(&fields),
    })
}

fn newer_health_check(within: &Fields<'_>, report: &mut Report) -> Option<HealthCheck> {
    let fields = within.within("healthCheck", &["enabled", "checks", "remediation"], report);
    within.get("healthCheck")?;
    let checks = fields.within(
        "checks",
        &[
            "nodeStartupTimeoutSeconds",
            "unhealthyNodeConditions",
            "unhealthyMachineConditions",
        ],
        report,
    );
    let remediation = fields.within(
        "remediation",
        &["maxInFlight", "triggerIf", "templateRef"],
        report,
    );
    let trigger = remediation.within(
        "triggerIf",
        &["unhealthyLessThanOrEqualTo", "unhealthyInRange"],
        report,
    );
    Some(HealthCheck {
        field: fields.path().to_owned(),
        enabled: fields.flag("enabled", report),
        defined: checks.any() || remediation.any(),
        startup_seconds: checks
            .whole("nodeStartupTimeoutSeconds", report)
            .map(|value| Placed {
                field: checks.at("nodeStartupTimeoutSeconds"),
                value,
            }),
        quantities: quantity(&trigger, "unhealthyLessThanOrEqualTo")
            .into_iter()
            .chain(quantity(&remediation, "maxInFlight"))
            .collect(),
        checks: checks.map(),
        remediation: remediation.map(),
    })
}

fn quantity(within: &Fields<'_>, name: &str) -> Option<Placed<Value>> {
    within.get(name).map(|value| Placed {
        field: within.at(name),
        value: value.clone(),
    })
}

/// `strategy` (v1beta1) or `rollout.strategy` (v1beta2) of an object, if it has one.
pub(super) fn rollout(within: &Fields<'_>, spelling: Spelling, report: &mut Report) -> Option<Rollout> {
    let fields = match spelling {
        Spelling::V1Beta1 => {
            // For topologies alone, and only where a strategy has no value.
            within.within("rollout", &["after"], report);
            within.within("strategy", &["type", "rollingUpdate", "remediation"], report)
        }
        Spelling::V1Beta2 => within.within("rollout", &["after", "strategy"], report).within(
            "strategy",
            &["type", "rollingUpdate"],
            report,
        ),
    };
    if !fields.any() {
        return None;
    }
    let kind = fields.text("type", report);
    if !["", "RollingUpdate", "OnDelete"].contains(&kind.as_str()) {
        report.say("type", fields.at("type"), "must be RollingUpdate or OnDelete");
    }
    let rolling = fields.within(
        "rollingUpdate",
        &["maxSurge", "maxUnavailable", "deletePolicy"],
        report,
    );
    Some(Rollout {
        field: fields.path().to_owned(),
        max_surge: quantity(&rolling, "maxSurge"),
        max_unavailable: quantity(&rolling, "maxUnavailable"),
    })
}

/// A list of variables with values.
pub(super) fn variables(within: &Fields<'_>, name: &str, report: &mut Report) -> Vec<Variable> {
    let items = within.items(name, MAX_VARIABLES, report);
    items
        .into_iter()
        .map(|(path, item)| {
            let fields = Fields::open(Some(item), &path, &["name", "value", "definitionFrom"], report);
            if !fields.text("definitionFrom", report).is_empty() {
                fields.left_out("definitionFrom", "definitions that extensions make", report);
            }
            Variable {
                field: path,
                name: fields.text("name", report),
                value: fields.get("value").cloned().unwrap_or_default(),
            }
        })
        .collect()
}

/// `variables.overrides` of an object.
pub(super) fn overrides(within: &Fields<'_>, report: &mut Report) -> Vec<Variable> {
    let fields = within.within("variables", &["overrides"], report);
    variables(&fields, "overrides", report)
}
