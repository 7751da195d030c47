//! Owns: the floor of a burst of exports: the writes that both agents made, made again under other names by somebody who
//! knows beforehand what to write, as many at a time as an agent works on.
//! Never: asks a hub, or waits for anything but the answers.

use std::time::{Duration, Instant};

use agent::apply::CONCURRENT_SERVICES_MAX;
use anyhow::Context;
use futures::TryStreamExt;
use kube::{
    Client,
    api::{Api, DynamicObject, ListParams, ObjectMeta, Patch, PatchParams},
};
use shared::api::names;

use super::objects::objects_of;

/// Namespace of these objects: no agent acts here.
pub(super) const BURST_FLOOR: &str = "burst-floor";
const MANAGER: &str = "bare-burst";
/// Writes of an export in every cluster that imports it, in order; see ADR 0022.
const KINDS: [(&str, &str); 3] = [
    (names::MULTICLUSTER_API_VERSION, "ServiceImport"),
    ("v1", "Service"),
    ("discovery.k8s.io/v1", "EndpointSlice"),
];

/// Duration of the writes for so many exports that are made in the first cluster; in namespace `burst` the agents made
/// theirs.
pub(super) async fn floor(clients: [&Client; 2], burst: &str, exports: u32) -> anyhow::Result<Duration> {
    let mut clusters = Vec::new();
    for client in clients {
        clusters.push((client, derived(client, burst).await?));
    }
    let began = Instant::now();
    let writing = clusters.iter().enumerate().map(|(index, (client, objects))| {
        let services = futures::stream::iter((0..exports).map(Ok));
        services.try_for_each_concurrent(CONCURRENT_SERVICES_MAX, move |number| {
            write(client, objects, number, index == 0)
        })
    });
    futures::future::try_join_all(writing).await?;
    Ok(began.elapsed())
}

/// One of each kind that the agent made here, without what only it may claim.
async fn derived(client: &Client, burst: &str) -> anyhow::Result<Vec<DynamicObject>> {
    let mut objects = Vec::new();
    let ours = format!("{}={}", names::LABEL_MANAGED_BY, names::AGENT_MANAGER);
    for (api_version, kind) in KINDS {
        let api = objects_of(client, Some(burst), api_version, kind);
        let found = api.list(&ListParams::default().labels(&ours).limit(1)).await?;
        let mut object = found.items.into_iter().next();
        let object = object
            .take()
            .with_context(|| format!("the agent made no {kind}"))?;
        objects.push(bare(object, api_version, kind));
    }
    Ok(objects)
}

fn bare(mut object: DynamicObject, api_version: &str, kind: &str) -> DynamicObject {
    object.types = Some(kube::api::TypeMeta {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
    });
    object.metadata = ObjectMeta::default();
    if kind == "Service" {
        object.data["spec"]["clusterIP"].take();
        object.data["spec"]["clusterIPs"].take();
        object.data["status"].take();
    }
    object
}

/// The writes of one export in one cluster.
async fn write(
    client: &Client,
    objects: &[DynamicObject],
    number: u32,
    is_exporter: bool,
) -> anyhow::Result<()> {
    let parameters = PatchParams::apply(MANAGER).force();
    let name = format!("cart-{number:03}");
    for ((api_version, kind), object) in KINDS.into_iter().zip(objects) {
        let api: Api<DynamicObject> = objects_of(client, Some(BURST_FLOOR), api_version, kind);
        let mut object = object.clone();
        object.metadata.name = Some(name.clone());
        let patch = Patch::Apply(&object);
        let what = || format!("cannot write the {kind} {name}");
        api.patch(&name, &parameters, &patch).await.with_context(what)?;
        // An import has a status; in the exporting cluster it stands for that of the ServiceExport too.
        let statuses = usize::from(kind == "ServiceImport") * (1 + usize::from(is_exporter));
        for _ in 0..statuses {
            api.patch_status(&name, &parameters, &patch)
                .await
                .with_context(what)?;
        }
    }
    Ok(())
}
