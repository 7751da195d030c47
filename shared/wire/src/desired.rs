//! Derived objects ↔ bytes: the hub encodes each once for all members, the agent decodes what reaches it.

use std::sync::Arc;

use bytes::Bytes;
use prost::Message as _;
use proto::v1::{self, desired_item::Item};

use super::{
    common::{
        Taken, affinity_from_proto, affinity_to_proto, boxed, cluster_from_proto, each, families_from_proto,
        family_to_proto, metadata_from_proto, metadata_to_proto, narrow, owned, required,
        service_key_from_proto, service_key_to_proto, service_port_to_proto, service_ports_from_proto,
        service_type_from_proto, service_type_to_proto, unknown_value,
    },
    endpoint, item_key, slice,
};
use model::{
    ClusterId, Conflict, ConflictReason, Denial, DenialReason, ExportStatus, FewMap, Revision, ServiceImport,
    ServicePolicies,
    sync::{DesiredChange, DesiredItem, DesiredKey, Told},
    validate::InvalidValue,
};

/// Bytes that are no derived object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the hub sent an object that this agent cannot read: {0}; update hub or agent to the same release")]
pub struct InvalidDesired(pub String);

/// Encodes a derived object. The same object always gives the same bytes.
pub fn encode_desired(item: &DesiredItem) -> Bytes {
    let change = match &item.change {
        DesiredChange::Import(import) => Item::ServiceImport(import_to_proto(import)),
        DesiredChange::Slice(imported) => return slice::to_item(imported, item.revision.0).into(),
        DesiredChange::ExportStatus(status) => Item::ExportStatus(status_to_proto(status)),
        DesiredChange::Removed(DesiredKey::Import(key)) => {
            Item::ServiceImportRemoved(service_key_to_proto(key))
        }
        DesiredChange::Removed(DesiredKey::Slice(key)) => {
            Item::ImportedSliceRemoved(endpoint::imported_key_to_proto(key))
        }
        DesiredChange::Removed(DesiredKey::ExportStatus(key)) => {
            Item::ExportStatusRemoved(service_key_to_proto(key))
        }
    };
    v1::DesiredItem {
        revision: item.revision.0,
        item: Some(change),
    }
    .encode_to_vec()
    .into()
}

impl From<InvalidValue> for InvalidDesired {
    fn from(problem: InvalidValue) -> Self {
        Self(problem.to_string())
    }
}

/// Decodes a whole derived object.
pub fn decode_desired(bytes: Bytes) -> Result<DesiredItem, InvalidDesired> {
    let (revision, item) = read(bytes)?;
    let change = change_from_proto(item)?;
    Ok(DesiredItem { revision, change })
}

/// Decodes what the hub tells of a derived object: all of it, or what changed.
///
/// # Errors
///
/// [`InvalidDesired`] if not even the object's key can be read.
pub fn decode_told(bytes: Bytes) -> Result<Told, InvalidDesired> {
    let (revision, item) = read(bytes)?;
    if let Item::Difference(difference) = item {
        let difference = item_key::difference_from_proto(revision, difference)?;
        return Ok(Told::Difference(difference));
    }
    let key = key_from_proto(&item)?;
    Ok(match change_from_proto(item) {
        Ok(change) => Told::Whole(DesiredItem { revision, change }),
        Err(problem) => Told::Unreadable {
            key,
            why: InvalidDesired::from(problem).to_string().into(),
        },
    })
}

fn read(bytes: Bytes) -> Result<(Revision, Item), InvalidDesired> {
    let item = v1::DesiredItem::decode(bytes).map_err(|error| InvalidDesired(error.to_string()))?;
    let change = item
        .item
        .ok_or_else(|| InvalidDesired("it is of an unknown kind".into()))?;
    Ok((Revision(item.revision), change))
}

fn key_from_proto(item: &Item) -> Taken<DesiredKey> {
    let service = |key: Option<&v1::ServiceKey>| service_key_from_proto("service", key.cloned());
    let slice = |key: Option<&v1::ImportedSliceKey>| {
        endpoint::imported_key_from_proto(required("key", key.cloned())?).map(DesiredKey::Slice)
    };
    match item {
        Item::ServiceImport(import) => service(import.service.as_ref()).map(DesiredKey::Import),
        Item::ServiceImportRemoved(key) => service(Some(key)).map(DesiredKey::Import),
        Item::ImportedSlice(imported) => slice(imported.key.as_ref()),
        Item::ImportedSliceRemoved(key) => slice(Some(key)),
        Item::ExportStatus(status) => service(status.service.as_ref()).map(DesiredKey::ExportStatus),
        Item::ExportStatusRemoved(key) => service(Some(key)).map(DesiredKey::ExportStatus),
        Item::Difference(_) => Err(not_whole()),
    }
}

