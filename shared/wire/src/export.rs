//! Exports ↔ protobuf.

use prost_types::Timestamp;
use proto::v1;

use super::common::{
    Taken, affinity_from_proto, affinity_to_proto, boxed, families_from_proto, family_to_proto,
    metadata_from_proto, metadata_to_proto, owned, required, service_key_from_proto, service_key_to_proto,
    service_port_to_proto, service_ports_from_proto, service_type_from_proto, service_type_to_proto,
};
use model::{Export, ServicePolicies, UnixMillis, position::CREATED_AT_SECONDS_MAX, validate::InvalidValue};

pub(super) fn to_proto(export: &Export) -> v1::Export {
    let policies = &export.policies;
    v1::Export {
        service: Some(service_key_to_proto(&export.service)),
        created_at: Some(created_at_to_proto(export.created_at)),
        uid: export.uid.to_string(),
        generation: export.generation,
        r#type: service_type_to_proto(export.service_type),
        ports: export.ports.iter().map(service_port_to_proto).collect(),
        session_affinity: affinity_to_proto(policies.session_affinity),
        session_affinity_timeout_seconds: policies.session_affinity_timeout_seconds,
        internal_traffic_policy: owned(&policies.internal_traffic_policy),
        traffic_distribution: owned(&policies.traffic_distribution),
        ip_families: export.ip_families.iter().copied().map(family_to_proto).collect(),
        exported_labels: metadata_to_proto(&export.labels),
        exported_annotations: metadata_to_proto(&export.annotations),
    }
}

pub(super) fn from_proto(export: v1::Export) -> Taken<Export> {
    Ok(Export {
        service: service_key_from_proto("service", export.service)?,
        created_at: created_at_from_proto(export.created_at)?,
        uid: export.uid.into(),
        generation: export.generation,
        service_type: service_type_from_proto(export.r#type)?,
        ports: service_ports_from_proto(export.ports)?,
        policies: ServicePolicies {
            session_affinity: affinity_from_proto(&export.session_affinity)?,
            session_affinity_timeout_seconds: export.session_affinity_timeout_seconds,
            internal_traffic_policy: boxed(&export.internal_traffic_policy),
            traffic_distribution: boxed(&export.traffic_distribution),
        },
        ip_families: families_from_proto(export.ip_families)?,
        labels: metadata_from_proto("exportedLabels", export.exported_labels)?,
        annotations: metadata_from_proto("exportedAnnotations", export.exported_annotations)?,
    })
}

pub(super) fn created_at_to_proto(at: UnixMillis) -> Timestamp {
    Timestamp {
        seconds: (at.0 / 1_000) as i64,
        nanos: 0,
    }
}

pub(super) fn created_at_from_proto(at: Option<Timestamp>) -> Taken<UnixMillis> {
    let Timestamp { seconds, nanos } = required("creationTimestamp", at)?;
    if nanos != 0 {
        let problem =
            format!("has {nanos} nanoseconds; send whole seconds, which is all that the API server states");
        return Err(InvalidValue::new("creationTimestamp", problem));
    }
    if (0..=CREATED_AT_SECONDS_MAX).contains(&seconds) {
        return Ok(UnixMillis(seconds as u64 * 1_000));
    }
    let problem = format!(
        "is {seconds} seconds, outside the years 1970 to 9999; send the value that the API server states"
    );
    Err(InvalidValue::new("creationTimestamp", problem))
}
