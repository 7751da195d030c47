//! Tests that the hub's objects arrive, whole and once, whatever the cluster is like.

use std::{collections::BTreeSet, sync::Arc};

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use shared::model::{
    IpFamily, ServiceType,
    derived_name::{derived_service_name, imported_slice_name},
    sync::DesiredChange,
};
use sim::Fault;

use super::{cluster::*, driver::*};

pub(super) async fn an_import_arrives_and_a_restart_writes_nothing() -> anyhow::Result<()> {
    let cluster = cluster()?;
    let agent = settled(&cluster).await?;
    let import = the_import(&cluster);
    let service = cluster
        .get("Service", "shop", &derived())
        .context("a derived Service")?;
    assert_eq!(import["spec"]["ips"], service["spec"]["clusterIPs"]);
    assert_eq!(import["spec"]["ipFamilies"], json!(["IPv4"]));
    assert_eq!(import["metadata"]["labels"]["tier"], json!("web"));
    assert_eq!(
        import["status"]["clusters"],
        json!([{"cluster": "east"}, {"cluster": "west"}])
    );
    assert_eq!(import["status"]["endpointSliceObjects"], json!("Present"));
    assert_eq!(service["spec"]["selector"], Value::Null);
    assert_eq!(service["metadata"]["ownerReferences"], Value::Null);
    let name = imported_slice_name("shop", "cart", "east", "cart-abc");
    let slice = cluster.get("EndpointSlice", "shop", &name).context("a slice")?;
    let labels = &slice["metadata"]["labels"];
    assert_eq!(labels["kubernetes.io/service-name"], json!(derived()));
    assert_eq!(
        labels["endpointslice.kubernetes.io/managed-by"],
        json!("tributary-agent.tributary.dev")
    );
    assert_eq!(slice["endpoints"][0]["hostname"], json!("cart-0"));
    agent.stop().await?;

    cluster.requests().clear();
    let before = cluster.revision();
    let agent = Agent::start(&cluster);
    agent.handle.sources_known().await;
    assert_eq!(
        agent.handle.sources_held(),
        BTreeSet::from([id("east"), id("west")])
    );
    agent.told(1, &all_listed(), wishes());
    looked_at_everything(&cluster, &agent, 1).await?;
    let about_cart = |entry: &&sim::Entry| {
        entry.name != "zz-probe" && !entry.name.starts_with(&derived_service_name("shop", "zz-probe"))
    };
    let writes: Vec<_> = cluster.requests().writes();
    let writes: Vec<_> = writes.iter().filter(about_cart).collect();
    ensure!(writes.is_empty(), "{writes:?}");
    assert!(cluster.revision() > before, "the probe was written");
    agent.stop().await
}

pub(super) async fn an_empty_hub_deletes_nothing_until_the_sources_list() -> anyhow::Result<()> {
    let cluster = cluster()?;
    let agent = settled(&cluster).await?;
    agent.told(2, &[source("north", true)], Vec::new());
    looked_at_everything(&cluster, &agent, 2).await?;
    assert_eq!(addresses(&cluster).len(), 2);
    assert!(ready(&cluster));
    agent
        .handle
        .feed(|desired| (desired.sources_changed(&[source("east", true)]), ()));
    until("the slice of east to go", || addresses(&cluster) == ["10.2.0.1"]).await?;
    assert!(ready(&cluster));
    agent
        .handle
        .feed(|desired| (desired.sources_changed(&[source("west", true)]), ()));
    until("everything to go", || {
        the_import(&cluster).is_null()
            && cluster.get("Service", "shop", &derived()).is_none()
            && addresses(&cluster).is_empty()
    })
    .await?;
    agent.stop().await
}

pub(super) async fn a_faulty_api_server_is_outlasted() -> anyhow::Result<()> {
    let cluster = cluster()?;
    for fault in [Fault::Conflict, Fault::InternalError, Fault::AnswerLost] {
        cluster.faults().rate(fault, 150, "");
    }
    let agent = Agent::start(&cluster);
    agent.told(1, &all_listed(), wishes());
    arrived(&cluster, 2).await?;
    cluster.faults().clear();
    agent.told(2, &all_listed(), Vec::new());
    until("everything to go", || {
        the_import(&cluster).is_null()
            && cluster.get("Service", "shop", &derived()).is_none()
            && addresses(&cluster).is_empty()
    })
    .await?;
    agent.stop().await
}

