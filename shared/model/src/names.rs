//! Groups, versions, labels, annotations and object names: upstream's as their code spells them, and ours.
//! Constants only; `derived_name` has those that are computed.

/// API group of ServiceExport, ServiceImport and ClusterProfile.
pub const MULTICLUSTER_GROUP: &str = "multicluster.x-k8s.io";
/// API group of ClusterProperty.
pub const ABOUT_GROUP: &str = "about.k8s.io";

/// `apiVersion` in which ServiceExport and ServiceImport are read and written where it is served.
pub const MULTICLUSTER_API_VERSION: &str = "multicluster.x-k8s.io/v1beta1";
/// `apiVersion` of them in a cluster whose mcs-api has no newer one.
pub const MULTICLUSTER_OLDER_API_VERSION: &str = "multicluster.x-k8s.io/v1alpha1";
/// `apiVersion` in which ClusterProperty is read and written.
pub const ABOUT_API_VERSION: &str = "about.k8s.io/v1beta1";

// === Multi-Cluster Services (mcs-api) ===

/// On an imported EndpointSlice: the name of the multi-cluster service. CoreDNS selects by it.
pub const LABEL_SERVICE_NAME: &str = "multicluster.kubernetes.io/service-name";
/// On an imported EndpointSlice: the cluster that all its endpoints run in.
pub const LABEL_SOURCE_CLUSTER: &str = "multicluster.kubernetes.io/source-cluster";
/// On a ServiceImport: the name of its derived Service.
pub const ANNOTATION_DERIVED_SERVICE: &str = "multicluster.kubernetes.io/derived-service";
/// On an mcs-api CRD: the release its schema is from.
pub const LABEL_CRD_RELEASE_VERSION: &str = "multicluster.x-k8s.io/release-version";
/// On an mcs-api CRD: counts the changes of the schema within a release.
pub const LABEL_CRD_SCHEMA_REVISION: &str = "multicluster.x-k8s.io/crd-schema-revision";

// === Services and EndpointSlices of Kubernetes itself ===

/// On an EndpointSlice: the Service in whose name kube-proxy programs it. On an imported slice this is the
/// derived Service, never the plain name: kube-proxy would mix foreign endpoints into the local Service.
pub const LABEL_KUBERNETES_SERVICE_NAME: &str = "kubernetes.io/service-name";
/// On an EndpointSlice: who writes it.
pub const LABEL_ENDPOINT_SLICE_MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// On an EndpointSlice of a headless Service; kube-proxy passes such slices over.
pub const LABEL_HEADLESS_SERVICE: &str = "service.kubernetes.io/headless";
/// The value of `spec.clusterIP` that makes a Service headless.
pub const CLUSTER_IP_NONE: &str = "None";

// === Cluster identity and inventory (KEP-2149, KEP-4322) ===

/// ClusterProperty that holds the cluster's id.
pub const PROPERTY_CLUSTER_ID: &str = "cluster.clusterset.k8s.io";
/// ClusterProperty that holds the clusterset's name; exists only while the cluster is a member.
pub const PROPERTY_CLUSTERSET: &str = "clusterset.k8s.io";
/// On a ClusterProfile: the manager, equal to `spec.clusterManager.name`.
pub const LABEL_CLUSTER_MANAGER: &str = "x-k8s.io/cluster-manager";
/// On the namespace of an inventory that is a clusterset: the clusterset's name.
pub const LABEL_CLUSTERSET: &str = "multicluster.x-k8s.io/clusterset";
/// On a ClusterProfile: the member's id, unique and stable within the inventory namespace.
pub const LABEL_INVENTORY_MEMBER_ID: &str = "multicluster.x-k8s.io/inventory-member-id";
/// The annotation without which the API server refuses a CRD of the protected group `about.k8s.io`.
pub const ANNOTATION_API_APPROVED: &str = "api-approved.kubernetes.io";
/// Longest name of a property in `status.properties` of a ClusterProfile, in characters.
pub const PROFILE_PROPERTY_NAME_CHARS_MAX: usize = 253;
/// Longest property value that fits into `status.properties` of a ClusterProfile, in characters.
pub const PROFILE_PROPERTY_VALUE_CHARS_MAX: usize = 1024;
/// The namespace whose uid is a cluster's fingerprint.
pub const KUBE_SYSTEM_NAMESPACE: &str = "kube-system";

// === What a control plane says of itself (KEP-1965) ===

/// Selects the identity Leases of API servers of 1.27 and later, in [`KUBE_SYSTEM_NAMESPACE`].
pub const SELECTOR_API_SERVER_IDENTITY: &str = "apiserver.kubernetes.io/identity=kube-apiserver";
/// Selects those of 1.26 and before.
pub const SELECTOR_API_SERVER_IDENTITY_OLD: &str = "k8s.io/component=kube-apiserver";
/// The Lease of the controller manager's leader, in the same namespace.
pub const CONTROLLER_MANAGER_LEASE: &str = "kube-controller-manager";
/// The scheduler's Lease.
pub const SCHEDULER_LEASE: &str = "kube-scheduler";

// === Cluster API ===

