//! Owns: the rights that an agent needs in its cluster, as the table of the tests has them (`e2e/fixtures/permissions.yaml`,
//! which a test there holds equal to this).
//! Never: asks a cluster.

use shared::doctor::rights::Rights;

/// Rights that the agent's role must have. `tributary-system` stands for the namespace of the agent's Leases.
pub const NEEDED: [Rights; 34] = [
    Rights::of("multicluster.x-k8s.io", "serviceexports", &["list", "watch"]),
    Rights::of("", "services", &["list", "watch"]),
    Rights::of("discovery.k8s.io", "endpointslices", &["list", "watch"]),
    Rights::of("multicluster.x-k8s.io", "serviceimports", &["list", "watch"]),
    Rights::of("", "namespaces", &["list", "watch"]),
    Rights::of("about.k8s.io", "clusterproperties", &["list", "watch"]),
    Rights::of("about.k8s.io", "clusterproperties", &["get"]),
    Rights::of("", "namespaces", &["get"]).named("kube-system"),
    Rights::of(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        &["list", "watch"],
    )
    .named("serviceimports.multicluster.x-k8s.io"),
    Rights::of_path("/openapi/*", &["get"]),
    Rights::of_path("/version", &["get"]),
    Rights::of_path("/readyz", &["get"]),
    Rights::of_path("/livez", &["get"]),
    Rights::of("", "nodes", &["list", "watch"]),
    Rights::of("coordination.k8s.io", "leases", &["list", "watch"]).within("kube-system"),
    Rights::of("coordination.k8s.io", "leases", &["get"])
        .within("kube-system")
        .named("kube-controller-manager"),
    Rights::of("coordination.k8s.io", "leases", &["get"])
        .within("kube-system")
        .named("kube-scheduler"),
    Rights::of("multicluster.x-k8s.io", "serviceimports", &["create", "patch"]),
    Rights::of("", "services", &["create", "patch"]),
    Rights::of("discovery.k8s.io", "endpointslices", &["create", "patch"]),
    Rights::of("multicluster.x-k8s.io", "serviceimports/status", &["patch"]),
    Rights::of("multicluster.x-k8s.io", "serviceexports/status", &["patch"]),
    Rights::of("multicluster.x-k8s.io", "serviceimports", &["delete"]),
    Rights::of("", "services", &["delete"]),
    Rights::of("discovery.k8s.io", "endpointslices", &["delete"]),
    Rights::of("multicluster.x-k8s.io", "serviceimports", &["get"]),
    Rights::of("", "services", &["get"]),
    Rights::of("discovery.k8s.io", "endpointslices", &["get"]),
    Rights::of("events.k8s.io", "events", &["create"]),
    Rights::of("about.k8s.io", "clusterproperties", &["create", "patch"]).named("cluster.clusterset.k8s.io"),
    Rights::of("about.k8s.io", "clusterproperties", &["create", "patch"]).named("clusterset.k8s.io"),
    Rights::of("about.k8s.io", "clusterproperties", &["delete"]).named("clusterset.k8s.io"),
    Rights::of("coordination.k8s.io", "leases", &["get", "create", "update"]).within("tributary-system"),
    Rights::of("coordination.k8s.io", "leases", &["list", "delete"]).within("tributary-system"),
];