pub(super) async fn another_type_replaces_everything() -> anyhow::Result<()> {
    let cluster = cluster()?;
    let agent = settled(&cluster).await?;
    let mut headless = import(&[port("http", 80)], &["east", "west"]);
    headless.service_type = ServiceType::Headless;
    let mut changes = wishes();
    changes[0] = DesiredChange::Import(Arc::new(headless));
    agent.told(2, &all_listed(), changes);
    until("a headless import", || {
        the_import(&cluster)["spec"]["type"] == json!("Headless") && ready(&cluster)
    })
    .await?;
    assert!(cluster.get("Service", "shop", &derived()).is_none());
    assert_eq!(the_import(&cluster)["spec"]["ips"], Value::Null);
    let label = "kubernetes.io/service-name";
    until("no slice for kube-proxy", || {
        cluster
            .list("EndpointSlice")
            .iter()
            .all(|slice| slice["metadata"]["labels"][label].is_null())
    })
    .await?;
    assert_eq!(addresses(&cluster).len(), 2);
    agent.stop().await
}

pub(super) async fn families_are_taken_as_far_as_the_cluster_has_them() -> anyhow::Result<()> {
    let cluster = cluster()?;
    let agent = Agent::start(&cluster);
    let mut dual = import(&[port("http", 80)], &["east", "west"]);
    dual.ip_families = vec![IpFamily::V6, IpFamily::V4];
    let mut changes = wishes();
    changes[0] = DesiredChange::Import(Arc::new(dual.clone()));
    agent.told(1, &all_listed(), changes.clone());
    arrived(&cluster, 2).await?;
    assert_eq!(the_import(&cluster)["spec"]["ipFamilies"], json!(["IPv4"]));
    agent.told(2, &all_listed(), Vec::new());
    until("everything to go", || {
        cluster.get("Service", "shop", &derived()).is_none()
    })
    .await?;
    dual.ip_families = vec![IpFamily::V6];
    changes[0] = DesiredChange::Import(Arc::new(dual));
    agent.told(3, &all_listed(), changes);
    until("the reason", || {
        the_import(&cluster)["status"]["conditions"][0]["reason"] == json!("IPFamilyNotSupported")
    })
    .await?;
    agent.stop().await
}

pub(super) async fn own_slices_keep_their_nodes() -> anyhow::Result<()> {
    let cluster = cluster()?;
    cluster.apply_yaml(EXPORT)?;
    cluster.apply_yaml("{apiVersion: v1, kind: Service, metadata: {name: cart, namespace: shop}, spec: {ports: [{name: http, port: 80}, {name: admin, port: 81}]}}")?;
    let local = |address: &str| {
        json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": "cart-x1", "namespace": "shop", "labels": {"kubernetes.io/service-name": "cart"}},
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}, {"name": "admin", "port": 8081, "protocol": "TCP"}],
            "endpoints": [{"addresses": [address], "nodeName": "node-1", "conditions": {"ready": true},
                "targetRef": {"kind": "Pod", "namespace": "shop", "name": "cart-0", "uid": "p"}}]})
    };
    cluster.apply(local("10.0.0.1"))?;
    let agent = Agent::start(&cluster);
    let wanted = import(&[port("http", 80)], &["north"]);
    agent.told(1, &all_listed(), vec![DesiredChange::Import(Arc::new(wanted))]);
    arrived(&cluster, 1).await?;
    let name = imported_slice_name("shop", "cart", "north", "cart-x1");
    let slice = cluster
        .get("EndpointSlice", "shop", &name)
        .context("the own slice")?;
    assert_eq!(slice["endpoints"][0]["nodeName"], json!("node-1"));
    assert_eq!(slice["endpoints"][0]["targetRef"]["name"], json!("cart-0"));
    assert_eq!(slice["ports"].as_array().map(Vec::len), Some(1));
    agent.stop().await?;
    // without a hub
    let agent = Agent::start(&cluster);
    cluster.apply(local("10.0.0.2"))?;
    until("the new address", || addresses(&cluster) == ["10.0.0.2"]).await?;
    cluster.delete("ServiceExport", "shop", "cart")?;
    until("the own slice to go", || addresses(&cluster).is_empty()).await?;
    assert!(ready(&cluster), "the import waits for the hub");
    agent.stop().await
}
