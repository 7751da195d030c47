//! A service exported in one cluster arrives in the others, and goes again.

use anyhow::ensure;
use serde_json::{Value, json};

use super::story::{
    Kind, Story,
    expect::{self, backends_are, complete, exported, from_clusters, gone, spec_is},
    objects::{self, address, export, export_with, plain, service, with},
};

/// One export arrives in every cluster, the exporter included, and in one step with its IPs.
pub(super) async fn arrives_everywhere(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    let west = story.record("west", &[Kind::ServiceImport]).await?;
    story.export("east", "cart", &plain()).await?;
    let wanted = json!({
        "type": "ClusterSetIP",
        "ports": [{"name": "http", "protocol": "TCP", "port": 80}],
        "ipFamilies": ["IPv4"],
        "sessionAffinity": "None",
        "internalTrafficPolicy": "Cluster",
    });
    story
        .everywhere(|seen| {
            let import = complete(seen, "cart")?;
            spec_is(import, &wanted)?;
            from_clusters(import, &["east"])?;
            backends_are(seen, "cart", &[("east", &address("east", 1))])
        })
        .await?;
    story.until("east", |seen| exported(seen, "cart", "")).await?;
    // Nobody ever saw IPs without their families.
    let settled = story.get("west", Kind::ServiceImport, "cart").await?;
    let last = settled["metadata"]["resourceVersion"].clone();
    let versions = west
        .versions(|seen| {
            seen.iter()
                .any(|one| one.object["metadata"]["resourceVersion"] == last)
        })
        .await?;
    for version in versions.iter().filter(|version| version.name == "cart") {
        let spec = &version.object["spec"];
        ensure!(
            spec["ips"].is_null() == spec["ipFamilies"].is_null(),
            "IPs and families came apart: {spec}"
        );
    }
    // The Service itself is nobody's to change.
    let own = story.get("east", Kind::Service, "cart").await?;
    ensure!(
        own["metadata"]["managedFields"]
            .as_array()
            .is_some_and(|entries| { entries.iter().all(|entry| entry["manager"] != "tributary-agent") }),
        "the agent wrote the user's Service: {own}"
    );
    Ok(())
}

/// Every property of Service and export that the import has, as it stands there.
pub(super) async fn carries_every_property(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    let ports = json!([
        {"name": "http", "port": 80, "appProtocol": "kubernetes.io/h2c"},
        {"name": "dns", "port": 53, "protocol": "UDP"},
        {"name": "tunnel", "port": 9000, "protocol": "SCTP"},
    ]);
    let spec = with(
        objects::ports(ports),
        json!({
            "sessionAffinity": "ClientIP",
            "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 77}},
            "internalTrafficPolicy": "Local",
            "trafficDistribution": "PreferClose",
        }),
    );
    let mut labelled = service("cart", &spec);
    labelled["metadata"]["labels"] = json!({"team": "shop"});
    story.apply("east", labelled).await?;
    let exported_metadata = json!({
        "exportedLabels": {"example.org/tier": "gold"},
        "exportedAnnotations": {"example.org/contact": "Anna & Bob <shop>"},
    });
    story
        .apply("east", export_with("cart", exported_metadata))
        .await?;
    let wanted = json!({
        "type": "ClusterSetIP",
        "ports": [
            {"name": "http", "protocol": "TCP", "port": 80, "appProtocol": "kubernetes.io/h2c"},
            {"name": "dns", "protocol": "UDP", "port": 53},
            {"name": "tunnel", "protocol": "SCTP", "port": 9000},
        ],
        "ipFamilies": ["IPv4"],
        "sessionAffinity": "ClientIP",
        "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 77}},
        "internalTrafficPolicy": "Local",
        "trafficDistribution": "PreferClose",
    });
    story
        .everywhere(|seen| {
            let import = complete(seen, "cart")?;
            spec_is(import, &wanted)?;
            let metadata = &import["metadata"];
            ensure!(
                metadata["labels"]["example.org/tier"] == "gold",
                "no exported label"
            );
            ensure!(
                metadata["labels"]["team"].is_null(),
                "a label of the Service was carried over"
            );
            ensure!(
                metadata["annotations"]["example.org/contact"] == "Anna & Bob <shop>",
                "no exported annotation"
            );
            // Traffic is served by the derived Service, so it has to have all of this too.
            let derived = &seen.derived("cart")?["spec"];
            for field in [
                "sessionAffinity",
                "sessionAffinityConfig",
                "internalTrafficPolicy",
                "trafficDistribution",
            ] {
                expect::same(&derived[field], &wanted[field], field)?;
            }
            let numbers = |spec: &Value| {
                let ports = spec["ports"].as_array().cloned().unwrap_or_default();
                let mut numbers: Vec<Option<u64>> = ports.iter().map(|port| port["port"].as_u64()).collect();
                numbers.sort_unstable();
                numbers
            };
            ensure!(
                numbers(derived) == numbers(&wanted),
                "the derived Service has other ports: {derived}"
            );
            Ok(())
        })
        .await?;
    Ok(())
}

/// The import lives exactly as long as one export does; what comes after it is a new one.
pub(super) async fn goes_with_the_last_export(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    story.export_in_order(&["east", "west"], "cart", &plain()).await?;
    let both = [("east", &*address("east", 1)), ("west", &*address("west", 1))];
    story
        .everywhere(|seen| {
            from_clusters(complete(seen, "cart")?, &["east", "west"])?;
            backends_are(seen, "cart", &both)
        })
        .await?;
    story.delete("east", Kind::ServiceExport, "cart").await?;
    story
        .everywhere(|seen| {
            from_clusters(complete(seen, "cart")?, &["west"])?;
            backends_are(seen, "cart", &both[1..])
        })
        .await?;
    story.delete("west", Kind::ServiceExport, "cart").await?;
    story.everywhere(|seen| gone(seen, "cart")).await?;
    for cluster in ["east", "west"] {
        story.get(cluster, Kind::Service, "cart").await?;
    }
    // Exported again: another uid, the same name.
    story.apply("west", export("cart")).await?;
    story
        .everywhere(|seen| {
            from_clusters(complete(seen, "cart")?, &["west"])?;
            backends_are(seen, "cart", &both[1..])
        })
        .await?;
    // A Service that goes takes its export out of the clusterset, though the ServiceExport stays.
    story.delete("west", Kind::Service, "cart").await?;
    story.everywhere(|seen| gone(seen, "cart")).await?;
    story
        .until("west", |seen| expect::refused(seen, "cart", "NoService"))
        .await?;
    Ok(())
}
