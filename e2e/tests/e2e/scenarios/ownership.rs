//! Tests that Tributary's objects stay as it made them, and others' as theirs.

use anyhow::{Context, ensure};
use kube::api::ListParams;
use serde_json::{Value, json};
use shared::model::derived_name::{derived_service_name, imported_slice_name};

use super::story::{
    Kind, Story,
    expect::{complete, exported, gone, has_condition, same, spec_is},
    objects::{plain, service, slice_ports},
    seen::{Seen, condition},
};

/// A user's objects under names that Tributary needs.
fn strangers(namespace: &str) -> [(Kind, Value); 3] {
    let import = json!({
        "apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceImport",
        "metadata": {"name": "imported"},
        "spec": {"type": "ClusterSetIP", "ports": [{"port": 1}], "ips": ["198.51.100.1"]},
    });
    let mut derived = service(&derived_service_name(namespace, "derived"), &plain());
    // Saying so does not make it Tributary's.
    derived["metadata"]["labels"] = json!({"app.kubernetes.io/managed-by": "tributary-agent"});
    let name = imported_slice_name(namespace, "sliced", "east", "sliced-1");
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": name},
        "addressType": "IPv4", "ports": slice_ports(&plain()),
        "endpoints": [{"addresses": ["198.51.100.2"]}],
    });
    [
        (Kind::ServiceImport, import),
        (Kind::Service, derived),
        (Kind::EndpointSlice, slice),
    ]
}

/// Objects of strangers are not touched, but reported; all that does not need their names is served; once they
/// are out of the way, so is the rest.
pub(super) async fn strangers_are_left_alone(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    let mut before = Vec::new();
    for (kind, object) in strangers(&story.namespace) {
        let made = story.apply("west", object).await?;
        let name = made["metadata"]["name"].as_str().context("a name")?.to_owned();
        let version = made["metadata"]["resourceVersion"].clone();
        before.push((kind, name, version));
    }
    let names = ["imported", "derived", "sliced"];
    for name in names {
        story.export("east", name, &plain()).await?;
    }
    for cluster in ["east", "north"] {
        story
            .until(cluster, |seen| {
                names.iter().try_for_each(|name| {
                    complete(seen, name)?;
                    ensure!(seen.backends(name).len() == 1, "no endpoint of {name}");
                    Ok(())
                })
            })
            .await?;
    }
    story
        .until("west", |seen| {
            let import = seen.import("derived")?;
            has_condition(import, "Ready", "False", "Pending")?;
            let message = condition(import, "Ready")?["message"]
                .as_str()
                .unwrap_or_default();
            ensure!(message.contains("not Tributary's"), "Ready says {message:?}");
            complete(seen, "sliced").map(drop)
        })
        .await?;
    for (_, name, _) in &before {
        reported(story, "NameTaken", name).await?;
    }
    story.pass("east").await?;
    for (kind, name, version) in &before {
        let now = story.get("west", *kind, name).await?;
        same(
            &now["metadata"]["resourceVersion"],
            version,
            &format!("the version of a stranger's {kind:?}"),
        )?;
    }
    for (kind, name, _) in &before {
        story.delete("west", *kind, name).await?;
    }
    story
        .until("west", |seen| {
            names.iter().try_for_each(|name| {
                complete(seen, name)?;
                ensure!(seen.backends(name).len() == 1, "no endpoint of {name}");
                Ok(())
            })
        })
        .await
}

/// An Event in west says so.
pub(super) async fn reported(story: &Story, reason: &str, name: &str) -> anyhow::Result<()> {
    let events = story
        .api("west", Kind::Event)?
        .list(&ListParams::default())
        .await?;
    let found = events.items.iter().any(|event| {
        event.data["reason"] == reason
            && (event.data["regarding"]["name"] == name || event.data["involvedObject"]["name"] == name)
    });
    ensure!(
        found,
        "no Event {reason} about {name} among {} Events",
        events.items.len()
    );
    Ok(())
}

/// A conflict is an Event on the export too.
pub(super) async fn events_tell_of_conflicts(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    story.export("east", "cart", &plain()).await?;
    super::story::act::next_second().await;
    let other = super::story::objects::ports(json!([{"name": "web", "port": 80}]));
    story.export("west", "cart", &other).await?;
    story
        .until("west", |seen| exported(seen, "cart", "PortConflict"))
        .await?;
    story.pass("west").await?;
    reported(story, "PortConflict", "cart").await
}

