//! The objects that the agent writes, as plain values: the part of each object that is Tributary's and is compared.
//! Revisions, times, uids and constant labels are not content; the edge adds them.

use std::{collections::BTreeSet, net::IpAddr, sync::Arc};

use model::{
    ClusterId, Endpoint, EndpointPort, IpFamily, Metadata, ServicePolicies, ServicePort, ServiceType,
    SessionAffinity,
};

/// Affinity and traffic policies; absent where none is stated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Policies {
    /// Session affinity.
    pub session_affinity: Option<SessionAffinity>,
    /// sessionAffinityConfig.clientIP.timeoutSeconds.
    pub session_affinity_timeout_seconds: Option<i32>,
    /// "Cluster" or "Local".
    pub internal_traffic_policy: Option<Box<str>>,
    /// For example "PreferClose".
    pub traffic_distribution: Option<Box<str>>,
}

impl From<&ServicePolicies> for Policies {
    fn from(policies: &ServicePolicies) -> Self {
        Self {
            session_affinity: Some(policies.session_affinity),
            session_affinity_timeout_seconds: policies.session_affinity_timeout_seconds,
            internal_traffic_policy: policies.internal_traffic_policy.clone(),
            traffic_distribution: policies.traffic_distribution.clone(),
        }
    }
}

impl Policies {
    /// These, and `others` where none is stated.
    pub(super) fn or(self, others: Self) -> Self {
        let affinity = match self.session_affinity {
            Some(_) => (self.session_affinity, self.session_affinity_timeout_seconds),
            None => (others.session_affinity, others.session_affinity_timeout_seconds),
        };
        Self {
            session_affinity: affinity.0,
            session_affinity_timeout_seconds: affinity.1,
            internal_traffic_policy: self.internal_traffic_policy.or(others.internal_traffic_policy),
            traffic_distribution: self.traffic_distribution.or(others.traffic_distribution),
        }
    }
}

/// A ServiceImport but for its status.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ImportContent {
    /// ClusterSetIP or Headless; absent when somebody took the field over.
    pub service_type: Option<ServiceType>,
    /// The merged ports, in order.
    pub ports: Vec<ServicePort>,
    /// The clusterset IPs here.
    pub ips: Vec<IpAddr>,
    /// In the order of the IPs; of a headless service those of the oldest export.
    pub ip_families: Vec<IpFamily>,
    /// The winning policies.
    pub policies: Policies,
    /// The exported labels that won.
    pub labels: Metadata,
    /// The exported annotations that won.
    pub annotations: Metadata,
    /// The exporting clusters, noted on the object itself: the status comes in a second write.
    pub sources: BTreeSet<ClusterId>,
}

/// The status of a ServiceImport.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct ImportStatus {
    /// The exporting clusters.
    pub clusters: BTreeSet<ClusterId>,
    /// The condition Ready.
    pub ready: Option<Condition>,
    /// endpointSliceObjects says Present.
    pub endpoint_slice_objects: bool,
}

/// ipFamilyPolicy of a derived Service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FamilyPolicy {
    /// SingleStack.
    SingleStack,
    /// PreferDualStack.
    PreferDualStack,
}

/// A derived Service.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DerivedContent {
    /// All of them named. A set: the API server keeps an order of its own.
    pub ports: BTreeSet<ServicePort>,
    /// The import's ports, as far as this cluster accepts them.
    pub policies: Policies,
    /// One family or two.
    pub family_policy: Option<FamilyPolicy>,
    /// The families asked for.
    pub ip_families: Vec<IpFamily>,
    /// The exporting clusters, for the time without an import that names them.
    pub sources: BTreeSet<ClusterId>,
    /// The exported labels that the import carries: tools that select Services by them read nothing else.
    pub labels: Metadata,
    /// The exported annotations that the import carries.
    pub annotations: Metadata,
}

/// The object behind an endpoint, its pod; only a cluster's own slices name it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct TargetRef {
    /// For example "Pod".
    pub kind: Option<Box<str>>,
    /// Its namespace.
    pub namespace: Option<Box<str>>,
    /// Its name.
    pub name: Option<Box<str>>,
    /// Its uid.
    pub uid: Option<Box<str>>,
}

/// An endpoint as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SliceEndpoint {
    /// Addresses, conditions, hostname, zone.
    pub endpoint: Endpoint,
    /// Only in a cluster's own slices.
    pub node_name: Option<Box<str>>,
    /// Only in a cluster's own slices.
    pub target_ref: Option<Box<TargetRef>>,
    /// hints.forZones.
    pub for_zones: Vec<Box<str>>,
}

/// An imported EndpointSlice.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SliceContent {
    /// The service's name; absent when somebody took the label away.
    pub service: Option<Box<str>>,
    /// The cluster whose endpoints it holds; absent when somebody removed the label.
    pub source_cluster: Option<ClusterId>,
    /// The derived Service in whose name kube-proxy programs it.
    pub derived: Option<Box<str>>,
    /// The family of its addresses; absent for another kind of address, which ours never have.
    pub address_type: Option<IpFamily>,
    /// Named as the derived Service names them.
    pub ports: Vec<EndpointPort>,
    /// All endpoints.
    pub endpoints: Arc<[SliceEndpoint]>,
    /// The labels that this cluster puts on every object.
    pub labels: Metadata,
}

/// Status of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Nobody can say.
    Unknown,
}

/// Type of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionType {
    /// ServiceExport: it can be exported.
    Valid,
    /// ServiceExport: it has reached the clusterset. ServiceImport: it can be used here.
    Ready,
    /// ServiceExport: the exports disagree.
    Conflict,
    /// ServiceExport: every cluster of the clusterset holds its import.
    Arrived,
}

impl ConditionType {
    /// The type, as in the condition.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Valid => "Valid",
            Self::Ready => "Ready",
            Self::Conflict => "Conflict",
            Self::Arrived => "tributary.dev/Arrived",
        }
    }
}

/// A condition without its time: that follows from when the status changed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Condition {
    /// The condition's type.
    pub kind: ConditionType,
    /// The condition's status.
    pub status: ConditionStatus,
    /// Why, in one word.
    pub reason: Box<str>,
    /// The reason, for people.
    pub message: Box<str>,
    /// The generation that was judged; an import has none.
    pub observed_generation: Option<i64>,
}
