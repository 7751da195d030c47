//! The Lease of a source cluster on real API servers: under the charts' rights, what came from another cluster goes while
//! the hub is away, and comes back with it. The rest of it is told on simulated clusters.

use std::sync::Arc;

use anyhow::ensure;
use cluster::{
    clusterset::{Backend, LocalClusterset, eventually::eventually},
    real::Fleet,
};
use k8s_openapi::api::{coordination::v1::Lease, core::v1::Service, discovery::v1::EndpointSlice};
use kube::{Api, Client, api::ListParams};
use shared::api::{
    ServiceImport,
    names::{LABEL_SOURCE_CLUSTER, TRIBUTARY_NAMESPACE},
};

use super::{
    hub::listed,
    shop::Shop,
    source_leases::{EXPIRE, LEASE},
};

/// The duration in [`EXPIRE`].
const EXPIRE_SECONDS: i32 = 6;

/// Slices from west, imports and Services of a namespace.
async fn imported(client: &Client, namespace: &str) -> anyhow::Result<[usize; 3]> {
    let of_west = ListParams::default().labels(&format!("{LABEL_SOURCE_CLUSTER}=west"));
    let all = ListParams::default();
    let slices = Api::<EndpointSlice>::namespaced(client.clone(), namespace);
    let imports = Api::<ServiceImport>::namespaced(client.clone(), namespace);
    let services = Api::<Service>::namespaced(client.clone(), namespace);
    Ok([
        slices.list(&of_west).await?.items.len(),
        imports.list(&all).await?.items.len(),
        services.list(&all).await?.items.len(),
    ])
}

async fn until(client: &Client, namespace: &str, wanted: [usize; 3]) -> anyhow::Result<()> {
    eventually("slices of west, imports and Services", async || {
        let now = imported(client, namespace).await?;
        ensure!(now == wanted, "{now:?} instead of {wanted:?}");
        Ok(Some(()))
    })
    .await
}

/// East imports what west exports, until the Lease of west is over in east.
pub(super) async fn what_came_from_others_goes_while_the_hub_is_away(
    fleet: Arc<Fleet>,
) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let backend = Backend::Real(fleet);
    let mut clusterset = LocalClusterset::without_agents(dir.path(), &backend, &["east", "west"]).await?;
    clusterset.start_agent("west").await?;
    clusterset.start_agent_with("east", &EXPIRE).await?;
    listed(&clusterset, &["east", "west"]).await?;
    let mut shop = Shop::open(&clusterset).await?;
    shop.export(&clusterset, "west", "cart", &["10.2.0.1"]).await?;
    shop.arrived(&clusterset).await?;
    let east = clusterset.cluster("east")?.client.clone();
    until(&east, &shop.namespace, [1, 1, 1]).await?;
    let leases = Api::<Lease>::namespaced(east.clone(), TRIBUTARY_NAMESPACE);
    // Another story may have left one that lasts longer.
    eventually("west has a Lease of seconds in east", async || {
        let spec = leases.get_opt(LEASE).await?.and_then(|lease| lease.spec);
        let seconds = spec.and_then(|spec| spec.lease_duration_seconds);
        Ok((seconds == Some(EXPIRE_SECONDS)).then_some(()))
    })
    .await?;

    clusterset.stop_hub().await?;
    until(&east, &shop.namespace, [0, 0, 0]).await?;
    clusterset.start_hub().await?;
    shop.arrived(&clusterset).await?;
    shop.close(&clusterset).await?;
    clusterset.end().await
}
