//! Imported slices: a cluster's own slice, its ports narrowed to those its cluster may serve in the import.
//! The endpoints are the reported ones, shared and whole, but for those that may reach nobody.

use std::sync::Arc;

use model::{
    ClusterId, EndpointSlice, ImportedSlice, ImportedSliceKey, Revision, ServiceImport, ServiceKey,
    ServicePort,
};

use super::{
    DerivedContent, DerivedKey, State,
    derived::{DerivedStore, Step},
    fate::{self, Fate},
    gate::{AddressGate, Gate},
};

/// The slice as importing clusters hold it. Nothing when its cluster does not export the service, or when
/// none of its ports may be served, none of its endpoints, or its cluster is lost: an address without the port that was asked for helps nobody.
fn derive(
    import: &ServiceImport,
    import_revision: Revision,
    (cluster, exported): (&ClusterId, &[ServicePort]),
    slice: &EndpointSlice,
    (gate, fate): (&AddressGate<'_>, Fate),
) -> Option<ImportedSlice> {
    Some(ImportedSlice {
        ports: import.narrow_ports(cluster, exported, &slice.ports)?,
        key: ImportedSliceKey {
            service: slice.key.service.clone(),
            source_cluster: cluster.clone(),
            source_slice: slice.key.name.clone(),
        },
        address_type: slice.address_type,
        endpoints: fate.of(gate.passing(&slice.endpoints)?)?,
        import_revision,
    })
}

/// True if both imports narrow the slices of `cluster` in the same way while it exports the same ports.
pub(super) fn same_filter(
    before: Option<&ServiceImport>,
    after: Option<&ServiceImport>,
    cluster: &ClusterId,
) -> bool {
    let (Some(before), Some(after)) = (before, after) else {
        return false;
    };
    before.clusters.contains_key(cluster)
        && before
            .eligible_ports(cluster)
            .map(|port| (&port.name, port.protocol, port.port))
            .eq(after
                .eligible_ports(cluster)
                .map(|port| (&port.name, port.protocol, port.port)))
}

/// Derives one slice against the present import. `exporter` is its cluster, with the ports that it exports.
pub(super) fn rederive_one(
    derived: &mut DerivedStore,
    exporter: (&ClusterId, &[ServicePort]),
    slice: &EndpointSlice,
    passes: (&AddressGate<'_>, Fate),
    step: &mut Step,
) {
    let imported = derived
        .import(&slice.key.service)
        .and_then(|(revision, import)| derive(import, revision, exporter, slice, passes));
    match imported {
        Some(imported) => {
            let key = DerivedKey::Slice(imported.key.clone());
            derived.set(key, DerivedContent::Slice(Arc::new(imported)), step);
        }
        None => {
            let key = DerivedKey::slice(&slice.key.service, exporter.0, &slice.key.name);
            derived.remove(&key, step);
        }
    }
}

/// Derives all slices that `cluster` has of `service`.
pub(super) fn rederive_all(state: &mut State, service: &ServiceKey, cluster: &ClusterId, step: &mut Step) {
    let gate = Gate::of(state);
    let passes = (&gate.addresses(cluster), fate::fate(state, service, cluster));
    let Some(member) = state.members.get(cluster) else {
        return;
    };
    let export = member.counted_export(service);
    let exported = export.map(|(_, export)| &*export.ports).unwrap_or_default();
    for (_, slice) in member.counted_slices_of(service) {
        rederive_one(&mut state.derived, (cluster, exported), slice, passes, step);
    }
}
