//! A clusterset of clusters with IPv4, with IPv6, and with both: each serves what it can, says what it cannot, and the
//! addresses of a family that nobody can use somewhere do no harm there.

use std::sync::Arc;

use anyhow::ensure;
use cluster::{
    clusterset::Backend,
    real::{Fleet, Options, ServiceFamilies},
};
use serde_json::{Value, json};

use super::story::{
    CLUSTERS, Kind, Story, act,
    expect::{backends_are, complete, exported, from_clusters, has_condition, same},
    objects::{address, export, plain, service, slice_of_family, slice_ports, with},
    seen::{Seen, condition},
    tell,
};

/// In the order of [`CLUSTERS`]: east has IPv4, west IPv6, north both.
const FOUR: &str = "east";
const SIX: &str = "west";
const BOTH: &str = "north";

/// On clusters of its own: families belong to a cluster as long as it lives.
pub(super) async fn on_mixed_clusters() -> anyhow::Result<()> {
    let options = Options {
        service_families: ServiceFamilies::Mixed,
        ..Options::default()
    };
    let fleet = Fleet::start(&CLUSTERS, options).await?;
    tell(Backend::Real(Arc::new(fleet)), |story| Box::pin(mixed(story))).await
}

async fn mixed(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    each_serves_what_it_can(story).await?;
    a_conflict_ends_with_the_oldest(story).await
}

fn six() -> Value {
    with(plain(), json!({"ipFamilies": ["IPv6"]}))
}

fn address_of_six(cluster: &str) -> String {
    let network = CLUSTERS
        .iter()
        .position(|name| *name == cluster)
        .unwrap_or_default();
    format!("2001:db8:{network}::1")
}

/// A Service with endpoints of these families, and its export.
async fn export_with(
    story: &Story,
    cluster: &str,
    name: &str,
    spec: &Value,
    families: &[&str],
) -> anyhow::Result<()> {
    story.apply(cluster, service(name, spec)).await?;
    for family in families {
        let one = if *family == "IPv6" {
            address_of_six(cluster)
        } else {
            address(cluster, 1)
        };
        let endpoints = json!([{"addresses": [one]}]);
        let slice = slice_of_family(family, name, &family.to_lowercase(), slice_ports(spec), endpoints);
        story.apply(cluster, slice).await?;
    }
    story.apply(cluster, export(name)).await.map(drop)
}

/// The import is whole, and serves exactly these families.
fn serves(seen: &Seen, name: &str, families: &[&str]) -> anyhow::Result<()> {
    let import = complete(seen, name)?;
    same(&import["spec"]["ipFamilies"], &json!(families), "the families")?;
    let ips = import["spec"]["ips"].as_array().cloned().unwrap_or_default();
    let of = |ip: &Value| {
        if ip.as_str().is_some_and(|ip| ip.contains(':')) {
            "IPv6"
        } else {
            "IPv4"
        }
    };
    let found: Vec<&str> = ips.iter().map(of).collect();
    ensure!(found == families, "{name} in {} has {ips:?}", seen.cluster);
    Ok(())
}

/// The import is there, cannot be used here, and says which family is missing.
fn cannot_serve(seen: &Seen, name: &str, family: &str) -> anyhow::Result<()> {
    let import = seen.import(name)?;
    has_condition(import, "Ready", "False", "IPFamilyNotSupported")?;
    let message = condition(import, "Ready")?["message"]
        .as_str()
        .unwrap_or_default();
    ensure!(message.contains(family), "Ready says {message:?}");
    ensure!(
        import["spec"]["ips"].is_null(),
        "it has {}",
        import["spec"]["ips"]
    );
    Ok(())
}

/// One family goes where it is offered; both go as far as they are.
async fn each_serves_what_it_can(story: &Story) -> anyhow::Result<()> {
    let dual = with(
        plain(),
        json!({"ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv4", "IPv6"]}),
    );
    export_with(story, FOUR, "four", &plain(), &["IPv4"]).await?;
    export_with(story, SIX, "six", &six(), &["IPv6"]).await?;
    export_with(story, BOTH, "both", &dual, &["IPv4", "IPv6"]).await?;
    let (of_four, of_six) = (address(FOUR, 1), address_of_six(SIX));
    let of_both = [address(BOTH, 1), address_of_six(BOTH)];
    let behind_both = [(BOTH, &*of_both[0]), (BOTH, &*of_both[1])];
    story
        .until(FOUR, |seen| {
            serves(seen, "four", &["IPv4"])?;
            serves(seen, "both", &["IPv4"])?;
            backends_are(seen, "both", &behind_both)?;
            cannot_serve(seen, "six", "IPv6")
        })
        .await?;
    story
        .until(SIX, |seen| {
            serves(seen, "six", &["IPv6"])?;
            serves(seen, "both", &["IPv6"])?;
            backends_are(seen, "both", &behind_both)?;
            cannot_serve(seen, "four", "IPv4")
        })
        .await?;
    story
        .until(BOTH, |seen| {
            serves(seen, "four", &["IPv4"])?;
            backends_are(seen, "four", &[(FOUR, &of_four)])?;
            serves(seen, "six", &["IPv6"])?;
            backends_are(seen, "six", &[(SIX, &of_six)])?;
            serves(seen, "both", &["IPv4", "IPv6"])
        })
        .await?;
    for (cluster, name) in [(FOUR, "four"), (SIX, "six"), (BOTH, "both")] {
        story.until(cluster, |seen| exported(seen, name, "")).await?;
    }
    Ok(())
}

/// The oldest export's family is the service's everywhere, and all exports say that they differ. With its end the other
/// family takes over, and the conflict is gone.
async fn a_conflict_ends_with_the_oldest(story: &Story) -> anyhow::Result<()> {
    export_with(story, FOUR, "cart", &plain(), &["IPv4"]).await?;
    act::next_second().await;
    export_with(story, SIX, "cart", &six(), &["IPv6"]).await?;
    let (of_four, of_six) = (address(FOUR, 1), address_of_six(SIX));
    let behind = [(FOUR, &*of_four), (SIX, &*of_six)];
    for cluster in [FOUR, SIX] {
        story
            .until(cluster, |seen| exported(seen, "cart", "IPFamilyConflict"))
            .await?;
    }
    for cluster in [FOUR, BOTH] {
        story
            .until(cluster, |seen| {
                serves(seen, "cart", &["IPv4"])?;
                from_clusters(seen.import("cart")?, &[FOUR, SIX])?;
                backends_are(seen, "cart", &behind)
            })
            .await?;
    }
    story
        .until(SIX, |seen| cannot_serve(seen, "cart", "IPv4"))
        .await?;
    story.delete(FOUR, Kind::ServiceExport, "cart").await?;
    story.until(SIX, |seen| exported(seen, "cart", "")).await?;
    story.until(SIX, |seen| serves(seen, "cart", &["IPv6"])).await?;
    story
        .until(FOUR, |seen| {
            let import = seen.import("cart")?;
            has_condition(import, "Ready", "False", "IPFamilyNotSupported")
        })
        .await?;
    story
        .until(BOTH, |seen| {
            let import = complete(seen, "cart")?;
            let families = import["spec"]["ipFamilies"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            ensure!(
                families.contains(&json!("IPv6")),
                "{families:?} do not reach the only endpoints"
            );
            backends_are(seen, "cart", &[(SIX, &of_six)])
        })
        .await?;
    // Whatever could not be served, everything else goes on.
    story.export(FOUR, "later", &plain()).await?;
    story.until(BOTH, |seen| serves(seen, "later", &["IPv4"])).await
}