fn not_whole() -> InvalidValue {
    InvalidValue::new("difference", "stands where only a whole object can stand")
}

fn change_from_proto(item: Item) -> Taken<DesiredChange> {
    Ok(match item {
        Item::ServiceImport(import) => DesiredChange::Import(Arc::new(import_from_proto(import)?)),
        Item::ImportedSlice(slice) => DesiredChange::Slice(Arc::new(endpoint::imported_from_proto(slice)?)),
        Item::ExportStatus(status) => DesiredChange::ExportStatus(Arc::new(status_from_proto(status)?)),
        Item::ServiceImportRemoved(key) => {
            DesiredChange::Removed(DesiredKey::Import(service_key_from_proto("service", Some(key))?))
        }
        Item::ImportedSliceRemoved(key) => {
            DesiredChange::Removed(DesiredKey::Slice(endpoint::imported_key_from_proto(key)?))
        }
        Item::ExportStatusRemoved(key) => DesiredChange::Removed(DesiredKey::ExportStatus(
            service_key_from_proto("service", Some(key))?,
        )),
        Item::Difference(_) => return Err(not_whole()),
    })
}

pub(super) fn import_to_proto(import: &ServiceImport) -> v1::ServiceImport {
    let exporting = |(cluster, ports): (&ClusterId, &Vec<u16>)| v1::ExportingCluster {
        cluster: cluster.to_string(),
        eligible_ports: ports.iter().copied().map(u32::from).collect(),
    };
    v1::ServiceImport {
        service: Some(service_key_to_proto(&import.service)),
        r#type: service_type_to_proto(import.service_type),
        ports: import.ports.iter().map(service_port_to_proto).collect(),
        session_affinity: affinity_to_proto(import.policies.session_affinity),
        session_affinity_timeout_seconds: import.policies.session_affinity_timeout_seconds,
        internal_traffic_policy: owned(&import.policies.internal_traffic_policy),
        traffic_distribution: owned(&import.policies.traffic_distribution),
        ip_families: import.ip_families.iter().copied().map(family_to_proto).collect(),
        labels: metadata_to_proto(&import.labels),
        annotations: metadata_to_proto(&import.annotations),
        clusters: import.clusters.iter().map(exporting).collect(),
    }
}

