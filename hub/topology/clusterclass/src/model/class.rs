//! Owns: a ClusterClass as both spellings write it.

use serde_json::Value;

use super::{
    external::{External, INLINE, externals, upgrade_plan},
    finding::Report,
    limits::{MAX_PATCHES, MAX_VARIABLES, MAX_WORKERS},
    parts::{
        HealthCheck, Metadata, Placed, Reference, Rollout, Spelling, WorkerKind, health_check, metadata,
        metadata_at, naming, reference, referring, rollout,
    },
    read::Fields,
    settings::{Settings, settings},
};

/// A ClusterClass.
#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    /// The file that it was read from.
    pub origin: String,
    /// Its namespace, where its templates are too.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The template of the cluster's infrastructure.
    pub infrastructure: Reference,
    /// The control plane.
    pub control_plane: ControlPlaneClass,
    /// Template for the name of the cluster's infrastructure.
    pub infrastructure_naming: Option<Placed<String>>,
    /// Classes of machine deployments, then those of machine pools.
    pub workers: Vec<WorkerClass>,
    /// Variables with their schemas: its own, and those that its extensions have defined.
    pub variables: Vec<Definition>,
    /// Its external patches.
    pub external: Vec<External>,
    /// The extension that plans the upgrades of its clusters.
    pub upgrade_plan: Option<Placed<String>>,
    /// The whole class as written, for the reader of its patches.
    pub spec: Value,
    /// Versions that clusters may have, oldest first; all if there are none.
    pub versions: Vec<Placed<String>>,
}

/// The control plane of a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlPlaneClass {
    /// The template of the control plane.
    pub template: Reference,
    /// The template of its machines, if it has machines.
    pub machines: Option<Reference>,
    /// Labels and annotations.
    pub metadata: Metadata,
    /// Health check of its machines.
    pub health_check: Option<HealthCheck>,
    /// Template for its name.
    pub naming: Option<Placed<String>>,
    /// Further settings of its machines.
    pub settings: Settings,
}

/// A class of machine deployments or of machine pools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerClass {
    /// Machine deployments or machine pools.
    pub kind: WorkerKind,
    /// Its path.
    pub field: String,
    /// Its name.
    pub class: String,
    /// Labels and annotations.
    pub metadata: Metadata,
    /// The template of what makes a machine a node.
    pub bootstrap: Reference,
    /// The template of machines, or of a pool.
    pub machines: Reference,
    /// Health check of the machines.
    pub health_check: Option<HealthCheck>,
    /// Strategy for replacing machines.
    pub rollout: Option<Rollout>,
    /// Template for names.
    pub naming: Option<Placed<String>>,
    /// Further settings of its machines.
    pub settings: Settings,
}

/// The definition of a variable.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// Its path.
    pub field: String,
    /// Its name.
    pub name: String,
    /// True if every cluster must have it.
    pub required: bool,
    /// Its labels and annotations.
    pub metadata: Metadata,
    /// Its OpenAPI schema as it is written.
    pub schema: Placed<Value>,
    /// The sources of the definition: [`INLINE`] for the class itself, or the names of external patches.
    pub from: Vec<String>,
}

impl Class {
    /// A class of workers by its name.
    pub fn worker(&self, kind: WorkerKind, class: &str) -> Option<&WorkerClass> {
        let mut workers = self.workers.iter();
        workers.find(|worker| worker.kind == kind && worker.class == class)
    }

    /// The version in which it makes objects of a kind, or names templates of it.
    pub fn version_of(&self, group: &str, kind: &str) -> Option<&str> {
        let plane = &self.control_plane;
        let of_cluster = [&self.infrastructure, &plane.template].into_iter();
        let workers = self
            .workers
            .iter()
            .flat_map(|one| [&one.bootstrap, &one.machines]);
        let mut all = of_cluster.chain(&plane.machines).chain(workers);
        let found = all.find(|reference| {
            let (of, template) = reference.group_kind();
            of == group && (template == kind || template.strip_suffix("Template") == Some(kind))
        });
        found.map(|reference| reference.api_version.as_str())
    }

