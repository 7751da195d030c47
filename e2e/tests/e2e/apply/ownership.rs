//! Tests that unmanaged objects are not touched, and Tributary's are restored.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use shared::model::{derived_name::imported_slice_name, sync::DesiredChange};
use sim::SimCluster;

use super::{cluster::*, driver::*};

pub(super) async fn a_strangers_object_is_never_touched() -> anyhow::Result<()> {
    let cluster = cluster()?;
    let stranger = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": derived(), "namespace": "shop"},
        "spec": {"ports": [{"port": 9}]}});
    let before = cluster.apply(stranger)?;
    let agent = Agent::start(&cluster);
    agent.told(1, &all_listed(), wishes());
    until("the import's word", || {
        let message = &the_import(&cluster)["status"]["conditions"][0]["message"];
        message
            .as_str()
            .is_some_and(|message| message.contains("not Tributary's"))
    })
    .await?;
    assert!(!ready(&cluster));
    until("an Event", || !cluster.list("Event").is_empty()).await?;
    assert_eq!(cluster.get("Service", "shop", &derived()), Some(before));
    // the stranger goes while nothing else happens: the name is free
    looked_at_everything(&cluster, &agent, 1).await?;
    cluster.delete("Service", "shop", &derived())?;
    arrived(&cluster, 2).await?;
    agent.stop().await
}

pub(super) async fn what_somebody_changes_is_restored() -> anyhow::Result<()> {
    let cluster = cluster()?;
    let agent = settled(&cluster).await?;
    cluster.apply(
        json!({"apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceImport",
        "metadata": {"name": "cart", "namespace": "shop", "labels": {"tier": "stolen"}},
        "spec": {"type": "ClusterSetIP", "ports": [{"port": 1}]}}),
    )?;
    until("the import", || {
        let import = the_import(&cluster);
        import["spec"]["ports"][0]["port"] == json!(80)
            && import["metadata"]["labels"]["tier"] == json!("web")
    })
    .await?;
    let name = imported_slice_name("shop", "cart", "west", "cart-abc");
    cluster.apply(
        json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": name, "namespace": "shop"}, "endpoints": [{"addresses": ["10.9.9.9"]}]}),
    )?;
    until("the slice", || addresses(&cluster) == ["10.1.0.1", "10.2.0.1"]).await?;
    cluster.delete("EndpointSlice", "shop", &name)?;
    until("the slice again", || {
        addresses(&cluster) == ["10.1.0.1", "10.2.0.1"]
    })
    .await?;
    agent.stop().await
}

/// Returns true if people were told of a fight for an object of this kind.
fn contended(cluster: &SimCluster, kind: &str) -> bool {
    let events = cluster.list("Event");
    events
        .iter()
        .any(|event| event["reason"] == json!("Contended") && event["regarding"]["kind"] == json!(kind))
}

pub(super) async fn what_somebody_deletes_again_and_again_is_reported_and_stops_nothing_else()
-> anyhow::Result<()> {
    let cluster = cluster()?;
    let agent = settled(&cluster).await?;
    let fought_for = imported_slice_name("shop", "cart", "west", "cart-abc");
    let (began, mut deleted) = (Instant::now(), 0);
    while !contended(&cluster, "EndpointSlice") {
        assert!(deleted < 50, "{deleted} times written again, and nobody was told");
        until("the slice again", || {
            cluster.get("EndpointSlice", "shop", &fought_for).is_some()
                || contended(&cluster, "EndpointSlice")
        })
        .await?;
        deleted += i32::from(cluster.delete("EndpointSlice", "shop", &fought_for).is_ok());
    }
    // From now on each time takes longer: half a second at least, then a whole one.
    let stands = || cluster.get("EndpointSlice", "shop", &fought_for).is_some();
    for _ in 0..2 {
        until("the slice after a wait", stands).await?;
        cluster.delete("EndpointSlice", "shop", &fought_for)?;
    }
    until("the slice after a longer wait", stands).await?;
    assert!(
        began.elapsed() >= Duration::from_millis(1_500),
        "it was not slowed down"
    );
    // Another content of it, and the other slice of its service, come as ever.
    let mut changes = vec![wishes().swap_remove(0)];
    for (cluster, address) in [("west", "10.2.0.2"), ("east", "10.1.0.2")] {
        changes.push(DesiredChange::Slice(Arc::new(slice(cluster, address))));
    }
    agent.told(2, &all_listed(), changes);
    until("new content", || addresses(&cluster) == ["10.1.0.2", "10.2.0.2"]).await?;
    assert!(ready(&cluster));
    agent.stop().await
}

pub(super) async fn a_deleted_service_comes_back_with_its_ip() -> anyhow::Result<()> {
    let cluster = cluster()?;
    let agent = settled(&cluster).await?;
    let uid = |service: &Value| service["metadata"]["uid"].clone();
    let service = || cluster.get("Service", "shop", &derived()).unwrap_or_default();
    let before = service();
    cluster.delete("Service", "shop", &derived())?;
    until("another Service", || {
        !service().is_null() && uid(&service()) != uid(&before)
    })
    .await?;
    assert_eq!(service()["spec"]["clusterIPs"], before["spec"]["clusterIPs"]);
    // and keeps it when its ports change
    let mut changes = wishes();
    changes[0] = DesiredChange::Import(Arc::new(import(
        &[port("http", 80), port("grpc", 90)],
        &["east", "west"],
    )));
    agent.told(2, &all_listed(), changes);
    until("two ports", || {
        service()["spec"]["ports"]
            .as_array()
            .is_some_and(|ports| ports.len() == 2)
    })
    .await?;
    assert_eq!(service()["spec"]["clusterIPs"], before["spec"]["clusterIPs"]);
    agent.stop().await
}
