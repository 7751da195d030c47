//! Owns: in which version a cluster serves Clusters and ClusterClasses: the newest that is known here.
//! Never: remembers it; each query is answered anew.

use kube::{
    Client,
    api::{ApiResource, GroupVersionKind},
};
use shared::api::names::CLUSTER_API_GROUP;

use super::told::refused;

/// Versions that are read, the one that is preferred first.
const VERSIONS: [&str; 2] = ["v1beta2", "v1beta1"];
/// Plurals of both kinds, and the kinds.
const KINDS: [(&str, &str); 2] = [("clusters", "Cluster"), ("clusterclasses", "ClusterClass")];

/// Both kinds in the version that is read, or why there is none.
pub(crate) async fn kinds(client: &Client) -> Result<(ApiResource, ApiResource), String> {
    for version in VERSIONS {
        let served = client
            .list_api_group_resources(&format!("{CLUSTER_API_GROUP}/{version}"))
            .await;
        let served = match served {
            Ok(served) => served.resources,
            Err(kube::Error::Api(status)) if status.code == 404 => continue,
            Err(error) => return Err(refused(&error, super::RIGHTS)),
        };
        let is_served = |plural: &str| served.iter().any(|resource| resource.name == plural);
        if KINDS.iter().all(|(plural, _)| is_served(plural)) {
            let [cluster, class] = KINDS.map(|(plural, kind)| {
                let kind = GroupVersionKind::gvk(CLUSTER_API_GROUP, version, kind);
                ApiResource::from_gvk_with_plural(&kind, plural)
            });
            return Ok((cluster, class));
        }
    }
    Err(format!(
        "this cluster serves clusters and clusterclasses of {CLUSTER_API_GROUP} neither in {}: install Cluster API, or \
         start the hub without --topology",
        VERSIONS.join(" nor in ")
    ))
}
