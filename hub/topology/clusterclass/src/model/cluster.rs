//! Owns: a Cluster's topology, in both spellings.

use serde_json::Value;

use super::{
    Key,
    finding::Report,
    limits::MAX_WORKERS,
    parts::{
        HealthCheck, Metadata, Placed, Rollout, Spelling, Variable, WorkerKind, health_check, metadata,
        overrides, rollout, variables,
    },
    read::Fields,
    settings::{Settings, settings},
};

/// Annotations of lifecycle hooks start so.
const HOOKS: &str = "before-upgrade.hook.cluster.cluster.x-k8s.io";

/// A Cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    /// The file that it was read from.
    pub origin: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its identity, if a server has given it one.
    pub uid: Option<String>,
    /// Its labels and annotations.
    pub metadata: Metadata,
    /// The ones of `infrastructureRef` and `controlPlaneRef` that it has.
    pub references: Vec<String>,
    /// `spec.clusterNetwork`.
    pub network: Network,
    /// Its topology, if it has one.
    pub topology: Option<Topology>,
}

/// `spec.clusterNetwork`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Network {
    /// The domain of services.
    pub service_domain: String,
    /// Blocks of addresses of services.
    pub services: Vec<Placed<String>>,
    /// Blocks of addresses of pods.
    pub pods: Vec<Placed<String>>,
}

/// `spec.topology`.
#[derive(Debug, Clone, PartialEq)]
pub struct Topology {
    /// The class's name.
    pub class: Placed<String>,
    /// The class's namespace, the Cluster's unless it is written.
    pub class_namespace: String,
    /// The version of Kubernetes.
    pub version: Placed<String>,
    /// The control plane.
    pub control_plane: ControlPlaneTopology,
    /// Machine deployments, then machine pools.
    pub workers: Vec<WorkerTopology>,
    /// Values of the class's variables.
    pub variables: Vec<Variable>,
}

/// The control plane of a topology.
#[derive(Debug, Clone, PartialEq)]
pub struct ControlPlaneTopology {
    /// Labels and annotations.
    pub metadata: Metadata,
    /// Number of machines, if stated.
    pub replicas: Option<i64>,
    /// Override of the class's health check.
    pub health_check: Option<HealthCheck>,
    /// Further settings of its machines.
    pub settings: Settings,
    /// Values that go before the Cluster's.
    pub overrides: Vec<Variable>,
}

/// A machine deployment or a machine pool of a topology.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerTopology {
    /// Machine deployment or machine pool.
    pub kind: WorkerKind,
    /// Its path.
    pub field: String,
    /// Its class's name.
    pub class: String,
    /// Its name.
    pub name: String,
    /// Labels and annotations.
    pub metadata: Metadata,
    /// Number of machines, if stated.
    pub replicas: Option<Placed<i64>>,
    /// Override of the class's health check.
    pub health_check: Option<HealthCheck>,
    /// Strategy for replacing machines, unless it is the class's.
    pub rollout: Option<Rollout>,
    /// Further settings of its machines.
    pub settings: Settings,
    /// Values that go before the Cluster's.
    pub overrides: Vec<Variable>,
}

/// Returns true if an annotation holds the upgrade of a Cluster until it is removed.
pub fn is_hook(annotation: &str) -> bool {
    annotation.starts_with(HOOKS)
}

/// Reports annotations that hold upgrades.
pub(super) fn refuse_hooks(metadata: &Metadata, report: &mut Report) {
    for key in metadata.annotations.keys().filter(|key| is_hook(key)) {
        report.say(
            "left-out",
            format!("metadata.annotations[{key}]"),
            "lifecycle hooks are not supported: remove it",
        );
    }
}

impl Cluster {
    /// Reads a Cluster; faults of its shape are reported.
    pub(super) fn read(
        spec: &Value,
        spelling: Spelling,
        (namespace, name): (String, String),
        (metadata, uid): (Metadata, Option<String>),
        report: &mut Report,
    ) -> Self {
        let known = [
            "paused",
            "clusterNetwork",
            "controlPlaneEndpoint",
            "controlPlaneRef",
            "infrastructureRef",
            "topology",
            "availabilityGates",
        ];
        let fields = Fields::open(Some(spec), "spec", &known, report);
        let written = fields.within(
            "clusterNetwork",
            &["apiServerPort", "services", "pods", "serviceDomain"],
            report,
        );
        let mut blocks = |name: &str| -> Vec<Placed<String>> {
            let ranges = written.within(name, &["cidrBlocks"], report);
            let blocks = ranges.items("cidrBlocks", MAX_WORKERS, report).into_iter();
            let placed = |(field, block): (String, &Value)| Placed {
                field,
                value: block.as_str().unwrap_or_default().to_owned(),
            };
            blocks.map(placed).collect()
        };
        let network = Network {
            services: blocks("services"),
            pods: blocks("pods"),
            service_domain: written.text("serviceDomain", report),
        };
        Self {
            origin: report.origin.clone(),
            references: ["infrastructureRef", "controlPlaneRef"]
                .into_iter()
                .filter(|name| fields.get(name).is_some())
                .map(str::to_owned)
                .collect(),
            network,
            topology: fields
                .get("topology")
                .map(|value| topology(value, spelling, &namespace, report)),
            namespace,
            name,
            uid,
            metadata,
        }
    }
}

