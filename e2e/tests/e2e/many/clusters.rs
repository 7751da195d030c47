//! Fifty clusters export one service, and one of them is real: its import names all of them, the oldest wins, and one
//! that leaves takes exactly its own away.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
    sync::Arc,
};

use anyhow::{Context, ensure};
use cluster::{
    clusterset::{Backend, LocalClusterset, eventually::eventually, shop::unique_name},
    real::Fleet,
};
use k8s_openapi::api::{
    core::v1::{Namespace, Service},
    discovery::v1::EndpointSlice,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use shared::{
    api::{ServiceExport, ServiceImport, names},
    model::{Fact, ServiceKey, SessionAffinity, derived_name::derived_service_name},
};

use super::{Played, create_namespace, export, slice, slice_key};

/// The real one.
const REAL: &str = "east";
/// The others.
const PLAYED: usize = 49;
const EXPORTERS: usize = PLAYED + 1;
/// Losers that a condition names; of the rest it says how many.
const NAMED: usize = 5;

pub(super) async fn fifty_clusters_export_one_service(fleet: Arc<Fleet>) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let backend = Backend::Real(fleet);
    let mut clusterset = LocalClusterset::without_agents(dir.path(), &backend, &[REAL]).await?;
    let service = ServiceKey::new(&unique_name("many"), "cart")?;
    let place = Place {
        client: clusterset.cluster(REAL)?.client.clone(),
        service: service.clone(),
    };
    create_namespace(&place.client, &service.namespace).await?;
    let mut members = Vec::new();
    for number in 1..=PLAYED {
        members.push(Played::join(&clusterset, &played(number), facts(&service, number)).await?);
    }
    place.export().await?;
    clusterset.start_agent(REAL).await?;

    let mut expected: BTreeSet<String> = (1..=PLAYED).map(played).collect();
    expected.insert(REAL.to_owned());
    ensure!(expected.len() == EXPORTERS, "{} exporters", expected.len());
    let all = place.until_imported(&expected, "None").await?;
    let more = EXPORTERS - 1 - NAMED;
    let words = [
        format!("from oldest service export in \"{}\"", played(1)),
        format!("{}/{EXPORTERS} clusters disagree", EXPORTERS - 1),
        format!("\"{}\" has \"ClientIP\"", played(1 + NAMED)),
        format!(", and {more} more."),
    ];
    let reasons = "SessionAffinityConflict,SessionAffinityConfigConflict";
    let message = place.until_conflict(reasons, &words).await?;
    let named = message.matches("\" has \"").count();
    // Two disagreements, each with its own five.
    ensure!(named == 2 * NAMED, "{named} losers are named in {message:?}");

    let leaving = 25;
    members[leaving - 1].report(&withdrawn(&service)).await?;
    expected.remove(&played(leaving));
    let left = place.until_imported(&expected, "None").await?;
    let kept: BTreeMap<_, _> = all
        .into_iter()
        .filter(|(cluster, _)| *cluster != played(leaving))
        .collect();
    ensure!(
        left == kept,
        "slices of others were touched: {kept:?} became {left:?}"
    );

    members[0].report(&withdrawn(&service)).await?;
    expected.remove(&played(1));
    place.until_imported(&expected, "ClientIP").await?;
    place.until_conflict("NoConflicts", &[]).await?;

    drop(members);
    clusterset.end().await?;
    let namespaces: Api<Namespace> = Api::all(place.client.clone());
    namespaces
        .delete(&service.namespace, &DeleteParams::default())
        .await?;
    Ok(())
}

/// The name of a played member.
fn played(number: usize) -> String {
    format!("member-{number:02}")
}

fn address(number: usize) -> Ipv4Addr {
    Ipv4Addr::new(192, 0, 2, number as u8)
}

/// Reports of a played member. The first is the oldest, and alone with its affinity.
fn facts(service: &ServiceKey, number: usize) -> Vec<Fact> {
    let affinity = if number == 1 {
        SessionAffinity::None
    } else {
        SessionAffinity::ClientIp
    };
    vec![
        export(service, number as u64, affinity),
        slice(slice_key(service, 1), address(number)),
    ]
}

fn withdrawn(service: &ServiceKey) -> [Fact; 2] {
    [
        Fact::ExportRemoved(service.clone()),
        Fact::EndpointSliceRemoved(slice_key(service, 1)),
    ]
}

/// The service in the real cluster.
struct Place {
    client: Client,
    service: ServiceKey,
}

