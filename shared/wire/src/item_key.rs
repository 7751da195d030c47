//! The names of derived objects ↔ protobuf, and the differences that go by them. It compares and restores nothing.

use proto::v1::{self, desired_key::Key};

use super::{
    common::{Taken, fixed_bytes, required, service_key_from_proto, service_key_to_proto},
    endpoint,
};
use model::{
    Revision,
    sync::{DesiredKey, ItemDifference, ItemHash},
    validate,
};

/// Longest name of a source's slice, in bytes: it is a DNS subdomain.
const SLICE_NAME_BYTES_MAX: usize = 253;

/// The difference between two versions, as it was sent.
pub(super) fn difference_from_proto(
    revision: Revision,
    difference: v1::ItemDifference,
) -> Taken<ItemDifference> {
    Ok(ItemDifference {
        revision,
        key: key_from_proto(required("difference.key", difference.key)?)?,
        base: ItemHash(fixed_bytes("difference.baseHash", &difference.base_hash)?),
        difference: difference.difference.into(),
        hash: ItemHash(fixed_bytes("difference.hash", &difference.hash)?),
    })
}

pub(super) fn key_to_proto(key: &DesiredKey) -> v1::DesiredKey {
    let key = match key {
        DesiredKey::Import(service) => Key::ServiceImport(service_key_to_proto(service)),
        DesiredKey::Slice(slice) => Key::ImportedSlice(endpoint::imported_key_to_proto(slice)),
        DesiredKey::ExportStatus(service) => Key::ExportStatus(service_key_to_proto(service)),
    };
    v1::DesiredKey { key: Some(key) }
}

pub(super) fn key_from_proto(key: v1::DesiredKey) -> Taken<DesiredKey> {
    let service = |key| service_key_from_proto("service", Some(key));
    Ok(match required("key", key.key)? {
        Key::ServiceImport(key) => DesiredKey::Import(service(key)?),
        Key::ImportedSlice(key) => {
            validate::bounded_text("sourceSlice", &key.source_slice, SLICE_NAME_BYTES_MAX)?;
            DesiredKey::Slice(endpoint::imported_key_from_proto(key)?)
        }
        Key::ExportStatus(key) => DesiredKey::ExportStatus(service(key)?),
    })
}
