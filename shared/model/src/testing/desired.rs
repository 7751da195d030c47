//! Generators of derived objects.

use std::sync::Arc;

use proptest::{
    collection::{btree_map, btree_set, vec},
    option,
    prelude::*,
    sample::{select, subsequence},
};

use super::{
    cluster_id, dns_subdomain, identity,
    service::{
        annotations, endpoint, endpoint_ports, ip_families, ip_family, labels, service_policies,
        service_ports, service_type,
    },
    service_key,
};
use crate::{
    Conflict, ConflictReason, Denial, DenialReason, ExportStatus, ImportedSlice, ImportedSliceKey, Revision,
    ServiceImport,
    sync::{DesiredChange, DesiredItem, DesiredKey},
};

/// An import whose clusters serve some of its ports each.
pub fn service_import() -> impl Strategy<Value = ServiceImport> {
    let ports = service_ports().prop_flat_map(|ports| {
        let indexes: Vec<u16> = (0..).take(ports.len()).collect();
        let most = indexes.len();
        let clusters = btree_map(cluster_id(), subsequence(indexes, 0..=most), 1..4);
        (Just(ports), clusters)
    });
    let metadata = (labels(), annotations());
    (
        service_key(),
        service_type(),
        ports,
        service_policies(),
        ip_families(),
        metadata,
    )
        .prop_map(
            |(service, service_type, (ports, clusters), policies, ip_families, (labels, annotations))| {
                ServiceImport {
                    service,
                    service_type,
                    ports,
                    policies,
                    ip_families,
                    labels,
                    annotations,
                    clusters: clusters.into_iter().collect(),
                }
            },
        )
}

/// The key of an imported slice.
pub fn imported_slice_key() -> impl Strategy<Value = ImportedSliceKey> {
    (service_key(), cluster_id(), dns_subdomain()).prop_map(|(service, source_cluster, source_slice)| {
        ImportedSliceKey {
            service,
            source_cluster,
            source_slice: source_slice.into(),
        }
    })
}

/// An imported slice.
pub fn imported_slice() -> impl Strategy<Value = ImportedSlice> {
    let endpoints = ip_family().prop_flat_map(|family| (Just(family), vec(endpoint(family), 0..5)));
    (imported_slice_key(), endpoint_ports(), endpoints, any::<u64>()).prop_map(
        |(key, ports, (address_type, endpoints), revision)| ImportedSlice {
            key,
            address_type,
            ports,
            endpoints: endpoints.into(),
            import_revision: Revision(revision),
        },
    )
}

/// The status of an export, conflicts in order.
pub fn export_status() -> impl Strategy<Value = ExportStatus> {
    let reasons = btree_set(select(ConflictReason::ALL.to_vec()), 0..4);
    (
        service_key(),
        identity(),
        any::<i64>(),
        reasons,
        ".{0,20}",
        (
            any::<u32>(),
            option::of(select(vec![DenialReason::Namespace, DenialReason::Policy])),
        ),
    )
        .prop_map(
            |(service, uid, generation, reasons, message, (exporters, denied))| {
                let message: Arc<str> = message.into();
                let conflict = |reason| Conflict {
                    reason,
                    message: message.clone(),
                };
                let conflicts = reasons.into_iter().map(conflict).collect();
                ExportStatus {
                    service,
                    uid,
                    generation,
                    conflicts,
                    exporters,
                    denial: denied.map(|reason| Denial {
                        reason,
                        message: message.clone(),
                    }),
                    left_out: message,
                }
            },
        )
}

/// The key of a derived object.
pub fn desired_key() -> impl Strategy<Value = DesiredKey> {
    prop_oneof![
        service_key().prop_map(DesiredKey::Import),
        imported_slice_key().prop_map(DesiredKey::Slice),
        service_key().prop_map(DesiredKey::ExportStatus),
    ]
}

/// A derived object or its removal.
pub fn desired_item() -> impl Strategy<Value = DesiredItem> {
    let change = prop_oneof![
        service_import().prop_map(|import| DesiredChange::Import(Arc::new(import))),
        imported_slice().prop_map(|slice| DesiredChange::Slice(Arc::new(slice))),
        export_status().prop_map(|status| DesiredChange::ExportStatus(Arc::new(status))),
        desired_key().prop_map(DesiredChange::Removed),
    ];
    (any::<u64>(), change).prop_map(|(revision, change)| DesiredItem {
        revision: Revision(revision),
        change,
    })
}
