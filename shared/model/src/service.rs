//! A Service as clusters export it: type, ports, policies, labels.
//! It says what one cluster offers; who wins among several is decided by the hub's fold.

use std::{collections::BTreeMap, sync::Arc};

use super::{EndpointPort, FewMap, IpFamily, Protocol, ServiceKey, UnixMillis};

/// Largest sum of exported labels and annotations of one export, keys and values together.
pub const EXPORTED_METADATA_BYTES_MAX: usize = 32 * 1024;
/// Longest free string of a Service (appProtocol, policies), in bytes.
pub const SERVICE_STRING_BYTES_MAX: usize = 256;

/// Type of a service in importing clusters (KEP-1645).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ServiceType {
    /// A virtual IP in every importing cluster.
    ClusterSetIp,
    /// No virtual IP; DNS answers with endpoints.
    Headless,
}

/// A port of a Service, as far as it is part of the multi-cluster contract.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServicePort {
    /// Empty for the unnamed port.
    pub name: Box<str>,
    /// The transport protocol.
    pub protocol: Protocol,
    /// 1 to 65535.
    pub port: u16,
    /// The application protocol, if stated.
    pub app_protocol: Option<Box<str>>,
}

/// A client's affinity to an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SessionAffinity {
    /// No affinity.
    None,
    /// By client IP.
    ClientIp,
}

/// An export's copy of its Service's fields, beyond ports and type: carried verbatim, API server defaults included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServicePolicies {
    /// Session affinity.
    pub session_affinity: SessionAffinity,
    /// sessionAffinityConfig.clientIP.timeoutSeconds.
    pub session_affinity_timeout_seconds: Option<i32>,
    /// "Cluster" or "Local"; absent compares as Cluster.
    pub internal_traffic_policy: Option<Box<str>>,
    /// For example "PreferClose".
    pub traffic_distribution: Option<Box<str>>,
}

/// Labels or annotations.
pub type Metadata = BTreeMap<Box<str>, Box<str>>;

/// A ServiceExport joined with its Service in one cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// The service.
    pub service: ServiceKey,
    /// creationTimestamp of the ServiceExport as its API server states it (whole seconds).
    pub created_at: UnixMillis,
    /// uid of the ServiceExport.
    pub uid: Box<str>,
    /// generation of the ServiceExport.
    pub generation: i64,
    /// Its type.
    pub service_type: ServiceType,
    /// In the Service's order.
    pub ports: Vec<ServicePort>,
    /// Affinity and traffic policies.
    pub policies: ServicePolicies,
    /// In the Service's order; one or two, without duplicates.
    pub ip_families: Vec<IpFamily>,
    /// spec.exportedLabels.
    pub labels: Metadata,
    /// spec.exportedAnnotations.
    pub annotations: Metadata,
}

/// A ServiceImport as precedence decides it: the same for every member, but for its own eligible ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceImport {
    /// The service.
    pub service: ServiceKey,
    /// The oldest export's.
    pub service_type: ServiceType,
    /// The union of all exports' ports, merged by name and then by protocol and port.
    pub ports: Vec<ServicePort>,
    /// Each by precedence.
    pub policies: ServicePolicies,
    /// The oldest export's.
    pub ip_families: Vec<IpFamily>,
    /// The oldest export's.
    pub labels: Metadata,
    /// The oldest export's.
    pub annotations: Metadata,
    /// The exporting clusters, and for each the indexes into `ports` of those it defines in the same way
    /// (protocol and port; the name may be another one, and so may the appProtocol).
    pub clusters: FewMap<super::ClusterId, Vec<u16>>,
}

impl ServiceImport {
    /// The ports that `cluster` may serve; empty when it does not export the service.
    pub fn eligible_ports<'a>(&'a self, cluster: &super::ClusterId) -> impl Iterator<Item = &'a ServicePort> {
        let indexes = self.clusters.get(cluster).map(Vec::as_slice).unwrap_or_default();
        indexes
            .iter()
            .filter_map(|&index| self.ports.get(usize::from(index)))
    }

    /// The ports of one of `cluster`'s slices that it serves in the import, under the names that they have there.
    /// `exported` are the ports of its Service, by which a slice's port has a number. None: the slice is not imported,
    /// because the cluster does not export the service or serves none of its ports.
    /// A slice that never had ports (a headless Service without any) stays.
    pub fn narrow_ports(
        &self,
        cluster: &super::ClusterId,
        exported: &[ServicePort],
        ports: &[EndpointPort],
    ) -> Option<Vec<EndpointPort>> {
        if !self.clusters.contains_key(cluster) {
            return None;
        }
        let as_imported = |port: &EndpointPort| {
            let merged = served_as(port, exported, self.eligible_ports(cluster))?;
            Some(EndpointPort {
                name: merged.name.clone(),
                ..port.clone()
            })
        };
        let mut kept: Vec<_> = ports.iter().filter_map(as_imported).collect();
        kept.shrink_to_fit();
        (ports.is_empty() || !kept.is_empty()).then_some(kept)
    }
}

/// The port of an import by which clients reach a slice's port: it has the protocol and number that the Service of
/// `exported` ports gives to the slice's port. Absent when it is none of `eligible`.
pub fn served_as<'a>(
    port: &EndpointPort,
    exported: &[ServicePort],
    eligible: impl IntoIterator<Item = &'a ServicePort>,
) -> Option<&'a ServicePort> {
    let own = exported
        .iter()
        .find(|own| own.name == port.name && own.protocol == port.protocol)?;
    let mut eligible = eligible.into_iter();
    eligible.find(|merged| (merged.protocol, merged.port) == (own.protocol, own.port))
}

