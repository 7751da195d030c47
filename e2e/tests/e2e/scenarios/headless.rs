//! Headless services: no address of their own, pods by their hostnames.

use anyhow::ensure;
use serde_json::{Value, json};

use super::story::{
    Kind, Story,
    expect::{backends_are, complete, exported, from_clusters, gone, same, spec_is},
    objects::{export, headless, plain, service, slice},
    seen::Seen,
};

fn pods(network: u8) -> Value {
    json!([
        {"addresses": [format!("192.0.{network}.1")], "hostname": "db-0", "conditions": {"ready": true}},
        {"addresses": [format!("192.0.{network}.2")], "hostname": "db-1", "conditions": {"ready": false}},
    ])
}

async fn database(story: &Story, cluster: &str, network: u8) -> anyhow::Result<()> {
    story.apply(cluster, service("db", &headless())).await?;
    let ports = json!([{"name": "http", "port": 5432, "protocol": "TCP"}]);
    story
        .apply(cluster, slice("db", "a", ports, pods(network)))
        .await?;
    story.apply(cluster, export("db")).await.map(drop)
}

/// Hostnames and readiness of every pod arrive; clusterset IPs never do.
pub(super) async fn hostnames_arrive_and_ips_never(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    let recorders = [
        story
            .record("west", &[Kind::ServiceImport, Kind::Service])
            .await?,
        story
            .record("east", &[Kind::ServiceImport, Kind::Service])
            .await?,
    ];
    database(story, "east", 0).await?;
    database(story, "north", 2).await?;
    let wanted = json!({
        "type": "Headless",
        "ports": [{"name": "http", "protocol": "TCP", "port": 80}],
        "ipFamilies": ["IPv4"],
        "sessionAffinity": "None",
        "internalTrafficPolicy": "Cluster",
    });
    let addresses = [
        ("east", "192.0.0.1"),
        ("east", "192.0.0.2"),
        ("north", "192.0.2.1"),
        ("north", "192.0.2.2"),
    ];
    story
        .everywhere(|seen| {
            let import = complete(seen, "db")?;
            spec_is(import, &wanted)?;
            from_clusters(import, &["east", "north"])?;
            backends_are(seen, "db", &addresses)?;
            for (network, cluster) in [(0, "east"), (2, "north")] {
                let slices = seen.imported_from("db", cluster);
                ensure!(
                    slices.len() == 1,
                    "the pods of {cluster} are in {} slices",
                    slices.len()
                );
                same(&slices[0]["endpoints"], &pods(network), "the endpoints")?;
            }
            Ok(())
        })
        .await?;
    story.until("east", |seen| exported(seen, "db", "")).await?;
    story.stays(|seen| complete(seen, "db").map(drop)).await?;
    for recorder in &recorders {
        let versions = recorder
            .versions(|seen| {
                seen.iter()
                    .any(|one| one.kind == Kind::ServiceImport && one.name == "db")
            })
            .await?;
        for version in versions.iter().filter(|version| version.name == "db") {
            ensure!(
                version.kind != Kind::ServiceImport || version.object["spec"]["ips"].is_null(),
                "a headless import had IPs: {}",
                version.object
            );
        }
    }
    Ok(())
}

/// A Service that becomes headless, and one again: import and derived Service are made anew, and nothing of the
/// other type is left.
pub(super) async fn a_type_can_change(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    story.export("east", "cart", &plain()).await?;
    story.everywhere(|seen| complete(seen, "cart").map(drop)).await?;
    for (spec, wanted) in [(headless(), "Headless"), (plain(), "ClusterSetIP")] {
        let before = story.get("west", Kind::ServiceImport, "cart").await?;
        story.delete("east", Kind::Service, "cart").await?;
        story.apply("east", service("cart", &spec)).await?;
        story
            .everywhere(|seen| {
                let import = complete(seen, "cart")?;
                same(&import["spec"]["type"], &json!(wanted), "the type")?;
                ensure!(
                    seen.imported_from("cart", "east").len() == 1,
                    "the slices did not come along"
                );
                Ok(())
            })
            .await?;
        let after = story.get("west", Kind::ServiceImport, "cart").await?;
        ensure!(
            before["metadata"]["uid"] != after["metadata"]["uid"],
            "an import changed its type in place"
        );
    }
    story.delete("east", Kind::ServiceExport, "cart").await?;
    story.everywhere(|seen| gone(seen, "cart")).await?;
    Ok(())
}

/// Types that differ: the oldest export's is the import's, and when that one goes, the next one's.
pub(super) async fn the_type_is_the_oldest_exports(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    story.export("west", "cart", &plain()).await?;
    super::story::act::next_second().await;
    story.export("east", "cart", &headless()).await?;
    let of_type = |seen: &Seen, wanted: &str, clusters: &[&str]| {
        let import = complete(seen, "cart")?;
        same(&import["spec"]["type"], &json!(wanted), "the type")?;
        from_clusters(import, clusters)?;
        let slices = seen.imported("cart").count();
        ensure!(slices == clusters.len(), "{slices} slices from {clusters:?}");
        Ok(())
    };
    story
        .everywhere(|seen| of_type(seen, "ClusterSetIP", &["east", "west"]))
        .await?;
    for cluster in ["east", "west"] {
        story
            .until(cluster, |seen| exported(seen, "cart", "TypeConflict"))
            .await?;
    }
    story.delete("west", Kind::ServiceExport, "cart").await?;
    story
        .everywhere(|seen| of_type(seen, "Headless", &["east"]))
        .await?;
    story.until("east", |seen| exported(seen, "cart", "")).await
}