fn import_from_proto(import: v1::ServiceImport) -> Taken<ServiceImport> {
    let ports = service_ports_from_proto(import.ports)?;
    Ok(ServiceImport {
        service: service_key_from_proto("service", import.service)?,
        service_type: service_type_from_proto(import.r#type)?,
        clusters: clusters_from_proto(import.clusters, ports.len())?,
        ports,
        policies: ServicePolicies {
            session_affinity: affinity_from_proto(&import.session_affinity)?,
            session_affinity_timeout_seconds: import.session_affinity_timeout_seconds,
            internal_traffic_policy: boxed(&import.internal_traffic_policy),
            traffic_distribution: boxed(&import.traffic_distribution),
        },
        ip_families: families_from_proto(import.ip_families)?,
        labels: metadata_from_proto("labels", import.labels)?,
        annotations: metadata_from_proto("annotations", import.annotations)?,
    })
}

fn clusters_from_proto(
    clusters: Vec<v1::ExportingCluster>,
    ports: usize,
) -> Taken<FewMap<ClusterId, Vec<u16>>> {
    if !clusters.is_sorted_by(|one, next| one.cluster < next.cluster) {
        return Err(InvalidValue::new(
            "clusters",
            "are not sorted, or one is there twice",
        ));
    }
    let eligible = |index: u32| match usize::try_from(index) {
        Ok(place) if place < ports => narrow("eligiblePorts", index, "it is beyond every list of ports"),
        _ => Err(InvalidValue::new(
            "eligiblePorts",
            format!("names port {index} of {ports}"),
        )),
    };
    let one = |cluster: v1::ExportingCluster| {
        let ports: Taken<Vec<u16>> = cluster.eligible_ports.into_iter().map(eligible).collect();
        Ok((cluster_from_proto("cluster", &cluster.cluster)?, ports?))
    };
    Ok(each("clusters", clusters, one)?.into_iter().collect())
}

fn status_to_proto(status: &ExportStatus) -> v1::ExportStatus {
    let denial = status.denial.as_ref().map(|denial| v1::ExportDenial {
        reason: denial_reason_to_proto(denial.reason).into(),
        message: denial.message.to_string(),
        uid: status.uid.to_string(),
        generation: status.generation,
    });
    let taken = denial.is_none();
    v1::ExportStatus {
        service: Some(service_key_to_proto(&status.service)),
        uid: if taken {
            status.uid.to_string()
        } else {
            Default::default()
        },
        generation: if taken {
            status.generation
        } else {
            Default::default()
        },
        conflicts: status.conflicts.iter().map(conflict_to_proto).collect(),
        exporters: status.exporters,
        denial,
        left_out: status.left_out.to_string(),
    }
}

fn status_from_proto(status: v1::ExportStatus) -> Taken<ExportStatus> {
    let (uid, generation, denial) = match status.denial {
        None => (status.uid, status.generation, None),
        Some(denial) => {
            let reason = denial_reason_from_proto(denial.reason)?;
            let message = denial.message.into();
            (denial.uid, denial.generation, Some(Denial { reason, message }))
        }
    };
    Ok(ExportStatus {
        service: service_key_from_proto("service", status.service)?,
        uid: uid.into(),
        generation,
        conflicts: each("conflicts", status.conflicts, conflict_from_proto)?,
        exporters: status.exporters,
        denial,
        left_out: status.left_out.into(),
    })
}

pub(super) fn denial_reason_to_proto(reason: DenialReason) -> v1::DenialReason {
    match reason {
        DenialReason::Namespace => v1::DenialReason::NamespaceDenied,
        DenialReason::Policy => v1::DenialReason::PolicyDenied,
    }
}

fn denial_reason_from_proto(reason: i32) -> Taken<DenialReason> {
    match v1::DenialReason::try_from(reason) {
        Ok(v1::DenialReason::NamespaceDenied) => Ok(DenialReason::Namespace),
        Ok(v1::DenialReason::PolicyDenied) => Ok(DenialReason::Policy),
        Ok(v1::DenialReason::Unspecified) | Err(_) => Err(unknown_value("reason", reason)),
    }
}

pub(super) fn conflict_to_proto(conflict: &Conflict) -> v1::Conflict {
    let reason = match conflict.reason {
        ConflictReason::Port => v1::ConflictReason::PortConflict,
        ConflictReason::Type => v1::ConflictReason::TypeConflict,
        ConflictReason::SessionAffinity => v1::ConflictReason::SessionAffinityConflict,
        ConflictReason::SessionAffinityConfig => v1::ConflictReason::SessionAffinityConfigConflict,
        ConflictReason::Labels => v1::ConflictReason::LabelsConflict,
        ConflictReason::Annotations => v1::ConflictReason::AnnotationsConflict,
        ConflictReason::InternalTrafficPolicy => v1::ConflictReason::InternalTrafficPolicyConflict,
        ConflictReason::TrafficDistribution => v1::ConflictReason::TrafficDistributionConflict,
        ConflictReason::IpFamily => v1::ConflictReason::IpFamilyConflict,
    };
    v1::Conflict {
        reason: reason.into(),
        message: conflict.message.to_string(),
    }
}

fn conflict_from_proto(conflict: v1::Conflict) -> Taken<Conflict> {
    let unknown = || unknown_value("reason", conflict.reason);
    let reason = match v1::ConflictReason::try_from(conflict.reason).map_err(|_| unknown())? {
        v1::ConflictReason::Unspecified => return Err(unknown()),
        v1::ConflictReason::PortConflict => ConflictReason::Port,
        v1::ConflictReason::TypeConflict => ConflictReason::Type,
        v1::ConflictReason::SessionAffinityConflict => ConflictReason::SessionAffinity,
        v1::ConflictReason::SessionAffinityConfigConflict => ConflictReason::SessionAffinityConfig,
        v1::ConflictReason::LabelsConflict => ConflictReason::Labels,
        v1::ConflictReason::AnnotationsConflict => ConflictReason::Annotations,
        v1::ConflictReason::InternalTrafficPolicyConflict => ConflictReason::InternalTrafficPolicy,
        v1::ConflictReason::TrafficDistributionConflict => ConflictReason::TrafficDistribution,
        v1::ConflictReason::IpFamilyConflict => ConflictReason::IpFamily,
    };
    Ok(Conflict {
        reason,
        message: conflict.message.into(),
    })
}
