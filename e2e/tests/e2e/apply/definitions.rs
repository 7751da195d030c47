//! Clusters whose definitions are older, or go and come.

use anyhow::Context;
use serde_json::Value;
use sim::{SimConfig, older_crds};

use super::cluster::*;

pub(super) async fn an_older_schema_gets_no_fields_it_lacks() -> anyhow::Result<()> {
    let cluster = cluster_with(SimConfig {
        crds: older_crds(),
        ..SimConfig::default()
    })?;
    let agent = settled(&cluster).await?;
    assert_eq!(
        the_import(&cluster)["status"]["endpointSliceObjects"],
        Value::Null
    );
    let refused = cluster
        .requests()
        .writes()
        .iter()
        .filter(|entry| entry.code >= 500)
        .count();
    assert_eq!(refused, 0);
    agent.stop().await
}

pub(super) async fn a_crd_that_goes_and_comes_is_followed() -> anyhow::Result<()> {
    let cluster = cluster()?;
    let agent = settled(&cluster).await?;
    let name = "serviceimports.multicluster.x-k8s.io";
    cluster.remove_crd(name)?;
    cluster.faults().drop_watches();
    let crds = sim::current_crds();
    let crd = crds.iter().find(|crd| crd.name() == name).context("the CRD")?;
    cluster.install_crd(crd);
    arrived(&cluster, 2).await?;
    agent.stop().await
}