/// The class of a topology in either spelling, of a Cluster in this namespace. For who asks nothing else of an object
/// that a server has judged: what is not there is empty.
pub fn class_of(topology: &Value, namespace: &str) -> Key {
    let text = |place: &str| topology.pointer(place).and_then(Value::as_str);
    let within = text("/classRef/namespace").or_else(|| text("/classNamespace"));
    let within = within.filter(|namespace| !namespace.is_empty());
    let class = text("/classRef/name").or_else(|| text("/class"));
    (
        within.unwrap_or(namespace).to_owned(),
        class.unwrap_or_default().to_owned(),
    )
}

fn topology(value: &Value, spelling: Spelling, namespace: &str, report: &mut Report) -> Topology {
    let known: &[&str] = match spelling {
        Spelling::V1Beta1 => &[
            "class",
            "classNamespace",
            "version",
            "rolloutAfter",
            "controlPlane",
            "workers",
            "variables",
        ],
        Spelling::V1Beta2 => &["classRef", "version", "controlPlane", "workers", "variables"],
    };
    let fields = Fields::open(Some(value), "spec.topology", known, report);
    let (class, written) = match spelling {
        Spelling::V1Beta1 => (
            Placed {
                field: fields.at("class"),
                value: fields.text("class", report),
            },
            fields.text("classNamespace", report),
        ),
        Spelling::V1Beta2 => {
            let named = fields.within("classRef", &["name", "namespace"], report);
            let class = Placed {
                field: named.at("name"),
                value: named.text("name", report),
            };
            (class, named.text("namespace", report))
        }
    };
    let lists = fields.within("workers", &WorkerKind::ALL.map(WorkerKind::list), report);
    Topology {
        class,
        class_namespace: if written.is_empty() {
            namespace.to_owned()
        } else {
            written
        },
        version: Placed {
            field: fields.at("version"),
            value: fields.text("version", report),
        },
        control_plane: control_plane(&fields, spelling, report),
        workers: workers(&lists, spelling, report),
        variables: variables(&fields, "variables", report),
    }
}

fn control_plane(topology: &Fields<'_>, spelling: Spelling, report: &mut Report) -> ControlPlaneTopology {
    let known: &[&str] = match spelling {
        Spelling::V1Beta1 => &[
            "metadata",
            "replicas",
            "machineHealthCheck",
            "nodeDrainTimeout",
            "nodeVolumeDetachTimeout",
            "nodeDeletionTimeout",
            "readinessGates",
            "taints",
            "rollout",
            "variables",
        ],
        Spelling::V1Beta2 => &[
            "metadata",
            "replicas",
            "rollout",
            "healthCheck",
            "deletion",
            "readinessGates",
            "taints",
            "variables",
        ],
    };
    let fields = topology.within("controlPlane", known, report);
    fields.within("rollout", &["after"], report);
    ControlPlaneTopology {
        metadata: metadata(&fields, report),
        replicas: fields.whole("replicas", report),
        health_check: health_check(&fields, spelling, report),
        settings: settings(&fields, spelling, report),
        overrides: overrides(&fields, report),
    }
}

fn workers(lists: &Fields<'_>, spelling: Spelling, report: &mut Report) -> Vec<WorkerTopology> {
    let mut workers = Vec::new();
    for kind in WorkerKind::ALL {
        for (path, item) in lists.items(kind.list(), MAX_WORKERS, report) {
            workers.push(worker(kind, path, item, spelling, report));
        }
    }
    workers
}

const OLDER_DEPLOYMENT: &[&str] = &[
    "class",
    "name",
    "metadata",
    "replicas",
    "failureDomain",
    "machineHealthCheck",
    "nodeDrainTimeout",
    "nodeVolumeDetachTimeout",
    "nodeDeletionTimeout",
    "minReadySeconds",
    "readinessGates",
    "taints",
    "rollout",
    "strategy",
    "variables",
];
const DEPLOYMENT: &[&str] = &[
    "class",
    "name",
    "metadata",
    "replicas",
    "failureDomain",
    "healthCheck",
    "deletion",
    "minReadySeconds",
    "readinessGates",
    "taints",
    "rollout",
    "variables",
];
const OLDER_POOL: &[&str] = &[
    "class",
    "name",
    "metadata",
    "replicas",
    "failureDomains",
    "nodeDrainTimeout",
    "nodeVolumeDetachTimeout",
    "nodeDeletionTimeout",
    "minReadySeconds",
    "taints",
    "variables",
];
const POOL: &[&str] = &[
    "class",
    "name",
    "metadata",
    "replicas",
    "failureDomains",
    "deletion",
    "minReadySeconds",
    "taints",
    "variables",
];

fn worker(
    kind: WorkerKind,
    path: String,
    item: &Value,
    spelling: Spelling,
    report: &mut Report,
) -> WorkerTopology {
    let known = match (kind, spelling) {
        (WorkerKind::MachineDeployment, Spelling::V1Beta1) => OLDER_DEPLOYMENT,
        (WorkerKind::MachineDeployment, Spelling::V1Beta2) => DEPLOYMENT,
        (WorkerKind::MachinePool, Spelling::V1Beta1) => OLDER_POOL,
        (WorkerKind::MachinePool, Spelling::V1Beta2) => POOL,
    };
    let fields = Fields::open(Some(item), &path, known, report);
    WorkerTopology {
        kind,
        class: fields.text("class", report),
        name: fields.text("name", report),
        metadata: metadata(&fields, report),
        replicas: fields.whole("replicas", report).map(|value| Placed {
            field: fields.at("replicas"),
            value,
        }),
        health_check: health_check(&fields, spelling, report),
        rollout: rollout(&fields, spelling, report),
        settings: settings(&fields, spelling, report),
        overrides: overrides(&fields, report),
        field: path,
    }
}
