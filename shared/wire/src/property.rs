//! Cluster properties ↔ protobuf.

use data_encoding::HEXLOWER;
use proto::v1;

use super::common::{Taken, fixed_hex, required};
use model::{ClusterProperty, PropertyValue};

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
