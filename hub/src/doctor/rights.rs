//! Owns: the rights that a hub needs in its own cluster, as the table of the tests has them (`e2e/fixtures/permissions.yaml`,
//! which a test there holds equal to this).
//! Never: asks a cluster.

use shared::doctor::rights::Rights;

/// Rights that the hub's roles must have. `tributary-default` stands for the namespace of the inventory,
/// `tributary-system` for the hub's own.
pub const NEEDED: [Rights; 7] = [
    Rights::of("multicluster.x-k8s.io", "clusterprofiles", &["list", "watch"]).within("tributary-default"),
    Rights::of("multicluster.x-k8s.io", "clusterprofiles", &["create", "patch"]).within("tributary-default"),
    Rights::of("multicluster.x-k8s.io", "clusterprofiles", &["delete"]).within("tributary-default"),
    Rights::of("multicluster.x-k8s.io", "clusterprofiles/status", &["patch"]).within("tributary-default"),
    Rights::of("", "namespaces", &["get"]).within("tributary-default"),
    Rights::of("coordination.k8s.io", "leases", &["get", "create", "update"]).within("tributary-system"),
    Rights::of("coordination.k8s.io", "leases", &["list", "delete"]).within("tributary-system"),
];
