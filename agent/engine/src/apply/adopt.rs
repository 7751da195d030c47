//! Objects of the agent's that came back without their managedFields, from a backup of the cluster: which these are,
//! and how they become the agent's again. It changes nothing of an object but who owns its fields, and it takes
//! nothing that the agent would not have made: the label, the name, and what the name follows from must agree.

use std::fmt::Debug;

use api::{
    ServiceImport,
    names::{
        AGENT_MANAGER, ANNOTATION_DERIVED_SERVICE, ENDPOINT_SLICE_MANAGER, LABEL_ENDPOINT_SLICE_MANAGED_BY,
        LABEL_MANAGED_BY, LABEL_SERVICE_NAME, LABEL_SOURCE_CLUSTER,
    },
    server::{Api, Client},
};
use jiff::Timestamp;
use k8s_openapi::{
    NamespaceResourceScope,
    api::{core::v1::Service, discovery::v1::EndpointSlice},
    apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry, Time},
};
use kube_core::{
    Resource, ResourceExt,
    params::{ListParams, Patch, PatchParams},
};
use model::{
    ClusterId,
    derived_name::{IMPORTED_SLICE_HASH_CHARS, IMPORTED_SLICE_PREFIX, derived_service_name},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::convert::{ANNOTATION_SOURCE_CLUSTERS, owned};

/// Objects that are read at a time.
const PAGE: u32 = 500;

/// An object that was made by a Tributary agent and is nobody's of that name now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphan {
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Current owners of its fields.
    pub managers: Vec<String>,
}

/// Finds the orphans of a cluster, and with `confirm` makes them the agent's. An object taken before is not one of them
/// any more.
pub async fn adopt(client: &Client, confirm: bool) -> Result<Vec<Orphan>, api::server::Error> {
    let mut orphans = of_kind::<ServiceImport>(client, confirm, is_import).await?;
    orphans.extend(of_kind::<Service>(client, confirm, is_derived).await?);
    orphans.extend(of_kind::<EndpointSlice>(client, confirm, is_imported_slice).await?);
    Ok(orphans)
}

async fn of_kind<K>(
    client: &Client,
    confirm: bool,
    would_be_made: fn(&K) -> bool,
) -> Result<Vec<Orphan>, api::server::Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
{
    let all: Api<K> = Api::all(client.clone());
    let labelled = format!("{LABEL_MANAGED_BY}={AGENT_MANAGER}");
    let mut params = ListParams::default().labels(&labelled).limit(PAGE);
    let mut orphans = Vec::new();
    loop {
        let page = all.list(&params).await?;
        let more = page.metadata.continue_.clone().filter(|more| !more.is_empty());
        for object in page.items {
            let going = object.meta().deletion_timestamp.is_some();
            if going || owned::is_ours(&object) || !would_be_made(&object) {
                continue;
            }
            if confirm {
                take(client, &object).await?;
            }
            orphans.push(orphan(&object));
        }
        let Some(more) = more else {
            return Ok(orphans);
        };
        params = params.continue_token(&more);
    }
}

fn orphan<K: Resource<DynamicType = ()>>(object: &K) -> Orphan {
    let entries = object.meta().managed_fields.iter().flatten();
    let mut managers: Vec<String> = entries.filter_map(|entry| entry.manager.clone()).collect();
    managers.sort();
    managers.dedup();
    Orphan {
        kind: K::kind(&()).into_owned(),
        namespace: object.namespace().unwrap_or_default(),
        name: object.name_any(),
        managers,
    }
}

