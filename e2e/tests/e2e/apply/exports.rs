//! The conditions of exports.

use std::sync::Arc;

use agent::{
    observe::join::{Objects, join},
    outbox::Refusal,
    watch::{Kept, KeptExport, KeptService, KeptSlice},
};
use anyhow::Context;
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use serde_json::{Value, json};
use shared::{
    api::{ServiceExport, convert::NamespaceDenyList},
    model::{
        Conflict, ConflictReason, ExportStatus, FactKey,
        sync::{DesiredChange, RefusalReason},
    },
};
use sim::SimCluster;

use super::{cluster::*, driver::*};

fn condition(cluster: &SimCluster, kind: &str) -> Value {
    let export = cluster.get("ServiceExport", "shop", "cart").unwrap_or_default();
    let conditions = export["status"]["conditions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    conditions
        .into_iter()
        .find(|one| one["type"] == json!(kind))
        .unwrap_or_default()
}

pub(super) async fn exports_get_their_conditions() -> anyhow::Result<()> {
    let cluster = cluster()?;
    let agent = Agent::start(&cluster);
    cluster.apply_yaml(EXPORT)?;
    until("NoService", || {
        condition(&cluster, "Valid")["reason"] == json!("NoService")
    })
    .await?;
    assert_eq!(condition(&cluster, "Ready")["status"], json!("False"));
    cluster.apply_yaml("{apiVersion: v1, kind: Service, metadata: {name: cart, namespace: shop}, spec: {ports: [{name: http, port: 80}]}}")?;
    until("Valid", || {
        condition(&cluster, "Valid")["status"] == json!("True")
    })
    .await?;
    until("Pending", || {
        condition(&cluster, "Ready")["status"] == json!("Unknown")
    })
    .await?;
    let export = cluster
        .get("ServiceExport", "shop", "cart")
        .context("the export")?;
    let status = ExportStatus {
        service: key(),
        uid: export["metadata"]["uid"].as_str().context("a uid")?.into(),
        generation: 1,
        conflicts: vec![Conflict {
            reason: ConflictReason::Port,
            message: "Ports differ.".into(),
        }],
        exporters: 2,
        denial: None,
        left_out: "".into(),
    };
    agent.told(
        1,
        &all_listed(),
        vec![DesiredChange::ExportStatus(Arc::new(status))],
    );
    until("Exported", || {
        condition(&cluster, "Ready")["reason"] == json!("Exported")
    })
    .await?;
    assert_eq!(condition(&cluster, "Conflict")["reason"], json!("PortConflict"));
    until("an Event", || {
        cluster
            .list("Event")
            .iter()
            .any(|event| event["reason"] == json!("PortConflict"))
    })
    .await?;
    refuse(&cluster, &agent, "cart", "the hub says no: rename a label")?;
    until("InvalidExport", || {
        condition(&cluster, "Valid")["reason"] == json!("InvalidExport")
    })
    .await?;
    assert_eq!(condition(&cluster, "Conflict"), Value::Null);
    // Mended, it is another fact, and that one was not refused.
    cluster.apply_yaml("{apiVersion: v1, kind: Service, metadata: {name: cart, namespace: shop}, spec: {ports: [{name: http, port: 81}]}}")?;
    until("Valid again", || {
        condition(&cluster, "Valid")["status"] == json!("True")
    })
    .await?;
    agent.stop().await
}

/// The list keeps back what this cluster exports, and nothing that others do: what they export is theirs to withdraw.
pub(super) async fn a_denied_namespace_imports_and_exports_nothing() -> anyhow::Result<()> {
    let cluster = cluster()?;
    cluster.apply_yaml("{apiVersion: v1, kind: Service, metadata: {name: cart, namespace: shop}, spec: {ports: [{name: http, port: 80}]}}")?;
    cluster.apply_yaml(EXPORT)?;
    let deny = NamespaceDenyList::new(["shop"]);
    let agent = Agent::start_denying(cluster.client_named("agent"), "shop", deny);
    agent.told(1, &all_listed(), wishes());
    arrived(&cluster, 2).await?;
    until("NamespaceDenied", || {
        condition(&cluster, "Valid")["reason"] == json!("NamespaceDenied")
    })
    .await?;
    agent.stop().await
}

/// The hub does not take a fact of the service: the export's, or that of the slice of this name.
fn refuse(cluster: &SimCluster, agent: &Agent, name: &str, message: &str) -> anyhow::Result<()> {
    let object = |kind: &str, name: &str| {
        let found = cluster.get(kind, "shop", name);
        found
            .with_context(|| format!("{kind} {name}"))
            .map(|found| Value::clone(&found))
    };
    let export: ServiceExport = serde_json::from_value(object("ServiceExport", "cart")?)?;
    let service: Service = serde_json::from_value(object("Service", "cart")?)?;
    let slice: Option<EndpointSlice> = match name {
        "cart" => None,
        slice => Some(serde_json::from_value(object("EndpointSlice", slice)?)?),
    };
    let (export, service) = (KeptExport::keep(export), KeptService::keep(service));
    let slice = slice.map(KeptSlice::keep);
    let objects = Objects {
        export: Some(&export),
        service: Some(&service),
        slices: slice.iter().collect(),
    };
    let joined = join(&key(), &objects, &NamespaceDenyList::default());
    let fact = joined.facts.iter().find(|(key, _)| match key {
        FactKey::EndpointSlice(of) => *of.name == *name,
        _ => slice.is_none(),
    });
    let (fact, stated) = fact.context("the fact")?;
    let refusal = Refusal {
        hash: stated.hash,
        reason: RefusalReason::Invalid,
        message: message.into(),
    };
    agent.handle.fact_refused(fact, &refusal);
    Ok(())
}

/// One by its own addresses, one by the hub's word: the export is valid and says what stays behind.
pub(super) async fn slices_that_cannot_be_exported_are_named() -> anyhow::Result<()> {
    let cluster = cluster()?;
    let agent = Agent::start(&cluster);
    cluster.apply_yaml(EXPORT)?;
    cluster.apply_yaml("{apiVersion: v1, kind: Service, metadata: {name: cart, namespace: shop}, spec: {ports: [{name: http, port: 80}]}}")?;
    for (name, address_type, address) in [
        ("cart-names", "FQDN", "cart.example.org"),
        ("cart-refused", "IPv4", "10.5.0.1"),
    ] {
        cluster.apply(
            json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": name, "namespace": "shop", "labels": {"kubernetes.io/service-name": "cart"}},
            "addressType": address_type, "endpoints": [{"addresses": [address]}],
            "ports": [{"name": "http", "port": 8080}]}),
        )?;
    }
    let says = |words: &str| {
        let valid = condition(&cluster, "Valid");
        let message = valid["message"].as_str().unwrap_or_default();
        valid["status"] == json!("True") && message.contains(words)
    };
    until("the slice of names", || {
        says("cart-names: the slice has addressType FQDN")
    })
    .await?;
    until("an Event", || {
        cluster
            .list("Event")
            .iter()
            .any(|event| event["reason"] == json!("SliceNotExported"))
    })
    .await?;
    refuse(&cluster, &agent, "cart-refused", "too many endpoints")?;
    until("the refused slice", || says("cart-refused: too many endpoints")).await?;
    for name in ["cart-names", "cart-refused"] {
        cluster.delete("EndpointSlice", "shop", name)?;
    }
    until("nothing", || condition(&cluster, "Valid")["message"] == json!("")).await?;
    agent.stop().await
}
