//! A service exported in one cluster arrives in the others, and goes again.

use anyhow::{Context, ensure};
use kube::api::PostParams;
use serde_json::{Value, json};

use super::story::{
    Kind, Story,
    expect::{self, backends_are, complete, exported, from_clusters, gone, spec_is},
    objects::{self, address, export, export_with, plain, service, with},
    record::Version,
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
    story.all_is_right().await
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

/// Widening: the derived Service, the import with its IPs, then slices. Removal: slices, the import, then the
/// Service. So traffic never meets half of a service.
pub(super) async fn comes_and_goes_in_order(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    let kinds = [Kind::Service, Kind::ServiceImport, Kind::EndpointSlice];
    let west = story.record("west", &kinds).await?;
    story.export("east", "cart", &plain()).await?;
    story
        .until("west", |seen| {
            complete(seen, "cart")?;
            backends_are(seen, "cart", &[("east", &address("east", 1))])
        })
        .await?;
    story.delete("east", Kind::ServiceExport, "cart").await?;
    story.everywhere(|seen| gone(seen, "cart")).await?;
    let all_deleted = |seen: &[Version]| seen.iter().filter(|one| one.deleted).count() == kinds.len();
    let versions = west.versions(all_deleted).await?;
    let first = |kind: Kind, wanted: &dyn Fn(&Version) -> bool| {
        let found = versions.iter().find(|one| one.kind == kind && wanted(one));
        found
            .map(|one| one.revision)
            .with_context(|| format!("no such {kind:?} in {versions:?}"))
    };
    let has_ips = |one: &Version| !one.object["spec"]["ips"].is_null();
    let widening = [
        first(Kind::Service, &|_| true)?,
        first(Kind::ServiceImport, &has_ips)?,
        first(Kind::EndpointSlice, &|_| true)?,
    ];
    ensure!(
        widening.is_sorted(),
        "Service, import with IPs, slice came as {widening:?}"
    );
    let deleted = |one: &Version| one.deleted;
    let removal = [
        first(Kind::EndpointSlice, &deleted)?,
        first(Kind::ServiceImport, &deleted)?,
        first(Kind::Service, &deleted)?,
    ];
    ensure!(removal.is_sorted(), "slice, import, Service went as {removal:?}");
    Ok(())
}

/// Services with an address inside their cluster are imported alike; node ports and load balancers stay at home.
pub(super) async fn every_type_of_service(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    let types = ["ClusterIP", "NodePort", "LoadBalancer"];
    for service_type in types {
        let spec = with(plain(), json!({ "type": service_type }));
        story.export("east", &service_type.to_lowercase(), &spec).await?;
    }
    let wanted = json!([{"name": "http", "protocol": "TCP", "port": 80}]);
    story
        .everywhere(|seen| {
            for name in types.map(str::to_lowercase) {
                let import = complete(seen, &name)?;
                expect::same(&import["spec"]["type"], &json!("ClusterSetIP"), "the type")?;
                expect::same(&import["spec"]["ports"], &wanted, "ports")?;
                let derived = &seen.derived(&name)?["spec"];
                expect::same(
                    &derived["type"],
                    &json!("ClusterIP"),
                    "the derived Service's type",
                )?;
                backends_are(seen, &name, &[("east", &address("east", 1))])?;
            }
            Ok(())
        })
        .await?;
    Ok(())
}

/// A Service without a ServiceExport of its own cluster serves nobody else, whoever exports that name.
pub(super) async fn a_service_alone_is_not_exported(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    story.back("west", "cart", &plain()).await?;
    story.export("east", "cart", &plain()).await?;
    let of_east = [("east", &*address("east", 1))];
    story
        .everywhere(|seen| {
            from_clusters(complete(seen, "cart")?, &["east"])?;
            backends_are(seen, "cart", &of_east)
        })
        .await?;
    story.back("north", "till", &plain()).await?;
    story
        .stays(|seen| {
            from_clusters(seen.import("cart")?, &["east"])?;
            backends_are(seen, "cart", &of_east)?;
            gone(seen, "till")
        })
        .await
}

/// Exports of the older version of the API count, and imports can be read in it, as CoreDNS does.
pub(super) async fn both_versions_are_served(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    story.back("east", "cart", &plain()).await?;
    let mut old = export("cart");
    old["apiVersion"] = json!("multicluster.x-k8s.io/v1alpha1");
    let client = &story.clusterset.cluster("east")?.client;
    Kind::ServiceExport
        .old_api(client, &story.namespace)
        .create(&PostParams::default(), &serde_json::from_value(old)?)
        .await?;
    story
        .everywhere(|seen| from_clusters(complete(seen, "cart")?, &["east"]))
        .await?;
    story.until("east", |seen| exported(seen, "cart", "")).await?;
    for cluster in super::story::CLUSTERS {
        let client = &story.clusterset.cluster(cluster)?.client;
        let imports = Kind::ServiceImport.old_api(client, &story.namespace);
        let old = serde_json::to_value(imports.get("cart").await?)?;
        let new = story.get(cluster, Kind::ServiceImport, "cart").await?;
        ensure!(
            old["apiVersion"] == "multicluster.x-k8s.io/v1alpha1",
            "another version was answered"
        );
        for part in ["spec", "status"] {
            expect::same(&old[part], &new[part], part)?;
        }
    }
    Ok(())
}
