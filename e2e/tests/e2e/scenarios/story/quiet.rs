//! Detects writes in a cluster: by the requests that its API server answered, and by the resourceVersions of all
//! objects. Both are the cluster's own account, not Tributary's.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use cluster::{
    clusterset,
    real::{HARNESS_USER, Mark, resource_versions},
};
use serde_json::Value;

use super::{CLUSTERS, Story, seen};

/// The kinds that a simulated cluster keeps, Leases excepted.
const SIMULATED_KINDS: [&str; 8] = [
    "Namespace",
    "Service",
    "EndpointSlice",
    "Event",
    "ServiceExport",
    "ServiceImport",
    "ClusterProperty",
    "ClusterProfile",
];

/// The state of one cluster at one moment.
pub(crate) struct Quiet {
    cluster: &'static str,
    versions: BTreeMap<String, String>,
    place: Place,
}

/// A place in the record of requests.
enum Place {
    Simulated(usize),
    Real(Mark),
}

impl Story {
    /// The state of every cluster now.
    pub(crate) async fn listen(&self) -> anyhow::Result<Vec<Quiet>> {
        let mut all = Vec::new();
        for (index, cluster) in CLUSTERS.into_iter().enumerate() {
            let place = match &self.clusterset.cluster(cluster)?.kind {
                clusterset::Kind::Simulated(simulated, _) => {
                    Place::Simulated(simulated.requests().all().len())
                }
                clusterset::Kind::Real(fleet, _) => {
                    let real = &fleet.clusters()[index];
                    Place::Real(real.audit_log().settle(&real.client().await?).await?)
                }
            };
            all.push(Quiet {
                cluster,
                versions: self.versions(cluster).await?,
                place,
            });
        }
        Ok(all)
    }

    /// Nobody but the harness has written anything since then, Leases and fences excepted.
    pub(crate) async fn nothing_written_since(&self, before: &[Quiet]) -> anyhow::Result<()> {
        for (index, quiet) in before.iter().enumerate() {
            let cluster = quiet.cluster;
            let writes = self.writes(index, quiet).await?;
            ensure!(writes.is_empty(), "{cluster} was written to: {writes:#?}");
            let now = self.versions(cluster).await?;
            let changed: Vec<&String> = quiet
                .versions
                .keys()
                .chain(now.keys())
                .filter(|key| quiet.versions.get(*key) != now.get(*key))
                .collect();
            ensure!(changed.is_empty(), "in {cluster} other versions have {changed:?}");
        }
        Ok(())
    }

    async fn writes(&self, index: usize, quiet: &Quiet) -> anyhow::Result<Vec<String>> {
        Ok(
            match (&self.clusterset.cluster(quiet.cluster)?.kind, &quiet.place) {
                (clusterset::Kind::Simulated(simulated, _), Place::Simulated(seen)) => simulated
                    .requests()
                    .all()
                    .iter()
                    .skip(*seen)
                    .filter(|entry| entry.is_write() && entry.resource != "leases")
                    .filter(|entry| {
                        entry.user_agent != clusterset::USER_AGENT && entry.namespace != self.fence
                    })
                    .map(|entry| format!("{entry:?}"))
                    .collect(),
                (clusterset::Kind::Real(fleet, _), Place::Real(mark)) => {
                    let real = &fleet.clusters()[index];
                    real.audit_log().settle(&real.client().await?).await?;
                    let requests = real.audit_log().since(*mark)?;
                    let of_agents = |user: &str| {
                        let component =
                            user.starts_with("system:") && !user.starts_with("system:serviceaccount:");
                        user != HARNESS_USER && !component
                    };
                    requests
                        .iter()
                        .filter(|request| request.is_write() && !request.is_lease())
                        .filter(|request| of_agents(&request.user) && request.namespace != self.fence)
                        .map(ToString::to_string)
                        .collect()
                }
                _ => Vec::new(),
            },
        )
    }

    /// The resourceVersion of everything in a cluster, but for Leases, the fence, and what earlier stories left,
    /// which may still be on its way out.
    async fn versions(&self, cluster: &str) -> anyhow::Result<BTreeMap<String, String>> {
        let member = self.clusterset.cluster(cluster)?;
        let mut versions = match member.sim() {
            None => resource_versions(&member.client).await?,
            Some(simulated) => SIMULATED_KINDS
                .iter()
                .flat_map(|kind| simulated.list(kind))
                .map(|object| {
                    let metadata = &object["metadata"];
                    let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
                    let kind = object["kind"].as_str().unwrap_or_default();
                    let key = format!("{kind} {}/{}", text("namespace"), text("name"));
                    (key, text("resourceVersion"))
                })
                .collect(),
        };
        let others = self.other_namespaces(cluster).await?;
        versions.retain(|key, _| {
            // The API server's own record of the addresses of all Services, the fence's too.
            if key.starts_with("ipaddresses.") {
                return false;
            }
            let place = key.split_once(' ').map_or("", |(_, place)| place);
            let (namespace, name) = place.split_once('/').unwrap_or_default();
            let of_namespace = if namespace.is_empty() { name } else { namespace };
            !others.iter().any(|other| other == of_namespace)
        });
        Ok(versions)
    }

    async fn other_namespaces(&self, cluster: &str) -> anyhow::Result<Vec<String>> {
        let namespaces = self.api(cluster, super::Kind::Namespace)?;
        let listed = namespaces.list(&Default::default()).await?;
        let mut others = vec![self.fence.clone()];
        for namespace in listed.items {
            let name = namespace
                .metadata
                .name
                .clone()
                .context("a namespace has a name")?;
            let object: Value = serde_json::to_value(namespace)?;
            let of_a_story = !seen::label(&object, cluster::clusterset::shop::LABEL_STORY).is_empty();
            if name != self.namespace && of_a_story {
                others.push(name);
            }
        }
        Ok(others)
    }
}
