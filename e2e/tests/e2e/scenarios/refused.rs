//! Exports that cannot be: each says why, makes no import, takes no place in the order, and can be repaired.

use anyhow::ensure;
use cluster::clusterset::shop::unique_name;
use serde_json::{Value, json};

use super::story::{
    Kind, Story, act,
    expect::{self, complete, exported, from_clusters, gone, refused, same},
    objects::{self, address, export, export_with, plain, service, slice, with},
};

/// An export without a Service waits for it; its place in the order is its own age.
pub(super) async fn a_missing_service_may_come_later(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    story.apply("east", export("cart")).await?;
    story
        .until("east", |seen| refused(seen, "cart", "NoService"))
        .await?;
    act::next_second().await;
    let local = with(plain(), json!({"internalTrafficPolicy": "Local"}));
    story.export("west", "cart", &local).await?;
    let policy_is = |import: &Value, policy: &str| {
        same(
            &import["spec"]["internalTrafficPolicy"],
            &json!(policy),
            "the internal traffic policy",
        )
    };
    story
        .everywhere(|seen| {
            let import = complete(seen, "cart")?;
            from_clusters(import, &["west"])?;
            policy_is(import, "Local")
        })
        .await?;
    story.until("west", |seen| exported(seen, "cart", "")).await?;
    story
        .stays(|seen| from_clusters(seen.import("cart")?, &["west"]))
        .await?;
    story.back("east", "cart", &plain()).await?;
    story
        .everywhere(|seen| {
            let import = complete(seen, "cart")?;
            from_clusters(import, &["east", "west"])?;
            policy_is(import, "Cluster")
        })
        .await?;
    for cluster in ["east", "west"] {
        let told = |seen: &_| exported(seen, "cart", "InternalTrafficPolicyConflict");
        story.until(cluster, told).await?;
    }
    Ok(())
}

/// A Service of a type that is none.
pub(super) async fn each_bad_export_is_refused_and_repaired(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    story.apply("east", external("cart")).await?;
    story.apply("east", export("cart")).await?;
    story
        .until("east", |seen| refused(seen, "cart", "InvalidServiceType"))
        .await?;
    story.stays(|seen| gone(seen, "cart")).await?;
    story.delete("east", Kind::Service, "cart").await?;
    story.apply("east", service("cart", &plain())).await?;
    story.everywhere(|seen| complete(seen, "cart").map(drop)).await?;
    story.until("east", |seen| exported(seen, "cart", "")).await
}

fn external(name: &str) -> Value {
    service(
        name,
        &json!({"type": "ExternalName", "externalName": "shop.example.org"}),
    )
}

/// A label that nobody may export, one that no import can bear, and more than is exported: each is left out and named, the
/// rest is exported, and the import keeps its address.
pub(super) async fn an_edit_of_metadata_withdraws_nothing(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    story.export("east", "cart", &plain()).await?;
    let address = story
        .until("west", |seen| Ok(complete(seen, "cart")?["spec"]["ips"].clone()))
        .await?;
    let big = "x".repeat(33 * 1024);
    let edits = [
        (
            json!({"exportedLabels": {"kubernetes.io/hostname": "x"}}),
            "kubernetes.io/hostname",
        ),
        (json!({"exportedLabels": {"not a key": "x"}}), "not a key"),
        (
            json!({"exportedLabels": {"example.org/tier": "not a value!"}}),
            "example.org/tier",
        ),
        (
            json!({"exportedAnnotations": {"multicluster.kubernetes.io/x": "x"}}),
            "multicluster.kubernetes.io/x",
        ),
        (
            json!({"exportedAnnotations": {"example.org/big": big}}),
            "example.org/big",
        ),
    ];
    for (spec, left_out) in edits {
        let mut spec = spec;
        let labels = &mut spec["exportedLabels"];
        labels["app.kubernetes.io/part-of"] = json!("shop");
        labels["example.org/edit"] = json!(left_out.len().to_string());
        story.apply("east", export_with("cart", spec)).await?;
        story
            .until("east", |seen| {
                exported(seen, "cart", "")?;
                expect::valid_says(seen, "cart", left_out)
            })
            .await?;
        story
            .everywhere(|seen| {
                let import = complete(seen, "cart")?;
                let labels = &import["metadata"]["labels"];
                same(&labels["app.kubernetes.io/part-of"], &json!("shop"), "a label")?;
                same(
                    &labels["example.org/edit"],
                    &json!(left_out.len().to_string()),
                    "the edit",
                )?;
                ensure!(labels[left_out].is_null(), "{left_out} is carried");
                ensure!(
                    import["metadata"]["annotations"][left_out].is_null(),
                    "{left_out} is carried"
                );
                Ok(())
            })
            .await?;
        story
            .until("west", |seen| {
                same(&complete(seen, "cart")?["spec"]["ips"], &address, "the address")
            })
            .await?;
    }
    Ok(())
}