/// Whatever somebody changes in an object of Tributary's is changed back; what they add beside it stays.
pub(super) async fn drift_is_restored(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    story.export("east", "cart", &plain()).await?;
    story.everywhere(|seen| complete(seen, "cart").map(drop)).await?;
    let settled = story.look("west").await?;
    let import = settled.import("cart")?.clone();
    let derived_name = settled.derived_name("cart");
    let slice = settled.imported_from("cart", "east")[0].clone();
    let slice_name = slice["metadata"]["name"].as_str().context("a name")?.to_owned();
    let gone_key = Value::Null;
    let drifts = [
        (
            Kind::ServiceImport,
            "cart",
            json!({"spec": {"ports": [{"port": 1, "protocol": "TCP"}]}}),
        ),
        (
            Kind::ServiceImport,
            "cart",
            json!({"spec": {"ips": ["203.0.113.1"], "ipFamilies": gone_key}}),
        ),
        (
            Kind::ServiceImport,
            "cart",
            json!({"metadata": {"annotations": {"multicluster.kubernetes.io/derived-service": "other"}}}),
        ),
        (
            Kind::Service,
            &derived_name,
            json!({"spec": {"ports": [{"name": "http", "port": 81, "protocol": "TCP"}], "sessionAffinity": "ClientIP"}}),
        ),
        (Kind::EndpointSlice, &slice_name, json!({"endpoints": []})),
        (
            Kind::EndpointSlice,
            &slice_name,
            json!({"metadata": {"labels": {"kubernetes.io/service-name": "cart"}}}),
        ),
        (
            Kind::EndpointSlice,
            &slice_name,
            json!({"metadata": {"labels": {"endpointslice.kubernetes.io/managed-by": gone_key}}}),
        ),
    ];
    for (kind, name, drift) in drifts {
        story.patch("west", kind, name, drift).await?;
        story
            .until("west", |seen| as_before(seen, &settled, &import, &slice))
            .await?;
    }
    let status = json!({"status": {"clusters": [], "conditions": [], "endpointSliceObjects": "Absent"}});
    story
        .patch_status("west", Kind::ServiceImport, "cart", status)
        .await?;
    story
        .until("west", |seen| as_before(seen, &settled, &import, &slice))
        .await?;
    // Nothing of the restoring keeps alive what is to go later.
    let moved = super::story::objects::ports(json!([{"name": "http", "port": 8080}]));
    story.back("east", "cart", &moved).await?;
    story
        .until("west", |seen| {
            complete(seen, "cart")?;
            let derived = seen.derived("cart")?;
            let ports = derived["spec"]["ports"].as_array().cloned().unwrap_or_default();
            ensure!(
                ports.len() == 1 && ports[0]["port"] == 8080,
                "the derived Service has {ports:?}"
            );
            let managers = derived["metadata"]["managedFields"].as_array();
            let updated = managers
                .into_iter()
                .flatten()
                .any(|entry| entry["manager"] == "tributary-agent" && entry["operation"] != "Apply");
            ensure!(
                !updated,
                "the agent has another entry than its apply: {managers:?}"
            );
            Ok(())
        })
        .await?;
    // A label beside ours is nobody's business.
    let label = json!({"metadata": {"labels": {"example.org/mine": "yes"}}});
    story.patch("west", Kind::ServiceImport, "cart", label).await?;
    story.pass("east").await?;
    let kept = story.get("west", Kind::ServiceImport, "cart").await?;
    same(
        &kept["metadata"]["labels"]["example.org/mine"],
        &json!("yes"),
        "a user's label",
    )
}

fn as_before(seen: &Seen, settled: &Seen, import: &Value, slice: &Value) -> anyhow::Result<()> {
    let now = complete(seen, "cart")?;
    let mut spec = import["spec"].clone();
    if let Some(spec) = spec.as_object_mut() {
        spec.remove("ips");
    }
    spec_is(now, &spec)?;
    same(&now["spec"]["ips"], &import["spec"]["ips"], "ips")?;
    same(
        &now["metadata"]["uid"],
        &import["metadata"]["uid"],
        "the import's uid",
    )?;
    same(
        &now["status"]["clusters"],
        &import["status"]["clusters"],
        "status.clusters",
    )?;
    let (found, wanted) = (seen.derived("cart")?, settled.derived("cart")?);
    same(
        &found["spec"]["ports"],
        &wanted["spec"]["ports"],
        "the derived ports",
    )?;
    same(
        &found["spec"]["sessionAffinity"],
        &wanted["spec"]["sessionAffinity"],
        "the derived affinity",
    )?;
    let slices = seen.imported_from("cart", "east");
    ensure!(slices.len() == 1, "{} slices instead of one", slices.len());
    same(&slices[0]["endpoints"], &slice["endpoints"], "the endpoints")?;
    same(
        &slices[0]["metadata"]["labels"],
        &slice["metadata"]["labels"],
        "the slice's labels",
    )
}

/// Deleted by a user, each object comes back, and the clusterset IP stays the same.
pub(super) async fn deleted_objects_come_back(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    story.export("east", "cart", &plain()).await?;
    let settled = |seen: &Seen| {
        let import = complete(seen, "cart")?;
        ensure!(seen.imported("cart").count() == 1, "no slice");
        Ok(import.clone())
    };
    let before = story.until("west", settled).await?;
    let derived = derived_service_name(&story.namespace, "cart");
    let slice = imported_slice_name(&story.namespace, "cart", "east", "cart-1");
    for (kind, name) in [
        (Kind::ServiceImport, "cart"),
        (Kind::Service, &*derived),
        (Kind::EndpointSlice, &*slice),
    ] {
        let uid = story.get("west", kind, name).await?["metadata"]["uid"].clone();
        story.delete("west", kind, name).await?;
        let after = story.until("west", settled).await?;
        let again = story.get("west", kind, name).await?;
        ensure!(
            again["metadata"]["uid"] != uid,
            "{kind:?} {name} was never deleted"
        );
        same(
            &after["spec"]["ips"],
            &before["spec"]["ips"],
            "the clusterset IPs",
        )?;
    }
    story.delete("east", Kind::ServiceExport, "cart").await?;
    story.everywhere(|seen| gone(seen, "cart")).await?;
    Ok(())
}