impl Place {
    /// The real cluster exports too, as the youngest.
    async fn export(&self) -> anyhow::Result<()> {
        let name = &*self.service.name;
        let ports = json!([{"name": "http", "port": 80}]);
        let spec = json!({"ports": ports, "sessionAffinity": "ClientIP",
            "ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4"]});
        self.apply::<Service>(
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}),
        )
        .await?;
        self.apply::<EndpointSlice>(json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": name, "labels": {names::LABEL_KUBERNETES_SERVICE_NAME: name}},
            "addressType": "IPv4", "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
            "endpoints": [{"addresses": [address(EXPORTERS).to_string()]}],
        }))
        .await?;
        self.apply::<ServiceExport>(json!({
            "apiVersion": names::MULTICLUSTER_API_VERSION, "kind": "ServiceExport", "metadata": {"name": name},
        }))
        .await
    }

    async fn apply<K>(&self, object: Value) -> anyhow::Result<()>
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
        K: Clone + std::fmt::Debug + Serialize + DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), &self.service.namespace);
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        api.patch(name, &PatchParams::apply("user").force(), &Patch::Apply(&object))
            .await?;
        Ok(())
    }

    /// Waits until the import names exactly these clusters, and one slice of each stands behind it; the slices' names
    /// and versions, by cluster.
    async fn until_imported(
        &self,
        clusters: &BTreeSet<String>,
        affinity: &str,
    ) -> anyhow::Result<BTreeMap<String, (String, String)>> {
        let what = format!("{} clusters are imported", clusters.len());
        eventually(&what, async || self.imported(clusters, affinity).await.map(Some)).await
    }

    async fn imported(
        &self,
        clusters: &BTreeSet<String>,
        affinity: &str,
    ) -> anyhow::Result<BTreeMap<String, (String, String)>> {
        let namespace = &self.service.namespace;
        let imports: Api<ServiceImport> = Api::namespaced(self.client.clone(), namespace);
        let import = imports.get(&self.service.name).await?;
        let status = import.status.context("no status")?;
        let named: Vec<String> = status.clusters.into_iter().map(|one| one.cluster).collect();
        ensure!(
            named.len() == clusters.len(),
            "status.clusters has {} names",
            named.len()
        );
        let named: BTreeSet<String> = named.into_iter().collect();
        ensure!(named == *clusters, "imported from {named:?}");
        ensure!(
            import.spec.session_affinity.as_deref() == Some(affinity),
            "the affinity is {:?}",
            import.spec.session_affinity
        );
        let services: Api<Service> = Api::namespaced(self.client.clone(), namespace);
        let derived = services
            .get(&derived_service_name(namespace, &self.service.name))
            .await?;
        let ips = derived.spec.and_then(|spec| spec.cluster_ips).unwrap_or_default();
        ensure!(
            import.spec.ips == ips && !ips.is_empty(),
            "the import has {:?}",
            import.spec.ips
        );
        let slices: Api<EndpointSlice> = Api::namespaced(self.client.clone(), namespace);
        let of_the_service = format!("{}={}", names::LABEL_SERVICE_NAME, self.service.name);
        let listed = slices
            .list(&ListParams::default().labels(&of_the_service))
            .await?;
        ensure!(
            listed.items.len() == clusters.len(),
            "{} imported slices",
            listed.items.len()
        );
        let mut found = BTreeMap::new();
        for slice in listed.items {
            let cluster = slice
                .labels()
                .get(names::LABEL_SOURCE_CLUSTER)
                .cloned()
                .unwrap_or_default();
            let number = if cluster == REAL {
                EXPORTERS
            } else {
                cluster.trim_start_matches("member-").parse()?
            };
            let wanted = address(number).to_string();
            let addresses: Vec<&String> = slice.endpoints.iter().flat_map(|one| &one.addresses).collect();
            ensure!(addresses == [&wanted], "behind {cluster} stand {addresses:?}");
            let version = slice.resource_version().unwrap_or_default();
            found.insert(cluster, (slice.name_any(), version));
        }
        ensure!(found.keys().eq(clusters), "slices of {:?}", found.keys());
        Ok(found)
    }

    /// Waits until the real cluster's export has a condition Conflict of this reason, with these words; its message.
    async fn until_conflict(&self, reason: &str, words: &[String]) -> anyhow::Result<String> {
        let exports: Api<ServiceExport> = Api::namespaced(self.client.clone(), &self.service.namespace);
        eventually(&format!("the export says {reason}"), async || {
            let status = exports
                .get(&self.service.name)
                .await?
                .status
                .context("no status")?;
            let conflict = status.conditions.iter().find(|one| one.type_ == "Conflict");
            let conflict = conflict.context("no condition Conflict")?;
            ensure!(
                conflict.reason == reason,
                "{}: {}",
                conflict.reason,
                conflict.message
            );
            for word in words {
                ensure!(
                    conflict.message.contains(word),
                    "no {word:?} in {:?}",
                    conflict.message
                );
            }
            Ok(Some(conflict.message.clone()))
        })
        .await
    }
}