/// API group of Cluster and ClusterClass.
pub const CLUSTER_API_GROUP: &str = "cluster.x-k8s.io";
/// Condition of a Cluster: whether it is as its topology says.
pub const CONDITION_TOPOLOGY_RECONCILED: &str = "TopologyReconciled";
/// On a Cluster, while it is upgraded: the version that its control plane is brought to.
pub const ANNOTATION_UPGRADE_STEP: &str = "topology.internal.cluster.x-k8s.io/upgrade-step";

// === Tributary's own ===

/// The namespace that hub and agent run in.
pub const TRIBUTARY_NAMESPACE: &str = "tributary-system";
/// Label that says which program owns an object.
pub const LABEL_MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The agent's field manager, and its value of [`LABEL_MANAGED_BY`].
pub const AGENT_MANAGER: &str = "tributary-agent";
/// The hub's field manager, and its value of [`LABEL_MANAGED_BY`].
pub const HUB_MANAGER: &str = "tributary-hub";
/// The agent's value of [`LABEL_ENDPOINT_SLICE_MANAGED_BY`].
pub const ENDPOINT_SLICE_MANAGER: &str = "tributary-agent.tributary.dev";
/// On what the agent writes: the revision of the decision it follows from. Not content: it rides along.
pub const ANNOTATION_REVISION: &str = "tributary.dev/revision";
/// On the agent's Lease: the highest epoch it has known; it refuses a hub with a lower one.
pub const ANNOTATION_EPOCH: &str = "tributary.dev/epoch";
/// On the agent's Lease: the fingerprint of the key under which the cluster's membership has ended; absent while it is a
/// member, or never was.
pub const ANNOTATION_ENDED_KEY: &str = "tributary.dev/membership-ended";
/// On the agent's Lease, by an operator: the imports on hold that a hub took away may go. The agent takes it off once it has
/// heeded it.
pub const ANNOTATION_ACCEPT_WITHDRAWALS: &str = "tributary.dev/accept-withdrawals";
/// On the agent's Lease: `true` says that its holder gives it back at a clean end. Holders of the first release never did,
/// and took it from anybody: theirs bars nobody.
pub const ANNOTATION_GIVEN_BACK: &str = "tributary.dev/given-back";
/// The agent's Lease in its own namespace; `leaseTransitions` grows by one at each start.
pub const AGENT_LEASE: &str = "tributary-agent";
/// Prefix of the name of a source cluster's Lease, in the agent's namespace of a cluster that holds its slices; the id
/// of the source follows. It has the labels [`LABEL_MANAGED_BY`] and [`LABEL_SOURCE_CLUSTER`].
pub const SOURCE_LEASE_PREFIX: &str = "tributary-source-";
/// On the Lease of a source cluster: what becomes of its slices when it expires; `withdraw`, `notReady` or `retain`.
pub const ANNOTATION_ON_EXPIRY: &str = "tributary.dev/on-expiry";
/// Label of the Lease that each process keeps of itself; its value is the program.
pub const LABEL_IDENTITY: &str = "tributary.dev/identity";
/// Label with the host name of the process that keeps the Lease.
pub const LABEL_HOSTNAME: &str = "kubernetes.io/hostname";
/// Property of a ClusterProfile: how many API servers renew their identity Lease, of how many, as `3/3`. The hub's: a
/// member reports none of this name, because the domain is ours.
pub const PROPERTY_API_SERVERS: &str = "apiservers.tributary.dev";
/// Prefix of ClusterProfile properties about the topology of the member's Cluster.
pub const PROPERTY_TOPOLOGY_PREFIX: &str = "topology.tributary.dev/";
/// Property of a ClusterProfile: whether the member's Cluster is as its topology says, and why not.
pub const PROPERTY_TOPOLOGY_RECONCILED: &str = "topology.tributary.dev/reconciled";
/// On a Cluster of Cluster API: the id of the member that it is. Without it that is the Cluster's uid.
pub const ANNOTATION_MEMBER_ID: &str = "tributary.dev/member-id";
/// On a Cluster of Cluster API: `off` keeps a hub from enrolling it and from having it leave when it is deleted.
pub const ANNOTATION_ENROLMENT: &str = "tributary.dev/enrolment";
/// On a Cluster of Cluster API, by the hub: the name of the token that was delivered to it, or [`ENROLLED_BEFORE`].
pub const ANNOTATION_ENROLLED: &str = "tributary.dev/enrolled";
/// On a Cluster of Cluster API, by the hub: the proof that it is the member whose id its annotation says.
pub const ANNOTATION_ENROLMENT_SEAL: &str = "tributary.dev/enrolment-seal";
/// The value of [`ANNOTATION_ENROLLED`] of a Cluster that was a member when the hub saw it first.
pub const ENROLLED_BEFORE: &str = "before";
/// On a Cluster of Cluster API, by the hub: its member leaves before the Cluster goes.
pub const FINALIZER_MEMBER: &str = "tributary.dev/member";
/// On a ClusterClass: the variables, by name and with commas between them, whose values ClusterProfiles show.
pub const ANNOTATION_PUBLISHED_VARIABLES: &str = "topology.tributary.dev/published-variables";
/// The cluster manager named by Tributary's ClusterProfiles.
pub const CLUSTER_MANAGER: &str = "tributary";
/// Prefix of the default inventory namespace; the clusterset's name follows.
pub const INVENTORY_NAMESPACE_PREFIX: &str = "tributary-";