    /// Returns true if it defines a variable.
    pub fn defines(&self, variable: &str) -> bool {
        self.variables.iter().any(|defined| defined.name == variable)
    }

    /// Reads `spec`; faults of its shape are reported, and with `refuses` also that it needs extensions.
    pub(super) fn read(
        spec: &Value,
        spelling: Spelling,
        name: (String, String),
        refuses: bool,
        report: &mut Report,
    ) -> Self {
        let fields = Fields::open(
            Some(spec),
            "spec",
            &[
                "infrastructure",
                spelling.name("infrastructureNamingStrategy", "infrastructure"),
                "controlPlane",
                "workers",
                "variables",
                "patches",
                "availabilityGates",
                "upgrade",
                "kubernetesVersions",
            ],
            report,
        );
        let upgrade_plan = upgrade_plan(&fields, report);
        let template = spelling.name("ref", "templateRef");
        let known = [template, spelling.name("ref", "naming")];
        let infrastructure = fields.within("infrastructure", &known, report);
        let infrastructure_naming = match spelling {
            Spelling::V1Beta1 => naming(&fields, "infrastructureNamingStrategy", report),
            Spelling::V1Beta2 => naming(&infrastructure, "naming", report),
        };
        let control_plane = control_plane(&fields, spelling, report);
        let lists = fields.within("workers", &WorkerKind::ALL.map(WorkerKind::list), report);
        let mut workers = Vec::new();
        for kind in WorkerKind::ALL {
            for (path, item) in lists.items(kind.list(), MAX_WORKERS, report) {
                workers.push(worker(kind, &path, item, spelling, report));
            }
        }
        let external = externals(&fields, spelling, report);
        if refuses {
            refuse_extensions(&fields, report);
        }
        Self {
            origin: report.origin.clone(),
            namespace: name.0,
            name: name.1,
            infrastructure: reference(&infrastructure, spelling, report),
            control_plane,
            infrastructure_naming,
            workers,
            variables: fields
                .items("variables", MAX_VARIABLES, report)
                .into_iter()
                .map(|(path, item)| definition(path, item, spelling, report))
                .collect(),
            external,
            upgrade_plan,
            spec: spec.clone(),
            versions: versions(&fields, report),
        }
    }
}

/// Reports what of a class extensions would do.
fn refuse_extensions(spec: &Fields<'_>, report: &mut Report) {
    spec.left_out("upgrade", "extensions that plan upgrades", report);
    for (field, value) in spec.items("patches", MAX_PATCHES, &mut Report::new("", "")) {
        if value.get("external").is_some_and(|external| !external.is_null()) {
            let why = "external patches are not supported: remove it";
            report.say("left-out", format!("{field}.external"), why);
        }
    }
}

fn control_plane(spec: &Fields<'_>, spelling: Spelling, report: &mut Report) -> ControlPlaneClass {
    let known: &[&str] = match spelling {
        Spelling::V1Beta1 => &[
            "ref",
            "metadata",
            "machineInfrastructure",
            "machineHealthCheck",
            "namingStrategy",
            "nodeDrainTimeout",
            "nodeVolumeDetachTimeout",
            "nodeDeletionTimeout",
            "readinessGates",
            "taints",
        ],
        Spelling::V1Beta2 => &[
            "templateRef",
            "metadata",
            "machineInfrastructure",
            "healthCheck",
            "naming",
            "deletion",
            "readinessGates",
            "taints",
        ],
    };
    let fields = spec.within("controlPlane", known, report);
    let machines = referring(&fields, "machineInfrastructure", spelling, report);
    ControlPlaneClass {
        template: reference(&fields, spelling, report),
        machines: fields.get("machineInfrastructure").is_some().then_some(machines),
        metadata: metadata(&fields, report),
        health_check: health_check(&fields, spelling, report),
        naming: naming(&fields, spelling.name("namingStrategy", "naming"), report),
        settings: settings(&fields, spelling, report),
    }
}

