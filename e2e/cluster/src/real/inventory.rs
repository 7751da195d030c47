//! Owns: the resourceVersion of every object in a cluster, for tests that nothing was written.
//! Never: looks at contents.

use super::Error;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::PartialObjectMeta;
use kube::discovery::{Discovery, verbs};
use std::collections::BTreeMap;

/// Objects of one list request.
const PAGE_OBJECTS_MAX: u32 = 500;

/// By "plural.group namespace/name", the resourceVersion.
pub type ResourceVersions = BTreeMap<String, String>;

/// The resourceVersion of every object of every resource that can be listed, Leases excepted: those are renewed
/// by everybody all the time.
pub async fn resource_versions(client: &kube::Client) -> Result<ResourceVersions, Error> {
    let discovery = Discovery::new(client.clone())
        .exclude(&["coordination.k8s.io"])
        .run()
        .await?;
    let mut versions = ResourceVersions::new();
    for group in discovery.groups() {
        for (resource, capabilities) in group.recommended_resources() {
            if !capabilities.supports_operation(verbs::LIST) {
                continue;
            }
            let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
            let mut page = ListParams::default().limit(PAGE_OBJECTS_MAX);
            loop {
                let list = api.list_metadata(&page).await?;
                for object in list.items {
                    insert(&mut versions, &resource.plural, &resource.group, object);
                }
                match list.metadata.continue_.filter(|token| !token.is_empty()) {
                    Some(token) => page = page.continue_token(&token),
                    None => break,
                }
            }
        }
    }
    Ok(versions)
}

fn insert(
    versions: &mut ResourceVersions,
    plural: &str,
    group: &str,
    object: PartialObjectMeta<DynamicObject>,
) {
    let metadata = object.metadata;
    let namespace = metadata.namespace.unwrap_or_default();
    let name = metadata.name.unwrap_or_default();
    let key = format!("{plural}.{group} {namespace}/{name}");
    versions.insert(key, metadata.resource_version.unwrap_or_default());
}