/// An export that was good and turns bad takes its import with it.
pub(super) async fn an_export_that_turns_bad_withdraws(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    story.export_in_order(&["east", "west"], "cart", &plain()).await?;
    story
        .everywhere(|seen| from_clusters(complete(seen, "cart")?, &["east", "west"]))
        .await?;
    story.delete("east", Kind::Service, "cart").await?;
    story.apply("east", external("cart")).await?;
    story
        .everywhere(|seen| {
            from_clusters(complete(seen, "cart")?, &["west"])?;
            expect::backends_are(seen, "cart", &[("west", &address("west", 1))])
        })
        .await?;
    story
        .until("east", |seen| refused(seen, "cart", "InvalidServiceType"))
        .await?;
    story.until("west", |seen| exported(seen, "cart", "")).await
}

/// Tributary's own Services are not exported again, under any name that makes one look like a user's.
pub(super) async fn derived_services_are_not_exported(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    story.export("east", "cart", &plain()).await?;
    let derived = story
        .until("west", |seen| {
            complete(seen, "cart")?;
            Ok(seen.derived_name("cart"))
        })
        .await?;
    story.apply("west", export(&derived)).await?;
    story
        .until("west", |seen| refused(seen, &derived, "InvalidServiceType"))
        .await?;
    // Made by another implementation of the same contract: its name and the lack of a selector tell.
    let foreign = "derived-0123456789";
    story.apply("north", service(foreign, &plain())).await?;
    story.apply("north", export(foreign)).await?;
    story
        .until("north", |seen| refused(seen, foreign, "InvalidServiceType"))
        .await?;
    // A slice that was imported is not the Service's own, whatever it says.
    let ports = objects::slice_ports(&plain());
    let mut imported = slice("cart", "foreign", ports, json!([{"addresses": ["198.51.100.7"]}]));
    imported["metadata"]["labels"]["multicluster.kubernetes.io/source-cluster"] = json!("mars");
    story.apply("east", imported).await?;
    story
        .stays(|seen| {
            gone(seen, &derived)?;
            gone(seen, foreign)?;
            let backends = seen.backends("cart");
            ensure!(
                !backends.iter().any(|(_, address)| address == "198.51.100.7"),
                "a foreign slice was exported again: {backends:?}"
            );
            Ok(())
        })
        .await
}

/// Kubernetes keeps three namespaces for itself; others that begin like them are users'.
pub(super) async fn a_namespace_that_begins_like_kubernetes_own_is_exported(
    story: &mut Story,
) -> anyhow::Result<()> {
    story.start().await?;
    let namespace = unique_name("kube-story");
    for cluster in ["east", "west"] {
        story.create_namespace(cluster, &namespace).await?;
    }
    for mut object in [service("cart", &plain()), export("cart")] {
        object["metadata"]["namespace"] = json!(namespace);
        story.apply("east", object).await?;
    }
    story
        .until_in("east", &namespace, |seen| exported(seen, "cart", ""))
        .await?;
    story
        .until_in("west", &namespace, |seen| {
            from_clusters(seen.import("cart")?, &["east"])
        })
        .await
}
