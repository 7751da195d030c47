//! Builds the view of one service from the stores: what a plan is made from.
//! Reads only; a store that is not listed makes its kind unknown.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::convert::{ExportProblem, NamespaceDenyList, export_from};
use model::{ClusterId, FactKey, ServiceKey, ServicePort, derived_name::derived_service_name};

use super::seen::Seen;
use crate::{
    convert::derived::derived_from,
    observe::join::{Joined, Objects, join},
    outbox::Refusal,
    plan::{
        Desired, Found, InvalidReason, NamespaceState, ServiceView, Settling, Validity, slice_names,
        view::{FoundExport, Known, Refusals},
    },
    watch::{Head, Kept, KeptExport, KeptService, Watches},
};

/// Facts of one service that the hub does not take. A fact that has changed since is not refused any more.
pub(super) type RefusedFacts = BTreeMap<FactKey, Refusal>;

/// The service as the stores show it, and in which versions.
pub(super) fn view(
    watches: &Watches,
    desired: &Desired,
    own: &ClusterId,
    deny: &NamespaceDenyList,
    refused: &RefusedFacts,
    refusals: Refusals,
    service: &ServiceKey,
) -> (ServiceView, Seen) {
    let mut seen = Seen::default();
    let mut view = ServiceView {
        namespace: namespace(watches, &service.namespace),
        known: Known {
            imports: watches.imports.is_listed(),
            services: watches.services.is_listed(),
            slices: watches.slices.is_listed(),
            exports: watches.exports_known(),
        },
        refusals,
        ..ServiceView::default()
    };
    let (namespace, name) = (&*service.namespace, &*service.name);
    let import = watches.imports.get(namespace, name);
    seen.import = version(&import);
    // An object that cannot be read is nobody's to change.
    let unread = || {
        if watches.imports.is_unreadable(namespace, name) {
            Found::Stranger
        } else {
            Found::Absent
        }
    };
    view.import = import.map_or_else(unread, |import| import.found().clone());
    let derived = watches
        .services
        .get(namespace, &derived_service_name(namespace, name));
    seen.derived = version(&derived);
    view.derived = derived
        .as_deref()
        .map_or(Found::Absent, |object| derived_from(object.derived(), service));
    let of_service = watches.slices.of_service(service);
    // An export that cannot be decoded is unknown, and not absent: its slices stay.
    let export_unread =
        watches.exports.get(namespace, name).is_none() && watches.exports.is_unreadable(namespace, name);
    view.known.exports &= !export_unread;
    let unread = watches.slices.unknown().into_iter();
    let unread = unread.filter(|(of, _)| **of == *namespace);
    view.unread_slices = unread.map(|(_, name)| name).collect();
    if view.known.exports
        && let Some(object) = watches.exports.get(namespace, name)
    {
        seen.export = object.head().version;
        let local = watches.services.get(namespace, name);
        let (mut export, ports) = judged_export(&object, local.as_deref(), deny);
        if local.is_none() && watches.services.is_unreadable(namespace, name) {
            export.validity = Validity::Unknown;
        }
        view.export = Some(export);
        view.service_ports = ports;
        for object in &of_service {
            match object.own(service) {
                Ok(own) => view.own_slices.push(own),
                Err(problem) if problem.is_foreign() => {}
                Err(problem) => {
                    let name = object.head().name.clone();
                    view.unexported_slices.insert(name, problem.to_string().into());
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
    for slice in of_service.iter().filter(|slice| slice.is_ours()) {
        let Head { name, version, .. } = slice.head();
        seen.slices.insert(name.clone(), *version);
        slices.insert(name.clone(), slice.found());
    }
    let own_names = view.own_slices.iter().map(|slice| &*slice.name);
    for name in slice_names(desired, own, own_names, service) {
        if let Some(slice) = watches.slices.get(namespace, &name) {
            slices.entry(name).or_insert_with_key(|name| {
                seen.slices.insert(name.clone(), slice.head().version);
                slice.found()
            });
        }
    }
    view.slices = slices;
    (view, seen)
}

fn version<K: Kept>(object: &Option<Arc<K>>) -> u64 {
    object.as_ref().map_or(0, |object| object.head().version)
}

/// Adds the hub's refusals of facts that are still stated.
fn add_refusals(view: &mut ServiceView, refused: &RefusedFacts, joined: &Joined) {
    let stated = |key: &FactKey| joined.facts.get(key).map(|fact| fact.hash);
    for (key, refusal) in refused
        .iter()
        .filter(|(key, refusal)| stated(key) == Some(refusal.hash))
    {
        match key {
            FactKey::Export(_) => {
                let Some(export) = &mut view.export else { continue };
                if refusal.reason.is_for_now() {
                    // Nothing is wrong with it: it waits.
                    view.held_back = Some((*refusal.message).into());
                    continue;
                }
                export.validity = Validity::Invalid {
                    reason: InvalidReason::InvalidExport,
                    message: (*refusal.message).into(),
                };
            }
            FactKey::EndpointSlice(slice) => {
                let message = (*refusal.message).into();
                view.unexported_slices.insert((*slice.name).into(), message);
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
        Some(namespace) if namespace.head().deleting => NamespaceState::Terminating,
        Some(_) => NamespaceState::Active,
    }
}

/// Every service with an object of ours, or with an export, in this cluster.
pub(super) fn observed_services(watches: &Watches) -> Vec<ServiceKey> {
    let mut services = watches.imports.services();
    services.extend(watches.exports.services());
    services.extend(
        watches
            .services
            .all()
            .iter()
            .filter_map(|object| object.labelled_service()),
    );
    services.extend(
        watches
            .slices
            .all()
            .iter()
            .filter_map(|object| object.labelled_service()),
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
    for slice in watches.slices.all() {
        let source = slice.source().cloned();
        held.extend(source.map(|cluster| (slice.labelled_service(), cluster)));
    }
    for object in watches.imports.all() {
        if let Some(import) = object.found().ours() {
            let clusters = import.content.status.clusters.iter();
            let clusters = clusters.chain(&import.content.content.sources);
            held.extend(clusters.map(|cluster| (object.head().service(), cluster.clone())));
        }
    }
    for service in watches.services.all() {
        let clusters = service.sources().iter().cloned();
        held.extend(clusters.map(|cluster| (service.labelled_service(), cluster)));
    }
    held
}

/// The export, judged together with its Service (absent only when it is known that there is none), and the
/// Service's ports if it is valid.
fn judged_export(
    export: &KeptExport,
    service: Option<&KeptService>,
    deny: &NamespaceDenyList,
) -> (FoundExport, Option<Vec<ServicePort>>) {
    let object = export.exported();
    let judged = export_from(object, service.map(KeptService::exported), deny);
    let (validity, metadata_left_out, ports) = match judged {
        Ok(exported) => (
            Validity::Valid,
            exported.metadata_left_out,
            Some(exported.export.ports),
        ),
        Err(problem) => (invalid(&problem), String::new(), None),
    };
    let found = FoundExport {
        uid: export.head().uid.clone(),
        generation: object.metadata.generation.unwrap_or_default(),
        deleting: export.head().deleting,
        validity,
        metadata_left_out: metadata_left_out.into(),
        conditions: export.conditions().to_vec(),
    };
    (found, ports)
}

fn invalid(problem: &ExportProblem) -> Validity {
    let reason = match problem {
        ExportProblem::NoService(_) => InvalidReason::NoService,
        ExportProblem::InvalidServiceType(_) => InvalidReason::InvalidServiceType,
        ExportProblem::InvalidExport(_) => InvalidReason::InvalidExport,
        ExportProblem::NamespaceReserved(_) | ExportProblem::NamespaceDenied(_) => {
            InvalidReason::NamespaceDenied
        }
    };
    Validity::Invalid {
        reason,
        message: problem.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use api::names::{AGENT_MANAGER, LABEL_MANAGED_BY, LABEL_SERVICE_NAME, LABEL_SOURCE_CLUSTER};
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        plan::{Action, LocalConfig, ServedFields, content::ConditionStatus, plan},
        watch::{Event, Watched},
    };

    fn list<K: Kept>(store: &Watched<K>, objects: Vec<Value>) {
        store.handle(Event::Init);
        for object in objects {
            store.handle(Event::InitApply(
                serde_json::from_value(object).expect("an object"),
            ));
        }
        store.handle(Event::InitDone);
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

    /// Nobody else says why nothing comes of it: no Service, and so no fact, has such a name.
    #[test]
    fn an_export_that_is_called_as_no_service_can_be_is_told_so() {
        let watches = Watches::default();
        let name = "web.example.org";
        let object =
            json!({"metadata": {"namespace": "shop", "name": name, "uid": "e", "resourceVersion": "1"}});
        list(&watches.exports, vec![object]);
        list(&watches.namespaces, vec![json!({"metadata": {"name": "shop"}})]);
        list(&watches.services, Vec::new());
        list(&watches.slices, Vec::new());
        list(&watches.imports, Vec::new());
        let services = observed_services(&watches);
        let [service] = &services[..] else {
            panic!("{services:?}")
        };
        let (desired, own) = (Desired::default(), cluster("here"));
        let (refused, deny) = (RefusedFacts::new(), NamespaceDenyList::default());
        let (view, _) = view(
            &watches,
            &desired,
            &own,
            &deny,
            &refused,
            Refusals::default(),
            service,
        );
        let config = LocalConfig {
            cluster: own,
            served: ServedFields::ALL,
        };
        let planned = plan(&desired, &view, &config, service);
        let told = planned.actions.iter().find_map(|action| match action {
            Action::ApplyExportStatus { conditions, .. } => Some(&conditions[0]),
            _ => None,
        });
        let told = told.expect("conditions");
        assert_eq!(
            (&*told.reason, told.status),
            ("InvalidExport", ConditionStatus::False)
        );
        assert!(
            told.message.contains("\"web.example.org\" is not"),
            "{}",
            told.message
        );
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
        list(&watches.exports, vec![export]);
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
