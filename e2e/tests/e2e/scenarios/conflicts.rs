//! Exports of one service that disagree: the oldest wins for every property, and every exporter is told.

use anyhow::ensure;
use serde_json::{Value, json};

use super::story::{
    CLUSTERS, Kind, Story, act,
    expect::{backends_are, complete, exported, from_clusters, same},
    objects::{self, address, export, export_with, headless, plain, service, with},
    seen::condition,
};

/// Exports that disagree on one property.
struct Case {
    /// The name of the Service, and of the case.
    name: &'static str,
    /// Every reason, as the condition joins them.
    reason: &'static str,
    /// Value of the oldest export's cluster.
    oldest: Value,
    /// Value of the younger one.
    younger: Value,
    /// Field of the winner's value in the import's spec; empty when the export's own spec differs.
    field: &'static str,
}

impl Case {
    fn of_service(
        name: &'static str,
        reason: &'static str,
        oldest: Value,
        younger: Value,
        field: &'static str,
    ) -> Self {
        Self {
            name,
            reason,
            oldest,
            younger,
            field,
        }
    }

    fn of_metadata(name: &'static str, reason: &'static str, field: &'static str) -> Self {
        Self {
            name,
            reason,
            oldest: json!({field: {"example.org/tier": "gold"}}),
            younger: json!({field: {"example.org/tier": "silver", "example.org/more": "x"}}),
            field: "",
        }
    }

    /// The Service and the ServiceExport of one of the two.
    fn objects(&self, oldest: bool) -> [Value; 2] {
        let value = if oldest { &self.oldest } else { &self.younger };
        match self.field {
            "" => [
                service(self.name, &plain()),
                export_with(self.name, value.clone()),
            ],
            _ => [service(self.name, value), export(self.name)],
        }
    }
}

/// The nine reasons. An affinity of ClientIP has a configuration, by default, and None has none: two reasons.
fn cases() -> [Case; 9] {
    let affinity = |seconds: u32| {
        let config = json!({"clientIP": {"timeoutSeconds": seconds}});
        with(
            plain(),
            json!({"sessionAffinity": "ClientIP", "sessionAffinityConfig": config}),
        )
    };
    let policy = |field: &str, value: &str| with(plain(), json!({field: value}));
    let more_ports = json!([{"name": "http", "port": 80}, {"name": "grpc", "port": 90}]);
    let both_families = json!({"ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv4", "IPv6"]});
    [
        Case::of_service(
            "ports",
            "PortConflict",
            plain(),
            objects::ports(more_ports),
            "type",
        ),
        Case::of_service("type", "TypeConflict", plain(), headless(), "type"),
        Case::of_service(
            "affinity",
            "SessionAffinityConflict,SessionAffinityConfigConflict",
            plain(),
            affinity(60),
            "sessionAffinity",
        ),
        Case::of_service(
            "config",
            "SessionAffinityConfigConflict",
            affinity(60),
            affinity(61),
            "sessionAffinityConfig",
        ),
        Case::of_metadata("labels", "LabelsConflict", "exportedLabels"),
        Case::of_metadata("annotations", "AnnotationsConflict", "exportedAnnotations"),
        Case::of_service(
            "internal",
            "InternalTrafficPolicyConflict",
            policy("internalTrafficPolicy", "Local"),
            policy("internalTrafficPolicy", "Cluster"),
            "internalTrafficPolicy",
        ),
        Case::of_service(
            "distribution",
            "TrafficDistributionConflict",
            policy("trafficDistribution", "PreferClose"),
            plain(),
            "trafficDistribution",
        ),
        Case::of_service(
            "families",
            "IPFamilyConflict",
            plain(),
            with(plain(), both_families),
            "ipFamilies",
        ),
    ]
}

/// Every reason shows on every export, with the winner and its value; the import is the oldest export's; the
/// conflict goes when its cause does.
pub(super) async fn every_reason_on_every_export(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    let cases = cases();
    // East is the oldest and north agrees with it; west is in between and does not.
    for (cluster, agrees) in [("east", true), ("west", false), ("north", true)] {
        for object in cases.iter().flat_map(|case| case.objects(agrees)) {
            story.apply(cluster, object).await?;
        }
        act::next_second().await;
    }
    for case in &cases {
        story
            .everywhere(|seen| {
                exported(seen, case.name, case.reason)?;
                names_winner_and_loser(condition(seen.export(case.name)?, "Conflict")?)?;
                let import = complete(seen, case.name)?;
                from_clusters(import, &CLUSTERS)?;
                is_the_oldest(case, seen.services.get(case.name), import)
            })
            .await?;
    }
    // West gives in.
    for case in &cases {
        if case.name == "type" {
            story.delete("west", Kind::Service, case.name).await?; // an address, once given, cannot become None
        }
        for object in case.objects(true) {
            story.apply("west", object).await?;
        }
    }
    for case in &cases {
        story
            .everywhere(|seen| {
                exported(seen, case.name, "")?;
                from_clusters(complete(seen, case.name)?, &CLUSTERS)
            })
            .await?;
    }
    Ok(())
}

