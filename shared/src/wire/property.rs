//! Cluster properties and the control plane's health ↔ protobuf.

use data_encoding::HEXLOWER;
use proto::v1;

use super::common::{Taken, fixed_hex, required, unknown_value};
use crate::model::{ClusterProperty, ControlPlane, Health, PropertyValue};

pub(super) fn property_to_proto(property: &ClusterProperty) -> v1::ClusterProperty {
    let content = match &property.value {
        PropertyValue::Text(value) => v1::cluster_property::Content::Value(value.to_string()),
        PropertyValue::Oversize { characters, digest } => {
            let oversize = v1::OversizeValue {
                characters: *characters,
                digest: HEXLOWER.encode(digest),
            };
            v1::cluster_property::Content::Oversize(oversize)
        }
    };
    v1::ClusterProperty {
        name: property.name.to_string(),
        content: Some(content),
    }
}

pub(super) fn property_from_proto(property: v1::ClusterProperty) -> Taken<ClusterProperty> {
    let value = match required("content", property.content)? {
        v1::cluster_property::Content::Value(value) => PropertyValue::Text(value.into()),
        v1::cluster_property::Content::Oversize(oversize) => PropertyValue::Oversize {
            characters: oversize.characters,
            digest: fixed_hex("oversize.digest", &oversize.digest)?,
        },
    };
    Ok(ClusterProperty {
        name: property.name.into(),
        value,
    })
}

pub(super) fn health_to_proto(health: &Health) -> v1::Health {
    let control_plane = match health.control_plane {
        ControlPlane::Ready => v1::ControlPlane::Ready,
        ControlPlane::NotReady => v1::ControlPlane::NotReady,
        ControlPlane::Unreachable => v1::ControlPlane::Unreachable,
    };
    v1::Health {
        kubernetes_version: health.kubernetes_version.to_string(),
        control_plane: control_plane.into(),
        failed_checks: health.failed_checks.iter().map(ToString::to_string).collect(),
    }
}

pub(super) fn health_from_proto(health: v1::Health) -> Taken<Health> {
    let control_plane = match v1::ControlPlane::try_from(health.control_plane) {
        Ok(v1::ControlPlane::Ready) => ControlPlane::Ready,
        Ok(v1::ControlPlane::NotReady) => ControlPlane::NotReady,
        Ok(v1::ControlPlane::Unreachable) => ControlPlane::Unreachable,
        Ok(v1::ControlPlane::Unspecified) | Err(_) => {
            return Err(unknown_value("controlPlane", health.control_plane));
        }
    };
    Ok(Health {
        kubernetes_version: health.kubernetes_version.into(),
        control_plane,
        failed_checks: health.failed_checks.into_iter().map(Box::from).collect(),
    })
}
