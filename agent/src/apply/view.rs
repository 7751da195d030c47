//! Builds the view of one service from the stores: what a plan is made from.
//! Reads only; a store that is not listed makes its kind unknown.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use shared::{
    api::{
        convert::{NamespaceDenyList, service_of_slice},
        names::{LABEL_SERVICE_NAME, LABEL_SOURCE_CLUSTER},
    },
    model::{ClusterId, ServiceKey, derived_name::derived_service_name},
};

use super::convert::{derived::derived_from, export::judged_export, import::import_from, owned, slice};
use crate::{
    plan::{
        Desired, Found, InvalidReason, NamespaceState, Validity, View, slice_names,
        view::{Known, Refusals},
    },
    watch::Watches,
};

/// A hub's refusal of an export, and the object it was about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RefusedExport {
    pub(super) uid: Box<str>,
    pub(super) message: Box<str>,
}

/// The service as the stores show it.
pub(super) fn view(
    watches: &Watches,
    desired: &Desired,
    own: &ClusterId,
    deny: &NamespaceDenyList,
    refused: Option<&RefusedExport>,
    refusals: Refusals,
    service: &ServiceKey,
) -> View {
    let mut view = View {
        namespace: namespace(watches, &service.namespace),
        known: Known {
            imports: watches.imports.is_listed(),
            services: watches.services.is_listed(),
            slices: watches.slices.is_listed(),
            exports: watches.exports_known(),
        },
        refusals,
        ..View::default()
    };
    let (namespace, name) = (&*service.namespace, &*service.name);
    view.import = import_from(watches.imports.get(namespace, name).as_deref());
    let derived = watches
        .services
        .get(namespace, &derived_service_name(namespace, name));
    view.derived = derived_from(derived.as_deref(), service);
    let of_service = watches.slices.of_service(service);
    if view.known.exports
        && let Some(object) = watches.exports.get(namespace, name)
    {
        let local = watches.services.get(namespace, name);
        let (mut export, ports) = judged_export(&object, local.as_deref(), deny);
        if export.validity == Validity::Valid
            && let Some(refused) = refused.filter(|refused| refused.uid == export.uid)
        {
            export.validity = Validity::Invalid {
                reason: InvalidReason::InvalidExport,
                message: refused.message.clone(),
            };
        }
        view.export = Some(export);
        view.service_ports = ports;
        view.own_slices = of_service
            .iter()
            .filter_map(|object| slice::own_from(object, service))
            .collect();
    }
    let mut slices = BTreeMap::new();
    for object in &of_service {
        if owned::is_ours(&**object) {
            let name = object.metadata.name.as_deref().unwrap_or_default();
            slices.insert(name.into(), slice::imported_from(Some(object)));
        }
    }
    let own_names = view.own_slices.iter().map(|slice| &*slice.name);
    for name in slice_names(desired, own, own_names, service) {
        let object = watches.slices.get(namespace, &name);
        let found = slice::imported_from(object.as_deref());
        if found != Found::Absent {
            slices.entry(name).or_insert(found);
        }
    }
    view.slices = slices;
    view
}

fn namespace(watches: &Watches, name: &str) -> NamespaceState {
    if !watches.namespaces.is_listed() {
        return NamespaceState::Unknown;
    }
    match watches.namespaces.get("", name) {
        None => NamespaceState::Absent,
        Some(namespace) if namespace.metadata.deletion_timestamp.is_some() => NamespaceState::Terminating,
        Some(_) => NamespaceState::Active,
    }
}

/// Every service that anything of ours, or an export, stands for in this cluster.
pub(super) fn observed_services(watches: &Watches) -> Vec<ServiceKey> {
    let mut services = watches.imports.services();
    services.extend(watches.exports.services());
    services.extend(
        watches
            .services
            .all()
            .iter()
            .filter_map(|object| labelled_service(&**object)),
    );
    services.extend(
        watches
            .slices
            .all()
            .iter()
            .filter_map(|object| labelled_service(&**object)),
    );
    services
}

/// The clusters whose objects stand here.
pub(super) fn sources_held(watches: &Watches) -> BTreeSet<ClusterId> {
    let mut held = BTreeSet::new();
    for object in watches
        .slices
        .all()
        .iter()
        .filter(|object| owned::is_ours(&***object))
    {
        let label = object
            .metadata
            .labels
            .as_ref()
            .and_then(|labels| labels.get(LABEL_SOURCE_CLUSTER));
        held.extend(label.and_then(|name| ClusterId::new(name).ok()));
    }
    for object in watches.imports.all() {
        if let Some(import) = import_from(Some(&object)).ours() {
            held.extend(import.content.status.clusters.iter().cloned());
            held.extend(import.content.content.sources.iter().cloned());
        }
    }
    for object in watches
        .services
        .all()
        .iter()
        .filter(|object| owned::is_ours(&***object))
    {
        let annotations = object.metadata.annotations.as_ref();
        let text = annotations.and_then(|all| all.get(super::convert::ANNOTATION_SOURCE_CLUSTERS));
        held.extend(super::convert::sources_from(text.map(String::as_str)));
    }
    held
}

/// The service that an object of ours names by label.
fn labelled_service<K: kube::Resource>(object: &K) -> Option<ServiceKey> {
    let meta = object.meta();
    let label = meta.labels.as_ref()?.get(LABEL_SERVICE_NAME)?;
    let service = ServiceKey::new(meta.namespace.as_deref()?, label).ok()?;
    owned::is_ours(object).then_some(service)
}

/// The service that an import or an export stands for.
pub(super) fn named<K: kube::Resource>(object: &K) -> Option<ServiceKey> {
    let meta = object.meta();
    ServiceKey::new(meta.namespace.as_deref()?, meta.name.as_deref()?).ok()
}

/// The service that a Service is, or is derived for.
pub(super) fn of_service(object: &Service) -> Option<ServiceKey> {
    labelled_service(object).or_else(|| named(object))
}

/// The service that a slice belongs to, imported or not.
pub(super) fn of_slice(object: &EndpointSlice) -> Option<ServiceKey> {
    labelled_service(object).or_else(|| service_of_slice(object).ok())
}