fn names_winner_and_loser(conflict: &Value) -> anyhow::Result<()> {
    let message = conflict["message"].as_str().unwrap_or_default();
    ensure!(
        message.contains("from oldest service export in \"east\"")
            && message.contains("\"west\" has")
            && message.contains("1/3 clusters disagree"),
        "the message is {message:?}"
    );
    Ok(())
}

/// `service` is the one of the same name in the cluster that is looked at: its defaults are the oldest's too
/// where it was made alike.
fn is_the_oldest(case: &Case, service: Option<&Value>, import: &Value) -> anyhow::Result<()> {
    if case.field.is_empty() {
        let exported = case.oldest.as_object().into_iter().flatten();
        for (field, pairs) in exported {
            let stamped = match field.as_str() {
                "exportedLabels" => &import["metadata"]["labels"],
                _ => &import["metadata"]["annotations"],
            };
            same(&stamped["example.org/tier"], &pairs["example.org/tier"], field)?;
            ensure!(
                stamped["example.org/more"].is_null(),
                "{field} were mixed: {stamped}"
            );
        }
        return Ok(());
    }
    let wanted = match (case.field, &case.oldest[case.field]) {
        ("type", _) => json!("ClusterSetIP"),
        ("sessionAffinity", Value::Null) => json!("None"),
        (_, stated) => stated.clone(),
    };
    same(&import["spec"][case.field], &wanted, case.field)?;
    if case.name == "ports" {
        let union = json!([
            {"name": "http", "protocol": "TCP", "port": 80},
            {"name": "grpc", "protocol": "TCP", "port": 90},
        ]);
        same(&import["spec"]["ports"], &union, "ports")?;
    }
    ensure!(service.is_some(), "every cluster keeps its own Service");
    Ok(())
}

/// Three exports with three values: the import follows whichever is the oldest that is left, for everything.
pub(super) async fn the_next_oldest_inherits(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    for (cluster, seconds) in [("north", 10), ("east", 20), ("west", 30)] {
        let config = json!({"clientIP": {"timeoutSeconds": seconds}});
        let spec = with(
            plain(),
            json!({"sessionAffinity": "ClientIP", "sessionAffinityConfig": config}),
        );
        story.back(cluster, "cart", &spec).await?;
        let labels = json!({"exportedLabels": {"example.org/owner": cluster}});
        story.apply(cluster, export_with("cart", labels)).await?;
        act::next_second().await;
    }
    let both = "SessionAffinityConfigConflict,LabelsConflict";
    let mut left = vec!["north", "east", "west"];
    for (seconds, reason) in [(10, both), (20, both), (30, "")] {
        let oldest = left[0];
        let wanted: Vec<(&str, String)> = left
            .iter()
            .map(|cluster| (*cluster, address(cluster, 1)))
            .collect();
        let wanted: Vec<(&str, &str)> = wanted
            .iter()
            .map(|(cluster, one)| (*cluster, one.as_str()))
            .collect();
        story
            .everywhere(|seen| {
                let import = complete(seen, "cart")?;
                from_clusters(import, &left)?;
                backends_are(seen, "cart", &wanted)?;
                let config = &import["spec"]["sessionAffinityConfig"]["clientIP"];
                same(&config["timeoutSeconds"], &json!(seconds), "the timeout")?;
                same(
                    &import["metadata"]["labels"]["example.org/owner"],
                    &json!(oldest),
                    "the exported label",
                )?;
                if left.contains(&&*seen.cluster) {
                    exported(seen, "cart", reason)?;
                }
                Ok(())
            })
            .await?;
        story.delete(oldest, Kind::ServiceExport, "cart").await?;
        left.remove(0);
    }
    // Who comes back is the youngest.
    story.apply("west", export("cart")).await?;
    act::next_second().await;
    story.apply("north", export("cart")).await?;
    story
        .everywhere(|seen| {
            let import = complete(seen, "cart")?;
            from_clusters(import, &["west", "north"])?;
            let config = &import["spec"]["sessionAffinityConfig"]["clientIP"];
            same(&config["timeoutSeconds"], &json!(30), "the timeout")
        })
        .await?;
    story.all_is_right().await
}

/// Exports of one and the same second: the cluster ids decide, the same everywhere.
pub(super) async fn equal_timestamps_are_told_apart_by_cluster_id(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    for (cluster, policy) in [("west", "Local"), ("east", "Cluster"), ("north", "Local")] {
        let spec = with(plain(), json!({"internalTrafficPolicy": policy}));
        story.back(cluster, "cart", &spec).await?;
    }
    story
        .export_in_one_second(&["west", "north", "east"], "cart")
        .await?;
    story
        .everywhere(|seen| {
            let import = complete(seen, "cart")?;
            from_clusters(import, &CLUSTERS)?;
            same(
                &import["spec"]["internalTrafficPolicy"],
                &json!("Cluster"),
                "the policy of east, the first by name,",
            )?;
            exported(seen, "cart", "InternalTrafficPolicyConflict")
        })
        .await?;
    Ok(())
}