/// The fields of the object are the agent's now, whoever owned them before, as if it had applied them: the ones that
/// its next apply does not state go, as they should.
async fn take<K>(client: &Client, object: &K) -> Result<(), api::server::Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
{
    let api: Api<K> = Api::namespaced(client.clone(), &object.namespace().unwrap_or_default());
    let entries = object.meta().managed_fields.as_deref().unwrap_or_default();
    let metadata = json!({
        "uid": object.uid(), "resourceVersion": object.resource_version(),
        "managedFields": taken_over(entries, &K::api_version(&())),
    });
    let params = PatchParams {
        field_manager: Some(AGENT_MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let patch = Patch::Merge(json!({"metadata": metadata}));
    api.patch(&object.name_any(), &params, &patch).await.map(drop)
}

/// One entry of ours for the object and one for its status, with the fields of all that there were.
fn taken_over(entries: &[ManagedFieldsEntry], api_version: &str) -> Vec<ManagedFieldsEntry> {
    let mut taken: Vec<ManagedFieldsEntry> = Vec::new();
    for subresource in [None, Some("status")] {
        let of_it = entries
            .iter()
            .filter(|entry| entry.subresource.as_deref() == subresource);
        let mut fields = json!({});
        of_it
            .filter_map(|entry| entry.fields_v1.as_ref())
            .for_each(|one| add_fields(&mut fields, &one.0));
        if subresource.is_none() {
            // An object without any managedFields is ours nevertheless.
            let label = json!({"f:metadata": {"f:labels": {format!("f:{LABEL_MANAGED_BY}"): {}}}});
            add_fields(&mut fields, &label);
        }
        if fields != json!({}) {
            taken.push(ManagedFieldsEntry {
                api_version: Some(api_version.to_owned()),
                fields_type: Some("FieldsV1".to_owned()),
                fields_v1: Some(FieldsV1(fields)),
                manager: Some(AGENT_MANAGER.to_owned()),
                operation: Some("Apply".to_owned()),
                subresource: subresource.map(str::to_owned),
                time: Some(Time(Timestamp::now())),
            });
        }
    }
    taken
}

/// Sets of fields are objects of objects.
fn add_fields(all: &mut Value, more: &Value) {
    let (Some(all), Some(more)) = (all.as_object_mut(), more.as_object()) else {
        return;
    };
    for (field, inner) in more {
        add_fields(all.entry(field.clone()).or_insert_with(|| json!({})), inner);
    }
}

fn is_import(object: &ServiceImport) -> bool {
    let annotations = object.annotations();
    let derived = derived_service_name(&object.namespace().unwrap_or_default(), &object.name_any());
    annotations.contains_key(ANNOTATION_SOURCE_CLUSTERS)
        && annotations
            .get(ANNOTATION_DERIVED_SERVICE)
            .is_none_or(|stated| *stated == derived)
}

fn is_derived(object: &Service) -> bool {
    let service = object.labels().get(LABEL_SERVICE_NAME);
    let namespace = object.namespace().unwrap_or_default();
    service.is_some_and(|service| derived_service_name(&namespace, service) == object.name_any())
}

/// The name follows from that of the source's slice, which nothing here says: it has to look like one.
fn is_imported_slice(object: &EndpointSlice) -> bool {
    let label = |name: &str| object.labels().get(name).map(String::as_str);
    let name = object.name_any();
    let hash = name.strip_prefix(IMPORTED_SLICE_PREFIX).unwrap_or_default();
    let is_hash = hash.len() == IMPORTED_SLICE_HASH_CHARS
        && hash
            .bytes()
            .all(|byte| byte.is_ascii_digit() || (b'a'..=b'v').contains(&byte));
    is_hash
        && label(LABEL_ENDPOINT_SLICE_MANAGED_BY) == Some(ENDPOINT_SLICE_MANAGER)
        && label(LABEL_SERVICE_NAME).is_some()
        && label(LABEL_SOURCE_CLUSTER).is_some_and(|cluster| ClusterId::new(cluster).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(name: &str, label: &str) -> Service {
        let metadata = json!({"namespace": "shop", "name": name, "labels": {LABEL_SERVICE_NAME: label}});
        serde_json::from_value(json!({"metadata": metadata})).unwrap()
    }

    fn slice(name: &str, change: impl FnOnce(&mut Value)) -> EndpointSlice {
        let mut object = json!({"addressType": "IPv4", "endpoints": [], "metadata": {
            "namespace": "shop", "name": name, "labels": {
                LABEL_ENDPOINT_SLICE_MANAGED_BY: ENDPOINT_SLICE_MANAGER,
                LABEL_SERVICE_NAME: "cart", LABEL_SOURCE_CLUSTER: "east"}}});
        change(&mut object["metadata"]["labels"]);
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn only_names_that_an_agent_gives_are_taken() {
        let derived = derived_service_name("shop", "cart");
        assert!(is_derived(&service(&derived, "cart")));
        assert!(!is_derived(&service(&derived, "till")));
        assert!(!is_derived(&service("cart", "cart")));
        let name = "imported-0123456789abcdefghij";
        assert!(is_imported_slice(&slice(name, |_| {})));
        for bad in [
            "imported-0123456789abcdefghi",
            "imported-0123456789abcdefghiz",
            "cart-x1",
        ] {
            assert!(!is_imported_slice(&slice(bad, |_| {})), "{bad}");
        }
        for label in [
            LABEL_ENDPOINT_SLICE_MANAGED_BY,
            LABEL_SERVICE_NAME,
            LABEL_SOURCE_CLUSTER,
        ] {
            let without = slice(name, |labels| drop(labels.as_object_mut().unwrap().remove(label)));
            assert!(!is_imported_slice(&without), "{label}");
        }
    }

    #[test]
    fn fields_of_everybody_become_one_entry_of_the_agents() {
        let entry = |manager: &str, subresource: Option<&str>, fields: Value| ManagedFieldsEntry {
            manager: Some(manager.into()),
            operation: Some("Update".into()),
            subresource: subresource.map(Into::into),
            fields_v1: Some(FieldsV1(fields)),
            ..ManagedFieldsEntry::default()
        };
        let entries = [
            entry("velero", None, json!({"f:spec": {"f:ports": {}, "f:type": {}}})),
            entry(
                "kubectl",
                None,
                json!({"f:spec": {"f:ports": {"k:{\"port\":80}": {}}}}),
            ),
            entry("velero", Some("status"), json!({"f:status": {"f:clusters": {}}})),
        ];
        let taken = taken_over(&entries, "v1");
        let fields: Vec<_> = taken
            .iter()
            .map(|entry| &entry.fields_v1.as_ref().unwrap().0)
            .collect();
        let spec = json!({"f:ports": {"k:{\"port\":80}": {}}, "f:type": {}});
        assert_eq!(fields[0]["f:spec"], spec);
        assert_eq!(*fields[1], json!({"f:status": {"f:clusters": {}}}));
        let ours = |entry: &&ManagedFieldsEntry| {
            entry.manager.as_deref() == Some(AGENT_MANAGER) && entry.operation.as_deref() == Some("Apply")
        };
        assert_eq!(taken.iter().filter(ours).count(), 2);
        assert_eq!(
            taken_over(&[], "v1").len(),
            1,
            "an object without any is ours too"
        );
    }
}
