//! Owns: the names of builtin variables that a class may take values from.

/// Fields of `builtin` that an operation may name; templates may name more.
const NAMES: &[(&str, &[&str])] = &[
    (
        "cluster",
        &[
            "name",
            "namespace",
            "uid",
            "metadata.labels",
            "metadata.annotations",
            "topology",
            "topology.version",
            "topology.class",
            "topology.classNamespace",
            "topology.classRef.name",
            "topology.classRef.namespace",
            "network",
            "network.serviceDomain",
            "network.services",
            "network.pods",
        ],
    ),
    (
        "controlPlane",
        &[
            "name",
            "version",
            "replicas",
            "metadata.labels",
            "metadata.annotations",
            "machineTemplate.infrastructureRef.name",
        ],
    ),
    (
        "machineDeployment",
        &[
            "class",
            "name",
            "topologyName",
            "version",
            "replicas",
            "metadata.labels",
            "metadata.annotations",
            "bootstrap.configRef.name",
            "infrastructureRef.name",
        ],
    ),
    (
        "machinePool",
        &[
            "class",
            "name",
            "topologyName",
            "version",
            "replicas",
            "metadata.labels",
            "metadata.annotations",
            "bootstrap.configRef.name",
            "infrastructureRef.name",
        ],
    ),
];

/// Returns true if a path is `builtin`, or one below it that exists.
pub(super) fn exists(path: &str) -> bool {
    let Some(path) = path.strip_prefix("builtin.") else {
        return path == "builtin";
    };
    let (group, field) = path.split_once('.').unwrap_or((path, ""));
    NAMES
        .iter()
        .any(|(name, fields)| *name == group && (path == group || fields.contains(&field)))
}

#[cfg(test)]
mod tests {
    use super::exists;

    #[test]
    fn those_that_upstream_lists() {
        for path in [
            "builtin",
            "builtin.cluster",
            "builtin.cluster.topology.classRef.name",
            "builtin.controlPlane.machineTemplate.infrastructureRef.name",
            "builtin.machineDeployment.metadata.labels",
            "builtin.machinePool.version",
        ] {
            assert!(exists(path), "{path}");
        }
        for path in [
            "builtin.",
            "builtin.cluster.",
            "builtin.cluster.metadata",
            "builtin.cluster.network.pods[0]",
            "builtin.machinePool.machines",
            "builtin.controlPlane.class",
            "builtins",
        ] {
            assert!(!exists(path), "{path}");
        }
    }
}