/// One property on which exports of a service disagree (KEP-1645, condition Conflict). In the fixed order in
/// which reasons are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConflictReason {
    /// The sets of (name, protocol, port, appProtocol) are not identical.
    Port,
    /// Headless here, a clusterset IP there.
    Type,
    /// sessionAffinity.
    SessionAffinity,
    /// sessionAffinityConfig.
    SessionAffinityConfig,
    /// exportedLabels.
    Labels,
    /// exportedAnnotations.
    Annotations,
    /// internalTrafficPolicy.
    InternalTrafficPolicy,
    /// trafficDistribution.
    TrafficDistribution,
    /// The sets of IP families are not identical.
    IpFamily,
}

impl ConflictReason {
    /// All nine, in order.
    pub const ALL: [Self; 9] = [
        Self::Port,
        Self::Type,
        Self::SessionAffinity,
        Self::SessionAffinityConfig,
        Self::Labels,
        Self::Annotations,
        Self::InternalTrafficPolicy,
        Self::TrafficDistribution,
        Self::IpFamily,
    ];

    /// The reason, as in the condition.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Port => "PortConflict",
            Self::Type => "TypeConflict",
            Self::SessionAffinity => "SessionAffinityConflict",
            Self::SessionAffinityConfig => "SessionAffinityConfigConflict",
            Self::Labels => "LabelsConflict",
            Self::Annotations => "AnnotationsConflict",
            Self::InternalTrafficPolicy => "InternalTrafficPolicyConflict",
            Self::TrafficDistribution => "TrafficDistributionConflict",
            Self::IpFamily => "IPFamilyConflict",
        }
    }
}

/// A named disagreement.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conflict {
    /// The property.
    pub reason: ConflictReason,
    /// Property, winner, its value, losers (five, then "and N more") and their values. No revision, no time.
    pub message: Arc<str>,
}

/// Why an export that was reported is not taken: it is as if it were not there, until that ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// The kind of reason.
    pub reason: DenialReason,
    /// The rule that forbids it, and the next step. No revision, no time.
    pub message: Arc<str>,
}

/// The kinds of reasons for which an export is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DenialReason {
    /// Nothing is exported from the namespace.
    Namespace,
    /// The policy of the clusterset does not allow it.
    Policy,
}

impl DenialReason {
    /// The reason, as in the condition.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Namespace => "NamespaceDenied",
            Self::Policy => "PolicyDenied",
        }
    }
}

/// The hub's status of one ServiceExport, for its own cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportStatus {
    /// The service.
    pub service: ServiceKey,
    /// The ServiceExport that was judged.
    pub uid: Box<str>,
    /// The generation that was judged.
    pub generation: i64,
    /// Sorted by reason, one for each; empty: no conflict.
    pub conflicts: Vec<Conflict>,
    /// Number of clusters that export the service.
    pub exporters: u32,
    /// Present: it is not taken, and has neither conflicts nor a place in the precedence.
    pub denial: Option<Denial>,
    /// Its endpoints that are left out, and the reason; empty: none.
    pub left_out: Arc<str>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClusterId, EndpointPort};

    fn port(name: &str, protocol: Protocol) -> EndpointPort {
        EndpointPort {
            name: name.into(),
            protocol,
            port: Some(8080),
            app_protocol: None,
        }
    }

    /// An import of `http` and `dns`; `east` defines the first in the same way.
    fn import() -> ServiceImport {
        let service_port = |name: &str, protocol, port| ServicePort {
            name: name.into(),
            protocol,
            port,
            app_protocol: None,
        };
        ServiceImport {
            service: ServiceKey::new("shop", "cart").expect("valid"),
            service_type: ServiceType::ClusterSetIp,
            ports: vec![
                service_port("http", Protocol::Tcp, 80),
                service_port("dns", Protocol::Udp, 53),
            ],
            policies: ServicePolicies {
                session_affinity: SessionAffinity::None,
                session_affinity_timeout_seconds: None,
                internal_traffic_policy: None,
                traffic_distribution: None,
            },
            ip_families: vec![IpFamily::V4],
            labels: Metadata::new(),
            annotations: Metadata::new(),
            clusters: [(ClusterId::new("east").expect("valid"), vec![0])].into(),
        }
    }

    #[test]
    fn a_slice_keeps_the_ports_that_its_cluster_may_serve() {
        let east = ClusterId::new("east").expect("valid");
        let exported = import().ports;
        let narrow = |ports: &[EndpointPort]| import().narrow_ports(&east, &exported, ports);
        let http = port("http", Protocol::Tcp);
        let other = [
            port("dns", Protocol::Udp),
            port("http", Protocol::Udp),
            port("web", Protocol::Tcp),
        ];
        let mut all = vec![http.clone()];
        all.extend(other.clone());
        assert_eq!(narrow(&all), Some(vec![http]));
        assert_eq!(narrow(&other), None, "none of its ports is left");
        assert_eq!(narrow(&[]), Some(vec![]), "it never had any");
        let west = ClusterId::new("west").expect("valid");
        assert_eq!(
            import().narrow_ports(&west, &exported, &[]),
            None,
            "it exports nothing"
        );
    }

    #[test]
    fn a_port_of_another_name_is_served_under_the_name_of_the_import() {
        let east = ClusterId::new("east").expect("valid");
        let mut exported = import().ports;
        exported[0].name = "http-web".into();
        let narrow = |ports: &[EndpointPort]| import().narrow_ports(&east, &exported, ports);
        let of_the_chart = [port("http-web", Protocol::Tcp)];
        assert_eq!(narrow(&of_the_chart), Some(vec![port("http", Protocol::Tcp)]));
        assert_eq!(
            narrow(&[port("http", Protocol::Tcp)]),
            None,
            "its Service has no such port"
        );
    }
}