const OLDER_DEPLOYMENT: &[&str] = &[
    "class",
    "template",
    "machineHealthCheck",
    "failureDomain",
    "namingStrategy",
    "nodeDrainTimeout",
    "nodeVolumeDetachTimeout",
    "nodeDeletionTimeout",
    "minReadySeconds",
    "readinessGates",
    "taints",
    "strategy",
];
const DEPLOYMENT: &[&str] = &[
    "class",
    "metadata",
    "bootstrap",
    "infrastructure",
    "healthCheck",
    "failureDomain",
    "naming",
    "deletion",
    "minReadySeconds",
    "readinessGates",
    "taints",
    "rollout",
];
const OLDER_POOL: &[&str] = &[
    "class",
    "template",
    "failureDomains",
    "namingStrategy",
    "nodeDrainTimeout",
    "nodeVolumeDetachTimeout",
    "nodeDeletionTimeout",
    "minReadySeconds",
    "taints",
];
const POOL: &[&str] = &[
    "class",
    "metadata",
    "bootstrap",
    "infrastructure",
    "failureDomains",
    "naming",
    "deletion",
    "minReadySeconds",
    "taints",
];

fn worker(
    kind: WorkerKind,
    path: &str,
    item: &Value,
    spelling: Spelling,
    report: &mut Report,
) -> WorkerClass {
    let known = match (kind, spelling) {
        (WorkerKind::MachineDeployment, Spelling::V1Beta1) => OLDER_DEPLOYMENT,
        (WorkerKind::MachineDeployment, Spelling::V1Beta2) => DEPLOYMENT,
        (WorkerKind::MachinePool, Spelling::V1Beta1) => OLDER_POOL,
        (WorkerKind::MachinePool, Spelling::V1Beta2) => POOL,
    };
    let fields = Fields::open(Some(item), path, known, report);
    let template = match spelling {
        Spelling::V1Beta1 => {
            Some(fields.within("template", &["metadata", "bootstrap", "infrastructure"], report))
        }
        Spelling::V1Beta2 => None,
    };
    let template = template.as_ref().unwrap_or(&fields);
    WorkerClass {
        kind,
        field: path.to_owned(),
        class: fields.text("class", report),
        metadata: metadata(template, report),
        bootstrap: referring(template, "bootstrap", spelling, report),
        machines: referring(template, "infrastructure", spelling, report),
        health_check: health_check(&fields, spelling, report),
        rollout: rollout(&fields, spelling, report),
        naming: naming(&fields, spelling.name("namingStrategy", "naming"), report),
        settings: settings(&fields, spelling, report),
    }
}

pub(super) fn definition(path: String, item: &Value, spelling: Spelling, report: &mut Report) -> Definition {
    let metadata = spelling.name("metadata", "deprecatedV1Beta1Metadata");
    let known = ["name", "required", "schema", metadata];
    let fields = Fields::open(Some(item), &path, &known, report);
    let schema = fields.within("schema", &["openAPIV3Schema"], report);
    Definition {
        name: fields.text("name", report),
        required: fields.flag("required", report).unwrap_or(false),
        metadata: metadata_at(&fields, metadata, report),
        schema: Placed {
            field: schema.at("openAPIV3Schema"),
            value: schema.get("openAPIV3Schema").cloned().unwrap_or_default(),
        },
        from: vec![INLINE.to_owned()],
        field: path,
    }
}

fn versions(spec: &Fields<'_>, report: &mut Report) -> Vec<Placed<String>> {
    let mut read = Vec::new();
    for (field, value) in spec.items("kubernetesVersions", MAX_VARIABLES, report) {
        match value {
            Value::String(value) => read.push(Placed {
                field,
                value: value.clone(),
            }),
            _ => report.say("type", field, "must be a text"),
        }
    }
    read
}
