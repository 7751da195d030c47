//! Clusters whose CustomResourceDefinitions are older, go, and come again.

use anyhow::{Context, ensure};
use cluster::deploy;
use serde_json::json;
use sim::{Crd, current_crds, older_crds};

use super::story::{
    EVENTUALLY_WAIT, Kind, Story,
    expect::{complete, exported, from_clusters, gone, has_condition, same},
    objects::{export, plain},
};

/// The definition of ServiceImport.
pub(super) const IMPORTS: &str = "serviceimports.multicluster.x-k8s.io";
/// The definition of ServiceExport.
pub(super) const EXPORTS: &str = "serviceexports.multicluster.x-k8s.io";

/// Puts a definition of these in place of the one that a cluster has.
async fn install(story: &Story, cluster: &str, name: &str, crds: &[Crd]) -> anyhow::Result<()> {
    let crd = crds.iter().find(|crd| crd.name() == name);
    let crd = crd.context("there is such a definition")?;
    match story.clusterset.cluster(cluster)?.sim() {
        Some(simulated) => {
            simulated.install_crd(crd);
            Ok(())
        }
        None => {
            let versions = json!({"spec": {"versions": crd.definition()["spec"]["versions"]}});
            let kind = Kind::CustomResourceDefinition;
            story.patch(cluster, kind, name, versions).await.map(drop)
        }
    }
}

/// Deletes a definition and waits until it is gone.
pub(super) async fn remove(story: &Story, cluster: &str, name: &str) -> anyhow::Result<()> {
    if let Some(simulated) = story.clusterset.cluster(cluster)?.sim() {
        return simulated.remove_crd(name);
    }
    story
        .delete(cluster, Kind::CustomResourceDefinition, name)
        .await?;
    let definitions = story.api(cluster, Kind::CustomResourceDefinition)?;
    let gone = kube::runtime::wait::await_condition(
        definitions,
        name,
        |found: Option<&kube::api::DynamicObject>| found.is_none(),
    );
    tokio::time::timeout(EVENTUALLY_WAIT, gone)
        .await
        .with_context(|| format!("{name} does not go from {cluster}"))??;
    Ok(())
}

/// Installs a definition again.
pub(super) async fn install_again(story: &Story, cluster: &str, name: &str) -> anyhow::Result<()> {
    let member = story.clusterset.cluster(cluster)?;
    match member.sim() {
        Some(_) => install(story, cluster, name, &current_crds()).await,
        None => deploy::install(&member.client, &["crds"]).await,
    }
}

/// A cluster with the definitions of mcs-api v0.5.0: the field that they lack is left out, all else is there.
/// With new definitions the field comes too.
pub(super) async fn an_older_schema_is_enough(story: &mut Story) -> anyhow::Result<()> {
    install(story, "west", IMPORTS, &older_crds()).await?;
    story.start().await?;
    story.export("east", "cart", &plain()).await?;
    for cluster in ["east", "north"] {
        story
            .until(cluster, |seen| complete(seen, "cart").map(drop))
            .await?;
    }
    story
        .until("west", |seen| {
            let import = seen.import("cart")?;
            has_condition(import, "Ready", "True", "Ready")?;
            from_clusters(import, &["east"])?;
            ensure!(
                import["status"]["endpointSliceObjects"].is_null(),
                "a field that the schema does not have was written"
            );
            same(
                &import["spec"]["ips"],
                &seen.derived("cart")?["spec"]["clusterIPs"],
                "ips",
            )?;
            ensure!(seen.imported("cart").count() == 1, "no slice");
            Ok(())
        })
        .await?;
    install_again(story, "west", IMPORTS).await?;
    story.until("west", |seen| complete(seen, "cart").map(drop)).await
}

/// Without the definition of ServiceImport nothing else is taken away; imports come back with it, under the
/// IPs that they had.
pub(super) async fn imports_survive_their_definition(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    story.export("east", "cart", &plain()).await?;
    story.everywhere(|seen| complete(seen, "cart").map(drop)).await?;
    let before = story.get("west", Kind::ServiceImport, "cart").await?;
    remove(story, "west", IMPORTS).await?;
    story.export("north", "till", &plain()).await?;
    for cluster in ["east", "north"] {
        story
            .until(cluster, |seen| {
                complete(seen, "cart")?;
                complete(seen, "till").map(drop)
            })
            .await?;
    }
    let seen = story.look("west").await?;
    seen.derived("cart")?;
    ensure!(
        seen.imported("cart").count() == 1,
        "slices went with the definition of imports"
    );
    install_again(story, "west", IMPORTS).await?;
    story
        .everywhere(|seen| {
            complete(seen, "cart")?;
            complete(seen, "till").map(drop)
        })
        .await?;
    let after = story.get("west", Kind::ServiceImport, "cart").await?;
    same(
        &after["spec"]["ips"],
        &before["spec"]["ips"],
        "the clusterset IPs",
    )
}

/// The definition of ServiceExport takes all exports of its cluster along; after it is installed again, exports
/// work as on the first day.
pub(super) async fn exports_go_with_their_definition(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    story.export_in_order(&["east", "west"], "cart", &plain()).await?;
    story.export("east", "till", &plain()).await?;
    story
        .everywhere(|seen| {
            complete(seen, "till")?;
            from_clusters(complete(seen, "cart")?, &["east", "west"])
        })
        .await?;
    remove(story, "east", EXPORTS).await?;
    story
        .everywhere(|seen| {
            gone(seen, "till")?;
            from_clusters(complete(seen, "cart")?, &["west"])
        })
        .await?;
    install_again(story, "east", EXPORTS).await?;
    for name in ["cart", "till"] {
        story.apply("east", export(name)).await?;
    }
    story
        .everywhere(|seen| {
            complete(seen, "till")?;
            from_clusters(complete(seen, "cart")?, &["east", "west"])
        })
        .await?;
    story
        .until("east", |seen| {
            exported(seen, "till", "")?;
            exported(seen, "cart", "")
        })
        .await?;
    Ok(())
}
