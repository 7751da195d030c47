//! Builds the view of one service from the stores: what a plan is made from.
//! Reads only; a store that is not listed makes its kind unknown.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use shared::{
    api::{
        convert::{NamespaceDenyList, service_of_slice},
        names::{LABEL_SERVICE_NAME, LABEL_SOURCE_CLUSTER},
    },
    model::{ClusterId, FactKey, ServiceKey, derived_name::derived_service_name},
};

use super::convert::{derived::derived_from, export::judged_export, import::import_from, owned, slice};
use crate::{
    observe::join::{Joined, Objects, join},
    outbox::Refusal,
    plan::{
        Desired, Found, InvalidReason, NamespaceState, Settling, Validity, View, slice_names,
        view::{Known, Refusals},
    },
    watch::Watches,
};

/// Facts of one service that the hub does not take. A fact that is another one since is not refused any more.
pub(super) type RefusedFacts = BTreeMap<FactKey, Refusal>;

/// The service as the stores show it.
pub(super) fn view(
    watches: &Watches,
    desired: &Desired,
    own: &ClusterId,
    deny: &NamespaceDenyList,
    refused: &RefusedFacts,
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
        let (export, ports) = judged_export(&object, local.as_deref(), deny);
        view.export = Some(export);
        view.service_ports = ports;
        for object in &of_service {
            match slice::own_from(object, service) {
                Ok(own) => view.own_slices.push(own),
                Err(problem) if problem.is_foreign() => {}
                Err(problem) => {
                    let name = object.metadata.name.as_deref().unwrap_or_default();
                    view.unexported_slices
                        .insert(name.into(), problem.to_string().into());
                }
            }
        }
        if !refused.is_empty() {
            let objects = Objects {
                export: Some(&object),
                service: local.as_deref(),
                slices: of_service.iter().map(AsRef::as_ref).collect(),
            };
            add_refusals(&mut view, refused, &join(service, &objects, deny));
        }
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

/// What the hub said of facts that are still stated.
fn add_refusals(view: &mut View, refused: &RefusedFacts, joined: &Joined) {
    let stated = |key: &FactKey| joined.facts.get(key).map(|fact| fact.hash);
    for (key, refusal) in refused
        .iter()
        .filter(|(key, refusal)| stated(key) == Some(refusal.hash))
    {
        match key {
            FactKey::Export(_) => {
                let Some(export) = &mut view.export else { continue };
                export.validity = Validity::Invalid {
                    reason: InvalidReason::InvalidExport,
                    message: (*refusal.message).into(),
                };
            }
            FactKey::EndpointSlice(slice) => {
                let message = (*refusal.message).into();
                view.unexported_slices.insert(slice.name.clone(), message);
            }
            FactKey::ClusterProperty(_) | FactKey::Health => {}
        }
    }
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

/// The services whose plan reads whether one of the clusters in `settling` is settled: something of theirs that is
/// here or wanted comes from it, or it is this cluster and exports them. For what nobody wants, all clusters may count.
pub(super) fn services_of(
    watches: &Watches,
    desired: &Desired,
    own: &ClusterId,
    settling: &Settling,
) -> BTreeSet<ServiceKey> {
    let changed = |cluster: &ClusterId| settling.clusters.contains(cluster);
    let wanted = desired.exporters().chain(desired.slice_sources());
    let wanted = wanted.filter(|(_, cluster)| changed(cluster));
    let mut services: BTreeSet<ServiceKey> = wanted.map(|(service, _)| service.clone()).collect();
    let held = held(watches).into_iter().filter(|(_, cluster)| changed(cluster));
    services.extend(held.filter_map(|(service, _)| service));
    if changed(own) {
        services.extend(watches.exports.services());
    }
    if settling.all {
        let mut unwanted = desired.services();
        unwanted.extend(observed_services(watches));
        unwanted.retain(|service| desired.import(service).is_none());
        services.extend(unwanted);
    }
    services
}

/// The clusters whose objects stand here.
pub(super) fn sources_held(watches: &Watches) -> BTreeSet<ClusterId> {
    held(watches).into_iter().map(|(_, cluster)| cluster).collect()
}

/// The clusters that objects of ours come from, each with the service it belongs to as far as it says so.
fn held(watches: &Watches) -> Vec<(Option<ServiceKey>, ClusterId)> {
    let mut held = Vec::new();
    for object in watches
        .slices
        .all()
        .iter()
        .filter(|object| owned::is_ours(&***object))
    {
        let labels = object.metadata.labels.as_ref();
        let label = labels.and_then(|labels| labels.get(LABEL_SOURCE_CLUSTER));
        let cluster = label.and_then(|name| ClusterId::new(name).ok());
        held.extend(cluster.map(|cluster| (labelled_service(&**object), cluster)));
    }
    for object in watches.imports.all() {
        if let Some(import) = import_from(Some(&object)).ours() {
            let clusters = import.content.status.clusters.iter();
            let clusters = clusters.chain(&import.content.content.sources);
            held.extend(clusters.map(|cluster| (named(&*object), cluster.clone())));
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
        let clusters = super::convert::sources_from(text.map(String::as_str));
        held.extend(
            clusters
                .into_iter()
                .map(|cluster| (labelled_service(&**object), cluster)),
        );
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

#[cfg(test)]
mod tests {
    use kube::runtime::watcher::Event;
    use serde_json::{Value, json};
    use shared::api::{ServiceExport, names::AGENT_MANAGER, names::LABEL_MANAGED_BY};

    use super::*;
    use crate::watch::{Watched, show};

    fn list<K: kube::Resource + Clone + serde::de::DeserializeOwned>(
        store: &Watched<K>,
        objects: Vec<Value>,
    ) {
        show(store, Event::Init);
        for object in objects {
            show(
                store,
                Event::InitApply(serde_json::from_value(object).expect("an object")),
            );
        }
        show(store, Event::InitDone);
    }

    fn slice(name: &str, service: &str, source: &str) -> Value {
        let labels = json!({LABEL_MANAGED_BY: AGENT_MANAGER, LABEL_SERVICE_NAME: service, LABEL_SOURCE_CLUSTER: source});
        json!({"metadata": {"namespace": "shop", "name": name, "uid": name, "resourceVersion": "1", "labels": labels,
                "managedFields": [{"manager": AGENT_MANAGER, "operation": "Apply", "fieldsV1": {}}]},
            "addressType": "IPv4", "endpoints": []})
    }

    fn key(name: &str) -> ServiceKey {
        ServiceKey::new("shop", name).expect("a key")
    }

    fn cluster(name: &str) -> ClusterId {
        ClusterId::new(name).expect("an id")
    }

    #[test]
    fn a_source_wakes_the_services_that_it_concerns_and_no_others() {
        let watches = Watches::default();
        let slices = vec![
            slice("a", "cart", "east"),
            slice("b", "cart", "west"),
            slice("c", "till", "west"),
        ];
        list(&watches.slices, slices);
        let export =
            json!({"metadata": {"namespace": "shop", "name": "own", "uid": "e", "resourceVersion": "1"}});
        list::<ServiceExport>(&watches.exports, vec![export]);
        let woken = |clusters: &[&str], all| {
            let clusters = clusters.iter().map(|name| cluster(name)).collect();
            let settling = Settling { clusters, all };
            let services = services_of(&watches, &Desired::default(), &cluster("here"), &settling);
            services.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(woken(&["east"], false), [key("cart")]);
        assert_eq!(woken(&["west"], false), [key("cart"), key("till")]);
        assert_eq!(woken(&["here"], false), [key("own")]);
        assert!(woken(&["north"], false).is_empty());
        let unwanted = [key("cart"), key("own"), key("till")];
        assert_eq!(
            woken(&["north"], true),
            unwanted,
            "it may be all that was waited for"
        );
    }
}
