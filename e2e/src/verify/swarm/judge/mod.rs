//! What every cluster must hold, worked out from the clusters' own objects: an independent reading of KEP-1645.
//! It knows neither facts, revisions nor the hub, and shares no rule with the fold.

mod compare;
mod expected;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::Value;
use shared::model::ServiceKey;

use super::site::{Site, owner};

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn place(object: &Value) -> (String, String) {
    (
        text(&object["metadata"]["namespace"]),
        text(&object["metadata"]["name"]),
    )
}

/// The objects of one cluster that matter, by namespace and name.
struct Shown {
    name: String,
    namespaces: BTreeSet<String>,
    services: BTreeMap<(String, String), Arc<Value>>,
    exports: BTreeMap<(String, String), Arc<Value>>,
    imports: BTreeMap<(String, String), Arc<Value>>,
    slices: Vec<Arc<Value>>,
}

impl Shown {
    fn of(site: &Site) -> Self {
        let all = |kind: &str| {
            site.cluster
                .objects(kind)
                .into_iter()
                .map(|object| (place(&object), object))
        };
        let active = |object: &Value| object["metadata"]["deletionTimestamp"].is_null();
        Self {
            name: site.name.to_string(),
            namespaces: all("Namespace")
                .filter(|(_, object)| active(object))
                .map(|((_, name), _)| name)
                .collect(),
            services: all("Service").collect(),
            exports: all("ServiceExport").collect(),
            imports: all("ServiceImport").collect(),
            slices: site.cluster.objects("EndpointSlice"),
        }
    }

    fn slices_of<'a>(&'a self, label: &'a str, service: &'a ServiceKey) -> impl Iterator<Item = &'a Value> {
        self.slices.iter().map(Arc::as_ref).filter(move |slice| {
            place(slice).0 == *service.namespace && slice["metadata"]["labels"][label] == *service.name
        })
    }
}

/// Compares every cluster with what it must hold. The first difference comes back in words, else how many services
/// have conflicting exports.
pub(super) fn judge(sites: &[Site]) -> Result<u64, String> {
    let shown: Vec<Shown> = sites.iter().map(Shown::of).collect();
    let keys: BTreeSet<ServiceKey> = super::site::all_keys().collect();
    let mut conflicts = 0;
    for service in &keys {
        let expected = expected::expected(&shown, service);
        conflicts += u64::from(expected.as_ref().is_some_and(|expected| expected.conflict));
        for (cluster, site) in shown.iter().zip(sites) {
            compare::compare(cluster, site, service, expected.as_ref())
                .map_err(|what| format!("{service} in {}: {what}", cluster.name))?;
        }
    }
    for site in sites {
        for kind in ["ServiceImport", "Service", "EndpointSlice"] {
            let strange = |object: &Value| owner(object).is_none_or(|service| !keys.contains(&service));
            if let Some(ghost) = site.ours(kind).iter().find(|object| strange(object)) {
                return Err(format!("a ghost in {}: {kind} {:?}", site.name, place(ghost)));
            }
        }
    }
    Ok(conflicts)
}
